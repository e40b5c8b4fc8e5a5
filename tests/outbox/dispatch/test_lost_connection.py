"""PostgreSQL goes away in the middle of each transaction: a typed error says what was being done, nothing is half written, and
the same `StateDB` does it again when the server is back."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from sqlalchemy import Connection, event

from outbox.dispatch import (
    DispatchSettings,
    RetentionPolicy,
    StateDB,
    StoreLost,
    ack_dispatch,
    apply_retention,
    enqueue_dispatch,
    purge_dispatch,
    purge_dispatches,
    retry_dispatch,
)
from outbox.dispatch.delivery import deliver
from outbox.dispatch.scheduler import Scheduler
from scenarios.engine import postgres
from scenarios.engine.postgres import PostgresServer
from tests.outbox.dispatch.peek import peek, poke
from tests.outbox.dispatch.programs import Programs, goes_on, identity
from tests.outbox.dispatch.test_two_schedulers import HALF_SETTLED
from tests.outbox.world import World
from tests.support import BOUND_SECONDS

NOW, LEASE_OVER = 1000.0, 1015.0
A, B, C = identity(1), identity(2), identity(3)
TABLES = ("dispatch_outbox", "status_transitions", "admin_events")
Books = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that the tests here may kill; it is up before each."""
    if postgres.programs() is None:
        pytest.skip(postgres.MISSING)
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="module")
def address(own_server: PostgresServer) -> str:
    return own_server.new_database()


@pytest.fixture
async def db(address: str) -> AsyncIterator[StateDB]:
    async with StateDB(address) as opened:
        await clear(opened)
        yield opened


@contextlib.contextmanager
def away(server: PostgresServer) -> Iterator[None]:
    """The server is killed, and back at the end."""
    server.kill()
    try:
        yield
    finally:
        server.start()


async def clear(db: StateDB) -> None:
    for table in TABLES:
        await poke(db, f"DELETE FROM {table}")


async def books(db: StateDB) -> Books:
    """All rows, without their running numbers."""
    tables = {table: await peek(db, f"SELECT * FROM {table} ORDER BY created_at, id") for table in TABLES}
    for table in TABLES[1:]:
        for row in tables[table]:
            del row["id"]
    return tables


# Everything that writes, but for the scan.


class Operation(NamedTuple):
    """Something that writes in one transaction: what it needs first, the work, and what the error says was being done: all of
    these in turn, when it is cut off ever later."""

    name: str
    prepare: Callable[[StateDB, str], Awaitable[None]]
    work: Callable[[StateDB, str], Awaitable[object]]
    doing: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


async def add(db: StateDB, route: str, *ids: str, **options: Any) -> None:
    for each in ids:
        await enqueue_dispatch(db, kind="test", deliver_to=route, dedup_key=each, dispatch_id=each, now=NOW, **options)


async def scan(db: StateDB, now: float) -> dict[str, int]:
    return (await deliver(db, now=lambda: now, resolve_template=False)).counts


async def nothing(_db: StateDB, _route: str) -> None:
    """An empty database."""


async def asking(db: StateDB, route: str) -> None:
    await add(db, route, A, ack_required=True, ack_token=A)


async def buried(db: StateDB, _route: str) -> None:
    await add(db, "no URL, and no template", A, max_attempts=1)
    await scan(db, NOW)


async def three_buried(db: StateDB, _route: str) -> None:
    await add(db, "no URL, and no template", A, B, C, max_attempts=1)
    await scan(db, NOW)


async def enqueue_in_a_lane(db: StateDB, route: str) -> None:
    await add(db, route, A, lane="a lane")


async def enqueue_with_the_callers_rows(db: StateDB, route: str) -> None:
    async with db.begin() as connection:
        for each in (A, B):
            await enqueue_dispatch(
                connection, kind="test", deliver_to=route, dedup_key=each, dispatch_id=each, now=NOW, lane="a lane"
            )


CALLERS = "enqueueing a 'test' in the caller's transaction"
OPERATIONS = [
    Operation("enqueue", nothing, enqueue_in_a_lane, ("enqueueing a 'test'",)),
    Operation("enqueue-with-others", nothing, enqueue_with_the_callers_rows, (CALLERS, "a transaction of the caller's")),
    Operation("ack", asking, lambda db, _route: ack_dispatch(db, A, A, now=NOW + 1), (f"reading {A}", f"changing {A}")),
    Operation("retry", buried, lambda db, _route: retry_dispatch(db, A, now=NOW + 1), (f"reading {A}", f"changing {A}")),
    Operation("purge", three_buried, lambda db, _route: purge_dispatch(db, A, now=NOW + 1), (f"purging {A}",)),
    Operation(
        "purge-many",
        three_buried,
        lambda db, _route: purge_dispatches(db, statuses=["dead_letter"], now=NOW + 1),
        ("looking for what to purge", "purging"),
    ),
    Operation(
        "retention",
        three_buried,
        lambda db, _route: apply_retention(db, RetentionPolicy(None, None, 0, 0), now=NOW + 1),
        ("looking for what to purge", "purging"),
    ),
]


class Cut:
    """Acts at the boundary `number` of what a database is asked to do: before its statement of that number, a commit counting
    as one. Boundaries are counted from 1, over all connections."""

    def __init__(self, db: StateDB, number: int, act: Callable[[Connection], None], *, commits_only: bool = False) -> None:
        self._left, self._act = number, act
        self.was_made = False
        assert db._engine is not None
        self._engine = db._engine.sync_engine
        self._listeners: list[tuple[str, Callable[..., None]]] = [("commit", self._reached)]
        if not commits_only:
            self._listeners.append(("before_cursor_execute", self._reached))

    def __enter__(self) -> "Cut":
        for name, listener in self._listeners:
            event.listen(self._engine, name, listener)
        return self

    def __exit__(self, *_raised: object) -> None:
        for name, listener in self._listeners:
            event.remove(self._engine, name, listener)

    def _reached(self, connection: Connection, *_what: object) -> None:
        self._left -= 1
        if self._left == 0:
            self.was_made = True
            self._act(connection)


@pytest.fixture
def terminated(address: str) -> Iterator[Callable[[Connection], None]]:
    """Ends the server's side of a connection, by an administrator's hand, and waits until it is gone."""
    with psycopg.connect(address, autocommit=True) as administrator:

        def terminate(connection: Connection) -> None:
            driver: Any = connection.connection.driver_connection
            query = "SELECT pg_terminate_backend(%s, 30000)"
            assert administrator.execute(query, [driver.info.backend_pid]).fetchone() == (True,)

        yield terminate


# Broken at every boundary of every transaction.


def told(error: StoreLost, doing: tuple[str, ...]) -> str:
    """What the error says was being done."""
    assert error.exit_code == 16
    (said,) = [each for each in doing if f"{each}: the database cannot be reached, or the connection broke (" in str(error)]
    return said


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_a_connection_that_breaks_anywhere_in_an_operation_leaves_nothing_of_it_and_it_can_be_done_again(
    db: StateDB, terminated: Callable[[Connection], None], operation: Operation
) -> None:
    await operation.prepare(db, "nowhere")
    before = await books(db)
    await operation.work(db, "nowhere")
    after = await books(db)
    assert after != before
    doings = []
    for number in range(1, 100):
        await clear(db)
        await operation.prepare(db, "nowhere")
        with Cut(db, number, terminated) as cut:
            try:
                await operation.work(db, "nowhere")
            except StoreLost as error:
                doings.append(told(error, operation.doing))
        if not cut.was_made:
            break
        assert len(doings) == number, "the operation went on as if nothing had been"
        assert await books(db) in (before, after)
        # Done, if anything was, in an earlier transaction than the broken one; so again, where that is still allowed.
        if await books(db) == before:
            await operation.work(db, "nowhere")
        assert await books(db) == after
    assert tuple(dict.fromkeys(doings)) == operation.doing
    assert len(doings) >= 3


async def test_a_connection_that_breaks_anywhere_in_a_scan_costs_the_claim_or_nothing(
    db: StateDB, world: World, terminated: Callable[[Connection], None]
) -> None:
    world.start_receiver()
    fresh, done = 0, 0
    for number in range(1, 100):
        await clear(db)
        each = identity(number)
        await add(db, f"{world.url}/operations", each)
        with Cut(db, number, terminated) as cut:
            try:
                await scan(db, NOW)
            except StoreLost as error:
                assert str(error).startswith(f"{db.name}: claims and outcomes: ")
                assert cut.was_made
            else:
                assert not cut.was_made
                break
        (row,) = (await books(db))["dispatch_outbox"]
        state = (row["status"], row["attempt"], len((await books(db))["status_transitions"]))
        # The outcome in hand is written by a second try.
        assert state in (("pending", 0, 1), ("delivered", 1, 3))
        fresh, done = fresh + (row["status"] == "pending"), done + (row["status"] == "delivered")
        await scan(db, NOW)
        (row,) = (await books(db))["dispatch_outbox"]
        assert (row["status"], row["attempt"]) == ("delivered", 1)
    assert fresh >= 3
    assert done >= 3
    arrived = [record["data"]["key"] for record in world.records("arrivals", "arrival")]
    assert arrived == [identity(each) for each in range(1, number + 1)]


# The server killed.


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_a_server_that_is_killed_before_the_commit_leaves_nothing_and_the_same_object_works_when_it_is_back(
    db: StateDB, own_server: PostgresServer, operation: Operation
) -> None:
    await operation.prepare(db, "nowhere")
    before = await books(db)
    reads = operation.doing[:-1] if operation.name in ("ack", "retry", "purge-many", "retention") else ()
    cut = Cut(db, len(reads) + 1, lambda _connection: own_server.kill(), commits_only=True)
    with cut, pytest.raises(StoreLost) as lost:
        await operation.work(db, "nowhere")
    assert cut.was_made
    assert told(lost.value, operation.doing) == operation.doing[-1]
    with pytest.raises(StoreLost):  # as long as it is away
        await operation.work(db, "nowhere")
    own_server.start()
    assert await books(db) == before
    await operation.work(db, "nowhere")
    assert await books(db) != before


@pytest.mark.parametrize(
    ("point", "status", "attempt", "sent"),
    [("dispatch.claim.written", "pending", 0, 0), ("dispatch.outcome.written", "delivering", 1, 1)],
)
async def test_a_server_that_is_killed_in_the_middle_of_a_scan_is_told_by_exit_code_16_and_the_next_scan_recovers(
    db: StateDB, own_server: PostgresServer, world: World, *, point: str, status: str, attempt: int, sent: int
) -> None:
    world.start_receiver()
    programs = Programs(world.box, db.name)
    await add(db, f"{world.url}/operations", A)
    paused = programs.paused(point, "scan", "--now", NOW)
    try:
        with away(own_server):
            ended = goes_on(paused)
    finally:
        paused.kill()
    assert (ended.exit_code, ended.stdout) == (16, "")
    assert f"program: {db.name}: claims and outcomes: the database cannot be reached" in ended.stderr
    (row,) = (await books(db))["dispatch_outbox"]
    assert (row["status"], row["attempt"]) == (status, attempt)
    assert len(world.records("arrivals", "arrival")) == sent
    await scan(db, LEASE_OVER)
    (row,) = (await books(db))["dispatch_outbox"]
    assert (row["status"], row["attempt"], row["claim_number"]) == ("delivered", attempt + 1, attempt + 1)
    assert len(world.records("effects", "effect")) == 1


@pytest.mark.parametrize(
    ("point", "command", "doing"),
    [
        ("dispatch.enqueue.written", "enqueue", "enqueueing a 'test'"),
        ("dispatch.purge.written", "purge", f"purging {B}"),
        ("dispatch.purge.written", "retain", "purging"),
    ],
)
async def test_a_server_that_is_killed_under_a_program_is_told_by_exit_code_16_and_nothing_is_half_done(
    db: StateDB, own_server: PostgresServer, world: World, *, point: str, command: str, doing: str
) -> None:
    programs = Programs(world.box, db.name)
    await add(db, "nowhere", B, max_attempts=1)
    await scan(db, NOW)
    before = await books(db)
    arguments = [] if command == "retain" else [A if command == "enqueue" else B]
    paused = programs.paused(point, command, *arguments, "--now", NOW + 1)
    try:
        with away(own_server):
            ended = goes_on(paused)
    finally:
        paused.kill()
    assert (ended.exit_code, ended.stdout) == (16, "")
    assert f"program: {db.name}: {doing}: the database cannot be reached" in ended.stderr
    assert await books(db) == before
    programs.done(command, *arguments, "--now", NOW + 1)
    assert await books(db) != before


@pytest.mark.parametrize("command", ["ack", "retry"])
async def test_the_command_line_tells_by_exit_code_16_what_a_broken_connection_cut_off(
    db: StateDB, world: World, address: str, command: str
) -> None:
    await (asking if command == "ack" else buried)(db, "nowhere")
    before = await books(db)
    arguments = ["--db", address, command, A, *([A] if command == "ack" else [])]
    with psycopg.connect(address) as other, psycopg.connect(address, autocommit=True) as administrator:
        # Another transaction holds the row, so the command stands in the middle of its own.
        other.execute("SELECT * FROM dispatch_outbox FOR UPDATE")
        running = world.box.launch("outbox.dispatch", arguments)
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'"
        )
        deadline = time.monotonic() + BOUND_SECONDS
        while administrator.execute(query).fetchone() is None:
            assert time.monotonic() < deadline
        ended = running.wait()
    assert (ended.exit_code, ended.stdout) == (16, "")
    assert f"dispatch: {db.name}: changing {A}: the database cannot be reached, or the connection broke" in ended.stderr
    assert await books(db) == before
    assert world.box.run("outbox.dispatch", arguments).exit_code == 0


async def test_a_server_that_is_away_is_told_by_every_command_with_exit_code_16(
    db: StateDB, own_server: PostgresServer, world: World, address: str
) -> None:
    commands = [["ls"], ["show", A], ["ack", A, A], ["retry", A], ["purge", A], ["run", "--once"], ["run"]]
    with away(own_server):
        for command in commands:
            ended = world.box.run("outbox.dispatch", ["--db", address, *command])
            assert (ended.exit_code, ended.stdout) == (16, ""), command
            assert f"dispatch: opening {db.name}: " in ended.stderr or f"dispatch: {db.name}: the tables: " in ended.stderr


# Cancelled.


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_scan_that_is_cancelled_at_any_statement_ends_as_cancelled_and_the_object_goes_on_working(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    url = str(tmp_path / "dispatch.db") if kind == "sqlite" else request.getfixturevalue("address")
    async with StateDB(url) as db:
        for number in range(1, 100):
            await clear(db)
            await add(db, "no URL, and no template", A, B)
            scanning = asyncio.ensure_future(scan(db, NOW))

            def cancel(_connection: Connection, task: asyncio.Future[dict[str, int]] = scanning) -> None:
                time.sleep(0.006)  # a loop that was busy: psycopg gives way then in places where it otherwise does not
                task.cancel()

            with Cut(db, number, cancel) as cut:
                (ended,) = await asyncio.gather(scanning, return_exceptions=True)
            if not cut.was_made:
                break
            assert isinstance(ended, asyncio.CancelledError | dict), repr(ended)
            assert [row["n"] for row in await peek(db, HALF_SETTLED)] == [0]
            await scan(db, LEASE_OVER)
        assert number > 5
        assert {row["status"] for row in (await books(db))["dispatch_outbox"]} == {"pending"}


# The scheduler.


async def test_a_scheduler_whose_server_is_away_logs_it_and_its_next_tick_delivers(
    db: StateDB, own_server: PostgresServer, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.start_receiver()
    scheduler = Scheduler(db, DispatchSettings(retention=RetentionPolicy()), clock=lambda: NOW)
    await add(db, f"{world.url}/operations", A)
    with away(own_server), caplog.at_level(logging.ERROR):
        assert await scheduler.tick() is None
    logged = [record.getMessage() for record in caplog.records]
    assert [each.partition(":")[0] for each in logged] == [
        "the scan failed, the next tick tries again",
        "the retention failed, the next tick tries again",
    ]
    assert not any(record.exc_info for record in caplog.records)  # the world's failure, not a bug
    delivery = await scheduler.tick()
    assert delivery is not None
    assert delivery.counts["delivered"] == 1


async def test_a_running_scheduler_survives_a_restart_of_the_server(
    db: StateDB, own_server: PostgresServer, world: World, address: str
) -> None:
    world.start_receiver()
    running = world.box.launch("outbox.dispatch", ["--db", address, "run", "--tick-seconds", "0.05"])
    try:
        await add(db, f"{world.url}/operations", A)
        await until(lambda: "delivered 1" in running._child.stdout.text())
        with away(own_server):
            await until(lambda: "the scan failed, the next tick tries again" in running._child.stderr.text())
        await add(db, f"{world.url}/operations", B)
        await until(lambda: running._child.stdout.text().count("delivered 1") == 2)
        ended = running.stop()
    finally:
        running.kill()
    assert ended.exit_code == 0
    assert "Traceback" not in ended.stderr
    assert [each["data"]["key"] for each in world.records("effects", "effect")] == [A, B]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a process has printed something. Raises TimeoutError."""
    async with asyncio.timeout(BOUND_SECONDS):
        while not holds():  # noqa: ASYNC110 - what a process prints wakes nobody here
            await asyncio.sleep(0.01)
