"""A worker as people write them: jobs in a SQLite table, claimed, sent, marked done. Material of the tests.

    python sqlite_worker.py setup | enqueue JOB URL | work [HOW]

HOW is how it goes wrong, if it does: `deletes-first` deletes the job and then sends, `no-lease` leaves what was claimed claimed,
`new-key` makes a key for each attempt, `no-key` sends none.
"""

import json
import sqlite3
import sys
import time
import urllib.request
import uuid

LEASE_SECONDS = 0.4


def connect():
    database = sqlite3.connect("jobs.db", timeout=5, isolation_level=None)
    database.execute("pragma journal_mode = wal")
    return database


def setup():
    with connect() as database:
        database.execute("create table if not exists jobs (name text primary key, url text, state text, until real)")


def enqueue(name, url):
    with connect() as database:
        database.execute("insert or ignore into jobs values (?, ?, 'new', 0)", (name, url))


def send(name, url, how):
    headers = {"Content-Type": "application/json"}
    if how != "no-key":
        headers["Idempotency-Key"] = str(uuid.uuid4()) if how == "new-key" else name
    body = json.dumps({"job": name}).encode()
    request = urllib.request.Request(url, body, headers, method="POST")
    with urllib.request.urlopen(request, timeout=10) as response:
        response.read()


def claim(database, how):
    now = time.time()
    late = "0" if how == "no-lease" else "state = 'claimed' and until < ?"
    values = () if how == "no-lease" else (now,)
    return database.execute(
        f"update jobs set state = 'claimed', until = ? where name = (select name from jobs where state = 'new' or {late} limit 1)"
        " returning name, url",
        (now + LEASE_SECONDS, *values),
    ).fetchone()


def work(how):
    database = connect()
    while True:
        job = claim(database, how)
        if job is None:
            return
        name, url = job
        if how == "deletes-first":
            database.execute("delete from jobs where name = ?", (name,))
        send(name, url, how)
        database.execute("update jobs set state = 'done' where name = ?", (name,))


if __name__ == "__main__":
    if sys.argv[1] == "setup":
        setup()
    elif sys.argv[1] == "enqueue":
        enqueue(sys.argv[2], sys.argv[3])
    else:
        work(sys.argv[2] if len(sys.argv) > 2 else "")
