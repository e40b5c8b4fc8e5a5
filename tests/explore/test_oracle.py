"""Systems with one mistake are caught by real processes, their twins are clean, and a claim that is false is told."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import run
from audit.cli import main as audited
from outbox.errors import BadInput
from scenarios.explore import oracle, strace
from scenarios.explore.model import Subject
from scenarios.explore.verdicts import DUPLICATE, KINDS, LOST, PHANTOM, STUCK
from scenarios.model import Program
from scenarios.oracle.variant import PAUSES, POINTS, SYSCALLS, WIRE, Variant
from scenarios.oracle.variants import VARIANTS
from tests.support import ROOT
from tests.test_imports import imported, is_within, read_sources

pytestmark = pytest.mark.campaign
BY_NAME = {each.name: each for each in VARIANTS}
FIELD_CASES = {f"F{number:02}" for number in range(1, 25)}
# One for each kind of violation, and one for each mode. Two cases of each system would not be enough to see it.
FAST = {
    "pid-lock": (POINTS, STUCK),
    "redirect-is-success": (WIRE, LOST),
    "redirect-followed": (WIRE, PHANTOM),
    "unguarded-claim": (PAUSES, DUPLICATE),
    **({} if strace.why_not() else {"short-write-ignored": (SYSCALLS, PHANTOM)}),
}


def played(out: Path, variants: Sequence[Variant], **options: Any) -> tuple[int, dict[str, Any]]:
    """What the oracle's exit code is and what it wrote, for these variants."""
    code = oracle.run(oracle.Asked(out, "fork", variants=variants, **{"jobs": 2, **options}), io.StringIO())
    return code, json.loads((out / oracle.MATRIX).read_text())


@pytest.mark.parametrize("name", FAST)
def test_a_mistake_is_caught_and_its_twin_is_clean(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mode, kind = FAST[name]
    code, told = played(tmp_path / "out", [BY_NAME[name]], modes=[mode])
    assert (code, told["wrong"], told["unknown"]) == (0, [], [])
    (variant,) = told["variants"]
    cell, twin = variant["modes"][mode], variant["twin_modes"][mode]
    assert cell["caught"] > 0
    assert cell["cases"] > 0
    assert kind in cell["kinds"]
    assert twin["cases"] > 0
    assert twin["caught"] == 0
    assert f"python run.py replay {quoted(cell['shortest'])} --out NEW_DIR" in capsys.readouterr().out


def test_its_campaigns_are_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which the audit holds, though a system with a mistake is none that it knows."""
    assert played(tmp_path / "out", [BY_NAME["pid-lock"]], modes=[POINTS])[0] == 0
    assert audited([str(tmp_path / "out" / POINTS / "pid-lock")], str(ROOT)) == 1
    said = capsys.readouterr().out
    assert "the evidence agrees with itself, and " in said
    assert "the audit does not know it" in said


def quoted(case: str) -> str:
    return f"'{case}'"


def test_the_printed_line_plays_the_case_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["replay", "oracle/pid-lock/pid.written#1", "--out", str(tmp_path / "again")]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("VIOLATED (stuck) oracle/pid-lock/pid.written#1: dispatcher died at pid.written#1 in round 1")
    assert (tmp_path / "again" / "case" / "outbox" / "dispatcher.pid").exists()


def test_a_mistake_is_shrunk_to_the_fault_that_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = "oracle/mark-first/intention.append.synced#1&send.before#1"
    assert run.main(["shrink", case, "--out", str(tmp_path / "smaller")]) == 1
    assert "again: python run.py replay 'oracle/mark-first/send.before#1' --out" in capsys.readouterr().out


def test_a_false_claim_is_a_hole_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twin = BY_NAME["redirect-followed"].twin
    planted = Variant(replace(twin, name="oracle/planted"), twin, (WIRE,), (LOST,), "nothing is wrong with it")
    code, told = played(tmp_path / "out", [planted], modes=[WIRE], budget=2)
    assert code == 1
    assert told["wrong"] == [
        "HOLE: oracle/planted is not caught by wire, which claims to see that nothing is wrong with it",
    ]
    assert "FAIL" in capsys.readouterr().out


def test_a_twin_that_does_not_hold_fails(tmp_path: Path) -> None:
    bad = BY_NAME["pid-lock"]
    planted = replace(bad, twin=replace(bad.subject, name="oracle/false-twin"))
    code, told = played(tmp_path / "out", [planted], modes=[POINTS])
    assert code == 1
    (wrong,) = told["wrong"]
    assert wrong.startswith("TWIN: oracle/false-twin is correct and points does not find it so, in ")
    assert "run.py replay 'oracle/false-twin/" in wrong


def test_another_kind_than_was_declared_fails(tmp_path: Path) -> None:
    code, told = played(tmp_path / "out", [replace(BY_NAME["redirect-followed"], kinds=(LOST,))], modes=[WIRE])
    assert code == 1
    assert told["wrong"] == ["KINDS: oracle/redirect-followed is declared lost and was seen as phantom"]


def test_what_cannot_be_derived_is_unknown_and_outweighs_a_hole(tmp_path: Path) -> None:
    twin = BY_NAME["pid-lock"].twin
    *others, sender = twin.roles
    deaf = replace(sender, program=Program("dispatcher", "scenarios.oracle.operators", ("clock", "--now", "{now}", "clock")))
    broken: Subject = replace(twin, name="oracle/never-sends", roles=(*others, deaf))
    planted = Variant(broken, twin, (POINTS,), (STUCK,), "nothing is ever sent")
    code, told = played(tmp_path / "out", [planted], modes=[POINTS], budget=1)
    assert code == 3
    assert [each.partition(":")[0] for each in told["wrong"]] == ["HOLE"]
    (unknown,) = told["unknown"]
    assert unknown.startswith("points: oracle/never-sends does not hold without any fault: ")


@pytest.mark.parametrize("option", [["--resume"], ["--depth", "2"], ["--store", "postgres"]])
def test_the_oracle_refuses_what_it_does_not_do(option: list[str], tmp_path: Path) -> None:
    assert run.main(["explore", "--oracle", *option, "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_a_glob_that_matches_no_variant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="matches no variant; there are: oracle/mark-first, "):
        oracle.Asked(tmp_path, "fork", patterns=["oracle/nothing"]).chosen()


def test_nothing_but_the_oracle_s_command_imports_it() -> None:
    sources = read_sources()
    importing = {
        module
        for module in sources
        if not is_within(module, ("scenarios.oracle",))
        and any(is_within(name, ("scenarios.oracle",)) for name in imported(sources, module))
    }
    assert importing == {"scenarios.explore.oracle"}


def test_the_variants_are_data_that_fits_together() -> None:
    assert len(VARIANTS) >= 20
    assert len({each.subject.name for each in VARIANTS}) == len(VARIANTS)
    wrong = {each.subject.name for each in VARIANTS}
    for each in VARIANTS:
        assert each.twin.name not in wrong
        assert each.modes
        assert set(each.modes) <= set(oracle.MODES)
        assert tuple(kind for kind in KINDS if kind in each.kinds) == each.kinds
        assert each.kinds
        assert each.shows
        assert each.field_case in {*FIELD_CASES, None}
        # A twin differs in what its programs are, not in what is expected of it.
        assert each.twin.allowed == each.subject.allowed
        assert each.twin.operations == each.subject.operations
        assert each.twin.round_seconds == each.subject.round_seconds


def test_every_kind_and_every_mode_is_claimed_by_some_variant() -> None:
    assert {kind for each in VARIANTS for kind in each.kinds} == set(KINDS)
    assert {mode for each in VARIANTS for mode in each.modes} == set(oracle.MODES)


def test_the_page_of_field_cases_names_every_variant_and_every_case() -> None:
    page = Path(run.__file__).parent / "docs" / "field-cases.md"
    text = page.read_text("utf-8")
    assert set(re.findall(r"^\| (F\d\d) ", text, re.MULTILINE)) == FIELD_CASES
    lines = {line[2:5]: line for line in text.splitlines() if line.startswith("| F")}
    for each in VARIANTS:
        where = lines[each.field_case] if each.field_case else text
        assert f"`{each.name}`" in where, f"{each.name} is not in the line of {each.field_case}"
