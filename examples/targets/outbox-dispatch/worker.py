"""halt23's own dispatch outbox on SQLite, scanned until nothing is waiting or being delivered."""

import asyncio
import sys

from outbox.dispatch import StateDB, deliver_due_dispatches, enqueue_dispatch, list_dispatches

PAUSE_SECONDS = 0.3


async def enqueue(job, url):
    """Write a dispatch. Its key keeps its first meaning: saying it again is harmless."""
    async with StateDB("queue.db") as db:
        await enqueue_dispatch(db, kind="job", deliver_to=url, body={"job": job}, dedup_key=job)


async def work():
    """Scan until every dispatch has ended."""
    async with StateDB("queue.db") as db:
        while await list_dispatches(db, status="pending", limit=1) or await list_dispatches(db, status="delivering", limit=1):
            counts = await deliver_due_dispatches(db)
            if not counts["delivered"]:
                await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    asyncio.run(enqueue(*sys.argv[2:]) if sys.argv[1] == "enqueue" else work())
