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
import os
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from outbox.dispatch import checks, schema, sqlite
from outbox.dispatch.address import POSTGRESQL, SQLITE, address, shown
from outbox.dispatch.engines import READING, postgresql_engine, sqlite_engine
from outbox.dispatch.errors import translated
from outbox.errors import BadInput
from outbox.sqlite_choice import choose

T = TypeVar("T")
Work = Callable[[Connection], T]

BUSY_TIMEOUT_SECONDS = 10.0
MAX_BUSY_TIMEOUT_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Which database is used: `engine` and its `version`, the Python `package`, and for SQLite the `journal_mode`."""

    engine: str
    version: str
    package: str
    journal_mode: str | None = None


@dataclass(slots=True)
class _Block:
    """One `async with db.begin()`, while it is open."""

    db: "StateDB"
    open: bool = True


_inside: ContextVar[_Block | None] = ContextVar("halt23_inside_begin", default=None)


class StateDB:
    """The database of a dispatch outbox. `path_or_url` is a file for SQLite, or a URL of SQLite or PostgreSQL.

    With `create` (the default) missing tables are made; without it their absence is BadInput. Opening raises BadInput for an
    address or a schema that cannot be used, StoreLost for a server that is not there, and MachineRefused, StoreLocked or
    DamagedStore.
    """

    def __init__(
        self, path_or_url: str | os.PathLike[str], *, create: bool = True, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS
    ) -> None:
        self._url = address(path_or_url)
        self.name = shown(self._url)
        self._create = create
        self._busy_timeout_seconds = checks.number("busy_timeout_seconds", busy_timeout_seconds, 0, MAX_BUSY_TIMEOUT_SECONDS)
        self._engine: AsyncEngine | None = None
        self._info: StoreInfo | None = None
        self._turn = asyncio.Lock()
        self._package = "psycopg"
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
            self._engine = self._new_engine()
            try:
                self._info = await self.write(self._prepare, "the tables")
            except DBAPIError as error:  # none of the kinds that are told apart: something in the address or in its options
                await self._close()
                raise BadInput(f"{self.name} cannot be used: {str(error.orig).strip()}") from error
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
            if self.dialect == SQLITE:
                self._refuse_inside()
                async with self._turn, self._opened.connect() as connection:
                    return await sqlite.in_one_transaction(connection, work)
            async with self._writing() as connection:
                return await connection.run_sync(work)

    async def read(self, work: Work[T], doing: str) -> T:
        """Run `work`, which changes nothing, on one snapshot of the database."""
        with translated(f"{self.name}: {doing}"):
            async with self._opened.connect() as connection:
                await connection.execution_options(**{READING: True})
                if self.dialect == SQLITE:
                    return await sqlite.in_one_transaction(connection, work)
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
                block = _Block(self)
                before = _inside.set(block)
                try:
                    yield connection
                finally:
                    block.open = False
                    _inside.reset(before)

    @contextlib.asynccontextmanager
    async def _writing(self) -> AsyncIterator[AsyncConnection]:
        self._refuse_inside()
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
        async with self._turn, self._opened.begin() as connection:
            yield connection

    def _refuse_inside(self) -> None:
        block = _inside.get()
        if block is not None and block.open and block.db is self:
            # It would wait for itself, or be another transaction than it looks like. Tasks begun inside are inside.
            raise BadInput("this is inside `async with db.begin()`; give the connection of that block, not the database")

    @property
    def _opened(self) -> AsyncEngine:
        if self._engine is None:
            raise BadInput(f"{self.name} is not open; use it as `async with StateDB(...) as db`")
        return self._engine

    def _new_engine(self) -> AsyncEngine:
        if self.dialect == POSTGRESQL:
            return postgresql_engine(self._url)
        chosen = choose()
        self._package, self.warning = chosen.package, chosen.warning
        return sqlite_engine(self._url, chosen, create=self._create, busy_timeout_seconds=self._busy_timeout_seconds)

    async def _close(self) -> None:
        engine, self._engine, self._info = self._engine, None, None
        if engine is not None:
            await engine.dispose()

    def _prepare(self, connection: Connection) -> StoreInfo:
        """See to the tables, and learn what database this is."""
        schema.prepare(connection, self.name, create=self._create)
        queries = ["SELECT sqlite_version()", "PRAGMA journal_mode"] if self.dialect == SQLITE else ["SHOW server_version"]
        version, *mode = (str(connection.exec_driver_sql(query).scalar_one()) for query in queries)
        return StoreInfo(self.dialect, version, self._package, *mode)
