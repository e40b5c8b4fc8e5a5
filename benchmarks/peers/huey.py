"""huey on SQLite: its consumer with several worker threads, the default storage."""

import logging
from typing import Any

from huey import SqliteHuey
from huey.signals import SIGNAL_COMPLETE

from benchmarks.peers.jobs import Job, Told, clocked, post, sqlite_durability


def _opened(store: str) -> tuple[Any, Any]:
    huey = SqliteHuey(filename=store)
    return huey, huey.task(retries=10, retry_delay=1, name="post")(post)


def _told(huey: Any, seconds: float) -> Told:
    durability = sqlite_durability(lambda statement: huey.storage.sql(statement, results=True)[0][0])
    return Told(seconds, durability, huey.pending_count() + huey.scheduled_count())


def enqueue(store: str, given: list[Job]) -> Told:
    """One task a job."""
    huey, task = _opened(store)
    with clocked() as took:
        for job in given:
            task(job.key, job.url, job.body)
    return _told(huey, took.seconds)


def work(store: str, number: int, at_once: int) -> Told:
    """The consumer, stopped by the completion of the last task."""
    logging.getLogger("huey").setLevel(logging.WARNING)
    huey, _task = _opened(store)
    consumer = huey.create_consumer(workers=at_once, periodic=False)
    done = iter(range(1, number + 1))

    def count(_signal: str, _task: Any) -> None:
        if next(done) == number:
            consumer.stop_flag.set()

    huey.signal(SIGNAL_COMPLETE)(count)
    with clocked() as took:
        consumer.run()
    return _told(huey, took.seconds)
