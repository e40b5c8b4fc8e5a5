"""Which queues there are, what each needs, and one round of one of them: enqueue in one process, work in another, count.

A round has a store of its own. It is only a result if the receiver counted every job once and the store holds none as not
done; anything else is an error, not a slow round.
"""

import importlib
import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import cast

from benchmarks.floor import ROOT, Failed
from benchmarks.peers.jobs import Queue, Told
from benchmarks.receiver import counted
from benchmarks.servers import missing

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Known:
    """A queue: what it is called, its `package` as it is imported and as it is installed, the module here (or an object in
    it), the numbers of jobs at once that are tried, of which the best counts, and how many jobs are a round: some seconds."""

    name: str
    kind: str
    package: str
    install: str
    module: str
    way: str
    at_once: tuple[int, ...]
    jobs: int

    @property
    def missing(self) -> str | None:
        """Why it cannot be measured here, and what to do; None if it can."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed: pip install '{self.install}'"
        return missing() if self.kind == POSTGRESQL else None

    def load(self) -> Queue:
        """Import it."""
        module, _, name = self.module.partition(":")
        loaded = importlib.import_module(f"benchmarks.peers.{module}")
        return cast("Queue", getattr(loaded, name) if name else loaded)


_PROCRASTINATE = "procrastinate==3.10.0"
_LOOP = "a loop in each thread, http.client"
OURS, OURS_ON_POSTGRESQL = "outbox", "outbox on PostgreSQL"
_ALL = (
    # name, kind, package, install, module, way, at_once, jobs
    (OURS, SQLITE, "outbox", "halt23", "ours", "one scan, aiohttp", (64, 256), 2000),
    ("huey", SQLITE, "huey", "huey==3.5.4", "huey", "its consumer's threads, http.client", (1, 4, 16), 2000),
    ("litequeue", SQLITE, "litequeue", "litequeue==0.9", "litequeue:DEFAULT", _LOOP, (1, 4), 2000),
    ("litequeue, FULL", SQLITE, "litequeue", "litequeue==0.9", "litequeue:FULL", _LOOP, (1, 4), 1000),
    ("persist-queue", SQLITE, "persistqueue", "persist-queue==1.1.0", "persist_queue", _LOOP, (1, 4, 16), 1000),
    ("dbos", SQLITE, "dbos", "dbos==3.4.0", "dbos", "a queue of workflows, http.client", (1, 8, 32), 100),
    (OURS_ON_POSTGRESQL, POSTGRESQL, "psycopg", "halt23[postgres]", "ours", "one scan, aiohttp", (64, 256), 2000),
    (
        "procrastinate",
        POSTGRESQL,
        "procrastinate",
        "procrastinate==3.10.0",
        "procrastinate",
        "its worker, aiohttp",
        (4, 16, 64),
        500,
    ),
    ("pgqueuer", POSTGRESQL, "pgqueuer", "pgqueuer==1.6.0", "pgqueuer", "its worker's batches, aiohttp", (10, 100, 1000), 2000),
)
KNOWN = {each[0]: Known(*each) for each in _ALL}


@dataclass(frozen=True, slots=True)
class Round:
    """What one round took: jobs a second enqueued and done, and the durability of the store while they were."""

    enqueued_per_second: float
    done_per_second: float
    durability: str


def _told(known: Known, command: str, store: str, url: str, *numbers: int) -> Told:
    given = [sys.executable, "-m", "benchmarks.peers", known.name, command, store, url, *map(str, numbers)]
    try:
        done = subprocess.run(given, cwd=ROOT, capture_output=True, check=False, timeout=TIMEOUT_SECONDS, text=True)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{known.name}: {command} did not end in {TIMEOUT_SECONDS:g} seconds") from error
    if done.returncode != 0:
        raise Failed(f"{known.name}: {command} ended with {done.returncode}: {done.stderr[-2000:]}")
    return Told(**json.loads(done.stdout.splitlines()[-1]))


def one_round(known: Known, store: str, url: str, number: int, at_once: int) -> Round:
    """Enqueue and do so many jobs in a fresh `store`. Raises Failed unless each was done once and is marked as done."""
    enqueued = _told(known, "enqueue", store, url, number, at_once)
    counted(url)
    worked = _told(known, "work", store, url, number, at_once)
    came = counted(url)
    if (enqueued.left, came.posts, came.keys, worked.left) != (number, number, number, 0):
        raise Failed(f"{known.name}: of {number} jobs: enqueued {enqueued}, worked {worked}, came {came}")
    return Round(number / enqueued.seconds, number / worked.seconds, worked.durability)
