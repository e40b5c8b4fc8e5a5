"""The record of one child process: what was started, what was expected, how it really ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outbox import faults
from scenarios.engine import lines
from scenarios.engine.supervisor import Child
from scenarios.model import Program


@dataclass(slots=True)
class Process:
    """One incarnation of a scenario's process. `ended_by` is `itself` until a step or the harness ends it."""

    scenario: str
    program: Program
    incarnation: int
    step: int
    substitutions: Mapping[str, str]
    environment: Mapping[str, str]
    child: Child
    ended_by: str = "itself"
    was_paused: bool = False
    expected_code: int | None = None
    expected_signal: str | None = None

    @property
    def name(self) -> str:
        """Its name in the scenario."""
        return self.program.process

    @property
    def halt_at(self) -> str | None:
        """Where it is armed to halt."""
        return self.environment.get(faults.HALT_VARIABLE, self.environment.get(lines.HALT_VARIABLE))

    @property
    def pause_at(self) -> str | None:
        """Where it is armed to pause."""
        return self.environment.get(faults.PAUSE_VARIABLE)

    def __str__(self) -> str:
        return f"{self.name} (incarnation {self.incarnation})"

    def expect_code(self, code: int) -> None:
        """Say that it is to end with this exit code."""
        self.expected_code, self.expected_signal = code, None

    def expect_signal(self, name: str) -> None:
        """Say that it is to end by this signal."""
        self.expected_code, self.expected_signal = None, name

    def last_words(self) -> str:
        """The last line of its standard error, as the tail of a sentence; empty where it said nothing."""
        lines = self.child.stderr.text().strip().splitlines()
        return f"; it said: {lines[-1]}" if lines else ""

    def data(self, clock_zero: float) -> dict[str, Any]:
        """Its object in `processes.json`; times count from `clock_zero` of the monotonic clock. It must have ended."""
        ending = self.child.ended.result()
        return {
            "scenario": self.scenario,
            "process": self.name,
            "incarnation": self.incarnation,
            "step": self.step,
            "command": ["python", "-m", self.program.module, *self.program.arguments],
            "substitutions": dict(self.substitutions),
            "environment": dict(self.environment),
            "fault": _fault(self.halt_at),
            "pause": _fault(self.environment.get(faults.PAUSE_VARIABLE)),
            "expected_exit": {"code": self.expected_code, "signal": self.expected_signal},
            "exit_code": ending.exit_code,
            "signal": ending.signal,
            "ended_by": self.ended_by,
            "stdout": self.child.stdout.text(),
            "ready": self.child.stdout.ready_line,
            "stderr": self.child.stderr.text(),
            "pid": self.child.pid,
            "started_seconds": round(self.child.started - clock_zero, 6),
            "ended_seconds": round(ending.monotonic - clock_zero, 6),
            "resources": {
                "user_cpu_seconds": round(ending.user_cpu_seconds, 6),
                "system_cpu_seconds": round(ending.system_cpu_seconds, 6),
                "max_rss_bytes": ending.max_rss_bytes,
            },
        }


def _fault(setting: str | None) -> dict[str, Any] | None:
    if setting is None:
        return None
    fault = lines.read(setting) if lines.is_line(setting.partition("#")[0]) else faults.parse(setting)
    return {"point": fault.point, "occurrence": fault.occurrence}
