"""System calls of a worker that is several processes, or many threads: a shell and what it starts, a program with a pool.

strace counts for each thread by itself, so that a number is no place there. Such a worker is stopped after each counted call,
wherever it comes, and goes on; after so many of them the whole group of processes is killed. What is on the disk is then what a
kill before the next call leaves. Between two such calls the job is delivered. There are two deaths in between: before anything
is sent, and when the receiver has applied the job, whose answer it holds back until nobody waits for it.
"""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scenarios.explore import strace
from scenarios.explore.calls import ON_FILES, ON_SOCKETS, TCP, Call

POLL_SECONDS = 0.004
AGAIN_SECONDS = 0.25
_DELIVERED = re.compile(r"^(\d+) +--- SIGSTOP \{", re.MULTILINE)
_STOPPED = re.compile(r"^(\d+) +--- stopped by SIGSTOP ---", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TreeStrike:
    """A kill after so many counted calls, which is before `call`: number `number` of its name. If `arrived`, when the job has
    arrived and is not answered."""

    call: Call
    number: int
    watched: tuple[str, ...]
    stops: int
    arrived: bool = False


def is_tree(calls: Sequence[Call]) -> bool:
    """Whether more than one thread changes files."""
    return len({call.thread for call in calls if call.changes and call.name in ON_FILES}) > 1


def tree_strikes(calls: Sequence[Call], arrived: int | None = None) -> Iterator[TreeStrike]:
    """Every file call that can be struck, in order, and the first call by which the job is sent. Before the first one nothing
    was done. `arrived` calls had begun when the job arrived.
    """
    watched = tuple(sorted({call.target for call in calls if call.changes and call.name in ON_FILES}))
    counts: dict[str, int] = {}
    stops = 0
    sends: TreeStrike | None = None
    for at, call in enumerate(calls):
        if call.name in ON_SOCKETS and call.target == TCP and call.changes:
            counts[call.name] = counts.get(call.name, 0) + 1
            sends = sends or TreeStrike(call, counts[call.name], watched, stops)
        elif call.name in ON_FILES and call.target in watched:
            counts[call.name] = counts.get(call.name, 0) + 1
            if arrived is not None and at >= arrived:
                if stops:
                    yield sends or TreeStrike(Call(1, "sendto", TCP), counts.get("sendto", 0) + 1, watched, stops)
                yield TreeStrike(call, counts[call.name], watched, stops, arrived=True)
                arrived = None
            elif call.changes and stops:
                yield TreeStrike(call, counts[call.name], watched, stops)
            stops += 1
            sends = None


def stopping(strike: TreeStrike, directory: Path, log: Path) -> tuple[str, ...]:
    """strace that stops whoever makes a counted call, once it is made."""
    names = ",".join(f"?{each}" for each in ON_FILES)
    paths = [each for path in strike.watched for each in (path, str(directory / path))]
    watched = [part for path in paths for part in ("-P", path)]
    quiet = "--quiet=path-resolution,exit"
    return (
        *(strace.PROGRAM, "-f", "-yy", "-s", "0", quiet, "-o", str(log), *watched),
        *("-e", f"trace={names}", "-e", f"inject={names}:signal=STOP"),
    )


class Follower:
    """Lets a stopped worker go on until it has stopped often enough; then it is killed, and `reached` is set."""

    def __init__(self, strike: TreeStrike, log: Path) -> None:
        self._stops, self._log = strike.stops, log
        self.reached = False

    async def follow(self) -> None:
        """Do so until it is cancelled."""
        seen, told, at = 0, "", 0.0
        loop = asyncio.get_running_loop()
        while not self.reached:
            await asyncio.sleep(POLL_SECONDS)
            text = self._log.read_text("utf-8", "replace") if self._log.exists() else ""
            delivered = _DELIVERED.findall(text)
            if len(delivered) > seen and len(_STOPPED.findall(text)) > seen:
                seen = len(delivered)
                self._act(int(delivered[-1]), seen)
                told, at = text, loop.time()
            elif text == told and seen and loop.time() - at > AGAIN_SECONDS:
                at = loop.time()  # it was told to go on before it had stopped
                self._act(int(delivered[-1]), seen)

    def _act(self, pid: int, stops: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            if stops >= self._stops:
                os.killpg(os.getpgid(pid), signal.SIGKILL)
                self.reached = True
            else:
                os.kill(pid, signal.SIGCONT)
