"""D3: the claim. One claimant for each attempt, a lease that counts from the claim, recovery, expiry, order and lanes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import Connection as SqlConnection
from sqlalchemy import text

from outbox.dispatch import DeliveryOptions, StateDB, deliver_due_dispatches, enqueue_dispatch, list_transitions, retry_dispatch
from outbox.dispatch.claim import CLAIM_LEASE_SECONDS, _due
from scenarios.engine.postgres import PostgresServer
from tests.outbox.dispatch.peek import moves, one, peek, poke
from tests.outbox.dispatch.waiting import BOUND, NOTHING, OK, Held, soon
from tests.outbox.peer import Connection, Peer, answering, response

NOW = 1000.0
FAILED = response("500 Oh", b"{}", "Connection: close")


async def enqueue(db: StateDB, peer: Peer, *, now: float = NOW, **values: Any) -> str:
    return await enqueue_dispatch(db, **{"kind": "ping", "deliver_to": f"{peer.url}/x", "now": now, **values})


async def scan(db: StateDB, at: float | Callable[[], float] = NOW, concurrency: int = 8) -> dict[str, int]:
    """One scan; during a scan at a number the clock stands still."""
    clock = at if callable(at) else lambda: at
    return await deliver_due_dispatches(db, now=clock, notify_template=["false"], options=DeliveryOptions(concurrency))


def keys(peer: Peer) -> list[str]:
    """The ids that arrived, in order."""
    return [request.header("Idempotency-Key")[0] for request in peer.requests]


@asynccontextmanager
async def sending(db: StateDB, peer: Held, at: float) -> AsyncIterator[asyncio.Task[dict[str, int]]]:
    """A scan that is in the middle of a send; afterwards it is let go and ends."""
    task = asyncio.create_task(scan(db, at))
    await soon(peer.arrived)
    try:
        yield task
    finally:
        peer.go.set()
        await task


async def left_by_a_dead_claimant(db: StateDB, dispatch: str, *, attempt: int = 1, until: float) -> None:
    await poke(
        db,
        "UPDATE dispatch_outbox SET status = 'delivering', attempt = :attempt, claim_number = :attempt, claimed_at = :at, "
        "next_attempt_at = :until WHERE id = :id",
        attempt=attempt,
        at=until - CLAIM_LEASE_SECONDS,
        until=until,
        id=dispatch,
    )


# What is not claimed.


async def test_a_row_is_claimed_when_it_is_due_and_not_before(db: StateDB) -> None:
    async with Peer(answering(OK)) as peer:
        dispatch = await enqueue(db, peer)
        assert await scan(db, NOW - 0.001) == NOTHING
        assert (await one(db, dispatch))["status"] == "pending"
        assert await scan(db, NOW) == {**NOTHING, "attempted": 1, "delivered": 1}


async def test_a_row_that_becomes_due_during_a_scan_is_left_to_the_next_one(db: StateDB) -> None:
    clock = [NOW]

    async def slow(connection: Connection) -> None:
        await connection.request()
        clock[0] += 50
        await connection.send(OK)

    async with Peer(slow) as peer:
        await enqueue(db, peer)
        later = await enqueue(db, peer, now=NOW + 1)
        assert (await scan(db, lambda: clock[0]))["attempted"] == 1
        assert (await one(db, later))["status"] == "pending"


async def test_finished_rows_are_never_claimed(db: StateDB) -> None:
    async with Peer(answering(OK)) as peer:
        for status in ("delivered", "acked", "dead_letter", "expired"):
            await poke(
                db, "UPDATE dispatch_outbox SET status = :status WHERE id = :id", status=status, id=await enqueue(db, peer)
            )
        assert await scan(db, NOW + 1e9) == NOTHING
        assert peer.requests == []


async def test_a_live_claim_is_left_alone_until_its_lease_has_passed(db: StateDB) -> None:
    async with Held() as peer:
        dispatch = await enqueue(db, peer)
        async with sending(db, peer, NOW) as first:
            assert await scan(db, NOW + CLAIM_LEASE_SECONDS - 0.001) == NOTHING
        assert await first == {**NOTHING, "attempted": 1, "delivered": 1}
        assert keys(peer) == [dispatch]


async def test_a_row_that_another_transaction_holds_is_passed_over(postgres_server: PostgresServer) -> None:
    """On PostgreSQL; SQLite locks no rows."""
    url = postgres_server.new_database()
    async with StateDB(url) as db, StateDB(url) as other, Peer(answering(OK)) as peer:
        held, free = await enqueue(db, peer), await enqueue(db, peer)
        async with other.begin() as connection:
            await connection.execute(text("SELECT id FROM dispatch_outbox WHERE id = :id FOR UPDATE"), {"id": held})
            counts = await asyncio.wait_for(scan(db), BOUND)
        assert (counts, keys(peer)) == ({**NOTHING, "attempted": 1, "delivered": 1}, [free])


# Expiry.


@pytest.mark.parametrize(("at", "sent"), [(NOW + 9.999, True), (NOW + 10, False), (NOW + 1000, False)])
async def test_a_row_expires_at_its_expiry_and_is_not_sent(db: StateDB, at: float, sent: bool) -> None:
    async with Peer(answering(OK)) as peer:
        dispatch = await enqueue(db, peer, expires_at=NOW + 10)
        counts = await scan(db, at)
        assert len(peer.requests) == int(sent)
    if sent:
        assert counts == {**NOTHING, "attempted": 1, "delivered": 1}
        return
    assert counts == {**NOTHING, "attempted": 1, "expired": 1}
    assert await moves(db, dispatch) == [
        (None, "pending", "dispatch.pending.enqueued"),
        ("pending", "expired", "dispatch.expired.deadline"),
    ]
    assert (await one(db, dispatch))["attempt"] == 0


async def test_a_claim_whose_claimant_died_expires_rather_than_being_sent_again(db: StateDB) -> None:
    async with Peer(answering(OK)) as peer:
        dispatch = await enqueue(db, peer, expires_at=NOW + 10)
        await left_by_a_dead_claimant(db, dispatch, until=NOW + 15)
        assert await scan(db, NOW + 14) == NOTHING  # it may be alive
        assert await scan(db, NOW + 15) == {**NOTHING, "attempted": 1, "expired": 1}
        assert peer.requests == []
    assert (await moves(db, dispatch))[-1] == ("delivering", "expired", "dispatch.expired.deadline")


async def test_a_send_that_was_claimed_before_the_expiry_may_end_after_it(db: StateDB) -> None:
    clock = [NOW]

    async def slow(connection: Connection) -> None:
        await connection.request()
        clock[0] = NOW + 12
        await connection.send(OK)

    async with Peer(slow) as peer:
        await enqueue(db, peer, expires_at=NOW + 10)
        assert await scan(db, lambda: clock[0]) == {**NOTHING, "attempted": 1, "delivered": 1}


async def test_a_row_whose_time_is_over_when_its_turn_comes_expires_though_it_was_not_when_the_scan_began(db: StateDB) -> None:
    clock = [NOW]

    async def slow(connection: Connection) -> None:
        await connection.request()
        clock[0] = NOW + 12
        await connection.send(OK)

    async with Peer(slow) as peer:
        first = await enqueue(db, peer, now=NOW - 1)
        second = await enqueue(db, peer, expires_at=NOW + 10)
        counts = await scan(db, lambda: clock[0], concurrency=1)
        assert keys(peer) == [first]
    assert counts == {**NOTHING, "attempted": 2, "delivered": 1, "expired": 1}
    assert (await one(db, second))["updated_at"] == NOW + 12


# The claim itself.


async def test_a_claim_is_committed_before_the_send_and_nothing_is_open_meanwhile(db: StateDB) -> None:
    async with Held() as peer:
        dispatch = await enqueue(db, peer)
        async with sending(db, peer, NOW + 1):
            row = await one(db, dispatch)
            assert (row["status"], row["attempt"], row["claim_number"]) == ("delivering", 1, 1)
            assert (row["claimed_at"], row["next_attempt_at"]) == (NOW + 1, NOW + 16)
            assert (await list_transitions(db, dispatch))[-1]["metadata"] == {"attempt": 1, "claim_number": 1}
            await asyncio.wait_for(enqueue(db, peer), BOUND)  # a writer need not wait
    assert await moves(db, dispatch) == [
        (None, "pending", "dispatch.pending.enqueued"),
        ("pending", "delivering", "dispatch.delivering.attempt"),
        ("delivering", "delivered", "dispatch.delivered.transport_ok"),
    ]


async def test_a_lease_counts_from_the_claim_and_not_from_the_scan(db: StateDB) -> None:
    clock = [NOW]
    leases = []

    async def slow(connection: Connection) -> None:
        dispatch = (await connection.request()).header("Idempotency-Key")[0]
        row = await one(db, dispatch)
        leases.append((row["claimed_at"], row["next_attempt_at"]))
        clock[0] += 7
        await connection.send(OK)

    async with Peer(slow) as peer:
        for _row in range(3):
            await enqueue(db, peer)
        assert (await scan(db, lambda: clock[0], concurrency=1))["delivered"] == 3
    assert leases == [(NOW, NOW + 15), (NOW + 7, NOW + 22), (NOW + 14, NOW + 29)]


async def test_two_scans_at_once_send_every_row_once(url: str) -> None:
    async with StateDB(url) as first, StateDB(url) as second, Peer(answering(OK)) as peer:
        ids = [await enqueue(first, peer) for _row in range(30)]
        counts = await asyncio.gather(*(scan(db, NOW, 4) for db in (first, second, first, second)))
        assert sorted(keys(peer)) == sorted(ids)
        assert sum(each["delivered"] for each in counts) == sum(each["attempted"] for each in counts) == 30
        assert await peek(first, "SELECT DISTINCT status, attempt, claim_number FROM dispatch_outbox") == [
            {"status": "delivered", "attempt": 1, "claim_number": 1}
        ]


async def test_no_more_is_sent_at_once_than_is_asked_for(db: StateDB) -> None:
    now = most = 0

    async def counting(connection: Connection) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await connection.request()
        (row,) = await peek(db, "SELECT count(*) AS claimed FROM dispatch_outbox WHERE status = 'delivering'")
        assert row["claimed"] <= 3
        now -= 1
        await connection.send(OK)

    async with Peer(counting) as peer:
        for _row in range(12):
            await enqueue(db, peer)
        assert (await scan(db, NOW, concurrency=3))["delivered"] == 12
    assert 1 <= most <= 3


async def test_rows_go_in_the_order_of_what_is_left_then_due_time(db: StateDB) -> None:
    async with Peer(answering(OK)) as peer:
        ids = [await enqueue(db, peer, now=NOW - 10, dispatch_id=f"{number:032x}") for number in (3, 1, 2)]
        early = await enqueue(db, peer, now=NOW - 20)
        old = await enqueue(db, peer, now=NOW - 90)
        await poke(db, "UPDATE dispatch_outbox SET next_attempt_at = :due WHERE id = :id", due=NOW - 10, id=old)
        stale = await enqueue(db, peer, now=NOW - 5)
        await left_by_a_dead_claimant(db, stale, until=NOW - 1)
        assert (await scan(db, NOW, concurrency=1))["delivered"] == 6
    # Among rows of one due time no order is promised: sorting them all for each claim would cost more than it is worth.
    assert (keys(peer)[:2], sorted(keys(peer)[2:])) == ([stale, early], sorted([old, *ids]))


# Recovery.


async def test_a_row_that_a_dead_claimant_left_is_claimed_again_when_its_lease_has_passed(db: StateDB) -> None:
    async with Peer(answering(OK)) as peer:
        dispatch = await enqueue(db, peer)
        await left_by_a_dead_claimant(db, dispatch, until=NOW + 15)
        assert await scan(db, NOW + 14.999) == NOTHING
        assert await scan(db, NOW + 15) == {**NOTHING, "attempted": 1, "delivered": 1}
        assert [request.header("Halt23-Attempt") for request in peer.requests] == [["2"]]
    assert (await moves(db, dispatch))[1:] == [
        ("delivering", "delivering", "dispatch.delivering.attempt"),
        ("delivering", "delivered", "dispatch.delivered.transport_ok"),
    ]


async def test_a_last_attempt_that_was_never_finished_is_a_dead_letter_and_not_sent_once_more(db: StateDB) -> None:
    async with Peer(answering(OK)) as peer:
        dispatch = await enqueue(db, peer, max_attempts=2)
        await left_by_a_dead_claimant(db, dispatch, attempt=2, until=NOW + 15)
        assert await scan(db, NOW + 15) == {**NOTHING, "attempted": 1, "dead_letter": 1}
        assert peer.requests == []
    row = await one(db, dispatch)
    assert (row["status"], row["attempt"], row["last_error_attempt"]) == ("dead_letter", 2, 2)
    assert row["last_error"] == "attempt 2 of 2 was begun and never finished; its outcome is not known"
    assert (await moves(db, dispatch))[-1] == ("delivering", "dead_letter", "dispatch.dead_letter.max_attempts")


async def test_a_claimant_that_was_taken_over_changes_nothing_and_counts_nothing(db: StateDB) -> None:
    async with Held() as slow:
        dispatch = await enqueue(db, slow)
        async with sending(db, slow, NOW) as first:
            await poke(db, "UPDATE dispatch_outbox SET deliver_to = 'seat-1' WHERE id = :id", id=dispatch)
            assert await scan(db, NOW + 15) == {**NOTHING, "attempted": 1, "retried": 1}
            before = await one(db, dispatch)
        assert await first == {**NOTHING, "attempted": 1}
    assert await one(db, dispatch) == before
    assert (before["status"], before["attempt"], before["claim_number"]) == ("pending", 2, 2)


# Lanes.


async def test_rows_of_a_lane_go_one_after_the_other_in_one_scan(db: StateDB) -> None:
    async with Peer(answering(OK)) as peer:
        lane = [await enqueue(db, peer, lane="l", now=NOW - number) for number in range(5)]
        assert (await scan(db))["delivered"] == 5
        assert keys(peer) == lane


async def test_nothing_overtakes_in_a_lane_also_when_the_head_fails(db: StateDB) -> None:
    async with Peer(answering(FAILED), answering(OK)) as peer:
        head = await enqueue(db, peer, lane="l")
        assert (await scan(db))["retried"] == 1
        after = await enqueue(db, peer, lane="l")
        other, free = await enqueue(db, peer, lane="m"), await enqueue(db, peer)
        assert (await scan(db))["delivered"] == 2
        assert sorted(keys(peer)[1:]) == sorted([other, free])
        assert (await one(db, after))["attempt"] == 0
        assert (await scan(db, NOW + 60))["delivered"] == 2
        assert keys(peer)[3:] == [head, after]


async def test_a_head_that_is_being_sent_holds_its_lane(db: StateDB) -> None:
    async with Held() as peer:
        await enqueue(db, peer, lane="l")
        after = await enqueue(db, peer, lane="l")
        async with sending(db, peer, NOW):
            assert await scan(db) == NOTHING
            assert (await one(db, after))["status"] == "pending"


@pytest.mark.parametrize("end", [{"max_attempts": 1}, {"expires_at": NOW + 1}], ids=["dead letter", "expired"])
async def test_a_head_that_has_ended_frees_its_lane_and_comes_back_before_the_rest(db: StateDB, end: dict[str, Any]) -> None:
    async with Peer(answering(FAILED)) as peer:
        head, after = await enqueue(db, peer, lane="l", **end), await enqueue(db, peer, lane="l")
        counts = await scan(db, NOW + 1)
        assert (counts["dead_letter"] + counts["expired"], counts["retried"]) == (1, 1)
        assert keys(peer)[-1] == after
        sent = len(peer.requests)
        await retry_dispatch(db, head, now=NOW + 500)
        await scan(db, NOW + 500)
        assert keys(peer)[sent] == head


# The plan.


def plan(connection: SqlConnection, status: str, some_left_out: bool) -> str:
    """How the database would run the claim's own statement."""
    compiled = _due(status, connection.dialect.name, some_left_out).compile(dialect=connection.dialect)
    state = compiled.construct_expanded_state({"due_until": NOW, "room": 64, "not_to": ["http://127.0.0.1:1"]})
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {state.statement}", state.positional_parameters).all()
        return "\n".join(str(row.detail) for row in rows)
    # A small table is read whole, whatever the indexes; without that the planner says which index can serve.
    for setting in ("enable_seqscan", "enable_bitmapscan"):
        connection.exec_driver_sql(f"SET LOCAL {setting} = off")
    return "\n".join(str(row[0]) for row in connection.exec_driver_sql(f"EXPLAIN {state.statement}", state.parameters).all())


@pytest.mark.parametrize("some_left_out", [False, True])
@pytest.mark.parametrize("status", ["pending", "delivering"])
async def test_the_claim_reads_the_index_of_due_rows_and_never_the_whole_table(
    db: StateDB, status: str, some_left_out: bool
) -> None:
    found = await db.read(lambda connection: plan(connection, status, some_left_out), "the plan")
    if db.dialect == "sqlite":
        assert "SEARCH dispatch_outbox USING INDEX dispatch_outbox_due (status=? AND next_attempt_at<?)" in found
        assert "SEARCH earlier USING INDEX dispatch_outbox_lane_open (lane=? AND lane_position<?)" in found
        assert "SCAN" not in found
    else:
        assert "Index Scan using dispatch_outbox_due on dispatch_outbox" in found
        assert "Seq Scan on dispatch_outbox " not in found.replace("Seq Scan on dispatch_outbox earlier", "")
