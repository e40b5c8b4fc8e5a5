"""Lines of mode power whose files were not kept: what a disk held, and what is gone of it, follows from the recorded calls."""

from __future__ import annotations

from typing import Any

import pytest

from audit.campaign_plan import Case, Fault, Subject
from audit.campaign_power import Recorded, hold_line, view_of
from audit.campaign_state import of_bytes
from audit.campaign_words import POWER_CUT
from scenarios.explore.archive import subject_data
from tests.explore.ground import KEYED

PATH = "receiver/effects.jsonl"
NOBODY = {"process": "receiver", "to": "", "number": 0, "data": ""}
DATA = subject_data(KEYED)
SUBJECT = Subject(DATA, DATA["roles"])
LOST = "lost: first had 1 effect when receiver told so (call 3, network), and 0 when the power was back"


def told() -> tuple[Recorded, dict[str, Any]]:
    """A receiver that tells of an effect that is on no disk, and the line of the disk that has nothing."""
    events = [
        {**NOBODY, "kind": "directory", "path": "receiver"},
        {**NOBODY, "kind": "create", "path": PATH},
        {**NOBODY, "kind": "tell", "path": "network"},
    ]
    empty = of_bytes({}, SUBJECT)
    views = [view_of(empty) for _ in range(2)] + [{**view_of(empty), "effects": {"first": 1}} for _ in range(2)]
    line = {"image": {"left": empty.told, "digest": empty.digest}, "violations": [LOST], "doubts": []}
    return Recorded(SUBJECT, events, views), line


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ({}, None),
        ({"violations": []}, f"do not have '{LOST}', which follows"),
        ({"image": {"left": "nothing", "digest": of_bytes({}, SUBJECT).digest}}, "is 'nothing', but the recorded calls leave"),
        ({"image": {"left": of_bytes({}, SUBJECT).told, "digest": "0" * 64}}, "but the recorded calls leave"),
    ],
)
def test_what_a_line_says_of_its_disk_is_held_without_its_files(edit: dict[str, Any], why: str | None) -> None:
    recorded, line = told()
    notes: list[str] = []
    case = Case(SUBJECT, [[Fault(POWER_CUT, "", "3", 1)]])
    hold_line({**line, **edit}, case, recorded, lambda place, sentence: notes.append(f"{place} {sentence}"))
    assert [why is not None and why in note for note in notes] == ([True] if why else [])
