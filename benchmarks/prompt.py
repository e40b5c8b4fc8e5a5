"""From the enqueue to the effect, one dispatch at a time: the outbox with its scheduler awake, and the least that a durable
path can do.

Both end when the receiver has the request, by the receiver's own reading of the clock that all processes share. The outbox's
path has two commits before the effect, that of the enqueue and that of the claim, with one sync of the log each. So the floor
writes one page and syncs it, twice, then posts on a connection that is open already. It writes over what is there, as a log
does that has been round once: a file that grows costs its sync more.
"""

import asyncio
import contextlib
import os
import statistics
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from benchmarks.peers.jobs import KIND, ORDER, jobs, post_from_loop
from benchmarks.receiver import counted
from outbox.dispatch import DispatchSettings, Scheduler, StateDB, enqueue_dispatch
from outbox.dispatch.delivery import Delivery

SYNCS = 2
PAGE = bytes(4096)


class Prompt:
    """An open store with a scheduler, an open file and an open session, all in one event loop and in one `folder`."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url
        self._runner = asyncio.Runner()
        self._stack = contextlib.AsyncExitStack()
        self._delivered = asyncio.Event()

    def __enter__(self) -> Self:
        self._runner.run(self._open())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._runner.run(self._close())
        finally:
            self._runner.close()

    def outbox(self, times: int) -> float:
        """The median of seconds from the enqueue to the effect."""
        return self._runner.run(self._outbox(times))

    def floor(self, times: int) -> float:
        """The median of seconds for as many syncs and a POST, and nothing else."""
        return self._runner.run(self._floor(times))

    async def _open(self) -> None:
        self._session = await self._stack.enter_async_context(aiohttp.ClientSession())
        self._db = await self._stack.enter_async_context(StateDB(self._folder / "dispatch.db"))
        self._file = os.open(self._folder / "floor", os.O_CREAT | os.O_WRONLY)
        self._stack.callback(os.close, self._file)
        self._scheduler = Scheduler(self._db, DispatchSettings(), told=self._told)
        self._running = asyncio.create_task(self._scheduler.run())

    async def _close(self) -> None:
        self._scheduler.stop()
        await self._running
        await self._stack.aclose()

    def _told(self, delivery: Delivery) -> None:
        if delivery.counts["delivered"]:
            self._delivered.set()

    async def _outbox(self, times: int) -> float:
        taken = []
        for _ in range(times):
            counted(self._url)
            self._delivered.clear()
            began = time.monotonic_ns()
            await enqueue_dispatch(self._db, kind=KIND, deliver_to=self._url, body=ORDER)
            self._scheduler.wake()
            await self._delivered.wait()
            taken.append(counted(self._url).last_ns - began)
        return statistics.median(taken) / 1e9

    async def _floor(self, times: int) -> float:
        taken = []
        for job in jobs(self._url, times):
            counted(self._url)
            began = time.monotonic_ns()
            for _ in range(SYNCS):
                os.pwrite(self._file, PAGE, 0)
                os.fdatasync(self._file)
            await post_from_loop(self._session, job.key, job.url, job.body)
            taken.append(counted(self._url).last_ns - began)
        return statistics.median(taken) / 1e9
