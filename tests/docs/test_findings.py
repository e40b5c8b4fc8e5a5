"""The page of findings against the archive: every row of its tables, and every command that it tells the reader to give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import run
from scenarios.catalogue import SCENARIOS
from scenarios.report.chapters import tables
from scenarios.selection import select
from tests.docs.documents import DOCS, boxes

TEXT = (DOCS / "findings.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| `")]
NAMES = [re.findall(r"`([^`]+)`", row)[0] for row in ROWS]
COMMANDS = [line for box in boxes(TEXT) if box.kind == "" for line in box.content.splitlines() if " --only " in line]


def named(command: str) -> list[str]:
    return list(run.parser().parse_args(command.split("run.py ")[1].split()).only)


def test_the_page_has_rows_and_commands() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 10
    assert len(COMMANDS) >= 10


def test_every_row_is_the_archive_s(archive: Path) -> None:
    found = set(tables(archive)["dispatch"].splitlines())
    assert [row for row in ROWS if row not in found] == []


def test_every_row_has_a_command_that_runs_it_and_no_other() -> None:
    given = [name for command in COMMANDS[1:] for name in named(command)]
    assert given == NAMES


@pytest.mark.parametrize("command", COMMANDS[1:])
def test_a_command_names_scenarios_that_the_default_store_runs(command: str) -> None:
    names = named(command)
    assert [each.name for each in select(SCENARIOS, names, [])] == names


def test_every_counterexample_of_the_books_as_recorded_is_a_finding() -> None:
    assert {each.name for each in SCENARIOS if each.name.startswith(("recorded_", "mended_"))} <= set(NAMES)
