"""The manifest's protocol and selection: well-formed, pinned, and planned as the audit's own table expects.

The catalogue (every scenario's name and sum) is hashed anew and held against the pin of its version; the scenarios that were
run stand in full and are held against their sums in the catalogue and against the audit's table. (That a pinned catalogue
agrees with the table to the last scenario is held by the tests, once for all archives.) `selected` hands the plans on
that were run, with what the table expects of them.
"""

from __future__ import annotations

from audit.checkpoints import say
from audit.expectations import ONLY_ON, POSTGRES, PROTOCOLS, STORES, expected_in
from audit.expectations.words import COUNTED, ROWS
from audit.findings import show
from audit.hashing import digest
from audit.shapes import (
    COUNT,
    FLAG,
    LIST,
    NAME,
    NUMBER,
    OBJECT,
    POSITIVE,
    SHA,
    TEXT,
    Kind,
    exactly,
    holds,
    in_order,
    is_hex,
    list_of,
    map_of,
    one_of,
    optional,
)
from audit.strict_json import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from audit.expectations.words import Expectation
    from audit.findings import Note
    from audit.shapes import Shape


def _is_halt(value: Any) -> bool:
    point, mark, occurrence = value.partition("#") if type(value) is str else ("", "", "")
    counts = occurrence.isascii() and occurrence.isdigit() and occurrence[0] != "0" and len(occurrence) < 10
    return bool(point) and (counts or not mark)


def _is_commit(value: Any) -> bool:
    return type(value) is str and len(value) == 40 and is_hex(value)


def _is_moment(value: Any) -> bool:
    """YYYY-MM-DDTHH:MM:SS and the zone of UTC."""
    form = "".join(["0" if "0" <= each <= "9" else each for each in value]) if type(value) is str else ""
    if form not in ("0000-00-00T00:00:00Z", "0000-00-00T00:00:00+00:00"):
        return False
    month, day, hour, minute, second = (int(value[at : at + 2]) for at in (5, 8, 11, 14, 17))
    return 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61


COMMIT = Kind("40 lower-case hex digits", _is_commit)
MOMENT = Kind("a moment in UTC, in ISO 8601", _is_moment)
MANIFEST: Shape = {
    "format": exactly("halt23.evidence"), "format_version": exactly(1), "protocol": OBJECT, "selection": OBJECT,
    "run": OBJECT, "sources": map_of(SHA), "files": map_of(OBJECT),
}  # fmt: skip
PROTOCOL: Shape = {"version": POSITIVE, "sha256": SHA, "catalogue": LIST, "scenarios": LIST}
ENTRY: Shape = {"scenario": NAME, "sha256": SHA}
STORE = one_of(*STORES)
SELECTION: Shape = {"scenarios": list_of(TEXT), "store": STORE, "complete": FLAG}
RUN: Shape = {
    "spawn": one_of("fork", "exec"), "jobs": POSITIVE, "started_at": MOMENT, "wall_seconds": NUMBER, "cores": POSITIVE,
    "python": NAME, "implementation": NAME, "platform": NAME, "file_system": optional(NAME), "packages": map_of(NAME),
    "sqlite": OBJECT, "postgres": optional(OBJECT), "commit": optional(COMMIT), "clean": optional(FLAG),
}  # fmt: skip
SQLITE: Shape = {"package": NAME, "version": NAME, "journal_mode": one_of("wal", "truncate")}
SERVER: Shape = {"version": NAME, "fsync": exactly("on"), "synchronous_commit": exactly("on")}
"""What a run on PostgreSQL says of its server: one that does not write through would not show what a commit is worth."""
PLAN: Shape = {
    "section": NAME, "name": NAME, "shows": NAME, "look_at": NAME, "counterexample": FLAG, "store": optional(STORE),
    "steps": LIST, "expected": OBJECT,
}  # fmt: skip
MOST_STEPS = 200
"""The checks go through the steps of a scenario more than once, so a scenario without end is refused at once."""
COUNTS: Shape = dict.fromkeys(COUNTED, COUNT)
ROW_COUNTS: Shape = dict.fromkeys(ROWS, COUNT)
HALT = optional(Kind("POINT or POINT#OCCURRENCE", _is_halt))
_PROGRAM: Shape = {"process": NAME, "module": NAME, "arguments": list_of(TEXT)}
_ENDING: Shape = {"do": NAME, "process": NAME}
STEPS: dict[str, Shape] = {
    "start": {"do": NAME, "halt_at": HALT, "pause_at": HALT, **_PROGRAM},
    "begin": {"do": NAME, "halt_at": HALT, "pause_at": HALT, **_PROGRAM},
    "run": {"do": NAME, "exit_code": COUNT, "halt_at": HALT, **_PROGRAM},
    "together": {"do": NAME, "runs": LIST},
    "stop": _ENDING,
    "kill": _ENDING,
    "await": {**_ENDING, "exit_code": COUNT},
    "await_paused": _ENDING,
    "resume": _ENDING,
    "write": {"do": NAME, "path": NAME, "content": TEXT},
    "flip": {"do": NAME, "path": NAME, "offset": COUNT},
    "move": {"do": NAME, "path": NAME, "to": NAME},
    "check": {"do": NAME, "name": NAME, "counts": OBJECT},
    "export": {"do": NAME, "name": NAME, "rows": OBJECT},
    "limit_files": {"do": NAME, "process": NAME, "max_bytes": COUNT},
    "kill_database": {"do": NAME},
    "start_database": {"do": NAME},
}


def well_formed(manifest: dict[str, Any], note: Note) -> bool:
    """Whether the manifest can be worked with; whatever is wrong with its members is noted."""
    if not holds(manifest, MANIFEST, note, ""):
        return False
    parts = [
        holds(manifest["protocol"], PROTOCOL, note, "protocol"),
        holds(manifest["selection"], SELECTION, note, "selection"),
    ]
    hold_run(manifest["run"], manifest["selection"].get("store"), note)
    return all(parts)


def hold_run(run: dict[str, Any], store: Any, note: Note) -> None:
    """Hold what the manifest says of the run: nothing follows from it, so it may be wrong in its members only."""
    if not holds(run, RUN, note, "run"):
        return
    holds(run["sqlite"], SQLITE, note, "run.sqlite")
    if store == POSTGRES:
        holds(run["postgres"], SERVER, note, "run.postgres")
    elif run["postgres"] is not None:
        note("run.postgres", f"is {show(run['postgres'])}, expected null: this run was on SQLite")
    if not run["packages"]:
        note("run.packages", "is empty, but the programs do not run without their dependencies")
    in_order(run["packages"], sorted(run["packages"]), note, "run.packages")
    if (run["commit"] is None) != (run["clean"] is None):
        note("run.clean", "is known where run.commit is not, or the other way round")


def selected(manifest: dict[str, Any], note: Note) -> list[tuple[dict[str, Any], Expectation | None]]:
    """Hold the protocol and the selection; the plans of the scenarios that were run, each with its expectation."""
    protocol, selection = manifest["protocol"], manifest["selection"]
    sums = _catalogue(protocol, note)
    table = {name: each for section in _sections(selection["scenarios"]) for name, each in expected_in(section).items()}
    plans: dict[str, dict[str, Any]] = {}
    for number, plan in enumerate(protocol["scenarios"]):
        place = f"protocol.scenarios[{number}]"
        if not _plan(plan, note, place):
            continue
        name = f"{plan['section']}/{plan['name']}"
        plans[name] = plan
        actual = digest(encode(plan).encode("ascii"))
        if sums.get(name) != actual:
            note(place, f"has the hash {actual}, but protocol.catalogue has {show(sums.get(name))} for {name}")
        _table(name, plan, table.get(name), note, place)
    wanted = [name for name in sums if name in plans]
    if wanted != selection["scenarios"] or not wanted or len(plans) != len(protocol["scenarios"]):
        words = show(selection["scenarios"])
        note("selection.scenarios", f"is {words}, which are not scenarios of the protocol in its order")
    store = selection["store"]
    can_run = _of_store(sums, store)
    for name in wanted:
        if name not in can_run:
            note("selection.store", f"is {show(store)}, on which {name} cannot be run")
    if selection["complete"] != (wanted == can_run):
        words = f"{len(wanted)} of the {len(can_run)} scenarios that {store} can run"
        note("selection.complete", f"is {show(selection['complete'])}, but {words} were selected")
    return [(plans[name], table.get(name)) for name in wanted]


def runnable(manifest: dict[str, Any]) -> list[str]:
    """The scenarios of the catalogue that the run's store can run."""
    entries = manifest["protocol"]["catalogue"]
    names = [entry["scenario"] for entry in entries if type(entry) is dict and type(entry.get("scenario")) is str]
    return _of_store(names, manifest["selection"]["store"])


def _of_store(names: Iterable[str], store: str) -> list[str]:
    return [name for name in names if ONLY_ON.get(name) in (None, store)]


def _catalogue(protocol: dict[str, Any], note: Note) -> dict[str, str]:
    """The sums of all scenarios by name. A catalogue that the audit does not know is held against its own table."""
    sums: dict[str, str] = {}
    for number, entry in enumerate(protocol["catalogue"]):
        place = f"protocol.catalogue[{number}]"
        if not holds(entry, ENTRY, note, place):
            continue
        if entry["scenario"] in sums:
            note(place, f"{show(entry['scenario'])} stands twice in the protocol")
        sums[entry["scenario"]] = entry["sha256"]
    if not _pinned(protocol, note):
        known = [name for section in _sections(sums) for name in expected_in(section)]
        for name in sums:
            if name not in known:
                note("protocol.catalogue", f"{show(name)} is not in the audit's own table")
        for name in known:
            if name not in sums:
                note("protocol.catalogue", f"{name}, which the audit expects, is not in the protocol")
    return sums


def _sections(names: Iterable[str]) -> list[str]:
    return sorted({name.partition("/")[0] for name in names})


def _pinned(protocol: dict[str, Any], note: Note) -> bool:
    """Whether the catalogue is the one that the audit knows by this version."""
    version = protocol["version"]
    actual = digest(encode(protocol["catalogue"]).encode("ascii"))
    if protocol["sha256"] != actual:
        note("protocol.sha256", f"is {protocol['sha256']}, but protocol.catalogue has {actual}")
    if version not in PROTOCOLS:
        note("protocol.version", f"is {version}, but the audit knows {show(sorted(PROTOCOLS))}")
    elif PROTOCOLS[version] != actual:
        note("protocol.catalogue", f"has the hash {actual}, but version {version} is pinned as {PROTOCOLS[version]}")
    return bool(PROTOCOLS.get(version) == actual)


def _plan(plan: Any, note: Note, place: str) -> bool:
    """Whether a scenario of the protocol has its shape, down to its steps."""
    if not holds(plan, PLAN, note, place):
        return False
    good = holds(plan["expected"], COUNTS, note, f"{place}.expected")
    programs = sum(len(step["runs"]) for step in plan["steps"] if type(step) is dict and type(step.get("runs")) is list)
    if len(plan["steps"]) + programs > MOST_STEPS:
        note(f"{place}.steps", f"are {len(plan['steps'])} with {programs} programs, more than the {MOST_STEPS} of any scenario")
        return False
    for number, step in enumerate(plan["steps"], 1):
        good = _step(step, note, f"{place} step {number}") and good
    return good


def _step(step: Any, note: Note, where: str) -> bool:
    kind = step.get("do") if type(step) is dict else None
    if type(kind) is not str or kind not in STEPS:
        note(where, f"is {show(step)}, expected an object whose member do is one of {show(sorted(STEPS))}")
        return False
    if not holds(step, STEPS[kind], note, where):
        return False
    if kind == "check":
        return holds(step["counts"], COUNTS, note, f"{where}.counts")
    if kind == "export":
        return holds(step["rows"], ROW_COUNTS, note, f"{where}.rows")
    if kind == "together":
        runs = [type(run) is dict and run.get("do") == "run" and _step(run, note, f"{where}.runs") for run in step["runs"]]
        if not all(runs):
            note(f"{where}.runs", f"is {show(step['runs'])}, expected an array of run steps")
        return all(runs)
    return True


def _table(name: str, plan: dict[str, Any], expectation: Expectation | None, note: Note, place: str) -> None:
    """A scenario of the protocol is the one that the audit's own table expects."""
    if expectation is None:
        note(place, f"{show(name)} is not in the audit's own table")
        return
    counts = tuple(plan["expected"][member] for member in COUNTED)
    if counts != expectation.counts:
        note(f"{place}.expected", f"is {say(counts)}, but the audit's own table has {say(expectation.counts)}")
    if plan["store"] != ONLY_ON.get(name):
        note(f"{place}.store", f"is {show(plan['store'])}, but the audit's own table has {show(ONLY_ON.get(name))}")
    if plan["counterexample"] != expectation.counterexample:
        note(f"{place}.counterexample", f"is {show(plan['counterexample'])}, but the audit's own table says otherwise")
