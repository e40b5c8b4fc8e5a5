"""One scan of a dispatch outbox, followed turn by turn: claim what is due, send it, write what came of it.

A scan of the study has one send at a time. Each turn at the books writes the outcome that has come in and claims the next row,
in one transaction; between two turns the claim is sent (`books_sends`). An outcome waits for whoever has its row locked, a
claim passes over such rows. Where the database refuses, nothing more is claimed, and the outcome in hand is tried once more.
The books as recorded are another implementation of a turn (`books_recorded`).
"""

from __future__ import annotations

from audit.books_recorded import RecordedBooks
from audit.books_sends import Claim, route_of
from audit.books_tables import Refused
from audit.books_text import Arguments, Unknown, text_of
from audit.books_turn import ACTOR, Turn, consequence
from audit.books_words import (
    ATTEMPT,
    DEAD_LETTER,
    DEADLINE,
    DELIVERING,
    EXPIRED,
    LEASE_SECONDS,
    MAX_ATTEMPTS,
    PENDING,
    backoff,
)
from audit.findings import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from audit.books_play import Process
    from audit.books_sends import Result
    from audit.books_tables import Program, Row, Transaction
    from audit.books_turn import Finished

RECORDED = "recorded"
COUNTERS = ("attempted", "delivered", "dead_letter", "expired", "retried", "superseded")


def scan(process: Process, given: list[str]) -> Program[int]:
    """Make one scan and print its counters."""
    options = ("--db", "--now", "--clock", "--receiver", "--courier", "--books")
    arguments = Arguments(given, options, ("--careless",))
    books = arguments.get("--books")
    if books not in (None, RECORDED) or arguments.rest:
        raise Unknown(f"the scan {show(' '.join(given))} is one that the audit does not follow")
    yield from process.database.open(process, create=True)
    clock = _clock(process, arguments)
    route = route_of(arguments)
    began_at = clock()
    chosen = RecordedBooks(process, began_at) if books else GuardedBooks(process, began_at, clock)
    counts = dict.fromkeys(COUNTERS, 0)
    finished: Finished | None = None
    while True:
        turn = yield from _at_the_books(chosen, finished)
        for name in turn.counts:
            counts[name] += 1
        counts["attempted"] += turn.selected
        finished = None
        if turn.claim is not None:
            clock()  # a send asks for the time as well, and time never goes back
            finished = turn.claim, (yield from route(process, turn.claim))
        elif not turn.selected:
            break
    process.say(text_of(counts, ", ", ": "))
    return 0


def _clock(process: Process, arguments: Arguments) -> Callable[[], float]:
    """The time as the scan reads it, which never goes back."""
    path = arguments.get("--clock")
    if path is None:
        now = arguments.moment("--now")
        return lambda: now
    latest = process.time_in(path)

    def read() -> float:
        nonlocal latest
        latest = max(latest, process.time_in(path))
        return latest

    return read


def _at_the_books(books: GuardedBooks | RecordedBooks, finished: Finished | None) -> Program[Turn]:
    """One turn; after a refusal the outcome in hand is tried once more, and the scan ends."""
    try:
        if finished is not None:
            yield "dispatch.outcome.before"
        yield "dispatch.claim.before"
        turn = yield from books.turn(finished, room=True)
    except Refused:
        if finished is not None:
            yield "dispatch.outcome.before"
            yield from books.turn(finished, room=False)
            yield "dispatch.outcome.committed"
        raise
    if finished is not None:
        yield "dispatch.outcome.committed"
    if turn.claim is not None:
        yield "dispatch.claim.committed"
    return turn


class GuardedBooks:
    """The default: outcome and claim in one transaction, guarded by status, attempt and claim number."""

    __slots__ = ("_began_at", "_clock", "_process")

    def __init__(self, process: Process, began_at: float, clock: Callable[[], float]) -> None:
        self._process, self._began_at, self._clock = process, began_at, clock

    def turn(self, finished: Finished | None, *, room: bool) -> Program[Turn]:
        """Write the outcome, and claim where there is room."""

        def work(tables: Transaction) -> Program[Turn]:
            turn, at = Turn(), self._clock()
            if finished is not None:
                yield from tables.lock(finished[0].id)
                _settle(tables, *finished, at, turn)
                yield "dispatch.outcome.written"
            if room:
                tables.look()
                _claim(tables, self._began_at, at, turn)
                yield "dispatch.claim.written"
            return turn

        return (yield from self._process.database.write(self._process, work))


def _settle(tables: Transaction, claim: Claim, result: Result, at: float, turn: Turn) -> None:
    row = tables.rows.get(claim.id)
    if row is None or (row["status"], row["attempt"], row["claim_number"]) != (DELIVERING, claim.attempt, claim.number):
        turn.counts.append("superseded")
        return
    moved = consequence(claim, result)
    patch: Row = {}
    if moved.status == PENDING:
        patch["next_attempt_at"] = claim.at + backoff(claim.attempt)
    if result.error is not None:
        patch.update(last_error=result.error, last_error_attempt=claim.attempt)
    metadata = {"attempt": claim.attempt, "claim_number": claim.number, "outcome": result.outcome}
    tables.change(
        claim.id, moved.status, moved.reason, actor=ACTOR, summary=moved.summary, at=at, metadata=metadata, patch=patch
    )
    turn.counts.extend(moved.counts)


def _claim(tables: Transaction, due_until: float, at: float, turn: Turn) -> None:
    """Take the first row that is due and that nobody has locked: what a dead claimant left before what is pending."""
    due = [row for row in tables.rows.values() if row["next_attempt_at"] <= due_until and _is_first(tables, row)]
    due = [row for row in due if tables.is_free(row["id"])]
    due.sort(key=lambda row: row["next_attempt_at"])
    row = next((row for status in (DELIVERING, PENDING) for row in due if row["status"] == status), None)
    if row is None:
        return
    turn.selected = True
    identity = row["id"]
    tables.mine[identity] = None
    if row["expires_at"] is not None and row["expires_at"] <= at:
        tables.change(identity, EXPIRED, DEADLINE, actor=ACTOR, summary=f"expired at {row['expires_at']}", at=at)
        turn.counts.append("expired")
    elif row["status"] == DELIVERING and row["attempt"] >= row["max_attempts"]:
        attempt = row["attempt"]
        error = f"attempt {attempt} of {row['max_attempts']} was begun and never finished; its outcome is not known"
        patch = {"last_error": error, "last_error_attempt": attempt}
        tables.change(identity, DEAD_LETTER, MAX_ATTEMPTS, actor=ACTOR, summary=error, at=at, patch=patch)
        turn.counts.append("dead_letter")
    else:
        attempt, number = row["attempt"] + 1, row["claim_number"] + 1
        patch = {"attempt": attempt, "claim_number": number, "claimed_at": at, "next_attempt_at": at + LEASE_SECONDS}
        metadata = {"attempt": attempt, "claim_number": number}
        summary = f"attempt {attempt} of {row['max_attempts']}"
        tables.change(identity, DELIVERING, ATTEMPT, actor=ACTOR, summary=summary, at=at, metadata=metadata, patch=patch)
        turn.claim = Claim(row, at)


def _is_first(tables: Transaction, row: Row) -> bool:
    """Whether no earlier row of its lane is unfinished."""
    if row["lane"] is None:
        return True
    active = [each for each in tables.rows.values() if each["lane"] == row["lane"] and each["status"] in (PENDING, DELIVERING)]
    return all(each["lane_position"] >= row["lane_position"] for each in active)
