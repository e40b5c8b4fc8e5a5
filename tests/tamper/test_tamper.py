"""A share of the edits of `python -m tests.tamper`: all are refused, or, sealed again, pass for a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tamper.__main__ import percent, survivors, table
from tests.tamper.draft import TWICE, Draft
from tests.tamper.edits import Edit, edits_of
from tests.tamper.ground import Field
from tests.tamper.measure import measure, words
from tests.tamper.reasons import reason_for


@pytest.mark.campaign
def test_a_share_of_all_edits(small: Path) -> None:
    figures = measure(small, share=0.04, seed=23)
    made, refused = figures.held("a")
    assert made == refused > 200
    made, refused = figures.held("b")
    assert refused >= 0.99 * made
    assert figures.bad() == []
    assert "all but volatile" in table(figures)
    assert "NO REASON" not in survivors(figures)


def test_every_kind_of_edit_is_made_of_every_scenario_s_files(ground_of: Field) -> None:
    base = ground_of.ground("wire/retry_after_seconds").base
    edits = list(edits_of(base, first=True))
    hit = {edit.file for edit in edits}
    assert hit >= base.files.keys()
    places = {(edit.file.rpartition("/")[2], edit.place) for edit in edits}
    for file, place in (
        ("processes.json", "processes.*.exit_code"),
        ("effects.jsonl", "*.data.key"),
        ("arrivals.jsonl", "*.data.fingerprint"),
        ("intentions.jsonl", "*.data.body.content"),
        ("receipts.jsonl", "*.sequence"),
        ("results.json", "scenarios.*.counts.effects"),
        ("processes.json", "processes.*.started_seconds"),
        ("manifest.json", "protocol.scenarios.*.steps.*.exit_code"),
    ):
        assert (file, place) in places


def test_what_nobody_edits_seals_to_the_same_bytes(ground_of: Field) -> None:
    base = ground_of.ground("identity/mark_before_send").base
    for care in "abc":
        draft = Draft(base)
        for path in base.files:
            if path.endswith((".json", ".jsonl")):
                draft.open(path)
        assert draft.sealed(care) == {}


def test_a_member_can_stand_twice(ground_of: Field) -> None:
    draft = Draft(ground_of.ground("delivery/keyed_delivery").base)
    draft.open("results.json")["verdict" + TWICE] = "PASS"
    changed = draft.sealed("b")
    assert set(changed) == {"results.json", "manifest.json"}
    assert (changed["results.json"] or b"").count(b'\n "verdict": ') == 2


def test_a_gap_is_told() -> None:
    edit = Edit("journal leaf changed", "scenarios/a/b/receiver/effects.jsonl", "*.data.key", lambda draft: None, ("a/b",))
    assert reason_for(edit) is None
    assert words(edit) == "journal leaf changed: …/receiver/effects.jsonl *.data.key"
    assert percent(10_000, 9_999) == "99.99"
    assert percent(1_000_000, 999_999) == "99.99"


def test_a_query_stands_before_what_was_sent_after_it(small: Path) -> None:
    with Field(small) as field:
        ground = field.ground("unknown/unknown_not_applied")
        draft = Draft(ground.base)
        lines = draft.open("scenarios/unknown/unknown_not_applied/receiver/arrivals.jsonl")
        assert [line["type"] for line in lines[:2]] == ["query", "arrival"]
        lines[:2] = lines[1::-1]
        found = "\n".join(map(str, ground.audit(draft.sealed("c")).findings))
        assert "stands after the arrival of the attempt" in found
