"""D1: the store opens what it can use and says plainly what it cannot; whatever goes wrong, nothing is half-written."""

import asyncio
import contextlib
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from outbox import sqlite_choice
from outbox.dispatch import DamagedStore, StateDB, StoreLocked, StoreLost, add_session, enqueue_dispatch, purge_dispatch
from outbox.errors import BadInput, DamagedJournal, LockHeld, MachineRefused
from scenarios.engine.postgres import PostgresServer
from tests.outbox.dispatch.d13_hand import driver, hand
from tests.outbox.dispatch.peek import peek, poke
from tests.support import ROOT, ProcessBox

SECRET = "hunter2"
BOUND_SECONDS = 10.0
OWN_IS_FIXED = sqlite_choice.is_mended(sqlite3.sqlite_version_info)
needs_an_unfixed_sqlite = pytest.mark.skipif(OWN_IS_FIXED, reason="this Python's own SQLite has no WAL-reset race")
needs_wal = pytest.mark.skipif(
    sqlite_choice.choose().journal_mode != sqlite_choice.WAL, reason="no SQLite without the WAL-reset race"
)


async def enqueue(db: StateDB, size: int = 0) -> str:
    return await enqueue_dispatch(db, kind="ping", deliver_to="seat-1", body={"text": "x" * size}, now=1000.0)


async def census(db: StateDB) -> tuple[int, int]:
    """How many dispatches, and how many transitions."""
    (row,) = await peek(
        db, "SELECT (SELECT count(*) FROM dispatch_outbox) AS rows, (SELECT count(*) FROM status_transitions) AS moves"
    )
    return row["rows"], row["moves"]


def digests(folder: Path) -> str:
    """Of all files but the shared memory of locks, and of a log that holds nothing.

    Read by another process: whoever closes a file loses the locks that SQLite holds on it in the same process.
    """
    files = sorted(str(each) for each in folder.iterdir() if not each.name.endswith("-shm") and each.stat().st_size)
    return subprocess.run(["sha256sum", *files], capture_output=True, check=True, text=True).stdout


# Addresses.


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("", "is no database: give a file for SQLite, or postgresql://"),
        ("a\0b", "is no database"),
        ("sqlite://", "a database in memory outlives no process"),
        ("sqlite:///:memory:", "a database in memory outlives no process"),
        ("sqlite+aiosqlite://", "a database in memory outlives no process"),
        ("sqlite+pysqlite:///a.db", "sqlite.pysqlite is not supported"),
        ("mysql://u@h/d", "mysql is not supported; give a file for SQLite, or postgresql://"),
        ("postgresql+asyncpg://u@h/d", "asyncpg is not supported"),
        ("http:", "is no URL of a database"),
        ("postgresql://u@h:port/d", "is no URL of a database"),
    ],
)
def test_an_address_that_is_none_is_refused_at_once(address: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        StateDB(address)


@pytest.mark.parametrize(
    "address",
    [
        f"mysql://u:{SECRET}@h/d",
        f"postgresql://u:{SECRET}@h:port/d",
        f"postgresql://u:{SECRET}@h:port/d?password={SECRET}",
        f"mysql://u@h/d?password={SECRET}",
    ],
)
def test_a_refused_address_does_not_tell_its_password(address: str) -> None:
    with pytest.raises(BadInput) as raised:
        StateDB(address)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("address", [f"postgresql://u:{SECRET}@h/d", f"postgresql://u@h/d?password={SECRET}"])
def test_the_name_of_a_database_does_not_tell_its_password(address: str) -> None:
    name = StateDB(address).name
    assert SECRET not in name
    assert name.startswith("postgresql+psycopg://u")


async def test_a_server_that_is_not_there_is_a_lost_store_and_tells_no_password() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        address = f"postgresql://u:{SECRET}@127.0.0.1:{holder.getsockname()[1]}/d"
        with pytest.raises(StoreLost, match="cannot be reached") as raised:
            async with StateDB(address):
                pass
    assert isinstance(raised.value, MachineRefused)
    assert SECRET not in str(raised.value)


async def test_a_database_that_the_server_does_not_have_is_named(postgres_server: PostgresServer) -> None:
    address = postgres_server.new_database()
    with pytest.raises(MachineRefused, match='database "nowhere" does not exist'):
        async with StateDB(f"{address.rpartition('/')[0]}/nowhere"):
            pass


async def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a directory; give the file of a database"):
        async with StateDB(tmp_path):
            pass


async def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="is not a regular file"):
        async with StateDB(tmp_path / "pipe"):
            pass


async def test_a_folder_that_is_missing_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"there is no directory {tmp_path}/nowhere for the database a.db"):
        async with StateDB(tmp_path / "nowhere" / "a.db"):
            pass
    assert list(tmp_path.iterdir()) == []


async def test_without_create_a_missing_file_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no database .*a\.db"):
        async with StateDB(tmp_path / "a.db", create=False):
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"\0" * 5000, b"SQLite format 3\0" + b"\xff" * 4096])
async def test_a_file_that_is_no_database_is_damaged_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.db").write_bytes(content)
    with pytest.raises(DamagedStore, match=r"a\.db: .*damaged, is no database, or its tables were changed") as raised:
        async with StateDB(tmp_path / "a.db"):
            pass
    assert isinstance(raised.value, DamagedJournal)
    assert (tmp_path / "a.db").read_bytes() == content


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    async with StateDB(tmp_path / "a.db") as db:
        await enqueue(db)
        assert await census(db) == (1, 1)


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}", "sqlite+aiosqlite:///{path}"])
async def test_a_file_can_be_named_by_path_and_by_url(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a b é.db"
    async with StateDB(form.format(path=path)) as db:
        assert (db.name, db.dialect) == (str(path), "sqlite")
    assert path.exists()


async def test_a_file_is_found_again_after_the_process_has_changed_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    db = StateDB("a.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    async with db:
        pass
    assert (tmp_path / "a.db").exists()


# Open and closed.


async def test_an_outbox_that_is_not_open_says_how_to_open_it(url: str) -> None:
    db = StateDB(url)
    uses: tuple[Callable[[], Any], ...] = (lambda: enqueue(db), lambda: peek(db, "SELECT 1"), lambda: poke(db, "SELECT 1"))
    for use in uses:
        with pytest.raises(BadInput, match=r"is not open; use it as `async with StateDB\(\.\.\.\) as db`"):
            await use()
    with pytest.raises(BadInput, match="is not open"):
        async with db.begin():
            pass
    with pytest.raises(BadInput, match="is not open"):
        _info = db.info


async def test_an_outbox_is_opened_once_at_a_time_and_again_after_its_end(url: str) -> None:
    db = StateDB(url)
    async with db:
        with pytest.raises(BadInput, match="is open already"):
            await db.__aenter__()
        assert await census(db) == (0, 0)
    with pytest.raises(BadInput, match="is not open"):
        await census(db)
    async with db:
        assert await census(db) == (0, 0)


async def test_the_info_tells_engine_version_package_and_mode(db: StateDB) -> None:
    if db.dialect == "sqlite":
        chosen = sqlite_choice.choose()
        assert (db.info.engine, db.info.version) == ("sqlite", chosen.version)
        assert (db.info.package, db.info.journal_mode) == (chosen.package, chosen.journal_mode)
    else:
        assert (db.info.engine, db.info.package, db.info.journal_mode) == ("postgresql", "psycopg", None)
        assert int(db.info.version.partition(".")[0]) >= 10


# What a SQLite connection is set to.


async def test_every_connection_has_full_durability_foreign_keys_and_a_busy_timeout(tmp_path: Path) -> None:
    async with StateDB(tmp_path / "a.db", busy_timeout_seconds=1.25) as db:

        async def settings() -> tuple[Any, ...]:
            return await db.read(
                lambda connection: tuple(
                    connection.execute(text(f"PRAGMA {name}")).scalar_one()
                    for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
                ),
                "settings",
            )

        several = await asyncio.gather(*(settings() for _connection in range(4)))
    assert several == [(sqlite_choice.choose().journal_mode, 2, 1, 1250)] * 4


async def test_rows_can_be_had_all_at_once_one_by_one_in_parts_and_as_a_stream(tmp_path: Path) -> None:
    numbers = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n")
    async with StateDB(tmp_path / "a.db") as db, db.begin() as connection:
        assert (await connection.execute(numbers)).scalars().all() == [*range(1, 901)]
        async with connection.stream(numbers) as streamed:
            assert [row.i async for row in streamed] == [*range(1, 901)]
        async with connection.stream(numbers) as streamed:
            first = await streamed.fetchone()
            assert first is not None
            assert [first.i, *(row.i for row in await streamed.fetchmany(399))] == [*range(1, 401)]
            assert [row.i for row in await streamed.fetchall()] == [*range(401, 901)]


async def test_a_statement_that_fails_leaves_its_transaction_to_the_caller(tmp_path: Path) -> None:
    async with StateDB(tmp_path / "a.db") as db:
        async with db.begin() as connection:
            with pytest.raises(OperationalError):
                await connection.execute(text("SELECT 1 FROM nowhere"))
            await connection.execute(text("INSERT INTO sessions VALUES ('a', 1.0)"))
        found = await db.read(
            lambda connection: connection.execute(text("SELECT id FROM sessions")).scalars().all(), "sessions"
        )
    assert found == ["a"]


@pytest.mark.parametrize(
    ("version", "fixed"),
    [
        ((3, 7, 0), False),
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 44, 7), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 0), False),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), True),
        ((3, 53, 4), True),
        ((4, 0, 0), True),
    ],
)
def test_the_releases_without_the_wal_reset_race_are_known(version: tuple[int, ...], fixed: bool) -> None:
    assert sqlite_choice.is_mended(version) is fixed


def candidate(name: str, *version: int) -> SimpleNamespace:
    return SimpleNamespace(__name__=name, sqlite_version_info=version, sqlite_version=".".join(map(str, version)))


@pytest.mark.parametrize(
    ("candidates", "package", "version", "mode"),
    [
        ([candidate("pysqlite3.dbapi2", 3, 53, 4), candidate("sqlite3", 3, 40, 1)], "pysqlite3", "3.53.4", "wal"),
        ([candidate("pysqlite3.dbapi2", 3, 53, 4), candidate("sqlite3", 3, 52, 0)], "pysqlite3", "3.53.4", "wal"),
        ([candidate("pysqlite3.dbapi2", 3, 51, 2), candidate("sqlite3", 3, 50, 7)], "sqlite3", "3.50.7", "wal"),
        ([candidate("sqlite3", 3, 44, 6)], "sqlite3", "3.44.6", "wal"),
        ([candidate("sqlite3", 3, 51, 2)], "sqlite3", "3.51.2", "truncate"),
        ([candidate("pysqlite3.dbapi2", 3, 51, 2), candidate("sqlite3", 3, 40, 1)], "sqlite3", "3.40.1", "truncate"),
    ],
)
def test_the_first_fixed_sqlite_gets_wal_and_without_one_python_s_own_gets_the_rollback_journal(
    candidates: list[Any], package: str, version: str, mode: str
) -> None:
    chosen = sqlite_choice.choose(candidates)
    assert (chosen.package, chosen.version, chosen.journal_mode) == (package, version, mode)
    if mode == "wal":
        assert chosen.warning is None
    else:
        assert chosen.warning is not None
        assert chosen.warning.startswith(f"SQLite {version} has the WAL-reset race, so the slower rollback journal (TRUNCATE)")


@pytest.fixture
def unfixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Python's own SQLite is installed."""
    monkeypatch.setattr("outbox.sqlite_choice._installed", lambda: [sqlite3])


@needs_an_unfixed_sqlite
async def test_an_unfixed_sqlite_works_with_the_rollback_journal_and_warns(tmp_path: Path, unfixed: None) -> None:
    async with StateDB(tmp_path / "a.db") as db:
        await enqueue(db)
        assert await census(db) == (1, 1)
        assert (db.info.version, db.info.package, db.info.journal_mode) == (sqlite3.sqlite_version, "sqlite3", "truncate")
        assert db.warning is not None
        assert f"SQLite {sqlite3.sqlite_version} has the WAL-reset race" in db.warning
        modes = {row["journal_mode"] for row in await peek(db, "PRAGMA journal_mode")}
    assert modes == {"truncate"}
    assert not (tmp_path / "a.db-wal").exists()


@needs_wal
async def test_a_fixed_sqlite_warns_of_nothing(tmp_path: Path) -> None:
    async with StateDB(tmp_path / "a.db") as db:
        assert (db.info.journal_mode, db.warning) == ("wal", None)


async def other_process(path: str) -> asyncio.subprocess.Process:
    """The producer `unfixed` of d13_child: two SQLites in one process would not see each other's locks."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.outbox.dispatch.d13_child", "unfixed", path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )


@needs_wal
@needs_an_unfixed_sqlite
@pytest.mark.parametrize("open_elsewhere", [True, False])
async def test_an_unfixed_sqlite_refuses_a_wal_database_and_leaves_it_as_it_is(tmp_path: Path, open_elsewhere: bool) -> None:
    path = str(tmp_path / "a.db")
    async with contextlib.AsyncExitStack() as stack:
        await enqueue(await stack.enter_async_context(StateDB(path)))
        if not open_elsewhere:
            await stack.aclose()
        before = digests(tmp_path)
        told = (await (await other_process(path)).communicate())[0].decode()
        assert re.match("BadInput the database is in WAL mode and SQLite .* has the WAL-reset race", told)
        assert digests(tmp_path) == before
    assert hand(path, "PRAGMA journal_mode") == [("wal",)]
    assert hand(path, "SELECT count(*) FROM dispatch_outbox") == [(1,)]


@needs_wal
@needs_an_unfixed_sqlite
async def test_a_database_that_is_turned_to_wal_beneath_an_unfixed_sqlite_is_refused_from_then_on(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    process = await other_process(path)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"written truncate\n"
    assert hand(path, "PRAGMA journal_mode = wal") == [("wal",)]
    told = (await process.communicate(b"again\n"))[0].decode()
    assert re.match("BadInput the database is in WAL mode", told)
    assert hand(path, "PRAGMA journal_mode") == [("wal",)]
    assert hand(path, "SELECT count(*) FROM dispatch_outbox") == [(1,)]


# Locked.


async def test_a_locked_sqlite_database_is_told_after_the_busy_timeout_and_nothing_is_written(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    async with StateDB(path, busy_timeout_seconds=0.05) as db:
        with driver(path) as holder:
            holder.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreLocked, match=r"a\.db: enqueueing a 'ping': the database is locked") as raised:
                await enqueue(db)
            assert isinstance(raised.value, LockHeld)
            with pytest.raises(StoreLocked, match="the tables: the database is locked"):
                async with StateDB(path, busy_timeout_seconds=0.05):
                    pass
            holder.execute("ROLLBACK")
        assert await census(db) == (0, 0)
        await enqueue(db)
        assert await census(db) == (1, 1)


async def test_a_locked_postgresql_table_is_told_after_the_lock_timeout(postgres_server: PostgresServer) -> None:
    address = postgres_server.new_database()
    async with StateDB(f"{address}?options=-c%20lock_timeout%3D50") as db:
        with driver(address) as holder:
            holder.execute("BEGIN")
            holder.execute("LOCK TABLE dispatch_outbox IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(
                StoreLocked, match="enqueueing a 'ping': the server cancelled it, or another transaction holds the rows"
            ):
                await enqueue(db)
            holder.execute("ROLLBACK")
        assert await census(db) == (0, 0)
        await enqueue(db)
        assert await census(db) == (1, 1)


async def test_a_wait_for_the_lock_that_is_cancelled_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    async with StateDB(path, busy_timeout_seconds=BOUND_SECONDS) as db:
        with driver(path) as holder:
            holder.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(enqueue(db))
            for _turn in range(20):
                await asyncio.sleep(0)
            waiting.cancel()
            holder.execute("COMMIT")
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await enqueue(db)
        assert await census(db) in ((1, 1), (2, 2))
        with driver(path) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")


async def test_a_transaction_that_is_cancelled_is_whole_before_the_next_one_begins(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    seen = asyncio.Event()

    def slow(connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO sessions (id, created_at) VALUES ('a', 1.0)")
        begun.set()
        loop.call_soon_threadsafe(seen.set)
        assert go.wait(BOUND_SECONDS)
        connection.exec_driver_sql("INSERT INTO sessions (id, created_at) VALUES ('b', 1.0)")

    async with StateDB(str(tmp_path / "a.db")) as db:
        working = asyncio.create_task(db.write(slow, "work"))
        await asyncio.wait_for(seen.wait(), BOUND_SECONDS)
        for _time in range(2):  # impatience changes nothing
            working.cancel()
            await asyncio.sleep(0)
        following = asyncio.create_task(add_session(db, "c"))
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await working
        await following
        assert [row["id"] for row in await peek(db, "SELECT id FROM sessions ORDER BY id")] == ["a", "b", "c"]


async def test_the_loop_goes_on_while_a_transaction_works(tmp_path: Path) -> None:
    go = threading.Event()
    async with StateDB(str(tmp_path / "a.db")) as db:
        working = asyncio.create_task(db.write(lambda _connection: go.wait(BOUND_SECONDS), "work"))
        for _turn in range(20):
            await asyncio.sleep(0)
        assert not working.done()
        go.set()
        assert await working


async def test_work_that_raises_takes_its_rows_back_and_the_error_comes_through(db: StateDB) -> None:
    def work(connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO sessions (id, created_at) VALUES ('a', 1.0)")
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await db.write(work, "work")
    assert await peek(db, "SELECT id FROM sessions") == []
    await add_session(db, "b")


# Full.


async def test_a_full_disk_is_told_as_one_and_nothing_is_half_written(tmp_path: Path) -> None:
    async with StateDB(tmp_path / "a.db") as db:
        await enqueue(db)

        async def limit(pages: str) -> None:
            await db.write(lambda connection: connection.execute(text(f"PRAGMA max_page_count = {pages}")).all(), "limit")

        (row,) = await peek(db, "PRAGMA page_count")
        await limit(str(row["page_count"]))
        with pytest.raises(MachineRefused, match="the disk is full; nothing was changed") as raised:
            await enqueue(db, 100_000)
        assert raised.value.disk_full
        assert await census(db) == (1, 1)
        await limit("1000000")
        await enqueue(db, 100_000)
        assert await census(db) == (2, 2)


async def test_a_full_disk_in_the_caller_s_transaction_takes_all_of_it_back(tmp_path: Path) -> None:
    async with StateDB(tmp_path / "a.db") as db:
        await poke(db, "CREATE TABLE orders (id TEXT)")
        (row,) = await peek(db, "PRAGMA page_count")
        with pytest.raises(MachineRefused, match="disk is full") as raised:
            async with db.begin() as connection:
                await connection.execute(text(f"PRAGMA max_page_count = {row['page_count']}"))
                await connection.execute(text("INSERT INTO orders VALUES ('7')"))
                await enqueue_dispatch(connection, kind="ping", deliver_to="seat-1", body={"text": "x" * 100_000})
        assert raised.value.disk_full
        assert await census(db) == (0, 0)
        assert await peek(db, "SELECT id FROM orders") == []


async def test_a_file_that_may_not_grow_is_told_and_what_was_promised_is_there(tmp_path: Path, box: ProcessBox) -> None:
    path = str(tmp_path / "a.db")
    ended = await asyncio.to_thread(box.run, "tests.outbox.dispatch.d13_child", ["fill", path])
    assert (ended.exit_code, ended.stderr) == (0, "")
    promised, _space, error = ended.stdout.strip().partition(" ")
    assert (int(promised) > 0, error) == (True, "MachineRefused")
    async with StateDB(path) as db:
        assert await census(db) == (int(promised), int(promised))
        assert await peek(db, "PRAGMA integrity_check") == [{"integrity_check": "ok"}]


# The file itself.


@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_a_file_that_is_removed_or_replaced_while_open_takes_no_more_rows(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.db"
    async with StateDB(path) as db:
        await enqueue_dispatch(db, kind="ping", deliver_to="seat-1")
        if how == "removed":
            for each in tmp_path.glob("a.db*"):
                each.unlink()
        else:
            async with StateDB(tmp_path / "b.db"):
                pass
            (tmp_path / "b.db").replace(path)
        with pytest.raises(DamagedStore, match="was removed or replaced while it was open"):
            await enqueue_dispatch(db, kind="ping", deliver_to="seat-1")


@pytest.mark.parametrize("given", [5, None, b"a.db", "\ud800", "postgresql://u@127.0.0.1/a%00b", "sqlite:///a.db?mode=ro"])
def test_what_names_no_database_is_refused(given: object) -> None:
    with pytest.raises(BadInput):
        StateDB(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [-1, float("nan"), "x", True, 10**6])
def test_a_busy_timeout_that_is_no_time_is_refused(seconds: object) -> None:
    with pytest.raises(BadInput, match="busy_timeout_seconds"):
        StateDB("a.db", busy_timeout_seconds=seconds)  # type: ignore[arg-type]


def test_a_password_with_an_at_sign_is_not_told() -> None:
    with pytest.raises(BadInput) as raised:
        StateDB("postgresql://u:se@cret@h:bad/db")
    assert "cret" not in str(raised.value)


async def test_the_database_is_not_written_by_another_way_inside_a_transaction(db: StateDB) -> None:
    async with db.begin() as connection:
        for work in (enqueue_dispatch(db, kind="ping", deliver_to="seat-1"), purge_dispatch(db, "a" * 32)):
            with pytest.raises(BadInput, match="give the connection of that block"):
                await asyncio.wait_for(asyncio.create_task(work), 10)
        await enqueue_dispatch(connection, kind="ping", deliver_to="seat-1")
    await enqueue_dispatch(db, kind="ping", deliver_to="seat-1")
    assert len(await peek(db, "SELECT id FROM dispatch_outbox")) == 2
