"""What a scan makes of a row: the record's outcome table, its counters, due times and guards (ADR-0059, D4)."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from outbox import faults
from outbox.dispatch import (
    BadValue,
    DeliveryOptions,
    StateDB,
    StoreLocked,
    deliver_due_dispatches,
    enqueue_dispatch,
    get_dispatch,
    list_transitions,
    purge_dispatch,
    retry_dispatch,
)
from outbox.dispatch.router import RouterOptions
from outbox.faults import Fault
from outbox.sqlite_choice import choose
from tests.outbox.dispatch.peek import moves, one, peek, poke
from tests.outbox.dispatch.waiting import BOUND, LEASE, NOTHING, NOW, OK, Held, gate, soon
from tests.outbox.peer import Connection, Peer, answering, response

# What does not depend on the database is shown on one.
ONLY_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
# Does what the route says.
BY_ROUTE = [
    "sh",
    "-c",
    'case "$1" in good) ;; bad) echo broken >&2; exit 3;; silent) exit 4;; hang) exec sleep 600;; esac',
    "sh",
    "{deliver_to}",
]


async def enqueue(db: StateDB, deliver_to: str = "good", **more: Any) -> str:
    """A dispatch that is due at NOW."""
    return await enqueue_dispatch(db, kind="k", deliver_to=deliver_to, now=NOW, **more)


async def scan(
    db: StateDB, at: float = NOW, *, template: Sequence[str] = BY_ROUTE, options: DeliveryOptions | None = None
) -> dict[str, int]:
    """One scan during which the clock stands still."""
    return await deliver_due_dispatches(db, now=lambda: at, notify_template=template, options=options)


# The outcome table.


@dataclass(frozen=True)
class Outcome:
    """A row of the table: the dispatch and its scan, and what must be there afterwards."""

    name: str
    route: str
    status: str
    reason: str
    counts: Mapping[str, int]
    due: float
    attempt: int = 1
    error: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    at: float = NOW
    template: Sequence[str] = tuple(BY_ROUTE)


TABLE = (
    Outcome(
        "success without acknowledgement",
        "good",
        "delivered",
        "dispatch.delivered.transport_ok",
        {"attempted": 1, "delivered": 1},
        NOW + LEASE,
    ),
    Outcome(
        "failure with attempts left",
        "bad",
        "pending",
        "dispatch.pending.retry_backoff",
        {"attempted": 1, "retried": 1},
        NOW + 60,
        error="broken",
    ),
    Outcome(
        "failure that says nothing",
        "silent",
        "pending",
        "dispatch.pending.retry_backoff",
        {"attempted": 1, "retried": 1},
        NOW + 60,
        error="exit 4",
    ),
    Outcome(
        "command that does not exist",
        "good",
        "pending",
        "dispatch.pending.retry_backoff",
        {"attempted": 1, "retried": 1},
        NOW + 60,
        error="/nowhere/notify cannot be started: [Errno 2] No such file or directory: '/nowhere/notify'",
        template=("/nowhere/notify",),
    ),
    Outcome(
        "failure with none left",
        "bad",
        "dead_letter",
        "dispatch.dead_letter.max_attempts",
        {"attempted": 1, "dead_letter": 1},
        NOW + LEASE,
        error="broken",
        more={"max_attempts": 1},
    ),
    Outcome(
        "expiry at the very moment",
        "good",
        "expired",
        "dispatch.expired.deadline",
        {"attempted": 1, "expired": 1},
        NOW,
        attempt=0,
        more={"expires_at": NOW + 5},
        at=NOW + 5,
    ),
    Outcome(
        "expiry still to come",
        "good",
        "delivered",
        "dispatch.delivered.transport_ok",
        {"attempted": 1, "delivered": 1},
        NOW + 4.5 + LEASE,
        more={"expires_at": NOW + 5},
        at=NOW + 4.5,
    ),
    Outcome(
        "success that awaits the acknowledgement",
        "good",
        "pending",
        "dispatch.delivered.transport_ok",
        {"attempted": 1, "delivered": 1},
        NOW + 60,
        more={"ack_required": True},
    ),
    Outcome(
        "last success without acknowledgement",
        "good",
        "dead_letter",
        "dispatch.dead_letter.ack_timeout",
        {"attempted": 1, "delivered": 1, "dead_letter": 1},
        NOW + LEASE,
        more={"ack_required": True, "max_attempts": 1},
    ),
    Outcome(
        "failure in the acknowledgement tier",
        "bad",
        "pending",
        "dispatch.pending.retry_backoff",
        {"attempted": 1, "retried": 1},
        NOW + 60,
        error="broken",
        more={"ack_required": True},
    ),
    Outcome(
        "last failure in the acknowledgement tier",
        "bad",
        "dead_letter",
        "dispatch.dead_letter.max_attempts",
        {"attempted": 1, "dead_letter": 1},
        NOW + LEASE,
        error="broken",
        more={"ack_required": True, "max_attempts": 1},
    ),
)


@pytest.mark.parametrize("case", TABLE, ids=[case.name for case in TABLE])
async def test_an_outcome_moves_the_row_as_the_table_says(db: StateDB, case: Outcome) -> None:
    dispatch = await enqueue(db, case.route, **case.more)
    counts = await scan(db, case.at, template=case.template)
    row = await one(db, dispatch)
    assert counts == {**NOTHING, **case.counts}
    assert (row["status"], row["attempt"], row["claim_number"]) == (case.status, case.attempt, case.attempt)
    assert (row["next_attempt_at"], row["last_error"], row["updated_at"]) == (case.due, case.error, case.at)
    claimed = [("pending", "delivering", "dispatch.delivering.attempt")] * case.attempt
    before = "delivering" if case.attempt else "pending"
    assert await moves(db, dispatch) == [
        (None, "pending", "dispatch.pending.enqueued"),
        *claimed,
        (before, case.status, case.reason),
    ]


async def test_the_history_of_an_outcome_says_who_moved_the_row_and_what_is_known_of_the_send(db: StateDB) -> None:
    dispatch = await enqueue(db, "bad")
    await scan(db)
    _enqueued, claimed, failed = await list_transitions(db, dispatch)
    for each in (claimed, failed):
        assert (each["source"], each["actor"], each["created_at"]) == ("system", "deliver_due_dispatches", NOW)
    assert claimed["metadata"] == {"attempt": 1, "claim_number": 1}
    assert failed["metadata"] == {"attempt": 1, "claim_number": 1, "outcome": "may_have_happened"}
    assert failed["evidence_refs"] == []


async def test_without_a_template_a_row_is_retried_like_a_failed_command(
    db: StateDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dispatch = await enqueue(db)
    counts = await deliver_due_dispatches(db, now=lambda: NOW)
    row = await one(db, dispatch)
    assert counts == {**NOTHING, "attempted": 1, "retried": 1}
    assert (row["status"], row["next_attempt_at"]) == ("pending", NOW + 60)
    assert "no notify template is configured" in row["last_error"]
    assert (await moves(db, dispatch))[-1] == ("delivering", "pending", "dispatch.pending.retry_backoff")


async def test_without_a_template_and_attempts_a_row_dies_like_a_failed_command(
    db: StateDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dispatch = await enqueue(db, max_attempts=1)
    assert await deliver_due_dispatches(db, now=lambda: NOW) == {**NOTHING, "attempted": 1, "dead_letter": 1}
    assert (await moves(db, dispatch))[-1] == ("delivering", "dead_letter", "dispatch.dead_letter.max_attempts")


@ONLY_SQLITE
async def test_the_template_of_the_current_directory_is_used(
    db: StateDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "halt23.toml").write_text(
        '[dispatch]\nnotify_template = ["sh", "-c", "echo \\"$1\\" > told", "sh", "{deliver_to}"]\n'
    )
    await enqueue(db, "seat-7")
    assert (await deliver_due_dispatches(db, now=lambda: NOW))["delivered"] == 1
    assert (tmp_path / "told").read_text() == "seat-7\n"


@ONLY_SQLITE
@pytest.mark.parametrize(
    "template", [[], "true", [""], ["{payload}"], ["notify", "to={deliver_to}"], ["notify", "x{payload}"], ["a", "b\0"], [1]]
)
async def test_a_template_that_cannot_be_used_is_refused_before_anything_is_claimed(db: StateDB, template: Any) -> None:
    dispatch = await enqueue(db)
    before = await one(db, dispatch)
    with pytest.raises(BadValue, match="notify template"):
        await scan(db, template=template)
    assert await one(db, dispatch) == before


async def test_a_scan_of_nothing_has_exactly_the_five_counters(db: StateDB) -> None:
    assert list((await scan(db)).items()) == [
        ("attempted", 0),
        ("delivered", 0),
        ("dead_letter", 0),
        ("expired", 0),
        ("retried", 0),
    ]


async def test_counters_add_up_over_different_outcomes_of_one_scan(db: StateDB) -> None:
    await enqueue(db, "good")
    await enqueue(db, "good", ack_required=True)
    await enqueue(db, "good", ack_required=True, max_attempts=1)
    await enqueue(db, "bad")
    await enqueue(db, "bad", max_attempts=1)
    await enqueue(db, "good", expires_at=NOW + 1)
    await enqueue_dispatch(db, kind="k", deliver_to="good", now=NOW + 100)
    counts = await scan(db, NOW + 1)
    assert counts == {"attempted": 6, "delivered": 3, "dead_letter": 2, "expired": 1, "retried": 1}


# What a dead claimant left.


async def left_delivering(db: StateDB, attempt: int, **more: Any) -> str:
    """A row whose claimant died: its lease ends at NOW + LEASE."""
    dispatch = await enqueue(db, **more)
    await poke(
        db,
        "UPDATE dispatch_outbox SET status = 'delivering', attempt = :attempt, claim_number = :attempt, "
        "next_attempt_at = :due WHERE id = :id",
        attempt=attempt,
        due=NOW + LEASE,
        id=dispatch,
    )
    return dispatch


async def test_a_row_is_left_to_its_claimant_until_the_lease_is_over(db: StateDB) -> None:
    dispatch = await left_delivering(db, 1)
    assert await scan(db, NOW + LEASE - 0.5) == NOTHING
    assert (await scan(db, NOW + LEASE))["delivered"] == 1
    assert (await one(db, dispatch))["attempt"] == 2
    assert (await moves(db, dispatch))[1:] == [
        ("delivering", "delivering", "dispatch.delivering.attempt"),
        ("delivering", "delivered", "dispatch.delivered.transport_ok"),
    ]


async def test_a_last_attempt_that_was_never_finished_is_dead_and_not_sent_once_more(db: StateDB, tmp_path: Path) -> None:
    dispatch = await left_delivering(db, 2, max_attempts=2)
    counts = await scan(db, NOW + LEASE, template=["touch", str(tmp_path / "sent")])
    row = await get_dispatch(db, dispatch)
    assert counts == {**NOTHING, "attempted": 1, "dead_letter": 1}
    assert row is not None
    assert (row["status"], row["attempt"], row["last_error_is_current"]) == ("dead_letter", 2, True)
    assert row["last_error"] == "attempt 2 of 2 was begun and never finished; its outcome is not known"
    assert not (tmp_path / "sent").exists()


async def test_expiry_wins_over_a_claim_that_was_left(db: StateDB, tmp_path: Path) -> None:
    dispatch = await left_delivering(db, 1, expires_at=NOW + 10)
    counts = await scan(db, NOW + LEASE, template=["touch", str(tmp_path / "sent")])
    assert counts == {**NOTHING, "attempted": 1, "expired": 1}
    assert (await moves(db, dispatch))[-1] == ("delivering", "expired", "dispatch.expired.deadline")
    assert not (tmp_path / "sent").exists()


async def test_expiry_during_the_send_does_not_undo_a_success(db: StateDB) -> None:
    clock = [NOW]

    async def slow(connection: Connection) -> None:
        await connection.request()
        clock[0] = NOW + 8
        await connection.send(OK)

    async with Peer(slow) as peer:
        dispatch = await enqueue(db, peer.url, expires_at=NOW + 5)
        assert (await deliver_due_dispatches(db, now=lambda: clock[0]))["delivered"] == 1
    row = await one(db, dispatch)
    assert (row["status"], row["updated_at"]) == ("delivered", NOW + 8)


# Poison.


async def test_poison_rows_lose_no_other_row(db: StateDB) -> None:
    poison = {route: await enqueue(db, route) for route in ("bad", "hang")}
    good = [await enqueue(db, "good") for _row in range(12)]
    poison["silent"] = await enqueue(db, "silent")
    options = DeliveryOptions(concurrency=3, router=RouterOptions(timeout_seconds=0.3))
    assert await scan(db, options=options) == {**NOTHING, "attempted": 15, "delivered": 12, "retried": 3}
    assert {(await one(db, each))["status"] for each in good} == {"delivered"}
    errors = {route: (await one(db, each))["last_error"] for route, each in poison.items()}
    assert errors == {
        "bad": "broken",
        "silent": "exit 4",
        "hang": "timeout: sh did not end within 0.3 seconds and was killed",
    }


async def test_a_row_that_hangs_delays_no_other_row(db: StateDB) -> None:
    all_there = asyncio.Event()
    seen = []

    async def count(connection: Connection) -> None:
        seen.append(await connection.request())
        await connection.send(OK)
        if len(seen) == 10:
            all_there.set()

    async with Held() as slow, Peer(count) as good:
        hanging = await enqueue(db, slow.url)
        for _row in range(10):
            await enqueue(db, good.url)
        scanning = asyncio.create_task(scan(db, options=DeliveryOptions(concurrency=2)))
        await soon(slow.arrived)
        await soon(all_there)
        assert (await one(db, hanging))["status"] == "delivering"
        slow.go.set()
        assert await scanning == {**NOTHING, "attempted": 11, "delivered": 11}


class Broken(AbstractResolver):
    """Raises what no resolver should, for whatever it is asked."""

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        raise RuntimeError(f"a bug met {host}")

    async def close(self) -> None:
        """Nothing is held."""


async def test_a_bug_inside_a_send_costs_its_row_an_attempt_and_the_scan_goes_on(
    db: StateDB, caplog: pytest.LogCaptureFixture
) -> None:
    first = await enqueue_dispatch(db, kind="k", deliver_to="http://seat.test/x", now=NOW - 1)
    others = [await enqueue(db) for _row in range(3)]
    router = RouterOptions(allow_hosts=("seat.test",), resolver=Broken())
    counts = await scan(db, options=DeliveryOptions(concurrency=1, total=1, router=router))
    assert counts == {**NOTHING, "attempted": 4, "delivered": 3, "retried": 1}
    row = await one(db, first)
    assert (row["status"], row["attempt"], row["next_attempt_at"]) == ("pending", 1, NOW + 60)
    assert row["last_error"] == "RuntimeError: a bug met seat.test"
    assert (await list_transitions(db, first))[-1]["metadata"]["outcome"] == "may_have_happened"
    assert {(await one(db, each))["status"] for each in others} == {"delivered"}
    assert f"dispatch {first}: sending raised" in caplog.text


@ONLY_SQLITE
async def test_the_text_of_an_error_is_kept_up_to_2000_characters(db: StateDB) -> None:
    dispatch = await enqueue(db)
    await scan(db, template=["sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1"])
    assert (await one(db, dispatch))["last_error"] == "x" * 2000


# Times.


async def test_leases_and_due_times_count_from_the_claim_and_not_from_the_scan(db: StateDB) -> None:
    clock = [NOW]
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow(connection: Connection) -> None:
        await connection.request()
        if clock[0] == NOW:
            clock[0] = NOW + 100
        else:
            arrived.set()
            await go.wait()
        await connection.send(response("500 Oops", b"{}", "Connection: close"))

    async with Peer(slow) as peer:
        one_row = await enqueue_dispatch(db, kind="k", deliver_to=peer.url, now=NOW - 1)
        other_row = await enqueue(db, peer.url)
        options = DeliveryOptions(concurrency=1)
        scanning = asyncio.create_task(deliver_due_dispatches(db, now=lambda: clock[0], options=options))
        await soon(arrived)
        claimed = await one(db, other_row)
        clock[0] = NOW + 107
        go.set()
        counts = await scanning
    assert (claimed["claimed_at"], claimed["next_attempt_at"]) == (NOW + 100, NOW + 100 + LEASE)
    assert counts == {**NOTHING, "attempted": 2, "retried": 2}
    rows = [await one(db, each) for each in (one_row, other_row)]
    assert [(row["next_attempt_at"], row["updated_at"]) for row in rows] == [(NOW + 60, NOW + 100), (NOW + 160, NOW + 107)]


async def test_what_becomes_due_during_a_scan_waits_for_the_next(db: StateDB) -> None:
    clock = [NOW]

    async def later(connection: Connection) -> None:
        await connection.request()
        clock[0] = NOW + 1000
        await connection.send(response("500 Oops", b"{}", "Connection: close"))

    async with Peer(later) as peer:
        dispatch = await enqueue(db, peer.url)
        counts = await deliver_due_dispatches(db, now=lambda: clock[0], options=DeliveryOptions(concurrency=1))
    assert counts == {**NOTHING, "attempted": 1, "retried": 1}
    assert (await one(db, dispatch))["next_attempt_at"] == NOW + 60


async def test_a_number_as_now_is_the_exact_time_of_a_short_scan(db: StateDB) -> None:
    dispatch = await enqueue(db)
    began = time.monotonic()
    counts = await deliver_due_dispatches(db, now=NOW + 0.125, notify_template=["false"])
    whole_seconds = range(int(time.monotonic() - began) + 1)  # nothing but 0, unless the machine is very busy
    row = await one(db, dispatch)
    assert counts["retried"] == 1
    assert row["claimed_at"] - (NOW + 0.125) in whole_seconds
    assert row["updated_at"] - (NOW + 0.125) in whole_seconds
    assert row["next_attempt_at"] == row["claimed_at"] + 60


@ONLY_SQLITE
async def test_a_template_of_the_current_directory_that_cannot_be_used_is_refused_before_anything_is_claimed(
    db: StateDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "halt23.toml").write_text('[dispatch]\nnotify_template = ["notify", "to={deliver_to}"]\n')
    dispatch = await enqueue(db)
    with pytest.raises(BadValue, match="beside other text"):
        await deliver_due_dispatches(db, now=lambda: NOW)
    assert (await one(db, dispatch))["attempt"] == 0


@ONLY_SQLITE
async def test_a_whole_number_as_now_is_taken(db: StateDB) -> None:
    dispatch = await enqueue(db)
    assert (await deliver_due_dispatches(db, now=int(NOW) + 3, notify_template=["true"]))["delivered"] == 1
    assert NOW + 3 <= (await one(db, dispatch))["claimed_at"] < NOW + 100


@ONLY_SQLITE
@pytest.mark.parametrize(("wish", "due"), [("600", NOW + 600), ("5", NOW + 60), ("soon", NOW + 60)])
async def test_a_destination_may_put_the_next_attempt_off_and_never_bring_it_nearer(db: StateDB, wish: str, due: float) -> None:
    busy = response("503 Busy", b"{}", f"Retry-After: {wish}", "Connection: close")
    async with Peer(answering(busy)) as peer:
        dispatch = await enqueue(db, peer.url)
        assert (await scan(db))["retried"] == 1
    row = await one(db, dispatch)
    assert (row["next_attempt_at"], row["last_error"]) == (due, "unavailable: the receiver answered 503")


async def test_a_stale_error_is_told_from_a_current_one(db: StateDB) -> None:
    async def seen() -> tuple[Any, ...]:
        row = await get_dispatch(db, dispatch)
        assert row is not None
        return row["status"], row["last_error"], row["last_error_attempt"], row["last_error_is_current"]

    async with Held() as held:
        dispatch = await enqueue(db)
        assert await seen() == ("pending", None, None, False)
        await poke(db, "UPDATE dispatch_outbox SET deliver_to = 'bad' WHERE id = :id", id=dispatch)
        await scan(db)
        assert await seen() == ("pending", "broken", 1, True)
        await poke(db, "UPDATE dispatch_outbox SET deliver_to = :url WHERE id = :id", url=held.url, id=dispatch)
        scanning = asyncio.create_task(scan(db, NOW + 60))
        await soon(held.arrived)
        assert await seen() == ("delivering", "broken", 1, False)
        held.go.set()
        await scanning
    assert await seen() == ("delivered", "broken", 1, False)


# Who comes too late.


@pytest.mark.parametrize("ending", ["exit 0", "echo late >&2; exit 1"], ids=["success", "failure"])
async def test_a_claimant_that_was_overtaken_changes_nothing_and_is_told(
    db: StateDB, tmp_path: Path, caplog: pytest.LogCaptureFixture, ending: str
) -> None:
    dispatch = await enqueue(db)
    async with gate(tmp_path, ending) as command:
        first = asyncio.create_task(scan(db, template=command.template))
        await soon(command.begun)
        assert await scan(db, NOW + LEASE - 1) == NOTHING
        assert (await scan(db, NOW + LEASE, template=["false"]))["retried"] == 1
        before = await one(db, dispatch), await moves(db, dispatch)
        command.let_go()
        assert await first == {**NOTHING, "attempted": 1}
    assert (await one(db, dispatch), await moves(db, dispatch)) == before
    assert (before[0]["status"], before[0]["attempt"]) == ("pending", 2)
    (told,) = [record for record in caplog.records if "came too late" in record.getMessage()]
    assert told.levelname == "WARNING"
    assert f"dispatch {dispatch}: the outcome of attempt 1" in told.getMessage()


async def test_after_a_forced_retry_an_older_claimant_of_the_same_attempt_number_changes_nothing(
    db: StateDB, caplog: pytest.LogCaptureFixture
) -> None:
    async with Held() as older, Held() as newer:
        dispatch = await enqueue(db, older.url, max_attempts=2)
        first = asyncio.create_task(scan(db))
        await soon(older.arrived)
        await poke(db, "UPDATE dispatch_outbox SET deliver_to = 'bad' WHERE id = :id", id=dispatch)
        assert (await scan(db, NOW + LEASE))["dead_letter"] == 1
        assert await retry_dispatch(db, dispatch, now=NOW + 20)
        await poke(db, "UPDATE dispatch_outbox SET deliver_to = :url WHERE id = :id", url=newer.url, id=dispatch)
        third = asyncio.create_task(scan(db, NOW + 20))
        await soon(newer.arrived)
        before = await one(db, dispatch)
        assert (before["status"], before["attempt"], before["claim_number"]) == ("delivering", 1, 3)
        older.go.set()
        assert await first == {**NOTHING, "attempted": 1}
        assert await one(db, dispatch) == before
        newer.go.set()
        assert await third == {**NOTHING, "attempted": 1, "delivered": 1}
    row = await one(db, dispatch)
    assert (row["status"], row["attempt"], row["claim_number"]) == ("delivered", 1, 3)
    assert [each.getMessage().count("came too late") for each in caplog.records if each.levelname == "WARNING"] == [1]


async def test_the_outcome_of_a_row_that_was_purged_meanwhile_brings_nothing_back(
    db: StateDB, caplog: pytest.LogCaptureFixture
) -> None:
    async with Held() as held:
        dispatch = await enqueue(db, held.url)
        first = asyncio.create_task(scan(db))
        await soon(held.arrived)
        assert await purge_dispatch(db, dispatch)
        held.go.set()
        assert await first == {**NOTHING, "attempted": 1}
    assert await get_dispatch(db, dispatch) is None
    assert len(await moves(db, dispatch)) == 2
    assert "came too late and changed nothing" in caplog.text


async def test_a_scan_that_is_cancelled_kills_its_command_and_leaves_the_row_to_the_lease(db: StateDB, tmp_path: Path) -> None:
    dispatch = await enqueue(db)
    async with gate(tmp_path) as command:
        scanning = asyncio.create_task(
            scan(
                db,
                template=[
                    *command.template[:2],
                    'echo $$ > "$3"; ' + command.template[2],
                    *command.template[3:],
                    str(tmp_path / "pid"),
                ],
            )
        )
        await soon(command.begun)
        pid = int((tmp_path / "pid").read_text())
        scanning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await scanning
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    row = await one(db, dispatch)
    assert (row["status"], row["next_attempt_at"]) == ("delivering", NOW + LEASE)
    assert (await scan(db, NOW + LEASE))["delivered"] == 1


# The database refuses while outcomes are written.


@asynccontextmanager
async def locked_out(path: Path, held: Held) -> AsyncIterator[tuple[StateDB, str, Any]]:
    """An impatient outbox whose one row is being sent, and a connection of another that holds the lock."""
    async with StateDB(path, busy_timeout_seconds=0.05) as db:
        dispatch = await enqueue(db, held.url)
        other = choose().module.connect(str(path), isolation_level=None)
        try:
            yield db, dispatch, other
        finally:
            other.close()


async def test_an_outcome_that_the_locked_database_refuses_is_written_at_the_second_try_and_the_error_is_raised(
    tmp_path: Path,
) -> None:
    async with Held() as held, locked_out(tmp_path / "db", held) as (db, dispatch, other):
        scanning = asyncio.create_task(scan(db))
        await soon(held.arrived)
        other.execute("BEGIN IMMEDIATE")
        faults.arm(Fault("dispatch.outcome.before", 2), lambda _fault: other.execute("ROLLBACK"))
        held.go.set()
        with pytest.raises(StoreLocked, match="claims and outcomes: the database is locked"):
            await scanning
        assert (await one(db, dispatch))["status"] == "delivered"
        assert [(row["n"]) for row in await peek(db, "SELECT count(*) AS n FROM status_transitions")] == [3]


async def test_an_outcome_that_is_refused_twice_is_left_to_the_lease_and_the_error_is_raised(tmp_path: Path) -> None:
    async with Held() as held, locked_out(tmp_path / "db", held) as (db, dispatch, other):
        scanning = asyncio.create_task(scan(db))
        await soon(held.arrived)
        other.execute("BEGIN IMMEDIATE")
        held.go.set()
        with pytest.raises(StoreLocked, match="claims and outcomes"):
            await asyncio.wait_for(scanning, BOUND)
        other.execute("ROLLBACK")
        row = await one(db, dispatch)
        assert (row["status"], row["attempt"], row["next_attempt_at"]) == ("delivering", 1, NOW + LEASE)
        assert (await scan(db, NOW + LEASE))["delivered"] == 1
        assert (await one(db, dispatch))["attempt"] == 2


async def test_a_scan_that_cannot_claim_raises_and_changes_nothing(tmp_path: Path) -> None:
    async with Held() as held, locked_out(tmp_path / "db", held) as (db, dispatch, other):
        before = await one(db, dispatch)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked):
            await scan(db)
        other.execute("ROLLBACK")
        assert await one(db, dispatch) == before
        assert held.connections == 0
