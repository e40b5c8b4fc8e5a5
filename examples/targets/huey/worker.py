"""huey on SQLite: a task that is retried, and huey's own consumer with one worker thread, stopped when nothing is left."""

import json
import sys
import urllib.request

from huey import SqliteHuey
from huey.signals import SIGNAL_COMPLETE

huey = SqliteHuey(filename="queue.db")


@huey.task(retries=10, retry_delay=1)
def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


def is_idle():
    """Whether nothing is queued and nothing scheduled."""
    return not huey.pending_count() and not huey.scheduled_count()


def work():
    """Run the consumer until nothing is left."""
    if is_idle():
        return
    consumer = huey.create_consumer(periodic=False, initial_delay=0.02, max_delay=0.02)

    @huey.signal(SIGNAL_COMPLETE)
    def stop_when_idle(signal, task):
        if is_idle():
            consumer.stop_flag.set()

    consumer.run()


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        send(*sys.argv[2:])
    else:
        work()
