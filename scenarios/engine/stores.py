"""The databases that scenarios use: a file of SQLite in the scenario's own folder, or PostgreSQL on a private server.

A scenario's database is made when it is first named and is gone when the scenario ends; what it held is kept by export steps.
All scenarios share one server, started with `fsync` on when the first needs it, except those that kill theirs: these have one
of their own.
"""

import asyncio
import shutil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from outbox.errors import BadInput
from scenarios.model import POSTGRES, SQLITE, KillDatabase, Scenario

if TYPE_CHECKING:
    from scenarios.engine.postgres import PostgresServer

STATE = "state"
FILE = f"{STATE}/dispatch.db"


class Database(Protocol):
    """One scenario's database. `url` is what a program is given, a file's relative to the scenario's folder; `address` is the
    same for the harness."""

    url: str
    address: str

    async def kill(self) -> None:
        """Kill its server. Raises BadInput where there is none."""

    async def start(self) -> None:
        """Start its server again. Raises BadInput where there is none."""

    async def close(self) -> None:
        """Remove what it used."""


class Store(Protocol):
    """Where databases come from, for as long as it is entered."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def database(self, scenario: Scenario, directory: Path) -> Database:
        """A new, empty database for `scenario`, whose folder is `directory`."""

    async def facts(self) -> dict[str, str] | None:
        """What a server says of itself: `version`, `fsync` and `synchronous_commit`; None where there is none."""


def store(name: str) -> Store:
    """The store of this name. Raises BadInput where it cannot work on this machine."""
    if name == SQLITE:
        return SqliteStore()
    try:
        from scenarios.engine import postgres  # noqa: PLC0415 - its driver is an extra that most runs do without
    except ImportError as error:
        raise BadInput(f"--store {POSTGRES}: {error.name} is not installed; install halt23[postgres]") from error
    if postgres.programs() is None:
        raise BadInput(f"--store {POSTGRES}: {postgres.MISSING}")
    return PostgresStore()


class _File:
    """A file of SQLite in the scenario's folder."""

    def __init__(self, directory: Path) -> None:
        self.url = FILE
        self.address = str(directory / FILE)
        self._directory = directory / STATE
        self._directory.mkdir(exist_ok=True)  # a case may begin with a copy of one

    async def kill(self) -> None:
        raise BadInput("SQLite has no server that could be killed")

    async def start(self) -> None:
        raise BadInput("SQLite has no server that could be started")

    async def close(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)  # what is left is found: an archive holds no such files


class SqliteStore:
    """A file for each scenario."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held."""

    async def database(self, scenario: Scenario, directory: Path) -> Database:
        """As `Store` says."""
        return _File(directory)

    async def facts(self) -> dict[str, str] | None:
        """As `Store` says."""
        return None


class _OnServer:
    """A database on a server, which is closed with it where `own`."""

    def __init__(self, url: str, server: "PostgresServer", *, own: bool) -> None:
        self.url = self.address = url
        self._server, self._own = server, own

    async def kill(self) -> None:
        await asyncio.to_thread(self._server.kill)

    async def start(self) -> None:
        await asyncio.to_thread(self._server.start)

    async def close(self) -> None:
        if self._own:
            await asyncio.to_thread(self._server.__exit__, None, None, None)


class PostgresStore:
    """Databases on private servers of PostgreSQL, with `fsync` on."""

    def __init__(self) -> None:
        self._shared: PostgresServer | None = None
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shared is not None:
            await asyncio.to_thread(self._shared.__exit__, None, None, None)

    async def database(self, scenario: Scenario, directory: Path) -> Database:
        """As `Store` says."""
        if any(isinstance(step, KillDatabase) for step in scenario.steps):
            own = await self._server()
            try:
                return _OnServer(await asyncio.to_thread(own.new_database), own, own=True)
            except BaseException:
                await asyncio.to_thread(own.__exit__, None, None, None)
                raise
        server = await self._started()
        async with self._turn:
            url = await asyncio.to_thread(server.new_database)
        return _OnServer(url, server, own=False)

    async def facts(self) -> dict[str, str] | None:
        """As `Store` says, of the server that all share."""
        return await asyncio.to_thread((await self._started()).facts)

    async def _started(self) -> "PostgresServer":
        async with self._turn:
            if self._shared is None:
                self._shared = await self._server()
            return self._shared

    @staticmethod
    async def _server() -> "PostgresServer":
        from scenarios.engine.postgres import PostgresServer  # noqa: PLC0415 - see `store`

        return await asyncio.to_thread(PostgresServer(fsync="on").__enter__)
