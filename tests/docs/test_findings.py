"""The page of findings against the archives: every row of its tables, and every command that it tells the reader to give."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

import run
from scenarios.catalogue import SCENARIOS
from scenarios.model import POSTGRES, SQLITE
from scenarios.report.chapters import tables
from scenarios.selection import select
from tests.docs.documents import ARCHIVE, DOCS, boxes

TEXT = (DOCS / "findings.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| `")]
NAMES = [re.findall(r"`([^`]+)`", row)[0] for row in ROWS]
COMMANDS = [line for box in boxes(TEXT) if box.kind == "" for line in box.content.splitlines() if " --only " in line]


POSTGRES_ARCHIVE = ARCHIVE.parent / "study-postgres"


def given(command: str) -> argparse.Namespace:
    return run.parser().parse_args(command.split("run.py ")[1].split())


def named(command: str) -> list[str]:
    return list(given(command).only)


def test_the_page_has_rows_and_commands() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 10
    assert len(COMMANDS) >= 10


def test_every_row_is_that_of_the_archive_made_on_the_store_of_its_command(archive: Path) -> None:
    found = {SQLITE: tables(archive)["dispatch"].splitlines(), POSTGRES: tables(POSTGRES_ARCHIVE)["dispatch"].splitlines()}
    stores = {name: given(command).store for command in COMMANDS[1:] for name in named(command)}
    assert [row for name, row in zip(NAMES, ROWS, strict=True) if row not in found[stores[name]]] == []


def test_every_row_has_a_command_that_runs_it_and_no_other() -> None:
    assert [name for command in COMMANDS[1:] for name in named(command)] == NAMES


@pytest.mark.parametrize("command", COMMANDS[1:])
def test_a_command_names_scenarios_that_its_store_runs(command: str) -> None:
    names = named(command)
    assert [each.name for each in select(SCENARIOS, names, [], given(command).store)] == names


def test_what_is_shown_as_mended_only_is_named_on_the_page() -> None:
    twins = {name for name in NAMES if name.startswith(("recorded_", "mended_"))}
    alone = TEXT.split("shown as mended only:")[1].split("\n\n")[0]
    for section in TEXT.split("\n## ")[1 : TEXT.count("\n## ", 0, TEXT.index("\n## What no outbox can mend")) + 1]:
        title = section.splitlines()[0]
        anchor = re.sub(r"[^a-z0-9 ]", "", title.lower()).replace(" ", "-")
        assert (f"(#{anchor})" in alone) is not any(f"`{name}`" in section for name in twins), title


def test_every_counterexample_of_the_books_as_recorded_is_a_finding() -> None:
    assert {each.name for each in SCENARIOS if each.name.startswith(("recorded_", "mended_"))} <= set(NAMES)
