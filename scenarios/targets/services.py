"""The servers that targets ask for by `services = […]`: private ones, started once for a check; each case has a database of
its own, which is empty.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from outbox.errors import BadInput
from scenarios.targets.model import POSTGRES, REDIS


class Server(Protocol):
    """One private server."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def new_database(self) -> str:
        """The URL of an empty database."""


def _postgres() -> Server:
    from scenarios.engine.postgres import PostgresServer  # noqa: PLC0415 - its driver is an extra

    # Only processes die here, never the machine: what the server was told it keeps without a sync.
    return PostgresServer(max_connections="200")


def _redis() -> Server:
    from scenarios.targets.redis import RedisServer  # noqa: PLC0415 - only where a target asks for it

    return RedisServer()


_SERVERS: Mapping[str, Callable[[], Server]] = {POSTGRES: _postgres, REDIS: _redis}


def why_not(names: Sequence[str]) -> str | None:
    """What is missing on this machine for these services, with what to install; None where nothing is."""
    for name in names:
        if name == REDIS:
            from scenarios.targets import redis  # noqa: PLC0415 - as above

            if shutil.which(redis.PROGRAM) is None:
                return redis.MISSING
        elif name == POSTGRES:
            try:
                from scenarios.engine import postgres  # noqa: PLC0415 - as above
            except ImportError as error:
                return f"{error.name} is not installed; install halt23[postgres]"
            if postgres.programs() is None:
                return postgres.MISSING
    return None


class Services:
    """The servers of one check: `async with Services(names) as services: values = await services.fresh()`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._servers: dict[str, Server] = {}
        self._stack = contextlib.ExitStack()
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        missing = why_not(self._names)
        if missing is not None:
            raise BadInput(missing)
        try:
            for name in self._names:
                self._servers[name] = await asyncio.to_thread(self._stack.enter_context, _SERVERS[name]())
        except BaseException:
            await asyncio.to_thread(self._stack.close)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._stack.close)

    async def fresh(self) -> dict[str, str]:
        """The values of `{postgres_url}` and `{redis_url}` for one case: databases that are empty."""
        async with self._turn:
            return {f"{name}_url": await asyncio.to_thread(server.new_database) for name, server in self._servers.items()}
