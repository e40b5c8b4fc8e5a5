"""An outbox as many are written first: a table, and a loop that sends what stands in it. It has one mistake.

A job is marked as sent before it is sent, so that no other worker takes it as well. Who dies in between has sent nothing, and
nobody looks at that row again. The folder sqlite-worker-mended has the same worker without the mistake.
"""

import json
import sqlite3
import sys
import time
import urllib.request


def open_queue():
    """The database of this folder."""
    db = sqlite3.connect("queue.db", timeout=10)
    db.execute("create table if not exists jobs (id integer primary key, job text unique, url text, state text)")
    return db


def enqueue(job, url):
    """Write a job down. Saying it again is harmless."""
    db = open_queue()
    with db:
        db.execute("insert or ignore into jobs (job, url, state) values (?, ?, 'waiting')", (job, url))


def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


def work():
    """Send what waits, until nothing does."""
    db = open_queue()
    while row := db.execute("select id, job, url from jobs where state = 'waiting' order by id limit 1").fetchone():
        number, job, url = row
        with db:
            db.execute("update jobs set state = 'sent' where id = ?", (number,))
        try:
            send(job, url)
        except OSError as error:
            print(f"{job}: {error}; again", file=sys.stderr)
            with db:
                db.execute("update jobs set state = 'waiting' where id = ?", (number,))
            time.sleep(0.1)


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        enqueue(*sys.argv[2:])
    else:
        work()
