"""Checkpoints: the journals as they were at a check step in the middle of a scenario.

Every journal that a process before the step had opened has its copy, each copy is the beginning of the final journal,
byte for byte and up to the end of a line, and the counts at that moment are the ones that the step, and the audit's
own table, ask for.
"""

from __future__ import annotations

from audit import order
from audit.case import WRITES, module_of
from audit.expectations.words import COUNTED
from audit.findings import show
from audit.journals import hold_prefix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case
    from audit.wire import Request

COUNTED_TYPES = {"effects": "effect", "receipts": "receipt", "history": "history", "arrivals": "arrival"}


def check(case: Case, begun: list[Request]) -> None:
    """Hold the checkpoint of every check step."""
    steps = [(number, step) for number, step in enumerate(case.plan["steps"], 1) if step["do"] == "check"]
    expected = case.expectation.checks if case.expectation is not None else None
    if expected is not None and [step["name"] for _, step in steps] != list(expected):
        names = show([step["name"] for _, step in steps])
        case.note("steps", f"the protocol has the checks {names}, the audit expects {show(list(expected))}")
    for number, step in steps:
        counts = _count(case, number, step, order.bounds(case, begun, number))
        case.checkpoints[step["name"]] = counts
        place = f"{case.folder}checkpoints/{step['name']}"
        for what, wanted in (
            ("the protocol asks for", tuple(step["counts"][name] for name in COUNTED)),
            ("the audit expects", (expected or {}).get(step["name"], counts)),
        ):
            if counts != wanted:
                case.note(place, f"holds {say(counts)}, but {what} {say(wanted)}")


def _count(case: Case, number: int, step: dict[str, Any], bounds: dict[str, order.Bounds]) -> tuple[int, int, int, int]:
    found = dict.fromkeys(COUNTED, 0)
    for folder, store in case.stores.items():
        opened = {
            name for process in store.processes if process["step"] < number for name in WRITES[module_of(process)]
        }  # fmt: skip
        for name, journal in store.journals.items():
            copy = f"{case.folder}checkpoints/{step['name']}/{folder}/{name}.jsonl"
            if name not in opened:
                continue
            case.files.add(copy)
            if copy not in case.tree.sizes:
                case.note(copy, "the copy is missing, though a process before the check had opened the journal")
            elif journal.path in case.tree.sizes:
                lines = hold_prefix(case.tree, copy, journal, case.note)
                least, most = bounds.get(journal.path, (0, lines))
                if not least <= lines <= most:
                    asked = f"{least} to {most}" if most < order.BEHIND_THE_END else f"at least {least}"
                    case.note(copy, f"has {lines} records, but the steps before the check wrote {asked}")
                if name in found:
                    kind = COUNTED_TYPES[name]
                    found[name] += sum(record.line <= lines for record in journal.of(kind))
    return found["effects"], found["receipts"], found["history"], found["arrivals"]


def say(counts: tuple[int, ...]) -> str:
    """Counts in words."""
    return ", ".join(f"{count} {name}" for count, name in zip(counts, COUNTED, strict=True))
