"""A worker as people write them: jobs in a SQLite table, claimed, sent, marked done. Material of the tests.

    python sqlite_worker.py setup | enqueue JOB URL | work [HOW]

HOW is how it goes wrong, if it does: `deletes-first` deletes the job and then sends, `no-lease` leaves what was claimed
claimed, `new-key` makes a key for each attempt, `no-key` sends none.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
import urllib.request
import uuid

LEASE_SECONDS = 0.4


def connect() -> sqlite3.Connection:
    database = sqlite3.connect("jobs.db", timeout=5, isolation_level=None)
    database.execute("pragma journal_mode = wal")
    return database


def setup() -> None:
    with connect() as database:
        database.execute("create table if not exists jobs (name text primary key, url text, state text, until real)")


def enqueue(name: str, url: str) -> None:
    with connect() as database:
        database.execute("insert or ignore into jobs values (?, ?, 'new', 0)", (name, url))


def send(name: str, url: str, how: str) -> None:
    headers = {"Content-Type": "application/json"}
    if how != "no-key":
        headers["Idempotency-Key"] = str(uuid.uuid4()) if how == "new-key" else name
    body = json.dumps({"job": name}).encode()
    request = urllib.request.Request(url, body, headers, method="POST")
    with urllib.request.urlopen(request, timeout=10) as response:
        response.read()


def claim(database: sqlite3.Connection, how: str) -> tuple[str, str] | None:
    now = time.time()
    late = "no" if how == "no-lease" else "claimed"
    row = database.execute(
        "update jobs set state = 'claimed', until = ? where name = (select name from jobs where state = 'new' or "
        "(state = ? and until < ?) limit 1) returning name, url",
        (now + LEASE_SECONDS, late, now),
    ).fetchone()
    return None if row is None else (row[0], row[1])


def work(how: str) -> None:
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
