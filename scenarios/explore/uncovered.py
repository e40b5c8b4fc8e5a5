"""Windows that no fault point covers: two calls of one process, each of which changes something, and no point between them.

A death in such a window is one that `--mode points` cannot bring about; `--mode syscalls` does. A window is either closed by a
point, or explained here: each explanation says what makes a death there the same as one at a point, or who answers for it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.explore.calls import POINT, Call, Listings

WINDOWS = "windows.json"
_DATABASE = r"\w+ (?:state/dispatch\.db(?:-wal|-shm|-journal)?|state)"
# The calls on both sides, and why a death between them needs no point of its own.
EXPLAINED: tuple[tuple[str, str, str], ...] = (
    (
        _DATABASE,
        _DATABASE,
        "inside the database: SQLite answers for a death between two of its own calls and recovers when the file is opened "
        "next; points are before, in and behind each transaction",
    ),
    (
        r"mkdir \S+",
        r"fsync \.",
        "a new folder and its sync: it is empty, and whoever comes next finds it or makes it, as before the first create point",
    ),
    (
        r"fsync (outbox|receiver)/\w+\.jsonl",
        r"fsync (outbox|receiver)",
        "the two syncs of a new journal: nothing is written between them, and a process that dies loses nothing by a missing "
        "sync",
    ),
    (
        r"connect tcp",
        r"sendto tcp",
        "a connection that carried nothing: to the receiver it is as if the sender had died at its point before the request",
    ),
    (
        r"sendto tcp",
        r"accept4 tcp",
        "between two requests: the answer to the one is given, of the other nothing is read, as at the point before its "
        "arrival is recorded",
    ),
)


@dataclass(frozen=True, slots=True)
class Window:
    """One window: whose, between which calls, how often, and why it needs no point; None where nobody knows."""

    process: str
    first: str
    second: str
    count: int
    why: str | None

    @property
    def told(self) -> str:
        """`dispatcher: fsync outbox/a.jsonl → write outbox/b.jsonl`."""
        return f"{self.process}: {self.first} → {self.second}"

    def data(self) -> dict[str, Any]:
        """The window as the JSON value that is archived."""
        return {"process": self.process, "first": self.first, "second": self.second, "count": self.count, "why": self.why}


def windows(listings: Listings) -> list[Window]:
    """The windows of a run whose points were observed, in the order in which they came first."""
    counts: dict[tuple[str, str, str], int] = {}
    for each in listings:
        for process, calls in each.items():
            for first, second in _uncovered(calls):
                key = (process, first.told, second.told)
                counts[key] = counts.get(key, 0) + 1
    return [Window(*key, count, explained(*key[1:])) for key, count in counts.items()]


def _uncovered(calls: Sequence[Call]) -> list[tuple[Call, Call]]:
    found = []
    last: Call | None = None
    for call in calls:
        if call.name == POINT:
            last = None
        elif call.changes:
            if last is not None:
                found.append((last, call))
            last = call
    return found


def explained(first: str, second: str) -> str | None:
    """Why a window needs no point; None where it is not explained."""
    for before, behind, why in EXPLAINED:
        if re.fullmatch(before, first) and re.fullmatch(behind, second):
            return why
    return None


def write(path: Path, found: Sequence[Window]) -> None:
    """Archive the windows of one subject."""
    path.write_text(json.dumps({"windows": [window.data() for window in found]}, indent=1) + "\n", encoding="ascii")


def told(found: Sequence[Window]) -> Iterator[str]:
    """What a person is told: the windows that are not explained, each, and the others by their reasons."""
    open_ = [window for window in found if window.why is None]
    yield f"windows that no fault point covers: {len(found)}, {len(open_)} of them not explained"
    for window in open_:
        yield f"  {window.told}"
    for reason in dict.fromkeys(window.why for window in found if window.why is not None):
        own = [window for window in found if window.why == reason]
        yield f"  {len(own)}, for instance {own[0].told}: {reason}"
