"""The revival heartbeat: one ping for each seat and reset, however often it is asked for (ADR-0059, D6)."""

from typing import Any

import pytest

from outbox.dispatch import BadValue, StateDB, deliver_due_dispatches, enqueue_revival_heartbeat, get_dispatch
from tests.outbox.dispatch.peek import moves, one, peek

NOW = 1_800_000_000.0
EPOCH = NOW - 100
# What does not depend on the database is shown on one.
ONLY_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


async def keys(db: StateDB) -> list[str]:
    rows = await peek(db, "SELECT dedup_key FROM dispatch_outbox ORDER BY dedup_key")
    return [row["dedup_key"] for row in rows]


@ONLY_SQLITE
@pytest.mark.parametrize("seats", ["seat-1", ""])
async def test_a_text_instead_of_a_list_is_refused_before_its_letters_are_pinged(db: StateDB, seats: str) -> None:
    with pytest.raises(BadValue, match=r"seats is the text .*; expected a list of seats"):
        await enqueue_revival_heartbeat(db, seats, reset_epoch=EPOCH, now=NOW)
    assert await keys(db) == []


@ONLY_SQLITE
@pytest.mark.parametrize("seats", [5, None, b"seat-1", 1.5])
async def test_what_is_no_list_of_seats_is_refused(db: StateDB, seats: Any) -> None:
    with pytest.raises(BadValue, match=r"seats is .*; expected a list of seats"):
        await enqueue_revival_heartbeat(db, seats, reset_epoch=EPOCH, now=NOW)


@pytest.mark.parametrize("seat", ["", "a\0b", None, 7, pytest.param(10**5000, id="long")])
async def test_a_seat_that_is_no_route_is_refused_and_the_pings_before_it_stay(db: StateDB, seat: Any) -> None:
    with pytest.raises(BadValue):
        await enqueue_revival_heartbeat(db, ["seat-1", seat, "seat-2"], reset_epoch=EPOCH, now=NOW)
    assert await keys(db) == [f"revival:seat-1:{EPOCH}"]
    again = await enqueue_revival_heartbeat(db, ["seat-1", "seat-2"], reset_epoch=EPOCH, now=NOW)
    assert len(set(again)) == len(await keys(db)) == 2


@ONLY_SQLITE
@pytest.mark.parametrize("bound", [0, -1, 1.5])
async def test_a_bound_that_is_not_positive_is_refused(db: StateDB, bound: Any) -> None:
    with pytest.raises(BadValue, match="max_attempts"):
        await enqueue_revival_heartbeat(db, ["seat-1"], reset_epoch=EPOCH, max_attempts=bound, now=NOW)
    assert await keys(db) == []


@ONLY_SQLITE
@pytest.mark.parametrize("ttl", [0.0, 100.0, -5.0])
async def test_a_ping_that_would_have_expired_already_is_refused(db: StateDB, ttl: float) -> None:
    with pytest.raises(BadValue, match="is not after now"):
        await enqueue_revival_heartbeat(db, ["seat-1"], reset_epoch=EPOCH, ttl_seconds=ttl, now=NOW)
    assert await keys(db) == []


@ONLY_SQLITE
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, None, "1", True])
async def test_an_epoch_or_a_ttl_that_is_no_time_is_refused(db: StateDB, value: Any) -> None:
    with pytest.raises(BadValue, match=r"reset_epoch is .*; expected seconds"):
        await enqueue_revival_heartbeat(db, ["seat-1"], reset_epoch=value, now=NOW)
    with pytest.raises(BadValue, match=r"ttl_seconds is .*; expected seconds"):
        await enqueue_revival_heartbeat(db, ["seat-1"], reset_epoch=EPOCH, ttl_seconds=value, now=NOW)
    assert await keys(db) == []


async def test_each_seat_gets_one_ping_in_the_order_of_the_seats(db: StateDB) -> None:
    ids = await enqueue_revival_heartbeat(db, ["b", "a"], reset_epoch=EPOCH, now=NOW)
    rows = [await one(db, each) for each in ids]
    assert [(row["kind"], row["deliver_to"], row["dedup_key"]) for row in rows] == [
        ("revival_ping", "b", "revival:b:1799999900.0"),
        ("revival_ping", "a", "revival:a:1799999900.0"),
    ]
    for row in rows:
        assert (row["ack_required"], row["ack_token"], row["max_attempts"], row["status"]) == (0, None, 8, "pending")
        assert row["expires_at"] == EPOCH + 3600
    assert await moves(db, ids[0]) == [(None, "pending", "dispatch.pending.enqueued")]


async def test_ttl_and_bound_are_the_callers(db: StateDB) -> None:
    (ping,) = await enqueue_revival_heartbeat(db, ["a"], reset_epoch=EPOCH, ttl_seconds=150.5, max_attempts=2, now=NOW)
    row = await one(db, ping)
    assert (row["expires_at"], row["max_attempts"]) == (EPOCH + 150.5, 2)


@pytest.mark.parametrize("epoch", [0, 0.0])
async def test_an_epoch_of_zero_has_no_expiry(db: StateDB, epoch: float) -> None:
    (ping,) = await enqueue_revival_heartbeat(db, ["a"], reset_epoch=epoch, now=NOW)
    row = await one(db, ping)
    assert (row["expires_at"], row["dedup_key"]) == (None, f"revival:a:{epoch}")


async def test_a_seat_named_twice_or_asked_for_again_gives_the_first_id(db: StateDB) -> None:
    first = await enqueue_revival_heartbeat(db, ["a", "b", "a"], reset_epoch=EPOCH, now=NOW)
    assert first[0] == first[2] != first[1]
    assert await enqueue_revival_heartbeat(db, ["b", "a"], reset_epoch=EPOCH, now=NOW + 9) == [first[1], first[0]]
    assert await keys(db) == [f"revival:a:{EPOCH}", f"revival:b:{EPOCH}"]
    assert len(await moves(db, first[0])) == 1


async def test_a_ping_that_was_delivered_is_not_made_again_for_its_epoch_but_for_the_next(db: StateDB) -> None:
    (first,) = await enqueue_revival_heartbeat(db, ["a"], reset_epoch=EPOCH, now=NOW)
    await deliver_due_dispatches(db, now=lambda: NOW, notify_template=["true"])
    late = EPOCH + 7200  # even after its expiry
    assert await enqueue_revival_heartbeat(db, ["a"], reset_epoch=EPOCH, now=late) == [first]
    assert (await one(db, first))["status"] == "delivered"
    assert await enqueue_revival_heartbeat(db, ["a"], reset_epoch=EPOCH + 1, now=NOW) != [first]


@ONLY_SQLITE
async def test_no_seats_are_no_pings(db: StateDB) -> None:
    assert await enqueue_revival_heartbeat(db, [], reset_epoch=EPOCH, now=NOW) == []
    assert await keys(db) == []


async def test_a_ping_says_whom_it_is_for(db: StateDB) -> None:
    (ping,) = await enqueue_revival_heartbeat(db, (seat for seat in ["a"]), reset_epoch=EPOCH, now=NOW)
    row = await get_dispatch(db, ping)
    assert row is not None
    assert (row["payload"]["kind"], row["payload"]["deliver_to"]) == ("revival_ping", "a")
    assert row["payload"]["body"] == {"seat": "a", "reset_epoch": EPOCH}


# Ids that are not left to chance.


@ONLY_SQLITE
@pytest.mark.parametrize("bad", ["short", "F" * 32, 7, b"0" * 32, ""])
async def test_an_id_that_is_none_is_refused_and_the_pings_before_it_stay(db: StateDB, bad: Any) -> None:
    with pytest.raises(BadValue, match="dispatch_id"):
        await enqueue_revival_heartbeat(db, ["a", "b"], reset_epoch=EPOCH, now=NOW, dispatch_ids={"b": bad})
    assert await keys(db) == [f"revival:a:{EPOCH}"]


@ONLY_SQLITE
async def test_one_id_for_two_seats_is_refused_at_the_second(db: StateDB) -> None:
    same = "1" * 32
    with pytest.raises(BadValue, match=f"the dispatch {same} cannot be written"):
        await enqueue_revival_heartbeat(db, ["a", "b"], reset_epoch=EPOCH, now=NOW, dispatch_ids={"a": same, "b": same})
    assert await keys(db) == [f"revival:a:{EPOCH}"]


async def test_seats_get_the_ids_that_are_named_and_the_others_one_by_chance(db: StateDB) -> None:
    named = {"a": "a" * 32, "nobody": "b" * 32}
    first, second = await enqueue_revival_heartbeat(db, ["a", "b"], reset_epoch=EPOCH, now=NOW, dispatch_ids=named)
    assert (first, len(second)) == ("a" * 32, 32)
    assert second not in named.values()
    # What was asked for before has its id already, whatever is named now.
    again = await enqueue_revival_heartbeat(db, ["a"], reset_epoch=EPOCH, now=NOW, dispatch_ids={"a": "c" * 32})
    assert again == [first]
