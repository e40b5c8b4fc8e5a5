"""Where each record of a journal stands: (type, id) to (offset, length), in bounded memory.

A dictionary serves until it holds `SPILL_AT` entries; then all of them move into a private temporary SQLite database on
disk, which SQLite removes by itself when the process ends. Nothing here is durable: it is built anew at each opening.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from outbox.errors import MachineRefused

if TYPE_CHECKING:
    import sqlite3

SPILL_AT = 20_000


class RecordIndex:
    """Map from a record's type and id to the place of its line. Raises MachineRefused where the temporary file cannot grow."""

    def __init__(self, spill_at: int = SPILL_AT) -> None:
        self._spill_at = spill_at
        self._recent: dict[str, tuple[int, int]] = {}
        self._database: sqlite3.Connection | None = None

    def get(self, record_type: str, record_id: str) -> tuple[int, int] | None:
        """Offset and length in bytes of the record's line (newline left out), or None."""
        key = f"{record_type}\0{record_id}"
        place = self._recent.get(key)
        if place is None and self._database is not None:
            place = self._database.execute("SELECT offset, length FROM place WHERE key = ?", (key,)).fetchone()
        return place

    def add(self, record_type: str, record_id: str, offset: int, length: int) -> None:
        """Remember a record's place. The caller has made sure that it is not here yet."""
        self._recent[f"{record_type}\0{record_id}"] = (offset, length)
        if len(self._recent) >= self._spill_at:
            self._spill()

    def close(self) -> None:
        """Drop everything."""
        self._recent.clear()
        if self._database is not None:
            self._database.close()
            self._database = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _spill(self) -> None:
        import sqlite3  # noqa: PLC0415 - most journals never spill, and the import costs milliseconds at each start

        try:
            if self._database is None:
                self._database = sqlite3.connect("", isolation_level=None)  # "" is a private temporary database on disk
                self._database.execute("PRAGMA journal_mode = OFF")
                self._database.execute("PRAGMA synchronous = OFF")
                self._database.execute(
                    "CREATE TABLE place (key TEXT PRIMARY KEY, offset INTEGER, length INTEGER) WITHOUT ROWID"
                )
            self._database.execute("BEGIN")
            rows = ((key, *place) for key, place in sorted(self._recent.items()))
            self._database.executemany("INSERT INTO place VALUES (?, ?, ?)", rows)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise MachineRefused(
                f"the temporary index of a large journal cannot be kept ({error}); free space in TMPDIR"
            ) from error
        self._recent.clear()
