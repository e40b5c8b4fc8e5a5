"""A bare client: one request under a key, and what came back, in a journal of its own. An instrument, not under study.

    python -m scenarios.client --dir DIR --receiver http://127.0.0.1:PORT --key KEY --body TEXT

It stands for any other sender that shares a receiver with the outbox. Exit codes: 0 a success came back, 2 bad input, 13
another client owns DIR, 14 damaged journal, 16 the machine refused, and 10, 11, 12 and 15 as the dispatcher's.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from outbox import journal, transport
from outbox.dispatcher import Summary
from outbox.errors import BadInput, reported
from outbox.outcome import Delivered
from outbox.workflow import Intention, check

REQUESTS = journal.declare("requests", "request", "response", "outcome", under_study=False)


async def request(directory: Path, receiver: str, key: str, route: str, body: bytes) -> int:
    """Send once and record it. Returns the exit code."""
    base = transport.loopback_url(receiver)
    check(Intention(key, route, body))
    if not directory.name:
        raise BadInput(f"--dir {directory}: the client is called by its folder's name, and this has none")
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
    parser.add_argument("--dir", type=Path, required=True, help="where the request is recorded; its name is the client's")
    parser.add_argument("--receiver", required=True, metavar="URL", help="http://127.0.0.1:PORT")
    parser.add_argument("--key", required=True, help="sent as Idempotency-Key")
    parser.add_argument("--route", default="/operations", help="path at the receiver")
    parser.add_argument("--body", required=True, metavar="TEXT", help="the request's body")
    given = parser.parse_args(argv)
    return reported(
        "client", lambda: asyncio.run(request(given.dir, given.receiver, given.key, given.route, os.fsencode(given.body)))
    )


if __name__ == "__main__":
    sys.exit(main())
