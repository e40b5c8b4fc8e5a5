"""A case told for a person: who died where, what was durable then, what came of it, and the line that runs it again."""

import shlex
from collections.abc import Mapping
from typing import Any


def story(result: Mapping[str, Any]) -> str:
    """One plain sentence about the result of a case."""
    parts = [
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
