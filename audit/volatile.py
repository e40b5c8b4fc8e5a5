"""The volatile fields of processes: they differ from run to run, and still not everything is possible.

Ports are the ones that the READY lines name (databases are held in `databases`). Clock readings follow the order of the steps,
and what the records say: who waited for others ended after they had begun, who gave up had waited. Types were held before; what
holds between scenarios, and against the duration of the run, is held in `lanes`.
"""

from __future__ import annotations

from audit.case import RECEIVER, label, option
from audit.findings import show
from audit.shapes import number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.case import Case, Ran
    from audit.findings import Note
    from audit.requests import Request, Traffic

PATIENCE_SECONDS = 10.0
"""How long a sender waits for a response that was not told otherwise."""
ROUNDED_SECONDS = 0.001
READY = "READY 127.0.0.1:"
DATABASE = "db"
"""The placeholder of a scenario's database."""
VOLATILE: dict[str, tuple[str, ...]] = {
    "processes.json": ("substitutions", "ready", "stderr", "pid", "started_seconds", "ended_seconds", "resources"),
    "manifest.json": ("run",),
}
"""The members that differ from run to run, file by file; the same as evidence/README.md marks."""
SMALLEST_PORT = 10_000
"""The sizes of messages count the digits of a port, so the study takes none of fewer than five."""
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
        asked = list(dict.fromkeys([name for text in record["command"] for name in _placeholders(text)]))
        if asked != list(record["substitutions"]):
            given = show(list(record["substitutions"]))
            case.note(f"{place}.substitutions", f"names {given}, but the command asks for {show(asked)} in this order")
        for name, port in record["substitutions"].items():
            if name == DATABASE:
                continue  # held in `databases`
            if not (port.isascii() and port.isdigit() and len(port) == 5 and SMALLEST_PORT <= int(port) < 65536):
                case.note(f"{place}.substitutions", f"{show(port)} is no port of five digits")
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
    if "{" not in text:
        return []
    names = [part.partition("}")[0] for part in text.split("{")[1:] if "}" in part]
    return [name for name in names if name.endswith(".port") or name == DATABASE]


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


def check_causes(case: Case, traffic: Traffic) -> None:
    """Who heard an answer ended after everybody had started who arrived before it; who timed out had lived as long."""
    by_arrival = {arrival.place: request for request in traffic.requests for arrival in request.arrivals}
    for store in case.having(RECEIVER):
        arrivals = store["arrivals"].by_id("arrival")
        latest: tuple[float, str] = (0.0, "the run")
        for record in store["arrivals"].records:
            arrival = record if record.type == "arrival" else arrivals.get(record.id)
            request = by_arrival.get(arrival.place) if arrival is not None else None
            if request is None or request.process is None:
                continue
            process, name = request.process, f"processes.json {label(request.process)}"
            if record.type == "arrival":
                latest = max(latest, (process["started_seconds"], f"the request of {label(process)}, which started at"))
            elif request.heard() and request.answer() is record and process["ended_seconds"] < latest[0]:
                said = f"is {process['ended_seconds']}, but its answer comes after {latest[1]} {latest[0]}"
                case.note(f"{name}.ended_seconds", said)
    for process in case.ran:
        waits = [each for each in traffic.requests if each.process is process and _timed_out(each)]
        patience = number_in(option(process, "--timeout-seconds"))
        least = len(waits) * (PATIENCE_SECONDS if patience is None else patience) - ROUNDED_SECONDS
        lived = process["ended_seconds"] - process["started_seconds"]
        if waits and lived < least:
            said = f"lived for {lived:.6f} s, but gave up waiting {len(waits)} times, which takes {least:.3f}"
            case.note(f"processes.json {label(process)}.ended_seconds", said)


def _timed_out(request: Request) -> bool:
    return request.closed is not None and request.closed.data["reason"] == "response_timeout"
