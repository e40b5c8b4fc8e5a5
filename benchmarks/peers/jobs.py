"""What every queue is given to do: jobs that are one HTTP POST each, with the same bytes, key and headers.

Those who work in threads post over a connection that each thread keeps open (`http.client`, the quickest that Python brings);
those who work in an event loop over one `aiohttp` session.
"""

import http.client
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp

from outbox.dispatch.signal import DispatchSignal

KIND = "bench"
ORDER = {"order": 7}


@dataclass(frozen=True, slots=True)
class Job:
    """One POST of `body` to `url` under `key`."""

    key: str
    url: str
    body: str


def jobs(url: str, number: int, first: int = 0) -> list[Job]:
    """So many jobs; the keys are numbered from `first`. The bodies are what the outbox would send: the same bytes for
    everybody."""
    keys = [f"{each:032x}" for each in range(first, first + number)]
    return [Job(key, url, DispatchSignal(dispatch_id=key, kind=KIND, deliver_to=url, body=ORDER).to_json()) for key in keys]


def _headers(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key, "Content-Type": "application/json"}


_kept = threading.local()


def post(key: str, url: str, body: str) -> None:
    """POST over this thread's connection: a process posts to one receiver. Raises OSError unless it was accepted."""
    parts = urlsplit(url)
    connection = getattr(_kept, "connection", None)
    if connection is None:
        connection = _kept.connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    connection.request("POST", parts.path, body.encode(), _headers(key))
    response = connection.getresponse()
    response.read()
    if response.status != 200:
        raise OSError(f"{url}: {response.status}")


async def post_from_loop(session: aiohttp.ClientSession, key: str, url: str, body: str) -> None:
    """POST over the session. Raises OSError unless it was accepted."""
    async with session.post(url, data=body.encode(), headers=_headers(key)) as response:
        await response.read()
        if response.status != 200:
            raise OSError(f"{url}: {response.status}")


class Seconds:
    """What a block took, once it is over."""

    def __init__(self) -> None:
        self.seconds = 0.0


@contextmanager
def clocked() -> Iterator[Seconds]:
    """Time a block by the monotonic clock."""
    took = Seconds()
    began = time.perf_counter()
    yield took
    took.seconds = time.perf_counter() - began


@dataclass(frozen=True, slots=True)
class Told:
    """What a process of a queue tells: the seconds that it took, the durability that its live connection had, and how many
    jobs its store still holds as not done."""

    seconds: float
    durability: str
    left: int


class Queue(Protocol):
    """A queue behind the same functions. `store` is a file for SQLite (not there yet at first), a URL for PostgreSQL;
    `at_once` is how many jobs are worked on at once."""

    def enqueue(self, store: str, given: list[Job]) -> Told:
        """Create what is needed, then enqueue one job after the other, each durable for itself. Only that is timed."""

    def work(self, store: str, number: int, at_once: int) -> Told:
        """Do all jobs, until each is marked done. Timed from when everything is open."""


def sqlite_durability(asked: Callable[[str], Any]) -> str:
    """In words, from a connection's answers: `asked(statement)` gives the first column of the first row."""
    levels = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}
    mode, level = str(asked("PRAGMA journal_mode")), int(asked("PRAGMA synchronous"))
    return f"{mode.upper() if mode == 'wal' else mode} journal, synchronous {levels[level]}"


async def postgres_durability(asked: Callable[[str], Awaitable[Any]]) -> str:
    """In words, from a connection's answers: `await asked(statement)` gives the first column of the first row."""
    return f"synchronous_commit {await asked('SHOW synchronous_commit')}, fsync {await asked('SHOW fsync')}"
