"""The harness's side of houses of receivers: one is lent to each case that may share, and given back when the case has
ended."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scenarios.engine.supervisor import Child, Launch, Supervisor
from scenarios.errors import HarnessBug

MODULE = "scenarios.explore.house"
READY_SECONDS = 15.0
ANSWER_SECONDS = 15.0


class House:
    """One house: its process, and the connection to it."""

    def __init__(self, child: Child, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._child, self._reader, self._writer = child, reader, writer

    async def open(self, arguments: Sequence[str]) -> int:
        """Open a receiver and return its port. Raises HarnessBug where it cannot be opened."""
        port: int = (await self._ask({"open": list(arguments)}))["open"]
        return port

    async def close(self, port: int) -> None:
        """Close the receiver on this port; what it had in progress is finished then."""
        await self._ask({"close": port})

    async def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        self._writer.write(json.dumps(question).encode() + b"\n")
        async with asyncio.timeout(ANSWER_SECONDS):
            line = await self._reader.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the house has ended"}
        if "error" in answer:
            raise HarnessBug(f"the house of receivers: {answer['error']}; it said: {self._child.stderr.text().strip()}")
        return answer

    def leave(self) -> None:
        """End the connection."""
        self._writer.close()


class Houses:
    """So many houses, for as long as it is entered."""

    def __init__(self, supervisor: Supervisor, root: Path, count: int) -> None:
        self._supervisor, self._root, self._count = supervisor, root, count
        self._all: list[House] = []
        self._free: asyncio.Queue[House] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        for _ in range(self._count):
            child = await self._supervisor.start(Launch(MODULE, (), self._root, {}))
            line = await child.wait_ready(READY_SECONDS)
            if line is None:
                raise HarnessBug(f"the house of receivers ended before it was ready: {child.stderr.text().strip()}")
            reader, writer = await asyncio.open_connection("127.0.0.1", int(line.rpartition(":")[2]))
            house = House(child, reader, writer)
            self._all.append(house)
            self._free.put_nowait(house)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for house in self._all:
            house.leave()  # their processes end with the supervisor

    @contextlib.asynccontextmanager
    async def lent(self) -> AsyncIterator[House]:
        """A house that nobody else uses meanwhile."""
        house = await self._free.get()
        try:
            yield house
        finally:
            self._free.put_nowait(house)
