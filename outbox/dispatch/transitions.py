"""The one place where a dispatch changes its status: guarded, along an edge of the graph, with its history record.

A `Change` names the row as its author saw it: status, attempt and claim number. `apply` locks the rows, compares, writes those
that are still so, and a transition record for each, in the caller's transaction: all of it happens or none. Whoever was
overtaken changes nothing and is told (its row is not in the answer).
"""

import functools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Update, bindparam, insert, select, update

from outbox.dispatch.edges import Edge, edge
from outbox.dispatch.schema import dispatch_outbox, status_transitions

ENTITY = "dispatch"
_GUARDS = ("id", "status", "attempt", "claim_number")
# Locked in the order of the ids, so that two groups that meet wait for each other and never both.
_AS_THEY_ARE = (
    select(*(dispatch_outbox.c[name] for name in _GUARDS))
    .where(dispatch_outbox.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(dispatch_outbox.c.id)
    .with_for_update()
)
_APPEND = insert(status_transitions)


@dataclass(frozen=True, slots=True)
class Seen:
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
        edge(self.seen.status, self.status, self.reason, self.source)


def apply(connection: Connection, changes: Sequence[Change], at: float) -> frozenset[Seen]:
    """Apply those changes whose rows are still as they were seen, and return these rows. `at` becomes their time."""
    if not changes:
        return frozenset()
    rows = connection.execute(_AS_THEY_ARE, {"ids": [change.seen.id for change in changes]})
    now_so = {Seen(*row) for row in rows}
    applied = [change for change in changes if change.seen in now_so]
    write(connection, applied, at)
    return frozenset(change.seen for change in applied)


def write(connection: Connection, changes: Sequence[Change], at: float) -> None:
    """Write changes of rows that this transaction has read and locked."""
    alike: defaultdict[tuple[str, ...], list[Change]] = defaultdict(list)
    for change in changes:
        alike[tuple(sorted(change.patch))].append(change)
    for columns, group in alike.items():
        _update(connection, columns, group, at)
    record(connection, [_history(change, at) for change in changes])


def _update(connection: Connection, columns: tuple[str, ...], changes: Sequence[Change], at: float) -> None:
    """One statement for all changes that set the same columns."""
    parameters = [
        {
            **{f"seen_{name}": getattr(change.seen, name) for name in _GUARDS},
            "new_status": change.status,
            "new_updated_at": at,
            **{f"new_{name}": change.patch[name] for name in columns},
        }
        for change in changes
    ]
    written = connection.execute(_setting(columns), parameters).rowcount
    assert written == len(changes), f"{written} rows of {len(changes)} locked ones were written"


@functools.cache
def _setting(columns: tuple[str, ...]) -> Update:
    return (
        update(dispatch_outbox)
        .where(*(dispatch_outbox.c[name] == bindparam(f"seen_{name}") for name in _GUARDS))
        .values({name: bindparam(f"new_{name}") for name in ("status", "updated_at", *columns)})
    )


@dataclass(frozen=True, slots=True)
class History:
    """One transition record, as `status_transitions` keeps it."""

    entity_id: str
    move: Edge
    actor: str
    summary: str
    metadata: Mapping[str, Any]
    at: float


def _history(change: Change, at: float) -> History:
    move = Edge(change.seen.status, change.status, change.reason, change.source)
    return History(change.seen.id, move, change.actor, change.summary, change.metadata, at)


def record(connection: Connection, entries: Iterable[History]) -> None:
    """Append transition records, in order."""
    rows = [
        {
            "entity_type": ENTITY,
            "entity_id": entry.entity_id,
            "previous_status": entry.move.previous,
            "status": entry.move.status,
            "reason_code": entry.move.reason,
            "reason_summary": entry.summary,
            "source": entry.move.source,
            "actor": entry.actor,
            "evidence_refs": "[]",
            "metadata": json.dumps(dict(entry.metadata), ensure_ascii=False, separators=(",", ":"), allow_nan=False),
            "created_at": entry.at,
        }
        for entry in entries
    ]
    if rows:
        connection.execute(_APPEND, rows)
