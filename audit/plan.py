"""A scenario's steps, read as the processes that they start and end.

`launches` gives one `Launch` for every process in the order of its record, with how and at which step the later steps end it.
`folder_at` and `written` follow the steps that rename folders and write files; `flipped` those that damage them. Steps are
held against their shapes in `protocol`; nothing here judges.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEVER = 2**53
"""The step at which a process ends that no step ends."""
STARTING = ("start", "begin", "run")


class Launch:
    """A process as the protocol plans it."""

    __slots__ = (
        "arguments", "begun", "code", "do", "ended_by", "ends", "halt_at", "incarnation", "module", "pause_at", "process",
        "resumed", "signal", "step",
    )  # fmt: skip

    def __init__(self, step: int, plan: dict[str, Any], incarnation: int, begun: str) -> None:
        self.step = step
        self.do: str = plan["do"]
        self.process: str = plan["process"]
        self.module: str = plan["module"]
        self.arguments: list[str] = plan["arguments"]
        self.halt_at: str | None = plan["halt_at"]
        self.pause_at: str | None = plan.get("pause_at")
        self.incarnation = incarnation
        self.begun = begun
        ends_itself = self.do == "run"
        self.ended_by = "itself" if ends_itself else "harness"
        self.code: int | None = plan.get("exit_code")
        self.signal: str | None = None
        self.ends = step if ends_itself else NEVER
        self.resumed: int | None = None

    def end(self, step: int, plan: dict[str, Any]) -> None:
        """Take note of the step that ends this process."""
        self.ends = step
        if plan["do"] == "stop":
            self.ended_by, self.code = "stop", 0
        elif plan["do"] == "kill":
            self.ended_by, self.signal = "kill", "SIGKILL"
        else:
            self.ended_by, self.code = "itself", plan["exit_code"]


def launches(steps: list[dict[str, Any]]) -> list[Launch]:
    """Every process that the steps start, with its end."""
    found: list[Launch] = []
    running: dict[str, Launch] = {}
    begun: dict[str, int] = {}
    for number, step in enumerate(steps, 1):
        do = step["do"]
        for plan in step["runs"] if do == "together" else [step] if do in STARTING else []:
            name = plan["process"]
            begun[name] = begun.get(name, 0) + 1
            found.append(Launch(number, plan, begun[name], do))
            if plan["do"] != "run":
                running[name] = found[-1]
        if do in ("stop", "kill", "await") and step["process"] in running:
            running.pop(step["process"]).end(number, step)
        elif do == "resume" and step["process"] in running:
            running[step["process"]].resumed = number
    return found


def folder_at(steps: list[dict[str, Any]], path: str, since: int, at: int = NEVER) -> str:
    """What a path that a process named at one step is called at a later one: `move` steps rename it."""
    for number, step in enumerate(steps, 1):
        if step["do"] == "move" and since < number < at:
            if path == step["path"]:
                path = step["to"]
            elif path.startswith(step["path"] + "/"):
                path = step["to"] + path[len(step["path"]) :]
    return path


def written(steps: list[dict[str, Any]], before: int = NEVER) -> dict[str, str]:
    """The files that `write` steps made before a step, by path, with their content."""
    return {
        folder_at(steps, step["path"], number, before): step["content"]
        for number, step in enumerate(steps, 1)
        if step["do"] == "write" and number < before
    }


def flipped(steps: list[dict[str, Any]], before: int = NEVER) -> set[str]:
    """The files of which a bit stands flipped when a step begins."""
    odd: set[tuple[str, int]] = set()
    for number, step in enumerate(steps, 1):
        if step["do"] == "flip" and number < before:
            odd ^= {(step["path"], step["offset"])}
    return {path for path, _ in odd}
