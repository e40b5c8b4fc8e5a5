"""Carrying out one step of a scenario: the only place that knows what each kind of step does.

A step that meets something else than it declares raises `StepFailed` with a sentence that names the process, what was expected
and what happened. Every wait has a bound; a process that passes it is killed.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from outbox import faults
from outbox.errors import BadInput, Halt23Error
from scenarios.engine.counts import CHECKPOINTS, count, count_rows, journals
from scenarios.engine.exports import EXPORTS, export
from scenarios.engine.ports import Ports
from scenarios.engine.processes import Process
from scenarios.engine.stores import Database, Store
from scenarios.engine.supervisor import Ending, Launch, Supervisor
from scenarios.errors import HarnessBug
from scenarios.model import (
    Await,
    AwaitPaused,
    Begin,
    Check,
    Counts,
    Export,
    Flip,
    Kill,
    KillDatabase,
    LimitFiles,
    Move,
    Program,
    Resume,
    Rows,
    Run,
    Scenario,
    Start,
    StartDatabase,
    Step,
    Stop,
    Together,
    Write,
)

_NAMED = re.compile(r"\{(?:(?P<server>[a-z_]+)\.port|db)\}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The longest waits of a step, in seconds: for a READY line or a pause, for a program's end, for an end after a signal."""

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
class ExportResult:
    """What an export step found in the tables."""

    name: str
    expected: Rows
    rows: Rows


class StepFailed(Exception):
    """The sentence that says what a step met instead of what it declared. Internal to the engine."""


class Steps:
    """The state of one scenario while its steps are carried out, in `directory`. Close it at the end."""

    def __init__(self, scenario: Scenario, supervisor: Supervisor, directory: Path, bounds: Bounds, store: Store) -> None:
        self._scenario, self._supervisor, self._directory, self._bounds = scenario, supervisor, directory, bounds
        self._ports = Ports()
        self._store = store
        self._opened: Database | None = None
        self.processes: list[Process] = []
        self.checks: list[CheckResult] = []
        self.exports: list[ExportResult] = []
        self._handlers: Mapping[type[Any], Callable[[int, Any], Awaitable[None]]] = {
            Start: self._start,
            Begin: self._begin,
            Run: self._run,
            Together: self._together,
            Stop: self._stop,
            Kill: self._kill,
            Await: self._await,
            AwaitPaused: self._await_paused,
            Resume: self._resume,
            Write: self._write,
            Flip: self._flip,
            Move: self._move,
            Check: self._check,
            Export: self._export,
            LimitFiles: self._limit_files,
            KillDatabase: self._kill_database,
            StartDatabase: self._start_database,
        }

    async def close(self) -> None:
        """Give the ports back and remove the database. No process may use it any more."""
        self._ports.close()
        if self._opened is not None:
            await self._opened.close()

    async def carry_out(self, number: int, step: Step) -> None:
        """Do step `number` (from 1). Raises StepFailed, and HarnessBug and OSError where the machine fails."""
        await self._handlers[type(step)](number, step)

    async def end(self, process: Process) -> None:
        """End a process that no step ends. Raises HarnessBug if that cannot be done."""
        process.ended_by = "harness"
        self._supervisor.signal(process.child, signal.SIGKILL)
        try:
            await process.child.wait_ended(self._bounds.stop_seconds)
        except TimeoutError:
            raise HarnessBug(f"{process} (pid {process.child.pid}) cannot be killed") from None
        finally:
            process.child.drop_output()

    async def _launch(self, number: int, program: Program, halt_at: str | None, pause_at: str | None = None) -> Process:
        if any(each.name == program.process and each.child.running for each in self.processes):
            raise StepFailed(f"{program.process} is running already; the scenario lacks a step that ends it")
        for setting in (halt_at, pause_at):
            _known(setting)
        substitutions = {
            match[0][1:-1]: await self._named(match) for text in program.arguments for match in _NAMED.finditer(text)
        }
        arguments = tuple(_NAMED.sub(lambda match: substitutions[match[0][1:-1]], text) for text in program.arguments)
        armed = {faults.HALT_VARIABLE: halt_at, faults.PAUSE_VARIABLE: pause_at}
        environment = {name: value for name, value in armed.items() if value}
        child = await self._supervisor.start(Launch(program.module, arguments, self._directory, environment))
        incarnation = 1 + sum(each.name == program.process for each in self.processes)
        process = Process(self._scenario.path, program, incarnation, number, substitutions, environment, child)
        self.processes.append(process)
        return process

    async def _named(self, match: re.Match[str]) -> str:
        """What stands in the place of a name in braces."""
        return str(self._ports.of(match["server"])) if match["server"] else (await self._database()).url

    async def _database(self) -> Database:
        if self._opened is None:
            self._opened = await self._store.database(self._scenario, self._directory)
        return self._opened

    def _latest(self, name: str) -> Process:
        for process in reversed(self.processes):
            if process.name == name:
                return process
        raise StepFailed(f"no process named {name} is running; the scenario lacks a step that starts it")

    def _running(self, name: str) -> Process:
        process = self._latest(name)
        if process.child.running:
            return process
        raise StepFailed(f"{process} is expected to be running, but it ended with {process.child.ended.result()}")

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
            await self.end(process)
            raise StepFailed(f"{process}: expected its end within {seconds:g} s, but it went on and was killed") from None

    async def _start(self, number: int, step: Start) -> None:
        process = await self._launch(number, step.program, step.halt_at, step.pause_at)
        seconds = self._bounds.ready_seconds
        try:
            ready = await process.child.wait_ready(seconds)
        except TimeoutError:
            raise StepFailed(f"{process}: expected its READY line within {seconds:g} s, but none came") from None
        if ready is None:
            ending = await self._end(process, self._bounds.stop_seconds)
            raise StepFailed(f"{process}: expected its READY line, but it ended with {ending}{process.last_words()}")

    async def _begin(self, number: int, step: Begin) -> None:
        await self._launch(number, step.program, step.halt_at, step.pause_at)

    async def _run(self, number: int, step: Run) -> None:
        process = await self._launch(number, step.program, step.halt_at)
        process.expect_code(step.exit_code)
        await self._expect_exit(process, step.exit_code)

    async def _together(self, number: int, step: Together) -> None:
        started = [(await self._launch(number, run.program, run.halt_at), run.exit_code) for run in step.runs]
        for process, exit_code in started:
            process.expect_code(exit_code)
        waits = (self._expect_exit(process, exit_code) for process, exit_code in started)
        failures = [each for each in await asyncio.gather(*waits, return_exceptions=True) if each is not None]
        for failure in failures:
            if not isinstance(failure, StepFailed):
                raise failure
        if failures:
            raise StepFailed("; ".join(str(failure) for failure in failures))

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

    async def _await_paused(self, number: int, step: AwaitPaused) -> None:
        process = self._running(step.process)
        seconds = self._bounds.ready_seconds
        try:
            stopped = await process.child.wait_stopped(seconds)
        except TimeoutError:
            raise StepFailed(f"{process}: expected it to pause within {seconds:g} s, but it did not") from None
        if not stopped:
            ending = await self._end(process, self._bounds.stop_seconds)
            raise StepFailed(f"{process}: expected it to pause, but it ended with {ending}{process.last_words()}")
        process.was_paused = True

    async def _resume(self, number: int, step: Resume) -> None:
        process = self._running(step.process)
        if not process.child.stopped_or_ended.is_set():
            raise StepFailed(f"{process} is not paused; the scenario lacks a step that awaits its pause")
        self._supervisor.signal(process.child, signal.SIGCONT)

    async def _write(self, number: int, step: Write) -> None:
        path = self._directory / step.path
        with _file_step(step.path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.content, encoding="ascii")

    async def _flip(self, number: int, step: Flip) -> None:
        path = self._directory / step.path
        content = bytearray(path.read_bytes()) if path.is_file() else bytearray()
        if not 0 <= step.offset < len(content):
            raise StepFailed(f"{step.path} has {len(content)} bytes, none at offset {step.offset}")
        content[step.offset] ^= 1
        path.write_bytes(content)

    async def _move(self, number: int, step: Move) -> None:
        source, target = self._directory / step.path, self._directory / step.to
        if not os.path.lexists(source):
            raise StepFailed(f"there is no {step.path} that could be moved")
        if os.path.lexists(target):
            raise StepFailed(f"{step.path} cannot be moved: {step.to} exists, and evidence is not overwritten")
        with _file_step(step.to):
            source.rename(target)

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
        self.checks.append(CheckResult(step.name, step.counts, counts))
        if counts != step.counts:
            raise StepFailed(f"checkpoint {step.name}: expected {step.counts}, actual {counts}")

    async def _export(self, _number: int, step: Export) -> None:
        at = self._directory / EXPORTS / f"{step.name}.json"
        try:
            await export((await self._database()).address, at)
        except (Halt23Error, FileExistsError) as error:
            raise StepFailed(f"export {step.name}: {error}") from None
        rows = count_rows(at)
        self.exports.append(ExportResult(step.name, step.rows, rows))
        if rows != step.rows:
            raise StepFailed(f"export {step.name}: expected {step.rows}, actual {rows}")

    async def _limit_files(self, _number: int, step: LimitFiles) -> None:
        process = self._running(step.process)
        psutil.Process(process.child.pid).rlimit(psutil.RLIMIT_FSIZE, (step.max_bytes, psutil.RLIM_INFINITY))

    async def _kill_database(self, _number: int, _step: KillDatabase) -> None:
        with _refused():
            await (await self._database()).kill()

    async def _start_database(self, _number: int, _step: StartDatabase) -> None:
        with _refused():
            await (await self._database()).start()


def _known(setting: str | None) -> None:
    try:
        if setting is not None:
            faults.parse(setting)
    except BadInput as error:
        raise StepFailed(str(error)) from None


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """Turn what a database cannot be asked for into the failure of the step."""
    try:
        yield
    except BadInput as error:
        raise StepFailed(str(error)) from None


@contextlib.contextmanager
def _file_step(path: str) -> Iterator[None]:
    """Turn what is wrong with a step's path or content into its failure. A full disk stays the machine's."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError, ValueError) as error:
        raise StepFailed(f"{path}: {error}") from None
