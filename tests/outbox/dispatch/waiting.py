"""What tests of scans share: destinations and commands that wait to be let go, and work done in the middle of a scan."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

from outbox.dispatch import StateDB
from outbox.faults import Fault
from tests.outbox.peer import Connection, Peer, response

NOW = 1_800_000_000.0
LEASE = 15.0
BOUND = 20.0
NOTHING = {"attempted": 0, "delivered": 0, "dead_letter": 0, "expired": 0, "retried": 0}
OK = response("200 OK", b"{}", "Connection: close")


class Held(Peer):
    """Answers a request, with success, only when told to: `arrived` is set when one is there, `go` lets all of them end."""

    def __init__(self, answer: bytes = OK) -> None:
        super().__init__(self._hold)
        self.arrived, self.go = asyncio.Event(), asyncio.Event()
        self._answer = answer

    async def _hold(self, connection: Connection) -> None:
        await connection.request()
        self.arrived.set()
        await self.go.wait()
        await connection.send(self._answer)


class Gate:
    """A command that says that it has begun and then waits: `template` is its, `begun` its word, `let_go` ends it."""

    def __init__(self, directory: Path, ending: str) -> None:
        begun, go = directory / "begun", directory / "go"
        os.mkfifo(begun)
        os.mkfifo(go)
        self.template = ["sh", "-c", 'echo begun > "$1"; read word < "$2"; ' + ending, "sh", str(begun), str(go)]
        # Open at both ends, so that nobody waits in open().
        self._begun, self._go = (os.open(path, os.O_RDWR | os.O_NONBLOCK) for path in (begun, go))
        self.begun = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._begun, self._hear)

    def _hear(self) -> None:
        os.read(self._begun, 100)
        self.begun.set()

    def let_go(self) -> None:
        """Let the command end."""
        os.write(self._go, b"go\n")

    def close(self) -> None:
        """Close the pipes."""
        asyncio.get_running_loop().remove_reader(self._begun)
        os.close(self._begun)
        os.close(self._go)


@asynccontextmanager
async def gate(directory: Path, ending: str = "exit 0") -> AsyncIterator[Gate]:
    """A `Gate`, closed afterwards."""
    opened = Gate(directory, ending)
    try:
        yield opened
    finally:
        opened.close()


async def soon(event: asyncio.Event) -> None:
    """Wait for an event, with a bound."""
    await asyncio.wait_for(event.wait(), BOUND)


def meanwhile(url: str, work: Callable[[StateDB], Awaitable[None]]) -> Callable[[Fault], None]:
    """For `faults.arm`: do `work` at that point, on another connection, and come back when it is done."""

    async def on_another_connection() -> None:
        async with StateDB(url) as other:
            await work(other)

    def action(_fault: Fault) -> None:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, on_another_connection()).result(BOUND)

    return action
