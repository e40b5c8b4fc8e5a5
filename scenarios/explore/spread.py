"""Spreads the cases of a campaign over worker processes, by the interface of `concurrent.futures`.

The campaign derives, numbers and writes as ever: what a case comes to is the same wherever it is played, so the results are.
An attempt that is kept is moved into its place once, by the campaign. Folders of attempts that came to nothing are removed.
"""

import asyncio
import contextlib
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.errors import EvidenceIncomplete
from scenarios.explore.model import Case
from scenarios.explore.rounds import Room
from scenarios.explore.workers import ATTEMPTS, SETTINGS, Done, Job, play_job, sources_digest

# So many cases are on their way for each that is played, so that no worker waits for the next one.
AHEAD = 3
# That the scheduler has died is known a moment later than that its cases are given up.
NEWS_SECONDS = 1.0
GO_ON = "the results so far are there: go on with --resume"


@dataclass(frozen=True, slots=True)
class How:
    """How workers start children, what their spawners have loaded, and how many cases one of them plays at once."""

    spawn: str
    modules: tuple[str, ...]
    lanes: int = 1


class Spread:
    """Plays the cases of the campaign in `directory` by `executor`, of which `count` are played at once."""

    def __init__(self, executor: Executor, directory: Path, how: How, count: int) -> None:
        self._executor, self._directory, self._how = executor, directory, how
        # Set to a sentence where nobody will ever answer any more; an executor may wait for that without end.
        self.gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.lanes = count * AHEAD
        self._sources = sources_digest()

    async def play(self, case: Case, room: Room, number: int, place: Path) -> dict[str, Any]:
        """Play case `number`; its files are then in `place`, if they are kept. Raises EvidenceIncomplete."""
        job = Job(
            case=case,
            number=number,
            directory=self._directory,
            settings={name: getattr(room, name) for name in SETTINGS},
            spawn=self._how.spawn,
            modules=self._how.modules,
            lanes=self._how.lanes,
            sources=self._sources,
        )
        try:
            playing = asyncio.wrap_future(self._executor.submit(play_job, job))
            # Who gives up waiting does not cancel: a pool that breaks at that moment trips over what was cancelled beside it.
            playing.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            await asyncio.wait((playing, self.gone), return_when=asyncio.FIRST_COMPLETED)
            done = self._answer(playing)
        except (BrokenProcessPool, CancelledError) as error:
            await asyncio.wait((self.gone,), timeout=NEWS_SECONDS)
            died = f"a worker died ({str(error) or type(error).__name__})"
            raise EvidenceIncomplete(f"{case}: {self.gone.result() if self.gone.done() else died}; {GO_ON}") from error
        if done is None:
            raise EvidenceIncomplete(f"{case}: {self.gone.result()}; {GO_ON}")
        if done.attempt is not None:
            (self._directory / ATTEMPTS / done.attempt).rename(place)
        return dict(done.result)

    @staticmethod
    def _answer(playing: asyncio.Future[Done]) -> Done | None:
        """What was played; None where nobody will tell. Raises CancelledError where the executor gave it up, which must not
        look as if the campaign itself had been stopped."""
        if playing.cancelled():
            raise CancelledError
        return playing.result() if playing.done() else None

    def close(self) -> None:
        """Remove what attempts have left that came to nothing."""
        shutil.rmtree(self._directory / ATTEMPTS, ignore_errors=True)


def begin(directory: Path) -> None:
    """Make the folder of the attempts, new."""
    shutil.rmtree(directory / ATTEMPTS, ignore_errors=True)
    (directory / ATTEMPTS).mkdir()


@contextlib.asynccontextmanager
async def pool(directory: Path, how: How, count: int) -> AsyncIterator[Spread]:
    """A pool of so many worker processes on this machine, each with one case at a time."""
    begin(directory)
    # Not forked: this process has threads and a loop, and the children would have copies of both.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_settle)
    spread = Spread(executor, directory, how, count)
    try:
        yield spread
    finally:
        await asyncio.to_thread(executor.shutdown, wait=True, cancel_futures=True)
        spread.close()


def _settle() -> None:
    """In a worker: a stop is the campaign's to handle, and nobody outlives it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(3)  # the spawner ends its children when we are gone

    threading.Thread(target=watch, name="watch", daemon=True).start()
