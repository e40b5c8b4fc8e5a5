"""Consumers and operators: `ack`, `retry` and `purge` of `python -m outbox.dispatch`, followed edge by edge.

Each reads the row, is refused where the graph has no edge for it, and changes the row in one transaction if it is still as it
was read, once nobody else has it locked. Where it is not, the exit code is 1 and nothing is printed on standard output.
"""

from __future__ import annotations

from audit.books_tables import ENTITY, BadInput
from audit.books_text import Arguments, Unknown, text_of
from audit.books_words import ACKED, CONSUMER, EDGES, OPERATOR, PENDING, RETRY_BACKOFF, SYSTEM
from audit.findings import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.books_play import Process
    from audit.books_tables import Program, Row, Transaction

CHANGED_MEANWHILE = 1
OPTIONS = ("--db", "--now")
KEPT = ("kind", "deliver_to", "dedup_key", "status", "attempt", "max_attempts", "created_at")
"""What the event of a purge keeps of the row."""


class Act:
    """What an operator wants of a row: status and reason, by whom, and what else is set."""

    __slots__ = ("actor", "metadata", "patch", "reason", "source", "status", "summary")

    def __init__(self, status: str, reason: str, actor: str, summary: str, source: str = SYSTEM) -> None:
        self.status, self.reason, self.actor, self.summary, self.source = status, reason, actor, summary, source
        self.patch: Row = {}
        self.metadata: Row = {}


def operate(process: Process, given: list[str]) -> Program[int]:
    """The command that the arguments name."""
    arguments = Arguments(given, OPTIONS, ("--remove-history",))
    command, *words = arguments.rest or [""]
    if (command, len(words)) not in (("ack", 2), ("retry", 1), ("purge", 1)):
        raise Unknown(f"the operator's command {show(' '.join(arguments.rest))} is one that the audit does not follow")
    at = arguments.moment("--now")
    yield from process.database.open(process, create=False)
    if command == "purge":
        return (yield from _purge(process, words[0], at, remove_history=arguments.has("--remove-history")))
    row = process.database.read().rows.get(words[0])
    if row is None:
        raise BadInput
    if command == "ack":
        if not row["ack_required"] or row["ack_token"] != words[1]:
            raise BadInput
        act = Act(ACKED, CONSUMER, "ack_dispatch", "the consumer presented the token")
        return (yield from _change(process, row, act, at, command, "is acknowledged"))
    act = Act(PENDING, RETRY_BACKOFF, OPERATOR, "forced retry", OPERATOR)
    act.patch = {"attempt": 0, "next_attempt_at": at, "last_error": None, "last_error_attempt": None}
    if row["expires_at"] is not None and row["expires_at"] <= at:
        act.patch["expires_at"] = None
        act.metadata = {"expires_at_removed": row["expires_at"]}
    return (yield from _change(process, row, act, at, command, "is pending again"))


def _change(process: Process, row: Row, act: Act, at: float, command: str, words: str) -> Program[int]:  # noqa: PLR0917
    """Change the row if it is still as it was read."""
    if (row["status"], act.status, act.reason, act.source) not in EDGES:
        raise BadInput
    guard = seen(row)

    def work(tables: Transaction) -> Program[bool]:
        yield from tables.lock(row["id"])
        now = tables.rows.get(row["id"])
        if now is None or seen(now) != guard:
            return False
        tables.change(
            row["id"], act.status, act.reason, actor=act.actor, summary=act.summary, at=at, source=act.source,
            metadata=act.metadata, patch=act.patch,
        )  # fmt: skip
        yield f"dispatch.{command}.written"
        return True

    yield f"dispatch.{command}.before"
    done = yield from process.database.write(process, work)
    yield f"dispatch.{command}.committed"
    return _told(process, done, f"{row['id']} {words}")


def seen(row: Row) -> tuple[str, int, int]:
    """What guards a change of a row."""
    return row["status"], row["attempt"], row["claim_number"]


def _purge(process: Process, identity: str, at: float, *, remove_history: bool) -> Program[int]:
    def work(tables: Transaction) -> Program[bool]:
        yield from tables.lock(identity)
        row = tables.rows.pop(identity, None)
        if row is None:
            return False
        if remove_history:
            tables.forget(identity)
        details = {**{name: row[name] for name in KEPT}, "history": "removed" if remove_history else "kept"}
        tables.events.append(
            {
                "action": "dispatch.purge",
                "entity_type": ENTITY,
                "entity_id": identity,
                "actor": OPERATOR,
                "details": text_of(details, ", ", ": "),
                "created_at": at,
            }
        )
        yield "dispatch.purge.written"
        return True

    yield "dispatch.purge.before"
    done = yield from process.database.write(process, work)
    yield "dispatch.purge.committed"
    return _told(process, done, f"{identity} is purged")


def _told(process: Process, done: bool, sentence: str) -> int:
    if done:
        process.say(sentence)
    return 0 if done else CHANGED_MEANWHILE
