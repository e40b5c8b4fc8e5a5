"""From the enqueue to the effect, one dispatch at a time: the outbox with its scheduler awake, and the least that a durable
path can do.

Both end when the receiver has the request, by the receiver's own reading of the clock that all processes share. The outbox's
path has two commits before the effect, that of the enqueue and that of the claim, with one sync of the log each. So the floor
writes one page and syncs it, twice, then posts on a connection that is open already.
"""

import asyncio
import os
import statistics
import time
from pathlib import Path

import aiohttp

from benchmarks.peers.jobs import KIND, ORDER, jobs, post_from_loop
from benchmarks.receiver import counted
from outbox.dispatch import DispatchSettings, Scheduler, StateDB, enqueue_dispatch
from outbox.dispatch.delivery import Delivery

SYNCS = 2
PAGE = bytes(4096)


async def outbox_latency(store: Path, url: str, times: int) -> float:
    """The median of seconds, over so many dispatches."""
    scanned = asyncio.Event()

    def told(delivery: Delivery) -> None:
        if delivery.counts["delivered"]:
            scanned.set()

    took = []
    async with StateDB(store) as db:
        scheduler = Scheduler(db, DispatchSettings(), told=told)
        running = asyncio.create_task(scheduler.run())
        for _ in range(times):
            counted(url)
            scanned.clear()
            began = time.monotonic_ns()
            await enqueue_dispatch(db, kind=KIND, deliver_to=url, body=ORDER)
            scheduler.wake()
            await scanned.wait()
            took.append(counted(url).last_ns - began)
        scheduler.stop()
        await running
    return statistics.median(took) / 1e9


async def floor_latency(file: Path, url: str, times: int) -> float:
    """The same for as many syncs and a post, and nothing else."""
    took = []
    written = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        async with aiohttp.ClientSession() as session:
            for job in jobs(url, times):
                counted(url)
                began = time.monotonic_ns()
                for _ in range(SYNCS):
                    os.write(written, PAGE)
                    os.fdatasync(written)
                await post_from_loop(session, job.key, job.url, job.body)
                took.append(counted(url).last_ns - began)
    finally:
        os.close(written)
    return statistics.median(took) / 1e9
