"""Plays one case: round after round the same programs on the same files, with the faults of each round.

A round starts every role of the subject in order. Recovery is at its end when nothing is left to do and every program ended as
it does then. Rounds are bounded; what is unfinished after the last one is stuck. A verdict is read from the files that the
processes left, and from nothing else.
"""

import contextlib
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from outbox import faults
from scenarios.engine import evidence
from scenarios.engine.exports import EXPORTS, export, write_tables
from scenarios.engine.processes import Process
from scenarios.engine.stage import Bounds, Stage, StepFailed
from scenarios.engine.stores import Store
from scenarios.engine.supervisor import Supervisor
from scenarios.explore.calls import Listings
from scenarios.explore.exchanges import undone
from scenarios.explore.launcher import Launcher
from scenarios.explore.model import Case, Deadly, Power, Reached, Role, is_death
from scenarios.explore.power import left_by
from scenarios.explore.servers import Servers
from scenarios.explore.state import Place, State, Unreadable, unread
from scenarios.explore.struck import Tracing, doubtful_ends
from scenarios.explore.sysfaults import SysFault
from scenarios.explore.tenants import House, Houses
from scenarios.explore.verdicts import HELD, Verdict, Violation, judge
from scenarios.model import Counts, Scenario
from scenarios.power.recording import Recording

# Beyond the rounds with faults: one to recover, one for what a receiver's death left undone, one to spare.
SPARE_ROUNDS = 3
BOUNDS = Bounds(ready_seconds=15.0, run_seconds=15.0, stop_seconds=10.0)
OVERTAKEN_SECONDS = 3.0
KEEP_FAILED, KEEP_ALL = "failed", "all"
LEFT, IMAGE, TABLES = "left", "image", "tables.json"
DID_NOTHING = (
    "recovery did nothing: every program ended as when all is done, none said a word, and no file has changed since the last "
    "death; see whether the programs of the recovery work on the files of the case"
)


@dataclass(frozen=True, slots=True)
class Left:
    """A process that halted where it was armed, or was killed there, in which round, and what was durable then."""

    death: Deadly
    round: int
    state: State


@dataclass(slots=True)
class Played:
    """What came of a case: who died, the points of each round, the last state, the verdict, and all processes; `image` is what
    a loss of power left."""

    case: Case
    left: list[Left] = field(default_factory=list)
    reached: list[Reached] = field(default_factory=list)
    state: State | None = None
    rounds: int = 0
    processes: list[Process] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    image: State | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """What all cases of a campaign share. `observe` lists the points that each round reaches, a line for each; with `by_line`
    it lists the lines of the programs instead.

    With `restart_servers` every round begins with new servers: then their points are told round by round, too. `prepared` is a
    directory as it is when all roles that run once have done their work: a case whose faults strike none of them begins there.
    `keep` says whose files stay. A case that begins with a loss of power begins with an image that the `recording` gives. Where
    there are `houses`, receivers that are not to die in a case live in one of them. `record` lists the system calls of every
    process; `listings` are those of a run without faults, which say where to strike.
    """

    supervisor: Supervisor
    store: Store
    bounds: Bounds = BOUNDS
    observe: bool = False
    by_line: bool = False
    restart_servers: bool = False
    prepared: Path | None = None
    keep: str = KEEP_FAILED
    houses: Houses | None = None
    record: bool = False
    listings: Listings | None = None
    recording: Recording | None = None

    def stage(self, name: str, directory: Path) -> Stage:
        """A stage in `directory` for what is called `name`, which is no scenario of the study."""
        scenario = Scenario("explore", name, "", "", (), Counts(0, 0, 0, 0))
        return Stage(scenario, self.supervisor, directory, self.bounds, self.store)


class Play:
    """One case in `directory`, which it creates."""

    def __init__(self, case: Case, room: Room, directory: Path) -> None:
        self._case, self._subject, self._directory, self._room = case, case.subject, directory, room
        self._stage = room.stage(str(case), directory)
        self._tracing = Tracing(case, self._stage, record=room.record, listings=room.listings)
        self._launcher = Launcher(case, self._stage, observe=room.observe, tracing=self._tracing, by_line=room.by_line)
        self._played = Played(case, processes=self._stage.processes)
        self._doubts: list[str] = []
        self._done: set[str] = set()
        self._round = 0
        self._broken: tuple[Violation, ...] = ()
        self._clock_zero = time.monotonic()

    async def run(self) -> Played:
        """Play all rounds, end what lives, judge. Raises HarnessBug and OSError."""
        self._prepare()
        if self._room.houses is None or self._room.observe or self._room.restart_servers or self._room.record:
            return await self._whole(None)
        async with self._room.houses.lent() as house:
            return await self._whole(house)

    async def _whole(self, house: House | None) -> Played:
        servers = Servers(self._launcher, house, restart=self._room.restart_servers)
        finished = False
        try:
            with self._doubting():
                finished = await self._rounds(servers)
            with self._doubting():
                await servers.close()
                await self._end_all()
            await self._tracing.close()
            self._tracing.finish(self._stage.processes)
            self._doubts += [*self._tracing.doubts, *self._unsent_signals()]
            with self._doubting():
                self._played.state = state = await self._state()
                verdict = judge(self._case, state, finished=finished, doubts=self._doubts, refused=self._tracing.violations)
                self._played.verdict = replace(verdict, violations=(*self._broken, *verdict.violations))
            if self._played.state is None:
                self._played.state, self._played.verdict = unread(), Verdict(doubts=tuple(self._doubts))
            await self._keep()
        finally:
            await self._stage.close()
        return self._played

    @contextlib.contextmanager
    def _doubting(self) -> Iterator[None]:
        """What goes otherwise than it may is a doubt about this case, and no other's business."""
        try:
            yield
        except StepFailed as sentence:
            self._doubts.append(f"round {self._round}: {sentence}")

    async def _keep(self) -> None:
        """Leave what an audit needs of this case, or nothing."""
        if self._room.keep == KEEP_FAILED and self._played.verdict.outcome == HELD:
            shutil.rmtree(self._directory)
            return
        if self._subject.uses_database and self._played.state != unread():
            await export((await self._stage.database()).address, self._directory / EXPORTS / "end.json")
        for number, left in enumerate(self._played.left, 1):
            write_state(self._directory / LEFT / str(number), left.state)
        if self._played.image is not None:
            write_state(self._directory / IMAGE, self._played.image)
        evidence.write_processes(self._directory, self._stage.processes, self._clock_zero)

    def _prepare(self) -> None:
        once = {role.process for role in self._subject.roles if role.once}
        if self._case.power is not None:
            self._begin_with_image(self._case.power)
        elif self._room.prepared is not None and not once & self._case.struck:
            shutil.copytree(self._room.prepared, self._directory)
            self._done |= once
        else:
            self._directory.mkdir(parents=True)
        self._launcher.make_room()

    def _begin_with_image(self, power: Power) -> None:
        """Build what a loss of power left, and hold it against what had been told before."""
        recording = self._room.recording
        if recording is None:
            raise StepFailed(f"{self._case} needs a recorded run")
        self._directory.mkdir(parents=True)
        self._played.image, self._broken = left_by(self._subject, recording, power, self._directory)
        self._done |= recording.done(power.call)
        self._played.reached += [{}] if self._room.observe else []

    async def _rounds(self, servers: Servers) -> bool:
        """Whether recovery came to its end."""
        settled = False
        # The round in which the power was lost was recorded once; cases begin with the one after it.
        for number in range(1 if self._case.power is None else 2, len(self._case.rounds) + SPARE_ROUNDS + 1):
            self._played.rounds = self._round = number
            settled = await self._play_round(servers)
            if settled and number >= len(self._case.rounds) and not (await self._state()).unfinished:
                return True
        if settled and await self._did_nothing():
            self._doubts.append(DID_NOTHING)
        return False

    async def _did_nothing(self) -> bool:
        """Whether nothing has changed since the last death, and no program of a later round has said a word: then nobody can
        tell whether they looked. Who says what came of it has looked, and is stuck."""
        if not self._played.left or (await self._state()).digest != self._played.left[-1].state.digest:
            return False
        servers = {role.process for role in self._subject.roles if role.server}
        later = [each for each in self._stage.processes if each.step > self._played.left[-1].round and each.name not in servers]
        return not any(each.child.stdout.text() or each.child.stderr.text() for each in later)

    async def _play_round(self, servers: Servers) -> bool:
        """Start every role; whether each of them ended, or serves, as it does when all is done."""
        settled = True
        for role in self._subject.roles:
            if not role.server:
                settled &= await self._work(role)
            elif (ended := await servers.serve(role, self._round)) is not None:
                settled = await self._did_not_serve(ended)
        for halted in await servers.halted():
            settled = await self._died(halted)
        if self._room.observe:
            self._played.reached.append(self._launcher.points(self._round))
        # Who dies may take the connection with it that was to be cut.
        if (cuts := self._case.cuts(self._round)) and not any(left.round == self._round for left in self._played.left):
            for sentence in await undone(self._directory, cuts):
                self._doubts.append(f"round {self._round}: {sentence}; derive again")
        for death in self._case.deaths(self._round):
            if not any((left.death, left.round) == (death, self._round) for left in self._played.left):
                self._doubts.append(
                    f"round {self._round}: {death.process} was armed at {death.setting} and did not halt there; "
                    "this run is not the one that the case was derived from: derive again"
                )
        return settled

    async def _work(self, role: Role) -> bool:
        if role.process in self._done or (role.after is not None and role.after not in self._done):
            return True
        process = await self._launcher.launch(role, self._round)
        if process.pause_at is not None:
            await self._overtake(role, process)
        ending = await self._stage.ended(process, self._stage.bounds.run_seconds)
        if ending.exit_code == faults.HALT_EXIT_CODE or (ending.signal and self._struck_down(process)):
            return await self._died(process)
        done = ending.exit_code in role.done
        if done and role.once:
            self._done.add(role.process)
        return done

    async def _overtake(self, role: Role, process: Process) -> None:
        """Wait until `process` is stopped, run another one of its program, and let it go on."""
        seconds = self._stage.bounds.ready_seconds
        try:
            stopped = await process.child.wait_stopped(seconds)
        except TimeoutError:
            raise StepFailed(f"{process} was to be stopped at {process.pause_at} and was not within {seconds:g} s") from None
        if not stopped:
            self._doubts.append(
                f"round {self._round}: {process} was to be stopped at {process.pause_at} and ended before; derive again"
            )
            return
        other = await self._launcher.overtaking(role, self._round)
        # Who is stopped may hold a lock of a database server, and whoever waits for that ends only after it.
        with contextlib.suppress(TimeoutError):
            await other.child.wait_ended(OVERTAKEN_SECONDS)
        self._stage.signal(process, signal.SIGCONT)
        await self._stage.ended(other, self._stage.bounds.run_seconds)

    async def _died(self, process: Process) -> bool:
        """Note what a process that halted left. False: its work is not done."""
        armed = self._case.armed(self._round, process.name)
        if isinstance(armed, SysFault) and armed.error:
            return False  # a server that ended because a call of its failed
        if is_death(armed):
            if self._struck_down(process):
                process.ended_by = "kill"
            self._played.left.append(Left(armed, self._round, await self._state()))
        else:
            self._doubts.append(f"round {self._round}: {process} ended with 23, the injected halt, though nothing was armed")
        return False

    def _struck_down(self, process: Process) -> bool:
        """Whether the process was to be killed in a system call."""
        armed = self._case.armed(self._round, process.name)
        return isinstance(armed, SysFault) and not armed.error

    async def _did_not_serve(self, server: Process) -> bool:
        """A server that ends in place of serving has died where it was to, or what a death or a loss of power left stops it.
        Then nothing is settled. Without any it is a doubt."""
        ending = server.child.ended.result()
        if ending.exit_code == faults.HALT_EXIT_CODE or isinstance(self._case.armed(self._round, server.name), SysFault):
            return await self._died(server)
        if not self._played.left and self._case.power is None:
            raise StepFailed(f"{server}: expected its READY line, but it ended with {ending}{server.last_words()}")
        return False

    def _unsent_signals(self) -> Iterator[str]:
        """Who ends by a signal that nobody sent is a doubt, whoever recovers from it."""
        ended = [each for each in self._stage.processes if not each.child.running]
        return doubtful_ends(ended, struck=any(isinstance(fault, SysFault) for fault in self._case.faults))

    async def _end_all(self) -> None:
        for process in self._stage.processes:
            if process.child.running:
                await self._stage.kill(process)

    async def _state(self) -> State:
        address = (await self._stage.database()).address if self._subject.uses_database else None
        try:
            return self._subject.read(Place(self._directory, address))
        except Exception as error:
            what = str(error) if isinstance(error, Unreadable) else f"its reader failed: {type(error).__name__}: {error}"
            raise StepFailed(f"what is durable cannot be read: {what}") from error


def write_state(directory: Path, state: State) -> None:
    """Write what a state was made of: copies of the files, and the tables of a database that had any."""
    directory.mkdir(parents=True)
    for name, content in state.contents.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    if state.tables or not state.contents:
        write_tables(state.tables, directory / TABLES)
