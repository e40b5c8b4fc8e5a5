"""The journals of a scenario as the replay of its processes finds them: each with a place up to which it has been written.

An archive holds journals as they were at the end. The replay moves a cursor over each: what is behind it has been written by
now, what lies before it has not. A folder that a later step renamed is found under the name that it bore at the time.
"""

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.report.events import Ref
from scenarios.report.facts import JournalFile, Line


class Cursor:
    """One journal during the replay: the lines placed so far, whether the file exists yet, whether its tail is torn."""

    def __init__(self, path: str, lines: Sequence[Line] = ()) -> None:
        self.path = path
        self.exists = False
        self.torn = False
        self._lines = lines
        self._placed: dict[tuple[str, str], Line] = {}
        self._at = 0
        self._where: dict[tuple[str, str], int] | None = None

    def __len__(self) -> int:
        return self._at

    def peek(self) -> Line | None:
        """The line that is written next, or None."""
        return self._lines[self._at] if self._at < len(self._lines) else None

    def next_is(self, record_type: str, record_id: str | None = None) -> bool:
        """Whether the next line is a record of this type, and with this id where one is given."""
        line = self.peek()
        return line is not None and line.type == record_type and record_id in (None, line.id)

    def take(self) -> Line:
        """Place the next line. Raises LookupError where there is none."""
        line = self._lines[self._at]
        self._at += 1
        self._placed.setdefault((line.type, line.id), line)
        return line

    def find(self, record_type: str, record_id: str) -> Line | None:
        """A record that has been placed, or None."""
        return self._placed.get((record_type, record_id))

    def placed(self) -> list[Line]:
        """All lines placed so far."""
        return list(self._lines[: self._at])

    def rest(self) -> list[Line]:
        """Place everything that is left, and return it."""
        return [self.take() for _ in range(len(self._lines) - self._at)]

    def ahead(self, record_type: str, record_id: str) -> Line | None:
        """A record that is still to be written, or None."""
        if self._where is None:
            self._where = {(line.type, line.id): at for at, line in reversed(list(enumerate(self._lines)))}
        at = self._where.get((record_type, record_id), -1)
        return self._lines[at] if at >= self._at else None

    def ref(self, line: Line) -> Ref:
        """The line's place, for an event."""
        return Ref(self.path, line.number, line.type, line.id)


class Shelf:
    """All journals of a scenario. `step` is the number of the step that the replay is at."""

    def __init__(self, journals: Mapping[str, JournalFile], steps: Sequence[Mapping[str, Any]]) -> None:
        self.step = 0
        self._cursors = {path: Cursor(path, journal.lines) for path, journal in journals.items()}
        self._moves = [
            (number, step["path"], step["to"])
            for number, step in enumerate(steps, 1)
            if step.get("do") == "move" and isinstance(step.get("path"), str) and isinstance(step.get("to"), str)
        ]

    def cursor(self, folder: str, name: str) -> Cursor:
        """The journal `name` in `folder`, as that is called now."""
        path = posixpath.normpath(f"{folder}/{name}.jsonl")
        for number, source, target in self._moves:
            if number > self.step and (path == source or path.startswith(f"{source}/")):
                path = target + path[len(source) :]
        return self._cursors.setdefault(path, Cursor(path))

    def add(self, cursor: Cursor) -> None:
        """Take a cursor over something that is no journal."""
        self._cursors[cursor.path] = cursor

    def all(self) -> list[Cursor]:
        """Every journal, by path."""
        return [self._cursors[path] for path in sorted(self._cursors)]
