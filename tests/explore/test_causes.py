"""What has no cause is found in the records of both sides, what has one is left alone, and who may give up is told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scenarios.explore.causes import (
    changed_bodies,
    changed_routes,
    history_of_nothing,
    moves_without_cause,
    overtaken,
    receipts_of_nothing,
    requests_of_nobody,
)
from scenarios.explore.model import Allowed, Case, Cut, Subject
from scenarios.explore.state import State
from scenarios.explore.subjects import SUBJECTS
from scenarios.explore.verdicts import DUPLICATE, HELD, LOST, PHANTOM, judge

ATTEMPT, OK = "dispatch.delivering.attempt", "dispatch.delivered.transport_ok"
ROW: dict[str, Any] = {
    "id": "d", "max_attempts": 2, "expires_at": 100.0, "ack_required": 0, "lane": None, "lane_position": None,
}  # fmt: skip


def move(previous: str | None, status: str, reason: str, at: float = 1.0, **more: str) -> dict[str, Any]:
    return {
        "entity_id": "d",
        "previous_status": previous,
        "status": status,
        "reason_code": reason,
        "reason_summary": "",
        "source": "system",
        "metadata": "{}",
        "created_at": at,
        **more,
    }


ATTEMPTED = move("pending", "delivering", ATTEMPT)
AGAIN = move("delivering", "delivering", ATTEMPT)
ENQUEUED = move(None, "pending", "dispatch.pending.enqueued")
FORCED = move("dead_letter", "pending", "dispatch.pending.retry_backoff", source="operator")


def numbered(number: int, of: int = 2) -> dict[str, Any]:
    """An attempt as the shipped books record it."""
    summary, metadata = f"attempt {number} of {of}", f'{{"attempt":{number},"claim_number":9}}'
    return move("pending", "delivering", ATTEMPT, reason_summary=summary, metadata=metadata)


@pytest.mark.parametrize(
    ("moves", "sentences"),
    [
        ([ATTEMPTED, move("delivering", "delivered", OK)], []),
        ([ATTEMPTED, AGAIN, AGAIN], ["d was attempted 3 times, at most 2 are allowed"]),
        ([ATTEMPTED, AGAIN, FORCED, ATTEMPTED, AGAIN], []),
        ([FORCED], []),
        # An act of an operator allows as many attempts behind it, and none more before.
        ([ATTEMPTED, AGAIN, AGAIN, FORCED], ["d was attempted 3 times, at most 2 are allowed"]),
        ([numbered(1), numbered(2), FORCED, numbered(1)], []),
        ([ENQUEUED, numbered(1), numbered(2), ENQUEUED, numbered(1)], []),
        ([numbered(1), FORCED, numbered(2)], ["attempt 1 of d is recorded as attempt 2"]),
        ([numbered(1), numbered(1)], ["attempt 2 of d is recorded as attempt 1"]),
        ([move("pending", "delivering", ATTEMPT, metadata="no JSON")], []),
        ([move("pending", "delivering", ATTEMPT, at=100.0)], ["attempt 1 of d began after its deadline"]),
        ([move("pending", "delivering", ATTEMPT, at=99.9)], []),
        ([move("dead_letter", "acked", "dispatch.acked.consumer")], ["d had ended as dead_letter and became acked"]),
        ([move("delivered", "delivered", OK)], ["d had ended as delivered and became delivered"]),
    ],
)
def test_moves_that_nothing_asked_for_are_told(moves: list[dict[str, Any]], sentences: list[str]) -> None:
    assert list(moves_without_cause([ROW], moves)) == sentences


@pytest.mark.parametrize(
    ("moves", "sentences"),
    [
        ([numbered(1, 1), move("delivering", "delivered", OK)], []),
        ([numbered(1, 1), numbered(2, 1)], ["d was attempted 2 times, at most 1 are allowed"]),
        ([numbered(1, 1), FORCED, numbered(1, 1)], []),
        ([numbered(1, 1), FORCED, numbered(2, 1)], ["attempt 1 of d is recorded as attempt 2"]),
        ([move("delivered", "delivering", OK)], ["d had ended as delivered and became delivering"]),
        # Whoever does not say how many there may be cannot be held to it without the row.
        ([ATTEMPTED, AGAIN, AGAIN], []),
    ],
)
def test_a_purge_hides_no_move_that_nothing_asked_for(moves: list[dict[str, Any]], sentences: list[str]) -> None:
    assert list(moves_without_cause([], moves)) == sentences


def test_who_waits_for_an_acknowledgement_is_not_delivered_without() -> None:
    moves = [ATTEMPTED, move("delivering", "pending", OK), AGAIN, move("delivering", "delivered", OK)]
    assert list(moves_without_cause([ROW], moves)) == []
    assert list(moves_without_cause([{**ROW, "ack_required": 1}], moves)) == [
        "d waits for an acknowledgement and became delivered without one"
    ]


def laned(identity: str, place: int, lane: str = "orders") -> dict[str, Any]:
    return {"id": identity, "lane": lane, "lane_position": place}


def test_only_an_effect_before_an_earlier_one_of_its_lane_has_overtaken_it() -> None:
    rows = [laned("b", 2), laned("a", 1), laned("c", 3), laned("x", 1, "other"), {**ROW, "id": "free"}]
    assert list(overtaken(rows, ["a", "b", "x", "free", "c"])) == []
    assert list(overtaken(rows, ["b", "a"])) == ["b overtook a in the lane orders"]
    # The earlier one may have ended without an effect; and a repeated effect is not one out of turn.
    assert list(overtaken(rows, ["b", "c"])) == []
    assert list(overtaken(rows, ["a", "b", "a"])) == []


RESULT, OTHER = {"content": "1", "encoding": "utf-8"}, {"content": "2", "encoding": "utf-8"}


def record(identity: str, **data: Any) -> dict[str, Any]:
    return {"id": identity, "data": data}


def test_a_receipt_tells_of_the_result_of_an_effect_of_its_operation_or_of_none() -> None:
    effects = [record("e", result=RESULT), record("f", result=OTHER)]
    receipts = [record("k", result=RESULT), record("m", result=None)]
    without = ["the receipt of k tells of a result that no effect of it gave"]
    assert list(receipts_of_nothing(receipts, effects, ["k", "m"])) == []
    assert list(receipts_of_nothing(receipts, effects, ["m", "k"])) == without
    assert list(receipts_of_nothing(receipts, [], [])) == without


def test_a_history_record_has_the_question_of_its_intention_and_the_answer_of_its_receipt() -> None:
    intentions = [record("k", body=RESULT), record("m", body=OTHER)]
    receipts = [record("k", result=OTHER), record("m", result=RESULT)]

    def told(history: dict[str, Any]) -> list[str]:
        return list(history_of_nothing([history], receipts, intentions))

    question = "the history record of k has another question than its intention"
    answer = "the history record of k has another answer than its receipt"
    assert told(record("k", question=RESULT, answer=OTHER)) == []
    assert told(record("k", question=OTHER, answer=OTHER)) == [question]
    assert told(record("k", question=RESULT, answer=RESULT)) == [answer]
    assert told(record("k", question=RESULT, answer={})) == [answer]
    assert told(record("k")) == [question, answer]
    assert told(record("nobody's", answer=OTHER)) == []


def test_an_effect_has_the_body_of_its_operation_where_that_is_known() -> None:
    effects = [record("e", fingerprint="f"), record("g", fingerprint="h"), record("i")]
    assert list(changed_bodies(effects, ["k", "m", "m"], {"k": "f", "m": "h"})) == ["effect i has another body than m"]
    assert list(changed_bodies(effects, ["m", "k", "purged"], {"k": "f", "m": "h"})) == [
        "effect e has another body than m",
        "effect g has another body than k",
    ]


@pytest.mark.parametrize("told", [{"key": "k"}, {"key": "made up", "fingerprint": "f"}, {"key": None, "fingerprint": "f"}])
def test_a_request_comes_to_the_route_of_its_operation(told: dict[str, Any]) -> None:
    routes, by_body = {"k": "/operations"}, {"f": "k"}
    assert list(changed_routes([record("a", route="/operations", **told)], routes, by_body)) == []
    assert list(changed_routes([record("a", route="/operations?again", **told)], routes, by_body)) == [
        "a of k came to another route than /operations"
    ]
    assert list(changed_routes([record("a", route="/elsewhere", **told)], {}, by_body)) == []


def test_a_request_without_a_key_belongs_to_nobody() -> None:
    arrivals = [record("arrival-1", key="k"), record("arrival-2", key=None)]
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


def test_what_is_without_a_cause_is_a_phantom_and_what_is_recorded_twice_a_duplicate() -> None:
    assert kinds(replace(GOOD, uncaused=("it came out of nothing",))) == (PHANTOM,)
    assert kinds(replace(GOOD, repeated=("first has 2 history records",))) == (DUPLICATE,)


@pytest.mark.parametrize("status", ["dead_letter", "expired"])
def test_an_operation_may_be_given_up_only_where_that_is_allowed_and_only_without_a_receipt(status: str) -> None:
    given_up = replace(GOOD, effects={}, receipts={}, ended={"d": status})
    allowing = replace(SUBJECT, allowed=Allowed(may_end=(status,)))
    assert kinds(given_up) == (LOST,)
    assert kinds(given_up, allowing) == ()
    assert kinds(replace(given_up, receipts={"d": 1}), allowing) == (LOST,)
    assert kinds(given_up, replace(SUBJECT, allowed=Allowed(may_end=("acked",)))) == (LOST,)
