"""The runs of a subject without faults, and what proves that its counter sees: a planted effect, and every effect once more.

Both runs must have held, come to the same points and left the same. Behind the second one's end an effect was planted at the
receiver, which must count; and a copy of what was durable then has each effect once more, which must be a duplicate.
"""

from __future__ import annotations

from audit.campaign_kept import END, JOURNALS, derive
from audit.campaign_state import RECEIVER
from audit.campaign_verdicts import violations
from audit.campaign_words import DUPLICATE
from audit.journals import read as read_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.campaign_kept import Derived, Folder
    from audit.campaign_plan import Case
    from audit.campaign_play import Setting
    from audit.campaign_state import States
    from audit.findings import Note

TWICE = "twice/"


def hold(states: States, folders: list[Folder], case: Case, setting: Setting, note: Note) -> Derived | None:
    """Hold the two runs without faults, and the effect that was planted into the second; what the first one gave."""
    first, planted = (derive(states, folder, (case, setting), note) for folder in folders)
    if first is None or planted is None or first.play.broken or planted.play.broken:
        return None
    name = case.subject.name
    for each, folder in ((first, folders[0]), (planted, folders[1])):
        if each.doubts:
            note(folder.path, f"is in doubt: {each.doubts[0]}")
    if first.violations:
        note(folders[0].path, f"{name} does not hold without any fault: {first.violations[0]}")
    if first.listed != planted.listed:
        note(folders[1].path, "the two runs without faults reached other points, or in another order")
    if not any(points for each in first.listed for points in each.values()):
        note(folders[0].path, "no point was reached: there is nothing to arm")
    _armed(first, setting, folders[0], note)
    more = sum(planted.state.effects.values()) - sum(first.state.effects.values())
    if more != 1:
        note(folders[1].path, f"an effect was planted, and {more} more are counted: the counter is blind")
    for lines in planted.state.lines.values():
        for place, sentence in lines.notes:
            note(folders[1].path + place, sentence)
    folders[1].expected.add("client/requests.jsonl")
    _same_beginnings(states, folders, note)
    _twice(states, folders[1], planted, note)
    return first


def _armed(first: Derived, setting: Setting, folder: Folder, note: Note) -> None:
    """Where lines are listed, each process of the run without faults was watched: nobody is left out unseen."""
    if setting.listing == "LINES_TO":
        for record in first.play.records:
            if not first.listed[record["step"] - 1].get(record["process"]):
                note(folder.path, f"{record['process']} listed no line in round {record['step']}: it was not watched")


def _twice(states: States, folder: Folder, planted: Derived, note: Note) -> None:
    """The copy of the second run has each effect once more, and that is a duplicate of each operation."""
    case, path = planted.play.case, folder.path + TWICE
    names = [name.removeprefix(TWICE) for name in folder.names if name.startswith(TWICE)]
    folder.expected |= {TWICE + name for name in names if name in JOURNALS}
    tables = f"{TWICE}tables.json" if case.subject.database else None
    if tables is not None:
        folder.expected.add(tables)
    state = states.read(path, names, case.subject, folder.path + tables if tables is not None else None, note)
    for name in sorted({*folder.names, *names} & {*JOURNALS}):
        paths = (folder.path + name, path + name)
        before, after = [(states.tree.read(each) if each in states.tree.sizes else None) or b"" for each in paths]
        if not after.startswith(before) or (name != RECEIVER[0] and before != after):
            note(path + name, "is no copy of that of run-2")
    for lines in state.lines.values():
        for place, sentence in lines.notes:
            note(path + place, sentence)
    broken = violations(case, state, True)
    for key in case.subject.operations:
        counted, wanted = state.effects.get(key, 0), planted.state.effects.get(key, 0) * (1 + case.most)
        told = f"{DUPLICATE}: {key} has {wanted} effects"
        if counted != wanted or not any(each.startswith(told) for each in broken):
            said = f"has {counted} effects of {key}, expected {wanted} and a duplicate"
            note(path, f"{said}: the counter is blind to a duplicate")


def _same_beginnings(states: States, folders: list[Folder], note: Note) -> None:
    """What the second run left is what the first one left, and then the planted effect at the receiver."""
    first, second = folders
    client = "client/requests.jsonl"
    if second.path + client in states.tree.sizes:
        journal = read_journal(states.tree, second.path + client, "requests", note)
        if [record.type for record in journal.records] != ["request", "response"] or journal.tail:
            note(second.path + client, "is not one request and its response: the planted effect")
    for name in sorted({*first.names, *second.names} & {*JOURNALS, END}):
        contents = []
        for folder in folders:
            data = states.tree.read(folder.path + name) if folder.path + name in states.tree.sizes else None
            contents.append(data or b"")
        rest = contents[1][len(contents[0]) :]
        grown = {RECEIVER[0]: 1, RECEIVER[1]: 2}.get(name, 0)
        if not contents[1].startswith(contents[0]) or rest.count(b"\n") != grown or not (grown or rest == b""):
            note(second.path + name, f"is not that of run-1 and {grown} records of the planted effect")
