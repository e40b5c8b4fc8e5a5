"""The floor of sending: an `aiohttp` client that posts the same bodies with the same concurrency, and keeps nothing."""

import asyncio
import itertools
import time

import aiohttp

from benchmarks.peers.jobs import jobs, post_from_loop

_first = itertools.count(step=10**9)


async def post_all(url: str, number: int, at_once: int) -> float:
    """Seconds for so many posts, with keys that were never used before."""
    given = iter(jobs(url, number, next(_first)))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=at_once)) as session:

        async def worker() -> None:
            for job in given:
                await post_from_loop(session, job.key, job.url, job.body)

        began = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(at_once)))
        return time.perf_counter() - began
