"""litequeue with a sweep of one's own: what has been locked for more than a second is given back, by `list_locked` and `retry`.

The bound is shorter than the longest request (5 seconds): a second request under the same key does no harm, and who waits less
recovers sooner.
"""

import json
import sys
import time
import urllib.request

from litequeue import LiteQueue

LOCKED_SECONDS = 1


def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


def sweep(queue):
    """Give back what a worker took and never finished."""
    for message in list(queue.list_locked(LOCKED_SECONDS)):
        queue.retry(message.message_id)


def work(queue):
    """Work until nothing is ready and nothing is locked."""
    while queue.qsize():
        sweep(queue)
        message = queue.pop()
        if message is None:
            time.sleep(0.1)
            continue
        try:
            send(**json.loads(message.data))
        except OSError as error:
            print(f"{message.data}: {error}; again", file=sys.stderr)
            queue.retry(message.message_id)
            time.sleep(0.1)
        else:
            queue.done(message.message_id)


if __name__ == "__main__":
    queue = LiteQueue("queue.db")
    if sys.argv[1] == "enqueue":
        queue.put(json.dumps({"job": sys.argv[2], "url": sys.argv[3]}))
    else:
        work(queue)
