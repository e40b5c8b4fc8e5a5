"""The one place where a dispatch changes its status: guarded, along an edge of the graph, with its history record.

A `Change` names the row as its author saw it: status, attempt and claim number. `apply` writes those rows that are still so,
and a transition record for each, in the caller's transaction: all of it happens or none. Whoever was overtaken changes nothing
and is told (its row is not in the answer). On PostgreSQL the rows are locked first; a writing transaction of SQLite has the
database for itself.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select

from outbox.dispatch import batch
from outbox.dispatch.address import SQLITE
from outbox.dispatch.edges import Edge, edge
from outbox.dispatch.schema import dispatch_outbox, status_transitions

ENTITY = "dispatch"
_GUARDS = ("id", "status", "attempt", "claim_number")
# Which change it was that wrote a row: two claims of one row never have the same number.
_WRITTEN = ("id", "claim_number")
# Locked in the order of the ids, so that two groups that meet wait for each other and never both.
_LOCKED = (
    select(dispatch_outbox.c.id)
    .where(dispatch_outbox.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(dispatch_outbox.c.id)
    .with_for_update()
)
_RECORDED = (
    "entity_type",
    "entity_id",
    "previous_status",
    "status",
    "reason_code",
    "reason_summary",
    "source",
    "actor",
    "evidence_refs",
    "metadata",
    "created_at",
)
_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class Seen(NamedTuple):
    """A row as it was read: what a change of it is guarded by."""

    id: str
    status: str
    attempt: int
    claim_number: int


@dataclass(frozen=True, slots=True)
class Change:
    """A move of the row `seen` to `status` for `reason`, with other columns set by `patch`.

    `summary` is for a person, `metadata` is kept with the history record. Raises BadValue or IllegalEdge when it is made.
    """

    seen: Seen
    status: str
    reason: str
    actor: str
    summary: str
    source: str = "system"
    patch: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.move  # noqa: B018 - raises where there is no such edge

    @property
    def move(self) -> Edge:
        """The edge of the graph along which the row moves."""
        return edge(self.seen.status, self.status, self.reason, self.source)


def apply(connection: Connection, changes: Sequence[Change], at: float) -> frozenset[Seen]:
    """Apply those changes whose rows are still as they were seen, and return these rows. `at` becomes their time."""
    if not changes:
        return frozenset()
    if connection.dialect.name != SQLITE:
        connection.execute(_LOCKED, {"ids": [change.seen.id for change in changes]})
    applied = _update(connection, changes, at)
    record(connection, [_history(change, at) for change in applied])
    return frozenset(change.seen for change in applied)


def write(connection: Connection, changes: Sequence[Change], at: float) -> None:
    """Write changes of rows that this transaction has read and locked."""
    written = _update(connection, changes, at)
    assert len(written) == len(changes), f"{len(written)} rows of {len(changes)} locked ones were written"
    record(connection, [_history(change, at) for change in changes])


def _update(connection: Connection, changes: Sequence[Change], at: float) -> list[Change]:
    """Write the rows that are as they were seen: one statement for all changes that set the same columns. Returns the changes
    that were written, in their order."""
    alike: defaultdict[tuple[str, ...], list[Change]] = defaultdict(list)
    for change in changes:
        alike[tuple(change.patch)].append(change)
    overtaken: set[Seen] = set()
    for columns, group in alike.items():
        overtaken.update(_update_alike(connection, columns, group, at))
    return [change for change in changes if change.seen not in overtaken] if overtaken else list(changes)


def _update_alike(connection: Connection, columns: tuple[str, ...], changes: Sequence[Change], at: float) -> Iterable[Seen]:
    """One statement. Returns the rows that were not as they were seen."""
    rows = [(*_guard(change.seen), change.status, at, *change.patch.values()) for change in changes]
    setting = ("status", "updated_at", *columns)
    written = batch.update(connection, dispatch_outbox, rows, guards=_GUARDS, columns=setting, returning=_WRITTEN)
    if len(written) == len(changes):
        return ()
    known = {tuple(row) for row in written}
    return [each.seen for each in changes if (each.seen.id, _number(each)) not in known]


def _guard(seen: Seen) -> tuple[str, str, int, int]:
    return seen.id, seen.status, seen.attempt, seen.claim_number


def _number(change: Change) -> object:
    """The claim number that the change leaves."""
    return change.patch.get("claim_number", change.seen.claim_number)


class History(NamedTuple):
    """One transition record, as `status_transitions` keeps it."""

    entity_id: str
    move: Edge
    actor: str
    summary: str
    metadata: Mapping[str, Any]
    at: float


def _history(change: Change, at: float) -> History:
    return History(change.seen.id, change.move, change.actor, change.summary, change.metadata, at)


def record(connection: Connection, entries: Iterable[History]) -> None:
    """Append transition records, in order."""
    rows = [
        (
            ENTITY,
            entry.entity_id,
            entry.move.previous,
            entry.move.status,
            entry.move.reason,
            entry.summary,
            entry.move.source,
            entry.actor,
            "[]",
            _as_json(dict(entry.metadata)),
            entry.at,
        )
        for entry in entries
    ]
    batch.insert(connection, status_transitions, rows, _RECORDED)
