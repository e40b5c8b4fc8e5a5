"""persist-queue's SQLite queue as its quick start shows it: with `auto_commit=True`, `get` deletes what it returns."""

import json
import sys
import time
import urllib.request

from persistqueue import Empty, SQLiteQueue


def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


def work(queue):
    """Work on what is there, until nothing is."""
    while True:
        try:
            item = queue.get(block=False)
        except Empty:
            return
        try:
            send(**item)
        except OSError as error:
            print(f"{item}: {error}; again", file=sys.stderr)
            queue.put(item)
            time.sleep(0.1)


if __name__ == "__main__":
    queue = SQLiteQueue("queue", auto_commit=True)
    if sys.argv[1] == "enqueue":
        queue.put({"job": sys.argv[2], "url": sys.argv[3]})
    else:
        work(queue)
