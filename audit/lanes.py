"""All scenarios of a run on one machine: what their volatile fields share, and what the run's own account allows.

Not more scenarios than `jobs` run at a time, and they begin in the order of the catalogue, each as soon as one before it is
over. While they overlap, no two processes have the same pid and no two servers the same port. Nothing ends after the run
did, and no process used more time of the processors than there was. Otherwise nobody judges how long anything took.
"""

from __future__ import annotations

from audit.case import label
from audit.protocol import RUN
from audit.shapes import holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.findings import Note

ROUNDED_SECONDS = 0.001
"""The run's duration is rounded to this."""
TICK_SECONDS = 0.05
"""What a kernel that counts processor time in ticks may add to a short process."""


def check(records: list[dict[str, Any]], run: Any, note: Note) -> None:
    """Hold all processes, in the order of their scenarios, against each other and against the manifest's `run`."""
    _apart(records, "pid", note)
    _apart([record for record in records if record["ready"] is not None], "ready", note)
    if not holds(run, RUN, lambda place, sentence: None, ""):
        return  # that was told already
    _order(records, run["jobs"], note)
    for record in records:
        elapsed = record["ended_seconds"] - record["started_seconds"]
        used = record["resources"]["user_cpu_seconds"] + record["resources"]["system_cpu_seconds"]
        place = f"{label(record)} of {record['scenario']}"
        if record["ended_seconds"] > run["wall_seconds"] + ROUNDED_SECONDS:
            note(f"{place}.ended_seconds", f"is {record['ended_seconds']}, but the run took {run['wall_seconds']}")
        if used > max(elapsed, 0) * run["cores"] + TICK_SECONDS:
            said = f"is {used:.6f} s of {run['cores']} processors, but it lived for {elapsed:.6f} s"
            note(f"{place}.resources", said)


def _apart(records: list[dict[str, Any]], member: str, note: Note) -> None:
    """No two processes had the same at the same time."""
    by_value: dict[Any, list[dict[str, Any]]] = {}
    for record in records:
        by_value.setdefault(record[member], []).append(record)
    for value, holders in by_value.items():
        holders.sort(key=lambda record: record["started_seconds"])
        for before, after in zip(holders, holders[1:], strict=False):  # noqa: RUF007 (itertools is not loaded at the start)
            if after["started_seconds"] < before["ended_seconds"]:
                both = f"{label(before)} of {before['scenario']} and {label(after)} of {after['scenario']}"
                note(member, f"{both} had the {member} {value} at the same time")


def _order(records: list[dict[str, Any]], jobs: int, note: Note) -> None:
    """A scenario begins when all but `jobs` - 1 of those before it are over."""
    spans: dict[str, list[float]] = {}
    for record in records:
        span = spans.setdefault(record["scenario"], [record["started_seconds"], 0.0])
        span[0] = min(span[0], record["started_seconds"])
        span[1] = max(span[1], record["ended_seconds"])
    ends: list[float] = []
    for name, (start, end) in spans.items():
        running = len(ends) - _place(ends, start)
        if running >= jobs:
            said = f"began at {start}, when {running} before it were not over, but the run had --jobs {jobs}"
            note("started_seconds", f"{name} {said}")
        ends.insert(_place(ends, end), end)


def _place(ends: list[float], moment: float) -> int:
    """How many of these, which are sorted, are not after a moment."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if ends[middle] <= moment:
            low = middle + 1
        else:
            high = middle
    return low
