"""Bookkeeping *as recorded*: how ADR-0059 describes the writes of a scan, with the flaws that it lists and two more.

This is a variant for the study, to be compared with the default (`outbox.dispatch.books`); nothing else may use it.

* A failed send is written in three transactions: the error, the status, the due time. A death between them leaves an error that
  belongs to no recorded outcome, or a row that is due after the lease instead of after its backoff (record, D4).
* An outcome is guarded by the status alone. A late finaliser finds `delivering` and ends a claim that is not its own.
* A lease counts from the start of the scan. The late rows of a slow scan are claimed with a lease that is spent already.

As recorded, too: a row whose last attempt was never finished is sent once more, and an error has no attempt number beside it.
There is no fencing number; `claim_number` stays 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, func, or_, select, update

from outbox import faults
from outbox.dispatch import StateDB, backoff_seconds
from outbox.dispatch.books import Finished, Scan, Turn
from outbox.dispatch.claim import ACTOR, BY_TEMPLATE, Claim, Claimed
from outbox.dispatch.edges import (
    ATTEMPT,
    DEADLINE,
    DELIVERING,
    EXPIRED,
    PENDING,
    edge,
)
from outbox.dispatch.schema import dispatch_outbox
from outbox.dispatch.settle import Settled, settle
from outbox.dispatch.slots import Room
from outbox.dispatch.transitions import History, Seen, record

ERROR_COMMITTED = faults.declare("recorded.error.committed", "the error is committed, the status is not")
STATUS_COMMITTED = faults.declare("recorded.status.committed", "the status is committed, the due time is not")

_row = dispatch_outbox.c


@dataclass(frozen=True, slots=True)
class _Move:
    """One guarded transition: `where` is the guard, `patch` what is set with the status."""

    seen: Seen
    status: str
    reason: str
    summary: str
    where: Any
    patch: dict[str, Any]


class RecordedBooks:
    """`outbox.dispatch.books.Books`, as recorded; see the module."""

    async def turn(self, db: StateDB, finished: Sequence[Finished], scan: Scan, room: Room | None) -> Turn:
        """Write each outcome, then claim what there is room for."""
        applied, late = [], []
        for each in finished:
            settled = await self._finish(db, each, scan)
            if settled is None:
                late.append(each)
            else:
                applied.append(settled)
        claimed = Claimed(0, (), 0, 0) if room is None else await self._claim(db, scan, room)
        return Turn(tuple(applied), tuple(late), claimed)

    async def _finish(self, db: StateDB, finished: Finished, scan: Scan) -> Settled | None:
        """What the result asks for, once it is written; None if the status had changed."""
        settled = settle(finished.claim, finished.result)
        change, error = settled.change, finished.result.error
        due = {"next_attempt_at": scan.began_at + backoff_seconds(finished.claim.attempt)}
        if error is not None:
            await _set(db, change.seen.id, scan, last_error=error)
            faults.reach(ERROR_COMMITTED)
        # A success that waits for its acknowledgement is the one case that is written at once (record, D5).
        patch = due if error is None and change.status == PENDING else {}
        move = _Move(change.seen, change.status, change.reason, change.summary, _row.status == DELIVERING, patch)
        if not await db.write(lambda connection: _apply(connection, move, scan.began_at), "an outcome"):
            return None
        if error is not None and change.status == PENDING:
            faults.reach(STATUS_COMMITTED)
            await _set(db, change.seen.id, scan, **due)
        return settled

    async def _claim(self, db: StateDB, scan: Scan, room: Room) -> Claimed:
        """Select what was due when the scan began; then expire or claim row by row, each in a transaction of its own."""
        due = await db.read(_select(scan, room), "due rows")
        claims: list[Claim] = []
        expired = 0
        for row in due:
            move = _claiming(row, scan)
            if not await db.write(_applying(move, scan), "a claim"):
                continue
            if move.status == EXPIRED:
                expired += 1
            else:
                claims.append(_claimed(row, scan))
        return Claimed(len(due), tuple(claims), expired, 0)


async def _set(db: StateDB, identity: str, scan: Scan, **values: object) -> None:
    """One statement in a transaction of its own, guarded by nothing."""
    statement = update(dispatch_outbox).where(_row.id == identity).values(updated_at=scan.began_at, **values)
    await db.write(lambda connection: connection.execute(statement).rowcount, "bookkeeping")


def _select(scan: Scan, room: Room) -> Callable[[Connection], list[Row[Any]]]:
    query = (
        select(dispatch_outbox)
        .where(or_(_row.status == PENDING, _row.status == DELIVERING), _row.next_attempt_at <= scan.began_at)
        .where(func.coalesce(_row.destination, BY_TEMPLATE).not_in(room.full))
        .order_by(_row.next_attempt_at, _row.id)
        .limit(room.rows)
    )
    return lambda connection: list(connection.execute(query).all())


def _claiming(row: Row[Any], scan: Scan) -> _Move:
    seen = Seen(row.id, row.status, row.attempt, row.claim_number)
    guard = and_(_row.status == row.status, _row.attempt == row.attempt)
    if row.expires_at is not None and row.expires_at <= scan.began_at:
        return _Move(seen, EXPIRED, DEADLINE, f"expired at {row.expires_at}", guard, {})
    lease = scan.began_at + scan.options.lease_seconds
    patch = {"attempt": row.attempt + 1, "next_attempt_at": lease, "claimed_at": scan.began_at}
    return _Move(seen, DELIVERING, ATTEMPT, f"attempt {row.attempt + 1} of {row.max_attempts}", guard, patch)


def _claimed(row: Row[Any], scan: Scan) -> Claim:
    return Claim(
        Seen(row.id, DELIVERING, row.attempt + 1, row.claim_number),
        row.kind,
        row.deliver_to,
        row.payload,
        row.max_attempts,
        bool(row.ack_required),
        scan.began_at,
        row.expires_at,
        row.destination or BY_TEMPLATE,
        row.lane,
    )


def _applying(move: _Move, scan: Scan) -> Callable[[Connection], bool]:
    return lambda connection: _apply(connection, move, scan.began_at)


def _apply(connection: Connection, move: _Move, at: float) -> bool:
    """Status, patch and history record in one transaction; False if the guard does not hold."""
    statement = update(dispatch_outbox).where(_row.id == move.seen.id, move.where)
    if not connection.execute(statement.values(status=move.status, updated_at=at, **move.patch)).rowcount:
        return False
    step = edge(move.seen.status, move.status, move.reason)
    attempt = move.patch.get("attempt", move.seen.attempt)
    record(connection, [History(move.seen.id, step, ACTOR, move.summary, {"attempt": attempt}, at)])
    return True
