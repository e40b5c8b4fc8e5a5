"""Celery on Redis as it comes: a task that is retried when it fails; a message is acknowledged just before its task runs.

What was taken and not acknowledged comes back after the visibility timeout, here five seconds (its default is an hour).
"""

import json
import os
import sys
import urllib.request

import redis
from celery import Celery

app = Celery("worker", broker=os.environ["REDIS_URL"])
app.conf.update(
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": 5},
)


@app.task(name="send", autoretry_for=(OSError,), max_retries=20, default_retry_delay=1)
def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


def pending():
    """How many messages are in the queue, or taken and not acknowledged."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    return client.llen("celery") + client.hlen("unacked")


# One thread: the processes of the default pool outlive a killed parent, and the pool `solo` sends an acknowledgement only after
# the task that it is for.
WORKER = ["worker", "--pool=threads", "--concurrency=1", "--loglevel=WARNING"]
ALONE = ["--without-gossip", "--without-mingle", "--without-heartbeat"]

if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        send.delay(*sys.argv[2:])
    elif sys.argv[1] == "pending":
        print(pending())
    else:
        app.worker_main(WORKER + ALONE)
