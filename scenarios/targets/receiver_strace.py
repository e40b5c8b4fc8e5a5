"""strace on a receiver that is ready: what it does while it handles one request, a death at one of these calls, and slow calls.

strace counts the calls of each thread by itself, and so does the recording: a place is the n-th call of its name, in whichever
thread comes to that first; where another thread's n-th is about another file, it is the n-th of those about that file. What
only talks within the process (pipes, event descriptors) or reads is no place: who dies there dies as at the next one.
"""

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from scenarios.engine.supervisor import Child
from scenarios.explore.calls import ON_FILES, ON_SOCKETS, OPENS
from scenarios.explore.strace import PROGRAM
from scenarios.targets.receiver_process import end, launch
from scenarios.targets.receiver_stand import Stand

NAMES = tuple(dict.fromkeys((*ON_FILES, *ON_SOCKETS, "accept", "shutdown")))
ATTACH_SECONDS, AFTER_SECONDS = 10.0, 0.05
POLL_SECONDS = 0.005
CLIENT, ELSEWHERE = "to the client", "to another server"
_QUIET = "--quiet=path-resolution,exit"
_CALL = re.compile(r"(?:(?P<pid>\d+) +)?(?P<name>\w+)\((?P<rest>.*)")
_DESCRIPTOR = re.compile(r"\d+<(?P<what>(?:TCP|/)[^>]*)")
_AT = re.compile(r'(?:(?:AT_FDCWD|\d+)(?:<(?P<base>[^>]*)>)?, )?"(?P<path>(?:[^"\\]|\\.)*)"')
_NO_FILES = ("/dev/", "/proc/", "/sys/", "/memfd:")
_PATHS = (*OPENS, "mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "link", "linkat",
          "symlink", "symlinkat", "truncate")  # fmt: skip


class NotTraced(Exception):
    """strace could not be attached."""


@dataclass(frozen=True, slots=True)
class Place:
    """The `number`-th call of this name in one thread. `what` it is about: a file, or a connection. With `alone`
    only the calls about that file are counted."""

    name: str
    number: int
    what: str
    alone: bool = False

    @property
    def told(self) -> str:
        """`fdatasync app.db`."""
        return f"{self.name} {self.what}"

    def __str__(self) -> str:
        return f"{self.name}#{self.number}" + (f" of {self.what}" if self.alone else "")


def places(log: str, directory: Path, port: int) -> list[Place]:
    """The places in strace's log of a receiver that works in `directory` and listens on `port`, in the order in which they
    were come to."""
    counts: dict[tuple[str, ...], int] = {}
    found: dict[str, Place] = {}
    for text in log.splitlines():
        match = _CALL.fullmatch(text)
        if match is None:
            continue
        name, what = match["name"], _what(match["name"], match["rest"], directory, port)
        thread = (match["pid"] or "", name)
        counts[thread] = counts.get(thread, 0) + 1
        if what is None:
            continue
        counts[*thread, what] = counts.get((*thread, what), 0) + 1
        place = Place(name, counts[thread], what)
        if what not in (CLIENT, ELSEWHERE) and found.get(str(place), place).what != what:
            place = Place(name, counts[*thread, what], what, alone=True)
        found.setdefault(str(place), place)
    return list(found.values())


def _what(name: str, rest: str, directory: Path, port: int) -> str | None:
    if name == "connect":
        return ELSEWHERE if "AF_INET" in rest else None
    if name in _PATHS:
        if name in OPENS and "O_CREAT" not in rest and name != "creat":
            return None
        match = _AT.match(rest)
        path = None if match is None else str(Path(directory, match["base"] or "", match["path"]))
    else:
        match = _DESCRIPTOR.match(rest)
        path = None if match is None else match["what"].removesuffix(" (deleted)")
    if path is None or path.startswith(_NO_FILES):
        return None
    if not path.startswith("/"):
        return CLIENT if re.match(rf"TCP.*?:{port}(?:-|\])", path) else ELSEWHERE
    return str(Path(path).relative_to(directory)) if Path(path).is_relative_to(directory) else path


class Tracing:
    """strace at work on a receiver; `log` is what it writes."""

    def __init__(self, child: Child, log: Path) -> None:
        self.child, self.log = child, log

    def text(self) -> str:
        """The log so far."""
        try:
            return self.log.read_text("utf-8", "replace")
        except OSError:
            return ""

    @property
    def struck(self) -> bool:
        """Whether a call was struck."""
        return "(INJECTED)" in self.text()


@asynccontextmanager
async def traced(
    stand: Stand, label: str, *, names: Sequence[str], inject: str | None = None, what: str | None = None
) -> AsyncIterator[Tracing]:
    """Attach strace to all processes of a receiver, for as long as this lasts. `inject` is what is done to calls; with `what`
    only to those about that file of the receiver's folder."""
    log = stand.site.scratch / f"{label}.strace"
    pids = stand.processes()
    listed = ",".join(f"?{name}" for name in names)
    command = [PROGRAM, "-f", "-yy", "-s", "16", _QUIET, "-o", str(log), "-e", f"trace={listed}"]
    if inject is not None:
        command += ["-e", f"inject={inject}"]
    if what is not None:
        # A path is compared as the program names it.
        command += ["-P", what, "-P", str(stand.directory / what)]
    command += [part for pid in pids for part in ("-p", str(pid))]
    supervisor = stand.site.supervisor
    child = await supervisor.start(launch(command, stand.site.scratch, {}))
    try:
        deadline = time.monotonic() + ATTACH_SECONDS
        while child.stderr.text().count(" attached") < len(pids):
            if not child.running or time.monotonic() > deadline:
                raise NotTraced(child.stderr.text().strip()[-300:] or "it says nothing")
            await asyncio.sleep(POLL_SECONDS)
        yield Tracing(child, log)
    finally:
        await end(supervisor, child, signal.SIGTERM)
        log.unlink(missing_ok=True)
