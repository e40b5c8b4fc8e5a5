"""A receiver under test: its folder, its port, its process; started, killed and started again as often as the battery asks.

The port stays the receiver's while it is down: a socket that never listens is bound to it. Whatever is wrong with the
program itself (it never listens, listens elsewhere, goes into the background, ends by itself, fills the disk) is `Unusable`,
and told in words; it is no finding about keys.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from yarl import URL

from scenarios.engine.supervisor import Child, Ending, Supervisor
from scenarios.targets.model import Receiver, Target, fill, fill_all
from scenarios.targets.receiver_effects import Counter
from scenarios.targets.receiver_http import Address, Request, exchange
from scenarios.targets.receiver_process import Unusable, end, launch
from scenarios.targets.services import Services

# Below what a single file may have (the spawner's bound), so that one that fills the disk is known for it.
MAX_FOLDER_BYTES = 200 * 1024 * 1024
MAX_KEPT_BYTES = 8 * 1024 * 1024
SETTLE_SECONDS = 0.5
POLL_SECONDS = 0.01
ELSEWHERE_SECONDS = 3.0
CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Site:
    """What all stands of a check share. `scratch` is a folder for what the harness itself needs."""

    target: Target
    supervisor: Supervisor
    python: str
    services: Services
    scratch: Path

    @property
    def receiver(self) -> Receiver:
        """What the file says of the receiver."""
        assert self.target.contents.receiver is not None
        return self.target.contents.receiver


class Stand:
    """One receiver at one port, in one folder. Use as a context: leaving it ends the process."""

    def __init__(self, site: Site, directory: Path) -> None:
        self.site, self.directory = site, directory
        self.notes: list[str] = []
        self.keep = False
        self._was_ready = False
        self.child: Child | None = None
        self._children: list[Child] = []
        self._holder: socket.socket | None = None
        directory.mkdir(parents=True)
        url = site.receiver.url
        if url is None:
            self._holder = _held_port()
            self.address = Address("127.0.0.1", self._holder.getsockname()[1])
        else:
            given = URL(url)
            self.address = Address(given.host or "", given.port or 80, given.path.rstrip("/"))
        self.values = {
            "python": site.python,
            "target": str(site.target.folder),
            "dir": str(directory),
            "port": str(self.address.port),
            "url": f"http://{self.address.told}{self.address.base}",
        }
        self.counter = Counter(site.receiver.effects, self.address, self.values, site.supervisor)

    async def __aenter__(self) -> "Stand":
        try:
            self.values.update(await self.site.services.fresh())
            await self.start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self.child is not None and self.child.running:
            await end(self.site.supervisor, self.child)
        if self._holder is not None:
            self._holder.close()

    @property
    def alive(self) -> bool:
        """Whether the process runs; one that was running already is none of ours, and is said to."""
        return self.child is None or self.child.running

    @property
    def said(self) -> str:
        """What the process wrote last."""
        if self.child is None:
            return ""
        return f"{self.child.stdout.text()}\n{self.child.stderr.text()}".strip()[-500:]

    async def start(self) -> None:
        """Start it, for the first time or again in the same folder and at the same port, and wait until it serves. Raises
        Unusable."""
        began = time.monotonic()
        command = self.site.receiver.command
        if command is not None:
            environment = {name: fill(value, self.values) for name, value in self.site.target.contents.environment.items()}
            if self.site.receiver.policy.clock is not None:
                environment[self.site.receiver.policy.clock] = str(self.set_clock(None))
            self.child = await self.site.supervisor.start(launch(fill_all(command, self.values), self.directory, environment))
            self._children.append(self.child)
        self._was_ready = False
        await self._until_ready(began + self.site.receiver.ready_seconds)
        self._was_ready = True

    def set_clock(self, seconds: float | None) -> Path:
        """Move the target's clock; None keeps what it shows, and 0 where it shows nothing yet."""
        file = self.directory / CLOCK
        if seconds is not None or not file.exists():
            replacement = self.directory / f".{CLOCK}"
            replacement.write_text(f"{seconds or 0:g}\n")
            replacement.replace(file)
        return file

    async def stop(self) -> Ending:
        """SIGTERM, and SIGKILL where that is not heeded."""
        assert self.child is not None
        ending = await end(self.site.supervisor, self.child, signal.SIGTERM)
        if ending.signal == "SIGKILL":
            self.notes.append("it does not end by SIGTERM within 5 s and was killed")
        if ending.left:
            self.notes.append(f"stopped by SIGTERM it left {ending.left} processes behind; they were killed")
        return ending

    async def kill(self) -> Ending:
        """SIGKILL for the process and all that it started."""
        assert self.child is not None
        return await end(self.site.supervisor, self.child)

    async def settled(self) -> None:
        """The same as `check`, after a connection broke: the end of a process is told a moment later."""
        if self.child is not None:
            with contextlib.suppress(TimeoutError):
                await self.child.wait_ended(SETTLE_SECONDS)
        self.check()

    def check(self) -> None:
        """Raise Unusable where the process ended by itself, or where it has filled its folder."""
        if not self.alive:
            raise Unusable(self._why_ended())
        size = folder_bytes(self.directory)
        if size > MAX_FOLDER_BYTES:
            raise Unusable(f"the receiver fills the disk: {size} bytes in its folder; the bound is {MAX_FOLDER_BYTES}")

    def write_output(self, directory: Path) -> None:
        """Write what each of its processes wrote, and how it ended."""
        directory.mkdir()
        for number, child in enumerate(self._children, 1):
            ended = "" if child.running else f"ended with {child.ended.result()}\n"
            text = f"standard output:\n{child.stdout.text()}\nstandard error:\n{child.stderr.text()}\n{ended}"
            (directory / f"process-{number}.txt").write_text(text, "utf-8")

    def copy(self, number: int) -> Path:
        """A copy of its folder as it is now, where it is small, and what its processes wrote so far; returns where."""
        where = self.directory.with_name(f"{self.directory.name}.{number}")
        if folder_bytes(self.directory) <= MAX_KEPT_BYTES:
            shutil.copytree(self.directory, where, symlinks=True, ignore=special)
        else:
            where.mkdir()
        self.write_output(output_of(where))
        return where

    def processes(self) -> list[int]:
        """The process and its descendants, as they are now."""
        if self.child is None:
            return []
        with contextlib.suppress(psutil.Error):
            return [self.child.pid, *(each.pid for each in psutil.Process(self.child.pid).children(recursive=True))]
        return [self.child.pid]

    def threads(self) -> list[int]:
        """The threads of its processes, in the order in which they began."""
        found: list[int] = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                found += sorted(int(each.name) for each in os.scandir(f"/proc/{pid}/task"))
        return found

    async def _until_ready(self, deadline: float) -> None:
        began = time.monotonic()
        while not await self._serves():
            now = time.monotonic()
            if self.child is not None and not self.child.running:
                raise Unusable(self._why_ended())
            if self.child is not None and now - began > ELSEWHERE_SECONDS and (elsewhere := self._listens_elsewhere()):
                raise Unusable(
                    f"the receiver listens on {elsewhere} and not on 127.0.0.1:{self.address.port}: does it use {{port}}?"
                )
            if now > deadline:
                where = self.site.receiver.ready or "the port"
                raise Unusable(
                    f"the receiver did not become ready within {self.site.receiver.ready_seconds:g} s (asked: {where} at "
                    f"{self.address.told}); it said: {self.said!r}"
                )
            await asyncio.sleep(POLL_SECONDS)
        if self.child is not None and not self.child.running:
            raise Unusable(self._why_ended())

    async def _serves(self) -> bool:
        ready = self.site.receiver.ready
        if ready is not None:
            found = await exchange(self.address, Request("GET", self.address.base + ready, (), b""), 5.0)
            return found.status is not None
        try:
            _reader, writer = await asyncio.open_connection(self.address.host, self.address.port)
        except OSError:
            return False
        writer.close()
        return True

    def _why_ended(self) -> str:
        assert self.child is not None
        ending = self.child.ended.result()
        if ending.left:
            return (
                f"the receiver went into the background: its first process ended with {ending} and left {ending.left} others "
                "behind, which were killed; let command keep it in the foreground"
            )
        when = "and nothing had been done to it" if self._was_ready else "before it was ready"
        return f"the receiver ended by itself with {ending}, {when}; it said: {self.said!r}"

    def _listens_elsewhere(self) -> str | None:
        for pid in self.processes():
            with contextlib.suppress(psutil.Error):
                for connection in psutil.Process(pid).net_connections("inet"):
                    if connection.status == psutil.CONN_LISTEN and connection.laddr.port != self.address.port:
                        return f"{connection.laddr.ip}:{connection.laddr.port}"
        return None


def _held_port() -> socket.socket:
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Servers ask for a port that others may share by one of these two.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


def _files(directory: Path) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(Path(entry.path))
                else:
                    yield entry


def output_of(directory: Path) -> Path:
    """Where the output of a receiver is kept that worked in `directory`."""
    return directory.with_name(f"{directory.name}.output")


def special(directory: str, names: list[str]) -> list[str]:
    """Sockets and pipes, which cannot be copied."""
    paths = (Path(directory, name) for name in names)
    return [path.name for path in paths if not (path.is_symlink() or path.is_file() or path.is_dir())]


def folder_bytes(directory: Path) -> int:
    """How much is in a folder."""
    return sum(entry.stat(follow_symlinks=False).st_size for entry in _files(directory))


def remove(directory: Path) -> None:
    """Remove a stand's folder."""
    shutil.rmtree(directory, ignore_errors=True)
