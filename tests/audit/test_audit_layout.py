"""What fuzzing and tampering found: other texts of the same values, values of another type, facts of a run that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audit.strict_json import laid_out
from tests.audit import forge
from tests.audit.conftest import Audit


def findings(judge: Audit, run: Path) -> str:
    forge.reseal(run)
    return "\n".join(map(str, judge(run).findings))


@pytest.mark.parametrize("name", ["results.json", "processes.json"])
@pytest.mark.parametrize("style", [{"indent": 2}, {}, {"indent": 1, "separators": (",", " : ")}, {"separators": (",", ":")}])
def test_another_layout_is_refused(name: str, style: dict[str, Any], run: Path, judge: Audit) -> None:
    path = run / name
    path.write_text(json.dumps(json.loads(path.read_text()), **style) + "\n")
    assert f"{name}: is not in the study's layout" in findings(judge, run)


def test_a_layout_has_one_text() -> None:
    value = {"a": [1, 2.5, {"b": []}], "c": {}, "d": "\u00e9\n", "e": [None, True]}
    text = json.dumps(value, indent=1)
    assert laid_out(text.encode() + b"\n", value)
    for old, new in ((" ", "  "), ("2.5", "2.50"), ("\\u00e9", "\\u00E9"), ("\n", "\n\n"), ("{}", "{ }"), ("[]", "[\n]")):
        assert not laid_out(text.replace(old, new, 1).encode() + b"\n", value)


def test_no_line_break_can_be_taken_out_put_in_or_moved() -> None:
    value = {"a": [1, {"b": [], "c": [[2]]}], "d": {"e": {}, "f": "x, {y}"}, "g": [True]}
    lines = json.dumps(value, indent=1).split("\n")
    texts = {
        "\n".join([*lines[:at], lines[at] + lines[at + 1].lstrip(), *lines[at + 2 :]]) for at in range(len(lines) - 1)
    }  # fmt: skip
    for text in ("\n".join(lines), *texts):
        for at in range(1, len(text)):
            for depth in range(4):
                texts.add(f"{text[:at]}\n{' ' * depth}{text[at:].lstrip(' ')}")
    texts.discard("\n".join(lines))
    tried = 0
    for text in texts:
        try:
            same = json.loads(text) == value
        except ValueError:
            continue
        tried += same
        assert not (same and laid_out(text.encode() + b"\n", value)), text
    assert tried > 1000


def test_an_expected_count_is_an_integer(run: Path, judge: Audit, archive: forge.Archive) -> None:
    archive.results["scenarios"][0]["expected"]["effects"] += 0.0
    assert "expected.effects: is " in findings(judge, archive.write(run))


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("commit", None, "run.clean: is known where run.commit is not"),
        ("clean", None, "run.clean: is known where run.commit is not"),
        ("commit", "0123", "expected 40 lower-case hex digits"),
        ("started_at", "2026-01-01 00:00:00", "expected a moment in UTC"),
        ("started_at", "2026-13-01T00:00:00Z", "expected a moment in UTC"),
        ("started_at", "2026-01-01T24:00:00Z", "expected a moment in UTC"),
        ("started_at", "yesterday", "expected a moment in UTC"),
        ("sqlite", {"package": "sqlite3", "version": "3.40.1", "journal_mode": "delete"}, "run.sqlite.journal_mode"),
        ("sqlite", "3.40.1", "run.sqlite"),
        ("postgres", {"version": "15.14", "fsync": "on", "synchronous_commit": "on"}, "expected null: this run was on SQLite"),
        ("postgres", "15.14", "run.postgres: is '15.14', expected an object or null"),
    ],
)
def test_facts_of_a_run_have_their_form(  # noqa: PLR0917 (a case and its fixtures)
    member: str, value: object, words: str, run: Path, judge: Audit, archive: forge.Archive
) -> None:
    archive.run[member] = value
    assert words in findings(judge, archive.write(run))


@pytest.mark.parametrize("old, new", [("\n\n", "\n\f\n"), ("1 scenarios", "1 scenarios, counterexamples among them: 9;")])
def test_tables_hold_no_control_characters_and_no_other_count(old: str, new: str, run: Path, judge: Audit) -> None:
    text = (run / "tables.md").read_text()
    changed = (
        text.replace(old, new, 1)
        if old in text
        else text.replace(" scenarios,", " scenarios, counterexamples among them: 9;", 1)
    )
    (run / "tables.md").write_text(changed)
    assert "tables.md" in findings(judge, run)
