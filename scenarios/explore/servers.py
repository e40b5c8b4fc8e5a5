"""The servers of one case: processes of their own, or tenants of a house where nothing is to strike them."""

from outbox import faults
from scenarios.engine.processes import Process
from scenarios.engine.stage import StepFailed
from scenarios.explore.launcher import Launcher
from scenarios.explore.model import RELAY, Role
from scenarios.explore.sysfaults import SysFault
from scenarios.explore.tenants import House

RECEIVERS = "receivers"
ITSELF = "itself"
PATHS = ("--dir", "--clock")
# A server that was to die is dead before whoever talked to it has ended; the news of it is slower by a moment.
NEWS_SECONDS = 0.5


class Servers:
    """Keeps the servers of a case up. With `restart` every round has new ones."""

    def __init__(self, launcher: Launcher, house: House | None, *, restart: bool) -> None:
        self._launcher, self._case, self._stage = launcher, launcher.case, launcher.stage
        self._house, self._restart = house, restart
        self._armed: list[Process] = []
        self._tenants: dict[str, int] = {}
        self._alone: set[str] = set()  # those that a house could not open

    async def serve(self, role: Role, number: int) -> Process | None:
        """Start the server of round `number`, or let the one that lives go on, unless this round wants another one.

        Returns the process if it ended by itself, in place of serving. Raises StepFailed where it does neither.
        """
        shares = role.program.module == RECEIVERS and role.process not in self._case.struck
        if shares and self._house is not None and await self._moved_in(role, number, self._house):
            return None
        living = self._stage.living(role.process)
        if living is not None:
            if not self._wants_another(role, number):
                return None
            await self._stage.kill(living)
        process = await self._launcher.launch(role, number)
        try:
            await self._stage.ready(process)
        except StepFailed:
            struck = isinstance(self._case.armed(number, role.process), SysFault)
            if process.child.running or process.ended_by != ITSELF:
                raise
            if process.child.ended.result().exit_code is None and not struck:
                raise
            return process
        if self._case.armed(number, role.process) is not None:
            self._armed.append(process)
        return None

    async def halted(self) -> list[Process]:
        """The servers that were armed in this round and have halted, or ended because a call of theirs failed."""
        armed, self._armed = self._armed, []
        return [process for process in armed if await self._has_ended(process, process.step)]

    async def close(self) -> None:
        """Let the house's receivers finish and go. Processes are the stage's."""
        while self._tenants and self._house is not None:
            await self._house.close(self._tenants.popitem()[1])

    async def _moved_in(self, role: Role, number: int, house: House) -> bool:
        """Whether the house has the receiver. One that refuses what a loss of power left does so again as a process of its own,
        whose end is evidence; else nobody may refuse, and StepFailed is raised."""
        if role.process not in self._tenants and role.process not in self._alone:
            arguments, _substitutions = await self._stage.arguments(self._launcher.program(role, number))
            # A house works elsewhere than its receivers.
            whole = [
                str(self._stage.directory / text) if before in PATHS else text
                for before, text in zip(("", *arguments), arguments, strict=False)
            ]
            try:
                self._tenants[role.process] = await house.open(whole)
            except StepFailed:
                if self._case.power is None:
                    raise
                self._alone.add(role.process)
        return role.process in self._tenants

    async def _has_ended(self, process: Process, number: int) -> bool:
        """Whether a server that was struck has ended, waiting a moment for the news of it where it is to die."""
        fault = self._case.armed(number, process.name)
        if isinstance(fault, SysFault) and fault.error:
            return not process.child.running
        try:
            ending = await process.child.wait_ended(NEWS_SECONDS)
        except TimeoutError:
            return False
        return isinstance(fault, SysFault) or ending.exit_code == faults.HALT_EXIT_CODE

    def _wants_another(self, role: Role, number: int) -> bool:
        cut = role.process == RELAY and (self._case.cuts(number - 1) or self._case.cuts(number))
        # Who could not write, or not sync, may have to be started again to go on.
        refused = isinstance(self._case.armed(number - 1, role.process), SysFault)
        return bool(self._restart or cut or refused or self._case.armed(number, role.process))
