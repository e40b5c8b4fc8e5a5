"""Journals: every line against its checksum, its chain, its one canonical form and the shape of its record.

`read` streams a file and returns the records that could be understood, also those with a finding against them, so that
later checks can say what else is wrong. A last line without its newline is kept apart as a torn tail; whether it may be
there is for the check of the faults to say. What records mean to each other is for the checks as well.
"""

from __future__ import annotations

from audit.files import Unreadable
from audit.findings import plain, show
from audit.hashing import digest
from audit.records import SHAPES, shape_of
from audit.shapes import OBJECT, POSITIVE, SHA, Kind, holds, one_of
from audit.strict_json import Malformed, encode, likely, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.files import Tree
    from audit.findings import Note
    from audit.shapes import Shape

IDENTIFIER = Kind(
    "1 to 300 printable ASCII characters",
    lambda value: type(value) is str and 0 < len(value) <= 300 and value.isascii() and value.isprintable(),
)
LINES: dict[str, Shape] = {
    name: {
        "sha256": SHA, "previous": SHA, "sequence": POSITIVE, "type": one_of(*types), "id": IDENTIFIER, "data": OBJECT,
    }
    for name, types in SHAPES.items()
}  # fmt: skip

MOST_DAMAGED_LINES = 1000
OPENING = b'{"sha256":"'
CHECKSUM_END = len(OPENING) + 64


class Record:
    """One record of a journal and the line that it stands on."""

    __slots__ = ("data", "id", "line", "place", "span", "type")

    def __init__(self, place: str, line: int, kind: str, identifier: str, data: dict[str, Any]) -> None:
        self.place = place
        self.line = line
        self.type = kind
        self.id = identifier
        self.data = data
        self.span: tuple[int, int] | None = None


class Journal:
    """The records of one journal; `ends` are the offsets at which complete lines end, `tail` is a torn last line."""

    __slots__ = ("_seen", "ends", "name", "path", "records", "tail", "timed")

    def __init__(self, path: str, name: str, timed: bool = False) -> None:
        self.path = path
        self.name = name
        self.timed = timed
        self.records: list[Record] = []
        self.ends: list[int] = []
        self.tail = b""
        self._seen: set[tuple[str, str]] = set()

    def once(self, kind: str, identifier: str) -> bool:
        """Whether this is the first record with that type and id."""
        new = (kind, identifier) not in self._seen
        self._seen.add((kind, identifier))
        return new

    def of(self, kind: str) -> list[Record]:
        """The records of one type, in order."""
        return [record for record in self.records if record.type == kind]

    def by_id(self, kind: str) -> dict[str, Record]:
        """The records of one type by their id; the first where an id stands twice."""
        found: dict[str, Record] = {}
        for record in self.records:
            if record.type == kind:
                found.setdefault(record.id, record)
        return found


def read(tree: Tree, path: str, name: str, note: Note, timed: bool = False) -> Journal:
    """The journal at a path of the archive; whatever is wrong with a line is noted with its number."""
    journal = Journal(path, name, timed)
    previous = digest(f"halt23 journal 1 {name}".encode("ascii"))
    end = 0
    try:
        for line, complete in tree.lines(path):
            if not complete:
                journal.tail = line
                break
            end += len(line) + 1
            journal.ends.append(end)
            previous = _line(journal, line, previous, note)
            if len(journal.ends) - len(journal.records) > MOST_DAMAGED_LINES:
                note(path, f"has more than {MOST_DAMAGED_LINES} damaged lines; the rest was not read")
                break
    except Unreadable as error:
        note(path, str(error))
    return journal


def _line(journal: Journal, line: bytes, previous: str, note: Note) -> str:
    """Hold the journal's latest line, keep its record, and return the checksum that the next one has to name."""
    number = len(journal.ends)
    place = f"{journal.path}:{number}"
    actual = digest(line[CHECKSUM_END + 2 :])
    record = _expected(journal, line, f'{{"sha256":"{actual}","previous":"{previous}","sequence":{number},')
    if record is None:
        record = _held(journal, line, actual, previous, note)
    if record is None:
        return actual
    kind, identifier, data = record["type"], record["id"], record["data"]
    if not journal.once(kind, identifier):
        note(f"{place} id", f"{show(identifier)} stands twice for the type {kind}")
    if holds(data, shape_of(journal.name, kind, journal.timed), note, f"{place} data"):
        journal.records.append(Record(place, number, kind, identifier, data))
    return actual


def _expected(journal: Journal, line: bytes, known: str) -> dict[str, Any] | None:
    """The last three members of a line about which there is nothing to say; None for any other line.

    What the line must begin with is known, and what follows must be the one text of a type, an id and the data.
    """
    beginning = known.encode("ascii")
    record = likely(b"{" + line[len(beginning) :]) if line.startswith(beginning) else None
    if record is None or len(record) != 3:
        return None
    kind, identifier, data = record.get("type"), record.get("id"), record.get("data")
    if type(kind) is not str or kind not in SHAPES[journal.name] or type(data) is not dict or not IDENTIFIER.test(identifier):
        return None
    try:
        text = f'{known}"type":{encode(kind)},"id":{encode(identifier)},"data":{encode(data)}}}'
    except (Malformed, ValueError):
        return None
    return record if text.encode("ascii") == line else None


def _held(journal: Journal, line: bytes, actual: str, previous: str, note: Note) -> dict[str, Any] | None:
    """The record of a line about which there is something to say, which is noted; None where it is no record."""
    number = len(journal.ends)
    place = f"{journal.path}:{number}"
    checksum = line[len(OPENING) : CHECKSUM_END].decode("ascii", "replace")
    if not line.startswith(OPENING) or line[CHECKSUM_END : CHECKSUM_END + 2] != b'",':
        note(place, f"the line does not begin with its checksum: {show(line[:40])}")
    elif checksum != actual:
        note(place, f"the checksum is {show(checksum)[1:-1]}, but the bytes of the line have {actual}")
    try:
        record = parse(line)
    except Malformed as problem:
        note(place, f"the line is not a record: {problem}")
        return None
    if not holds(record, LINES[journal.name], note, f"{place} "):
        return None
    _form(record, line, place, note)
    if record["previous"] != previous:
        before = "the journal's name" if number == 1 else "the record before"
        note(f"{place} previous", f"is {record['previous']}, but {before} gives {previous}")
    if record["sequence"] != number:
        note(f"{place} sequence", f"is {record['sequence']}, expected {number}")
    return record


def _form(record: dict[str, Any], line: bytes, place: str, note: Note) -> None:
    """Every record has exactly one text; another text of the same values is a finding."""
    try:
        text = (
            f'{{"sha256":"{record["sha256"]}","previous":"{record["previous"]}","sequence":{record["sequence"]},'
            f'"type":{encode(record["type"])},"id":{encode(record["id"])},"data":{encode(record["data"])}}}'
        )
    except Malformed as problem:
        note(place, f"the line is not a record: {problem}")
        return
    if text.encode("ascii") != line:
        note(place, f"the line is not in the one form that its record has, {show(text)}")


def hold_prefix(tree: Tree, copy: str, final: Journal, note: Note) -> int:
    """Hold a checkpoint's journal against the final one; how many complete lines of it the copy has."""
    data = tree.read(copy)
    if data is None:
        return 0
    offset = 0
    try:
        for piece in tree.pieces(final.path):
            wanted = data[offset : offset + len(piece)]
            if not piece.startswith(wanted):
                note(copy, f"is no prefix of {plain(final.path)}: they differ after byte {offset}")
                return 0
            offset += len(piece)
    except Unreadable:
        return 0
    if len(data) > offset:
        note(copy, f"has {len(data)} bytes, more than the {offset} of {plain(final.path)} at the end of the scenario")
    if data and len(data) not in final.ends:
        note(copy, f"ends in the middle of a line of {plain(final.path)}, at byte {len(data)}")
    return sum(1 for end in final.ends if end <= len(data))
