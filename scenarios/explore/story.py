"""A case told for a person: who died where, what was durable then, what came of it, and the line that runs it again."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from scenarios.explore.model import PAUSE, PAUSE_IN_LEASE


def story(result: Mapping[str, Any]) -> str:
    """One plain sentence about the result of a case."""
    parts = [*_others(result)]
    if "image" in result:
        parts[0] += f" ({result['image']['left']})"
    parts += [
        f"{death['process']} died at {death['point']}#{death['occurrence']} in round {death['round']} ({death['left']})"
        for death in result["deaths"]
    ]
    counts = ", ".join(f"{number} {name}" for name, number in result["counts"].items())
    end = "; ".join([*result["doubts"], *result["violations"]]) or "everything held"
    return f"{', then '.join(parts) or 'nobody died'}; in the end {counts}: {end}"


def replay_line(case: str) -> str:
    """The command that runs a case again."""
    return f"python run.py replay {shlex.quote(case)} --out NEW_DIR"


def kept_line(result: Mapping[str, Any]) -> str:
    """Verdict, name, kinds and story of a case, on one line."""
    kinds = f" ({', '.join(result['kinds'])})" if result["kinds"] else ""
    return f"{result['verdict'].upper()}{kinds} {result['case']}: {story(result)}"


def _others(result: Mapping[str, Any]) -> Iterator[str]:
    """What else than deaths was done in a case, by its name. Of a case in doubt, and for the relay in a round in which somebody
    died, the name tells only what was to be done."""
    died, doubted = {death["round"] for death in result["deaths"]}, bool(result["doubts"])
    for number, faults in enumerate(result["case"].rpartition("/")[2].split("+"), 1):
        for fault in faults.split("&"):
            kind, _, what = fault.partition(":")
            if kind in (PAUSE, PAUSE_IN_LEASE):
                was, went = ("was to be", "was to go") if doubted else ("was", "went")
                other = "another one within its lease" if kind == PAUSE_IN_LEASE else "another one"
                yield f"whoever reached {what} in round {number} {was} stopped there, overtaken by {other}, and {went} on"
            elif what.startswith("sys:") and "=" in what:
                call, _, error = what.removeprefix("sys:").partition("=")
                error, _, occurrence = error.partition("#")
                ended = "cut short" if error == "SHORT" else f"made to fail with {error}"
                yield f"{call}#{occurrence} of {kind} {'was to be' if doubted else 'was'} {ended} in round {number}"
            elif kind == "power":
                call, _, image = what.partition(".")
                yield f"all machines lost power after call {call}, and image {image} of their disks was left"
            elif kind == "wire":
                did = "was to do" if doubted or number in died else "did"
                yield f"the relay {did} {what.replace('#', ' to connection ')} in round {number}"
