"""The volatile fields of processes: they differ from run to run, and still not everything is possible.

Ports are the ones that the READY lines name, clock readings follow the order of the steps, and a pid belongs to one
process at a time. Types were held before. How long anything took and how much it used is not judged.
"""

from __future__ import annotations

from audit.case import label
from audit.findings import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case
    from audit.findings import Note

READY = "READY 127.0.0.1:"


def check_ports(case: Case) -> None:
    """Every placeholder has its port, and a server's READY line names the port that was put in for it."""
    ports: dict[str, str] = {}
    servers = {step["process"] for step in case.plan["steps"] if step["do"] == "start"}
    for record in case.processes:
        place = f"processes.json {label(record)}"
        asked = {name for text in record["command"] for name in _placeholders(text)}
        if asked != set(record["substitutions"]):
            given = show(sorted(record["substitutions"]))
            case.note(f"{place}.substitutions", f"names {given}, but the command asks for {show(sorted(asked))}")
        for name, port in record["substitutions"].items():
            if not (port.isascii() and port.isdigit() and port[0] != "0" and 0 < int(port[:6]) < 65536):
                case.note(f"{place}.substitutions", f"{show(port)} is no port")
            if ports.setdefault(name, port) != port:
                case.note(f"{place}.substitutions", f"{show(name)} is {show(port)}, before it was {show(ports[name])}")
    for record in case.processes:
        place = f"processes.json {label(record)}.ready"
        if record["process"] not in servers:
            if record["ready"] is not None:
                case.note(place, f"is {show(record['ready'])}, expected null: no step started it as a server")
            continue
        port = ports.get(f"{record['process']}.port", "")
        if record["ready"] != READY + port:
            case.note(place, f"is {show(record['ready'])}, expected {show(READY + port)}")


def _placeholders(text: str) -> list[str]:
    return [part.partition("}")[0] for part in text.split("{")[1:] if ".port}" in part]


def check_clock(case: Case) -> None:
    """A process starts before it ends, and a step begins when the one before is done."""
    by_step = {record["step"]: record for record in case.processes}
    running: dict[str, dict[str, Any]] = {}
    clock, after = 0.0, "the run"
    for number, step in enumerate(case.plan["steps"], 1):
        begins = step["do"] in ("start", "run")
        record = by_step.get(number) if begins else running.pop(step.get("process", ""), None)
        if record is None:
            continue
        place = f"processes.json {label(record)}"
        if begins:
            clock = _advance(case.note, f"{place}.started_seconds", record["started_seconds"], clock, after)
            after = f"the start of {label(record)}"
            if record["ended_seconds"] < record["started_seconds"]:
                case.note(f"{place}.ended_seconds", "is before started_seconds")
        if step["do"] == "start":
            running[step["process"]] = record
        elif step["do"] == "await":
            clock = max(clock, record["ended_seconds"])
        else:
            clock = _advance(case.note, f"{place}.ended_seconds", record["ended_seconds"], clock, after)
            after = f"the end of {label(record)}"


def _advance(note: Note, place: str, reading: float, clock: float, after: str) -> float:
    if reading < clock:
        note(place, f"is {reading}, but by the order of the steps it comes after {after}, {clock}")
    return max(reading, clock)


def check_pids(records: list[dict[str, Any]], note: Note) -> None:
    """No two processes had the same pid at the same time."""
    by_pid: dict[int, list[dict[str, Any]]] = {}
    for record in records:
        by_pid.setdefault(record["pid"], []).append(record)
    for pid, holders in by_pid.items():
        holders.sort(key=lambda record: record["started_seconds"])
        for before, after in zip(holders, holders[1:], strict=False):  # noqa: RUF007 (itertools is not loaded at the start)
            if after["started_seconds"] < before["ended_seconds"]:
                both = f"{label(before)} of {before['scenario']} and {label(after)} of {after['scenario']}"
                note("pid", f"{both} had the pid {pid} at the same time")
