"""A scenario that was given up: which step failed, told before all that comes of it.

The harness ends what still runs when a step fails, and the steps behind it are not run. So most of what such a scenario lacks
is missing for that reason alone. The failed step is worked out from the plan and the processes: the first step that somebody
ended otherwise than it asks, or that left nothing where it should have. No archive with such a scenario is evidence.
"""

from __future__ import annotations

from audit.case import label
from audit.findings import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from audit.case import Case

HARNESS = "harness"
REST = "what ran was ended by the harness then, and what else is missing here may come of that"


def was_ended(record: dict[str, Any]) -> bool:
    """Whether the harness ended a process: nobody had said then how it should end."""
    return bool(record["ended_by"] == HARNESS)


def tell(case: Case) -> None:
    """Put the failed step of a scenario that was given up before everything else that was found in it."""
    if any(was_ended(record) for record in case.processes):
        step, place, words = min(_failures(case), key=lambda each: each[0])
        do = case.plan["steps"][step - 1]["do"]
        case.first.lead(place, f"the scenario was given up at step {step} ({do}): {words}; {REST}")


def _failures(case: Case) -> Iterator[tuple[int, str, str]]:
    """Steps that failed, with the place and the words of each; where several did so at one step, the first is the cause."""
    ran = list(zip(case.launches, case.processes, strict=False))
    for launch, record in ran:
        ended = {"code": record["exit_code"], "signal": record["signal"]}
        wanted = {"code": launch.code, "signal": launch.signal}
        if not was_ended(record) and ended != wanted:
            words = f"it ended with {_said(ended)}, but the protocol asks for {_said(wanted)}"
            yield min(launch.ends, _last(case)), f"processes.json {label(record)}", words
    for launch, record in ran:
        if was_ended(record):
            yield min(launch.ends, _last(case)), f"processes.json {label(record)}", "it did not end as the protocol asks"
    for launch in case.launches[len(case.processes) :]:
        yield launch.step, "processes.json", f"{show(launch.process)} was not started"
    for number, step in enumerate(case.plan["steps"], 1):
        if step["do"] == "export" and step["name"] not in case.rows:
            yield number, f"{case.folder}exports/{step['name']}.json", "the export cannot be read"


def _last(case: Case) -> int:
    return len(case.plan["steps"])


def _said(ended: dict[str, Any]) -> str:
    return f"exit code {ended['code']}" if ended["signal"] is None else str(ended["signal"])
