"""Small programs that tests start as real processes, with the clock given.

python -m tests.outbox.dispatch.programs enqueue --db URL --now 1000 --to ROUTE [--ack] [--lane L] [--max-attempts N] ID …
python -m tests.outbox.dispatch.programs scan --db URL --now 1015 [--concurrency N]
python -m tests.outbox.dispatch.programs schedule --db URL [--ahead SECONDS] [--concurrency N]
python -m tests.outbox.dispatch.programs ack|retry|purge --db URL --now 1020 ID …
python -m tests.outbox.dispatch.programs retain --db URL --now 1020

Each ID is also the deduplication key, and the token of who asks for one. Exit codes as of `python -m outbox.dispatch`.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

# Used by nobody here: what SQLAlchemy would load later, loaded before the box forks.
import psycopg  # noqa: F401
import sqlalchemy.dialects.postgresql.psycopg  # noqa: F401

from outbox import faults
from outbox.dispatch import (
    DeliveryOptions,
    DispatchSettings,
    RetentionPolicy,
    StateDB,
    ack_dispatch,
    apply_retention,
    enqueue_dispatch,
    purge_dispatch,
    purge_dispatches,
    retry_dispatch,
)
from outbox.dispatch.claim import CLAIM_LEASE_SECONDS
from outbox.dispatch.delivery import deliver
from outbox.dispatch.scheduler import Scheduler
from outbox.errors import reported
from tests.support import BOUND_SECONDS, Ended, ProcessBox, Running

MODULE = "tests.outbox.dispatch.programs"
# A retention that keeps nothing that is finished.
KEEP_NOTHING = RetentionPolicy(0, 0, 0, 0, batch_rows=2)


def identity(number: int) -> str:
    """The id of the test's dispatch `number`."""
    return f"{number:032x}"


class Programs:
    """Starts the programs on the database at `url`."""

    def __init__(self, box: ProcessBox, url: str) -> None:
        self._box, self.url = box, url

    def run(self, command: str, *arguments: object, halt_at: str | None = None) -> Ended:
        """Run one to its end."""
        return self._launch(command, arguments, {} if halt_at is None else {"HALT_AT": halt_at}).wait()

    def done(self, command: str, *arguments: object) -> Ended:
        """The same for one that has to succeed."""
        ended = self.run(command, *arguments)
        assert ended.exit_code == 0, ended
        return ended

    def launch(self, command: str, *arguments: object, pause_at: str | None = None) -> Running:
        """Start one and return."""
        return self._launch(command, arguments, {} if pause_at is None else {"PAUSE_AT": pause_at})

    def paused(self, pause_at: str, command: str, *arguments: object) -> Running:
        """Start one and wait until it has stopped at the point."""
        running = self.launch(command, *arguments, pause_at=pause_at)
        assert self.stopped(running), running.wait()
        return running

    def stopped(self, running: Running) -> bool:
        """Wait until a process has stopped at its point. False if it ended instead."""
        return self._box.do(running._child.wait_stopped(BOUND_SECONDS))

    def _launch(self, command: str, arguments: Sequence[object], environment: Mapping[str, str]) -> Running:
        return self._box.launch(MODULE, [command, "--db", self.url, *map(str, arguments)], environment)


def goes_on(running: Running) -> Ended:
    """Let a paused process go on, to its end."""
    running.send(signal.SIGCONT)
    return running.wait()


async def _enqueue(db: StateDB, arguments: argparse.Namespace) -> None:
    for each in arguments.ids:
        await enqueue_dispatch(
            db,
            kind="test",
            deliver_to=arguments.to,
            body={"for": each},
            dedup_key=each,
            ack_required=arguments.ack,
            max_attempts=arguments.max_attempts,
            expires_at=arguments.expires_at,
            lane=arguments.lane,
            dispatch_id=each,
            ack_token=each if arguments.ack else None,
            now=arguments.now,
        )


async def _scan(db: StateDB, arguments: argparse.Namespace) -> None:
    options = DeliveryOptions(concurrency=arguments.concurrency, lease_seconds=CLAIM_LEASE_SECONDS)
    delivery = await deliver(db, now=arguments.now, options=options, resolve_template=False)
    print(json.dumps({**delivery.counts, "superseded": delivery.superseded}))


async def _schedule(db: StateDB, arguments: argparse.Namespace) -> None:
    settings = DispatchSettings(tick_seconds=0.05, concurrency=arguments.concurrency)
    scheduler = Scheduler(db, settings, clock=lambda: time.time() + arguments.ahead)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, scheduler.stop)
    await scheduler.run()


async def _ack(db: StateDB, arguments: argparse.Namespace) -> None:
    for each in arguments.ids:
        assert await ack_dispatch(db, each, each, now=arguments.now)


async def _retry(db: StateDB, arguments: argparse.Namespace) -> None:
    for each in arguments.ids:
        assert await retry_dispatch(db, each, now=arguments.now)


async def _purge(db: StateDB, arguments: argparse.Namespace) -> None:
    for each in arguments.ids:
        await purge_dispatch(db, each, now=arguments.now)


async def _purge_many(db: StateDB, arguments: argparse.Namespace) -> None:
    await purge_dispatches(db, statuses=arguments.ids, batch_rows=2, now=arguments.now)


async def _retain(db: StateDB, arguments: argparse.Namespace) -> None:
    await apply_retention(db, KEEP_NOTHING, now=arguments.now)


_COMMANDS: Mapping[str, Callable[[StateDB, argparse.Namespace], Awaitable[None]]] = {
    "enqueue": _enqueue,
    "scan": _scan,
    "schedule": _schedule,
    "ack": _ack,
    "retry": _retry,
    "purge": _purge,
    "purge-many": _purge_many,
    "retain": _retain,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}")
    parser.add_argument("command", choices=_COMMANDS)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--db", required=True)
    parser.add_argument("--now", type=float, default=0.0)
    parser.add_argument("--to", default="nowhere")
    parser.add_argument("--ack", action="store_true")
    parser.add_argument("--lane")
    parser.add_argument("--max-attempts", type=int, default=8)
    parser.add_argument("--expires-at", type=float)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--ahead", type=float, default=0.0)
    arguments = parser.parse_intermixed_args(argv)

    async def work() -> None:
        async with StateDB(arguments.db) as db:
            await _COMMANDS[arguments.command](db, arguments)

    def run() -> int:
        faults.arm_from_environment()
        asyncio.run(work())
        return 0

    return reported("program", run)


if __name__ == "__main__":
    sys.exit(main())
