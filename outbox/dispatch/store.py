"""The database: where it is, how it is opened, and the two ways of using it.

    async with StateDB("dispatch.db") as db:                     # SQLite, a file
    async with StateDB("postgresql://user@host/name") as db:     # PostgreSQL, with the extra `postgres`

All work is a plain function that takes a synchronous `sqlalchemy.Connection`, run inside one transaction: `db.write(work,
"doing")` or `db.read(work, "doing")`. `db.begin()` gives the transaction itself to a producer that has rows of its own to write
together with a dispatch. On SQLite a writing transaction is `BEGIN IMMEDIATE`, so it either owns the database or waits before
it has read anything, and those of one process queue up here instead of polling for the file's lock.

What this module does not do: it starts no server, it repeats nothing, and it never holds a transaction while something is sent.
"""

import asyncio
import contextlib
import importlib.util
import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from outbox.dispatch import schema, sqlite
from outbox.dispatch.errors import translated
from outbox.errors import BadInput, MachineRefused
from outbox.sqlite_choice import WAL, choose

T = TypeVar("T")
Work = Callable[[Connection], T]

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
BUSY_TIMEOUT_SECONDS = 10.0
CONNECT_TIMEOUT_SECONDS = 10
_READING = "halt23_reading"
_SCHEME = re.compile(r"[a-z][a-z0-9+]*:", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Which database is used: `engine` and its `version`, the Python `package`, and for SQLite the `journal_mode`."""

    engine: str
    version: str
    package: str
    journal_mode: str | None = None


class StateDB:
    """The database of a dispatch outbox. `path_or_url` is a file for SQLite, or a URL of SQLite or PostgreSQL.

    With `create` (the default) missing tables are made; without it their absence is BadInput. Opening raises BadInput for an
    address or a schema that cannot be used, StoreLost for a server that is not there, and MachineRefused, StoreLocked or
    DamagedStore.
    """

    def __init__(
        self, path_or_url: str | os.PathLike[str], *, create: bool = True, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS
    ) -> None:
        self._url = _address(path_or_url)
        # Without the query: libpq takes a password there as well.
        self.name = self._url.set(query={}).render_as_string(hide_password=True)
        if self._url.get_backend_name() == SQLITE:
            self.name = self._url.database or ""
        self._create = create
        self._busy_timeout_seconds = busy_timeout_seconds
        self._engine: AsyncEngine | None = None
        self._info: StoreInfo | None = None
        self._turn = asyncio.Lock()
        self._writer: asyncio.Task[Any] | None = None
        self.warning: str | None = None

    @property
    def dialect(self) -> str:
        """SQLITE or POSTGRESQL."""
        return self._url.get_backend_name()

    @property
    def info(self) -> StoreInfo:
        """Engine, version and mode of the open database."""
        if self._info is None:
            raise BadInput(f"{self.name} is not open; use it as `async with StateDB(...) as db`")
        return self._info

    async def __aenter__(self) -> Self:
        if self._engine is not None:
            raise BadInput(f"{self.name} is open already")
        with translated(f"opening {self.name}"):
            self._engine = self._sqlite_engine() if self.dialect == SQLITE else _postgresql_engine(self._url)
            try:
                await self.write(lambda connection: schema.prepare(connection, self.name, create=self._create), "the tables")
                await self._learn()
            except BaseException:
                await self._close()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def write(self, work: Work[T], doing: str) -> T:
        """Run `work` in one transaction and commit it. Raises what `work` raises, and the classes of
        `outbox.dispatch.errors`."""
        with translated(f"{self.name}: {doing}"):
            async with self._writing() as connection:
                return await connection.run_sync(work)

    async def read(self, work: Work[T], doing: str) -> T:
        """Run `work`, which changes nothing, on one snapshot of the database."""
        with translated(f"{self.name}: {doing}"):
            async with self._opened.connect() as connection:
                await connection.execution_options(**{_READING: True})
                async with connection.begin():
                    return await connection.run_sync(work)

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """One writing transaction, for statements of the caller's own and `enqueue_dispatch` together.

        It is committed at the end of the block and rolled back if the block raises. Other transactions of the process wait
        meanwhile (on SQLite all of them, everywhere), so nothing slow belongs inside.
        """
        with translated(f"{self.name}: a transaction of the caller's"):
            async with self._writing() as connection:
                yield connection

    @contextlib.asynccontextmanager
    async def _writing(self) -> AsyncIterator[AsyncConnection]:
        if self.dialect != SQLITE:
            async with self._opened.begin() as connection:
                try:
                    yield connection
                except AssertionError as error:
                    # A task that is cancelled while psycopg begins a pipeline (executemany) gets an assertion of psycopg's own
                    # for it, and the connection is left in the middle of a statement: nobody may use it again.
                    await connection.invalidate()
                    task = asyncio.current_task()
                    if task is not None and task.cancelling():
                        raise asyncio.CancelledError from error
                    raise
            return
        task = asyncio.current_task()
        if self._writer is task:
            # It would wait for itself, for ever.
            raise BadInput("this task is inside `async with db.begin()`; give the connection of that block, not the database")
        async with self._turn, self._opened.begin() as connection:
            self._writer = task
            try:
                yield connection
            finally:
                self._writer = None

    @property
    def _opened(self) -> AsyncEngine:
        if self._engine is None:
            raise BadInput(f"{self.name} is not open; use it as `async with StateDB(...) as db`")
        return self._engine

    async def _close(self) -> None:
        engine, self._engine, self._info = self._engine, None, None
        if engine is not None:
            await engine.dispose()

    async def _learn(self) -> None:
        query = "SELECT sqlite_version()" if self.dialect == SQLITE else "SHOW server_version"
        version = await self.read(lambda connection: str(connection.execute(text(query)).scalar_one()), "its version")
        if self.dialect == SQLITE:
            mode = await self.read(
                lambda connection: str(connection.execute(text("PRAGMA journal_mode")).scalar_one()), "its journal mode"
            )
            self._info = StoreInfo(SQLITE, version, self._sqlite.package, mode)
        else:
            self._info = StoreInfo(POSTGRESQL, version, "psycopg")

    def _sqlite_engine(self) -> AsyncEngine:
        path = Path(self._url.database or "")
        _check_file(path, create=self._create)
        self._sqlite = chosen = choose()
        self.warning = chosen.warning
        engine = create_async_engine(
            self._url,
            module=sqlite.adapted(chosen),
            poolclass=AsyncAdaptedQueuePool,
            connect_args={"isolation_level": None, "timeout": self._busy_timeout_seconds},
        )

        @event.listens_for(engine.sync_engine, "connect")
        def connected(connection: Any, _record: object) -> None:
            sqlite.set_up(connection, chosen, self._busy_timeout_seconds, set_mode=self._create)

        @event.listens_for(engine.sync_engine, "begin")
        def begun(connection: Connection) -> None:
            reading = connection.get_execution_options().get(_READING, False)
            connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
            if chosen.journal_mode != WAL:
                sqlite.refuse_wal(str(connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()), chosen)

        return engine


def _postgresql_engine(url: URL) -> AsyncEngine:
    if importlib.util.find_spec("psycopg") is None:
        raise BadInput("PostgreSQL needs the package psycopg: pip install 'halt23[postgres]'")
    from psycopg.types.string import TextLoader  # noqa: PLC0415 - an optional package

    engine = create_async_engine(
        url,
        pool_pre_ping=True,  # a server that was restarted between two scans has closed the pool's connections
        isolation_level="READ COMMITTED",
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def connected(connection: Any, _record: object) -> None:
        # JSON comes back as the text that was stored.
        connection.driver_connection.adapters.register_loader("json", TextLoader)

    return engine


def _address(path_or_url: str | os.PathLike[str]) -> URL:
    """The URL of a database. Raises BadInput for what is neither a file nor a URL of a database that is known here."""
    given = os.fspath(path_or_url)
    if not given or "\0" in given:
        raise BadInput(f"{given!r} is no database: give a file for SQLite, or postgresql://USER@HOST/NAME")
    if not _SCHEME.match(given):
        return URL.create("sqlite+aiosqlite", database=str(Path(given).absolute()))
    try:
        url = make_url(given)
    except (ArgumentError, ValueError) as error:
        raise BadInput(f"{_without_password(given)!r} is no URL of a database: {error}") from error
    match url.drivername:
        case "sqlite" | "sqlite+aiosqlite" if url.database and url.database != ":memory:":
            return url.set(drivername="sqlite+aiosqlite", database=str(Path(url.database).absolute()))
        case "postgres" | "postgresql" | "postgresql+psycopg":
            return url.set(drivername="postgresql+psycopg")
        case "sqlite" | "sqlite+aiosqlite":
            raise BadInput("a database in memory outlives no process; give a file")
    raise BadInput(
        f"{_without_password(given)!r}: {url.drivername} is not supported; give a file for SQLite, or postgresql://USER@HOST/NAME"
    )


def _without_password(url: str) -> str:
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url.partition("?")[0])


def _check_file(path: Path, *, create: bool) -> None:
    if path.is_dir():
        raise BadInput(f"{path} is a directory; give the file of a database")
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is not a regular file")
    if not path.exists():
        if not create:
            raise BadInput(f"there is no database {path}; a producer, or `run`, creates it")
        if not path.parent.is_dir():
            raise BadInput(f"there is no directory {path.parent} for the database {path.name}")
        if not os.access(path.parent, os.W_OK):
            raise MachineRefused(f"{path.parent} cannot be written to, so {path.name} cannot be created there")
