"""The worker of the folder sqlite-worker without its mistake: a job is marked as sent after it was accepted.

Who dies in between sends it again, under the same key. It is for one worker at a time.
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
        try:
            send(job, url)
        except OSError as error:
            print(f"{job}: {error}; again", file=sys.stderr)
            time.sleep(0.1)
            continue
        with db:
            db.execute("update jobs set state = 'sent' where id = ?", (number,))


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        enqueue(*sys.argv[2:])
    else:
        work()
