"""PgQueuer over asyncpg, as it advises: a worker that drains the queue in batches of so many, asynchronous entry points."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import aiohttp
import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.domain.types import QueueExecutionMode

from benchmarks.peers.jobs import Job, Told, clocked, post_from_loop, postgres_durability

# Draining, it looks for more jobs after a wait of this; the default, half a minute, would be counted with the jobs.
WAIT = timedelta(seconds=0.01)


async def _told(connection: asyncpg.Connection, seconds: float) -> Told:
    return Told(
        seconds, await postgres_durability(connection.fetchval), await connection.fetchval("SELECT count(*) FROM pgqueuer")
    )


async def _enqueue(store: str, given: list[Job]) -> Told:
    connection = await asyncpg.connect(store)
    queries = PgQueuer.from_asyncpg_connection(connection).qm.queries
    await queries.install()
    with clocked() as took:
        for job in given:
            await queries.enqueue("post", json.dumps([job.key, job.url, job.body]).encode())
    told = await _told(connection, took.seconds)
    await connection.close()
    return told


async def _work(store: str, at_once: int) -> Told:
    connection = await asyncpg.connect(store)
    queue = PgQueuer.from_asyncpg_connection(connection)
    async with aiohttp.ClientSession() as session:

        async def send(job: Any) -> None:
            await post_from_loop(session, *json.loads(job.payload))

        queue.entrypoint("post")(send)
        with clocked() as took:
            await queue.qm.run(mode=QueueExecutionMode.drain, dequeue_timeout=WAIT, batch_size=at_once)
    await connection.close()
    connection = await asyncpg.connect(store)
    told = await _told(connection, took.seconds)
    await connection.close()
    return told


def enqueue(store: str, given: list[Job]) -> Told:
    """One enqueued job each."""
    return asyncio.run(_enqueue(store, given))


def work(store: str, number: int, at_once: int) -> Told:
    """One worker, until the queue is empty."""
    return asyncio.run(_work(store, at_once))
