"""The study's programs around a dispatch outbox, with the clock given. What they call is the outbox's own library.

    python -m scenarios.dispatch enqueue --db URL --now 1000 --to ROUTE [--dedup-key KEY] [--ack-token TOKEN] … ID …
    python -m scenarios.dispatch scan --db URL --now 1015 | --clock FILE [--receiver HOST=PORT …] [--books recorded]
    python -m scenarios.dispatch revive --db URL --now 1000 --reset-epoch 1000 SEAT=ID …

`enqueue` and `revive` print the ids, `scan` the counters of its scan. `--clock` names a file that holds the time, so that hours
can pass within a scan. Operators use the outbox's own command line (`python -m outbox.dispatch`). Exit codes are as there.
"""

import argparse
import asyncio
import json
import logging
import math
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from outbox import faults
from outbox.dispatch import (
    NOTIFY_TIMEOUT_SECONDS,
    DeliveryOptions,
    RouterOptions,
    StateDB,
    enqueue_dispatch,
    enqueue_revival_heartbeat,
)
from outbox.dispatch.cli import Harmless
from outbox.dispatch.clock import Clock
from outbox.dispatch.command import DELIVER_TO
from outbox.dispatch.delivery import deliver
from outbox.dispatch.store import BUSY_TIMEOUT_SECONDS
from outbox.errors import BadInput, MachineRefused, reported
from scenarios.dispatch.names import Names, names
from scenarios.dispatch.recorded import RecordedBooks

RECORDED = "recorded"
Command = Callable[[StateDB, argparse.Namespace], Awaitable[None]]


class ClockRefused(MachineRefused):
    """The file that holds the time cannot be read, or holds none."""


async def _enqueue(db: StateDB, given: argparse.Namespace) -> None:
    for each in given.ids:
        identity = await enqueue_dispatch(
            db,
            kind=given.kind,
            deliver_to=given.to,
            body=_body(given.body),
            dedup_key=given.dedup_key,
            ack_required=given.ack_token is not None,
            ack_token=given.ack_token,
            max_attempts=given.max_attempts,
            expires_at=given.expires_at,
            lane=given.lane,
            dispatch_id=each,
            now=given.now,
        )
        print(identity)


def _body(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise BadInput(f"--body is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput("--body is no JSON object")
    return value


async def _scan(db: StateDB, given: argparse.Namespace) -> None:
    known = names(given.receiver)
    transport = RouterOptions(timeout_seconds=given.timeout_seconds, allow_hosts=tuple(known), resolver=Names(known))
    # One after the other: the order of the sends is the scenario's, and whoever is stopped in one holds no transaction open.
    options = DeliveryOptions(concurrency=1, total=1, router=transport)
    delivery = await deliver(
        db,
        now=_clock(given),
        notify_template=_template(given),
        options=options,
        resolve_template=False,
        books=RecordedBooks() if given.books == RECORDED else None,
    )
    print(json.dumps({**delivery.counts, "superseded": delivery.superseded}))


def _clock(given: argparse.Namespace) -> Clock:
    if given.clock is None:
        now: float = given.now
        return lambda: now
    path: Path = given.clock
    _read(path)
    return lambda: _read(path)


def _read(path: Path) -> float:
    try:
        now = float(path.read_text("ascii"))
    except (OSError, ValueError) as error:
        raise ClockRefused(f"{path}: the clock cannot be read: {error}") from error
    if not math.isfinite(now):
        raise ClockRefused(f"{path}: the clock says {now}, which is no time")
    return now


def _template(given: argparse.Namespace) -> list[str] | None:
    """The notify command: `scenarios.courier`, with the payload on its standard input."""
    if given.courier is None:
        return None
    careless = ["--careless"] if given.careless else []
    return [sys.executable, "-m", "scenarios.courier", "--receiver", given.courier, *careless, DELIVER_TO]


def _seat(text: str) -> tuple[str, str]:
    seat, mark, identity = text.rpartition("=")
    if not mark:
        raise BadInput(f"{text!r}: expected SEAT=ID")
    return seat, identity


async def _revive(db: StateDB, given: argparse.Namespace) -> None:
    ids = dict(map(_seat, given.seats))
    for identity in await enqueue_revival_heartbeat(
        db, list(ids), reset_epoch=given.reset_epoch, dispatch_ids=ids, now=given.now
    ):
        print(identity)


_COMMANDS: Mapping[str, Command] = {"enqueue": _enqueue, "scan": _scan, "revive": _revive}


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m scenarios.dispatch")
    commands = top.add_subparsers(dest="command", required=True)

    def add(name: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, description=text)
        command.add_argument("--db", required=True, metavar="URL", help="as for python -m outbox.dispatch")
        command.add_argument("--busy-timeout-seconds", type=float, default=BUSY_TIMEOUT_SECONDS, metavar="N", help="of a lock")
        return command

    enqueue = add("enqueue", "Enqueue a dispatch under each ID.")
    enqueue.add_argument("ids", nargs="+", metavar="ID")
    enqueue.add_argument("--now", type=float, required=True, metavar="SECONDS")
    enqueue.add_argument("--to", required=True, metavar="ROUTE")
    enqueue.add_argument("--kind", default="study")
    enqueue.add_argument("--body", default="{}", metavar="JSON")
    enqueue.add_argument("--dedup-key", metavar="KEY")
    enqueue.add_argument("--ack-token", metavar="TOKEN")
    enqueue.add_argument("--max-attempts", type=int, default=8, metavar="N")
    enqueue.add_argument("--expires-at", type=float, metavar="SECONDS")
    enqueue.add_argument("--lane")
    scan = add("scan", "Make one scan.")
    time = scan.add_mutually_exclusive_group(required=True)
    time.add_argument("--now", type=float, metavar="SECONDS", help="all of the scan happens then")
    time.add_argument("--clock", type=Path, metavar="FILE", help="a file that holds the time")
    scan.add_argument("--receiver", action="append", default=[], metavar="HOST=PORT", help="where a route's host is")
    scan.add_argument("--courier", metavar="URL", help="the receiver of the notify command")
    scan.add_argument("--timeout-seconds", type=float, default=NOTIFY_TIMEOUT_SECONDS, metavar="N", help="of one send")
    scan.add_argument("--careless", action="store_true", help="the notify command does not wait for its receiver")
    scan.add_argument("--books", choices=(RECORDED,), help="the bookkeeping as recorded, with its flaws")
    revive = add("revive", "Enqueue a revival heartbeat.")
    revive.add_argument("seats", nargs="+", metavar="SEAT=ID")
    revive.add_argument("--now", type=float, required=True, metavar="SECONDS")
    revive.add_argument("--reset-epoch", type=float, required=True, metavar="SECONDS")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module."""
    given = _parser().parse_args(argv)

    async def work() -> None:
        async with StateDB(given.db, busy_timeout_seconds=given.busy_timeout_seconds) as db:
            await _COMMANDS[given.command](db, given)

    def run() -> int:
        faults.arm_from_environment()
        log = logging.StreamHandler(sys.stderr)
        log.setFormatter(Harmless("dispatch: %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[log])
        try:
            asyncio.run(work())
        except ClockRefused:
            raise
        except MachineRefused as error:
            # Paths, ports and a driver's words differ from run to run; which kind of error it is does not.
            raise type(error)(f"the database failed ({type(error).__name__})") from error
        return 0

    return reported("dispatch", run)


if __name__ == "__main__":
    sys.exit(main())
