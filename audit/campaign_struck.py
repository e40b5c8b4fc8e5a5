"""Listings of system calls in the folders of a campaign: which there must be, and what follows from them.

Of a case the process that was struck has one, and it must show the strike; of a run without faults every process has one.
Beside the invariants of every case these hold where a call was struck: nothing is recorded on the strength of a record that
could not be written or synced, who could not write ends with a code other than 0, and a program ends as it declares, without a
traceback.
"""

from __future__ import annotations

from audit import campaign_calls
from audit.campaign_words import DECLARED_CODES, LOST, MAY_FIND_NOTHING, NOTHING_TO_DO, ON_FILES, REFUSED_NOT, UNDECLARED
from audit.strict_json import Malformed, laid_out, parse_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from audit.campaign_calls import Call
    from audit.campaign_kept import Folder
    from audit.campaign_plan import Case, Fault
    from audit.campaign_play import Play, Record
    from audit.campaign_state import States
    from audit.findings import Note

    Called = list[dict[str, list[Call]]]

TRACEBACK = "Traceback (most recent call last)"
WINDOWS = "windows.json"


def listings(states: States, folder: Folder, played: tuple[Case, int], note: Note) -> Called:
    """The calls that each round's processes listed, in the order of the roles."""
    case, rounds = played
    found: Called = []
    for number in range(1, rounds + 1):
        listed: dict[str, list[Call]] = {}
        for role in case.subject.roles:
            name = f"calls/{number}.{role['process']}"
            if name in folder.names:
                folder.expected.add(name)
                listed[role["process"]] = campaign_calls.read(states.tree.read(folder.path + name) or b"", note, name)
        found.append(listed)
    return found


def hold_marks(called: Called, listed: list[dict[str, list[str]]], note: Note) -> None:
    """The points that stand between the calls are those that the processes listed."""
    for number, (calls, points) in enumerate(zip(called, listed, strict=True), 1):
        for process, told in points.items():
            marks = [call.target for call in calls.get(process, []) if call.name == campaign_calls.POINT]
            if marks != told:
                note(f"calls/{number}.{process}", f"has other points between its calls than points/{number}.{process} has")


def followed(play: Play, called: Called, path: str, note: Note) -> list[str]:
    """What the strikes of a case broke; a strike that no listing shows is a doubt."""
    found: list[str] = []
    struck = [(number, fault) for number, fault in play.case.faults() if fault.call]
    for number, fault in struck:
        record = next((each for each in play.records if (each["process"], each["step"]) == (fault.process, number)), None)
        if record is None or number > len(called):
            continue
        calls = called[number - 1].get(fault.process)
        at = None if calls is None else campaign_calls.struck(calls, fault.call, fault.number, fault.error)
        if calls is None or at is None:
            play.doubts.append(f"round {number}: {fault.process} was to be struck at {fault.setting} and was not")
            continue
        found += [f"{LOST}: {sentence}" for sentence in _lost(play, fault, (calls, at), record)]
    if struck:
        found += [f"{UNDECLARED}: {sentence}" for record in play.records for sentence in _undeclared(record)]
    return found


def _lost(play: Play, fault: Fault, struck: tuple[list[Call], int], record: Record) -> Iterator[str]:
    calls, at = struck
    said = campaign_calls.relied_on(fault.process, calls, at, fault.error)
    if said is not None:
        yield said
    role, subject = play.case.subject.role(fault.process), play.case.subject
    refused = fault.error not in REFUSED_NOT and fault.call in ON_FILES and not subject.database
    if refused and role is not None and not role["server"] and record["exit_code"] == 0:
        yield f"{fault.process} ended with 0, though {calls[at].told} had failed"


def _undeclared(record: Record) -> Iterator[str]:
    who = f"{record['process']} (incarnation {record['incarnation']})"
    if TRACEBACK in record["stderr"]:
        yield f"{who}: it said a traceback: {record['stderr'].strip().splitlines()[-1]}"
    elif record["signal"] not in (None, "SIGKILL") and record["ended_by"] == "itself":
        yield f"{who}: it ended with {record['signal']}, which nobody had sent"
    elif record["exit_code"] is not None and not _declared(record):
        yield f"{who}: it ended with {record['exit_code']}, which it does not declare"


def _declared(record: Record) -> bool:
    code, module = record["exit_code"], record["command"][2:3]
    return code in DECLARED_CODES or (code == NOTHING_TO_DO and module[0] in MAY_FIND_NOTHING)


def hold_recorded(states: States, runs: list[Called], windows: tuple[str, Called], note: Note) -> None:
    """The two recorded runs made the same calls, which can be told apart, and the windows are those of the run with points."""
    first, second = [[{name: list(map(_told, calls)) for name, calls in each.items()} for each in run] for run in runs]
    if first != second:
        note("calls-2/", "the two recorded runs made other calls, or in another order")
    for number, each in enumerate(runs[0], 1):
        for process, calls in each.items():
            for name in campaign_calls.threads(calls):
                said = f"{name} is called by more than one thread: its number is no one place"
                note(f"calls-1/calls/{number}.{process}", said)
    path, observed = windows
    data = states.tree.read(path) if path in states.tree.sizes else None
    if data is None:
        note(WINDOWS, "is missing, or no regular file")
        return
    try:
        told = parse_document(data)
    except Malformed as problem:
        note(WINDOWS, f"cannot be read: {problem}")
        return
    if told != {"windows": campaign_calls.windows(observed)} or not laid_out(data, told):
        note(WINDOWS, "has other windows, or in another layout, than follow from the calls and points of run-1")


def _told(call: Call) -> tuple[object, ...]:
    return (call.thread, call.name, call.target, call.size, call.offset, call.changes, call.result)
