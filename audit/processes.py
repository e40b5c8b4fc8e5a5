"""`processes.json`: every process against the step that started it, and its end against what was allowed.

Each process that the protocol's steps start (`plan`) takes the next record of the scenario, and the record must say what
the step says: name, incarnation, command, fault, pause, environment, and how it ended. The audit's own table says the same
a second time. Exit code 23 and an armed fault imply each other; a halted or paused process leaves its witness line.
Clocks, pids and ports are in `volatile`.
"""

from __future__ import annotations

from audit.case import HALTED, label
from audit.findings import show
from audit.given_up import was_ended
from audit.shapes import (
    ANYTHING,
    COUNT,
    NUMBER,
    OBJECT,
    POSITIVE,
    TEXT,
    Kind,
    holds,
    in_order,
    list_of,
    map_of,
    one_of,
    optional,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case
    from audit.expectations.words import Expected
    from audit.findings import Note
    from audit.plan import Launch
    from audit.shapes import Shape

CODE = Kind("an integer from 0 to 255", lambda value: type(value) is int and 0 <= value <= 255)
PID = Kind("an integer from 1 that a process id can be", lambda value: type(value) is int and 0 < value < 2**31)
EXIT: Shape = {"code": optional(CODE), "signal": optional(TEXT)}
FAULT: Shape = {"point": TEXT, "occurrence": POSITIVE}
RESOURCES: Shape = {"user_cpu_seconds": NUMBER, "system_cpu_seconds": NUMBER, "max_rss_bytes": COUNT}
PROCESS: Shape = {
    "scenario": TEXT, "process": TEXT, "incarnation": POSITIVE, "step": POSITIVE, "command": list_of(TEXT),
    "substitutions": map_of(TEXT), "environment": map_of(TEXT), "fault": optional(OBJECT), "pause": optional(OBJECT),
    "expected_exit": OBJECT,
    "exit_code": ANYTHING, "signal": optional(TEXT), "ended_by": one_of("itself", "stop", "kill", "harness"),
    "stdout": TEXT, "ready": optional(TEXT), "stderr": TEXT, "pid": PID, "started_seconds": NUMBER,
    "ended_seconds": NUMBER, "resources": OBJECT,
}  # fmt: skip


def readable(document: dict[str, Any], note: Note, later: Note) -> list[dict[str, Any]]:
    """The records that have the contract's shape; the others are noted and left out.

    Of a process that the harness ended nobody knows how it should have ended: that is noted `later`, behind why it was.
    """
    good = []
    for number, record in enumerate(document["processes"]):
        place = f"processes[{number}]"
        if not holds(record, PROCESS, note, place):
            continue
        parts = [
            holds(record["expected_exit"], EXIT, note, f"{place}.expected_exit"),
            holds(record["resources"], RESOURCES, note, f"{place}.resources"),
            record["fault"] is None or holds(record["fault"], FAULT, note, f"{place}.fault"),
            record["pause"] is None or holds(record["pause"], FAULT, note, f"{place}.pause"),
        ]
        code = record["exit_code"]
        if code is not None and (type(code) is not int or not 0 <= code <= 255):
            note(f"{place}.exit_code", f"is {show(code)}, expected an integer from 0 to 255 or null")
            continue
        if (code is None) == (record["signal"] is None):
            note(place, f"has exit code {code} and signal {show(record['signal'])}, expected exactly one of them")
        if not all(parts):
            continue
        expected = record["expected_exit"]
        if (expected["code"] is None) == (expected["signal"] is None):
            said = f"has code {expected['code']} and signal {show(expected['signal'])}, expected exactly one of them"
            (later if was_ended(record) else note)(f"{place}.expected_exit", said)
        good.append(record)
    return good


def hold_order(records: list[dict[str, Any]], plans: list[dict[str, Any]], note: Note) -> None:
    """Records stand in the order of the scenarios, then of the steps, and name no other scenario."""
    place_of = {f"{plan['section']}/{plan['name']}": number for number, plan in enumerate(plans)}
    together = {
        (at, step) for at, plan in enumerate(plans) for step, each in enumerate(plan["steps"], 1) if each["do"] == "together"
    }
    last = (-1, 0)
    for record in records:
        at = place_of.get(record["scenario"])
        if at is None:
            note(label(record), f"belongs to {show(record['scenario'])}, a scenario that was not selected")
            continue
        this = (at, record["step"])
        if this < last or (this == last and this not in together):
            note(label(record), f"step {record['step']} of {record['scenario']} stands after a later one, or twice")
        last = this


def check(case: Case) -> None:
    """Hold the scenario's processes against the protocol's steps and against the audit's own table."""
    for plan, record in zip(case.launches, case.processes, strict=False):
        _against_step(case, plan, record)
    for plan in case.launches[len(case.processes) :]:
        case.note("processes.json", f"the process {show(plan.process)} of step {plan.step} is missing")
    for record in case.processes[len(case.launches) :]:
        case.note("processes.json", f"{label(record)} of step {record['step']} was started by no step")
    if case.expectation is not None:
        _against_table(case, case.expectation.processes)
    for record in case.processes:
        _halt(case, record)
        _pause(case, record)


def parsed(armed: str | None) -> dict[str, Any] | None:
    """`POINT#OCCURRENCE`, or `POINT` for its first occurrence, as a record has it."""
    point, mark, occurrence = (armed or "").partition("#")
    return {"point": point, "occurrence": int(occurrence) if mark else 1} if armed else None


def _against_step(case: Case, plan: Launch, record: dict[str, Any]) -> None:
    armed = {"HALT_AT": plan.halt_at, "PAUSE_AT": plan.pause_at}
    wanted: dict[str, Any] = {
        "process": plan.process,
        "incarnation": plan.incarnation,
        "step": plan.step,
        "command": ["python", "-m", plan.module, *plan.arguments],
        "environment": {name: value for name, value in armed.items() if value},
        "fault": parsed(plan.halt_at),
        "pause": parsed(plan.pause_at),
        "expected_exit": {"code": plan.code, "signal": plan.signal},
        "exit_code": plan.code,
        "signal": plan.signal,
        "ended_by": plan.ended_by,
    }
    for member, value in wanted.items():
        if record[member] != value:
            place = f"processes.json {label(record)}.{member}"
            case.note(place, f"is {show(record[member])}, but step {plan.step} of the protocol asks for {show(value)}")
    in_order(record["environment"], list(wanted["environment"]), case.note, f"processes.json {label(record)}.environment")


def _against_table(case: Case, table: tuple[Expected, ...]) -> None:
    if len(table) != len(case.processes):
        sentence = f"has {len(case.processes)} processes, the audit expects {len(table)}"
        case.note("processes.json", sentence)
    for expected, record in zip(table, case.processes, strict=False):
        for member, actual, wanted in (
            ("process", record["process"], expected.process),
            ("incarnation", record["incarnation"], expected.incarnation),
            ("module", record["command"][2:3], [expected.module]),
            ("fault", record["fault"], parsed(expected.fault)),
            ("pause", record["pause"], parsed(expected.pause)),
            ("exit_code", record["exit_code"], expected.code),
            ("signal", record["signal"], expected.signal),
            ("ended_by", record["ended_by"], expected.ended_by),
        ):
            if actual != wanted:
                place = f"processes.json {label(record)}.{member}"
                case.note(place, f"is {show(actual)}, but the audit's own table has {show(wanted)}")


def _halt(case: Case, record: dict[str, Any]) -> None:
    """Exit code 23, an armed fault and the witness line go together."""
    place = f"processes.json {label(record)}"
    fault, lines = record["fault"], record["stderr"].split("\n")
    halted = record["exit_code"] == HALTED
    if halted and fault is None:
        case.note(f"{place}.exit_code", "is 23, the injected halt, though no fault was armed")
    if fault is None:
        if any(line.startswith("halt(23)") for line in lines):
            case.note(f"{place}.stderr", "has the witness line of a halt, though no fault was armed")
        return
    if not halted:
        case.note(f"{place}.exit_code", f"is {show(record['exit_code'])}, but a fault was armed: expected 23")
    witness = f"halt(23) at {fault['point']}#{fault['occurrence']}"
    if lines[-2:] != [witness, ""] and lines[-1] != witness:
        case.note(f"{place}.stderr", f"does not end with the witness line {show(witness)}: {show(record['stderr'][-80:])}")


def _pause(case: Case, record: dict[str, Any]) -> None:
    """A process that was to pause says where it did, once; nobody else does."""
    pause = record["pause"]
    wanted = [f"paused at {pause['point']}#{pause['occurrence']}"] if pause else []
    said = [line for line in record["stderr"].split("\n") if line.startswith("paused at ")]
    if said != wanted:
        place = f"processes.json {label(record)}.stderr"
        case.note(place, f"has the witness lines {show(said)} of a pause, expected {show(wanted)}")
