"""Append-only, checksummed journals: the only durable files of the outbox and of the receivers.

A `JournalSpec` says what a journal is called and which types of record it holds; `spec.open(directory)` owns the file for
appending, `spec.read(directory)` streams its records without owning it. Opening for append checks every record, then cuts an
incomplete last line back to the last complete record; a complete record that is not what was written makes it refuse,
with the line and the reason, and leaves the file as it is. `append` returns after the record is synced.

Every durable write passes its fault points (`outbox.faults`). One writer at a time: a kernel lock on the file dies with its
holder. What this does not do: compact, rotate, encrypt, or notice that whole records are missing at the end of a file.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from outbox import faults
from outbox.errors import BadInput, DamagedJournal, MachineRefused
from outbox.files import lock, make_directory, open_regular, refused, sync_directory, write_all
from outbox.index import RecordIndex
from outbox.record import (
    MAX_ID_CHARACTERS,
    MAX_LINE_BYTES,
    BadRecord,
    Record,
    canonical,
    check_shape,
    decode,
    encode,
    fingerprint,
    genesis,
    payload,
    payload_bytes,
)
from outbox.scan import Scan

__all__ = [
    "Journal",
    "JournalSpec",
    "Record",
    "canonical",
    "declare",
    "fingerprint",
    "make_directory",
    "payload",
    "payload_bytes",
]


@dataclass(frozen=True, slots=True)
class JournalSpec:
    """What a journal is: its name (the file is `NAME.jsonl`), its record types with their fault points, whether it syncs."""

    name: str
    types: Mapping[str, faults.WritePoints]
    create: faults.WritePoints
    repair: faults.WritePoints
    synced: bool

    def path(self, directory: Path) -> Path:
        """Where the journal lies in `directory`."""
        return directory / f"{self.name}.jsonl"

    def open(self, directory: Path, *, wait_seconds: float = 0) -> "Journal":
        """Own the journal for appending, created if absent.

        Raises LockHeld if another process owns it for longer than `wait_seconds`, DamagedJournal (the file is untouched)
        and MachineRefused.
        """
        return Journal(self, self.path(directory), wait_seconds)

    def read(self, directory: Path) -> Iterator[Record]:
        """Stream the complete records, oldest first, beside a possible writer; an incomplete last line is passed over.

        Memory does not grow with the file. An absent file has no records. Raises DamagedJournal and MachineRefused.
        """
        path = self.path(directory)
        try:
            with open(open_regular(path, os.O_RDONLY), "rb") as file:  # noqa: PTH123 - an open descriptor, not a path
                # Whoever wrote the records may have died before syncing them, and the caller acts on what it reads.
                if self.synced:
                    os.fsync(file.fileno())
                yield from Scan(self.name, self.types, path, file, synced=self.synced)
        except FileNotFoundError:
            return
        except OSError as error:
            raise refused(path, "cannot be read", error) from error


def declare(name: str, *types: str, synced: bool = True, under_study: bool = True) -> JournalSpec:
    """Declare a journal and the fault points of its writes. Instruments (`under_study=False`) have no points.

    `synced=False` is for logs that only observe: they survive the death of the process. Of what the loss of power leaves of
    them the records before the first gap are kept.
    """
    if not under_study:
        return JournalSpec(name, dict.fromkeys(types, faults.NO_POINTS), faults.NO_POINTS, faults.NO_POINTS, synced)
    return JournalSpec(
        name,
        {kind: faults.declare_write(f"{kind}.append", f"the {kind} record", synced=synced) for kind in types},
        faults.declare_write(f"{name}.create", f"the new empty file {name}.jsonl", torn=False, synced=synced),
        faults.declare_write(f"{name}.repair", f"the end of {name}.jsonl, its torn tail cut away,", torn=False, synced=synced),
        synced,
    )


class Journal:
    """A journal owned for appending; see the module. Use it as a context manager or close it."""

    def __init__(self, spec: JournalSpec, path: Path, wait_seconds: float = 0) -> None:
        self.spec = spec
        self.path = path
        self._index = RecordIndex()
        self._failed: str | None = None  # why nothing may be appended any more
        self._sync_failed: str | None = None
        self._length, self._end, self._last = 0, 0, genesis(spec.name)
        self._counts = dict.fromkeys(spec.types, 0)
        try:
            self._descriptor = self._open_or_create()
        except OSError as error:
            raise refused(path, "cannot be opened", error) from error
        try:
            lock(self._descriptor, path, wait_seconds)
            self._load()
        except OSError as error:
            self.close()
            raise refused(path, "cannot be read", error) from error
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self._length

    def count(self, record_type: str) -> int:
        """How many records of that type there are."""
        return self._counts[record_type]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the journal up. Nothing is written."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._index.close()

    def find(self, record_type: str, record_id: str) -> Record | None:
        """The record of that type and id, read from the file, or None."""
        for offset, length in self._index.places(record_type, record_id):
            record = self._read(offset, length)
            if (record.type, record.id) == (record_type, record_id):
                return record
        return None

    def _read(self, offset: int, length: int) -> Record:
        try:
            return decode(os.pread(self._descriptor, length, offset))
        except OSError as error:
            raise refused(self.path, "cannot be read", error) from error
        except BadRecord as reason:
            raise DamagedJournal(f"{self.path}: the record at byte {offset} was changed while it was open: {reason}") from None

    def append(self, record_type: str, record_id: str, data: Mapping[str, Any]) -> Record:
        """Write one record and return it when it is durable.

        The same type and id with the same data is a no-op that returns the first record. Raises BadInput for other data
        under a known id and for values that a record cannot hold; MachineRefused where the disk refused (the file is as
        before; after a failed sync the journal must be opened again).
        """
        points = self._checked_points(record_type, record_id)
        existing = self.find(record_type, record_id)
        previous, sequence = (self._last, self._length + 1) if existing is None else existing[:2]
        try:
            check_shape(data)
            line, checksum = encode(previous, sequence, record_type, record_id, data)
        except (ValueError, TypeError, RecursionError) as error:
            raise BadInput(f"{self.path}: {record_type} {record_id!r} cannot be written as JSON: {error}") from None
        if existing is not None:
            if checksum != existing.sha256 and canonical(existing.data) != canonical(data):
                raise BadInput(f"{self.path}: {record_type} {record_id!r} is recorded with other content; it is not replaced")
            return existing
        if len(line) > MAX_LINE_BYTES:
            raise BadInput(f"{self.path}: {record_type} {record_id!r} has {len(line)} bytes, a record at most {MAX_LINE_BYTES}")
        faults.reach(points.before)
        self._failed = "it was interrupted"  # stands unless everything up to the index ends well, or the file is cut back
        self._write(line, points)
        offset, self._end = self._end, self._end + len(line)
        self._length += 1
        self._counts[record_type] += 1
        self._last = checksum
        self._index.add(record_type, record_id, offset, len(line) - 1)
        self._failed = None
        faults.reach(points.synced)
        return Record(previous, self._length, record_type, record_id, data, checksum)

    def _checked_points(self, record_type: str, record_id: str) -> faults.WritePoints:
        if self._descriptor < 0:
            raise BadInput(f"{self.path}: the journal was closed; open it again")
        if self._failed:
            raise MachineRefused(f"{self.path}: an earlier write failed ({self._failed}); open the journal again")
        if record_type not in self.spec.types:
            raise BadInput(f"{self.path}: a {self.spec.name} journal holds {', '.join(self.spec.types)}, not {record_type!r}")
        if not (0 < len(record_id) <= MAX_ID_CHARACTERS and record_id.isascii() and record_id.isprintable()):
            raise BadInput(f"{self.path}: id {record_id!r} is not 1 to {MAX_ID_CHARACTERS} printable ASCII characters")
        return self.spec.types[record_type]

    def _write(self, line: bytes, points: faults.WritePoints) -> None:
        try:
            if faults.is_watched(points.torn):
                half = len(line) // 2
                write_all(self._descriptor, line[:half])
                faults.reach(points.torn)
                write_all(self._descriptor, line[half:])
            else:
                write_all(self._descriptor, line)
            faults.reach(points.written)
            if self.spec.synced:
                self._sync()
        except OSError as error:
            self._cut_back()
            raise refused(self.path, "cannot be written", error) from error

    def _sync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            # The kernel forgets an error once it is told: a second sync that succeeds would prove nothing.
            self._sync_failed = f"fsync: {error.strerror}"
            raise

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._descriptor, self._end)
            self._failed = self._sync_failed
        except OSError as error:
            self._failed = f"ftruncate after a failed write: {error.strerror}"

    def _open_or_create(self) -> int:
        flags = os.O_RDWR | os.O_APPEND
        try:
            return open_regular(self.path, flags)
        except FileNotFoundError:
            faults.reach(self.spec.create.before)
            descriptor = open_regular(self.path, flags | os.O_CREAT)
            faults.reach(self.spec.create.written)
            return descriptor

    def _load(self) -> None:
        """Check every record, index it, and leave the file ending with a complete line."""
        with open(os.dup(self._descriptor), "rb") as file:  # noqa: PTH123 - an open descriptor, not a path
            scan = Scan(self.spec.name, self.spec.types, self.path, file, synced=self.spec.synced)
            try:
                for record in scan:
                    self._index.add(record.type, record.id, scan.offset, scan.length)
                    self._length, self._last = record.sequence, record.sha256
                    self._counts[record.type] += 1
            except DamagedJournal:
                self._refuse_repeated()  # an earlier line, so it is told first
                raise
        self._refuse_repeated()
        if self._length:
            self._end = scan.offset + scan.length + 1
        if scan.tail_bytes or scan.lacks_newline:
            self._repair(scan.lacks_newline)
        elif self.spec.synced:
            # Its writer may have died between write and sync; from here on the records are acted upon.
            os.fsync(self._descriptor)
        if self._length == 0:
            if self.spec.synced:
                sync_directory(self.path.parent)
            faults.reach(self.spec.create.synced)

    def _refuse_repeated(self) -> None:
        """Raise DamagedJournal for the first record whose type and id an earlier one has."""
        again: list[Record] = []
        for places in self._index.repeated():
            seen: set[tuple[str, str]] = set()
            for place in sorted(places):
                record = self._read(*place)
                if (record.type, record.id) in seen:
                    again.append(record)
                    break
                seen.add((record.type, record.id))
        if again:
            first = min(again, key=lambda record: record.sequence)
            raise DamagedJournal(f"{self.path}, line {first.sequence}: {first.type} {first.id!r} stands there twice")

    def _repair(self, lacks_newline: bool) -> None:
        points = self.spec.repair
        faults.reach(points.before)
        if lacks_newline:
            write_all(self._descriptor, b"\n")
        else:
            os.ftruncate(self._descriptor, self._end)
        faults.reach(points.written)
        if self.spec.synced:
            os.fsync(self._descriptor)
        faults.reach(points.synced)
