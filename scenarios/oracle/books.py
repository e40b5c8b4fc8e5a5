"""The bookkeeping of a scan with one mistake each. What is right instead stands beside it, or in `scenarios.oracle.plain`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, or_, select, update
from sqlalchemy.sql.elements import ColumnElement

from outbox import faults
from outbox.dispatch import StateDB
from outbox.dispatch.books import CLAIM_WRITTEN, OUTCOME_WRITTEN, Finished, Scan
from outbox.dispatch.claim import ACTOR, Claimed
from outbox.dispatch.edges import ACTIVE, ATTEMPT, DELIVERED, DELIVERING, PENDING, TRANSPORT_OK, Edge
from outbox.dispatch.schema import dispatch_outbox, status_transitions
from outbox.dispatch.settle import Settled
from outbox.dispatch.slots import Room
from outbox.dispatch.transitions import Change, History, Seen, record
from outbox.errors import BadInput
from scenarios.oracle.plain import Plain, claim_of, seen_of

SELECTED = faults.declare("selected.rows", "rows are selected to be claimed, the claims are not written")
_row = dispatch_outbox.c


class RetryAfterIgnored(Plain):
    """Mistake (F19): the receiver's `Retry-After` is not read. The attempts are burnt while it still asks for patience."""

    def settled(self, finished: Finished, scan: Scan) -> Settled:
        """As if nothing had been asked."""
        return super().settled(finished._replace(result=finished.result._replace(not_before=None)), scan)


class LocalTime(Plain):
    """Mistake (F15): due times are stamped in UTC and read as local time. West of Greenwich they come hours late, east of it at
    once."""

    def settled(self, finished: Finished, scan: Scan) -> Settled:
        """With a due time that went through a stamp without a zone."""
        settled = super().settled(finished, scan)
        patch = dict(settled.change.patch)
        if "next_attempt_at" in patch:
            stamp = datetime.fromtimestamp(patch["next_attempt_at"], UTC).replace(tzinfo=None).isoformat()
            patch["next_attempt_at"] = datetime.fromisoformat(stamp).timestamp()
        return settled._replace(change=replace(settled.change, patch=patch))


class UncountedAttempts(Plain):
    """Mistake (F03): how often a dispatch was tried is counted in the process. A death forgets it, so no attempt is the last.

    Right: the claim makes the number durable before anything is sent.
    """

    def attempt(self, row: Row[Any], scan: Scan, at: float) -> Change:
        """A claim that leaves the number as it was."""
        change = super().attempt(row, scan, at)
        return replace(change, patch={name: value for name, value in change.patch.items() if name != "attempt"})


class ExpiryAtEnqueueOnly(Plain):
    """Mistake (F18): the deadline is looked at when a dispatch is enqueued, and not when it is tried again.

    Right: each claim asks.
    """

    def change(self, row: Row[Any], scan: Scan, at: float) -> Change:
        """A claim, however late."""
        return self.attempt(row, scan, at)


class StopsAtBadItem(Plain):
    """Mistake (F16): recovery raises at a row that is over its limit, and never comes to those behind it.

    Right: the row becomes a dead letter, and the next is looked at.
    """

    def change(self, row: Row[Any], scan: Scan, at: float) -> Change:
        """A claim, or an exception."""
        if row.status == DELIVERING and row.attempt >= row.max_attempts:
            raise BadInput(f"dispatch {row.id} has no attempt left")
        return super().change(row, scan, at)


class BoundToOwner(Plain):
    """Mistake (F14): a claim belongs to the process that made it, and only that one takes it up again. It is dead.

    Right: a claim is a lease; whoever comes after its end may have it.
    """

    def due(self, scan: Scan) -> list[ColumnElement[bool]]:
        """Pending rows, and what this process claimed itself."""
        table = status_transitions.c
        latest = select(table.actor).where(table.entity_id == _row.id).order_by(table.id.desc()).limit(1).scalar_subquery()
        return [*super().due(scan), or_(_row.status == PENDING, latest == _owner(scan))]

    def attempt(self, row: Row[Any], scan: Scan, at: float) -> Change:
        """A claim with an owner."""
        return replace(super().attempt(row, scan, at), actor=_owner(scan))


def _owner(scan: Scan) -> str:
    # Stands for a host name with a pid: another one in each life of the process.
    return f"scheduler that began at {scan.began_at:.0f}"


class Overtaking(Plain):
    """Mistake (F17): a row that waits for its next attempt does not hold back those behind it in its lane.

    Right: while an earlier one is unfinished, a later one is not due.
    """

    def due(self, _scan: Scan) -> list[ColumnElement[bool]]:
        """Any active row."""
        return [_row.status.in_(ACTIVE)]


class DeleteOnTake(Plain):
    """Mistake (F02): a row is taken by deleting it. Whoever dies with it in hand leaves nothing behind.

    Right: a row stays until its outcome is known, claimed for a time.
    """

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, Any]] = {}

    def claim(self, connection: Connection, rows: Sequence[Row[Any]], scan: Scan) -> Claimed:
        """Take, and remember in memory."""
        at = scan.clock()
        changes = [self.attempt(row, scan, at) for row in rows]
        moves = [Edge(row.status, DELIVERING, ATTEMPT) for row in rows]
        for row in rows:
            self._taken[row.id] = dict(row._mapping)
            connection.execute(delete(dispatch_outbox).where(_row.id == row.id))
        record(connection, [History(row.id, move, ACTOR, "taken", {}, at) for row, move in zip(rows, moves, strict=True)])
        faults.reach(CLAIM_WRITTEN)
        claims = [claim_of(row, change, at) for row, change in zip(rows, changes, strict=True)]
        return Claimed(len(rows), tuple(claims), 0, 0)

    def finish(self, connection: Connection, finished: Finished, settled: Settled, at: float) -> bool:
        """Note a success; put back what failed."""
        if settled.change.status == DELIVERED:
            move = Edge(DELIVERING, DELIVERED, TRANSPORT_OK)
            record(connection, [History(finished.claim.id, move, ACTOR, "sent", {}, at)])
        else:
            row = self._taken[finished.claim.id] | {"attempt": finished.claim.attempt, **settled.change.patch}
            connection.execute(insert(dispatch_outbox).values(row))
        return True


class UnguardedClaim(Plain):
    """Mistake: a row is selected in one transaction and claimed in another, which does not ask whether it is still so.

    Right: the claim holds only where the row is as it was seen.
    """

    async def claimed(self, db: StateDB, scan: Scan, room: Room) -> Claimed:
        """Select; then claim."""
        rows = await db.read(lambda connection: self.select(connection, scan, room), "due rows")
        faults.reach(SELECTED)
        return await db.write(lambda connection: self.claim(connection, rows, scan), "claims")

    def claim(self, connection: Connection, rows: Sequence[Row[Any]], scan: Scan) -> Claimed:
        """Claim, whatever has become of them."""
        at = scan.clock()
        changes = [self.change(row, scan, at) for row in rows]
        for change in changes:
            _overwrite(connection, change, at)
        faults.reach(CLAIM_WRITTEN)
        claims = [claim_of(row, change, at) for row, change in zip(rows, changes, strict=True) if change.status == DELIVERING]
        return Claimed(len(rows), tuple(claims), 0, 0)


class GuardedClaim(UnguardedClaim):
    """Right: selected in one transaction and claimed in another, which compares. The twin of the variant above."""

    def claim(self, connection: Connection, rows: Sequence[Row[Any]], scan: Scan) -> Claimed:
        """Claim those that are still as they were seen."""
        known = {Seen(*each) for each in connection.execute(select(_row.id, _row.status, _row.attempt, _row.claim_number))}
        return Plain.claim(self, connection, [row for row in rows if seen_of(row) in known], scan)


class UnguardedOutcome(Plain):
    """Mistake: an outcome is written to its row by id alone. One that comes late ends what another has ended, or has begun.

    Right: it counts only while its own claim stands.
    """

    def finish(self, connection: Connection, finished: Finished, settled: Settled, at: float) -> bool:
        """Write, whoever's the row is now."""
        _overwrite(connection, settled.change, at)
        faults.reach(OUTCOME_WRITTEN)
        return True


class NoLease(Plain):
    """Mistake (F13): a claim is durable and lasts for no time. Whoever comes while its owner is still sending sends, too.

    Right: nobody else takes the row until the lease is over.
    """

    def attempt(self, row: Row[Any], scan: Scan, at: float) -> Change:
        """A claim that is due again at once."""
        change = super().attempt(row, scan, at)
        return replace(change, patch={**change.patch, "next_attempt_at": at})


def _overwrite(connection: Connection, change: Change, at: float) -> None:
    """The change without its guard. The history says from which status the row really went."""
    status = connection.execute(select(_row.status).where(_row.id == change.seen.id)).scalar_one()
    patch = {**change.patch, "status": change.status, "updated_at": at}
    connection.execute(update(dispatch_outbox).where(_row.id == change.seen.id).values(patch))
    record(connection, [History(change.seen.id, Edge(status, change.status, change.reason), change.actor, "", {}, at)])
