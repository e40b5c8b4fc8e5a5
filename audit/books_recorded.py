"""The books *as recorded*, the study's variant with the flaws of the record, followed transaction by transaction.

A failure is written in three transactions (error, status, due time), an outcome is guarded by the status alone, and all times
count from the start of the scan. A row whose last attempt was never finished is sent once more; there is no claim number, and
no attempt beside an error.
"""

from __future__ import annotations

from audit.books_sends import Claim
from audit.books_turn import ACTOR, Turn, consequence
from audit.books_words import ATTEMPT, DEADLINE, DELIVERING, EXPIRED, LEASE_SECONDS, PENDING, backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.books_play import Process
    from audit.books_sends import Result
    from audit.books_tables import Program, Row, Transaction
    from audit.books_turn import Finished, Moved


class RecordedBooks:
    """One turn after the other, as recorded."""

    __slots__ = ("_began_at", "_process")

    def __init__(self, process: Process, began_at: float) -> None:
        self._process, self._began_at = process, began_at

    def turn(self, finished: Finished | None, *, room: bool) -> Program[Turn]:
        """Write the outcome, then claim where there is room."""
        turn = Turn()
        if finished is not None:
            yield from self._finish(*finished, turn)
        if room:
            yield from self._claim(turn)
        return turn

    def _finish(self, claim: Claim, result: Result, turn: Turn) -> Program[None]:
        moved = consequence(claim, result)
        due = {"next_attempt_at": self._began_at + backoff(claim.attempt)}
        if result.error is not None:
            yield from self._set(claim.id, {"last_error": result.error})
            yield "recorded.error.committed"
        patch = due if result.error is None and moved.status == PENDING else {}
        if not (yield from self._ended(claim, moved, patch)):
            turn.counts.append("superseded")
            return
        if result.error is not None and moved.status == PENDING:
            yield "recorded.status.committed"
            yield from self._set(claim.id, due)
        turn.counts.extend(moved.counts)

    def _set(self, identity: str, values: Row) -> Program[None]:
        """One statement in a transaction of its own, guarded by nothing."""

        def work(tables: Transaction) -> Program[None]:
            yield from tables.lock(identity)
            if identity in tables.rows:
                tables.rows[identity].update(values, updated_at=self._began_at)

        yield from self._process.database.write(self._process, work)

    def _ended(self, claim: Claim, moved: Moved, patch: Row) -> Program[bool]:
        """Whether the row was `delivering`, whosever claim that was, and is what the result asks for now."""

        def work(tables: Transaction) -> Program[bool]:
            yield from tables.lock(claim.id)
            row = tables.rows.get(claim.id)
            if row is None or row["status"] != DELIVERING:
                return False
            self._move(tables, claim.id, moved.status, moved.reason, moved.summary, claim.attempt, patch)
            return True

        return (yield from self._process.database.write(self._process, work))

    def _move(  # noqa: PLR0917 (a transition has so many members)
        self, tables: Transaction, identity: str, status: str, reason: str, summary: str, attempt: int, patch: Row
    ) -> None:
        at, metadata = self._began_at, {"attempt": attempt}
        tables.change(identity, status, reason, actor=ACTOR, summary=summary, at=at, metadata=metadata, patch=patch)

    def _claim(self, turn: Turn) -> Program[None]:
        """Look for a row that was due when the scan began, then expire or claim it if it is still as it was."""
        rows = self._process.database.read().rows.values()
        due = [row for row in rows if row["status"] in (PENDING, DELIVERING) and row["next_attempt_at"] <= self._began_at]
        if not due:
            return
        found = dict(min(due, key=lambda row: (row["next_attempt_at"], row["id"])))
        turn.selected = True

        def work(tables: Transaction) -> Program[None]:
            yield from tables.lock(found["id"])
            row = tables.rows.get(found["id"])
            if row is None or (row["status"], row["attempt"]) != (found["status"], found["attempt"]):
                return
            if found["expires_at"] is not None and found["expires_at"] <= self._began_at:
                summary = f"expired at {found['expires_at']}"
                self._move(tables, found["id"], EXPIRED, DEADLINE, summary, found["attempt"], {})
                turn.counts.append("expired")
                return
            attempt, at = found["attempt"] + 1, self._began_at
            patch = {"attempt": attempt, "next_attempt_at": at + LEASE_SECONDS, "claimed_at": at}
            summary = f"attempt {attempt} of {found['max_attempts']}"
            self._move(tables, found["id"], DELIVERING, ATTEMPT, summary, attempt, patch)
            turn.claim = Claim(row, at)

        yield from self._process.database.write(self._process, work)
