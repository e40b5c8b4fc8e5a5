"""The tables of a dispatch outbox as the replay finds them: what is in the books by now, row by row.

The transitions and admin events stand in the last export, in the order in which they were written; the replay moves a cursor
over each, as over a journal. What a row looks like in between follows from the transitions so far: its status, attempt and
claim, and by the outbox's rules the moment at which it is due. Each export in between is held against that (`differences`).
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from outbox.dispatch.backoff import backoff_seconds
from outbox.dispatch.claim import CLAIM_LEASE_SECONDS
from outbox.dispatch.edges import (
    ACK_TIMEOUT,
    ACTIVE,
    ATTEMPT,
    CONSUMER,
    DELIVERED,
    DELIVERING,
    ENQUEUED,
    OPERATOR,
    RETRY_BACKOFF,
    TRANSPORT_OK,
)
from scenarios.engine.counts import LAST_EXPORT
from scenarios.report.facts import ExportFile, Line, ScenarioEvidence
from scenarios.report.shelf import Cursor
from scenarios.report.words import counted, label, number_of, plain, text_of

MAX_ATTEMPT = 10_000  # what no backoff was ever computed for is not computed here


@dataclass(frozen=True, slots=True)
class Entry:
    """One transition, as far as it says what a transition says."""

    line: Line
    identity: str
    previous: str
    status: str
    reason: str
    by_operator: bool
    attempt: int | None
    claim: int | None
    at: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One row at a moment. `due` is when it is due, a lease's end while it is delivering; None where that is not known."""

    identity: str
    status: str
    attempt: int = 0
    claim: int = 0
    due: float | None = None
    claimed_at: float | None = None


def entry(line: Line) -> Entry:
    """What a line of `status_transitions` says."""
    data = line.data
    told = metadata(data)
    return Entry(
        line,
        text_of(data, "entity_id"),
        text_of(data, "previous_status"),
        text_of(data, "status"),
        text_of(data, "reason_code"),
        text_of(data, "source") == OPERATOR,
        number_of(told, "attempt"),
        number_of(told, "claim_number"),
        _moment(data.get("created_at")),
    )


def metadata(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of a transition, or nothing."""
    try:
        value = json.loads(text_of(data, "metadata"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _moment(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12 else None


def moment(text: str) -> float | None:
    """A time as a command line or a file has it."""
    try:
        return _moment(float(text))
    except ValueError:
        return None


def clock(value: float | None) -> str:
    """A time on the scenario's clock as it is shown."""
    return "?" if value is None else str(int(value)) if value == int(value) else f"{value:.3f}"


def short(identity: str) -> str:
    """The end of an id, where ids differ."""
    return label(identity, 8) if len(identity) <= 8 else f"…{label(identity[-4:], 8)}"


def worded(status: str) -> str:
    """A status in words."""
    return label(status.replace("_", " "), 20)


class Books:
    """See the module."""

    def __init__(self, scenario: ScenarioEvidence) -> None:
        end = scenario.exports.get(LAST_EXPORT)
        path = end.path if end else f"exports/{LAST_EXPORT}.json"
        self.path, self.there = path, end is not None
        self.transitions = Cursor(f"{path}:status_transitions", end.transitions if end else ())
        self.events = Cursor(f"{path}:admin_events", end.events if end else ())
        self.rows: dict[str, Row] = {}
        self.keys: dict[str, str] = {}  # deduplication key to the id of its row
        self.attempts = 0
        self.receipts: set[str] = set()  # ids of which a success is in the books
        self._many = len({text_of(line.data, "entity_id") for line in (end.transitions if end else ())}) > 1

    @property
    def cursors(self) -> tuple[Cursor, Cursor]:
        """What stands in the last export and must be placed."""
        return self.transitions, self.events

    def of(self, identity: str) -> str:
        """` of …0002`, where there is more than one."""
        return f" of {short(identity)}" if self._many else ""

    def name(self, identity: str) -> str:
        """`…0002`, where there is more than one."""
        return short(identity) if self._many else ""

    def next(self) -> Entry | None:
        """The transition that is written next."""
        line = self.transitions.peek()
        return None if line is None else entry(line)

    def post(self, given: Entry, *, due_later: bool = False) -> Row:
        """Place the next transition, and return its row as that leaves it; `due_later`: its due time is written after it."""
        self.transitions.take()
        before = self.rows.get(given.identity) or Row(given.identity, given.previous)
        row = replace(before, status=given.status)
        if given.reason == ENQUEUED:
            row = Row(given.identity, given.status, due=given.at)
        elif given.reason == ATTEMPT:
            due = None if given.at is None else given.at + CLAIM_LEASE_SECONDS
            number = before.claim if given.claim is None else given.claim
            row = Row(given.identity, given.status, given.attempt or before.attempt + 1, number, due, given.at)
            self.attempts += 1
        elif given.by_operator:
            row = replace(row, attempt=0, due=given.at)
        elif given.reason in (RETRY_BACKOFF, TRANSPORT_OK) and given.status != DELIVERED and not due_later:
            row = replace(row, due=backed_off(before.claimed_at, given.attempt or before.attempt))
        self.rows[given.identity] = row
        if given.reason in (TRANSPORT_OK, ACK_TIMEOUT, CONSUMER):
            self.receipts.add(given.identity)
        return row

    def set_due(self, identity: str, due: float | None) -> None:
        """The due time that stands in a row, where it is written by itself."""
        if identity in self.rows:
            self.rows[identity] = replace(self.rows[identity], due=due)

    def purge(self, identity: str) -> None:
        """The row is gone, and its key is free."""
        self.rows.pop(identity, None)
        self.keys = {key: each for key, each in self.keys.items() if each != identity}

    def holds(self, identity: str, attempt: int, claim: int | None) -> bool:
        """Whether this attempt is still the one that the row is in, as a guarded outcome asks; None: by the status alone."""
        row = self.rows.get(identity)
        if row is None or row.status != DELIVERING:
            return False
        return claim is None or (row.attempt, row.claim) == (attempt, claim)

    def differences(self, export: ExportFile) -> list[str]:
        """What an export has otherwise than these books at this moment."""
        found = []
        placed = [line.data for line in self.transitions.placed()]
        if [line.data for line in export.transitions] != placed:
            found.append(f"{counted(len(export.transitions), 'transition')} there, {len(placed)} placed by now")
        if [line.data for line in export.events] != [line.data for line in self.events.placed()]:
            found.append("other admin events")
        rows = {line.id: line.data for line in export.rows}
        for identity in sorted(rows.keys() ^ self.rows.keys()):
            found.append(f"row {short(identity)} is {'there' if identity in rows else 'not there'}")
        for identity in sorted(rows.keys() & self.rows.keys()):
            wrong = self._differs(rows[identity], self.rows[identity])
            if wrong:
                found.append(f"row {short(identity)} has another {', '.join(wrong)}")
        return found

    def _differs(self, data: Mapping[str, Any], row: Row) -> list[str]:
        pairs: dict[str, tuple[object, object]] = {
            "status": (text_of(data, "status"), row.status),
            "attempt": (number_of(data, "attempt"), row.attempt),
            "claim_number": (number_of(data, "claim_number"), row.claim),
        }
        if row.status in ACTIVE and row.due is not None:
            pairs["next_attempt_at"] = (_moment(data.get("next_attempt_at")), row.due)
        return [name for name, (there, here) in pairs.items() if there != here]

    def told(self) -> str:
        """The rows by status, in words."""
        statuses = Counter(row.status for row in self.rows.values())
        told = [f"{number} {worded(plain(status, 20))}" for status, number in sorted(statuses.items())]
        if len(self.events):
            told.append(counted(len(self.events), "event"))
        return ", ".join(told) or "none"


def backed_off(claimed_at: float | None, attempt: int) -> float | None:
    """When a row is due again after an attempt that was claimed then."""
    if claimed_at is None or not 0 < attempt < MAX_ATTEMPT:
        return None
    return claimed_at + backoff_seconds(attempt)
