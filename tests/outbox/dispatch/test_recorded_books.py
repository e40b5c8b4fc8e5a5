"""The books as recorded, as a library: each flaw that the record lists, and where they come out like the books as mended.

Every test that has both runs the same lines on `GuardedBooks`, so that a difference is the books' and nothing else's.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from outbox import faults
from outbox.dispatch import DeliveryOptions, StateDB, enqueue_dispatch
from outbox.dispatch.books import Books, GuardedBooks, Scan
from outbox.dispatch.delivery import Delivery, deliver
from outbox.dispatch.slots import Room
from outbox.faults import Fault
from scenarios.dispatch.recorded import RecordedBooks
from tests.outbox.dispatch.peek import moves, one, peek, poke
from tests.outbox.dispatch.waiting import meanwhile

T0, LEASE_OVER, BACKED_OFF = 1000.0, 1015.0, 1060.0
GOOD, BAD = ["true"], ["false"]
BOOKS: dict[str, Callable[[], Books]] = {"recorded": RecordedBooks, "mended": GuardedBooks}
ENQUEUED = (None, "pending", "dispatch.pending.enqueued")
CLAIMED = ("pending", "delivering", "dispatch.delivering.attempt")


@pytest.fixture(params=BOOKS)
def books(request: pytest.FixtureRequest) -> Books:
    return BOOKS[request.param]()


async def enqueue(db: StateDB, **more: Any) -> str:
    return await enqueue_dispatch(db, **{"kind": "k", "deliver_to": "seat", "now": T0, **more})


async def scan(db: StateDB, books: Books, template: list[str] = GOOD, at: Any = T0) -> Delivery:
    options = DeliveryOptions(concurrency=1, total=1)
    return await deliver(db, now=at, notify_template=template, options=options, resolve_template=False, books=books)


def at_point(point: str, url: str, work: Callable[[StateDB], Awaitable[None]]) -> None:
    """Do `work` on another connection when the point is reached."""
    faults.arm(Fault(point, 1), meanwhile(url, work))


async def claims_now(db: StateDB, at: float) -> int:
    """A scan of its own that claims and goes no further, as one does that is just about to send."""
    claimed = (await GuardedBooks().turn(db, [], Scan(at, lambda: at, DeliveryOptions()), Room(10, ()))).claimed
    return len(claimed.claims)


# Where both come out the same.


class Case(NamedTuple):
    """One scan of one dispatch: how it was enqueued, whether its send succeeds, when the scan is; and what is there then."""

    more: dict[str, Any]
    template: list[str]
    at: float
    status: str
    due: float
    last: str


@pytest.mark.parametrize(
    "case",
    [
        Case({}, GOOD, T0, "delivered", LEASE_OVER, "dispatch.delivered.transport_ok"),
        Case({}, BAD, T0, "pending", BACKED_OFF, "dispatch.pending.retry_backoff"),
        Case({"max_attempts": 1}, BAD, T0, "dead_letter", LEASE_OVER, "dispatch.dead_letter.max_attempts"),
        Case({"ack_required": True}, GOOD, T0, "pending", BACKED_OFF, "dispatch.delivered.transport_ok"),
        Case({"ack_required": True}, BAD, T0, "pending", BACKED_OFF, "dispatch.pending.retry_backoff"),
        Case(
            {"ack_required": True, "max_attempts": 1}, GOOD, T0, "dead_letter", LEASE_OVER, "dispatch.dead_letter.ack_timeout"
        ),
        Case({"expires_at": T0 + 5}, GOOD, T0 + 5, "expired", T0, "dispatch.expired.deadline"),
    ],
)
async def test_without_a_death_or_a_race_both_books_say_the_same(db: StateDB, books: Books, case: Case) -> None:
    dispatch = await enqueue(db, **case.more)
    await scan(db, books, case.template, case.at)
    row = await one(db, dispatch)
    assert (row["status"], row["attempt"], row["next_attempt_at"]) == (case.status, int(case.at == T0), case.due)
    assert (row["last_error"] is None) == (case.template == GOOD)
    assert [move[2] for move in await moves(db, dispatch)][-1] == case.last


async def test_what_is_not_due_is_left_alone_by_both(db: StateDB, books: Books) -> None:
    dispatch = await enqueue(db)
    assert (await scan(db, books, at=T0 - 1)).counts["attempted"] == 0
    await scan(db, books, BAD)
    assert (await scan(db, books, at=BACKED_OFF - 1)).counts["attempted"] == 0
    assert (await one(db, dispatch))["attempt"] == 1


async def test_a_row_whose_time_is_over_while_it_is_in_flight_expires_in_both(db: StateDB, books: Books) -> None:
    dispatch = await enqueue(db, expires_at=LEASE_OVER)
    assert await claims_now(db, T0) == 1
    counts = (await scan(db, books, at=LEASE_OVER)).counts
    assert (counts["attempted"], counts["expired"]) == (1, 1)
    assert (await moves(db, dispatch))[-1] == ("delivering", "expired", "dispatch.expired.deadline")


async def test_a_row_that_was_delivered_meanwhile_is_ended_by_neither(db: StateDB, url: str, books: Books) -> None:
    dispatch = await enqueue(db)

    async def ends(other: StateDB) -> None:
        await poke(other, "UPDATE dispatch_outbox SET status = 'delivered' WHERE id = :id", id=dispatch)

    at_point("dispatch.send.response", url, ends)
    assert (await scan(db, books, BAD)).superseded == 1
    assert (await one(db, dispatch))["status"] == "delivered"
    assert await moves(db, dispatch) == [ENQUEUED, CLAIMED]


async def test_what_cannot_be_claimed_any_more_is_not_sent_by_either(db: StateDB, url: str, books: Books) -> None:
    dispatch = await enqueue(db)

    async def claims(other: StateDB) -> None:
        assert await claims_now(other, T0) == 1

    at_point("dispatch.claim.before", url, claims)
    assert (await scan(db, books)).counts["delivered"] == 0
    assert (await one(db, dispatch))["attempt"] == 1


# Error, status and due time in three transactions.


async def seen_at(db: StateDB, url: str, point: str, books: Books) -> dict[str, Any]:
    """The row as another connection sees it while a failure is being written down, `point` being reached."""
    dispatch = await enqueue(db)
    seen: list[dict[str, Any]] = []

    async def look(other: StateDB) -> None:
        seen.append({**await one(other, dispatch), "moves": await moves(other, dispatch)})

    at_point(point, url, look)
    await scan(db, books, BAD)
    (row,) = seen
    return row


async def test_an_error_is_seen_before_the_status_that_it_explains(db: StateDB, url: str) -> None:
    row = await seen_at(db, url, "recorded.error.committed", RecordedBooks())
    assert (row["status"], row["last_error"], row["next_attempt_at"]) == ("delivering", "exit 1", LEASE_OVER)
    assert row["moves"] == [ENQUEUED, CLAIMED]


async def test_a_status_is_seen_before_the_due_time_that_belongs_to_it(db: StateDB, url: str) -> None:
    row = await seen_at(db, url, "recorded.status.committed", RecordedBooks())
    assert (row["status"], row["next_attempt_at"], len(row["moves"])) == ("pending", LEASE_OVER, 3)


async def test_as_mended_nobody_sees_a_part_of_an_outcome(db: StateDB, url: str) -> None:
    before = await seen_at(db, url, "dispatch.outcome.before", GuardedBooks())
    assert (before["status"], before["last_error"], before["next_attempt_at"]) == ("delivering", None, LEASE_OVER)
    await poke(db, "DELETE FROM dispatch_outbox")
    after = await seen_at(db, url, "dispatch.outcome.committed", GuardedBooks())
    assert (after["status"], after["last_error"], after["next_attempt_at"]) == ("pending", "exit 1", BACKED_OFF)


async def test_the_error_of_a_retry_that_succeeds_stays_and_nothing_says_whose_it_is(db: StateDB, books: Books) -> None:
    dispatch = await enqueue(db)
    await scan(db, books, BAD)
    await scan(db, books, GOOD, BACKED_OFF)
    row = await one(db, dispatch)
    assert (row["status"], row["last_error"]) == ("delivered", "exit 1")
    assert row["last_error_attempt"] == (None if isinstance(books, RecordedBooks) else 1)
    assert row["claim_number"] == (0 if isinstance(books, RecordedBooks) else 2)


# The guard.


@pytest.mark.parametrize("template", [GOOD, BAD])
async def test_a_late_outcome_ends_a_newer_claim_as_recorded_and_nothing_as_mended(
    db: StateDB, url: str, books: Books, template: list[str]
) -> None:
    dispatch = await enqueue(db)

    async def takes_over(other: StateDB) -> None:
        assert await claims_now(other, LEASE_OVER) == 1

    at_point("dispatch.send.response", url, takes_over)
    superseded = (await scan(db, books, template)).superseded
    row = await one(db, dispatch)
    assert row["attempt"] == 2
    if isinstance(books, RecordedBooks):
        assert (superseded, row["status"]) == (0, "delivered" if template == GOOD else "pending")
    else:
        assert (superseded, row["status"], row["last_error"]) == (1, "delivering", None)


# The lease.


async def test_the_second_row_of_a_slow_scan_gets_a_lease_from_the_scan_s_start_as_recorded(db: StateDB, books: Books) -> None:
    first, second = await enqueue(db), await enqueue(db, now=T0 + 0.5)
    now = T0 + 1

    def slow(_fault: Fault) -> None:
        nonlocal now
        now = T0 + 100

    faults.arm(Fault("dispatch.send.response", 1), slow)
    await scan(db, books, GOOD, lambda: now)
    leases = [(await one(db, each))["claimed_at"] for each in (first, second)]
    assert leases == ([T0 + 1, T0 + 1] if isinstance(books, RecordedBooks) else [T0 + 1, T0 + 100])


# The bound.


async def test_a_last_attempt_that_was_never_finished_is_made_once_more_as_recorded(db: StateDB, books: Books) -> None:
    dispatch = await enqueue(db, max_attempts=1)
    assert await claims_now(db, T0) == 1
    await scan(db, books, GOOD, LEASE_OVER)
    row = await one(db, dispatch)
    expected = ("delivered", 2) if isinstance(books, RecordedBooks) else ("dead_letter", 1)
    assert (row["status"], row["attempt"]) == expected


async def test_many_rows_that_are_written_side_by_side_are_all_written(db: StateDB, books: Books) -> None:
    for _ in range(5):
        await enqueue(db)
    options = DeliveryOptions(concurrency=5)
    delivery = await asyncio.wait_for(
        deliver(db, now=T0, notify_template=BAD, options=options, resolve_template=False, books=books), 30
    )
    assert (delivery.counts["attempted"], delivery.counts["retried"], delivery.superseded) == (5, 5, 0)
    rows = await peek(db, "SELECT DISTINCT status, attempt, next_attempt_at, last_error FROM dispatch_outbox")
    assert rows == [{"status": "pending", "attempt": 1, "next_attempt_at": BACKED_OFF, "last_error": "exit 1"}]
