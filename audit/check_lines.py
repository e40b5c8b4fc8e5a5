"""One line of `results.jsonl` of a check: its one form, and whether what it says goes with itself.

Of a worker everything but the doubts is derived: effects from the arrivals, the verdict from the effects, from the canary, and
from whether the job is still stored. Of a receiver the counts are held against the words.
"""

from __future__ import annotations

from audit.check_words import (
    DUPLICATED,
    IN_DOUBT,
    LINE,
    LOST,
    MET,
    OF_RECEIVER,
    OF_WORKER,
    ONE_EFFECT,
    POINT,
    RECEIVER,
    ROLES,
    SEVERITIES,
    SKIPPED,
    STUCK,
    SYSCALL,
    UNCLEAR,
    UNKEYED,
    VIOLATED,
    effects,
    of_case,
)
from audit.findings import show
from audit.shapes import (
    COUNT,
    FLAG,
    LIST,
    NAME,
    NUMBER,
    OBJECT,
    POSITIVE,
    STATUS,
    TEXT,
    holds,
    list_of,
    map_of,
    one_of,
    optional,
)
from audit.strict_json import Malformed, compact, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.findings import Note
    from audit.shapes import Shape

HALTED, KILLED = 23, "SIGKILL"
OF_MODE = {"lines": LINE, "syscalls": SYSCALL, "points": POINT, "receiver": RECEIVER}
ROUNDED_SECONDS = 0.002
ENDED_FIRST = "it ended by itself in the moment in which it was to die"
FAULT: Shape = {
    "kind": one_of(LINE, SYSCALL, POINT, RECEIVER), "where": NAME, "function": optional(NAME), "occurrence": POSITIVE,
}  # fmt: skip
OF_A_WORKER: Shape = {
    "case": NAME, "role": one_of(*ROLES), "fault": OBJECT, "then": optional(OBJECT), "ended": OBJECT, "fired": FLAG,
    "arrivals": LIST, "effects": map_of(OBJECT), "canary": NAME, "stored": optional(FLAG),
    "stored_by": optional(one_of("pending", "bytes")), "recovered_seconds": optional(NUMBER), "watched_seconds": NUMBER,
    "verdict": one_of(*OF_WORKER), "reasons": list_of(NAME), "notes": list_of(NAME), "confirmed": optional(FLAG),
}  # fmt: skip
ENDED: Shape = {"exit_code": optional(COUNT), "signal": optional(NAME)}
ARRIVAL: Shape = {
    "job": optional(NAME), "key": optional(TEXT), "status": optional(STATUS), "applied": FLAG, "after_restart": FLAG,
    "seconds": NUMBER,
}  # fmt: skip
EFFECT: Shape = {"keyed": COUNT, "unkeyed": COUNT}
OF_A_RECEIVER: Shape = {
    "expectation": NAME, "source": NAME, "severity": one_of(*SEVERITIES), "verdict": one_of(*OF_RECEIVER), "expected": TEXT,
    "seen": TEXT, "exchanges": LIST, "effects": OBJECT, "fault": optional(OBJECT), "notes": list_of(NAME),
}  # fmt: skip
EXCHANGE: Shape = {
    "request": OBJECT, "status": optional(STATUS), "body": optional(TEXT), "error": optional(TEXT), "seconds": NUMBER,
}  # fmt: skip
REQUEST: Shape = {"method": NAME, "path": NAME, "headers": LIST, "body": TEXT}
COUNTED: Shape = {"before": optional(COUNT), "after": optional(COUNT)}


def read(data: bytes, complete: bool, is_worker: bool, note: Note, place: str) -> dict[str, Any] | None:
    """The result that a line holds; None, with findings, where it cannot be worked with."""
    if not complete:
        note(place, "the last line does not end with a newline")
    try:
        line = parse(data)
    except Malformed as problem:
        note(place, f"the line is no result: {problem}")
        return None
    if not (_worker_form(line, note, place) if is_worker else _receiver_form(line, note, place)):
        return None
    if compact(line).encode("ascii") != data:
        note(place, "the line is not in the one form that its result has")
    return line


def _worker_form(line: dict[str, Any], note: Note, place: str) -> bool:
    if not holds(line, OF_A_WORKER, note, f"{place} "):
        return False
    good = [
        holds(line["fault"], FAULT, note, f"{place} fault"),
        line["then"] is None or holds(line["then"], {"role": one_of(*ROLES), **FAULT}, note, f"{place} then"),
        holds(line["ended"], ENDED, note, f"{place} ended"),
    ]
    good += [holds(each, ARRIVAL, note, f"{place} arrivals[{at}]") for at, each in enumerate(line["arrivals"])]
    good += [holds(each, EFFECT, note, f"{place} effects.{show(job)}") for job, each in line["effects"].items()]
    return all(good)


def _receiver_form(line: dict[str, Any], note: Note, place: str) -> bool:
    if not holds(line, OF_A_RECEIVER, note, f"{place} "):
        return False
    good = [holds(line["effects"], COUNTED, note, f"{place} effects")]
    for at, each in enumerate(line["exchanges"]):
        here = f"{place} exchanges[{at}]"
        good.append(holds(each, EXCHANGE, note, here) and holds(each["request"], REQUEST, note, f"{here}.request"))
    return all(good)


def hold_worker(line: dict[str, Any], note: Note, place: str) -> None:
    """Hold a line of a worker against itself."""
    counted = effects(line["arrivals"])
    for job, told in line["effects"].items():
        keyed, unkeyed = counted.pop(job, (0, 0))
        if (told["keyed"], told["unkeyed"]) != (keyed, unkeyed):
            said = f"is {told['keyed']} with keys and {told['unkeyed']} without, but the arrivals come to {keyed} and {unkeyed}"
            note(f"{place} effects.{show(job)}", said)
    if not [job for job in line["effects"] if job != line["canary"]]:
        note(f"{place} effects", "tell of no job but the canary")
    for job in counted:
        note(f"{place} effects", f"has no {show(job)}, which arrived")
    if list(line["effects"]) != sorted(line["effects"]):
        note(f"{place} effects", "are not sorted by job")
    followed = of_case(line)
    if line["verdict"] == IN_DOUBT and followed != IN_DOUBT and not line["reasons"]:
        note(f"{place} verdict", f"is {IN_DOUBT} without a reason, but what was seen makes it {followed}")
    if line["verdict"] not in (IN_DOUBT, followed):
        note(f"{place} verdict", f"is {line['verdict']}, but what was seen makes it {followed}")
    _ending(line, note, place)
    _fits_its_name(line, note, place)


def _ending(line: dict[str, Any], note: Note, place: str) -> None:
    """How the process ended, what is stored, and how long it took go with the rest."""
    ended = (line["ended"]["exit_code"], line["ended"]["signal"])
    dies = {LINE: ((HALTED, None), (None, KILLED)), POINT: ((HALTED, None),), SYSCALL: ((None, KILLED),)}
    wanted = dies.get(line["fault"]["kind"])
    first = line["fault"]["kind"] == LINE and ended[1] is None and ENDED_FIRST in line["notes"]
    if wanted is not None and line["fired"] and ended not in wanted and not first:
        note(f"{place} ended", f"is {show(line['ended'])}, but who died at a {line['fault']['kind']} ends otherwise")
    if (line["stored"] is None) != (line["stored_by"] is None):
        note(f"{place} stored_by", f"is {show(line['stored_by'])} beside a stored of {show(line['stored'])}")
    if line["confirmed"] is not None and line["verdict"] != UNKEYED:
        note(f"{place} confirmed", f"is {show(line['confirmed'])}, but it is {line['verdict']}, which nobody confirms")
    _recovered(line, note, place)
    times = [each["seconds"] for each in line["arrivals"]]
    if times != sorted(times):
        note(f"{place} arrivals", "are not in the order of their times")


def _recovered(line: dict[str, Any], note: Note, place: str) -> None:
    """It recovered if the job came after the restart and not before; and not later than it came."""
    came = [each for each in line["arrivals"] if each["applied"] and each["job"] not in (None, line["canary"])]
    late = [each["seconds"] for each in came if each["after_restart"]]
    wanted = bool(late) and len(late) == len(came) and line["verdict"] not in (LOST, STUCK)
    told = line["recovered_seconds"]
    if (told is not None) != wanted:
        note(f"{place} recovered_seconds", f"is {show(told)}, but the arrivals and the verdict say otherwise")
    elif told is not None and told > late[0] + ROUNDED_SECONDS:
        note(f"{place} recovered_seconds", f"is {told}, but it came after {late[0]}")


def hold_to_plan(line: dict[str, Any], plan: dict[str, Any], note: Note, place: str) -> None:
    """A worker's line is one that such a check plays: of a command that the target has, of this mode and depth."""
    worker, options = plan["target"]["worker"], plan["options"]
    faults = [{"role": line["role"], **line["fault"]}, *([line["then"]] if line["then"] is not None else [])]
    for fault in faults:
        if fault["role"] != RECEIVER and type(worker) is dict and worker.get(fault["role"]) is None:
            note(f"{place} role", f"is {fault['role']}, but the target has no such command")
    only, kind = options.get("only"), OF_MODE.get(options.get("mode"))
    if only is not None:
        if line["case"] != only:
            note(f"{place} case", f"is {show(line['case'])}, but {show(only)} alone was asked for")
        return
    if kind is not None and faults[0]["kind"] != kind:
        note(f"{place} fault.kind", f"is {faults[0]['kind']}, but the mode was {options['mode']}")
    if options.get("depth") == 1 and line["then"] is not None:
        note(f"{place} then", "is there, but the depth was 1")


def _fits_its_name(line: dict[str, Any], note: Note, place: str) -> None:
    """The name of a case tells its faults: who, how often, and of a line its number."""
    names = line["case"].split("+")
    faults = [{"role": line["role"], **line["fault"]}, *([line["then"]] if line["then"] is not None else [])]
    if len(names) != len(faults):
        note(f"{place} case", f"tells of {len(names)} faults, but the line of {len(faults)}")
        return
    for name, fault in zip(names, faults, strict=True):
        named, _, occurrence = name.partition("#")
        role, _, at = named.partition(":")
        number = fault["where"].rpartition(":")[2]
        wanted = at.rpartition(":")[2] == (number if fault["kind"] == LINE else fault["where"])
        if role != fault["role"] or not wanted or (occurrence or "1") != str(fault["occurrence"]):
            note(f"{place} case", f"is {show(name)}, but the line has {show(fault)}")


def hold_receiver(line: dict[str, Any], note: Note, place: str) -> None:
    """Hold a line of a receiver against itself."""
    before, after = line["effects"]["before"], line["effects"]["after"]
    if (before is None) != (after is None):
        note(f"{place} effects", "were counted only once")
    gone = line["verdict"] == VIOLATED and line["severity"] == LOST
    if before is not None and after is not None and after < before and not gone:
        note(f"{place} effects", f"fell from {before} to {after}: what has happened does not go away")
    if line["verdict"] == SKIPPED and not line["seen"]:
        note(f"{place} seen", "is empty, but whoever skips says why")
    if line["expectation"].partition(":")[0] in ONE_EFFECT and before is not None and after is not None:
        _one_effect(line, after - before, note, place)


def _one_effect(line: dict[str, Any], count: int, note: Note, place: str) -> None:
    """What was counted goes with the verdict of an expectation of one effect."""
    verdict = f"{line['verdict']} ({line['severity']})" if line["verdict"] == VIOLATED else line["verdict"]
    wanted = {MET: count == 1, f"{VIOLATED} ({LOST})": count <= 0, f"{VIOLATED} ({DUPLICATED})": count > 1}
    if not wanted.get(verdict, count < 2 or verdict == UNCLEAR):
        note(f"{place} verdict", f"is {verdict}, but the counted effects rose by {count}")
    if line["verdict"] == MET and not any(each["status"] is not None and each["status"] < 300 for each in line["exchanges"]):
        note(f"{place} exchanges", "have no success, so nothing shows that it was met")
