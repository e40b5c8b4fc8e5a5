"""Reading a journal from its beginning: every line checked, bound to the one before, in constant memory."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from outbox.errors import DamagedJournal
from outbox.record import MAX_LINE_BYTES, BadRecord, Record, decode_as_written, decode_bound, genesis, is_torn_beginning

_BLOCK_BYTES = 1 << 20
_SECTOR_BYTES = 512


class Scan:
    """One pass over a journal's lines. `offset` and `length` tell where the newest record stands, its newline left out;
    afterwards `tail_bytes` and `lacks_newline` tell what stands behind the last one.

    A journal that is not `synced` may have gaps where the power failed: zero bytes, which no record has, in place of what was
    written before something that is there. It ends before the first of them.
    """

    def __init__(self, name: str, types: Collection[str], path: Path, file: BinaryIO, *, synced: bool = True) -> None:
        self._name, self._types, self._path, self._file = name, types, path, file
        self._may_have_gaps = not synced
        self.offset = self.length = 0
        self.tail_bytes = 0
        self.lacks_newline = False

    def __iter__(self) -> Iterator[Record]:
        """Yield each complete record.

        Raises DamagedJournal, with the line and the reason, at a complete record that is not what was written.
        """
        offset, previous, sequence = 0, genesis(self._name), 1
        while line := self._file.readline(MAX_LINE_BYTES + 1):
            record = decode_as_written(line, previous, sequence)
            if record is None or record.type not in self._types:
                record = self._decode_or_end(line, offset, previous, sequence)
                if record is None:
                    return
            self.offset, self.length = offset, len(line) - (not self.lacks_newline)
            yield record
            offset, previous, sequence = offset + len(line), record.sha256, sequence + 1

    def _decode_or_end(self, line: bytes, offset: int, previous: str, sequence: int) -> Record | None:
        """The record, or None where the journal ends before it."""
        complete = line.endswith(b"\n")
        text = line[:-1] if complete else line
        try:
            record = self._decode(text, previous, sequence)
        except BadRecord as reason:
            gap = self._may_have_gaps and b"\0" in text
            if gap or (not complete and self._is_torn_tail(text, offset, previous, sequence)):
                self.tail_bytes = len(text)
                return None
            raise DamagedJournal(
                f"{self._path}, line {sequence}: {reason}. The file was left as it is: "
                "keep a copy, find what changed it, restore it from a copy that reads well"
            ) from None
        self.lacks_newline = not complete
        return record

    def _is_torn_tail(self, text: bytes, offset: int, previous: str, sequence: int) -> bool:
        """Whether `text`, to which the file's last line has been read or which is as much as was read of it, may be cut."""
        if not text.strip(b"\0"):  # a file that grew before its data came; there may be more of it than of any record
            return all(not block.strip(b"\0") for block in iter(lambda: self._file.read(_BLOCK_BYTES), b""))
        if len(text) > MAX_LINE_BYTES:
            return False
        # The size of a write may be there before the rest of its bytes is.
        begun = text.rstrip(b"\0")
        if is_torn_beginning(begun, previous, sequence):
            return True
        # Of a whole record only the newline is missing: its sector never came.
        return (
            text == begun + b"\0" and (offset + len(begun)) % _SECTOR_BYTES == 0 and self._is_record(begun, previous, sequence)
        )

    def _is_record(self, text: bytes, previous: str, sequence: int) -> bool:
        try:
            self._decode(text, previous, sequence)
        except BadRecord:
            return False
        return True

    def _decode(self, text: bytes, previous: str, sequence: int) -> Record:
        if len(text) > MAX_LINE_BYTES:
            raise BadRecord(f"it is longer than {MAX_LINE_BYTES} bytes")
        record = decode_bound(text, previous, sequence)
        if record.type not in self._types:
            raise BadRecord(f"it is a {record.type!r} record, and a {self._name} journal holds {', '.join(self._types)}")
        return record
