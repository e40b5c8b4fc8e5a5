"""The database of a dispatch outbox as the audit keeps it: three tables, one writer at a time, and what a failure leaves.

A write works on a copy of the tables that takes their place when it is committed. So whoever dies in the middle leaves nothing,
and a transaction that a kill of the server tore away cannot be committed. All writes of a scenario wait for each other, as on
SQLite; on PostgreSQL they do only where they touch the same rows, and where that is not so no scenario tells the difference.

A program is a generator: what it yields is the name of the fault point that it reaches, or None where it waits.
"""

from __future__ import annotations

from audit.books_text import text_of
from audit.books_words import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, Protocol, TypeVar

    T = TypeVar("T")
    Program = Generator[str | None, None, T]
    Row = dict[str, Any]

    class Session(Protocol):
        """Who works on the database; `limited` where the kernel lets it write no more."""

        limited: bool


FORMAT, FORMAT_VERSION = "halt23.dispatch", 1
ENTITY = "dispatch"


class Refused(Exception):
    """The machine or the server refused; nothing was changed. Exit code 16."""


class BadInput(Exception):
    """The program was given what it does not take; nothing was changed. Exit code 2."""


class Tables:
    """Rows by id in the order in which they were written, transitions, and admin events."""

    __slots__ = ("events", "moves", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.moves: list[Row] = []
        self.events: list[Row] = []

    def copy(self) -> Tables:
        """Tables that can be changed without changing these."""
        fresh = Tables()
        fresh.rows = {identity: dict(row) for identity, row in self.rows.items()}
        fresh.moves, fresh.events = list(self.moves), list(self.events)
        return fresh

    def record(
        self,
        identity: str,
        previous: str | None,
        status: str,
        *,
        reason: str,
        actor: str,
        summary: str,
        at: float,
        source: str = SYSTEM,
        metadata: Row | None = None,
    ) -> None:
        """Append a transition."""
        self.moves.append(
            {
                "entity_type": ENTITY,
                "entity_id": identity,
                "previous_status": previous,
                "status": status,
                "reason_code": reason,
                "reason_summary": summary,
                "source": source,
                "actor": actor,
                "evidence_refs": "[]",
                "metadata": text_of(metadata or {}),
                "created_at": at,
            }
        )

    def change(
        self,
        identity: str,
        status: str,
        reason: str,
        *,
        actor: str,
        summary: str,
        at: float,
        source: str = SYSTEM,
        metadata: Row | None = None,
        patch: Row | None = None,
    ) -> None:
        """Move a row to a status, with its transition."""
        row = self.rows[identity]
        previous: str = row["status"]
        row.update(patch or {}, status=status, updated_at=at)
        self.record(
            identity, previous, status, reason=reason, actor=actor, summary=summary, at=at, source=source, metadata=metadata
        )

    def document(self) -> dict[str, Any]:
        """What an export of the tables holds."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "dispatch_outbox": [dict(self.rows[identity]) for identity in sorted(self.rows)],
            "status_transitions": list(self.moves),
            "admin_events": list(self.events),
        }


class Database:
    """One scenario's database."""

    __slots__ = ("_holder", "_kills", "_tables", "made", "up")

    def __init__(self) -> None:
        self._tables = Tables()
        self._holder: Session | None = None
        self._kills = 0
        self.made = False
        self.up = True

    def kill(self) -> None:
        """Its server dies: what is not committed is gone, and who had begun cannot commit."""
        self.up = False
        self._kills += 1
        self._holder = None

    def read(self) -> Tables:
        """The tables as they are committed."""
        if not self.up:
            raise Refused
        return self._tables

    def open(self, session: Session, *, create: bool) -> Program[None]:
        """Open it as each program does, in a transaction of its own that makes the tables or sees that they are there."""
        if not create and not self.made:
            raise BadInput

        def nothing(_tables: Tables) -> Program[None]:
            return
            yield

        yield from self.write(session, nothing)
        self.made = True

    def write(self, session: Session, work: Callable[[Tables], Program[T]]) -> Program[T]:
        """Do some work in one transaction, and commit it."""
        while self._holder is not None:
            yield None
        if not self.up or session.limited:
            raise Refused
        kills, self._holder, tables = self._kills, session, self._tables.copy()
        try:
            answer = yield from work(tables)
        finally:
            if self._holder is session and self._kills == kills:
                self._holder = None
        if self._kills != kills or session.limited:
            raise Refused
        self._tables = tables
        return answer
