"""A bare client: one request under a key, and what came back, in a journal of its own. An instrument, not under study.

    python -m scenarios.client --dir DIR --receiver http://127.0.0.1:PORT --key KEY --body TEXT

It stands for any other sender that shares a receiver with the outbox. Exit codes: 0 a success came back, 10 to 12 and 15 as
the dispatcher's.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from outbox import journal, transport
from outbox.dispatcher import Summary
from outbox.errors import reported
from outbox.outcome import Delivered

REQUESTS = journal.declare("requests", "request", "response", "outcome", under_study=False)


async def request(directory: Path, receiver: str, key: str, route: str, body: bytes) -> int:
    """Send once and record it. Returns the exit code."""
    base = transport.loopback_url(receiver)
    limits = transport.Limits()
    journal.make_directory(directory)
    name = directory.name
    with REQUESTS.open(directory) as requests:
        sent = {"key": key, "route": route, "body": journal.payload(body), "fingerprint": journal.fingerprint(body)}
        requests.append("request", name, sent)
        async with transport.new_session(limits) as session:
            outcome = await transport.post(session, base + route, key=key, body=body, attempt=None, limits=limits, sender=name)
        if isinstance(outcome, Delivered):
            result = {"status": outcome.status, "replayed": outcome.replayed, "result": journal.payload(outcome.result)}
            requests.append("response", name, result)
            return 0
        requests.append("outcome", name, {"outcome": outcome.outcome, "reason": outcome.reason, "status": outcome.status})
    summary = Summary()
    summary.count(outcome)
    return summary.exit_code()


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.client", description="Send one request and record the response.")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--receiver", required=True, metavar="URL")
    parser.add_argument("--key", required=True)
    parser.add_argument("--route", default="/operations")
    parser.add_argument("--body", required=True)
    given = parser.parse_args(argv)
    return reported(
        "client", lambda: asyncio.run(request(given.dir, given.receiver, given.key, given.route, given.body.encode()))
    )


if __name__ == "__main__":
    sys.exit(main())
