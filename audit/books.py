"""The books of a dispatch outbox: each export against what its processes must have written, member for member.

From the steps of the scenario and the journals of its receivers alone the audit keeps books of its own (`books_play`). What
an export says is held in the words of the trade first (`books_checks`), then as a whole against those books: every member of
every row, every transition and every event, in their order. What each program printed, and its exit code, follow from the same
play. No check asks which scenario it is: commands and steps decide.
"""

from __future__ import annotations

from audit import books_checks
from audit.books_play import Play
from audit.case import label
from audit.findings import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case, Ran
    from audit.findings import Note

NAMES = {"dispatch_outbox": "row", "status_transitions": "transition", "admin_events": "event"}
"""The tables of an export, and what one of their items is called."""


def hold(case: Case, exports: dict[str, dict[str, Any]], store: str) -> None:
    """Hold the scenario's exports, by their names, and what its processes printed; they worked on this store.

    An export has every member of its kind; one that has not was told of where it was read, and is left out here.
    Every arrival that a scan sent gets the steps between which that scan ran, for the checks of the receivers.
    """
    made = [(number, step) for number, step in enumerate(case.plan["steps"], 1) if step["do"] == "export"]
    for number, step in made:
        if step["name"] in exports:
            books_checks.check(case, exports[step["name"]], _place(case, step), step, case.first.at(number))
    play = Play(case, store)
    play.run()
    for process, ran in play.processes:
        if ran is not None and process.code is not None:
            _ended(case, process.code, process.stdout, ran)
    for number, step in made:
        if step["name"] in exports and number in play.documents:
            _compare(exports[step["name"]], play.documents[number], _place(case, step), case.first.at(number))


def _place(case: Case, step: dict[str, Any]) -> str:
    return f"{case.folder}exports/{step['name']}.json"


def _ended(case: Case, code: int, stdout: str, ran: Ran) -> None:
    """A process printed and ended as its work on the books makes it."""
    for member, wanted in (("exit_code", code), ("stdout", stdout)):
        if ran[member] != wanted:
            place = f"processes.json {label(ran)}.{member}"
            sentence = f"is {show(ran[member])}, but its work on the books gives {show(wanted)}"
            case.first.note(place, sentence, ran["step"])


def _compare(found: dict[str, Any], wanted: dict[str, Any], place: str, note: Note) -> None:
    """An export is, member for member, what the audit's own books hold."""
    for table, value in wanted.items():
        items = found[table]
        if table not in NAMES:
            if not _same(items, value):
                note(f"{place} {table}", f"is {show(items)}, expected {show(value)}")
            continue
        if len(items) != len(value):
            note(f"{place} {table}", f"has {len(items)} {NAMES[table]}s, but the processes wrote {len(value)}")
        for number, (item, other) in enumerate(zip(items, value, strict=False)):
            if not _same(item, other):
                _item(item, other, f"{place} {table}[{number}]", note)
                break  # what follows is compared with the wrong one where something is missing


def _item(item: Any, wanted: dict[str, Any], place: str, note: Note) -> None:
    """Say which members of a row, a transition or an event are not what was written."""
    if type(item) is not dict or list(item) != list(wanted):
        note(place, f"is {show(item)}, but the processes wrote {show(wanted)}")
        return
    for member, value in wanted.items():
        if not _same(item[member], value):
            note(f"{place}.{member}", f"is {show(item[member])}, but the processes wrote {show(value)}")


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal, with numbers of the same type, and members in the same order."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return list(one) == list(other) and all(_same(one[name], other[name]) for name in other)
    return bool(one == other)
