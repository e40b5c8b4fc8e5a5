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

    from audit.case import Case, Ran
    from audit.findings import Note

READY = "READY 127.0.0.1:"
VOLATILE: dict[str, tuple[str, ...]] = {
    "processes.json": ("substitutions", "ready", "stderr", "pid", "started_seconds", "ended_seconds", "resources"),
    "manifest.json": ("run",),
}
"""The members that differ from run to run, file by file; the same as evidence/README.md marks."""
VOLATILE_HASHES = ("processes.json",)
"""The files whose size and hash in the manifest do so too."""
DERIVED = ("report.html",)
"""Files that are made from the others, for people, and hold nothing of their own: an archive may have them or not. Where the
manifest lists one it is held to that, as any file; no two archives need to have the same."""


def check_ports(case: Case) -> None:
    """Every placeholder has its port, and a server's READY line names the port that was put in for it."""
    ports: dict[str, str] = {}
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
    if len(set(ports.values())) != len(ports):
        case.note("processes.json substitutions", f"two servers have the same port: {show(ports)}")
    for process in case.ran:
        place = f"processes.json {label(process)}.ready"
        if process.launch is None or process.launch.do != "start":
            if process["ready"] is not None:
                case.note(place, f"is {show(process['ready'])}, expected null: no step started it as a server")
            continue
        port = ports.get(f"{process['process']}.port", "")
        if process["ready"] != READY + port:
            case.note(place, f"is {show(process['ready'])}, expected {show(READY + port)}")


def _placeholders(text: str) -> list[str]:
    return [part.partition("}")[0] for part in text.split("{")[1:] if ".port}" in part]


def check_clock(case: Case) -> None:
    """A process starts before it ends, and a step begins when the one before is done."""
    running: dict[str, Ran] = {}
    floor: dict[str, tuple[float, str]] = {}
    now: tuple[float, str] = (0.0, "the run")
    for number, step in enumerate(case.plan["steps"], 1):
        name = step.get("process", "")
        started = [process for process in case.ran if process["step"] == number]
        begin = now
        for process in started:
            place = f"processes.json {label(process)}"
            begin = _advance(case.note, f"{place}.started_seconds", process["started_seconds"], begin if begin > now else now)
            if process["ended_seconds"] < process["started_seconds"]:
                case.note(f"{place}.ended_seconds", "is before started_seconds")
            running[process["process"]] = process
        if step["do"] in ("run", "together"):
            now = max([begin, *[(process["ended_seconds"], f"the end of {label(process)}") for process in started]])
        elif started:
            now = (begin[0], f"the start of {label(started[-1])}")
        elif step["do"] == "resume" and name in running:
            floor[name] = now
        elif step["do"] in ("stop", "kill", "await") and name in running:
            process = running.pop(name)
            place, ended = f"processes.json {label(process)}.ended_seconds", process["ended_seconds"]
            after = floor.pop(name, (0.0, "")) if step["do"] == "await" else now
            _advance(case.note, place, ended, after)
            now = max(now, (ended, f"the end of {label(process)}"))


def _advance(note: Note, place: str, reading: float, after: tuple[float, str]) -> tuple[float, str]:
    if reading < after[0]:
        note(place, f"is {reading}, but by the order of the steps it comes after {after[1]}, {after[0]}")
    return max((reading, place), after)


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
