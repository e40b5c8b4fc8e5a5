"""DBOS on SQLite: a queued workflow with one step that is retried; launching DBOS recovers what a dead process had begun.

A workflow is recovered by the version of the application that began it, and the version is a hash of the workflows' source:
leave this file as it is between a death and the restart.
"""

import json
import sys
import time
import urllib.request

from dbos import DBOS, DBOSClient

DATABASE = "sqlite:///queue.db"
DBOS(
    config={
        "name": "halt23-target",
        "system_database_url": DATABASE,
        "notification_listener_polling_interval_sec": 0.05,
        "log_level": "WARNING",
    }
)


@DBOS.step(retries_allowed=True, interval_seconds=0.2, max_attempts=20, backoff_rate=1)
def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


@DBOS.workflow()
def deliver(job, url):
    """The job, under its own name as workflow id."""
    send(job, url)


def launch():
    """Start DBOS, and with it the recovery."""
    DBOS.launch()
    DBOS.register_queue("jobs", polling_interval_sec=0.1)


def enqueue(job, url):
    """Hand a job in from outside. A workflow id is taken once: saying it again is harmless."""
    client = DBOSClient(system_database_url=DATABASE)
    client.enqueue({"queue_name": "jobs", "workflow_name": "deliver", "workflow_id": job}, job, url)
    client.destroy()


def work():
    """Work until nothing is queued and nothing pending."""
    launch()
    while DBOS.list_workflows(status=["ENQUEUED", "PENDING"], limit=1):
        time.sleep(0.05)
    DBOS.destroy()


if __name__ == "__main__":
    if sys.argv[1] == "enqueue":
        enqueue(*sys.argv[2:])
    elif sys.argv[1] == "setup":
        launch()
        DBOS.destroy()
    else:
        work()
