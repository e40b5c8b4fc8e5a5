"""How long a dispatch waits: the ladder of the record, its end, and jitter that is off unless asked for."""

import random

import pytest

from outbox.dispatch import BadValue, DeliveryOptions, StateDB, backoff_seconds, deliver_due_dispatches, enqueue_dispatch
from outbox.dispatch.settle import Jitter
from tests.outbox.dispatch.peek import moves, one, peek

NOW = 1_800_000_000.0
LADDER = (60, 120, 240, 480, 960, 1800, 1800)


@pytest.mark.parametrize("attempt", [-1, -(10**30)])
def test_a_negative_attempt_is_refused(attempt: int) -> None:
    with pytest.raises(BadValue, match=f"attempt {attempt} is negative"):
        backoff_seconds(attempt)


@pytest.mark.parametrize("attempt", [7, 60, 64, 1_000_000, 2**63, 10**1000])
def test_a_huge_attempt_waits_for_the_longest_delay_and_does_not_overflow(attempt: int) -> None:
    assert backoff_seconds(attempt) == 1800


@pytest.mark.parametrize(("attempt", "delay"), [(0, 30), *enumerate(LADDER, 1)])
def test_the_delay_doubles_from_30_seconds_up_to_1800(attempt: int, delay: float) -> None:
    assert backoff_seconds(attempt) == delay


async def test_a_row_that_always_fails_climbs_the_ladder_and_dies_at_its_bound(db: StateDB) -> None:
    dispatch = await enqueue_dispatch(db, kind="k", deliver_to="seat-1", now=NOW)
    at, delays = NOW, []
    for attempt in range(1, 8):
        just_before = await deliver_due_dispatches(db, now=lambda early=at - 0.5: early, notify_template=["false"])  # type: ignore[misc]
        assert just_before["attempted"] == 0
        counts = await deliver_due_dispatches(db, now=lambda due=at: due, notify_template=["false"])  # type: ignore[misc]
        row = await one(db, dispatch)
        assert (counts["retried"], row["status"], row["attempt"]) == (1, "pending", attempt)
        delays.append(row["next_attempt_at"] - at)
        at = row["next_attempt_at"]
    assert tuple(delays) == LADDER
    counts = await deliver_due_dispatches(db, now=lambda: at, notify_template=["false"])
    row = await one(db, dispatch)
    assert counts == {"attempted": 1, "delivered": 0, "dead_letter": 1, "expired": 0, "retried": 0}
    assert (row["status"], row["attempt"], row["last_error"]) == ("dead_letter", 8, "exit 1")
    assert len(await moves(db, dispatch)) == 1 + 2 * 8
    far = await deliver_due_dispatches(db, now=lambda: at + 1e9, notify_template=["true"])
    assert far["attempted"] == 0


async def failed_together(db: StateDB, options: DeliveryOptions | None) -> list[float]:
    """The due times of 20 rows that failed in one scan."""
    for _row in range(20):
        await enqueue_dispatch(db, kind="k", deliver_to="seat-1", now=NOW)
    counts = await deliver_due_dispatches(db, now=lambda: NOW, notify_template=["false"], options=options)
    assert counts["retried"] == 20
    return [row["next_attempt_at"] for row in await peek(db, "SELECT next_attempt_at FROM dispatch_outbox")]


async def test_without_jitter_rows_that_failed_together_come_back_together(db: StateDB) -> None:
    assert set(await failed_together(db, None)) == {NOW + 60}


async def test_jitter_shortens_each_delay_by_at_most_its_fraction(db: StateDB) -> None:
    due = await failed_together(db, DeliveryOptions(jitter=Jitter(0.25, random.Random(7))))
    assert all(NOW + 45 < each <= NOW + 60 for each in due)
    assert len(set(due)) == 20
    assert min(due) < NOW + 50
