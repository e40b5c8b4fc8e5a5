"""The programs around a dispatch outbox: a producer, retention, a clock, and a consumer and a purge with a mistake.

    python -m scenarios.oracle.operators enqueue --db URL --now SECONDS --to ROUTE --expires-in SECONDS ID
    python -m scenarios.oracle.operators ack --db URL --now SECONDS --receiver-dir DIR ID
    python -m scenarios.oracle.operators purge --db URL --now SECONDS --older-than SECONDS [--whatever-its-status]
    python -m scenarios.oracle.operators clock --now SECONDS FILE

`ack` is a consumer that acknowledges what its receiver has applied, and does nothing before; its twin is
`scenarios.explore.consumer`. Exit codes are those of `python -m outbox.dispatch`; of `ack` 1 where there is nothing to
acknowledge yet.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from sqlalchemy import Connection, delete, select, update

from outbox import faults
from outbox.dispatch import RetentionPolicy, StateDB, apply_retention, enqueue_dispatch
from outbox.dispatch.admin import ACK_BEFORE
from outbox.dispatch.edges import ACKED, CONSUMER, Edge
from outbox.dispatch.schema import dispatch_outbox
from outbox.dispatch.transitions import History, record
from outbox.errors import MachineRefused, reported
from receivers.ledger import EFFECTS
from scenarios.oracle.scans import PATIENCE_SECONDS

NOTHING_YET = 1
_row = dispatch_outbox.c


async def enqueue(given: argparse.Namespace) -> int:
    """With a deadline that counts from now."""
    async with StateDB(given.db, busy_timeout_seconds=PATIENCE_SECONDS) as db:
        await enqueue_dispatch(
            db,
            kind="study",
            deliver_to=given.to,
            body={},
            dedup_key="order-7",
            expires_at=given.now + given.expires_in,
            dispatch_id=given.id,
            now=given.now,
        )
    return 0


async def ack(given: argparse.Namespace) -> int:
    """What the receiver has, if it has it."""
    if not any(each.data["key"] == given.id for each in EFFECTS.read(given.receiver_dir)):
        return NOTHING_YET
    async with StateDB(given.db, busy_timeout_seconds=PATIENCE_SECONDS) as db:
        faults.reach(ACK_BEFORE)
        await db.write(lambda connection: _ack_unguarded(connection, given.id, given.now), "an acknowledgement")
    return 0


def _ack_unguarded(connection: Connection, identity: str, now: float) -> None:
    """Mistake: an acknowledgement is written whatever the row's status is. A dead letter that somebody has been told of, and
    may have sent by hand, comes to life again.

    Right: only what is pending or delivering can be acknowledged (`outbox.dispatch.ack_dispatch`).
    """
    status = connection.execute(select(_row.status).where(_row.id == identity)).scalar_one()
    if status == ACKED:
        return
    connection.execute(update(dispatch_outbox).where(_row.id == identity).values(status=ACKED, updated_at=now))
    record(connection, [History(identity, Edge(status, ACKED, CONSUMER), "consumer", "", {}, now)])


async def purge(given: argparse.Namespace) -> int:
    """What is old; by the outbox's own retention only what is finished."""
    async with StateDB(given.db, busy_timeout_seconds=PATIENCE_SECONDS) as db:
        if given.whatever_its_status:
            await db.write(lambda connection: _purge_old(connection, given.now - given.older_than), "purging")
        else:
            old = given.older_than
            policy = RetentionPolicy(delivered_seconds=old, acked_seconds=old, dead_letter_seconds=old, expired_seconds=old)
            await apply_retention(db, policy, now=given.now)
    return 0


def _purge_old(connection: Connection, before: float) -> None:
    """Mistake: age is all that counts. What is in flight, or waits for its next attempt, is deleted too.

    Right: a policy deletes only what has ended (`outbox.dispatch.apply_retention`).
    """
    connection.execute(delete(dispatch_outbox).where(_row.updated_at <= before))


async def clock(given: argparse.Namespace) -> int:
    """The time, for receivers that read it from a file; replaced as a whole."""
    beside = given.file.with_suffix(".new")
    beside.write_text(f"{given.now}\n", encoding="ascii")
    beside.replace(given.file)
    return 0


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], Awaitable[int]]] = {
    "enqueue": enqueue,
    "ack": ack,
    "purge": purge,
    "clock": clock,
}


def _parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m scenarios.oracle.operators")
    commands = top.add_subparsers(dest="command", required=True)
    added = {name: commands.add_parser(name, description=command.__doc__) for name, command in _COMMANDS.items()}
    for name, command in added.items():
        command.add_argument("--now", type=float, required=True, metavar="SECONDS")
        if name != "clock":
            command.add_argument("--db", required=True, metavar="URL")
    for name in ("enqueue", "ack"):
        added[name].add_argument("id", metavar="ID")
    added["enqueue"].add_argument("--to", required=True, metavar="ROUTE")
    added["enqueue"].add_argument("--expires-in", type=float, required=True, metavar="SECONDS")
    added["ack"].add_argument("--receiver-dir", type=Path, required=True, metavar="DIR")
    added["purge"].add_argument("--older-than", type=float, required=True, metavar="SECONDS")
    added["purge"].add_argument("--whatever-its-status", action="store_true", help="the mistake")
    added["clock"].add_argument("file", type=Path, metavar="FILE")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module."""
    given = _parser().parse_args(argv)

    async def work() -> int:
        return await _COMMANDS[given.command](given)

    def run() -> int:
        faults.arm_from_environment()
        try:
            return asyncio.run(work())
        except MachineRefused as error:
            raise type(error)(f"the database failed ({type(error).__name__})") from error

    return reported("operator", run)


if __name__ == "__main__":
    sys.exit(main())
