"""What has no cause is found in the records of both sides, what has one is left alone, and who may give up is told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scenarios.explore.causes import moves_without_cause, overtaken, receipts_of_nothing, requests_of_nobody
from scenarios.explore.model import Allowed, Case, Cut, Subject
from scenarios.explore.state import State
from scenarios.explore.subjects import SUBJECTS
from scenarios.explore.verdicts import HELD, LOST, PHANTOM, judge

ATTEMPT, OK = "dispatch.delivering.attempt", "dispatch.delivered.transport_ok"
ROW: dict[str, Any] = {"id": "d", "max_attempts": 2, "expires_at": 100.0, "lane": None, "lane_position": None}


def move(previous: str | None, status: str, reason: str, at: float = 1.0, source: str = "system") -> dict[str, Any]:
    return {
        "entity_id": "d",
        "previous_status": previous,
        "status": status,
        "reason_code": reason,
        "created_at": at,
        "source": source,
    }


ATTEMPTED = move("pending", "delivering", ATTEMPT)
AGAIN = move("delivering", "delivering", ATTEMPT)
FORCED = move("dead_letter", "pending", "dispatch.pending.retry_backoff", source="operator")


@pytest.mark.parametrize(
    ("moves", "sentences"),
    [
        ([ATTEMPTED, move("delivering", "delivered", OK)], []),
        ([ATTEMPTED, AGAIN, AGAIN], ["d was attempted 3 times, at most 2 are allowed"]),
        ([ATTEMPTED, AGAIN, FORCED, ATTEMPTED, AGAIN], []),
        ([FORCED], []),
        ([move("pending", "delivering", ATTEMPT, at=100.0)], ["attempt 1 of d began after its deadline"]),
        ([move("pending", "delivering", ATTEMPT, at=99.9)], []),
        ([move("dead_letter", "acked", "dispatch.acked.consumer")], ["d had ended as dead_letter and became acked"]),
        ([move("delivered", "delivered", OK)], ["d had ended as delivered and became delivered"]),
    ],
)
def test_moves_that_nothing_asked_for_are_told(moves: list[dict[str, Any]], sentences: list[str]) -> None:
    assert list(moves_without_cause([ROW], moves)) == sentences


def laned(identity: str, place: int, lane: str = "orders") -> dict[str, Any]:
    return {"id": identity, "lane": lane, "lane_position": place}


def test_only_an_effect_before_an_earlier_one_of_its_lane_has_overtaken_it() -> None:
    rows = [laned("b", 2), laned("a", 1), laned("c", 3), laned("x", 1, "other"), {**ROW, "id": "free"}]
    assert list(overtaken(rows, ["a", "b", "x", "free", "c"])) == []
    assert list(overtaken(rows, ["b", "a"])) == ["b overtook a in the lane orders"]
    # The earlier one may have ended without an effect; and a repeated effect is not one out of turn.
    assert list(overtaken(rows, ["b", "c"])) == []
    assert list(overtaken(rows, ["a", "b", "a"])) == []


def test_a_receipt_tells_of_the_result_of_an_effect_or_of_none() -> None:
    result = {"content": "1", "encoding": "utf-8"}
    effects = [{"id": "e", "data": {"result": result}}]
    receipts = [{"id": "k", "data": {"result": result}}, {"id": "m", "data": {"result": None}}]
    assert list(receipts_of_nothing(receipts, effects)) == []
    assert list(receipts_of_nothing(receipts, [])) == ["the receipt of k tells of a result that no effect gave"]


def test_a_request_without_a_key_belongs_to_nobody() -> None:
    arrivals = [{"id": "arrival-1", "data": {"key": "k"}}, {"id": "arrival-2", "data": {"key": None}}]
    assert list(requests_of_nobody(arrivals)) == ["arrival-2 came without a key, so it belongs to no operation"]


SUBJECT = replace(next(each for each in SUBJECTS if each.name == "dispatch/keyed"), operations=("d",))
GOOD = State(
    digest="",
    effects={"d": 1},
    receipts={"d": 1},
    history={"d": 3},
    arrivals=1,
    attempts=1,
    unfinished=(),
    ended={},
    uncaused=(),
    torn=(),
    damaged=(),
    told="",
)


def kinds(state: State, subject: Subject = SUBJECT, *faults: Cut) -> tuple[str, ...]:
    return judge(Case(subject, (faults,) if faults else ()), state, finished=True).kinds


def test_a_state_in_which_all_has_its_cause_holds() -> None:
    assert judge(Case(SUBJECT), GOOD, finished=True).outcome == HELD


def test_a_request_that_nobody_recorded_is_a_phantom_unless_the_network_doubled_it() -> None:
    assert kinds(replace(GOOD, arrivals=2)) == (PHANTOM,)
    assert kinds(replace(GOOD, arrivals=2), SUBJECT, Cut("duplicate-request")) == ()
    assert kinds(replace(GOOD, arrivals=3), SUBJECT, Cut("duplicate-request")) == (PHANTOM,)
    assert kinds(replace(GOOD, arrivals=0)) == ()


def test_what_is_without_a_cause_is_a_phantom() -> None:
    assert kinds(replace(GOOD, uncaused=("it came out of nothing",))) == (PHANTOM,)


@pytest.mark.parametrize("status", ["dead_letter", "expired"])
def test_an_operation_may_be_given_up_only_where_that_is_allowed_and_only_without_a_receipt(status: str) -> None:
    given_up = replace(GOOD, effects={}, receipts={}, ended={"d": status})
    allowing = replace(SUBJECT, allowed=Allowed(may_end=(status,)))
    assert kinds(given_up) == (LOST,)
    assert kinds(given_up, allowing) == ()
    assert kinds(replace(given_up, receipts={"d": 1}), allowing) == (LOST,)
    assert kinds(given_up, replace(SUBJECT, allowed=Allowed(may_end=("acked",)))) == (LOST,)
