"""Processes that a program left behind: which they are, and whose.

The spawner is their parent once the one that started them has ended (it is a subreaper). Whose one is, is told by its session,
by the pipes that it still writes to, or by its working directory; one that has shed all of that is the only
running command's. Where several run it is nobody's until one of them is the last, and is ended with the spawner at the latest.
"""

import contextlib
import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

END_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Mark:
    """What the descendants of one child have of it: the directory that it works in, and the pipes that it writes to."""

    directory: str
    pipes: frozenset[int]


def mark(directory: str, descriptors: Collection[int]) -> Mark:
    """The mark of a child that is to work there and to write to these."""
    return Mark(os.path.realpath(directory), frozenset(os.fstat(each).st_ino for each in descriptors))


def orphans(known: Collection[int]) -> list[int]:
    """Children of this process that it did not start, and that are alive. Where the kernel does not tell, none."""
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii")
    except OSError:
        return []
    return [pid for pid in map(int, text.split()) if pid not in known and _status(pid)[0] not in ("", "Z", "X")]


def belongs(orphan: int, pid: int, mark: Mark) -> bool:
    """Whether `orphan` is a descendant of the child `pid`."""
    if _status(orphan)[1] == pid:
        return True
    with contextlib.suppress(OSError):
        if any(os.stat(f"/proc/{orphan}/fd/{each}").st_ino in mark.pipes for each in (1, 2)):  # noqa: PTH116
            return True
    with contextlib.suppress(OSError):
        at = os.readlink(f"/proc/{orphan}/cwd")  # noqa: PTH115
        return at == mark.directory or at.startswith(f"{mark.directory}/")
    return False


def end(pid: int) -> None:
    """Kill one that was left behind, and its group, and reap it: it writes nothing any more when this returns."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if kill is os.kill or os.getpgid(pid) == pid:
                kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + END_SECONDS
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.001)  # a bound matters here: whoever cannot be killed must not hold up the others


def _status(pid: int) -> tuple[str, int]:
    """State and session of a process; an empty state where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[3])
