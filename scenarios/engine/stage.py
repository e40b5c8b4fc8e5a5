"""Where a scenario or a crash case plays: its processes, ports and database, in one directory.

Steps of scenarios and rounds of cases are two ways of using the same stage. Nothing here knows what should come out; what goes
otherwise than a caller may expect is a `StepFailed` with a sentence.
"""

import re
import signal
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from outbox import faults
from outbox.errors import BadInput
from scenarios.engine import lines
from scenarios.engine.ports import Ports
from scenarios.engine.processes import Process
from scenarios.engine.stores import Database, Store
from scenarios.engine.supervisor import Ending, Launch, Supervisor
from scenarios.errors import HarnessBug
from scenarios.model import Program, Scenario

_NAMED = re.compile(r"\{(?:(?P<server>[a-z_]+)\.port|db)\}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The longest waits of a step, in seconds: for a READY line or a pause, for a program's end, for an end after a signal."""

    ready_seconds: float = 30.0
    run_seconds: float = 60.0
    stop_seconds: float = 20.0


class StepFailed(Exception):
    """The sentence that says what was met instead of what was declared. Internal to the engine."""


class Stage:
    """The processes of `scenario` in `directory`. Close it at the end, when none of them lives any more."""

    def __init__(self, scenario: Scenario, supervisor: Supervisor, directory: Path, bounds: Bounds, store: Store) -> None:
        self.directory, self.bounds = directory, bounds
        self.processes: list[Process] = []
        self._scenario, self._supervisor, self._store = scenario, supervisor, store
        self._ports = Ports()
        self._opened: Database | None = None

    async def close(self) -> None:
        """Give the ports back and remove the database. No process may use it any more."""
        self.leave()
        if self._opened is not None:
            await self._opened.close()

    def leave(self) -> None:
        """Give the ports back; the database stays where it is."""
        self._ports.close()

    async def arguments(self, program: Program) -> tuple[tuple[str, ...], dict[str, str]]:
        """The program's arguments with every name in braces put in, and what each of these names stands for."""
        found = [match for text in program.arguments for match in _NAMED.finditer(text)]
        substitutions = {match[0][1:-1]: await self._named(match) for match in found}
        return tuple(_NAMED.sub(lambda match: substitutions[match[0][1:-1]], text) for text in program.arguments), substitutions

    async def launch(
        self, number: int, program: Program, environment: Mapping[str, str], trace: tuple[str, ...] = ()
    ) -> Process:
        """Start `program` in step `number`, under the strace `trace` where there is one. Raises StepFailed if it is running
        already, or is armed at no known point."""
        if self.living(program.process) is not None:
            raise StepFailed(f"{program.process} is running already; the scenario lacks a step that ends it")
        for variable in (faults.HALT_VARIABLE, faults.PAUSE_VARIABLE):
            _known(environment.get(variable))
        _known(environment.get(lines.HALT_VARIABLE), lines.parse)
        arguments, substitutions = await self.arguments(program)
        child = await self._supervisor.start(Launch(program.module, arguments, self.directory, environment, trace))
        incarnation = 1 + sum(each.name == program.process for each in self.processes)
        process = Process(self._scenario.path, program, incarnation, number, substitutions, environment, child)
        self.processes.append(process)
        return process

    async def _named(self, match: re.Match[str]) -> str:
        """What stands in the place of a name in braces."""
        return str(self._ports.of(match["server"])) if match["server"] else (await self.database()).url

    async def database(self) -> Database:
        """The scenario's database, made when it is asked for first."""
        if self._opened is None:
            self._opened = await self._store.database(self._scenario, self.directory)
        return self._opened

    def latest(self, name: str) -> Process:
        """The latest process of this name. Raises StepFailed if there was none."""
        for process in reversed(self.processes):
            if process.name == name:
                return process
        raise StepFailed(f"no process named {name} is running; the scenario lacks a step that starts it")

    def living(self, name: str) -> Process | None:
        """The process of this name that is running; None where none is."""
        return next((each for each in self.processes if each.name == name and each.child.running), None)

    def running(self, name: str) -> Process:
        """The same, which must be running."""
        process = self.latest(name)
        if process.child.running:
            return process
        raise StepFailed(f"{process} is expected to be running, but it ended with {process.child.ended.result()}")

    def signal(self, process: Process, number: signal.Signals) -> None:
        """Send a signal to a process that has not ended."""
        self._supervisor.signal(process.child, number)

    async def ready(self, process: Process) -> None:
        """Wait for a server's READY line. Raises StepFailed where none comes."""
        seconds = self.bounds.ready_seconds
        try:
            ready = await process.child.wait_ready(seconds)
        except TimeoutError:
            raise StepFailed(f"{process}: expected its READY line within {seconds:g} s, but none came") from None
        if ready is None:
            ending = await self.ended(process, self.bounds.stop_seconds)
            raise StepFailed(f"{process}: expected its READY line, but it ended with {ending}{process.last_words()}")

    async def ended(self, process: Process, seconds: float) -> Ending:
        """Wait for the end of `process` and of its output; past the bound, kill it and raise StepFailed."""
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

    async def expect(self, process: Process, codes: Collection[int]) -> None:
        """Wait for the end of `process`, with one of these exit codes. Raises StepFailed."""
        ending = await self.ended(process, self.bounds.run_seconds)
        if ending.exit_code not in codes:
            raise StepFailed(
                f"{process}: expected exit code {' or '.join(map(str, sorted(codes)))}, actual {ending}{process.last_words()}"
            )

    async def kill(self, process: Process) -> Ending:
        """Kill a running process (SIGKILL) as a part of what is played, and wait for its end. Raises StepFailed."""
        process.ended_by = "kill"
        self.signal(process, signal.SIGKILL)
        return await self.ended(process, self.bounds.stop_seconds)

    async def end(self, process: Process) -> None:
        """End a process that nothing else ends. Raises HarnessBug if that cannot be done."""
        process.ended_by = "harness"
        self._supervisor.signal(process.child, signal.SIGKILL)
        try:
            await process.child.wait_ended(self.bounds.stop_seconds)
        except TimeoutError:
            raise HarnessBug(f"{process} (pid {process.child.pid}) cannot be killed") from None
        finally:
            process.child.drop_output()


def _known(setting: str | None, parse: Callable[[str], object] = faults.parse) -> None:
    try:
        if setting is not None:
            parse(setting)
    except BadInput as error:
        raise StepFailed(str(error)) from None
