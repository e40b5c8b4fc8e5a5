"""Starts the programs of a case: at the time of the round, with what the round's faults arm, and with their points observed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from outbox import faults
from scenarios.engine import lines
from scenarios.engine.processes import Process
from scenarios.engine.stage import Stage
from scenarios.explore import struck
from scenarios.explore.model import RELAY, Case, Death, Pause, Reached, Role, Subject
from scenarios.explore.sysfaults import SysFault
from scenarios.model import Program

START_SECONDS = 1000
POINTS = "points"


def at_round(program: Program, subject: Subject, number: int, *, later_seconds: int = 0) -> Program:
    """The program at the time of round `number` (from 1), or so much later."""
    return at_time(program, START_SECONDS + (number - 1) * subject.round_seconds + later_seconds)


def at_time(program: Program, seconds: int) -> Program:
    """The program at this time of its own clock."""
    return replace(program, arguments=tuple(each.replace("{now}", str(seconds)) for each in program.arguments))


class Launcher:
    """Starts roles of `case` on `stage`. With `observe` each process lists the points that it reaches, or with `by_line` the
    lines."""

    def __init__(self, case: Case, stage: Stage, *, observe: bool, tracing: struck.Tracing, by_line: bool = False) -> None:
        self.case, self.stage, self.tracing = case, stage, tracing
        self._observe = observe
        # Not both: where points are listed a write is done in two halves, by other lines.
        self._variable = lines.LINES_VARIABLE if by_line else faults.POINTS_VARIABLE

    def make_room(self) -> None:
        """Make the folder for the lists of points; the stage's folder is there."""
        if self._observe:
            (self.stage.directory / POINTS).mkdir()
        self.tracing.make_room()

    async def launch(self, role: Role, number: int) -> Process:
        """Start the role in round `number`."""
        environment: dict[str, str] = {}
        armed = self.case.armed(number, role.process)
        if isinstance(armed, SysFault):
            environment[struck.VARIABLE] = armed.setting
        elif armed is not None:
            environment[_variable(armed)] = armed.setting
        if self._observe:
            # Programs run in the folder of their case, so this is the same text wherever that is.
            environment[self._variable] = self._list(role, number).relative_to(self.stage.directory).as_posix()
        process = await self.stage.launch(number, self.program(role, number), environment, self.tracing.command(role, number))
        self.tracing.follow(process, number)
        return process

    async def overtaking(self, role: Role, number: int) -> Process:
        """Start another process of the role's program: later than any lease of the first one lasts, or in its last second."""
        subject, armed = self.case.subject, self.case.armed(number, role.process)
        later = subject.pause_seconds
        if isinstance(armed, Pause) and armed.in_lease and role.lease_seconds is not None:
            later = role.lease_seconds - 1
        program = at_round(role.program, subject, number, later_seconds=later)
        return await self.stage.launch(number, replace(program, process=f"other_{role.process}"), {})

    def program(self, role: Role, number: int) -> Program:
        """What is started for the role in round `number`."""
        program = at_round(role.program, self.case.subject, number)
        if role.process != RELAY:
            return program
        cuts = [part for cut in self.case.cuts(number) for part in ("--fault", cut.argument)]
        return replace(program, arguments=(*program.arguments, *cuts))

    def points(self, number: int) -> Reached:
        """What the processes of round `number` have reached so far, in the order of the roles."""
        found: dict[str, Mapping[str, int]] = {}
        for role in self.case.subject.roles:
            path = self._list(role, number)
            if path.exists():
                found[role.process] = Counter(path.read_text("ascii").split())
        return found

    def _list(self, role: Role, number: int) -> Path:
        return self.stage.directory / POINTS / f"{number}.{role.process}"


def _variable(armed: Death | Pause) -> str:
    if isinstance(armed, Pause):
        return faults.PAUSE_VARIABLE
    return lines.HALT_VARIABLE if lines.is_line(armed.point) else faults.HALT_VARIABLE
