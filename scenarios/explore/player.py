"""Plays a history on the real processes, and then recovers honestly: the same programs without faults, round after round.

One step follows the other; where a process is to be struck while another waits for it, the player waits for whichever stops or
ends first. Every wait has a bound, and nothing is waited for by the clock. What is armed and never reached does not come. The
verdict is that of all other cases, from the files that are left.
"""

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil

from outbox import faults
from scenarios.engine.processes import Process
from scenarios.engine.stage import StepFailed
from scenarios.explore.cast import judged, server
from scenarios.explore.histories import CLOCK, KILL, RUN, STOP, History, Step, Strike
from scenarios.explore.launcher import at_time
from scenarios.explore.model import RELAY, Case, Death, Role
from scenarios.explore.rounds import DID_NOTHING, SPARE_ROUNDS, Left, Play, Played, Room
from scenarios.explore.servers import Servers

# Late enough for every jump back.
BEGIN_SECONDS = 1_000_000


async def play(case: Case, room: Room, directory: Path) -> Played:
    """Play a case in `directory`, which is created. Raises HarnessBug and OSError."""
    if case.history is None:
        return await Play(case, room, directory).run()
    room = replace(room, prepared=None, houses=None, observe=False, restart_servers=False)
    return await HistoryPlay(judged(case.subject, case.history), room, directory).run()


class HistoryPlay(Play):
    """One history; see the module."""

    def __init__(self, case: Case, room: Room, directory: Path) -> None:
        super().__init__(case, room, directory)
        assert case.history is not None
        self._history: History = case.history.history
        self._now = self._latest = BEGIN_SECONDS
        self._server: Process | None = None
        self._strikes: dict[int, Strike] = {}
        self._down = False

    async def _rounds(self, _servers: Servers) -> bool:
        """Play all steps, recover; whether recovery came to its end."""
        for number, step in enumerate(self._history.steps, 1):
            self._played.rounds = self._round = number
            if not self._down and step.do == RUN and self._stage.living(server(self._subject).process) is None:
                await self._relay(self._history.wire)
                await self._serve(None)
            await self._step(step)
        await self._kill_all()
        for _ in range(SPARE_ROUNDS):
            self._played.rounds = self._round = self._round + 1
            self._now = self._latest = self._latest + self._subject.round_seconds
            settled = await self._recover()
            if settled and not (await self._state()).unfinished:
                return True
        if settled and await self._did_nothing():
            self._doubts.append(DID_NOTHING)
        return False

    async def _recover(self) -> bool:
        """One round without faults; whether every program ended as it does when all is done."""
        settled = True
        for role in self._subject.roles:
            if not role.server:
                process = await self._run(role, None)
                settled &= process is None or self._is_done(role, process)
            elif role.process == RELAY:
                await self._relay(())
            elif self._stage.living(role.process) is None:
                await self._serve(None)
                settled &= self._stage.living(role.process) is not None
        return settled

    async def _step(self, step: Step) -> None:
        if step.do == RUN:
            assert step.process is not None
            process = await self._run(self._subject.role(step.process), step)
            if process is not None:
                self._is_done(self._subject.role(step.process), process)
        elif step.do == KILL:
            self._down = True
            await self._kill_server()
        elif step.do == CLOCK:
            self._now += step.seconds
            self._latest = max(self._latest, self._now)
        else:
            self._down = False
            await self._kill_server()
            await self._relay(self._history.wire)
            await self._serve(step.strike)

    async def _run(self, role: Role, step: Step | None) -> Process | None:
        """Run a program to its end, or to that of the step's; None where it has done its work and is not needed again."""
        if role.process in self._done:
            return None
        strike = step.strike if step is not None else None
        process = await self._launch(role, strike)
        await self._until(process)
        if step is not None and process.child.running:
            if strike is not None and strike.how == STOP:
                for each in step.meanwhile:
                    await self._step(each)
                self._stage.signal(process, signal.SIGCONT)
                await self._until(process)
            else:
                await self._kill_struck(process)
        ending = await self._stage.ended(process, self._stage.bounds.run_seconds)
        if ending.exit_code == faults.HALT_EXIT_CODE:
            await self._note(process)
        await self._see_server()
        return process

    def _is_done(self, role: Role, process: Process) -> bool:
        """Whether a program ended as it does when all is done."""
        done = process.child.ended.result().exit_code in role.done
        if done and role.once:
            self._done.add(role.process)
        return done

    async def _launch(self, role: Role, strike: Strike | None) -> Process:
        """Start a program at the history's time; beside one of its name that lives it is the other one."""
        environment: Mapping[str, str] = {}
        if strike is not None:
            halts = strike.how not in (KILL, STOP)
            environment = {faults.HALT_VARIABLE if halts else faults.PAUSE_VARIABLE: strike.setting}
        name = role.process if self._stage.living(role.process) is None else f"other_{role.process}"
        process = await self._stage.launch(self._round, replace(at_time(role.program, self._now), process=name), environment)
        if strike is not None:
            self._strikes[process.child.number] = strike
        return process

    async def _until(self, process: Process) -> None:
        """Wait until `process` has stopped or ended. A receiver that stops before has its strike first."""
        while True:
            watched = self._server if self._server is not None and self._server.pause_at is not None else None
            await self._first(process, watched, self._stage.bounds.run_seconds)
            if watched is None or not watched.child.stopped_or_ended.is_set() or not watched.child.running:
                if process.child.stopped_or_ended.is_set():
                    return
                self._server = None if watched is self._server else self._server
                continue
            await self._server_stopped(watched, process)

    async def _first(self, process: Process, watched: Process | None, seconds: float) -> None:
        """Wait until one of the two has stopped or ended. Raises StepFailed past the bound."""
        both = [each.child.stopped_or_ended.wait() for each in (process, watched) if each is not None]
        tasks = [asyncio.ensure_future(each) for each in both]
        try:
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if not done:
            await self._stage.end(process)
            raise StepFailed(f"{process}: expected its end within {seconds:g} s, but it went on and was killed")

    async def _server_stopped(self, stopped: Process, waiting: Process) -> None:
        """The receiver has stopped in a request: kill it, or kill who waits for it, let it finish, and start it anew."""
        if self._strikes[stopped.child.number].how == KILL:
            await self._kill_struck(stopped)
            self._server = None
            return
        if waiting.child.running:
            await self._stage.kill(waiting)
        self._stage.signal(stopped, signal.SIGCONT)
        await self._finish(stopped)
        await self._serve(None)

    async def _finish(self, process: Process) -> None:
        """Let a server finish what it has in progress, and end."""
        process.ended_by = "harness"
        self._stage.signal(process, signal.SIGTERM)
        await self._stage.ended(process, self._stage.bounds.stop_seconds)
        self._server = None

    async def _serve(self, strike: Strike | None) -> None:
        """Start the receiver; it may die where it is struck before it serves."""
        role = server(self._subject)
        process = await self._launch(role, strike)
        told = asyncio.ensure_future(process.child.stdout.ready_or_complete.wait())
        struck = asyncio.ensure_future(process.child.stopped_or_ended.wait())
        await asyncio.wait((told, struck), timeout=self._stage.bounds.ready_seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (told, struck):
            task.cancel()
        if process.child.stdout.ready_line is None and process.child.stopped_or_ended.is_set() and process.child.running:
            if strike is not None and strike.how == KILL:
                await self._kill_struck(process)
                return
            self._stage.signal(process, signal.SIGCONT)  # nobody waits for it that could be killed
        try:
            await self._stage.ready(process)
        except StepFailed:
            halted = not process.child.running and process.child.ended.result().exit_code == faults.HALT_EXIT_CODE
            if halted:
                await self._note(process)
            elif process.child.running or not self._played.left:
                raise  # after a death it is what that left that keeps the receiver from serving
            return
        self._server = process

    async def _see_server(self) -> None:
        """Note the death of a receiver that was armed; its parent tells of it a moment later than the kernel knows."""
        process = self._server
        if process is None or process.halt_at is None or not _has_ended(process.child.pid):
            return
        await self._stage.ended(process, self._stage.bounds.stop_seconds)
        await self._note(process)
        self._server = None

    async def _relay(self, cuts: tuple[tuple[int, str], ...]) -> None:
        """Put the relay between the two, where the subject has one; for a recovery, a new one without faults."""
        role = next((each for each in self._subject.roles if each.process == RELAY), None)
        if role is None or (self._stage.living(RELAY) is not None):
            return
        told = tuple(part for connection, fault in cuts for part in ("--fault", f"{connection}:{fault}"))
        program = replace(role.program, arguments=(*role.program.arguments, *told))
        await self._stage.ready(await self._stage.launch(self._round, program, {}))

    async def _kill_server(self) -> None:
        living = self._stage.living(server(self._subject).process)
        if living is not None:
            await self._stage.kill(living)
        self._server = None

    async def _kill_struck(self, process: Process) -> None:
        """Kill a process where it has stopped."""
        await self._stage.kill(process)
        await self._note(process)

    async def _kill_all(self) -> None:
        """Recovery begins with nobody alive."""
        self._server = None
        await self._end_all()

    async def _note(self, process: Process) -> None:
        """Note what a process left that died where it was armed."""
        strike = self._strikes.get(process.child.number)
        if strike is None:
            self._doubts.append(f"step {self._round}: {process} ended with 23, the injected halt, though nothing was armed")
            return
        death = Death(process.name.removeprefix("other_"), strike.point, strike.occurrence)
        self._played.left.append(Left(death, self._round, await self._state()))


def _has_ended(pid: int) -> bool:
    """What the kernel says; the process is the spawner's child, and its number is its own until that has told of its end."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
