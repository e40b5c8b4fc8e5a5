"""Workers that cannot be judged, or only with patience. Material of the tests.

    python bad_worker.py enqueue JOB URL HOW | work HOW

The job is a file `job.json` in the working directory; HOW says what is bad.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path


def post(name: str, url: str, key: str | None = None) -> None:
    body = json.dumps({"job": name}).encode()
    headers = {"Idempotency-Key": key or name}
    urllib.request.urlopen(urllib.request.Request(url, body, headers, method="POST"), timeout=10).close()


def enqueue(name: str, url: str, how: str) -> None:
    if how == "enqueue-fails":
        sys.exit("enqueue: no such queue")
    if how == "enqueue-hangs":
        time.sleep(3600)
    if how == "fills":
        with open("big", "wb") as file:
            for _ in range(400):
                file.write(b"x" * (1 << 20))
    Path(f"{name}.json").write_text(json.dumps([name, url]))


def forked(left: str) -> bool:
    """Whether this is the child that goes on when its parent has ended; `left` says how far it goes away."""
    if os.fork():
        return False
    if left == "daemon":
        os.setsid()
    return True


def deliver(how: str) -> None:
    for path in sorted(Path().glob("*.json")):
        name, url = json.loads(path.read_text())
        if how == "one-key":
            with contextlib.suppress(urllib.error.HTTPError):
                post(name, url, "1")
            path.unlink()
            continue
        for _ in range(2 if how == "twice" else 1):
            post("another" if how == "nameless" else name, url.replace("operations", "x") if how == "nameless" else url)
        path.unlink()


def disturb(how: str) -> None:
    if how == "sheds" and forked("daemon"):
        os.chdir("/")
        for number in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        time.sleep(3600)


def work(how: str) -> None:
    disturb(how)
    if how in ("stays", "daemon") and forked(how):
        time.sleep(3600)
    if how == "forks-away" and not forked("daemon"):
        return
    if how == "exits-23":
        sys.exit(23)
    if how == "never-ends":
        deliver(how)
        time.sleep(3600)
    if how == "not-delivered":
        return
    if how in ("until-signal", "ignores-sigterm"):
        if how == "ignores-sigterm":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            deliver(how)
            time.sleep(0.01)
    deliver(how)
    if how == "fails":
        raise RuntimeError("a bug of its own")


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        enqueue(*sys.argv[2:])
    else:
        work(sys.argv[2])
