"""Retention: which finished dispatches are deleted, when, and what becomes of their history.

Nothing is deleted unless somebody asks: an operator by `purge_dispatches`, or the settings by a `RetentionPolicy`, which the
scheduler applies. Deletion goes in batches: what to delete is looked for in a reading transaction, for as long as that takes,
and only a batch that found something opens a writing one, a short one, which asks the same conditions again. Each leaves an
admin event that says who deleted how many of what. The transition history is kept unless `remove_history` is set; the event
says which.
Rows that are not finished are purged only by an operator, by name or by status, never by a policy.
"""

import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, func, insert, select
from sqlalchemy.sql.elements import ColumnElement

from outbox import faults
from outbox.dispatch import checks
from outbox.dispatch.edges import ACKED, DEAD_LETTER, DELIVERED, EXPIRED, known_statuses
from outbox.dispatch.errors import BadValue
from outbox.dispatch.schema import admin_events, dispatch_outbox, status_transitions
from outbox.dispatch.store import StateDB
from outbox.dispatch.transitions import ENTITY

OPERATOR = "operator"
RETENTION = "retention"
PURGE = "dispatch.purge"
HOUR_SECONDS = 3600.0
DAY_SECONDS = 86_400.0

PURGE_BEFORE = faults.declare("dispatch.purge.before", "the rows to purge are there")
PURGE_WRITTEN = faults.declare("dispatch.purge.written", "rows are deleted and the event is written, not committed")
PURGE_COMMITTED = faults.declare("dispatch.purge.committed", "a batch of rows is purged")


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """For how many seconds a finished dispatch is kept after its last change, by status; None: for ever.

    `batch_rows` (1 to 10,000) bounds one transaction. With `remove_history` the transitions of a deleted row are deleted as
    well. A scheduler applies the policy every `every_seconds`: each time reads the table once. Raises BadValue.
    """

    delivered_seconds: float | None = 7 * DAY_SECONDS
    acked_seconds: float | None = 7 * DAY_SECONDS
    dead_letter_seconds: float | None = 30 * DAY_SECONDS
    expired_seconds: float | None = 30 * DAY_SECONDS
    batch_rows: int = 500
    remove_history: bool = False
    every_seconds: float = HOUR_SECONDS

    def __post_init__(self) -> None:
        for name in ("delivered_seconds", "acked_seconds", "dead_letter_seconds", "expired_seconds"):
            if getattr(self, name) is not None:
                checks.age(name, getattr(self, name))
        checks.batch_rows("batch_rows", self.batch_rows)
        checks.flag("remove_history", self.remove_history)
        checks.age("every_seconds", self.every_seconds)

    def ages(self) -> dict[str, float]:
        """Status to seconds, for the statuses that are ever deleted."""
        every = {
            DELIVERED: self.delivered_seconds,
            ACKED: self.acked_seconds,
            DEAD_LETTER: self.dead_letter_seconds,
            EXPIRED: self.expired_seconds,
        }
        return {status: seconds for status, seconds in every.items() if seconds is not None}


def never() -> bool:
    """What `stopping` is where nobody stops it."""
    return False


async def purge_dispatches(
    db: StateDB,
    *,
    statuses: Iterable[str] = (),
    older_than_seconds: float | None = None,
    dry_run: bool = False,
    remove_history: bool = False,
    batch_rows: int = 500,
    actor: str = OPERATOR,
    now: float | None = None,
    stopping: Callable[[], bool] = never,
) -> dict[str, int]:
    """Delete the dispatches of these statuses whose last change is that long ago; how many of each status.

    At least one of the two conditions must be given; no `statuses` means all six. With `dry_run` nothing is deleted, and the
    answer is what would be. If the purge is cut off, the batches before are deleted and accounted for. `stopping` is asked
    before each batch. The `dedup_key` of a deleted row is free again. Raises BadValue.
    """
    at = checks.moment(now)
    checks.actor(actor)
    checks.flag("dry_run", dry_run)
    checks.flag("remove_history", remove_history)
    if not isinstance(statuses, Iterable):
        raise BadValue(f"statuses is {checks.shown(statuses)}; expected a list of statuses")
    wanted = known_statuses([statuses] if isinstance(statuses, str) else statuses)
    if not wanted and older_than_seconds is None:
        raise BadValue("a purge of everything is not asked for by saying nothing; give statuses, an age, or both")
    checks.batch_rows("batch_rows", batch_rows)
    conditions: list[ColumnElement[bool]] = []
    if wanted:
        conditions.append(dispatch_outbox.c.status.in_(wanted))
    if older_than_seconds is not None:
        changed_at = func.coalesce(dispatch_outbox.c.updated_at, dispatch_outbox.c.created_at)
        conditions.append(changed_at <= at - checks.age("older_than_seconds", older_than_seconds))
    condition = and_(*conditions)
    if dry_run:
        return await db.read(lambda connection: _census(connection, condition), "counting what a purge would delete")
    counts: dict[str, int] = {}
    last = ""
    while not stopping():
        ids = await db.read(functools.partial(_candidates, condition, last, batch_rows), "looking for what to purge")
        if ids:
            batch = _Batch(condition, ids, remove_history, actor, at)
            faults.reach(PURGE_BEFORE)
            deleted = await db.write(batch.work, "purging")
            faults.reach(PURGE_COMMITTED)
            for status, number in deleted.items():
                counts[status] = counts.get(status, 0) + number
        if len(ids) < batch_rows:
            break
        last = ids[-1]
    return counts


async def apply_retention(
    db: StateDB, policy: RetentionPolicy, *, now: float | None = None, stopping: Callable[[], bool] = never
) -> dict[str, int]:
    """Delete what `policy` no longer keeps; how many of each status. `stopping` is asked before each status and each batch."""
    if not isinstance(policy, RetentionPolicy):
        raise BadValue(f"the retention policy is {checks.shown(policy)}; expected a RetentionPolicy")
    counts: dict[str, int] = {}
    for status, seconds in policy.ages().items():
        if stopping():
            break
        counts |= await purge_dispatches(
            db,
            statuses=[status],
            older_than_seconds=seconds,
            remove_history=policy.remove_history,
            batch_rows=policy.batch_rows,
            actor=RETENTION,
            now=now,
            stopping=stopping,
        )
    return counts


def _census(connection: Connection, condition: ColumnElement[bool]) -> dict[str, int]:
    rows = connection.execute(
        select(dispatch_outbox.c.status, func.count()).where(condition).group_by(dispatch_outbox.c.status)
    )
    return {status: count for status, count in rows}


def _candidates(condition: ColumnElement[bool], after: str, rows: int, connection: Connection) -> list[str]:
    """The next ids behind `after`. Going by the id makes the whole purge read the table once, not once a batch."""
    identity = dispatch_outbox.c.id
    found = connection.execute(select(identity).where(condition, identity > after).order_by(identity).limit(rows))
    return list(found.scalars())


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows that met the condition when they were looked for; those that still do are deleted."""

    condition: ColumnElement[bool]
    ids: list[str]
    remove_history: bool
    actor: str
    at: float

    def work(self, connection: Connection) -> dict[str, int]:
        """How many of each status were deleted."""
        columns = dispatch_outbox.c
        found = connection.execute(
            select(columns.id, columns.status)
            .where(columns.id.in_(self.ids), self.condition)
            .order_by(columns.id)
            .with_for_update()
        ).all()
        if not found:
            return {}
        ids = [row.id for row in found]
        counts: dict[str, int] = {}
        for row in found:
            counts[row.status] = counts.get(row.status, 0) + 1
        remove(connection, ids, self.remove_history)
        details = {"deleted": counts, "first_id": ids[0], "last_id": ids[-1], "history": history_word(self.remove_history)}
        report(connection, None, self.actor, details, self.at)
        faults.reach(PURGE_WRITTEN)
        return counts


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
