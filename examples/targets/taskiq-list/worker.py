"""taskiq on a Redis list: a task that is retried when it fails, and taskiq's receiver in this process."""

import asyncio
import json
import os
import signal
import sys
import urllib.request

from redis.asyncio import Redis
from taskiq import SimpleRetryMiddleware
from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker

broker = ListQueueBroker(os.environ["REDIS_URL"]).with_middlewares(SimpleRetryMiddleware(default_retry_count=50))


@broker.task(task_name="send", retry_on_error=True)
def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


async def enqueue(job, url):
    """Hand a job in."""
    await broker.startup()
    await send.kiq(job, url)
    await broker.shutdown()


async def work():
    """Receive until SIGTERM."""
    receiving = asyncio.create_task(run_receiver_task(broker, run_startup=True, sync_workers=1))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, receiving.cancel)
    await asyncio.wait([receiving])
    await broker.shutdown()


async def pending():
    """How many messages are in the list."""
    async with Redis.from_url(os.environ["REDIS_URL"]) as client:
        print(await client.llen(broker.queue_name))


COMMANDS = {"enqueue": enqueue, "work": work, "pending": pending}

if __name__ == "__main__":
    asyncio.run(COMMANDS[sys.argv[1]](*sys.argv[2:]))
