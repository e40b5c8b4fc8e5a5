"""Legal edits: values and spellings that stand elsewhere in real archives, and what the audit says to each kind of them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.audit.real import Whole
from tests.tamper.draft import ESCAPED, Draft
from tests.tamper.edits import Edit
from tests.tamper.ground import Field
from tests.tamper.legal import Pool, legal_edits
from tests.tamper.measure import changed, measure

SCENARIO = "wire/retry_after_seconds"
HELD_WHOLLY = ("legal: members in another order", "legal: a printed line in another form")


@pytest.fixture
def edits(ground_of: Field) -> list[Edit]:
    """The legal edits of one scenario, one of each kind for each place."""
    base = ground_of.ground(SCENARIO).base
    found = legal_edits(base, Pool(ground_of.whole), random.Random(23), first=True)
    return list({(edit.kind, edit.file, edit.place): edit for edit in found}.values())


@pytest.mark.campaign
def test_a_share_of_the_legal_edits(small: Path) -> None:
    figures = measure(small, share=0.0, seed=23, legal=0.015)
    made, refused = figures.held("a")
    assert made == refused > 80
    made, refused = figures.held("b")
    assert refused >= 0.99 * made
    assert figures.bad() == []


def test_no_member_and_no_printed_line_stands_in_another_order(edits: list[Edit], ground_of: Field) -> None:
    passed, tried = [], set()
    ground = ground_of.ground(SCENARIO)
    for edit in edits:
        changes = changed(edit, ground, "c") if edit.kind in HELD_WHOLLY else {}
        if changes:
            tried.add((edit.file.rpartition("/")[2], edit.place))
            report = ground.audit(changes)
            if report.verdict == "PASS":
                passed.append(str(edit))
    assert passed == []
    for place in (
        ("processes.json", "."),
        ("processes.json", "processes.*"),
        ("processes.json", "processes.*.expected_exit"),
        ("processes.json", "processes.*.resources"),
        ("processes.json", "processes.*.substitutions"),
        ("processes.json", "processes.*.stdout"),
        ("results.json", "."),
        ("results.json", "scenarios.*"),
        ("results.json", "scenarios.*.counts"),
        ("results.json", "totals"),
        ("manifest.json", "."),
        ("manifest.json", "protocol.scenarios.*.steps.*"),
        ("manifest.json", "selection"),
        ("exchanges.jsonl", "*.data"),
        ("exchanges.jsonl", "*"),
    ):
        assert place in tried


def test_every_kind_of_a_legal_edit_is_made(edits: list[Edit]) -> None:
    assert {edit.kind for edit in edits} == {
        "legal: a value of the same place", "legal: null, as elsewhere", "legal: an equal value of another type",
        "legal: white space around a text", "legal: another spelling of a text", *HELD_WHOLLY,
    }  # fmt: skip


def test_the_values_of_a_place_are_those_that_the_archive_has_there(small: Path) -> None:
    pool = Pool(Whole(small))
    line = {"type": "outcome", "id": "x", "data": {"reason": "unavailable"}}
    path = f"scenarios/{SCENARIO}/outbox/attempts.jsonl"
    assert pool.others(path, {**line, "data": {"reason": "none of them"}}, ("data", "reason")) == [
        *pool.others(path, line, ("data", "reason")), "unavailable",
    ]  # fmt: skip


def test_another_spelling_is_the_same_value(ground_of: Field) -> None:
    draft = Draft(ground_of.ground(SCENARIO).base)
    path = f"scenarios/{SCENARIO}/outbox/intentions.jsonl"
    before = draft.base.files[path]
    record = draft.open(path)[0]
    record["data"]["route"] = ESCAPED + record["data"]["route"]
    after = draft.sealed("b")[path] or b""
    assert b'"route":"\\u002F' in after
    assert json.loads(after)["data"] == json.loads(before.splitlines()[0])["data"]
