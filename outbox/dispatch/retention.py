"""Retention: which finished dispatches are deleted, when, and what becomes of their history.

Nothing is deleted unless somebody asks: an operator by `purge_dispatches`, or the settings by a `RetentionPolicy`, which the
scheduler applies. Deletion goes in batches, each its own short transaction, and each leaves an admin event that says who
deleted how many of what. The transition history is kept unless `remove_history` is set; the event says which. Rows that are not
finished are purged only by an operator, by name or by status, never by a policy.
"""

import json
import time
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, func, insert, select
from sqlalchemy.sql.elements import ColumnElement

from outbox import faults
from outbox.dispatch.edges import ACKED, DEAD_LETTER, DELIVERED, EXPIRED, known_statuses
from outbox.dispatch.errors import BadValue
from outbox.dispatch.schema import admin_events, dispatch_outbox, status_transitions
from outbox.dispatch.store import StateDB
from outbox.dispatch.transitions import ENTITY

OPERATOR = "operator"
RETENTION = "retention"
PURGE = "dispatch.purge"
DAY_SECONDS = 86_400.0

PURGE_BEFORE = faults.declare("dispatch.purge.before", "the rows to purge are there")
PURGE_WRITTEN = faults.declare("dispatch.purge.written", "rows are deleted and the event is written, not committed")
PURGE_COMMITTED = faults.declare("dispatch.purge.committed", "a batch of rows is purged")


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """For how many seconds a finished dispatch is kept after its last change, by status; None: for ever.

    `batch_rows` bounds one transaction. With `remove_history` the transitions of a deleted row are deleted as well.
    """

    delivered_seconds: float | None = 7 * DAY_SECONDS
    acked_seconds: float | None = 7 * DAY_SECONDS
    dead_letter_seconds: float | None = 30 * DAY_SECONDS
    expired_seconds: float | None = 30 * DAY_SECONDS
    batch_rows: int = 500
    remove_history: bool = False

    def ages(self) -> dict[str, float]:
        """Status to seconds, for the statuses that are ever deleted."""
        every = {
            DELIVERED: self.delivered_seconds,
            ACKED: self.acked_seconds,
            DEAD_LETTER: self.dead_letter_seconds,
            EXPIRED: self.expired_seconds,
        }
        return {status: seconds for status, seconds in every.items() if seconds is not None}


async def purge_dispatches(
    db: StateDB,
    *,
    statuses: Collection[str] = (),
    older_than_seconds: float | None = None,
    dry_run: bool = False,
    remove_history: bool = False,
    batch_rows: int = 500,
    actor: str = OPERATOR,
    now: float | None = None,
) -> dict[str, int]:
    """Delete the dispatches of these statuses whose last change is that long ago; how many of each status.

    At least one of the two conditions must be given; no `statuses` means all six. With `dry_run` nothing is deleted, and the
    answer is what would be. If the purge is cut off, the batches before are deleted and accounted for. Raises BadValue.
    """
    wanted = known_statuses([statuses] if isinstance(statuses, str) else statuses)
    if not wanted and older_than_seconds is None:
        raise BadValue("a purge of everything is not asked for by saying nothing; give statuses, an age, or both")
    if older_than_seconds is not None and not older_than_seconds >= 0:
        raise BadValue(f"older_than_seconds is {older_than_seconds!r}; expected a number, not negative")
    if batch_rows < 1:
        raise BadValue(f"batch_rows is {batch_rows}; expected 1 or more")
    at = time.time() if now is None else now
    conditions: list[ColumnElement[bool]] = []
    if wanted:
        conditions.append(dispatch_outbox.c.status.in_(wanted))
    if older_than_seconds is not None:
        changed_at = func.coalesce(dispatch_outbox.c.updated_at, dispatch_outbox.c.created_at)
        conditions.append(changed_at <= at - older_than_seconds)
    condition = and_(*conditions)
    if dry_run:
        return await db.read(lambda connection: _census(connection, condition), "counting what a purge would delete")
    counts: dict[str, int] = {}
    last = ""
    while True:
        batch = _Batch(condition, last, batch_rows, remove_history, actor, at)
        faults.reach(PURGE_BEFORE)
        deleted, last = await db.write(batch.work, "purging")
        faults.reach(PURGE_COMMITTED)
        for status, number in deleted.items():
            counts[status] = counts.get(status, 0) + number
        if not last:
            return counts


async def apply_retention(db: StateDB, policy: RetentionPolicy, *, now: float | None = None) -> dict[str, int]:
    """Delete what `policy` no longer keeps; how many of each status."""
    counts: dict[str, int] = {}
    for status, seconds in policy.ages().items():
        counts |= await purge_dispatches(
            db,
            statuses=[status],
            older_than_seconds=seconds,
            remove_history=policy.remove_history,
            batch_rows=policy.batch_rows,
            actor=RETENTION,
            now=now,
        )
    return counts


def _census(connection: Connection, condition: ColumnElement[bool]) -> dict[str, int]:
    rows = connection.execute(
        select(dispatch_outbox.c.status, func.count()).where(condition).group_by(dispatch_outbox.c.status)
    )
    return {status: count for status, count in rows}


@dataclass(frozen=True, slots=True)
class _Batch:
    """The next rows behind the id `after`. Going by the id makes the whole purge read the table once, not once a batch."""

    condition: ColumnElement[bool]
    after: str
    rows: int
    remove_history: bool
    actor: str
    at: float

    def work(self, connection: Connection) -> tuple[dict[str, int], str]:
        """Delete them; how many of each status, and the last id (empty: that was all)."""
        columns = dispatch_outbox.c
        found = connection.execute(
            select(columns.id, columns.status)
            .where(self.condition, columns.id > self.after)
            .order_by(columns.id)
            .limit(self.rows)
            .with_for_update()
        ).all()
        if not found:
            return {}, ""
        ids = [row.id for row in found]
        counts: dict[str, int] = {}
        for row in found:
            counts[row.status] = counts.get(row.status, 0) + 1
        remove(connection, ids, self.remove_history)
        details = {"deleted": counts, "first_id": ids[0], "last_id": ids[-1], "history": history_word(self.remove_history)}
        report(connection, None, self.actor, details, self.at)
        faults.reach(PURGE_WRITTEN)
        return counts, ids[-1] if len(ids) == self.rows else ""


def remove(connection: Connection, ids: list[str], remove_history: bool) -> None:
    """Delete rows, and their transitions where that is asked for."""
    connection.execute(delete(dispatch_outbox).where(dispatch_outbox.c.id.in_(ids)))
    if remove_history:
        of_these = and_(status_transitions.c.entity_type == ENTITY, status_transitions.c.entity_id.in_(ids))
        connection.execute(delete(status_transitions).where(of_these))


def history_word(removed: bool) -> str:
    """How an event says what became of the history."""
    return "removed" if removed else "kept"


def report(connection: Connection, entity_id: str | None, actor: str, details: dict[str, object], at: float) -> None:
    """Write the admin event of a purge."""
    row = {
        "action": PURGE,
        "entity_type": ENTITY,
        "entity_id": entity_id,
        "actor": actor,
        "details": json.dumps(details, ensure_ascii=False),
        "created_at": at,
    }
    connection.execute(insert(admin_events), row)
