"""One scan of a dispatch outbox with the books of a variant (`scenarios.oracle.books`); `plain` is the twin.

    python -m scenarios.oracle.scans VARIANT --db URL --now SECONDS --receiver HOST=PORT [--zone NAME]

`--zone` is the process's time zone in the form of POSIX (`EST5` is five hours west of Greenwich). The program is that of
`scenarios.dispatch scan` otherwise, with its exit codes; it prints the scan's counters.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import event
from sqlalchemy.pool import Pool

from outbox import faults
from outbox.dispatch import NOTIFY_TIMEOUT_SECONDS, DeliveryOptions, RouterOptions, StateDB
from outbox.dispatch.books import Books
from outbox.dispatch.delivery import deliver
from outbox.errors import MachineRefused, reported
from scenarios.dispatch.names import Names, names
from scenarios.oracle import books
from scenarios.oracle.plain import Plain

# Who is stopped in a transaction would be waited for otherwise.
PATIENCE_SECONDS = 0.3
BOOKS: Mapping[str, Callable[[], Books]] = {
    "plain": Plain,
    "retry-after-ignored": books.RetryAfterIgnored,
    "local-time": books.LocalTime,
    "uncounted-attempts": books.UncountedAttempts,
    "expiry-at-enqueue-only": books.ExpiryAtEnqueueOnly,
    "stops-at-bad-item": books.StopsAtBadItem,
    "bound-to-owner": books.BoundToOwner,
    "overtaking": books.Overtaking,
    "delete-on-take": books.DeleteOnTake,
    "unguarded-claim": books.UnguardedClaim,
    "guarded-claim": books.GuardedClaim,
    "commit-without-sync": Plain,
    "unguarded-outcome": books.UnguardedOutcome,
    "no-lease": books.NoLease,
}


def commit_without_sync(connection: Any, *_others: object) -> None:
    """Mistake: a commit is not synced, as in WAL mode with SQLite's setting NORMAL: it survives the process, not the power.

    Right: `synchronous = FULL`, for what a claim allows must not come before the claim is durable.
    """
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


async def scan(given: argparse.Namespace) -> None:
    """One scan, all of it at one moment, one send at a time."""
    known = names(given.receiver)
    router = RouterOptions(timeout_seconds=given.timeout_seconds, allow_hosts=tuple(known), resolver=Names(known))
    options = DeliveryOptions(concurrency=1, total=1, router=router)
    if given.variant == "commit-without-sync":
        event.listen(Pool, "checkout", commit_without_sync)
    async with StateDB(given.db, busy_timeout_seconds=PATIENCE_SECONDS) as db:
        # The time stands still, so that two runs leave the same.
        delivery = await deliver(
            db, now=lambda: given.now, options=options, resolve_template=False, books=BOOKS[given.variant]()
        )
    print(json.dumps(delivery.counts))


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.oracle.scans", description="A scan with one mistake.")
    parser.add_argument("variant", choices=BOOKS)
    parser.add_argument("--db", required=True, metavar="URL")
    parser.add_argument("--now", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--receiver", action="append", default=[], metavar="HOST=PORT", help="where a route's host is")
    parser.add_argument("--timeout-seconds", type=float, default=NOTIFY_TIMEOUT_SECONDS, help="of one send")
    parser.add_argument("--zone", help="the time zone, as POSIX writes it")
    given = parser.parse_args(argv)

    def run() -> int:
        faults.arm_from_environment()
        if given.zone is not None:
            os.environ["TZ"] = given.zone
            time.tzset()
        try:
            asyncio.run(scan(given))
        except MachineRefused as error:
            raise type(error)(f"the database failed ({type(error).__name__})") from error
        return 0

    return reported("scan", run)


if __name__ == "__main__":
    sys.exit(main())
