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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, Row, TextClause, bindparam, func, literal_column, select, text
from sqlalchemy.sql.selectable import Select

from outbox.dispatch.edges import ATTEMPT, DEAD_LETTER, DEADLINE, DELIVERING, EXPIRED, MAX_ATTEMPTS, PENDING
from outbox.dispatch.schema import IS_ACTIVE, dispatch_outbox
from outbox.dispatch.transitions import Change, Seen, write

ACTOR = "deliver_due_dispatches"
NOTIFY_TIMEOUT_SECONDS = 10.0
# The one destination of everything that goes by the template.
BY_TEMPLATE = ""
CLAIM_LEASE_SECONDS = NOTIFY_TIMEOUT_SECONDS + 5.0


class Claim(NamedTuple):
    """One attempt that is ours to make. `seen` is the row as this claim left it; `payload` the bytes' text, as enqueued."""

    seen: Seen
    kind: str
    deliver_to: str
    payload: str
    max_attempts: int
    ack_required: bool
    claimed_at: float
    expires_at: float | None = None
    destination: str = BY_TEMPLATE
    lane: str | None = None

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


def claim(
    connection: Connection,
    *,
    due_until: float,
    at: float,
    limit: int,
    lease_seconds: float,
    not_to: Sequence[str] = (),
) -> Claimed:
    """Claim up to `limit` rows that were due at `due_until`, none of them for a destination of `not_to`.

    `at` is the moment of the claim, in seconds since the epoch.
    """
    rows: list[Row[tuple[object, ...]]] = []
    for status in (DELIVERING, PENDING):  # what a dead claimant left comes first
        if len(rows) < limit:
            due = _due(status, connection.dialect.name, bool(not_to))
            given = {"due_until": due_until, "room": limit - len(rows), **({"not_to": list(not_to)} if not_to else {})}
            rows += connection.execute(due, given).all()
    changes = [_change(row, at, lease_seconds) for row in rows]
    write(connection, changes, at)
    claims = tuple(_claim(row, change, at) for row, change in zip(rows, changes, strict=True) if change.status == DELIVERING)
    if len(claims) == len(rows):
        return Claimed(len(rows), claims, 0, 0)
    ended = [change.status for change in changes]
    return Claimed(len(rows), claims, ended.count(EXPIRED), ended.count(DEAD_LETTER))


_COLUMNS = dispatch_outbox.c


@functools.cache
def _due(status: str, dialect: str, some_left_out: bool) -> Select[tuple[object, ...]]:
    """Due rows of one status, in the order of the index. The index is used only where its own condition stands word for
    word."""
    due = (
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
            _COLUMNS.destination,
            _COLUMNS.lane,
        )
        .where(
            text(f"dispatch_outbox.{IS_ACTIVE}"),
            _COLUMNS.status == literal_column(f"'{status}'"),
            _COLUMNS.next_attempt_at <= bindparam("due_until"),
            _is_first_of_its_lane(dialect),
        )
        .order_by(_COLUMNS.next_attempt_at)
        .limit(bindparam("room"))
        .with_for_update(skip_locked=True)
    )
    if some_left_out:
        return due.where(func.coalesce(_COLUMNS.destination, BY_TEMPLATE).not_in(bindparam("not_to", expanding=True)))
    return due


def _is_first_of_its_lane(dialect: str) -> TextClause:
    # SQLite would rather take the unique index, and walk all that the lane has ever held.
    hint = " INDEXED BY dispatch_outbox_lane_open" if dialect == "sqlite" else ""
    return text(
        "(dispatch_outbox.lane IS NULL OR NOT EXISTS ("  # noqa: S608 - nothing of it comes from outside
        f"SELECT 1 FROM dispatch_outbox AS earlier{hint} WHERE earlier.lane = dispatch_outbox.lane "
        f"AND earlier.lane_position < dispatch_outbox.lane_position AND earlier.{IS_ACTIVE}))"
    )


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
        row.expires_at,
        row.destination or BY_TEMPLATE,
        row.lane,
    )
