"""SQLite for SQLAlchemy's asynchronous engine: the chosen SQLite (`outbox.sqlite_choice`), and what a connection needs.

A process with a mended SQLite may turn a database to WAL mode beneath one without. So in the fallback every transaction begins
by asking for the mode (`refuse_wal`), and touches nothing if it is WAL.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

import aiosqlite
from aiosqlite.context import contextmanager
from sqlalchemy import Connection
from sqlalchemy.dialects.sqlite.aiosqlite import AsyncAdapt_aiosqlite_dbapi
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.util import greenlet_spawn

from outbox.errors import BadInput
from outbox.sqlite_choice import WAL, Sqlite

T = TypeVar("T")

_ROWS = 256  # that come with a statement


def adapted(sqlite: Sqlite) -> AsyncAdapt_aiosqlite_dbapi:
    """The module that SQLAlchemy takes for its aiosqlite dialect, made for another SQLite than Python's own."""
    module = sqlite.module

    def connect(database: str, **options: Any) -> aiosqlite.Connection:
        connection = _Connection(lambda: module.connect(database, **options), iter_chunk_size=64)
        # The connection's own thread must not keep alive a process that forgot to close it.
        connection._thread.daemon = True
        return connection

    shown = SimpleNamespace(
        **{name: getattr(module, name) for name in _SHOWN}, Connection=aiosqlite.Connection, connect=connect
    )
    return AsyncAdapt_aiosqlite_dbapi(_as_module(shown), module)


async def in_one_transaction(connection: AsyncConnection, work: Callable[[Connection], T]) -> T:
    """Run `work` in a transaction, all of it in the connection's own thread, and return what it returns.

    The thread is asked once instead of once for each statement, and the loop goes on with other things meanwhile. Where the
    caller is cancelled the transaction is still waited for: nobody else may have the connection before.
    """
    held = connection.sync_connection
    own = (await connection.get_raw_connection()).driver_connection
    assert held is not None
    assert isinstance(own, _Connection)

    def transaction() -> T:
        with held.begin():
            return work(held)

    running = asyncio.ensure_future(own._execute(_to_its_end, transaction, copy_context()))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        running.exception()  # the caller hears of the cancelling, not of this
        raise


def _to_its_end(work: Callable[[], T], context: Context) -> T:
    """In the connection's thread: what SQLAlchemy awaits there is done at once, so `work` is never suspended."""
    coroutine = greenlet_spawn(work)
    try:
        context.run(coroutine.send, None)
    except StopIteration as ended:
        done: T = ended.value
        return done
    coroutine.close()
    raise AssertionError("a transaction awaited something else than its own connection")


class _Connection(aiosqlite.Connection):
    """Works in a thread of its own, which is asked once for each statement, or once for a whole transaction: being asked costs
    more than most statements."""

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is self._thread:
            return fn(*args, **kwargs)
        return await super()._execute(fn, *args, **kwargs)  # type: ignore[no-untyped-call]

    @contextmanager
    async def cursor(self) -> aiosqlite.Cursor:
        # Touches no file. The thread may use it all the same: SQLAlchemy opens connections that do not check who does.
        return _Cursor(self, self._conn.cursor())


class _Cursor(aiosqlite.Cursor):
    """Reads the first rows together with the statement: most have no more. Where there are more, they are had in parts."""

    def __init__(self, connection: aiosqlite.Connection, cursor: Any) -> None:
        super().__init__(connection, cursor)
        self._rows: deque[Any] = deque()
        self._more = False

    async def execute(self, sql: str, parameters: Any = None) -> aiosqlite.Cursor:
        self._more = True
        await self._execute(self._begin, sql, () if parameters is None else parameters)  # type: ignore[no-untyped-call]
        return self

    def _begin(self, sql: str, parameters: Any) -> None:
        """In the connection's thread."""
        self._cursor.execute(sql, parameters)
        self._take()

    def _take(self) -> None:
        """In the connection's thread."""
        taken = self._cursor.fetchmany(_ROWS)
        self._rows.extend(taken)
        self._more = len(taken) == _ROWS

    async def fetchone(self) -> Any:
        return next(iter(await self.fetchmany(1)), None)

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        wanted = self.arraysize if size is None else size
        while self._more and len(self._rows) < wanted:
            await self._execute(self._take)  # type: ignore[no-untyped-call]
        return [self._rows.popleft() for _ in range(min(wanted, len(self._rows)))]

    async def fetchall(self) -> list[Any]:
        rows = [*self._rows, *(await super().fetchall() if self._more else ())]
        self._rows.clear()
        self._more = False
        return rows

    async def close(self) -> None:
        if self._more:  # it failed or was given up; else nothing is left of the statement
            await super().close()


def _as_module(shown: SimpleNamespace) -> ModuleType:
    module = ModuleType("aiosqlite_with_another_sqlite")
    module.__dict__.update(vars(shown))
    return module


_SHOWN = (
    "DatabaseError",
    "DataError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
    "sqlite_version",
    "sqlite_version_info",
)


def set_up(connection: Any, sqlite: Sqlite, busy_timeout_seconds: float, *, set_mode: bool = True) -> None:
    """What a fresh connection needs. `connection` is a DBAPI connection.

    Without `set_mode` the database keeps its journal mode: WAL is written into the file, which may be somebody else's.
    """
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {round(busy_timeout_seconds * 1000)}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA fullfsync = ON")
        if (
            sqlite.journal_mode != WAL
        ):  # asked before it is set: setting it would take a database that nobody has open out of WAL
            cursor.execute("PRAGMA journal_mode")
            refuse_wal(cursor.fetchone()[0], sqlite)
        cursor.execute(f"PRAGMA journal_mode = {sqlite.journal_mode}" if set_mode else "PRAGMA journal_mode")
        # A database that others have open keeps its mode. Then the one that it has must be one that may be used.
        mode = cursor.fetchone()[0]
    finally:
        cursor.close()
    refuse_wal(mode, sqlite)


def refuse_wal(mode: str, sqlite: Sqlite) -> None:
    """Raises BadInput if the database is in WAL mode and this SQLite must not touch such a one."""
    if mode == WAL and sqlite.journal_mode != WAL:
        raise BadInput(
            f"the database is in WAL mode and SQLite {sqlite.version} has the WAL-reset race, which can corrupt it: "
            "pip install pysqlite3, or use a Python with SQLite 3.51.3 or later; nothing was read or written"
        )
