"""The manifest's protocol and selection: well-formed, pinned, and planned as the audit's own table expects.

The catalogue that the manifest carries is hashed anew and held against the pin of its version; each scenario of it
must be in the audit's table with the same counts and the same name for its counterexample, and the table must hold no
other. `selected` hands the plans on that were run.
"""

from __future__ import annotations

from audit.checkpoints import say
from audit.expectations import EXPECTATIONS, PROTOCOLS
from audit.expectations.words import COUNTED
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
    list_of,
    map_of,
    one_of,
    optional,
)
from audit.strict_json import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.findings import Note
    from audit.shapes import Shape


def _is_halt(value: Any) -> bool:
    point, mark, occurrence = value.partition("#") if type(value) is str else ("", "", "")
    return bool(point and mark) and occurrence.isascii() and occurrence.isdigit() and occurrence[0] != "0"


MANIFEST: Shape = {
    "format": exactly("halt23.evidence"), "format_version": exactly(1), "protocol": OBJECT, "selection": OBJECT,
    "run": OBJECT, "sources": map_of(SHA), "files": map_of(OBJECT),
}  # fmt: skip
PROTOCOL: Shape = {"version": POSITIVE, "sha256": SHA, "scenarios": LIST}
SELECTION: Shape = {"scenarios": list_of(TEXT), "complete": FLAG}
RUN: Shape = {
    "spawn": one_of("fork", "exec"), "jobs": POSITIVE, "cores": POSITIVE, "started_at": NAME, "wall_seconds": NUMBER,
    "python": NAME, "implementation": NAME, "platform": NAME, "packages": map_of(NAME),
}  # fmt: skip
PLAN: Shape = {
    "section": NAME, "name": NAME, "shows": NAME, "counterexample": FLAG, "steps": LIST, "expected": OBJECT,
}  # fmt: skip
COUNTS: Shape = dict.fromkeys(COUNTED, COUNT)
HALT = optional(Kind("POINT#OCCURRENCE", _is_halt))
_LAUNCH: Shape = {"do": NAME, "process": NAME, "module": NAME, "arguments": list_of(TEXT), "halt_at": HALT}
STEPS: dict[str, Shape] = {
    "start": _LAUNCH,
    "run": {**_LAUNCH, "exit_code": COUNT},
    "stop": {"do": NAME, "process": NAME},
    "kill": {"do": NAME, "process": NAME},
    "await": {"do": NAME, "process": NAME, "exit_code": COUNT},
    "check": {"do": NAME, "name": NAME, "counts": OBJECT},
}


def well_formed(manifest: dict[str, Any], note: Note) -> bool:
    """Whether the manifest can be worked with; whatever is wrong with its members is noted."""
    if not holds(manifest, MANIFEST, note, ""):
        return False
    parts = [
        holds(manifest["protocol"], PROTOCOL, note, "protocol"),
        holds(manifest["selection"], SELECTION, note, "selection"),
    ]
    holds(manifest["run"], RUN, note, "run")
    return all(parts)


def selected(manifest: dict[str, Any], note: Note) -> list[dict[str, Any]]:
    """Hold the protocol and the selection; the plans of the scenarios that were run."""
    protocol, selection = manifest["protocol"], manifest["selection"]
    _pin(protocol, note)
    plans: dict[str, dict[str, Any]] = {}
    for number, plan in enumerate(protocol["scenarios"]):
        place = f"protocol.scenarios[{number}]"
        if _plan(plan, note, place):
            name = f"{plan['section']}/{plan['name']}"
            if name in plans:
                note(place, f"{show(name)} stands twice in the protocol")
            plans[name] = plan
            _table(name, plan, note, place)
    for name in EXPECTATIONS:
        if name not in plans:
            note("protocol.scenarios", f"{name}, which the audit expects, is not in the protocol")
    ordered = [name for name in plans if name in selection["scenarios"]]
    if ordered != selection["scenarios"] or not ordered:
        chosen = show(selection["scenarios"])
        note("selection.scenarios", f"is {chosen}, which are not scenarios of the protocol in its order")
    if selection["complete"] != (len(ordered) == len(protocol["scenarios"])):
        chosen = f"{len(ordered)} of {len(protocol['scenarios'])} scenarios"
        note("selection.complete", f"is {show(selection['complete'])}, but {chosen} were selected")
    return [plans[name] for name in ordered]


def _pin(protocol: dict[str, Any], note: Note) -> None:
    version = protocol["version"]
    actual = digest(encode(protocol["scenarios"]).encode("ascii"))
    if protocol["sha256"] != actual:
        note("protocol.sha256", f"is {protocol['sha256']}, but protocol.scenarios has {actual}")
    if version not in PROTOCOLS:
        note("protocol.version", f"is {version}, but the audit knows {show(sorted(PROTOCOLS))}")
    elif PROTOCOLS[version] != actual:
        note("protocol.scenarios", f"has the hash {actual}, but version {version} is pinned as {PROTOCOLS[version]}")


def _plan(plan: Any, note: Note, place: str) -> bool:
    """Whether a scenario of the protocol has its shape, down to its steps."""
    if not holds(plan, PLAN, note, place):
        return False
    good = holds(plan["expected"], COUNTS, note, f"{place}.expected")
    for number, step in enumerate(plan["steps"], 1):
        where = f"{place} step {number}"
        kind = step.get("do") if type(step) is dict else None
        if type(kind) is not str or kind not in STEPS:
            note(where, f"is {show(step)}, expected an object whose member do is one of {show(sorted(STEPS))}")
            good = False
        elif not holds(step, STEPS[kind], note, where):
            good = False
        elif kind == "check":
            good = holds(step["counts"], COUNTS, note, f"{where}.counts") and good
    return good


def _table(name: str, plan: dict[str, Any], note: Note, place: str) -> None:
    """A scenario of the protocol is the one that the audit's own table expects."""
    expectation = EXPECTATIONS.get(name)
    if expectation is None:
        note(place, f"{show(name)} is not in the audit's own table")
        return
    counts = tuple(plan["expected"][member] for member in COUNTED)
    if counts != expectation.counts:
        note(f"{place}.expected", f"is {say(counts)}, but the audit's own table has {say(expectation.counts)}")
    if plan["counterexample"] != expectation.counterexample:
        note(f"{place}.counterexample", f"is {show(plan['counterexample'])}, but the audit's own table says otherwise")
