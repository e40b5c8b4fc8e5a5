"""A place where cases are played one after the other: a folder, an address, a receiver behind it, and remembered states.

Workers keep addresses and paths in their files, so both stay the same for all cases of a slot; what a case begins with is a
copy of the folder as the slot's own first run left it. The receiver is a real process (`destination`), and tells of each
arrival over a connection of its own in the moment in which it is applied.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.engine.ports import Ports
from scenarios.engine.supervisor import Child, Launch, Supervisor
from scenarios.errors import HarnessBug
from scenarios.targets.destination import CONTROL, REFUSED_STATUS
from scenarios.targets.services import Services

MODULE = "scenarios.targets.destination"
READY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that came. No `status` where it was applied and nobody was answered."""

    job: str | None
    key: str | None
    status: int | None
    method: str
    path: str
    monotonic: float

    @property
    def applied(self) -> bool:
        """Whether a receiver without keys has an effect of it."""
        return self.status != REFUSED_STATUS


class Slot:
    """One place; see the module. Open it before use; what runs in it ends before it is closed."""

    def __init__(self, number: int, folder: Path, supervisor: Supervisor, services: Services | None = None) -> None:
        self.number, self._supervisor, self._services = number, supervisor, services
        self.served: Mapping[str, str] = {}
        self.folder = folder / f"{number}"
        self.directory = self.folder / "state"
        self._states = self.folder / "states"
        self._ports = Ports()
        self._server: Child | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._hearing: asyncio.Task[None] | None = None
        self.arrivals: list[Arrival] = []
        self.deaths: list[float] = []
        self._changed = asyncio.Event()
        self._confirmed: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._closing = False
        self._keyed = True

    async def open(self) -> None:
        """Make the folders and start the receiver. Raises HarnessBug and OSError."""
        for each in (self.directory, self._states, self.folder / "receiver"):
            each.mkdir(parents=True)
        self.port = self._ports.of("receiver")
        await self._serve()

    @property
    def url(self) -> str:
        """Where jobs are POSTed."""
        return f"http://127.0.0.1:{self.port}/operations"

    async def _serve(self) -> None:
        arguments: tuple[str, ...] = ("--port", str(self.port), "--dir", str(self.folder / "receiver"))
        arguments += () if self._keyed else ("--unkeyed",)
        self._server = await self._supervisor.start(Launch(MODULE, arguments, self.folder, {}))
        if await self._server.wait_ready(READY_SECONDS) is None:
            raise HarnessBug(f"the receiver did not start: {self._server.stderr.text()}")
        reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writer.write(CONTROL)
        self._hearing = asyncio.create_task(self._hear(reader))
        await self._answer()

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                event = json.loads(line)
                if event.pop("event") == "arrival":
                    self.arrivals.append(Arrival(**event))
                    self._pulse()
                else:
                    self._confirmed.put_nowait(event)
        if not self._closing:
            self.deaths.append(time.monotonic())
            self._pulse()

    def _pulse(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def changed(self) -> "asyncio.Future[Any]":
        """Done at the next arrival, or when the receiver dies."""
        return asyncio.ensure_future(self._changed.wait())

    async def begin(self, *, keyed: bool = True, fault: str | None = None) -> None:
        """Forget all arrivals: a new case, in which the receiver has this fault."""
        self._keyed = keyed
        await self._ask({"do": "begin", "keyed": keyed, "fault": fault})
        self.arrivals.clear()
        self.deaths.clear()

    async def hold(self) -> None:
        """Have the next arrival applied, and not answered before `go`."""
        await self._ask({"do": "hold"})

    async def go(self) -> None:
        """Have the arrival answered that is held, and hold none."""
        await self._ask({"do": "go"})

    async def effects(self) -> int:
        """How many effects the receiver has in its book."""
        count: int = (await self._ask({"do": "count"}))["effects"]
        return count

    async def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._writer is None:
            raise HarnessBug("the receiver of a slot is not running")
        self._writer.write(json.dumps(question).encode() + b"\n")
        return await self._answer()

    async def _answer(self) -> dict[str, Any]:
        try:
            return await asyncio.wait_for(self._confirmed.get(), READY_SECONDS)
        except TimeoutError:
            raise HarnessBug(f"the receiver of a slot did not answer within {READY_SECONDS:g} s") from None

    async def revive(self) -> None:
        """Start the receiver again that has died; its effects are still there."""
        try:
            if self._server is not None:
                await self._server.wait(READY_SECONDS)
        except TimeoutError:
            raise HarnessBug(f"the receiver of a slot did not end within {READY_SECONDS:g} s") from None
        await self._hang_up()
        await self._serve()

    async def _hang_up(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def close(self) -> None:
        """End the receiver, and remove all files."""
        self._closing = True
        if self._hearing is not None:
            self._hearing.cancel()
        await self._hang_up()
        if self._server is not None and self._server.running:
            self._supervisor.signal(self._server, signal.SIGKILL)
            await self._server.wait(READY_SECONDS)
        self._ports.close()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    # What a folder held before each command

    def remember(self, role: str) -> None:
        """Keep the folder as it is now: what is there before `role` runs. Where a server has a part of the state, that is in
        vain."""
        if self._services is not None:
            return
        shutil.rmtree(self._states / role, ignore_errors=True)
        _copy(self.directory, self._states / role)

    def remembers(self, role: str) -> bool:
        """Whether that state is there."""
        return (self._states / role).is_dir()

    def restore(self, role: str) -> None:
        """Make the folder again what it was before `role`."""
        shutil.rmtree(self.directory)
        _copy(self._states / role, self.directory)

    async def empty(self) -> None:
        """Make the folder empty, and have databases that are."""
        shutil.rmtree(self.directory)
        self.directory.mkdir()
        if self._services is not None:
            self.served = await self._services.fresh()

    def write_down(self, place: Path) -> None:
        """Copy the folder to `place`."""
        _copy(self.directory, place)


def _copy(source: Path, to: Path) -> None:
    """Copy a folder as it is; sockets and pipes are nobody's state."""
    to.mkdir()
    shutil.copystat(source, to)
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.is_symlink():
                (to / entry.name).symlink_to(os.readlink(entry.path))  # noqa: PTH115
            elif entry.is_dir():
                _copy(Path(entry.path), to / entry.name)
            elif entry.is_file():
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy2(entry.path, to / entry.name)


def size_of(directory: Path) -> int:
    """How many bytes the files below a folder take, holes left out. Somebody may be writing them meanwhile."""
    total = 0
    for at, _folders, files in os.walk(directory):
        for name in files:
            with contextlib.suppress(OSError):
                status = os.lstat(Path(at, name))
                total += min(status.st_size, status.st_blocks * 512)
    return total


def delivered(arrivals: Sequence[Arrival]) -> frozenset[str]:
    """The jobs that arrived and were applied."""
    return frozenset(each.job for each in arrivals if each.job is not None and each.applied)
