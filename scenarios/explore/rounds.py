"""Plays one case: round after round the same programs on the same files, with the faults of each round.

A round starts every role of the subject in order. Recovery is at its end when nothing is left to do and every program ended as
it does then. Rounds are bounded; what is unfinished after the last one is stuck. A verdict is read from the files that the
processes left, and from nothing else.
"""

import shutil
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from outbox import faults
from scenarios.engine.processes import Process
from scenarios.engine.stage import Bounds, Stage, StepFailed
from scenarios.engine.stores import Store
from scenarios.engine.supervisor import Supervisor
from scenarios.explore.model import RELAY, Case, Death, Reached, Role, Subject
from scenarios.explore.state import Place, State
from scenarios.explore.verdicts import Verdict, judge
from scenarios.model import Counts, Program, Scenario

# Beyond the rounds with faults: one to recover, one for what a receiver's death left undone, one to spare.
SPARE_ROUNDS = 3
START_SECONDS = 1000
POINTS = "points"
BOUNDS = Bounds(ready_seconds=15.0, run_seconds=15.0, stop_seconds=10.0)
# A server that was to die is dead before whoever talked to it has ended; the news of it is slower by a moment.
NEWS_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Left:
    """A process that halted where it was armed, in which round, and what was durable then."""

    death: Death
    round: int
    state: State


@dataclass(slots=True)
class Played:
    """What came of a case: who died, the points of each round, the last state, and the verdict."""

    case: Case
    left: list[Left] = field(default_factory=list)
    reached: list[Reached] = field(default_factory=list)
    state: State | None = None
    rounds: int = 0
    processes: int = 0
    verdict: Verdict = field(default_factory=Verdict)


@dataclass(frozen=True, slots=True)
class Room:
    """What all cases of a campaign share. `observe` lists the points that each round reaches, a line for each.

    With `restart_servers` every round begins with new servers: then their points are told round by round, too. `prepared` is a
    directory as it is when all roles that run once have done their work: a case whose faults strike none of them begins there.
    """

    supervisor: Supervisor
    store: Store
    bounds: Bounds = BOUNDS
    observe: bool = False
    restart_servers: bool = False
    prepared: Path | None = None


class Play:
    """One case in `directory`, which it creates."""

    def __init__(self, case: Case, room: Room, directory: Path) -> None:
        self._case, self._subject, self._directory, self._room = case, case.subject, directory, room
        scenario = Scenario("explore", str(case), "", "", (), Counts(0, 0, 0, 0), store=case.subject.store)
        self._stage = Stage(scenario, room.supervisor, directory, room.bounds, room.store)
        self._played = Played(case)
        self._doubts: list[str] = []
        self._done: set[str] = set()
        self._armed_servers: list[Process] = []
        self._round = 0

    async def run(self) -> Played:
        """Play all rounds, end what lives, judge. Raises HarnessBug and OSError."""
        self._prepare()
        finished = False
        try:
            try:
                finished = await self._rounds()
            except StepFailed as sentence:
                self._doubts.append(f"round {self._round}: {sentence}")
            await self._end_all()
            self._played.state = state = await self._state()
        finally:
            await self._stage.close()
        self._played.verdict = judge(self._case, state, finished=finished, doubts=self._doubts)
        return self._played

    def _prepare(self) -> None:
        once = {role.process for role in self._subject.roles if role.once}
        struck = {fault.process for fault in self._case.faults if isinstance(fault, Death)}
        if self._room.prepared is not None and not once & struck:
            shutil.copytree(self._room.prepared, self._directory)
            self._done |= once
        else:
            self._directory.mkdir(parents=True)
        if self._room.observe:
            (self._directory / POINTS).mkdir()

    async def _rounds(self) -> bool:
        """Whether recovery came to its end."""
        for number in range(1, len(self._case.rounds) + SPARE_ROUNDS + 1):
            self._played.rounds = self._round = number
            settled = await self._play_round()
            if settled and number >= len(self._case.rounds) and not (await self._state()).unfinished:
                return True
        return False

    async def _play_round(self) -> bool:
        """Start every role; whether each of them ended, or serves, as it does when all is done."""
        settled = True
        for role in self._subject.roles:
            settled &= await (self._serve(role) if role.server else self._work(role))
        for server in self._armed_servers:
            if await self._has_halted(server):
                await self._died(server)
                settled = False
        self._armed_servers.clear()
        if self._room.observe:
            self._played.reached.append(self._points())
        for death in self._case.deaths(self._round):
            if not any((left.death, left.round) == (death, self._round) for left in self._played.left):
                self._doubts.append(
                    f"round {self._round}: {death.process} was armed at {death.setting} and did not halt there; "
                    "this run is not the one that the case was derived from: derive again"
                )
        return settled

    async def _work(self, role: Role) -> bool:
        if role.process in self._done:
            return True
        process = await self._launch(role)
        ending = await self._stage.ended(process, self._stage.bounds.run_seconds)
        if ending.exit_code == faults.HALT_EXIT_CODE:
            await self._died(process)
            return False
        done = ending.exit_code in role.done
        if done and role.once:
            self._done.add(role.process)
        return done

    async def _serve(self, role: Role) -> bool:
        """Start a server, or let the one that lives go on, unless this round wants another one."""
        living = self._living(role)
        if living is not None:
            if not self._wants_another(role):
                return True
            await self._kill(living)
        process = await self._launch(role)
        try:
            await self._stage.ready(process)
        except StepFailed:
            if not await self._has_halted(process):
                raise
            await self._died(process)
            return False
        if process.halt_at is not None:
            self._armed_servers.append(process)
        return True

    def _wants_another(self, role: Role) -> bool:
        before = self._case.cuts(self._round - 1) if self._round > 1 else ()
        cut = role.process == RELAY and (before or self._case.cuts(self._round))
        return bool(self._room.restart_servers or cut or self._case.armed(self._round, role.process))

    def _living(self, role: Role) -> Process | None:
        process = next((each for each in reversed(self._stage.processes) if each.name == role.process), None)
        return process if process is not None and process.child.running else None

    async def _has_halted(self, process: Process) -> bool:
        """Whether a process that was armed has halted, waiting a moment for the news of it."""
        try:
            ending = await process.child.wait_ended(NEWS_SECONDS)
        except TimeoutError:
            return False
        return ending.exit_code == faults.HALT_EXIT_CODE

    async def _launch(self, role: Role) -> Process:
        environment: dict[str, str] = {}
        armed = self._case.armed(self._round, role.process)
        if armed is not None:
            environment[faults.HALT_VARIABLE] = armed.setting
        if self._room.observe:
            environment[faults.POINTS_VARIABLE] = str(self._points_file(role))
        process = await self._stage.launch(self._round, self._program(role), environment)
        self._played.processes += 1
        return process

    def _program(self, role: Role) -> Program:
        program = at_round(role.program, self._subject, self._round)
        if role.process != RELAY:
            return program
        cuts = [part for cut in self._case.cuts(self._round) for part in ("--fault", cut.argument)]
        return replace(program, arguments=(*program.arguments, *cuts))

    async def _died(self, process: Process) -> None:
        armed = self._case.armed(self._round, process.name)
        if armed is None:
            self._doubts.append(f"round {self._round}: {process} ended with 23, the injected halt, though nothing was armed")
            return
        self._played.left.append(Left(armed, self._round, await self._state()))

    async def _kill(self, process: Process) -> None:
        process.ended_by = "kill"
        self._stage.signal(process, signal.SIGKILL)
        await self._stage.ended(process, self._stage.bounds.stop_seconds)

    async def _end_all(self) -> None:
        for process in self._stage.processes:
            if process.child.running:
                await self._kill(process)

    async def _state(self) -> State:
        named = any("{db}" in argument for role in self._subject.roles for argument in role.program.arguments)
        address = (await self._stage.database()).address if named else None
        return self._subject.read(Place(self._directory, address))

    def _points_file(self, role: Role) -> Path:
        return self._directory / POINTS / f"{self._round}.{role.process}"

    def _points(self) -> Reached:
        found: dict[str, Mapping[str, int]] = {}
        for role in self._subject.roles:
            path = self._points_file(role)
            if path.exists():
                found[role.process] = Counter(path.read_text("ascii").split())
        return found


def at_round(program: Program, subject: Subject, number: int) -> Program:
    """The program at the time of round `number`."""
    now = str(START_SECONDS + (number - 1) * subject.round_seconds)
    return replace(program, arguments=tuple(each.replace("{now}", now) for each in program.arguments))
