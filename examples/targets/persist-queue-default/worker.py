"""persist-queue's acknowledged SQLite queue, as it comes: whoever opens it resumes what was taken, producers as well."""

import json
import sys
import time
import urllib.request

from persistqueue import Empty, SQLiteAckQueue


def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


def work():
    """Work on what is ready, until nothing is. Opening the queue resumes what a dead worker had taken."""
    queue = SQLiteAckQueue("queue")
    while True:
        try:
            item = queue.get(block=False)
        except Empty:
            return
        try:
            send(**item)
        except OSError as error:
            print(f"{item}: {error}; again", file=sys.stderr)
            queue.nack(item)
            time.sleep(0.1)
        else:
            queue.ack(item)


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        SQLiteAckQueue("queue").put({"job": sys.argv[2], "url": sys.argv[3]})
    else:
        work()
