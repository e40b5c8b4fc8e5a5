"""procrastinate: a worker with so many jobs at once, asynchronous tasks."""

import asyncio
from typing import Any

import aiohttp
from procrastinate import App, PsycopgConnector, RetryStrategy

from benchmarks.peers.jobs import Job, Told, clocked, post_from_loop, postgres_durability


async def _told(app: Any, seconds: float) -> Told:
    async def asked(statement: str) -> Any:
        return next(iter((await app.connector.execute_query_one_async(statement)).values()))

    left = await asked("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')")
    return Told(seconds, await postgres_durability(asked), left)


async def _enqueue(store: str, given: list[Job]) -> Told:
    app = App(connector=PsycopgConnector(conninfo=store))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with clocked() as took:
            for job in given:
                await app.configure_task("post").defer_async(key=job.key, url=job.url, body=job.body)
        return await _told(app, took.seconds)


async def _work(store: str, at_once: int) -> Told:
    app = App(connector=PsycopgConnector(conninfo=store))
    async with app.open_async(), aiohttp.ClientSession() as session:

        async def send(key: str, url: str, body: str) -> None:
            await post_from_loop(session, key, url, body)

        app.task(name="post", retry=RetryStrategy(max_attempts=20, wait=1))(send)
        with clocked() as took:
            await app.run_worker_async(wait=False, concurrency=at_once, install_signal_handlers=False)
        return await _told(app, took.seconds)


def enqueue(store: str, given: list[Job]) -> Told:
    """One deferred task a job."""
    return asyncio.run(_enqueue(store, given))


def work(store: str, number: int, at_once: int) -> Told:
    """One worker, until it has caught up with the queue."""
    return asyncio.run(_work(store, at_once))
