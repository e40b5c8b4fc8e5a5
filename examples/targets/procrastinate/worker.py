"""procrastinate as it comes: a task that is retried when it fails, and a worker that ends when no job is left to do."""

import json
import os
import sys
import urllib.request

from procrastinate import App, PsycopgConnector, RetryStrategy, SyncPsycopgConnector

URL = os.environ["POSTGRES_URL"]
app = App(connector=PsycopgConnector(conninfo=URL))


@app.task(name="send", retry=RetryStrategy(max_attempts=20, wait=1))
def send(job, url):
    """POST the job. Raises OSError if it was not accepted."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": job}
    request = urllib.request.Request(url, json.dumps({"job": job}).encode(), headers)
    urllib.request.urlopen(request, timeout=5).close()


def ask():
    """The same application with a connector that needs no event loop."""
    return app.replace_connector(SyncPsycopgConnector(conninfo=URL))


def is_done():
    """Whether no job is left to do; jobs that another worker is doing are not this one's business."""
    with ask() as asking, asking.open():
        return not list(asking.job_manager.list_jobs(status="todo"))


def work():
    """Run the worker until no job is left to do."""
    while not is_done():
        app.run_worker(wait=False, concurrency=1)


def main(command, *arguments):
    """One of the target's commands."""
    if command == "work":
        work()
        return
    with ask() as client, client.open():
        if command == "setup":
            client.schema_manager.apply_schema()
        elif command == "enqueue":
            job, url = arguments
            client.configure_task("send").defer(job=job, url=url)
        else:
            print(sum(len(list(client.job_manager.list_jobs(task="send", status=each))) for each in ("todo", "doing")))


if __name__ == "__main__":
    main(*sys.argv[1:])
