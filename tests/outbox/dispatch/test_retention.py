"""Purging many, and the retention policy: only what was asked for, in batches, each with its event."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from outbox import faults
from outbox.dispatch import (
    BadValue,
    RetentionPolicy,
    StateDB,
    apply_retention,
    enqueue_dispatch,
    list_admin_events,
    purge_dispatches,
    retry_dispatch,
)
from outbox.faults import Fault
from tests.outbox.dispatch.peek import peek, poke
from tests.outbox.dispatch.waiting import meanwhile
from tests.support import BOUND_SECONDS

NOW = 1_800_000_000.0
# What does not depend on the database is shown on one.
ONLY_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
STATUSES = ("pending", "delivering", "delivered", "acked", "dead_letter", "expired")
FINISHED = STATUSES[2:]


async def rows(db: StateDB, status: str, *ages: float) -> list[str]:
    """Rows of a status, last changed so many seconds before NOW."""
    made = []
    for age in ages:
        made.append(await enqueue_dispatch(db, kind="k", deliver_to="seat-1", now=NOW - 10_000))
        await poke(
            db,
            "UPDATE dispatch_outbox SET status = :status, updated_at = :at WHERE id = :id",
            status=status,
            at=NOW - age,
            id=made[-1],
        )
    return made


async def left(db: StateDB) -> set[str]:
    return {row["id"] for row in await peek(db, "SELECT id FROM dispatch_outbox")}


async def histories(db: StateDB) -> set[str]:
    return {row["entity_id"] for row in await peek(db, "SELECT entity_id FROM status_transitions")}


# Refused.


@ONLY_SQLITE
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "not asked for by saying nothing"),
        ({"statuses": []}, "not asked for by saying nothing"),
        ({"statuses": ["deleted"]}, "'deleted' is no status"),
        ({"statuses": ["acked", "Acked"]}, "'Acked' is no status"),
        ({"statuses": "everything"}, "'everything' is no status"),
        ({"older_than_seconds": -1}, "older_than_seconds is -1"),
        ({"older_than_seconds": float("nan")}, "older_than_seconds is nan"),
        ({"statuses": ["acked"], "batch_rows": 0}, "batch_rows is 0"),
        ({"statuses": ["acked"], "batch_rows": -5}, "batch_rows is -5"),
        ({"statuses": ["acked"], "batch_rows": None}, "batch_rows is None; expected a whole number from 1 to 10000"),
        ({"statuses": ["acked"], "batch_rows": float("nan")}, "batch_rows is nan"),
        ({"statuses": ["acked"], "batch_rows": float("inf")}, "batch_rows is inf"),
        ({"statuses": ["acked"], "batch_rows": "x"}, "batch_rows is 'x'"),
        ({"statuses": ["acked"], "batch_rows": True}, "batch_rows is True"),
        ({"statuses": ["acked"], "batch_rows": 10_001}, "batch_rows is 10001"),
        ({"statuses": ["acked"], "batch_rows": 70_000}, "batch_rows is 70000"),
        ({"statuses": 5}, "statuses is 5; expected a list of statuses"),
        ({"statuses": [["acked"]]}, "is no status"),
        ({"statuses": b"acked"}, "97 is no status"),
        ({"older_than_seconds": "x"}, "older_than_seconds is 'x'; expected a number of seconds, not negative"),
        ({"older_than_seconds": True}, "older_than_seconds is True"),
        ({"older_than_seconds": float("inf")}, "older_than_seconds is inf"),
        ({"older_than_seconds": 10**400}, "older_than_seconds is 10+; expected"),
        ({"statuses": ["acked"], "now": "x"}, "now is 'x'; expected seconds since the epoch"),
        ({"statuses": ["acked"], "now": True}, "now is True"),
        ({"statuses": ["acked"], "now": float("inf")}, "now is inf"),
        ({"statuses": ["acked"], "actor": ""}, "actor is empty"),
        ({"statuses": ["acked"], "actor": "a\0b"}, "actor .* holds a NUL"),
        ({"statuses": ["acked"], "actor": "x" * 201}, "actor is 201 characters long; expected at most 200"),
        ({"statuses": ["acked"], "actor": 7}, "actor is int; expected text"),
        ({"statuses": ["acked"], "remove_history": "no"}, "remove_history is 'no'; expected true or false"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_purge_of_nothing_that_can_be_meant_is_refused(
    db: StateDB, asked: dict[str, Any], told: str, dry_run: bool
) -> None:
    made = await rows(db, "acked", 100)
    with pytest.raises(BadValue, match=told):
        await purge_dispatches(db, **{"now": NOW, **asked}, dry_run=dry_run)
    assert await left(db) == set(made)
    assert await list_admin_events(db) == []


# By status and age.


async def census(db: StateDB) -> dict[tuple[str, float], str]:
    """One row of each status and of two ages."""
    return {(status, age): (await rows(db, status, age))[0] for status in STATUSES for age in (50.0, 100.0)}


@pytest.mark.parametrize(
    ("statuses", "age", "gone"),
    [
        (["acked"], None, {("acked", 50), ("acked", 100)}),
        ("acked", None, {("acked", 50), ("acked", 100)}),
        (["acked", "expired", "acked"], None, {("acked", 50), ("acked", 100), ("expired", 50), ("expired", 100)}),
        (["pending"], 100, {("pending", 100)}),
        (["delivering"], 100.5, set()),
        ([], 100, {(status, 100) for status in STATUSES}),
        ([], 99.5, {(status, 100) for status in STATUSES}),
        ([], 0, {(status, age) for status in STATUSES for age in (50, 100)}),
        (STATUSES, None, {(status, age) for status in STATUSES for age in (50, 100)}),
        ([], 1e300, set()),
    ],
)
async def test_a_purge_takes_what_meets_both_conditions_and_a_dry_run_counts_the_same(
    db: StateDB, statuses: Sequence[str], age: float | None, gone: set[tuple[str, float]]
) -> None:
    made = await census(db)
    expected: dict[str, int] = {}
    for status, _age in gone:
        expected[status] = expected.get(status, 0) + 1
    asked: dict[str, Any] = {"statuses": statuses, "older_than_seconds": age, "now": NOW}
    assert await purge_dispatches(db, **asked, dry_run=True) == expected
    assert await left(db) == set(made.values())
    assert await list_admin_events(db) == []
    assert await purge_dispatches(db, **asked) == expected
    assert await left(db) == {identity for key, identity in made.items() if key not in gone}
    assert await histories(db) == set(made.values())
    assert await purge_dispatches(db, **asked) == {}


async def test_a_row_that_never_changed_is_as_old_as_its_enqueue(db: StateDB) -> None:
    (made,) = await rows(db, "pending", 0)
    await poke(db, "UPDATE dispatch_outbox SET updated_at = NULL")
    assert await purge_dispatches(db, older_than_seconds=10_001, now=NOW) == {}
    assert await left(db) == {made}
    assert await purge_dispatches(db, older_than_seconds=10_000, now=NOW) == {"pending": 1}


async def test_batches_are_transactions_of_their_own_each_with_its_event(db: StateDB) -> None:
    made = await rows(db, "dead_letter", *[10.0] * 4) + await rows(db, "expired", *[10.0] * 3)
    kept = await rows(db, "acked", 10)
    counts = await purge_dispatches(db, statuses=["dead_letter", "expired"], batch_rows=3, actor="grace", now=NOW)
    assert counts == {"dead_letter": 4, "expired": 3}
    assert await left(db) == set(kept)
    events = await list_admin_events(db)
    assert [sum(event["details"]["deleted"].values()) for event in events] == [3, 3, 1]
    assert {(event["action"], event["actor"], event["entity_id"], event["created_at"]) for event in events} == {
        ("dispatch.purge", "grace", None, NOW)
    }
    in_order = sorted(made)
    assert [(event["details"]["first_id"], event["details"]["last_id"]) for event in events] == [
        (in_order[0], in_order[2]),
        (in_order[3], in_order[5]),
        (in_order[6], in_order[6]),
    ]
    assert {event["details"]["history"] for event in events} == {"kept"}


async def test_a_last_batch_that_is_full_leaves_no_empty_event(db: StateDB) -> None:
    await rows(db, "acked", *[10.0] * 4)
    assert await purge_dispatches(db, statuses=["acked"], batch_rows=2, now=NOW) == {"acked": 4}
    assert len(await list_admin_events(db)) == 2


async def test_a_purge_that_is_cut_off_has_deleted_and_reported_the_batches_before(db: StateDB) -> None:
    made = await rows(db, "acked", *[10.0] * 5)

    class Torn(Exception):
        pass

    def tear(_fault: Fault) -> None:
        raise Torn

    faults.arm(Fault("dispatch.purge.written", 2), tear)
    with pytest.raises(Torn):
        await purge_dispatches(db, statuses=["acked"], batch_rows=2, remove_history=True, now=NOW)
    assert await left(db) == await histories(db) == set(sorted(made)[2:])
    assert [event["details"]["deleted"] for event in await list_admin_events(db)] == [{"acked": 2}]


async def test_the_history_goes_only_where_that_is_asked_for_and_the_event_says_so(db: StateDB) -> None:
    await rows(db, "acked", 10, 10)
    kept = await rows(db, "expired", 10)
    await purge_dispatches(db, statuses=["acked"], remove_history=True, now=NOW)
    assert await histories(db) == set(kept)
    (event,) = await list_admin_events(db)
    assert (event["actor"], event["details"]["history"], event["details"]["deleted"]) == ("operator", "removed", {"acked": 2})


# The policy.


async def test_a_policy_deletes_finished_rows_over_their_own_age_and_nothing_else(db: StateDB) -> None:
    policy = RetentionPolicy(delivered_seconds=10, acked_seconds=20, dead_letter_seconds=30, expired_seconds=None)
    ages = {"delivered": 10.0, "acked": 20.0, "dead_letter": 30.0}
    over = [(await rows(db, status, age))[0] for status, age in ages.items()]
    under = [(await rows(db, status, age - 0.5))[0] for status, age in ages.items()]
    never = [(await rows(db, status, 1e6))[0] for status in ("expired", "pending", "delivering")]
    assert await apply_retention(db, policy, now=NOW) == {"delivered": 1, "acked": 1, "dead_letter": 1}
    assert await left(db) == {*under, *never}
    assert await histories(db) >= set(over)
    events = await list_admin_events(db)
    assert [(event["actor"], event["details"]["deleted"], event["details"]["history"]) for event in events] == [
        ("retention", {"delivered": 1}, "kept"),
        ("retention", {"acked": 1}, "kept"),
        ("retention", {"dead_letter": 1}, "kept"),
    ]
    assert await apply_retention(db, policy, now=NOW) == {}
    assert len(await list_admin_events(db)) == 3


async def test_the_policy_as_it_comes_keeps_a_week_of_successes_and_a_month_of_failures(db: StateDB) -> None:
    day = 86_400.0
    for status in FINISHED:
        await rows(db, status, 6.9 * day, 7 * day, 29.9 * day, 30 * day)
    counts = await apply_retention(db, RetentionPolicy(), now=NOW)
    assert counts == {"delivered": 3, "acked": 3, "dead_letter": 1, "expired": 1}


@pytest.mark.parametrize("status", ["pending", "delivering"])
async def test_no_policy_deletes_a_row_that_is_not_finished(db: StateDB, status: str) -> None:
    made = await rows(db, status, 1e9)
    every = RetentionPolicy(delivered_seconds=0, acked_seconds=0, dead_letter_seconds=0, expired_seconds=0)
    assert await apply_retention(db, every, now=NOW) == {}
    assert await left(db) == set(made)


async def test_a_policy_works_in_its_batches_and_removes_the_history_if_it_says_so(db: StateDB) -> None:
    await rows(db, "delivered", *[50.0] * 5)
    policy = RetentionPolicy(delivered_seconds=50, batch_rows=2, remove_history=True)
    assert await apply_retention(db, policy, now=NOW) == {"delivered": 5}
    assert await histories(db) == set()
    assert [event["details"]["deleted"] for event in await list_admin_events(db)] == [
        {"delivered": 2},
        {"delivered": 2},
        {"delivered": 1},
    ]


@ONLY_SQLITE
async def test_a_dry_run_that_is_neither_true_nor_false_deletes_nothing(db: StateDB) -> None:
    made = await rows(db, "acked", 100)
    with pytest.raises(BadValue, match="dry_run is 'yes'; expected true or false"):
        await purge_dispatches(db, statuses=["acked"], dry_run="yes", now=NOW)  # type: ignore[arg-type]
    assert await left(db) == set(made)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        *(
            ({f"{status}_seconds": value}, f"{status}_seconds is .*; expected a number of seconds, not negative")
            for status in FINISHED
            for value in ("x", -1, float("nan"), float("inf"), True)
        ),
        ({"batch_rows": 0}, "batch_rows is 0; expected a whole number from 1 to 10000"),
        ({"batch_rows": 10_001}, "batch_rows is 10001"),
        ({"batch_rows": None}, "batch_rows is None"),
        ({"remove_history": 1}, "remove_history is 1"),
        ({"every_seconds": None}, "every_seconds is None"),
        ({"every_seconds": -1}, "every_seconds is -1"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_when_it_is_made(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(BadValue, match=told):
        RetentionPolicy(**asked)


def test_a_policy_is_applied_once_an_hour_unless_it_says_otherwise() -> None:
    assert RetentionPolicy().every_seconds == 3600.0
    assert RetentionPolicy(every_seconds=0).every_seconds == 0


@ONLY_SQLITE
@pytest.mark.parametrize("policy", [None, {}, "weekly"])
async def test_what_is_no_policy_is_refused(db: StateDB, policy: Any) -> None:
    with pytest.raises(BadValue, match=r"the retention policy is .*; expected a RetentionPolicy"):
        await apply_retention(db, policy, now=NOW)


# Nobody is kept waiting, nothing else is deleted, and it can be stopped.


async def test_a_retention_that_finds_nothing_waits_for_no_writer_and_keeps_none_waiting(db: StateDB, url: str) -> None:
    await rows(db, "delivered", *[5.0] * 3)
    async with StateDB(url) as producer, producer.begin() as transaction, asyncio.timeout(BOUND_SECONDS):
        await enqueue_dispatch(transaction, kind="k", deliver_to="seat-1", now=NOW)
        assert await apply_retention(db, RetentionPolicy(delivered_seconds=10), now=NOW) == {}
    assert await list_admin_events(db) == []


async def test_a_row_that_changed_between_the_look_and_the_deletion_is_kept(db: StateDB, url: str) -> None:
    changed, gone = await rows(db, "dead_letter", 100, 100)

    async def retry(other: StateDB) -> None:
        assert await retry_dispatch(other, changed, now=NOW)

    faults.arm(Fault("dispatch.purge.before"), meanwhile(url, retry))
    assert await purge_dispatches(db, statuses=["dead_letter"], now=NOW) == {"dead_letter": 1}
    assert await left(db) == {changed}
    (event,) = await list_admin_events(db)
    assert (event["details"]["first_id"], event["details"]["last_id"]) == (gone, gone)


async def test_a_batch_of_which_nothing_is_left_has_no_event(db: StateDB, url: str) -> None:
    (changed,) = await rows(db, "dead_letter", 100)

    async def retry(other: StateDB) -> None:
        assert await retry_dispatch(other, changed, now=NOW)

    faults.arm(Fault("dispatch.purge.before"), meanwhile(url, retry))
    assert await apply_retention(db, RetentionPolicy(dead_letter_seconds=50), now=NOW) == {}
    assert await left(db) == {changed}
    assert await list_admin_events(db) == []


def after(calls: int) -> Callable[[], bool]:
    """Says to stop when it was asked that often."""
    asked = iter(range(calls))
    return lambda: next(asked, None) is None


async def test_a_purge_is_stopped_before_its_next_batch(db: StateDB) -> None:
    made = await rows(db, "acked", *[10.0] * 5)
    assert await purge_dispatches(db, statuses=["acked"], batch_rows=2, now=NOW, stopping=after(1)) == {"acked": 2}
    assert await left(db) == set(sorted(made)[2:])
    assert await purge_dispatches(db, statuses=["acked"], batch_rows=2, now=NOW, stopping=lambda: True) == {}
    assert await left(db) == set(sorted(made)[2:])


async def test_a_retention_is_stopped_before_its_next_status_and_its_next_batch(db: StateDB) -> None:
    for status in FINISHED:
        await rows(db, status, *[100.0] * 3)
    policy = RetentionPolicy(50, 50, 50, 50, batch_rows=2)
    # Asked before the status, before each of its two batches, and before the next status.
    assert await apply_retention(db, policy, now=NOW, stopping=after(3)) == {"delivered": 3}
    assert await apply_retention(db, policy, now=NOW, stopping=lambda: True) == {}
    assert await apply_retention(db, policy, now=NOW) == {"acked": 3, "dead_letter": 3, "expired": 3}
