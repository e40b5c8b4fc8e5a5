"""strace on a receiver that is ready: what it does while it handles one request, a death at one of these calls, and slow calls.

strace counts the calls of each thread by itself, and so does the recording: a place is the n-th call of its name, in whichever
thread comes to that first; where another thread's n-th is about another file, it is the n-th of those about that file. What
only talks within the process (pipes, event descriptors) or reads is no place: who dies there dies as at the next one.
"""

import asyncio
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from scenarios.engine.supervisor import Child
from scenarios.errors import HarnessBug
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


@dataclass(frozen=True, slots=True)
class Place:
    """The `number`-th call of this name in one thread. `what` it is about: a file, or a connection. With `alone` only the calls
    about that file are counted, with `thread` only those of that thread, from 1 in the order of their beginning."""

    name: str
    number: int
    what: str
    alone: bool = False
    thread: int | None = None

    @property
    def told(self) -> str:
        """`fdatasync app.db`."""
        return f"{self.name} {self.what}"

    def __str__(self) -> str:
        of = f" of {self.what}" if self.alone else f" of thread {self.thread}" if self.thread else ""
        return f"{self.name}#{self.number}{of}"


@dataclass(frozen=True, slots=True)
class Handling:
    """What one handling did. `shadowed` are calls of threads that began in it, and that others reach by the same number."""

    places: tuple[Place, ...]
    shadowed: int


def handling(log: str, directory: Path, port: int, threads: Sequence[int] = ()) -> Handling:
    """What strace's log tells of a receiver that works in `directory`, listens on `port` and had these threads, in order."""
    order = {str(thread): index for index, thread in enumerate(threads, 1)}
    counts: Counter[tuple[str, ...]] = Counter()
    reached: set[Place] = set()
    found: list[Place] = []
    shadowed = 0
    for text in log.splitlines():
        match = _CALL.fullmatch(text)
        if match is None:
            continue
        thread, name = match["pid"] or "", match["name"]
        what = _what(name, match["rest"], directory, port)
        counts[thread, name] += 1
        anywhere = Place(name, counts[thread, name], "")
        first = anywhere not in reached
        reached.add(anywhere)
        if what is None:
            continue
        counts[thread, name, what] += 1
        alone = Place(name, counts[thread, name, what], what, alone=True)
        if first:
            found.append(replace(anywhere, what=what))
        elif what not in (CLIENT, ELSEWHERE) and alone not in reached:
            found.append(alone)
        elif thread in order:
            found.append(replace(anywhere, what=what, thread=order[thread]))
        else:
            shadowed += 1
        reached.add(alone)
    return Handling(tuple(found), shadowed)


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
    inside = path is not None and Path(path).is_relative_to(directory)  # wherever that lies: files in memory are files
    if path is None or (path.startswith(_NO_FILES) and not inside):
        return None
    if not path.startswith("/"):
        return CLIENT if re.match(rf"TCP.*?:{port}(?:-|\])", path) else ELSEWHERE
    return str(Path(path).relative_to(directory)) if inside else path


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
    stand: Stand, label: str, *, names: Sequence[str], inject: str | None = None, place: Place | None = None
) -> AsyncIterator[Tracing]:
    """Attach strace to all processes of a receiver, for as long as this lasts. `inject` is what is done to calls: to all, or
    to those that a `place` is counted among. Raises HarnessBug where that cannot be, and Unusable where the receiver ended."""
    log = stand.site.scratch / f"{label}.strace"
    pids = stand.processes()
    listed = ",".join(f"?{name}" for name in names)
    command = [PROGRAM, "-f", "-yy", "-s", "16", _QUIET, "-o", str(log), "-e", f"trace={listed}"]
    if inject is not None:
        command += ["-e", f"inject={inject}"]
    if place is not None and place.alone:
        # A path is compared as the program names it.
        command += ["-P", place.what, "-P", str(stand.directory / place.what)]
    if place is not None and place.thread is not None:
        pids = stand.threads()[place.thread - 1 : place.thread]
        command.remove("-f")
    command += [part for pid in pids for part in ("-p", str(pid))]
    supervisor = stand.site.supervisor
    child = await supervisor.start(launch(command, stand.site.scratch, {}))
    try:
        deadline = time.monotonic() + ATTACH_SECONDS
        while child.stderr.text().count(" attached") < len(pids):
            if not child.running or time.monotonic() > deadline:
                stand.check()
                raise HarnessBug(f"strace cannot be attached to the receiver: {child.stderr.text().strip()[-300:]!r}")
            await asyncio.sleep(POLL_SECONDS)
        yield Tracing(child, log)
    finally:
        await end(supervisor, child, signal.SIGTERM)
        log.unlink(missing_ok=True)
