"""Checkpoints: the journals as they were at a check step in the middle of a scenario.

Every journal that a process before the step had opened has its copy, under the name that its folder had then; each copy is
the beginning of the final journal, byte for byte and up to the end of a line; it holds what was written by then, no effect
without its cause; and the counts at that moment are the ones that the step, and the audit's own table, ask for.
"""

from __future__ import annotations

from audit import order
from audit.case import COUNTED_TYPES, option
from audit.expectations.words import COUNTED
from audit.findings import show
from audit.journals import hold_prefix
from audit.plan import folder_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case
    from audit.journals import Journal, Record
    from audit.requests import Traffic


def check(case: Case, traffic: Traffic) -> None:
    """Hold the checkpoint of every check step."""
    steps = [(number, step) for number, step in enumerate(case.plan["steps"], 1) if step["do"] == "check"]
    expected = case.expectation.checks if case.expectation is not None else None
    if expected is not None and [step["name"] for _, step in steps] != list(expected):
        names = show([step["name"] for _, step in steps])
        case.note("steps", f"the protocol has the checks {names}, the audit expects {show(list(expected))}")
    for number, step in steps:
        counts = _count(case, number, step, traffic)
        case.checkpoints[step["name"]] = counts
        place = f"{case.folder}checkpoints/{step['name']}"
        for what, wanted in (
            ("the protocol asks for", tuple(step["counts"][name] for name in COUNTED)),
            ("the audit expects", (expected or {}).get(step["name"], counts)),
        ):
            if counts != wanted:
                case.note(place, f"holds {say(counts)}, but {what} {say(wanted)}")


def _count(case: Case, number: int, step: dict[str, Any], traffic: Traffic) -> tuple[int, int, int, int]:
    found = dict.fromkeys(COUNTED, 0)
    bounds = order.bounds(case, number)
    lines_of: dict[str, int] = {}
    for store in case.stores.values():
        earlier = [process for process in store.processes if process["step"] < number]
        opened = {name: process for process in earlier for name in process.writes()}
        for name, journal in store.journals.items():
            if name not in opened:
                continue
            named = folder_at(case.plan["steps"], option(opened[name], "--dir") or "", opened[name]["step"], number)
            copy = f"{case.folder}checkpoints/{step['name']}/{named}/{name}.jsonl"
            lines = lines_of[journal.path] = _copy(case, copy, journal, bounds[journal.path])
            if name in found:
                kind = COUNTED_TYPES[name]
                found[name] += sum(record.line <= lines for record in journal.of(kind))
    for cause, record in order.causes(case, traffic):
        if _holds(record, lines_of) and not _holds(cause, lines_of):
            case.note(f"{case.folder}checkpoints/{step['name']}", f"holds {record.place}, but not {cause.place}, its cause")
    return found["effects"], found["receipts"], found["history"], found["arrivals"]


def _holds(record: Record, lines_of: dict[str, int]) -> bool:
    """Whether the checkpoint has a record."""
    return record.line <= lines_of.get(record.place.rpartition(":")[0], 0)


def _copy(case: Case, copy: str, journal: Journal, bounds: order.Bounds) -> int:
    """Hold one copy; how many records it has."""
    case.files.add(copy)
    if copy not in case.tree.sizes:
        case.note(copy, "the copy is missing, though a process before the check had opened the journal")
        return 0
    if journal.path not in case.tree.sizes:
        return 0
    lines = hold_prefix(case.tree, copy, journal, case.note)
    least, most = bounds
    if not least <= lines <= most:
        asked = f"{least} to {most}" if most < order.BEHIND_THE_END else f"at least {least}"
        case.note(copy, f"has {lines} records, but the steps before the check wrote {asked}")
    return lines


def say(counts: tuple[int, ...]) -> str:
    """Counts in words."""
    return ", ".join(f"{count} {name}" for count, name in zip(counts, COUNTED, strict=True))
