"""Operators and consumers: look, acknowledge, retry, purge; straight on the database, with or without a scheduler alive
(ADR-0059, D5, D6).

Each act is one short transaction guarded by the row as it was read. Where the row changed meanwhile the answer is False and
nothing has happened: look again. What the graph of edges does not hold is refused, for operators as for everybody.
"""

import hmac
import json
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from outbox import faults
from outbox.dispatch import checks
from outbox.dispatch.edges import ACKED, CONSUMER, DELIVERING, OPERATOR, PENDING, RETRY_BACKOFF, known_status
from outbox.dispatch.errors import BadValue, NoSuchDispatch
from outbox.dispatch.retention import PURGE_BEFORE, PURGE_COMMITTED, PURGE_WRITTEN, history_word, remove, report
from outbox.dispatch.schema import admin_events, dispatch_outbox, status_transitions
from outbox.dispatch.signal import decoded
from outbox.dispatch.store import StateDB
from outbox.dispatch.transitions import ENTITY, Change, Seen, apply

LIST_LIMIT = 50

ACK_BEFORE = faults.declare("dispatch.ack.before", "the token is right, the acknowledgement is not recorded")
ACK_WRITTEN = faults.declare("dispatch.ack.written", "the acknowledgement is written, not committed")
ACK_COMMITTED = faults.declare("dispatch.ack.committed", "the acknowledgement is committed, the consumer does not know yet")
RETRY_BEFORE = faults.declare("dispatch.retry.before", "the forced retry is not recorded")
RETRY_WRITTEN = faults.declare("dispatch.retry.written", "the forced retry is written, not committed")
RETRY_COMMITTED = faults.declare("dispatch.retry.committed", "the forced retry is committed")


async def get_dispatch(db: StateDB, dispatch_id: str) -> dict[str, Any] | None:
    """The row with its payload decoded, or None. A payload that cannot be decoded is given as its text.

    Beside the columns there is `last_error_is_current`: whether `last_error` tells of the latest attempt. An error stays in the
    row when a later attempt succeeds.
    """
    row = await _read(db, dispatch_id)
    return None if row is None else _shown(row)


async def list_dispatches(db: StateDB, *, status: str | None = None, limit: int = LIST_LIMIT) -> list[dict[str, Any]]:
    """Up to `limit` rows, the newest first, of one status or of all, each as `get_dispatch` gives it.

    Raises BadValue for an unknown status, and for a limit that is no whole number from 1.
    """
    if status is not None:
        known_status(status)
    checks.positive("limit", limit)
    query = select(dispatch_outbox).order_by(dispatch_outbox.c.created_at.desc(), dispatch_outbox.c.id.desc()).limit(limit)
    if status is not None:
        query = query.where(dispatch_outbox.c.status == status)
    rows = await db.read(lambda connection: connection.execute(query).mappings().all(), "listing")
    return [_shown(row) for row in rows]


async def list_transitions(db: StateDB, dispatch_id: str) -> list[dict[str, Any]]:
    """The history of a dispatch, the oldest first; there may be one of a row that was purged."""
    if not _may_exist(checks.identity(dispatch_id)):
        return []
    table = status_transitions.c
    query = select(status_transitions).where(table.entity_type == ENTITY, table.entity_id == dispatch_id).order_by(table.id)
    rows = await db.read(lambda connection: connection.execute(query).mappings().all(), f"reading the history of {dispatch_id}")
    return [{**row, "evidence_refs": json.loads(row["evidence_refs"]), "metadata": json.loads(row["metadata"])} for row in rows]


async def list_admin_events(db: StateDB, *, limit: int | None = None, newest_first: bool = False) -> list[dict[str, Any]]:
    """What operators and the retention deleted: all events, the oldest first, or the other way round; the first `limit`."""
    order = admin_events.c.id.desc() if checks.flag("newest_first", newest_first) else admin_events.c.id
    query = select(admin_events).order_by(order).limit(None if limit is None else checks.positive("limit", limit))
    rows = await db.read(lambda connection: connection.execute(query).mappings().all(), "reading the admin events")
    return [{**row, "details": json.loads(row["details"])} for row in rows]


async def ack_dispatch(db: StateDB, dispatch_id: str, ack_token: str, *, now: float | None = None) -> bool:
    """Record that the consumer has it. False if the row changed between reading and writing; ask again then.

    A row whose last send has ended is a dead letter and cannot be acknowledged any more: with `max_attempts=1` that is at once.

    Raises NoSuchDispatch (a LookupError) for a missing row, BadValue (a ValueError) where no acknowledgement was asked for or
    the token is another, and IllegalEdge (a ValueError) for a row that is neither pending nor delivering.
    """
    at = checks.moment(now)
    row = await _existing(db, dispatch_id)
    if not row["ack_required"]:
        raise BadValue(f"dispatch {dispatch_id} asks for no acknowledgement")
    if not isinstance(ack_token, str) or not hmac.compare_digest(_bytes(ack_token), _bytes(row["ack_token"])):
        raise BadValue(f"the token is not that of dispatch {dispatch_id}")
    change = Change(_seen(row), ACKED, CONSUMER, "ack_dispatch", "the consumer presented the token")
    faults.reach(ACK_BEFORE)
    applied = await _apply(db, change, at, ACK_WRITTEN)
    faults.reach(ACK_COMMITTED)
    return applied


async def retry_dispatch(db: StateDB, dispatch_id: str, *, actor: str = OPERATOR, now: float | None = None) -> bool:
    """Send a dead letter or an expired dispatch again, from attempt 0, at once. False if the row changed meanwhile.

    An expiry that has passed is taken away, or the retry would expire before it is sent; the history says so. Raises
    NoSuchDispatch, IllegalEdge for a row of any other status, and BadValue. `actor` is at most 200 characters of text.
    """
    at = checks.moment(now)
    checks.actor(actor)
    row = await _existing(db, dispatch_id)
    patch = {"attempt": 0, "next_attempt_at": at, "last_error": None, "last_error_attempt": None}
    metadata = {}
    if row["expires_at"] is not None and row["expires_at"] <= at:
        patch["expires_at"] = None
        metadata = {"expires_at_removed": row["expires_at"]}
    change = Change(_seen(row), PENDING, RETRY_BACKOFF, actor, "forced retry", source=OPERATOR, patch=patch, metadata=metadata)
    faults.reach(RETRY_BEFORE)
    applied = await _apply(db, change, at, RETRY_WRITTEN)
    faults.reach(RETRY_COMMITTED)
    return applied


async def purge_dispatch(
    db: StateDB, dispatch_id: str, *, actor: str = OPERATOR, remove_history: bool = False, now: float | None = None
) -> bool:
    """Delete one row of any status; whether there was one. An admin event keeps who did it, when, and what the row was.

    A claimant that is sending the row is not stopped; its outcome finds nothing to change. The row's `dedup_key` is free again.
    `purge_dispatches` deletes many.
    """
    at = checks.moment(now)
    checks.actor(actor)
    checks.flag("remove_history", remove_history)
    if not _may_exist(checks.identity(dispatch_id)):
        return False

    def work(connection: Connection) -> bool:
        query = select(dispatch_outbox).where(dispatch_outbox.c.id == dispatch_id).with_for_update()
        row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return False
        remove(connection, [dispatch_id], remove_history)
        kept = {
            name: row[name] for name in ("kind", "deliver_to", "dedup_key", "status", "attempt", "max_attempts", "created_at")
        }
        report(connection, dispatch_id, actor, {**kept, "history": history_word(remove_history)}, at)
        faults.reach(PURGE_WRITTEN)
        return True

    faults.reach(PURGE_BEFORE)
    purged = await db.write(work, f"purging {dispatch_id}")
    faults.reach(PURGE_COMMITTED)
    return purged


async def _existing(db: StateDB, dispatch_id: str) -> RowMapping:
    row = await _read(db, dispatch_id)
    if row is None:
        raise NoSuchDispatch(f"there is no dispatch {checks.shown(dispatch_id)}; `ls` lists them")
    return row


async def _read(db: StateDB, dispatch_id: str) -> RowMapping | None:
    if not _may_exist(checks.identity(dispatch_id)):
        return None
    query = select(dispatch_outbox).where(dispatch_outbox.c.id == dispatch_id)
    return await db.read(lambda connection: connection.execute(query).mappings().one_or_none(), f"reading {dispatch_id}")


def _may_exist(dispatch_id: str) -> bool:
    """Whether a row could have this id: a database refuses to compare with what it could not store."""
    try:
        checks.text("dispatch_id", dispatch_id)
    except BadValue:
        return False
    return True


def _bytes(token: str) -> bytes:
    # What a command line was given need not be text; it is another token then, and no error of its own.
    return token.encode("utf-8", "surrogatepass")


def _seen(row: RowMapping) -> Seen:
    return Seen(row["id"], row["status"], row["attempt"], row["claim_number"])


async def _apply(db: StateDB, change: Change, at: float, written: str) -> bool:
    """Whether the row was still as it was seen. `written` is the fault point before the commit."""

    def work(connection: Connection) -> bool:
        applied = change.seen in apply(connection, [change], at)
        if applied:
            faults.reach(written)
        return applied

    return await db.write(work, f"changing {change.seen.id}")


def _shown(row: RowMapping) -> dict[str, Any]:
    current = row["last_error"] is not None and row["last_error_attempt"] == row["attempt"] and row["status"] != DELIVERING
    return {**row, "payload": decoded(row["payload"]), "last_error_is_current": current}
