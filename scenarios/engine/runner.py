"""Walks through one scenario's steps with real processes, and says in sentences what did not come out as declared.

The runner knows kinds of steps, never scenarios. The first step that fails ends the scenario: what would follow means nothing.
The others still run. Every wait has a bound; whatever is still alive at the end is ended and told.
"""

from dataclasses import dataclass, field
from pathlib import Path

from outbox import faults
from outbox.errors import Halt23Error
from scenarios.engine.counts import count, count_records
from scenarios.engine.processes import Process
from scenarios.engine.stage import Bounds, Stage, StepFailed
from scenarios.engine.steps import CheckResult, ExportResult, Steps
from scenarios.engine.stores import SqliteStore, Store
from scenarios.engine.supervisor import Supervisor
from scenarios.model import Counts, Scenario


@dataclass(slots=True)
class ScenarioResult:
    """What came of a scenario. It passed if `problems` is empty; `counts` is None where the journals cannot be read."""

    scenario: Scenario
    problems: list[str] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    exports: list[ExportResult] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    counts: Counts | None = None
    records: int = 0


class ScenarioRunner:
    """Runs `scenario` once, in `directory`, which it creates. Raises HarnessBug and OSError; all else is in the result."""

    def __init__(
        self,
        scenario: Scenario,
        supervisor: Supervisor,
        directory: Path,
        bounds: Bounds | None = None,
        store: Store | None = None,
    ) -> None:
        self._scenario, self._directory = scenario, directory
        self._stage = Stage(scenario, supervisor, directory, bounds or Bounds(), store or SqliteStore())
        self._steps = steps = Steps(self._stage)
        self._result = ScenarioResult(scenario, processes=self._stage.processes, checks=steps.checks, exports=steps.exports)

    async def run(self) -> ScenarioResult:
        """Walk through the steps, end what is left, count."""
        self._directory.mkdir(parents=True)
        try:
            failed = await self._walk()
            await self._end_leftovers(failed)
        finally:
            await self._stage.close()
        self._count(compare=not failed)
        return self._result

    async def _walk(self) -> bool:
        steps = self._scenario.steps
        for number, step in enumerate(steps, 1):
            try:
                await self._steps.carry_out(number, step)
            except StepFailed as sentence:
                self._problem(f"step {number} ({step.do}): {sentence}")
                if number < len(steps):
                    self._problem(f"steps {number + 1} to {len(steps)} were not run")
                return True
        return False

    def _problem(self, sentence: str) -> None:
        self._result.problems.append(f"{self._scenario.path}: {sentence}")

    async def _end_leftovers(self, failed: bool) -> None:
        for process in self._result.processes:
            if process.child.running:
                await self._stage.end(process)
                if not failed:
                    self._problem(f"{process} was left running at the end; the scenario lacks a step that ends it")
            elif not failed:
                self._hold_to_declaration(process)

    def _hold_to_declaration(self, process: Process) -> None:
        """What no step has looked at: an end that none expected, and a point that was armed in vain."""
        ending = process.child.ended.result()
        if process.expected_code is None and process.expected_signal is None:
            self._problem(f"{process} ended by itself with {ending}, which no step expects{process.last_words()}")
        elif process.halt_at and ending.exit_code != faults.HALT_EXIT_CODE:
            self._problem(
                f"{process} was armed to halt at {process.halt_at}: expected exit code {faults.HALT_EXIT_CODE}, "
                f"actual {ending}; the armed point was not reached"
            )
        elif process.pause_at and not process.was_paused:
            self._problem(
                f"{process} was armed to pause at {process.pause_at}, and no step saw it paused: the point was not reached"
            )

    def _count(self, *, compare: bool) -> None:
        try:
            self._result.counts = count(self._directory)
            self._result.records = count_records(self._directory)
        except Halt23Error as error:
            self._problem(f"the journals cannot be counted: {error}")
            return
        if compare and self._result.counts != self._scenario.expected:
            self._problem(f"expected {self._scenario.expected}, actual {self._result.counts}")
