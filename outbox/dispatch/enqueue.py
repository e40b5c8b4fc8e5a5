"""Enqueue: a dispatch and its first history record, in one transaction, before anything is sent (ADR-0059, D2).

Give a `StateDB`, and the transaction is the function's own. Give the connection of `StateDB.begin()`, and the dispatch is
written together with the caller's rows: both are there afterwards, or neither.
"""

import functools
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, func, insert, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert
from yarl import URL

from outbox import faults
from outbox.dispatch import checks
from outbox.dispatch.edges import ENQUEUED, PENDING, edge
from outbox.dispatch.engines import OURS
from outbox.dispatch.errors import BadValue, translated
from outbox.dispatch.http import is_url
from outbox.dispatch.schema import DEFAULT_MAX_ATTEMPTS, dispatch_outbox, schedule_runs, sessions
from outbox.dispatch.signal import DispatchSignal
from outbox.dispatch.store import StateDB
from outbox.dispatch.transitions import History, record

ACTOR = "enqueue_dispatch"

BEFORE = faults.declare("dispatch.enqueue.before", "nothing of a dispatch is in the database")
LOOKED = faults.declare("dispatch.enqueue.looked", "the deduplication key was looked for and not found, nothing is written")
WRITTEN = faults.declare("dispatch.enqueue.written", "the dispatch and its first transition are written, not committed")
COMMITTED = faults.declare("dispatch.enqueue.committed", "the dispatch is committed, its producer does not know yet")


async def enqueue_dispatch(
    db: StateDB | AsyncConnection,
    *,
    kind: str,
    deliver_to: str,
    body: Mapping[str, Any] | None = None,
    dedup_key: str | None = None,
    ack_required: bool = False,
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
    expires_at: float | None = None,
    session_id: str | None = None,
    schedule_run_id: str | None = None,
    lane: str | None = None,
    dispatch_id: str | None = None,
    ack_token: str | None = None,
    now: float | None = None,
) -> str:
    """Write a pending dispatch, due at once, and return its id (32 hexadecimal digits).

    With a `dedup_key` that a row has already, the id of that row is returned and nothing is written or compared: the first
    meaning of a key stays. Rows of one `lane` are sent one after the other, in the order in which they were committed.
    `expires_at` and `now` (the clock's, if None) are seconds since the epoch; `dispatch_id` and `ack_token` are for callers who
    leave neither to chance.

    Raises BadValue for a value that cannot be used, among them a body that is no JSON object, an expiry that has passed, and a
    session or schedule run that does not exist; and what `StateDB.write` raises. Nothing is written then.
    """
    _check_where(db)
    at = checks.moment(now)
    asked = checks.flag("ack_required", ack_required)
    identity = uuid.uuid4().hex if dispatch_id is None else dispatch_id
    row = {
        "id": checks.hexadecimal("dispatch_id", identity),
        "kind": checks.text("kind", kind),
        "deliver_to": checks.text("deliver_to", deliver_to),
        "destination": destination(deliver_to),
        "dedup_key": None if dedup_key is None else checks.key("dedup_key", dedup_key),
        "max_attempts": checks.positive("max_attempts", max_attempts),
        "next_attempt_at": at,
        "ack_required": int(asked),
        "ack_token": _token(asked, ack_token),
        "session_id": None if session_id is None else checks.text("session_id", session_id),
        "schedule_run_id": None if schedule_run_id is None else checks.text("schedule_run_id", schedule_run_id),
        "created_at": at,
        "expires_at": _expiry(expires_at),
        "lane": None if lane is None else checks.key("lane", lane),
    }
    row["payload"] = _payload(row, body)

    def work(connection: Connection) -> str:
        return _insert(connection, row)

    faults.reach(BEFORE)
    if isinstance(db, StateDB):
        identity = await db.write(work, f"enqueueing a {kind!r}")
        faults.reach(COMMITTED)
        return identity
    with translated(f"enqueueing a {kind!r} in the caller's transaction"):
        return await db.run_sync(lambda connection: _within(connection, work))


def _check_where(db: object) -> None:
    if isinstance(db, StateDB):
        return
    if not isinstance(db, AsyncConnection):
        raise BadValue(f"db is {checks.shown(db)}; expected an open StateDB, or the connection of its `async with db.begin()`")
    connection = db.sync_connection
    if connection is None or not connection.in_transaction():
        raise BadValue("the connection is in no transaction; use the one of `async with db.begin()`")
    if not connection.get_execution_options().get(OURS):
        raise BadValue(
            "the connection is of another engine than that of a StateDB: its SQLite may be one that damages a database in WAL "
            "mode; use the connection of `async with db.begin()`"
        )


def destination(route: str) -> str | None:
    """What a route's sends have in common with others: the origin of a URL (`http://host:80`), None for what is none.

    It decides nothing but which sends are bounded together, so a URL that cannot be sent to is left to the transport.
    """
    if not is_url(route):
        return None
    try:
        url = URL(route, encoded=True)
        host, port = url.raw_host, url.port
    except ValueError:
        return None
    if not host:
        return None
    return f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{port}".lower()


def _within(connection: Connection, work: Callable[[Connection], str]) -> str:
    """In a savepoint: a caller who goes on after an error keeps its own rows, and none of the refused dispatch."""
    with connection.begin_nested():
        return work(connection)


def _insert(connection: Connection, row: dict[str, Any]) -> str:
    while row["dedup_key"] is not None:
        known = connection.execute(select(dispatch_outbox.c.id).where(dispatch_outbox.c.dedup_key == row["dedup_key"]))
        existing: str | None = known.scalar_one_or_none()
        if existing is not None:
            return existing
        faults.reach(LOOKED)
        if _written(connection, row):
            break
        # Another transaction committed the key between the two statements; it is there now, or was purged again.
    else:
        _written(connection, row)
    entry = History(row["id"], edge(None, PENDING, ENQUEUED), ACTOR, f"enqueued kind={row['kind']}", {}, row["created_at"])
    record(connection, [entry])
    faults.reach(WRITTEN)
    return str(row["id"])


def _written(connection: Connection, row: dict[str, Any]) -> bool:
    """Insert the row; False if its key is taken meanwhile."""
    _not_expired(row)
    place = {"lane_position": None if row["lane"] is None else _next_in_lane(connection, row["lane"])}
    try:
        return connection.execute(_new_row(connection.dialect.name), {**row, **place}).first() is not None
    except IntegrityError as error:
        raise _why(connection, row, error) from error


@functools.cache
def _new_row(dialect: str) -> ReturningInsert[tuple[str]]:
    """The statement that writes a row unless its key is taken, and returns its id if it did."""
    of = sqlite if dialect == "sqlite" else postgresql
    statement: ReturningInsert[tuple[str]] = (
        of.insert(dispatch_outbox)
        .on_conflict_do_nothing(index_elements=["dedup_key"], index_where=text("dedup_key IS NOT NULL"))
        .returning(dispatch_outbox.c.id)
    )
    return statement


def _why(connection: Connection, row: dict[str, Any], error: IntegrityError) -> BadValue:
    """What a constraint held against the row. Only what it can have been is named: the checks were made before."""
    if row["session_id"] is not None or row["schedule_run_id"] is not None:
        return BadValue(
            f"session_id {row['session_id']!r} or schedule_run_id {row['schedule_run_id']!r} is in no row of "
            f"{sessions.name} or {schedule_runs.name}; write that row first"
        )
    return BadValue(f"the dispatch {row['id']} cannot be written: {error.orig}")


def _next_in_lane(connection: Connection, lane: str) -> int:
    """The place behind all others of the lane, and the right to it until the transaction ends."""
    if connection.dialect.name == "postgresql":
        # So that the order of the places is the order of the commits.
        connection.execute(text("SELECT pg_advisory_xact_lock(2359, hashtext(:lane))"), {"lane": lane})
    last = connection.execute(select(func.max(dispatch_outbox.c.lane_position)).where(dispatch_outbox.c.lane == lane))
    return (last.scalar_one() or 0) + 1


async def add_session(db: StateDB, session_id: str, now: float | None = None) -> None:
    """Write a row of `sessions` for dispatches to refer to. Raises BadValue if it is there."""
    await _add(db, sessions, session_id, now)


async def add_schedule_run(db: StateDB, schedule_run_id: str, now: float | None = None) -> None:
    """Write a row of `schedule_runs` for dispatches to refer to. Raises BadValue if it is there."""
    await _add(db, schedule_runs, schedule_run_id, now)


async def _add(db: StateDB, table: Any, identity: str, now: float | None) -> None:
    row = {"id": checks.key("id", identity), "created_at": checks.moment(now)}

    def work(connection: Connection) -> None:
        try:
            connection.execute(insert(table), row)
        except IntegrityError as error:
            raise BadValue(f"{table.name} has a row {identity!r} already") from error

    await db.write(work, f"adding to {table.name}")


def _payload(row: Mapping[str, Any], body: Mapping[str, Any] | None) -> str:
    if body is not None and not isinstance(body, Mapping):
        raise BadValue(f"the body is {type(body).__name__}; a body is a JSON object (a dict), or None")
    signal = DispatchSignal(
        id=str(uuid.UUID(hex=row["id"])),
        created_at=row["created_at"],
        dispatch_id=row["id"],
        kind=row["kind"],
        deliver_to=row["deliver_to"],
        ack_token=row["ack_token"],
        body=body or {},
    )
    payload = signal.to_json()
    _check_names(signal.body)
    return payload


def _check_names(body: Mapping[str, Any]) -> None:
    """Python would write 1, True or None as text where a name stands, maybe beside that very text. It ends, as JSON does."""
    inside: list[Any] = [dict(body)]
    while inside:
        value = inside.pop()
        if isinstance(value, dict):
            strange = [name for name in value if not isinstance(name, str)]
            if strange:
                raise BadValue(f"the body has a member {strange[0]!r}; the names of JSON members are text")
            inside.extend(value.values())
        elif isinstance(value, list | tuple):
            inside.extend(value)


def _token(ack_required: bool, ack_token: str | None) -> str | None:
    if ack_token is not None and not ack_required:
        raise BadValue("an ack_token was given, but no acknowledgement is asked for; set ack_required")
    if not ack_required:
        return None
    return uuid.uuid4().hex if ack_token is None else checks.hexadecimal("ack_token", ack_token)


def _expiry(expires_at: object) -> float | None:
    if expires_at is None:
        return None
    return checks.seconds("expires_at", expires_at, "seconds since the epoch, or None")


def _not_expired(row: Mapping[str, Any]) -> None:
    # Asked only of a row that is new: a repeated enqueue of a known key answers with its id, however late it comes.
    if row["expires_at"] is not None and row["expires_at"] <= row["created_at"]:
        raise BadValue(
            f"expires_at {row['expires_at']} is not after now ({row['created_at']}): the dispatch would never be sent"
        )
