"""Carrying out one step of a scenario: the only place that knows what each kind of step does.

A step that meets something else than it declares raises `StepFailed` with a sentence that names the process, what was expected
and what happened. Every wait has a bound; a process that passes it is killed.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psutil

from outbox import faults
from outbox.errors import BadInput, Halt23Error
from scenarios.engine.counts import CHECKPOINTS, count, count_rows, journals
from scenarios.engine.exports import EXPORTS, export
from scenarios.engine.processes import Process
from scenarios.engine.stage import Stage, StepFailed
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
    Start,
    StartDatabase,
    Step,
    Stop,
    Together,
    Write,
)


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


class Steps:
    """Carries out the steps of one scenario on its stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._directory, self._bounds = stage.directory, stage.bounds
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

    async def carry_out(self, number: int, step: Step) -> None:
        """Do step `number` (from 1). Raises StepFailed, and HarnessBug and OSError where the machine fails."""
        await self._handlers[type(step)](number, step)

    async def _launch(self, number: int, program: Program, halt_at: str | None, pause_at: str | None = None) -> Process:
        armed = {faults.HALT_VARIABLE: halt_at, faults.PAUSE_VARIABLE: pause_at}
        return await self.stage.launch(number, program, {name: value for name, value in armed.items() if value})

    async def _start(self, number: int, step: Start) -> None:
        await self.stage.ready(await self._launch(number, step.program, step.halt_at, step.pause_at))

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
        process = self.stage.latest(step.process)
        process.expect_code(step.exit_code)
        await self._expect_exit(process, step.exit_code)

    async def _expect_exit(self, process: Process, expected: int) -> None:
        ending = await self.stage.ended(process, self._bounds.run_seconds)
        if ending.exit_code == expected:
            return
        if process.halt_at and expected == faults.HALT_EXIT_CODE and ending.exit_code is not None:
            raise StepFailed(
                f"{process} was armed to halt at {process.halt_at}: expected exit code {expected}, actual exit code "
                f"{ending.exit_code}; the armed point was not reached{process.last_words()}"
            )
        raise StepFailed(f"{process}: expected exit code {expected}, actual {ending}{process.last_words()}")

    async def _stop(self, number: int, step: Stop) -> None:
        process = self.stage.running(step.process)
        process.expect_code(0)
        process.ended_by = "stop"
        self.stage.signal(process, signal.SIGTERM)
        ending = await self.stage.ended(process, self._bounds.stop_seconds)
        if ending.exit_code != 0:
            raise StepFailed(f"{process} was stopped: expected exit code 0, actual {ending}{process.last_words()}")

    async def _kill(self, number: int, step: Kill) -> None:
        process = self.stage.running(step.process)
        process.expect_signal("SIGKILL")
        ending = await self.stage.kill(process)
        if ending.signal != "SIGKILL":
            raise StepFailed(f"{process} was killed: expected signal SIGKILL, actual {ending}{process.last_words()}")

    async def _await_paused(self, number: int, step: AwaitPaused) -> None:
        process = self.stage.running(step.process)
        seconds = self._bounds.ready_seconds
        try:
            stopped = await process.child.wait_stopped(seconds)
        except TimeoutError:
            raise StepFailed(f"{process}: expected it to pause within {seconds:g} s, but it did not") from None
        if not stopped:
            ending = await self.stage.ended(process, self._bounds.stop_seconds)
            raise StepFailed(f"{process}: expected it to pause, but it ended with {ending}{process.last_words()}")
        process.was_paused = True

    async def _resume(self, number: int, step: Resume) -> None:
        process = self.stage.running(step.process)
        if not process.child.stopped_or_ended.is_set():
            raise StepFailed(f"{process} is not paused; the scenario lacks a step that awaits its pause")
        self.stage.signal(process, signal.SIGCONT)

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
            await export((await self.stage.database()).address, at)
        except (Halt23Error, FileExistsError) as error:
            raise StepFailed(f"export {step.name}: {error}") from None
        rows = count_rows(at)
        self.exports.append(ExportResult(step.name, step.rows, rows))
        if rows != step.rows:
            raise StepFailed(f"export {step.name}: expected {step.rows}, actual {rows}")

    async def _limit_files(self, _number: int, step: LimitFiles) -> None:
        process = self.stage.running(step.process)
        psutil.Process(process.child.pid).rlimit(psutil.RLIMIT_FSIZE, (step.max_bytes, psutil.RLIM_INFINITY))

    async def _kill_database(self, _number: int, _step: KillDatabase) -> None:
        with _refused():
            await (await self.stage.database()).kill()

    async def _start_database(self, _number: int, _step: StartDatabase) -> None:
        with _refused():
            await (await self.stage.database()).start()


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
