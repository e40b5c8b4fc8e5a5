"""The dispatch outbox itself, on SQLite or PostgreSQL: one scan, with full durability."""

import asyncio
from typing import Any

from benchmarks.peers.jobs import KIND, ORDER, Job, Told, clocked, postgres_durability, sqlite_durability
from outbox.dispatch import DeliveryOptions, StateDB, deliver_due_dispatches, enqueue_dispatch
from outbox.dispatch.address import SQLITE


async def _told(db: StateDB, seconds: float) -> Told:
    async def asked(statement: str) -> Any:
        return await db.read(lambda connection: connection.exec_driver_sql(statement).scalar_one(), "asking")

    if db.dialect == SQLITE:
        answers = {each: await asked(each) for each in ("PRAGMA journal_mode", "PRAGMA synchronous")}
        durability = sqlite_durability(answers.__getitem__)
    else:
        durability = await postgres_durability(asked)
    left = await asked("SELECT count(*) FROM dispatch_outbox WHERE status IN ('pending', 'delivering')")
    return Told(seconds, durability, left)


async def _enqueue(store: str, given: list[Job]) -> Told:
    async with StateDB(store) as db:
        with clocked() as took:
            for job in given:
                await enqueue_dispatch(db, kind=KIND, deliver_to=job.url, body=ORDER, dispatch_id=job.key)
        return await _told(db, took.seconds)


async def _work(store: str, number: int, at_once: int) -> Told:
    async with StateDB(store) as db:
        with clocked() as took:
            counts = await deliver_due_dispatches(db, options=DeliveryOptions(concurrency=at_once))
        assert counts["delivered"] == number, counts
        return await _told(db, took.seconds)


def enqueue(store: str, given: list[Job]) -> Told:
    """One dispatch a job."""
    return asyncio.run(_enqueue(store, given))


def work(store: str, number: int, at_once: int) -> Told:
    """One scan."""
    return asyncio.run(_work(store, number, at_once))
