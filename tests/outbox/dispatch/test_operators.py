"""Operators look, retry and purge, by the library: guarded, along the graph, and with a trace (ADR-0059, D6)."""

import asyncio
from typing import Any

import pytest

from outbox import faults
from outbox.dispatch import (
    BadValue,
    IllegalEdge,
    NoSuchDispatch,
    StateDB,
    ack_dispatch,
    deliver_due_dispatches,
    enqueue_dispatch,
    get_dispatch,
    list_admin_events,
    list_dispatches,
    list_transitions,
    purge_dispatch,
    retry_dispatch,
)
from outbox.faults import Fault
from tests.outbox.dispatch.peek import everything, moves, one, poke
from tests.outbox.dispatch.waiting import NOTHING, NOW, Held, meanwhile, soon

INFINITE, NAN = float("inf"), float("nan")
STATUSES = ("pending", "delivering", "delivered", "acked", "dead_letter", "expired")
# What does not depend on the database is shown on one.
ONLY_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
FORMS = {
    "id",
    "kind",
    "deliver_to",
    "payload",
    "dedup_key",
    "status",
    "attempt",
    "max_attempts",
    "next_attempt_at",
    "ack_required",
    "ack_token",
    "session_id",
    "schedule_run_id",
    "last_error",
    "created_at",
    "expires_at",
    "updated_at",
}


async def enqueue(db: StateDB, status: str = "pending", **more: Any) -> str:
    """A row of that status, by hand."""
    dispatch = await enqueue_dispatch(db, **{"kind": "k", "deliver_to": "seat-1", "now": NOW, **more})
    if status != "pending":
        await poke(
            db,
            "UPDATE dispatch_outbox SET status = :status, attempt = 3, claim_number = 5, last_error = 'broken', "
            "last_error_attempt = 3, next_attempt_at = :due WHERE id = :id",
            status=status,
            due=NOW + 15,
            id=dispatch,
        )
    return dispatch


# Look.


@ONLY_SQLITE
@pytest.mark.parametrize("status", ["", "Pending", "done", "pending ", "acked'; --", "delivered\0", 7])
async def test_a_listing_of_an_unknown_status_is_refused_by_name(db: StateDB, status: Any) -> None:
    with pytest.raises(BadValue, match="is no status; a dispatch is one of: pending, delivering, delivered"):
        await list_dispatches(db, status=status)


@ONLY_SQLITE
@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "7", None, 2**31, 2**63, 10**400])
async def test_a_listing_of_no_possible_length_is_refused(db: StateDB, limit: Any) -> None:
    with pytest.raises(BadValue, match=r"limit is .*; expected a whole number from 1 to 2147483647"):
        await list_dispatches(db, limit=limit)


@pytest.mark.parametrize("identity", ["", "gone", "%", "' OR 1=1 --", "x" * 10_000, "a\0b", "\udcff"])
async def test_what_does_not_exist_is_none_without_history(db: StateDB, identity: str) -> None:
    await enqueue(db)
    assert await get_dispatch(db, identity) is None
    assert await list_transitions(db, identity) == []


async def test_an_empty_outbox_lists_nothing(db: StateDB) -> None:
    assert await list_dispatches(db) == []
    assert await list_admin_events(db) == []
    assert await list_admin_events(db, limit=5, newest_first=True) == []


@pytest.mark.parametrize("identity", [None, 7, b"x", 1.5, ["x"]])
async def test_an_id_that_is_no_text_is_refused(db: StateDB, identity: Any) -> None:
    for act in (get_dispatch, list_transitions, retry_dispatch, purge_dispatch):
        with pytest.raises(BadValue, match=f"^dispatch_id is {type(identity).__name__}; expected text"):
            await act(db, identity)
    with pytest.raises(BadValue, match=f"^dispatch_id is {type(identity).__name__}; expected text"):
        await ack_dispatch(db, identity, "x")


ODD = (
    *(
        ("now", value, "^now is .*; expected seconds since the epoch")
        for value in (INFINITE, -INFINITE, NAN, True, "x", 10**400)
    ),
    ("actor", "", "^actor is empty"),
    ("actor", "a\0b", "^actor .* holds a NUL character"),
    ("actor", "\udcff", "^actor .* is not text"),
    ("actor", "x" * 3000, "^actor is 3000 characters long; expected at most 200"),
    ("actor", 7, "^actor is int; expected text"),
    ("actor", None, "^actor is NoneType; expected text"),
)


@pytest.mark.parametrize(("name", "value", "told"), ODD, ids=[f"{name}-{told}" for name, _value, told in ODD])
async def test_a_time_or_a_name_that_cannot_be_kept_is_refused_and_nothing_happens(
    db: StateDB, name: str, value: Any, told: str
) -> None:
    dead, waiting = await enqueue(db, "dead_letter"), await enqueue(db, ack_required=True, ack_token="f" * 32)
    before = await everything(db)
    given: dict[str, Any] = {name: value}
    for act in (retry_dispatch, purge_dispatch):
        with pytest.raises(BadValue, match=told):
            await act(db, dead, **given)
    if name == "now":
        with pytest.raises(BadValue, match=told):
            await ack_dispatch(db, waiting, "f" * 32, now=value)
    assert await everything(db) == before


async def test_the_longest_name_of_an_actor_is_kept(db: StateDB) -> None:
    dispatch = await enqueue(db, "dead_letter")
    assert await retry_dispatch(db, dispatch, actor="é" * 200)
    assert (await list_transitions(db, dispatch))[-1]["actor"] == "é" * 200


@ONLY_SQLITE
@pytest.mark.parametrize(
    "payload",
    ["", "no JSON", "[" * 980 + "]" * 980, "[" * 100_000, '{"n": 1' + "0" * 5000 + "}"],
    ids=["empty", "text", "deep", "deeper", "long number"],
)
async def test_a_payload_that_cannot_be_decoded_is_listed_as_its_text(db: StateDB, payload: str) -> None:
    broken, whole = await enqueue(db, now=NOW + 1), await enqueue(db)
    await poke(db, "UPDATE dispatch_outbox SET payload = :payload WHERE id = :id", payload=payload, id=broken)
    listed = await list_dispatches(db)
    assert [(row["id"], row["payload"] == payload) for row in listed] == [(broken, True), (whole, False)]
    row = await get_dispatch(db, broken)
    assert row is not None
    assert row["payload"] == payload


async def test_events_are_listed_from_either_end(db: StateDB) -> None:
    made = [await enqueue(db) for _each in range(3)]
    for each in made:
        await purge_dispatch(db, each)
    assert [event["entity_id"] for event in await list_admin_events(db)] == made
    assert [event["entity_id"] for event in await list_admin_events(db, limit=2)] == made[:2]
    assert [event["entity_id"] for event in await list_admin_events(db, newest_first=True)] == made[::-1]
    assert [event["entity_id"] for event in await list_admin_events(db, limit=2, newest_first=True)] == made[:0:-1]
    for odd in (0, -1, True, 1.5, "7", 2**63):
        with pytest.raises(BadValue, match="limit is"):
            await list_admin_events(db, limit=odd)  # type: ignore[arg-type]


async def test_a_row_is_shown_with_the_columns_of_the_record_and_its_payload_decoded(db: StateDB) -> None:
    dispatch = await enqueue(db, body={"grün": [1, None, "€"]}, dedup_key="d", expires_at=NOW + 9)
    row = await get_dispatch(db, dispatch)
    assert row is not None
    assert set(row) >= FORMS
    assert row["payload"]["body"] == {"grün": [1, None, "€"]}
    assert (row["status"], row["attempt"], row["max_attempts"], row["dedup_key"]) == ("pending", 0, 8, "d")
    assert (row["next_attempt_at"], row["created_at"], row["expires_at"], row["ack_required"]) == (NOW, NOW, NOW + 9, 0)


async def test_a_listing_begins_with_the_newest_and_ends_at_its_limit(db: StateDB) -> None:
    made = [await enqueue(db, now=NOW + number) for number in range(55)]
    newest_first = made[::-1]
    assert [row["id"] for row in await list_dispatches(db)] == newest_first[:50]
    assert [row["id"] for row in await list_dispatches(db, limit=3)] == newest_first[:3]
    assert [row["id"] for row in await list_dispatches(db, limit=1000)] == newest_first


async def test_a_listing_of_one_status_has_no_other(db: StateDB) -> None:
    made = {status: [await enqueue(db, status, now=NOW + number) for number in range(2)] for status in STATUSES}
    for status, ids in made.items():
        rows = await list_dispatches(db, status=status)
        assert [row["id"] for row in rows] == ids[::-1]
        assert {row["status"] for row in rows} == {status}
        assert rows[0]["payload"]["dispatch_id"] == ids[1]
    assert len(await list_dispatches(db, status="pending", limit=1)) == 1


# Retry.


@pytest.mark.parametrize("identity", ["gone", "a\0b", "\udcff"])
async def test_what_does_not_exist_is_not_retried(db: StateDB, identity: str) -> None:
    with pytest.raises(NoSuchDispatch, match=r"there is no dispatch .*; `ls` lists them"):
        await retry_dispatch(db, identity)


@pytest.mark.parametrize("status", ["pending", "delivering", "delivered", "acked"])
async def test_only_a_dead_letter_or_an_expired_row_is_retried(db: StateDB, status: str) -> None:
    dispatch = await enqueue(db, status)
    before = await everything(db)
    with pytest.raises(IllegalEdge, match=f"cannot go from {status} to pending"):
        await retry_dispatch(db, dispatch)
    assert await everything(db) == before


@pytest.mark.parametrize("status", ["dead_letter", "expired"])
async def test_a_forced_retry_begins_again_at_once(db: StateDB, status: str) -> None:
    dispatch = await enqueue(db, status, dedup_key="d")
    assert await retry_dispatch(db, dispatch, now=NOW + 100) is True
    row = await get_dispatch(db, dispatch)
    assert row is not None
    assert (row["status"], row["attempt"], row["next_attempt_at"]) == ("pending", 0, NOW + 100)
    assert (row["last_error"], row["last_error_is_current"], row["updated_at"]) == (None, False, NOW + 100)
    assert row["last_error_attempt"] is None
    assert (row["claim_number"], row["dedup_key"], row["created_at"]) == (5, "d", NOW)
    last = (await list_transitions(db, dispatch))[-1]
    assert (last["previous_status"], last["status"], last["reason_code"]) == (
        status,
        "pending",
        "dispatch.pending.retry_backoff",
    )
    assert (last["source"], last["actor"], last["metadata"]) == ("operator", "operator", {})
    counts = await deliver_due_dispatches(db, now=lambda: NOW + 100, notify_template=["true"])
    assert counts == {**NOTHING, "attempted": 1, "delivered": 1}
    assert (await one(db, dispatch))["attempt"] == 1


async def test_a_forced_retry_names_who_asked_for_it(db: StateDB) -> None:
    dispatch = await enqueue(db, "dead_letter")
    await retry_dispatch(db, dispatch, actor="grace")
    last = (await list_transitions(db, dispatch))[-1]
    assert (last["source"], last["actor"]) == ("operator", "grace")


async def test_a_forced_retry_takes_away_an_expiry_that_has_passed_and_says_so(db: StateDB) -> None:
    dispatch = await enqueue(db, expires_at=NOW + 10)
    await deliver_due_dispatches(db, now=lambda: NOW + 10, notify_template=["true"])
    assert await retry_dispatch(db, dispatch, now=NOW + 10)
    assert (await one(db, dispatch))["expires_at"] is None
    assert (await list_transitions(db, dispatch))[-1]["metadata"] == {"expires_at_removed": NOW + 10}
    counts = await deliver_due_dispatches(db, now=lambda: NOW + 10, notify_template=["true"])
    assert counts["delivered"] == 1


async def test_a_forced_retry_leaves_an_expiry_that_is_still_to_come(db: StateDB) -> None:
    dispatch = await enqueue(db, "dead_letter", expires_at=NOW + 10)
    assert await retry_dispatch(db, dispatch, now=NOW + 9)
    assert (await one(db, dispatch))["expires_at"] == NOW + 10
    assert (await list_transitions(db, dispatch))[-1]["metadata"] == {}


async def test_of_two_forced_retries_at_once_one_is_recorded(db: StateDB, url: str) -> None:
    dispatch = await enqueue(db, "dead_letter")
    answers = []

    async def retry(other: StateDB) -> None:
        answers.append(await retry_dispatch(other, dispatch, now=NOW + 1))

    faults.arm(Fault("dispatch.retry.before"), meanwhile(url, retry))
    answers.append(await retry_dispatch(db, dispatch, now=NOW + 2))
    assert answers == [True, False]
    assert (await one(db, dispatch))["next_attempt_at"] == NOW + 1
    assert len(await moves(db, dispatch)) == 2


async def test_a_row_that_died_once_more_meanwhile_is_not_retried_by_the_older_look(db: StateDB, url: str) -> None:
    dispatch = await enqueue(db, "dead_letter", max_attempts=3)

    async def retry_and_die(other: StateDB) -> None:
        await retry_dispatch(other, dispatch, now=NOW)
        for at in (NOW, NOW + 60, NOW + 180):
            await deliver_due_dispatches(other, now=lambda at=at: at, notify_template=["false"])  # type: ignore[misc]

    faults.arm(Fault("dispatch.retry.before"), meanwhile(url, retry_and_die))
    # Status and attempt are those that were read; only the number of the claim tells that they are not the same.
    assert await retry_dispatch(db, dispatch) is False
    row = await one(db, dispatch)
    assert (row["status"], row["attempt"], row["claim_number"]) == ("dead_letter", 3, 8)


# Purge of one.


@pytest.mark.parametrize("identity", ["gone", "", "%", "a\0b", "\udcff"])
async def test_a_purge_of_what_does_not_exist_is_false_and_leaves_no_event(db: StateDB, identity: str) -> None:
    await enqueue(db)
    before = await everything(db)
    assert await purge_dispatch(db, identity) is False
    assert await everything(db) == before


@pytest.mark.parametrize("status", STATUSES)
async def test_a_purge_takes_any_status_keeps_the_history_and_leaves_an_event(db: StateDB, status: str) -> None:
    dispatch = await enqueue(db, status, dedup_key="d")
    other = await enqueue(db)
    history = await moves(db, dispatch)
    assert await purge_dispatch(db, dispatch, actor="grace", now=NOW + 7) is True
    assert [row["id"] for row in await list_dispatches(db)] == [other]
    assert await moves(db, dispatch) == history
    (event,) = await list_admin_events(db)
    assert (event["action"], event["entity_type"], event["entity_id"]) == ("dispatch.purge", "dispatch", dispatch)
    assert (event["actor"], event["created_at"]) == ("grace", NOW + 7)
    assert event["details"] == {
        "kind": "k",
        "deliver_to": "seat-1",
        "dedup_key": "d",
        "status": status,
        "attempt": 0 if status == "pending" else 3,
        "max_attempts": 8,
        "created_at": NOW,
        "history": "kept",
    }
    assert await purge_dispatch(db, dispatch) is False
    assert len(await list_admin_events(db)) == 1


async def test_a_purge_may_remove_the_history_of_its_row_and_of_no_other(db: StateDB) -> None:
    dispatch, other = await enqueue(db), await enqueue(db)
    assert await purge_dispatch(db, dispatch, remove_history=True)
    assert await moves(db, dispatch) == []
    assert len(await moves(db, other)) == 1
    (event,) = await list_admin_events(db)
    assert (event["actor"], event["details"]["history"]) == ("operator", "removed")


async def test_the_key_of_a_purged_row_is_free_again(db: StateDB) -> None:
    first = await enqueue(db, dedup_key="d")
    assert await enqueue(db, dedup_key="d") == first
    await purge_dispatch(db, first)
    assert await enqueue(db, dedup_key="d") != first


async def test_a_purge_that_does_not_commit_deletes_nothing_and_reports_nothing(db: StateDB) -> None:
    dispatch = await enqueue(db, "dead_letter")
    before = await everything(db)

    class Torn(Exception):
        pass

    def tear(_fault: Fault) -> None:
        raise Torn

    faults.arm(Fault("dispatch.purge.written"), tear)
    with pytest.raises(Torn):
        await purge_dispatch(db, dispatch, remove_history=True)
    assert await everything(db) == before


async def test_an_operator_does_not_move_a_row_that_is_being_sent(db: StateDB) -> None:
    async with Held() as held:
        dispatch = await enqueue(db, deliver_to=held.url)
        scanning = asyncio.create_task(deliver_due_dispatches(db, now=lambda: NOW))
        await soon(held.arrived)
        with pytest.raises(IllegalEdge, match="cannot go from delivering to pending"):
            await retry_dispatch(db, dispatch)
        held.go.set()
        assert await scanning == {**NOTHING, "attempted": 1, "delivered": 1}
