"""What producers and dispatchers print: one JSON line when they end by themselves, nothing when they died.

A dispatcher's line is the tally of its pass, which `dispatch` works out from the journals, and its exit code follows from
the tally: the gravest of what happened.
"""

from __future__ import annotations

from audit.case import label
from audit.findings import show
from audit.shapes import COUNT, FLAG, NAME, holds
from audit.strict_json import Malformed, encode, parse_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Ran
    from audit.findings import Note
    from audit.shapes import Shape

FATES = ("delivered", "unavailable", "conflict", "refused", "unknown")
SUMMARY: Shape = dict.fromkeys(
    ("intentions", "already_delivered", *FATES, "waiting", "not_attempted", "history_added"), COUNT
)  # fmt: skip
PRODUCED: Shape = {"intention": NAME, "created": FLAG}
CODES = {12: ("unknown",), 11: ("conflict",), 15: ("refused",), 10: ("unavailable", "waiting")}
"""The exit codes of a pass that left something undelivered, the gravest first, and what they tell."""


def printed(process: Ran, shape: Shape, note: Note) -> dict[str, Any] | None:
    """The one JSON line that a process printed, with the members of this shape."""
    place = f"processes.json {label(process)}.stdout"
    try:
        said = parse_document(process["stdout"].encode("utf-8", "surrogatepass"))
    except Malformed as problem:
        note(place, f"{show(process['stdout'])} is not the one JSON line that was expected: {problem}")
        return None
    text = "{" + ", ".join([f"{encode(name)}: {encode(value)}" for name, value in said.items()]) + "}\n"
    if text != process["stdout"]:
        note(place, f"{show(process['stdout'])} is not in the one form that its values have, {show(text)}")
    return said if holds(said, shape, note, place) else None


def hold_silence(process: Ran, note: Note, who: str = "a process that died") -> None:
    """A process that died, or never began its work, printed nothing."""
    if process["stdout"]:
        note(f"processes.json {label(process)}.stdout", f"is {show(process['stdout'])}, but {who} printed nothing")


def hold_summary(process: Ran, tally: dict[str, int], note: Note) -> None:
    """A summary is the tally of its pass, and the exit code follows from it."""
    place = f"processes.json {label(process)}"
    said = printed(process, SUMMARY, note)
    if said is None:
        return
    for name, count in tally.items():
        if said[name] != count:
            note(f"{place}.stdout", f"{name} is {said[name]}, but the journals have {count}")
    wanted = next((code for code, names in CODES.items() if any(tally[name] for name in names)), 0)
    if process["exit_code"] != wanted:
        note(f"{place}.exit_code", f"is {process['exit_code']}, but a pass that comes to {show(tally)} ends with {wanted}")
