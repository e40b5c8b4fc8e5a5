"""Playing a program over the journals that it left: which record it must have written next, and where it died.

A `Player` follows one process. Each durable write takes the next record of its journal, and each write and each named
place counts the fault points that it passes, so that "at the death" is a place in the order of records and no guess: a
process that halted before or in the middle of a write has not taken the record, one that halted after it has. What
the program decides is the business of `dispatch` (producers, dispatchers) and `serve` (receivers); what all
processes of one store share (how far each journal was taken, torn tails, what exists) is a `Disk`.

What the archive cannot tell: whether a record was synced (`written` and `synced` leave the same bytes), whether a halt
around the creation or the repair of a journal was before or after it (the next process leaves the same files), and how long
a torn tail was that was cut.
"""

from __future__ import annotations

from audit.case import HALTED, label
from audit.findings import show
from audit.records import SHAPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from audit.case import Ran, Store
    from audit.findings import Note
    from audit.first_step import FirstStep
    from audit.journals import Record


WRITERS = {"intentions": "producer", "attempts": "dispatcher", "receipts": "dispatcher", "history": "dispatcher"}


class Died(Exception):
    """The process halted here."""


class Lost(Exception):
    """The records do not go on as this process would have; a finding says where."""


class Disk:
    """How far the journals of a store are taken while its processes are played one after the other."""

    __slots__ = ("_index", "exists", "store", "taken", "torn")

    def __init__(self, store: Store) -> None:
        self.store = store
        self.taken: dict[str, list[Record]] = {name: [] for name in SHAPES}
        self._index: dict[tuple[str, str, str], Record] = {}
        self.exists: set[str] = set()
        self.torn = store.torn

    def next(self, name: str) -> Record | None:
        """The first record of a journal that no process has taken yet."""
        records, at = self.store[name].records, len(self.taken[name])
        return records[at] if at < len(records) else None

    def has(self, name: str, kind: str, identifier: str) -> Record | None:
        """A record that was taken already."""
        return self._index.get((name, kind, identifier))

    def take(self, name: str, record: Record) -> None:
        """Give the next record of a journal to the process that is played."""
        self.taken[name].append(record)
        self._index.setdefault((name, record.type, record.id), record)

    def leftovers(self, note: Note) -> None:
        """Every record must have been taken. (How a journal ends is held in `tails`.)"""
        for name, journal in self.store.journals.items():
            taken = self.taken[name]
            for record in journal.records[len(taken) :]:
                by = f"{'begun' if record.type == 'attempt' else 'written'} by no {WRITERS.get(name, 'receiver')}"
                note(record.place, f"the {record.type} {show(record.id)} was {by}: none of them comes to it")


class Player:
    """One process on its disk; `step` is the step of the scenario that it is at."""

    __slots__ = ("_counts", "_fault", "_first", "_pause", "disk", "place", "process", "step")

    def __init__(self, disk: Disk, process: Ran, first: FirstStep) -> None:
        self.disk = disk
        self.process = process
        self.step: int = process["step"]
        self._first = first
        self.place = f"processes.json {label(process)}"
        self._fault = process["fault"] if process["exit_code"] == HALTED else None
        self._pause = process["pause"]
        self._counts: dict[str, int] = {}

    def note(self, place: str, sentence: str) -> None:
        """Say what cannot be followed at the step that this process is at."""
        self._first.note(place, sentence, self.step)

    def play(self, program: Callable[[], None]) -> bool:
        """Follow the program to its end; whether it came there alive. `Lost` where the records do not allow it."""
        try:
            program()
        except Died:
            return False
        if self._fault is not None:
            self.note(self.place, f"halted at {self.armed()}, but its records do not bring it there")
        if self._pause is not None and self._counts.get(self._pause["point"], 0) < self._pause["occurrence"]:
            where = f"{self._pause['point']}#{self._pause['occurrence']}"
            self.note(self.place, f"paused at {where}, but its records do not bring it there")
        return self._fault is None

    def armed(self) -> str:
        """The fault that this process halted at, in words; empty where there is none."""
        return f"{self._fault['point']}#{self._fault['occurrence']}" if self._fault else ""

    def dies_at(self, point: str) -> bool:
        """Whether the process halts when it reaches this point the next time."""
        return (
            self._fault is not None
            and self._fault["point"] == point
            and self._fault["occurrence"] == self._counts.get(point, 0) + 1
        )

    def reach(self, point: str) -> None:
        """Pass a named place, or die there."""
        dies = self.dies_at(point)
        self._counts[point] = self._counts.get(point, 0) + 1
        if dies:
            raise Died

    def open(self, name: str) -> None:
        """Open a journal for append: create it, cut its torn tail."""
        disk = self.disk
        if name not in disk.exists:
            self.reach(f"{name}.create.before")
            disk.exists.add(name)
            self.reach(f"{name}.create.written")
        if name in disk.torn:
            self.reach(f"{name}.repair.before")
            disk.torn.discard(name)
            self.reach(f"{name}.repair.written")
            self.reach(f"{name}.repair.synced")
        if not disk.taken[name]:
            self.reach(f"{name}.create.synced")

    def write(
        self,
        name: str,
        kind: str,
        identifier: str | None,
        span: tuple[int, int],
        *,
        fits: Callable[[Record], bool] | None = None,
        hold: Callable[[Record], None] | None = None,
    ) -> Record:
        """Write the record of that type and id, which must be the journal's next and fit, or die around it.

        `hold` judges the record as soon as it is taken, also where the process dies behind it.
        """
        self.reach(f"{kind}.append.before")
        if self.dies_at(f"{kind}.append.torn"):
            self.disk.torn.add(name)
        self.reach(f"{kind}.append.torn")
        record = self.disk.next(name)
        if record is None or record.type != kind or record.id != (identifier or record.id) or (fits and not fits(record)):
            if self.process["signal"] is not None:
                raise Died
            self._missing(name, kind, identifier, record)
            raise Lost
        self.disk.take(name, record)
        record.span = span
        if hold is not None:
            hold(record)
        self.reach(f"{kind}.append.written")
        self.reach(f"{kind}.append.synced")
        return record

    def _missing(self, name: str, kind: str, identifier: str | None, record: Record | None) -> None:
        what = f"the {kind} {show(identifier)}" if identifier else f"an {kind}"
        there = f"there is the {record.type} {show(record.id)}" if record else "the journal ends"
        place = record.place if record else self.disk.store[name].path
        self.note(place, f"{label(self.process)} would have written {what} next, but {there}")
