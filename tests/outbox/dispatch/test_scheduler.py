"""The scheduler: a tick that fails is followed by the next, and a stop loses nothing that is being sent (ADR-0059, D6)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from outbox import faults
from outbox.dispatch import DispatchSettings, RetentionPolicy, StateDB, StoreLocked, enqueue_dispatch, list_admin_events
from outbox.dispatch.delivery import Delivery
from outbox.dispatch.scheduler import Scheduler
from outbox.dispatch.settings import Destination
from outbox.faults import Fault
from outbox.sqlite_choice import choose
from scenarios.engine import postgres
from scenarios.engine.postgres import PostgresServer
from tests.outbox.dispatch.peek import moves, one, peek
from tests.outbox.dispatch.waiting import BOUND, NOTHING, NOW, Gate, Held, gate, soon
from tests.support import ProcessBox

QUICK = 0.01
FIXED = Destination(fixed=True)
# What does not depend on the database is shown on one.
ONLY_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


async def enqueue(db: StateDB, deliver_to: str = "seat-1", **more: Any) -> str:
    return await enqueue_dispatch(db, **{"kind": "k", "deliver_to": deliver_to, "now": NOW, **more})


def settings(*command: str, **more: Any) -> DispatchSettings:
    return DispatchSettings(notify_template=command or ("true",), destination=FIXED, **{"tick_seconds": QUICK, **more})


class Told(logging.Handler):
    """Hears of each scan, and of each line in the log; `scans` and `lines` are what was said until now."""

    def __init__(self) -> None:
        super().__init__()
        self.scans: list[Delivery] = []
        self.records: list[logging.LogRecord] = []
        self._news = asyncio.Event()

    def scan(self, delivery: Delivery) -> None:
        """For the scheduler's `told`."""
        self.scans.append(delivery)
        self._news.set()

    def emit(self, record: logging.LogRecord) -> None:
        """For the log."""
        self.records.append(record)
        self._news.set()

    async def until(self, wanted: Callable[[], bool]) -> None:
        """Wait, with a bound, until what was said is enough."""
        async with asyncio.timeout(BOUND):
            while not wanted():
                self._news.clear()
                await self._news.wait()

    def failures(self, what: str) -> list[logging.LogRecord]:
        """Log records of failed scans, or of failed retentions."""
        return [record for record in self.records if record.getMessage().startswith(f"the {what} failed")]

    def delivered(self) -> int:
        """How many sends succeeded in all scans."""
        return sum(each.counts["delivered"] for each in self.scans)


@pytest.fixture
def told() -> Iterator[Told]:
    heard = Told()
    log = logging.getLogger("outbox.dispatch")
    log.addHandler(heard)
    yield heard
    log.removeHandler(heard)


@asynccontextmanager
async def at_work(scheduler: Scheduler) -> AsyncIterator["asyncio.Task[None]"]:
    """The scheduler running; stopped in order at the end, if it was not before."""
    task = asyncio.create_task(scheduler.run())
    try:
        yield task
        scheduler.stop()
        await asyncio.wait_for(task, BOUND)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# A failure is told, and the next tick comes.


@contextmanager
def lock_of_another(path: Path) -> Iterator[Any]:
    """A connection of somebody else that holds the lock until `ROLLBACK`."""
    other = choose().module.connect(str(path), isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield other
    finally:
        other.close()


async def test_scans_that_find_the_database_locked_are_told_and_the_one_after_delivers(tmp_path: Path, told: Told) -> None:
    async with StateDB(tmp_path / "db", busy_timeout_seconds=0.02) as db:
        dispatch = await enqueue(db)
        with lock_of_another(tmp_path / "db") as other:
            async with at_work(Scheduler(db, settings(), clock=lambda: NOW, told=told.scan)):
                await told.until(lambda: len(told.failures("scan")) >= 2)
                assert told.scans == []
                other.execute("ROLLBACK")
                await told.until(lambda: told.delivered() == 1)
        assert (await one(db, dispatch))["status"] == "delivered"
    failure = told.failures("scan")[0]
    assert "the next tick tries again" in failure.getMessage()
    assert "the database is locked" in failure.getMessage()
    assert (failure.levelname, bool(failure.exc_info)) == ("ERROR", False)


async def test_scans_that_find_the_server_gone_are_told_and_the_one_after_its_return_delivers(told: Told) -> None:
    if postgres.programs() is None:
        pytest.skip(postgres.MISSING)
    with PostgresServer() as server:
        async with StateDB(server.new_database()) as db:
            dispatch = await enqueue(db)
            server.kill()
            async with at_work(Scheduler(db, settings(), clock=lambda: NOW, told=told.scan)):
                await told.until(lambda: len(told.failures("scan")) >= 2)
                await asyncio.to_thread(server.start)
                await told.until(lambda: told.delivered() == 1)
            assert (await one(db, dispatch))["status"] == "delivered"
            assert len(await moves(db, dispatch)) == 3
    assert "the database cannot be reached, or the connection broke" in told.failures("scan")[0].getMessage()


@pytest.mark.parametrize(
    ("error", "has_traceback"), [(StoreLocked("somebody has it"), False), (RuntimeError("a bug of ours"), True)]
)
async def test_a_bug_is_told_with_its_traceback_a_failure_of_the_world_in_a_line_and_neither_stops_the_ticks(
    db: StateDB, told: Told, error: Exception, has_traceback: bool
) -> None:
    await enqueue(db)

    def fail(_fault: Fault) -> None:
        raise error

    faults.arm(Fault("dispatch.claim.before"), fail)
    async with at_work(Scheduler(db, settings(), clock=lambda: NOW, told=told.scan)):
        await told.until(lambda: told.delivered() == 1)
    (failure,) = told.failures("scan")
    assert str(error) in failure.getMessage()
    assert bool(failure.exc_info) is has_traceback


async def test_a_failed_scan_does_not_keep_the_retention_from_its_work(db: StateDB, told: Told) -> None:
    old = await enqueue(db)
    scheduler = Scheduler(db, settings(), clock=lambda: NOW)
    assert (await scheduler.scan()).counts["delivered"] == 1

    def fail(_fault: Fault) -> None:
        raise RuntimeError("a bug of ours")

    faults.arm(Fault("dispatch.claim.before"), fail)
    policy = RetentionPolicy(delivered_seconds=10)
    assert await Scheduler(db, settings(retention=policy), clock=lambda: NOW + 10).tick() is None
    assert len(told.failures("scan")) == 1
    assert await peek(db, "SELECT id FROM dispatch_outbox WHERE id = :id", id=old) == []


@ONLY_SQLITE
async def test_a_failed_retention_is_told_and_the_next_tick_tries_it_again(
    db: StateDB, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_given: object, **_named: object) -> None:
        raise StoreLocked("somebody has it")

    monkeypatch.setattr("outbox.dispatch.scheduler.apply_retention", fail)
    await enqueue(db)
    scheduler = Scheduler(db, settings(retention=RetentionPolicy()), clock=lambda: NOW, told=told.scan)
    async with at_work(scheduler):
        await told.until(lambda: len(told.failures("retention")) >= 2 and len(told.scans) >= 2)
    assert "somebody has it" in told.failures("retention")[0].getMessage()
    assert told.delivered() == 1


# Ticks.


async def test_a_tick_follows_the_other_and_each_scan_is_told(db: StateDB, told: Told) -> None:
    async with at_work(Scheduler(db, settings(), clock=lambda: NOW, told=told.scan)):
        await told.until(lambda: len(told.scans) >= 4)
    assert {tuple(each.counts.items()) for each in told.scans} == {tuple(NOTHING.items())}


async def test_a_row_is_sent_again_at_the_tick_at_which_it_is_due(db: StateDB, told: Told) -> None:
    clock = [NOW]
    dispatch = await enqueue(db)
    async with at_work(Scheduler(db, settings("false"), clock=lambda: clock[0], told=told.scan)):
        await told.until(lambda: sum(each.counts["retried"] for each in told.scans) == 1)
        seen = len(told.scans)
        await told.until(lambda: len(told.scans) >= seen + 3)
        assert (await one(db, dispatch))["attempt"] == 1
        clock[0] = NOW + 60
        await told.until(lambda: sum(each.counts["retried"] for each in told.scans) == 2)
    row = await one(db, dispatch)
    assert (row["attempt"], row["next_attempt_at"]) == (2, NOW + 60 + 120)


async def test_a_wake_does_not_wait_for_the_tick(db: StateDB, told: Told) -> None:
    scheduler = Scheduler(db, settings(tick_seconds=3600), clock=lambda: NOW, told=told.scan)
    async with at_work(scheduler):
        await told.until(lambda: len(told.scans) == 1)
        dispatch = await enqueue(db)
        scheduler.wake()
        await told.until(lambda: len(told.scans) == 2)
        assert (await one(db, dispatch))["status"] == "delivered"


@ONLY_SQLITE
async def test_a_wake_during_a_scan_is_not_lost(db: StateDB, told: Told) -> None:
    async with Held() as held:
        await enqueue(db, held.url)
        scheduler = Scheduler(db, settings(tick_seconds=3600), clock=lambda: NOW, told=told.scan)
        async with at_work(scheduler):
            await soon(held.arrived)
            scheduler.wake()
            held.go.set()
            await told.until(lambda: len(told.scans) == 2)


@ONLY_SQLITE
async def test_the_settings_reach_the_transports(db: StateDB, tmp_path: Path) -> None:
    rows = [await enqueue(db) for _row in range(10)]
    made = settings("sh", "-c", "touch made; exit 1", jitter_fraction=0.5)
    await Scheduler(db, made, clock=lambda: NOW, directory=tmp_path).tick()
    due = [(await one(db, each))["next_attempt_at"] for each in rows]
    assert (tmp_path / "made").exists()
    assert all(NOW + 30 < each <= NOW + 60 for each in due)
    assert len(set(due)) == 10


@ONLY_SQLITE
async def test_without_a_template_the_one_of_the_current_directory_is_not_taken(
    db: StateDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halt23.toml").write_text('[dispatch]\nnotify_template = ["true"]\n')
    monkeypatch.chdir(tmp_path)
    dispatch = await enqueue(db)
    delivery = await Scheduler(db, DispatchSettings(), clock=lambda: NOW).tick()
    assert delivery is not None
    assert delivery.counts["retried"] == 1
    assert "no notify template" in (await one(db, dispatch))["last_error"]


# Retention.


async def test_without_a_policy_nothing_is_ever_deleted(db: StateDB) -> None:
    dispatch = await enqueue(db)
    await Scheduler(db, settings(), clock=lambda: NOW).tick()
    await Scheduler(db, settings(), clock=lambda: NOW + 1e9).tick()
    assert (await one(db, dispatch))["status"] == "delivered"
    assert await list_admin_events(db) == []


async def test_the_policy_is_applied_after_each_scan_by_the_schedulers_clock(db: StateDB) -> None:
    dispatch = await enqueue(db)
    made = settings(retention=RetentionPolicy(delivered_seconds=100, every_seconds=0))
    await Scheduler(db, made, clock=lambda: NOW).tick()
    await Scheduler(db, made, clock=lambda: NOW + 99).tick()
    assert (await one(db, dispatch))["status"] == "delivered"
    await Scheduler(db, made, clock=lambda: NOW + 100).tick()
    assert await peek(db, "SELECT id FROM dispatch_outbox") == []
    (event,) = await list_admin_events(db)
    assert (event["actor"], event["details"]["deleted"], event["created_at"]) == ("retention", {"delivered": 1}, NOW + 100)


# Stopping.


@ONLY_SQLITE
async def test_a_scheduler_that_was_stopped_before_it_ran_does_nothing(db: StateDB, told: Told) -> None:
    dispatch = await enqueue(db)
    scheduler = Scheduler(db, settings(), clock=lambda: NOW, told=told.scan)
    scheduler.stop()
    await asyncio.wait_for(scheduler.run(), BOUND)
    assert told.scans == []
    assert (await one(db, dispatch))["status"] == "pending"


@ONLY_SQLITE
async def test_a_stop_between_two_ticks_does_not_wait_for_the_second(db: StateDB, told: Told) -> None:
    scheduler = Scheduler(db, settings(tick_seconds=3600), clock=lambda: NOW, told=told.scan)
    async with at_work(scheduler) as task:
        await told.until(lambda: len(told.scans) == 1)
        scheduler.stop()
        await asyncio.wait_for(task, BOUND)
    assert len(told.scans) == 1


async def test_a_stop_claims_nothing_more_and_records_what_is_being_sent(db: StateDB, told: Told) -> None:
    policy = RetentionPolicy(delivered_seconds=0, every_seconds=0)
    async with Held() as held:
        first = await enqueue(db, held.url)
        second = await enqueue(db, held.url, now=NOW + 1)
        scheduler = Scheduler(db, settings(concurrency=1, retention=policy), clock=lambda: NOW + 1, told=told.scan)
        async with at_work(scheduler) as task:
            await soon(held.arrived)
            scheduler.stop()
            # The scan reads the flag before it claims; an answer that comes now is recorded and starts nothing.
            assert (await one(db, first))["status"] == "delivering"
            assert not task.done()
            held.go.set()
            await asyncio.wait_for(task, BOUND)
        assert held.connections == 1
    assert [each.counts for each in told.scans] == [{**NOTHING, "attempted": 1, "delivered": 1}]
    assert (await one(db, first))["status"] == "delivered"
    assert ((await one(db, second))["status"], (await one(db, second))["attempt"]) == ("pending", 0)


async def stopped_by(number: str, url: str, directory: Path, command: Gate, box: ProcessBox) -> None:
    """Two rows, one send at once, and a command that stops its own scheduler in the middle."""
    program = command.template[2].replace("echo", f"kill -{number} $PPID; echo", 1)
    elements = ", ".join(f"'{each}'" if "'" not in each else f'"""{each}"""' for each in ["sh", "-c", program])
    rest = ", ".join(f"'{each}'" for each in command.template[3:])
    (directory / "halt23.toml").write_text(
        f"[dispatch]\nnotify_template = [{elements}, {rest}]\nconcurrency = 1\n[dispatch.destination]\nfixed = true\n"
    )
    async with StateDB(url) as db:
        first = await enqueue(db, now=1.0)
        second = await enqueue(db, now=2.0)
        arguments = ["run", "--db", url, "--project", str(directory)]
        running = await asyncio.to_thread(box.launch, "outbox.dispatch", arguments)
        await soon(command.begun)
        assert running.running
        assert (await one(db, first))["status"] == "delivering"
        command.let_go()
        ended = await asyncio.to_thread(running.wait)
        assert (ended.exit_code, ended.signal) == (0, None)
        assert ended.stdout == "attempted 1, delivered 1, dead_letter 0, expired 0, retried 0, superseded 0\n"
        assert ended.stderr.endswith("dispatch: stopped; nothing is being sent\n")
        assert (await moves(db, first))[1:] == [
            ("pending", "delivering", "dispatch.delivering.attempt"),
            ("delivering", "delivered", "dispatch.delivered.transport_ok"),
        ]
        assert ((await one(db, second))["status"], (await one(db, second))["attempt"]) == ("pending", 0)


async def test_sigterm_while_a_command_runs_ends_the_process_with_0_and_the_outcome_recorded(
    url: str, tmp_path: Path, box: ProcessBox
) -> None:
    async with gate(tmp_path) as command:
        await stopped_by("TERM", url, tmp_path, command, box)


async def test_sigint_is_as_orderly(tmp_path: Path, box: ProcessBox) -> None:
    async with gate(tmp_path) as command:
        await stopped_by("INT", str(tmp_path / "db"), tmp_path, command, box)
