"""`processes.json`: every process against the step that started it, and its end against what was allowed.

The protocol's steps are walked in order; each `start` and `run` takes the next record of the scenario, and the record
must say what the step says: name, incarnation, command, fault, environment, and how it ended. The audit's own table
says the same a second time. Exit code 23 and an armed fault imply each other, and a halted process leaves its witness
line. Clocks, pids and ports are in `volatile`.
"""

from __future__ import annotations

from audit.case import HALTED, label
from audit.findings import show
from audit.shapes import ANYTHING, COUNT, NUMBER, OBJECT, POSITIVE, TEXT, holds, list_of, map_of, one_of, optional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case
    from audit.expectations.words import Expected
    from audit.findings import Note
    from audit.shapes import Shape

EXIT: Shape = {"code": optional(COUNT), "signal": optional(TEXT)}
FAULT: Shape = {"point": TEXT, "occurrence": POSITIVE}
RESOURCES: Shape = {"user_cpu_seconds": NUMBER, "system_cpu_seconds": NUMBER, "max_rss_bytes": COUNT}
PROCESS: Shape = {
    "scenario": TEXT, "process": TEXT, "incarnation": POSITIVE, "step": POSITIVE, "command": list_of(TEXT),
    "substitutions": map_of(TEXT), "environment": map_of(TEXT), "fault": optional(OBJECT), "expected_exit": OBJECT,
    "exit_code": ANYTHING, "signal": optional(TEXT), "ended_by": one_of("itself", "stop", "kill", "harness"),
    "stdout": TEXT, "ready": optional(TEXT), "stderr": TEXT, "pid": POSITIVE, "started_seconds": NUMBER,
    "ended_seconds": NUMBER, "resources": OBJECT,
}  # fmt: skip


def readable(document: dict[str, Any], note: Note) -> list[dict[str, Any]]:
    """The records that have the contract's shape; the others are noted and left out."""
    good = []
    for number, record in enumerate(document["processes"]):
        place = f"processes[{number}]"
        if not holds(record, PROCESS, note, place):
            continue
        parts = [
            holds(record["expected_exit"], EXIT, note, f"{place}.expected_exit"),
            holds(record["resources"], RESOURCES, note, f"{place}.resources"),
            record["fault"] is None or holds(record["fault"], FAULT, note, f"{place}.fault"),
        ]
        code = record["exit_code"]
        if code is not None and (type(code) is not int or not 0 <= code <= 255):
            note(f"{place}.exit_code", f"is {show(code)}, expected an integer from 0 to 255 or null")
            continue
        if (code is None) == (record["signal"] is None):
            note(place, f"has exit code {code} and signal {show(record['signal'])}, expected exactly one of them")
        if all(parts):
            good.append(record)
    return good


def hold_order(records: list[dict[str, Any]], scenarios: list[str], note: Note) -> None:
    """Records stand in the order of the scenarios, then of the steps, and name no other scenario."""
    place_of = {name: number for number, name in enumerate(scenarios)}
    last = (-1, 0)
    for record in records:
        at = place_of.get(record["scenario"])
        if at is None:
            note(label(record), f"belongs to {show(record['scenario'])}, a scenario that was not selected")
            continue
        if (at, record["step"]) <= last:
            note(label(record), f"step {record['step']} of {record['scenario']} stands after a later one, or twice")
        last = (at, record["step"])


def check(case: Case) -> None:
    """Hold the scenario's processes against the protocol's steps and against the audit's own table."""
    planned = _planned(case.plan["steps"])
    for (step, plan), record in zip(planned, case.processes, strict=False):
        _against_step(case, step, plan, record)
    if len(planned) > len(case.processes):
        for step, plan in planned[len(case.processes) :]:
            case.note("processes.json", f"the process {show(plan['process'])} of step {step} is missing")
    for record in case.processes[len(planned) :]:
        case.note("processes.json", f"{label(record)} of step {record['step']} was started by no step")
    if case.expectation is not None:
        _against_table(case, case.expectation.processes)
    for record in case.processes:
        _halt(case, record)


def _planned(steps: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Each step that starts a process, its number, and with it how the later steps end that process."""
    planned: list[tuple[int, dict[str, Any]]] = []
    running: dict[str, dict[str, Any]] = {}
    begun: dict[str, int] = {}
    for number, step in enumerate(steps, 1):
        name = step.get("process", "")
        if step["do"] in ("start", "run"):
            begun[name] = begun.get(name, 0) + 1
            plan = {**step, "incarnation": begun[name], "ended_by": "harness", "code": None, "signal": None}
            planned.append((number, plan))
            if step["do"] == "run":
                plan.update(ended_by="itself", code=step["exit_code"])
            else:
                running[name] = plan
        elif step["do"] != "check" and name in running:
            end: dict[str, dict[str, Any]] = {
                "stop": {"ended_by": "stop", "code": 0},
                "kill": {"ended_by": "kill", "signal": "SIGKILL"},
                "await": {"ended_by": "itself", "code": step.get("exit_code")},
            }
            running.pop(name).update(end[step["do"]])
    return planned


def _against_step(case: Case, step: int, plan: dict[str, Any], record: dict[str, Any]) -> None:
    halt_at = plan["halt_at"]
    point, _, occurrence = (halt_at or "").partition("#")
    wanted = {
        "process": plan["process"],
        "incarnation": plan["incarnation"],
        "step": step,
        "command": ["python", "-m", plan["module"], *plan["arguments"]],
        "environment": {"HALT_AT": halt_at} if halt_at else {},
        "fault": {"point": point, "occurrence": int(occurrence)} if halt_at else None,
        "expected_exit": {"code": plan["code"], "signal": plan["signal"]},
        "exit_code": plan["code"],
        "signal": plan["signal"],
        "ended_by": plan["ended_by"],
    }
    for member, value in wanted.items():
        if record[member] != value:
            place = f"processes.json {label(record)}.{member}"
            case.note(place, f"is {show(record[member])}, but step {step} of the protocol asks for {show(value)}")


def _against_table(case: Case, table: tuple[Expected, ...]) -> None:
    if len(table) != len(case.processes):
        sentence = f"has {len(case.processes)} processes, the audit expects {len(table)}"
        case.note("processes.json", sentence)
    for expected, record in zip(table, case.processes, strict=False):
        fault = record["fault"]
        halted_at = f"{fault['point']}#{fault['occurrence']}" if fault else None
        for member, actual, wanted in (
            ("process", record["process"], expected.process),
            ("incarnation", record["incarnation"], expected.incarnation),
            ("module", record["command"][2:3], [expected.module]),
            ("fault", halted_at, expected.fault),
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
