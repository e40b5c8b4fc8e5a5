"""DBOS on SQLite: a queue of workflows with one step each, in DBOS's own threads."""

import threading
import time

from dbos import DBOS, DBOSClient

from benchmarks.peers.jobs import Job, Told, clocked, post, sqlite_durability

QUEUE = "jobs"
POLLING_SECONDS = 0.01


def _workflow(number: int) -> threading.Event:
    """Define step and workflow; the event is set when so many workflows have come to their end."""
    step = DBOS.step(name="post", retries_allowed=True, max_attempts=20)(post)
    ended, done = threading.Event(), iter(range(1, number + 1))

    def deliver(key: str, url: str, body: str) -> None:
        step(key, url, body)
        if next(done) == number:
            ended.set()

    DBOS.workflow(name="deliver")(deliver)
    return ended


def _defined(store: str, number: int) -> threading.Event:
    DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{store}", "log_level": "WARNING"})
    return _workflow(number)


def _told(client: DBOSClient, seconds: float) -> Told:
    """The durability is asked of a connection of DBOS's own engine: it has settings that another would not have."""
    with client._sys_db.engine.connect() as connection:
        durability = sqlite_durability(lambda statement: connection.exec_driver_sql(statement).scalar_one())
    left = len(client.list_workflows(status=["ENQUEUED", "PENDING"]))
    client.destroy()
    return Told(seconds, durability, left)


def enqueue(store: str, given: list[Job]) -> Told:
    """From outside, by DBOS's client, after the tables were made."""
    _defined(store, 0)
    DBOS.launch()
    DBOS.destroy()
    client = DBOSClient(system_database_url=f"sqlite:///{store}")
    with clocked() as took:
        for job in given:
            options = {"queue_name": QUEUE, "workflow_name": "deliver", "workflow_id": job.key}
            client.enqueue(options, job.key, job.url, job.body)
    return _told(client, took.seconds)


def work(store: str, number: int, at_once: int) -> Told:
    """DBOS is running; from the registration of the queue until the last workflow is marked done."""
    ended = _defined(store, number)
    DBOS.launch()
    with clocked() as took:
        DBOS.register_queue(QUEUE, worker_concurrency=at_once, polling_interval_sec=POLLING_SECONDS)
        ended.wait()
        while DBOS.list_workflows(status=["ENQUEUED", "PENDING"], limit=1):
            time.sleep(POLLING_SECONDS)
    DBOS.destroy()
    return _told(DBOSClient(system_database_url=f"sqlite:///{store}"), took.seconds)
