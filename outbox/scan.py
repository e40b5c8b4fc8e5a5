"""Reading a journal from its beginning: every line checked, bound to the one before, in constant memory."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from outbox.errors import DamagedJournal
from outbox.record import MAX_LINE_BYTES, BadRecord, Record, decode_bound, genesis, is_torn_beginning

_BLOCK_BYTES = 1 << 20


class Scan:
    """One pass over a journal's lines; afterwards `tail_bytes` and `lacks_newline` tell what stands behind the last record."""

    def __init__(self, name: str, types: Collection[str], path: Path, file: BinaryIO) -> None:
        self._name, self._types, self._path, self._file = name, types, path, file
        self.tail_bytes = 0
        self.lacks_newline = False

    def __iter__(self) -> Iterator[tuple[Record, int, int]]:
        """Yield each complete record with the offset and length in bytes of its line, newline left out.

        Raises DamagedJournal, with the line and the reason, at a complete record that is not what was written.
        """
        offset, previous, sequence = 0, genesis(self._name), 1
        while line := self._file.readline(MAX_LINE_BYTES + 1):
            complete = line.endswith(b"\n")
            text = line[:-1] if complete else line
            try:
                record = self._decode(text, previous, sequence)
            except BadRecord as reason:
                if not complete and self._is_torn_tail(text, previous, sequence):
                    self.tail_bytes = len(text)
                    return
                raise DamagedJournal(
                    f"{self._path}, line {sequence}: {reason}. The file was left as it is: "
                    "keep a copy, find what changed it, restore it from a copy that reads well"
                ) from None
            self.lacks_newline = not complete
            yield record, offset, len(text)
            offset, previous, sequence = offset + len(line), record.sha256, sequence + 1

    def _is_torn_tail(self, text: bytes, previous: str, sequence: int) -> bool:
        """Whether `text`, to which the file's last line has been read or which is as much as was read of it, may be cut."""
        if not text.strip(b"\0"):  # a file that grew before its data came; there may be more of it than of any record
            return all(not block.strip(b"\0") for block in iter(lambda: self._file.read(_BLOCK_BYTES), b""))
        return len(text) <= MAX_LINE_BYTES and is_torn_beginning(text, previous, sequence)

    def _decode(self, text: bytes, previous: str, sequence: int) -> Record:
        if len(text) > MAX_LINE_BYTES:
            raise BadRecord(f"it is longer than {MAX_LINE_BYTES} bytes")
        record = decode_bound(text, previous, sequence)
        if record.type not in self._types:
            raise BadRecord(f"it is a {record.type!r} record, and a {self._name} journal holds {', '.join(self._types)}")
        return record
