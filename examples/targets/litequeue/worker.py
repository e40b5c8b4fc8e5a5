"""litequeue as its quickstart shows it: pop a message, work on it, mark it as done; `retry` after a failure."""

import json
import sys
import time
import urllib.request

from litequeue import LiteQueue


def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


def work(queue):
    """Work on what is ready, until nothing is."""
    while message := queue.pop():
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
