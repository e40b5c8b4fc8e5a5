"""procrastinate with the periodic task of its documentation that retries the jobs of workers which have gone.

A worker has gone when it has sent no heartbeat for two seconds; by default it is thirty.
"""

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


@app.periodic(cron="* * * * * */1")
@app.task(queueing_lock="retry_stalled_jobs", pass_context=True)
async def retry_stalled_jobs(context, timestamp):
    """Retry what a worker that has gone was doing."""
    for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=2):
        await app.job_manager.retry_job(job)


def ask():
    """The same application with a connector that needs no event loop."""
    return app.replace_connector(SyncPsycopgConnector(conninfo=URL))


def work():
    """Run the worker until SIGTERM."""
    app.run_worker(concurrency=1, fetch_job_polling_interval=0.2, update_heartbeat_interval=0.5, stalled_worker_timeout=10)


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
