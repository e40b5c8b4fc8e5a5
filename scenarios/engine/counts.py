"""Counting what a scenario's journals, and the exports of its tables, hold. The audit counts again, by its own reading."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from outbox.dispatch.backoff import backoff_seconds
from outbox.dispatch.edges import (
    ACK_TIMEOUT,
    ATTEMPT,
    MAX_ATTEMPTS,
    PENDING,
    RETRY_BACKOFF,
    STATUSES,
    SYSTEM,
    TRANSPORT_OK,
)
from outbox.journal import JournalSpec, Record
from outbox.workflow import ATTEMPTS, HISTORY, INTENTIONS, RECEIPTS
from receivers.arrivals import ARRIVALS
from receivers.keys import KEYS
from receivers.ledger import EFFECTS
from scenarios.client import REQUESTS
from scenarios.engine.exports import EXPORTS
from scenarios.model import Counts, Rows
from scenarios.prefixes import PREFIXES
from scenarios.relay import EXCHANGES

CHECKPOINTS = "checkpoints"
LAST_EXPORT = "end"
# A recorded success: the receipt of a dispatch.
_RECEIPTS = (TRANSPORT_OK, ACK_TIMEOUT)
SPECS = (INTENTIONS, ATTEMPTS, RECEIPTS, HISTORY, EFFECTS, KEYS, ARRIVALS, REQUESTS, EXCHANGES, PREFIXES)


def journals(directory: Path) -> list[Path]:
    """The journal files below `directory`, checkpoints left out, in a fixed order."""
    return sorted(path for path in directory.rglob("*.jsonl") if CHECKPOINTS not in path.relative_to(directory).parts)


def count(directory: Path) -> Counts:
    """E, R, H and A below `directory`. A history record counts where its receipt is. Raises DamagedJournal.

    Of a dispatch outbox the transitions are the history, and those that record a success its receipts.
    """
    found = journals(directory)
    receipts = {record.id for record in _records(found, RECEIPTS, "receipt")}
    moves = _transitions(directory / EXPORTS / f"{LAST_EXPORT}.json")
    return Counts(
        effects=sum(1 for _ in _records(found, EFFECTS, "effect")),
        receipts=len(receipts) + sum(move["reason_code"] in _RECEIPTS for move in moves),
        history=sum(record.id in receipts for record in _records(found, HISTORY, "history")) + len(moves),
        arrivals=sum(1 for _ in _records(found, ARRIVALS, "arrival")),
    )


def count_rows(path: Path) -> Rows:
    """What the export at `path` holds."""
    tables = json.loads(path.read_text("ascii"))
    statuses = Counter(row["status"] for row in tables["dispatch_outbox"])
    attempts = sum(move["reason_code"] == ATTEMPT for move in tables["status_transitions"])
    return Rows(
        **{status: statuses[status] for status in STATUSES},
        attempts=attempts,
        events=len(tables["admin_events"]),
        stale=sum(_is_stale(row, tables["status_transitions"]) for row in tables["dispatch_outbox"]),
    )


def _is_stale(row: Mapping[str, Any], moves: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the row carries an error that no transition tells of, or is due before its backoff is over."""
    reasons = [move["reason_code"] for move in moves if move["entity_id"] == row["id"] and move["source"] == SYSTEM]
    unexplained = row["last_error"] is not None and not set(reasons) & {RETRY_BACKOFF, MAX_ATTEMPTS}
    backed_off = row["status"] == PENDING and reasons[-1] == RETRY_BACKOFF and row["attempt"] > 0
    return unexplained or (backed_off and row["next_attempt_at"] < row["claimed_at"] + backoff_seconds(row["attempt"]))


def _transitions(path: Path) -> list[dict[str, Any]]:
    moves: list[dict[str, Any]] = json.loads(path.read_text("ascii"))["status_transitions"] if path.exists() else []
    return moves


def count_records(directory: Path) -> int:
    """How many complete records all journals below `directory` hold together."""
    found = journals(directory)
    return sum(1 for spec in SPECS for _ in _records(found, spec, None))


def _records(found: Sequence[Path], spec: JournalSpec, record_type: str | None) -> Iterator[Record]:
    for path in found:
        if path.name == spec.path(path.parent).name:
            for record in spec.read(path.parent):
                if record_type in (None, record.type):
                    yield record
