"""The database of a dispatch outbox as the audit keeps it: three tables, who may write when, and what a failure leaves.

A transaction works on a view of its own; what it changed takes its place when it is committed. So whoever dies in the middle
leaves nothing, and a transaction that a kill of the server tore away cannot be committed. On SQLite there is one writer at a
time. On PostgreSQL writers wait only for rows that another one has locked, and then see the row as it was left; a row or a key
that is being inserted is waited for in the same way.

A program is a generator: what it yields is the name of the fault point that it reaches, or None where it waits.
"""

from __future__ import annotations

from itertools import count

from audit.books_text import text_of
from audit.books_words import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
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
    """Rows by id in the order in which they were written, numbered transitions, and admin events."""

    __slots__ = ("_numbers", "events", "moves", "rows")

    def __init__(self, numbers: Iterator[int]) -> None:
        self.rows: dict[str, Row] = {}
        self.moves: list[tuple[int, Row]] = []
        self.events: list[Row] = []
        self._numbers = numbers

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
        """Append a transition; its number is taken now, whenever it is committed."""
        move = {
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
        self.moves.append((next(self._numbers), move))

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
            "status_transitions": [move for _number, move in self.moves],
            "admin_events": list(self.events),
        }


class Transaction(Tables):
    """What one writer sees: the rows as they are committed, its own as it made them; transitions and events are its own."""

    __slots__ = ("_database", "dead", "forgotten", "mine")

    def __init__(self, database: Database, numbers: Iterator[int]) -> None:
        super().__init__(numbers)
        self._database = database
        self.dead = False
        self.mine: dict[str, None] = {}
        self.forgotten: set[str] = set()
        self.look()

    def look(self) -> None:
        """See what others have committed; each statement of a database does so, and none is answered by a server that died."""
        if self.dead:
            raise Refused
        seen: dict[str, Row] = {}
        for identity, row in self._database.read().rows.items():
            if identity not in self.mine:
                seen[identity] = dict(row)
            elif identity in self.rows:
                seen[identity] = self.rows[identity]
        seen.update({identity: self.rows[identity] for identity in self.mine if identity in self.rows})
        self.rows = seen

    def is_free(self, name: str) -> bool:
        """Whether nobody else has a lock of that name: the id of a row, or of something that only locks know."""
        return not any(name in other.mine for other in self._database.others(self))

    def lock(self, name: str) -> Program[None]:
        """Wait until nobody else has the lock, see what the others left, and have it until the end."""
        while not self.is_free(name):
            yield None
        self.look()
        self.mine[name] = None

    def insert(self, row: Row) -> Program[bool]:
        """Write a new row; False where its deduplication key is taken. Who writes or removes such a row is waited for."""
        while any(other.decides_on(row) for other in self._database.others(self)):
            yield None
        self.look()
        if any(_same_key(row, each) for each in self.rows.values()):
            return False
        if row["id"] in self.rows:
            raise BadInput
        self.rows[row["id"]] = row
        self.mine[row["id"]] = None
        return True

    def decides_on(self, row: Row) -> bool:
        """Whether it depends on this transaction if there is a row of that id or key."""
        committed = self._database.read().rows
        versions = [(committed.get(identity), self.rows.get(identity)) for identity in self.mine]
        changed = [before or after for before, after in versions if (before is None) != (after is None)]
        return any(each is not None and (each["id"] == row["id"] or _same_key(row, each)) for each in changed)

    def forget(self, identity: str) -> None:
        """Remove the transitions of a dispatch."""
        self.forgotten.add(identity)


def _same_key(one: Row, other: Row) -> bool:
    return one["dedup_key"] is not None and one["dedup_key"] == other["dedup_key"]


class Database:
    """One scenario's database; `shared` where several may write at a time."""

    __slots__ = ("_numbers", "_open", "_shared", "_tables", "made", "up")

    def __init__(self, *, shared: bool) -> None:
        self._numbers = count()
        self._tables = Tables(self._numbers)
        self._open: list[Transaction] = []
        self._shared = shared
        self.made = False
        self.up = True

    def kill(self) -> None:
        """Its server dies: what is not committed is gone, and who had begun cannot commit."""
        self.up = False
        for each in self._open:
            each.dead = True
        self._open.clear()

    def read(self) -> Tables:
        """The tables as they are committed."""
        if not self.up:
            raise Refused
        return self._tables

    def others(self, mine: Transaction) -> list[Transaction]:
        """Who else has begun to write."""
        return [each for each in self._open if each is not mine]

    def open(self, session: Session, *, create: bool) -> Program[None]:
        """Open it as each program does, in a transaction of its own that makes the tables or sees that they are there."""
        if not create and not self.made:
            raise BadInput

        def nothing(_tables: Transaction) -> Program[None]:
            return
            yield

        yield from self.write(session, nothing)
        self.made = True

    def write(self, session: Session, work: Callable[[Transaction], Program[T]]) -> Program[T]:
        """Do some work in one transaction, and commit it."""
        while self._open and not self._shared:
            yield None
        if not self.up or session.limited:
            raise Refused
        tables = Transaction(self, self._numbers)
        self._open.append(tables)
        try:
            answer = yield from work(tables)
            if session.limited:
                raise Refused
            self._commit(tables)
        finally:
            self._open = self.others(tables)
        return answer

    def _commit(self, done: Transaction) -> None:
        done.look()
        fresh = Tables(self._numbers)
        fresh.rows = done.rows
        kept = [each for each in self._tables.moves if each[1]["entity_id"] not in done.forgotten]
        fresh.moves = sorted([*kept, *done.moves], key=lambda each: each[0])
        fresh.events = [*self._tables.events, *done.events]
        self._tables = fresh
