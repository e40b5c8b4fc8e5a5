"""Counting what a scenario's journals hold. The audit counts again, by its own reading."""

from collections.abc import Iterator
from pathlib import Path

from outbox.journal import JournalSpec, Record
from outbox.workflow import ATTEMPTS, HISTORY, INTENTIONS, RECEIPTS
from receivers.arrivals import ARRIVALS
from receivers.keys import KEYS
from receivers.ledger import EFFECTS
from scenarios.client import REQUESTS
from scenarios.model import Counts
from scenarios.prefixes import PREFIXES
from scenarios.relay import EXCHANGES

CHECKPOINTS = "checkpoints"
SPECS = (INTENTIONS, ATTEMPTS, RECEIPTS, HISTORY, EFFECTS, KEYS, ARRIVALS, REQUESTS, EXCHANGES, PREFIXES)


def journals(directory: Path) -> list[Path]:
    """The journal files below `directory`, checkpoints left out, in a fixed order."""
    return sorted(path for path in directory.rglob("*.jsonl") if CHECKPOINTS not in path.relative_to(directory).parts)


def count(directory: Path) -> Counts:
    """E, R, H and A below `directory`. A history record counts where its receipt is. Raises DamagedJournal."""
    receipts = {record.id for record in _records(directory, RECEIPTS, "receipt")}
    return Counts(
        effects=sum(1 for _ in _records(directory, EFFECTS, "effect")),
        receipts=len(receipts),
        history=sum(record.id in receipts for record in _records(directory, HISTORY, "history")),
        arrivals=sum(1 for _ in _records(directory, ARRIVALS, "arrival")),
    )


def count_records(directory: Path) -> int:
    """How many complete records all journals below `directory` hold together."""
    return sum(1 for spec in SPECS for _ in _records(directory, spec, None))


def _records(directory: Path, spec: JournalSpec, record_type: str | None) -> Iterator[Record]:
    for path in journals(directory):
        if path.name == spec.path(path.parent).name:
            for record in spec.read(path.parent):
                if record_type in (None, record.type):
                    yield record
