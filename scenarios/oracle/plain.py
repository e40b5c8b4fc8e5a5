"""The bookkeeping of a scan in small steps, and right: the base and the twin of those that get one step wrong.

What `outbox.dispatch.books` does in one transaction for many rows is done here row by row, so that a variant can get a single
step wrong: which rows are due, what a claim changes, what a result makes of its row, how the outcome is guarded.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, or_, select
from sqlalchemy.sql.elements import ColumnElement

from outbox import faults
from outbox.dispatch import StateDB
from outbox.dispatch.books import CLAIM_WRITTEN, OUTCOME_WRITTEN, Finished, Scan, Turn
from outbox.dispatch.claim import ACTOR, BY_TEMPLATE, Claim, Claimed
from outbox.dispatch.edges import (
    ACTIVE,
    ATTEMPT,
    DEAD_LETTER,
    DEADLINE,
    DELIVERING,
    EXPIRED,
    MAX_ATTEMPTS,
)
from outbox.dispatch.schema import dispatch_outbox
from outbox.dispatch.settle import Settled, settle
from outbox.dispatch.slots import Room
from outbox.dispatch.transitions import Change, Seen, apply, write

_row = dispatch_outbox.c
_NOTHING = Claimed(0, (), 0, 0)


class Plain:
    """Right; see the module."""

    async def turn(self, db: StateDB, finished: Sequence[Finished], scan: Scan, room: Room | None) -> Turn:
        """Write each outcome, then claim what there is room for."""
        applied, late = [], []
        for each in finished:
            settled = self.settled(each, scan)
            done = await db.write(lambda connection: self.finish(connection, each, settled, scan.clock()), "an outcome")  # noqa: B023
            if done:
                applied.append(settled)
            else:
                late.append(each)
        claimed = _NOTHING if room is None else await self.claimed(db, scan, room)
        return Turn(tuple(applied), tuple(late), claimed)

    def settled(self, finished: Finished, scan: Scan) -> Settled:
        """What a result makes of its row."""
        return settle(finished.claim, finished.result, scan.options.jitter)

    def finish(self, connection: Connection, finished: Finished, settled: Settled, at: float) -> bool:
        """Write an outcome if its claim still stands."""
        done = settled.change.seen in apply(connection, [settled.change], at)
        faults.reach(OUTCOME_WRITTEN)
        return done

    async def claimed(self, db: StateDB, scan: Scan, room: Room) -> Claimed:
        """Select and claim in one transaction."""
        return await db.write(lambda connection: self.claim(connection, self.select(connection, scan, room), scan), "claims")

    def select(self, connection: Connection, scan: Scan, room: Room) -> list[Row[Any]]:
        """The rows that may be claimed now."""
        query = select(dispatch_outbox).where(_row.next_attempt_at <= scan.began_at, *self.due(scan))
        return list(connection.execute(self.ordered(query).limit(room.rows)).all())

    def ordered(self, query: "Select[Any]") -> "Select[Any]":
        """What a dead claimant left comes first."""
        return query.order_by(_row.status, _row.next_attempt_at, _row.id)

    def due(self, _scan: Scan) -> list[ColumnElement[bool]]:
        """What must hold of a row beside its time: it is active, and the first of its lane."""
        earlier = dispatch_outbox.alias("earlier")
        before = select(earlier.c.id).where(
            earlier.c.lane == _row.lane, earlier.c.lane_position < _row.lane_position, earlier.c.status.in_(ACTIVE)
        )
        return [_row.status.in_(ACTIVE), or_(_row.lane.is_(None), ~before.exists())]

    def claim(self, connection: Connection, rows: Sequence[Row[Any]], scan: Scan) -> Claimed:
        """Claim rows that this transaction has read."""
        at = scan.clock()
        changes = [self.change(row, scan, at) for row in rows]
        write(connection, changes, at)
        faults.reach(CLAIM_WRITTEN)
        claims = [claim_of(row, change, at) for row, change in zip(rows, changes, strict=True) if change.status == DELIVERING]
        return Claimed(len(rows), tuple(claims), 0, 0)

    def change(self, row: Row[Any], scan: Scan, at: float) -> Change:
        """What becomes of a row that is due: a claim, or its end."""
        if row.expires_at is not None and row.expires_at <= at:
            return Change(seen_of(row), EXPIRED, DEADLINE, ACTOR, f"expired at {row.expires_at}")
        if row.status == DELIVERING and row.attempt >= row.max_attempts:
            return Change(seen_of(row), DEAD_LETTER, MAX_ATTEMPTS, ACTOR, f"attempt {row.attempt} was never finished")
        return self.attempt(row, scan, at)

    def attempt(self, row: Row[Any], scan: Scan, at: float) -> Change:
        """A claim for the next attempt."""
        patch = {
            "attempt": row.attempt + 1,
            "claim_number": row.claim_number + 1,
            "claimed_at": at,
            "next_attempt_at": at + scan.options.lease_seconds,
        }
        return Change(seen_of(row), DELIVERING, ATTEMPT, ACTOR, "an attempt", patch=patch)


def seen_of(row: Row[Any]) -> Seen:
    return Seen(row.id, row.status, row.attempt, row.claim_number)


def claim_of(row: Row[Any], change: Change, at: float) -> Claim:
    return Claim(
        Seen(row.id, DELIVERING, change.patch.get("attempt", row.attempt), change.patch["claim_number"]),
        row.kind,
        row.deliver_to,
        row.payload,
        row.max_attempts,
        bool(row.ack_required),
        at,
        row.expires_at,
        row.destination or BY_TEMPLATE,
        row.lane,
    )
