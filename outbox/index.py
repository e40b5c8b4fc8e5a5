"""Where each record of a journal stands: (type, id) to (offset, length), in bounded memory.

The index keeps a hash of type and id, not the id: it answers with the places where the record may stand, nearly always one or
none, and whoever asks reads the line there and compares. Hash and place are one row of 16 bytes, in the bucket that the hash
chooses. Where the rows in memory are `SPILL_AT`, all buckets move, one behind the other, into an unnamed temporary file as a
*chunk*; a look-up then reads one bucket of each chunk, so `MERGE_AT` chunks of a size are joined to one. Nothing here is
durable: it is built anew at each opening, and the files are gone with the process, however that ends.
"""

import errno
import os
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from struct import Struct
from types import TracebackType
from typing import IO, Self

from outbox.errors import MachineRefused
from outbox.record import MAX_LINE_BYTES

SPILL_AT = 100_000
MERGE_AT = 4

_BUCKETS = 2048
_SPAN = MAX_LINE_BYTES + 1  # a place is offset * span + length; the signed 64 bits of a row hold offsets of up to 512 GiB
_ROW = Struct("=qq")
_HASH = Struct("=q")

Place = tuple[int, int]
_pack_row = _ROW.pack


class RecordIndex:
    """Map from a record's type and id to the places of its line. Raises MachineRefused where the temporary file fails."""

    def __init__(self, spill_at: int = SPILL_AT, hash_of: Callable[[tuple[str, str]], int] = hash) -> None:
        self._spill_at = spill_at
        self._hash_of = hash_of
        self._rows = 0
        self._recent: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._chunks: list[_Chunk] = []

    def places(self, record_type: str, record_id: str) -> list[Place]:
        """Offset and length in bytes (newline left out) of each line that may be the record's."""
        row_hash = self._hash_of((record_type, record_id))
        bucket = row_hash % _BUCKETS
        found = _places_in(self._recent[bucket], row_hash) if bucket in self._recent else []
        if self._chunks:
            with _temporary_file_told():
                for chunk in self._chunks:
                    found += _places_in(chunk.bucket(bucket), row_hash)
        return found

    def add(self, record_type: str, record_id: str, offset: int, length: int) -> None:
        """Remember a record's place, whatever is here already."""
        row_hash = self._hash_of((record_type, record_id))
        bucket = self._recent[row_hash % _BUCKETS]
        bucket += _pack_row(row_hash, offset * _SPAN + length)
        self._rows += 1
        if self._rows >= self._spill_at:
            self._spill()

    def repeated(self) -> Iterator[list[Place]]:
        """The places that share a hash, for each hash of more than one: they may be one id's."""
        with _temporary_file_told():
            for bucket in range(_BUCKETS) if self._chunks else list(self._recent):
                rows = b"".join([chunk.bucket(bucket) for chunk in self._chunks] + [self._recent.get(bucket, b"")])
                hashes = array("q", rows)[::2]
                if len(set(hashes)) < len(hashes):
                    for row_hash, times in Counter(hashes).items():
                        if times > 1:
                            yield _places_in(rows, row_hash)

    def close(self) -> None:
        """Drop everything."""
        self._recent.clear()
        self._rows = 0
        for chunk in self._chunks:
            chunk.close()
        self._chunks.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _spill(self) -> None:
        with _temporary_file_told():
            self._chunks.append(_Chunk(self._recent.get(bucket, b"") for bucket in range(_BUCKETS)))
            self._recent.clear()
            self._rows = 0
            while len(alike := [chunk for chunk in self._chunks if chunk.level == self._chunks[-1].level]) >= MERGE_AT:
                self._merge(alike)

    def _merge(self, chunks: list["_Chunk"]) -> None:
        """Put one chunk in place of `chunks`, which are the newest."""
        joined = (b"".join([chunk.bucket(each) for chunk in chunks]) for each in range(_BUCKETS))
        self._chunks[-len(chunks) :] = [_Chunk(joined, chunks[0].level + 1)]
        for chunk in chunks:
            chunk.close()


class _Chunk:
    """The buckets of many rows in an unnamed temporary file."""

    def __init__(self, buckets: Iterator[bytes | bytearray], level: int = 0) -> None:
        import tempfile  # noqa: PLC0415 - most journals never spill, and the import costs milliseconds at each start

        self.level = level  # how often its rows were joined
        sizes = array("q")
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the index
        self._descriptor = self._file.fileno()
        try:
            for rows in buckets:
                self._file.write(rows)
                sizes.append(len(rows))
            self._file.flush()
        except OSError:
            self.close()
            raise
        self._starts = array("q", accumulate(sizes, initial=0))

    def bucket(self, number: int) -> bytes:
        start = self._starts[number]
        return os.pread(self._descriptor, self._starts[number + 1] - start, start)

    def close(self) -> None:
        try:
            self._file.close()
        except OSError:  # what was not flushed cannot be written either, and nobody needs it
            self._file.close()


def _places_in(rows: bytes | bytearray, row_hash: int) -> list[Place]:
    """The places of all rows with that hash."""
    wanted = _HASH.pack(row_hash)
    found = []
    at = rows.find(wanted)
    while at >= 0:
        if at % _ROW.size == 0:
            found.append(divmod(_ROW.unpack_from(rows, at)[1], _SPAN))
        at = rows.find(wanted, at + 1)
    return found


@contextmanager
def _temporary_file_told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MachineRefused(
            f"the temporary index of a large journal cannot be kept ({error.strerror or error}); free space in TMPDIR",
            disk_full=error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG},
        ) from error
