"""A journal that only tests write: two record types, all fault points, and its bytes made without our writer's help."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outbox import journal

NOTES = journal.declare("notes", "note", "other")
DIARY = journal.declare("diary", "note", under_study=False)
OBSERVED = journal.declare("observed", "note", under_study=False, synced=False)

Entry = tuple[str, str, dict[str, Any]]


def entries(count: int) -> list[Entry]:
    """That many plain records."""
    return [("note", f"n-{number}", {"number": number, "text": "grün \u20ac"}) for number in range(1, count + 1)]


def write(directory: Path, count: int = 3) -> list[bytes]:
    """A journal of plain records, written through the public door; returns its lines with their newlines."""
    with NOTES.open(directory) as notes:
        for entry in entries(count)[len(notes) :]:
            notes.append(*entry)
    return NOTES.path(directory).read_bytes().splitlines(keepends=True)


def forge(items: Sequence[Any], name: str = "notes") -> bytes:
    """A chain of records whose sums are right, whatever they hold: each item is the text behind the member `sequence`."""
    content, previous = [], hashlib.sha256(f"halt23 journal 1 {name}".encode()).hexdigest()
    for sequence, item in enumerate(items, 1):
        covered = f'"previous":"{previous}","sequence":{sequence},{item}}}'.encode("ascii")
        previous = hashlib.sha256(covered).hexdigest()
        content.append(b'{"sha256":"' + previous.encode() + b'",' + covered + b"\n")
    return b"".join(content)


def members(record_type: Any, record_id: Any, data: Any) -> str:
    """The text behind `sequence` for `forge`."""
    text = json.dumps({"type": record_type, "id": record_id, "data": data}, separators=(",", ":"))
    return text[1:-1]


def read_all(directory: Path) -> list[Entry]:
    """What a reader gets."""
    return [(record.type, record.id, dict(record.data)) for record in NOTES.read(directory)]


def open_and_read(directory: Path) -> list[Entry]:
    """Own the journal once, as a restart does, then read it."""
    NOTES.open(directory).close()
    return read_all(directory)
