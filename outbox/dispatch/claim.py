"""The claim: ownership of a row for one attempt, durable before anything is sent (ADR-0059, D3).

A claim selects rows that are due, locks them, and moves each to `delivering` with the next attempt number, the next claim
number and a lease: `next_attempt_at` is the moment until which nobody else takes it. The lease counts from the claim, not from
the start of the scan, so the last row of a long scan has a whole one. A row that was left `delivering` is due again when its
lease has passed.

Rows that are not claimed: whose time is over (they become `expired`), and whose last attempt was claimed and never finished
(they become `dead_letter`: another send would be one more than was allowed). A row of a lane is left alone while an earlier one
of it is unfinished.
"""

import functools
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, exists, literal_column, or_, select, text
from sqlalchemy.sql.selectable import Select

from outbox.dispatch.edges import ATTEMPT, DEAD_LETTER, DEADLINE, DELIVERING, EXPIRED, MAX_ATTEMPTS, PENDING
from outbox.dispatch.schema import IS_ACTIVE, dispatch_outbox
from outbox.dispatch.transitions import Change, Seen, write

ACTOR = "deliver_due_dispatches"
NOTIFY_TIMEOUT_SECONDS = 10.0
CLAIM_LEASE_SECONDS = NOTIFY_TIMEOUT_SECONDS + 5.0


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt that is ours to make. `seen` is the row as this claim left it; `payload` the bytes' text, as enqueued."""

    seen: Seen
    kind: str
    deliver_to: str
    payload: str
    max_attempts: int
    ack_required: bool
    claimed_at: float

    @property
    def id(self) -> str:
        """The dispatch's id, which is also its idempotency key."""
        return self.seen.id

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.seen.attempt


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one transaction found due: `selected` rows, of which `claims` are ours, and the others have ended."""

    selected: int
    claims: tuple[Claim, ...]
    expired: int
    dead_letter: int


def claim(connection: Connection, *, due_until: float, at: float, limit: int, lease_seconds: float) -> Claimed:
    """Claim up to `limit` rows that were due at `due_until`. `at` is the moment of the claim, in seconds since the epoch."""
    rows: list[Row[tuple[object, ...]]] = []
    for status in (DELIVERING, PENDING):  # what a dead claimant left comes first
        if len(rows) < limit:
            rows += connection.execute(_due(status), {"due_until": due_until, "room": limit - len(rows)}).all()
    changes = [_change(row, at, lease_seconds) for row in rows]
    write(connection, changes, at)
    claims = tuple(_claim(row, change, at) for row, change in zip(rows, changes, strict=True) if change.status == DELIVERING)
    ended = [change.status for change in changes]
    return Claimed(len(rows), claims, ended.count(EXPIRED), ended.count(DEAD_LETTER))


_COLUMNS = dispatch_outbox.c
_EARLIER = dispatch_outbox.alias("earlier")


@functools.cache
def _due(status: str) -> Select[tuple[object, ...]]:
    """Due rows of one status, in the order of the index. The index is used only where its own condition stands word for
    word."""
    return (
        select(
            _COLUMNS.id,
            _COLUMNS.status,
            _COLUMNS.attempt,
            _COLUMNS.claim_number,
            _COLUMNS.kind,
            _COLUMNS.deliver_to,
            _COLUMNS.payload,
            _COLUMNS.max_attempts,
            _COLUMNS.ack_required,
            _COLUMNS.expires_at,
        )
        .where(
            text(f"dispatch_outbox.{IS_ACTIVE}"),
            _COLUMNS.status == literal_column(f"'{status}'"),
            _COLUMNS.next_attempt_at <= bindparam("due_until"),
            _is_first_of_its_lane(),
        )
        .order_by(_COLUMNS.next_attempt_at, _COLUMNS.created_at, _COLUMNS.id)
        .limit(bindparam("room"))
        .with_for_update(skip_locked=True)
    )


def _is_first_of_its_lane() -> ColumnElement[bool]:
    unfinished_before = exists().where(
        and_(
            _EARLIER.c.lane == _COLUMNS.lane,
            _EARLIER.c.lane_position < _COLUMNS.lane_position,
            _EARLIER.c.status.in_([literal_column("'pending'"), literal_column("'delivering'")]),
        )
    )
    return or_(_COLUMNS.lane.is_(None), ~unfinished_before)


def _change(row: Row[tuple[object, ...]], at: float, lease_seconds: float) -> Change:
    seen = Seen(row.id, row.status, row.attempt, row.claim_number)
    if row.expires_at is not None and row.expires_at <= at:
        return Change(seen, EXPIRED, DEADLINE, ACTOR, f"expired at {row.expires_at}")
    if row.status == DELIVERING and row.attempt >= row.max_attempts:
        error = f"attempt {row.attempt} of {row.max_attempts} was begun and never finished; its outcome is not known"
        patch = {"last_error": error, "last_error_attempt": row.attempt}
        return Change(seen, DEAD_LETTER, MAX_ATTEMPTS, ACTOR, error, patch=patch)
    attempt, number = row.attempt + 1, row.claim_number + 1
    return Change(
        seen,
        DELIVERING,
        ATTEMPT,
        ACTOR,
        f"attempt {attempt} of {row.max_attempts}",
        patch={"attempt": attempt, "claim_number": number, "claimed_at": at, "next_attempt_at": at + lease_seconds},
        metadata={"attempt": attempt, "claim_number": number},
    )


def _claim(row: Row[tuple[object, ...]], change: Change, at: float) -> Claim:
    return Claim(
        Seen(row.id, DELIVERING, change.patch["attempt"], change.patch["claim_number"]),
        row.kind,
        row.deliver_to,
        row.payload,
        row.max_attempts,
        bool(row.ack_required),
        at,
    )
