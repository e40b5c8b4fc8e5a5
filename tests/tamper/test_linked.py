"""Forgeries of all that hangs on one answer are refused, and a hole that lets one pass is seen at a small share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import audit.messages
import audit.wire
from audit.journals import Record
from audit.kinds import Decision
from audit.ledger import REASONS
from audit.service import Service
from audit.turns import Turns
from tests.tamper.conftest import study
from tests.tamper.draft import Draft
from tests.tamper.ground import Field
from tests.tamper.measure import measure
from tests.tamper.pairs import ALWAYS, PAIRS

SCENARIOS = (
    "delivery/keyed_delivery",
    "ledger/concurrent",
    "ledger/in_flight_rejected",
    "ledger/registry_full",
    "ledger/check_then_act",
)
SMALL_SHARE = 0.003


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of clients that wait for each other, and of refusals."""
    return study(tmp_path_factory, *SCENARIOS)


@pytest.mark.campaign
def test_all_of_them_are_refused(crowd: Path) -> None:
    figures = measure(crowd, share=SMALL_SHARE, seed=23)
    assert figures.bad() == []
    for name in ALWAYS:
        assert figures.made[f"two fields: {name}", "c"] >= 10


def _no_turns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Turns, "before", lambda self, name: None)


def _no_texts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(audit.messages, "_refusal", lambda store, answer, note: None)


def _failed_as_it_says(patch: pytest.MonkeyPatch) -> None:
    held = Service.held

    def believing(self: Service, answer: Record, decision: Decision) -> None:
        if answer.data["outcome"] != "failed":
            held(self, answer, decision)

    patch.setattr(Service, "held", believing)


def _bodies_cut_by_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(audit.wire, "_unread", lambda request, arrival: arrival.data["fingerprint"] is None)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("hole", "kind"),
    [
        (_bodies_cut_by_nobody, "two fields: the effect of a later arrival"),
        (_no_turns, "two fields: the turns of two clients"),
        (_no_texts, "two fields: the text of a refusal"),
        (_failed_as_it_says, "two fields: refusal and outcome"),
    ],
)
def test_a_hole_is_seen_at_a_small_share(
    hole: Callable[[pytest.MonkeyPatch], None], kind: str, crowd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hole(monkeypatch)
    assert any(kind in line for line in measure(crowd, share=SMALL_SHARE, seed=23).bad())


def test_every_answer_is_made_every_refusal(crowd: Path) -> None:
    with Field(crowd) as field:
        draft = Draft(field.ground("ledger/registry_full").base)
        tried = [
            place
            for name in ("answer and outcome", "refusal and outcome")
            for make in PAIRS[name]
            for _, place, _ in make(draft)
        ]
    assert len(tried) == 3 * sum(len(statuses) for _, statuses in REASONS.values()) - 1
    assert {"storage_full 507", "storage_failed 503", "key_in_flight 409", "body_differs 422"} <= set(tried)
