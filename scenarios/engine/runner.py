"""Walks through one scenario's steps with real processes, and says in sentences what did not come out as declared.

The runner knows kinds of steps, never scenarios. The first step that fails ends the scenario: what would follow means nothing.
The others still run. Every wait has a bound; whatever is still alive at the end is ended and told.
"""

import re
import shutil
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outbox import faults
from outbox.errors import BadInput, Halt23Error
from scenarios.engine.counts import CHECKPOINTS, count, count_records, journals
from scenarios.engine.ports import Ports
from scenarios.engine.processes import Process
from scenarios.engine.supervisor import Ending, Launch, Supervisor
from scenarios.errors import HarnessBug
from scenarios.model import Await, Check, Counts, Kill, Program, Run, Scenario, Start, Stop

_PORT = re.compile(r"\{([a-z_]+)\.port\}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The longest waits of a step, in seconds: for a READY line, for a program's end, for an end after SIGTERM."""

    ready_seconds: float = 30.0
    run_seconds: float = 60.0
    stop_seconds: float = 20.0


@dataclass(slots=True)
class CheckResult:
    """What a check step in the middle found."""

    name: str
    expected: Counts
    counts: Counts


@dataclass(slots=True)
class ScenarioResult:
    """What came of a scenario. It passed if `problems` is empty; `counts` is None where the journals cannot be read."""

    scenario: Scenario
    problems: list[str] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    counts: Counts | None = None
    records: int = 0


class StepFailed(Exception):
    """Internal: the sentence that says what a step met instead of what it declared."""


class ScenarioRunner:
    """Runs `scenario` once, in `directory`, which it creates. Raises HarnessBug and OSError; all else is in the result."""

    def __init__(self, scenario: Scenario, supervisor: Supervisor, directory: Path, bounds: Bounds | None = None) -> None:
        self._scenario, self._supervisor, self._directory = scenario, supervisor, directory
        self._bounds = bounds or Bounds()
        self._ports = Ports()
        self._result = ScenarioResult(scenario)
        self._handlers: Mapping[type[Any], Callable[[int, Any], Awaitable[None]]] = {
            Start: self._start,
            Run: self._run,
            Stop: self._stop,
            Kill: self._kill,
            Await: self._await,
            Check: self._check,
        }

    async def run(self) -> ScenarioResult:
        """Walk through the steps, end what is left, count."""
        self._directory.mkdir(parents=True)
        try:
            failed = await self._walk()
            await self._end_leftovers(failed)
        finally:
            self._ports.close()
        self._count(compare=not failed)
        return self._result

    async def _walk(self) -> bool:
        steps = self._scenario.steps
        for number, step in enumerate(steps, 1):
            try:
                await self._handlers[type(step)](number, step)
            except StepFailed as sentence:
                self._problem(f"step {number} ({step.do}): {sentence}")
                if number < len(steps):
                    self._problem(f"steps {number + 1} to {len(steps)} were not run")
                return True
        return False

    def _problem(self, sentence: str) -> None:
        self._result.problems.append(f"{self._scenario.path}: {sentence}")

    async def _launch(self, number: int, program: Program, halt_at: str | None) -> Process:
        if any(each.name == program.process and each.child.running for each in self._result.processes):
            raise StepFailed(f"{program.process} is running already; the scenario lacks a step that ends it")
        if halt_at:
            _known(halt_at)
        substitutions = {
            f"{name}.port": str(self._ports.of(name)) for text in program.arguments for name in _PORT.findall(text)
        }
        arguments = tuple(_PORT.sub(lambda match: substitutions[f"{match[1]}.port"], text) for text in program.arguments)
        environment = {faults.ENVIRONMENT_VARIABLE: halt_at} if halt_at else {}
        child = await self._supervisor.start(Launch(program.module, arguments, self._directory, environment))
        incarnation = 1 + sum(each.name == program.process for each in self._result.processes)
        process = Process(self._scenario.path, program, incarnation, number, substitutions, environment, halt_at, child)
        self._result.processes.append(process)
        return process

    def _latest(self, name: str) -> Process:
        for process in reversed(self._result.processes):
            if process.name == name:
                return process
        raise StepFailed(f"no process named {name} is running; the scenario lacks a step that starts it")

    def _running(self, name: str) -> Process:
        process = self._latest(name)
        if not process.child.running:
            raise StepFailed(f"{process} is expected to be running, but it ended with {process.child.ended.result()}")
        return process

    async def _end(self, process: Process, seconds: float) -> Ending:
        """Wait for the end of `process`; past the bound, kill it and fail."""
        try:
            return await process.child.wait(seconds)
        except TimeoutError:
            if not process.child.running:
                process.child.drop_output()
                raise StepFailed(
                    f"{process} ended with {process.child.ended.result()}, but its output was still open after {seconds:g} s: "
                    "a process that it left behind holds it"
                ) from None
            await self._kill_now(process)
            raise StepFailed(f"{process}: expected its end within {seconds:g} s, but it went on and was killed") from None

    async def _kill_now(self, process: Process) -> None:
        """End a process that no step ends. Raises HarnessBug if that cannot be done."""
        process.ended_by = "harness"
        self._supervisor.signal(process.child, signal.SIGKILL)
        try:
            await process.child.wait_ended(self._bounds.stop_seconds)
        except TimeoutError:
            raise HarnessBug(f"{process} (pid {process.child.pid}) cannot be killed") from None
        finally:
            process.child.drop_output()

    async def _start(self, number: int, step: Start) -> None:
        process = await self._launch(number, step.program, step.halt_at)
        seconds = self._bounds.ready_seconds
        try:
            ready = await process.child.wait_ready(seconds)
        except TimeoutError:
            raise StepFailed(f"{process}: expected its READY line within {seconds:g} s, but none came") from None
        if ready is None:
            ending = await self._end(process, self._bounds.stop_seconds)
            raise StepFailed(f"{process}: expected its READY line, but it ended with {ending}{process.last_words()}")

    async def _run(self, number: int, step: Run) -> None:
        process = await self._launch(number, step.program, step.halt_at)
        process.expect_code(step.exit_code)
        await self._expect_exit(process, step.exit_code)

    async def _await(self, number: int, step: Await) -> None:
        process = self._latest(step.process)
        process.expect_code(step.exit_code)
        await self._expect_exit(process, step.exit_code)

    async def _expect_exit(self, process: Process, expected: int) -> None:
        ending = await self._end(process, self._bounds.run_seconds)
        if ending.exit_code == expected:
            return
        if process.halt_at and expected == faults.HALT_EXIT_CODE and ending.exit_code is not None:
            raise StepFailed(
                f"{process} was armed to halt at {process.halt_at}: expected exit code {expected}, actual exit code "
                f"{ending.exit_code}; the armed point was not reached{process.last_words()}"
            )
        raise StepFailed(f"{process}: expected exit code {expected}, actual {ending}{process.last_words()}")

    async def _stop(self, number: int, step: Stop) -> None:
        process = self._running(step.process)
        process.expect_code(0)
        process.ended_by = "stop"
        self._supervisor.signal(process.child, signal.SIGTERM)
        ending = await self._end(process, self._bounds.stop_seconds)
        if ending.exit_code != 0:
            raise StepFailed(f"{process} was stopped: expected exit code 0, actual {ending}{process.last_words()}")

    async def _kill(self, number: int, step: Kill) -> None:
        process = self._running(step.process)
        process.expect_signal("SIGKILL")
        process.ended_by = "kill"
        self._supervisor.signal(process.child, signal.SIGKILL)
        ending = await self._end(process, self._bounds.stop_seconds)
        if ending.signal != "SIGKILL":
            raise StepFailed(f"{process} was killed: expected signal SIGKILL, actual {ending}{process.last_words()}")

    async def _check(self, number: int, step: Check) -> None:
        target = self._directory / CHECKPOINTS / step.name
        for path in journals(self._directory):
            copy = target / path.relative_to(self._directory)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        try:
            counts = count(target)
        except Halt23Error as error:
            raise StepFailed(f"checkpoint {step.name} cannot be counted: {error}") from None
        self._result.checks.append(CheckResult(step.name, step.counts, counts))
        if counts != step.counts:
            raise StepFailed(f"checkpoint {step.name}: expected {step.counts}, actual {counts}")

    async def _end_leftovers(self, failed: bool) -> None:
        for process in self._result.processes:
            if process.child.running:
                await self._kill_now(process)
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

    def _count(self, *, compare: bool) -> None:
        try:
            self._result.counts = count(self._directory)
            self._result.records = count_records(self._directory)
        except Halt23Error as error:
            self._problem(f"the journals cannot be counted: {error}")
            return
        if compare and self._result.counts != self._scenario.expected:
            self._problem(f"expected {self._scenario.expected}, actual {self._result.counts}")


def _known(halt_at: str) -> None:
    try:
        faults.parse(halt_at)
    except BadInput as error:
        raise StepFailed(str(error)) from None
