"""PgQueuer: an entry point that is retried when it fails, and a worker that ends when no job is left.

A job whose worker sends no more heartbeats is picked again after `heartbeat_timeout`, here two seconds (its default is thirty).
"""

import asyncio
import json
import os
import sys
import urllib.request
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.domain.types import QueueExecutionMode
from pgqueuer.executors import DatabaseRetryEntrypointExecutor


def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


def retrying(parameters):
    """Tries again after a second, twenty times."""
    return DatabaseRetryEntrypointExecutor(
        parameters=parameters, max_attempts=20, initial_delay=timedelta(seconds=1), backoff_multiplier=1
    )


async def work(connection):
    """Drain the queue, until nothing is queued and no dead worker's job is left."""
    while True:
        pgq = PgQueuer.from_asyncpg_connection(connection)

        @pgq.entrypoint("send", executor_factory=retrying)
        async def entry(job):
            await asyncio.to_thread(send, **json.loads(job.payload))

        if not await pgq.qm.queries.queue_size():
            return
        await pgq.qm.run(
            mode=QueueExecutionMode.drain, dequeue_timeout=timedelta(seconds=0.2), heartbeat_timeout=timedelta(seconds=2)
        )
        await asyncio.sleep(0.1)


async def main(command, *arguments):
    """One of the target's commands."""
    connection = await asyncpg.connect(os.environ["POSTGRES_URL"])
    queries = PgQueuer.from_asyncpg_connection(connection).qm.queries
    if command == "setup":
        await queries.install()
    elif command == "enqueue":
        job, url = arguments
        await queries.enqueue("send", json.dumps({"job": job, "url": url}).encode())
    elif command == "pending":
        print(sum(each.count for each in await queries.queue_size()))
    else:
        await work(connection)
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
