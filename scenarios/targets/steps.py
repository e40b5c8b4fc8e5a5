"""One command after the other in a slot: what the fault-free run and every case are made of.

`work` is special, because it is waited for: a worker that ends when it is idle is left alone until then, one that runs until
SIGTERM is watched until everything has arrived and it has been quiet for a moment. Each wait has a bound.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from outbox.errors import BadInput
from scenarios.targets import stored
from scenarios.targets.commands import PLAIN, Arm, Commands, Ran, Running, first_of
from scenarios.targets.faults import ENQUEUE, SETUP, WORK
from scenarios.targets.model import IDLE, Worker
from scenarios.targets.slot import Slot, delivered

ORDER = (SETUP, ENQUEUE, WORK)
JOB, CANARY = "halt23-job-1", "halt23-canary-1"
COMMAND_SECONDS = 30.0
STOP_SECONDS = 5.0
# Who delivered everything and is quiet for so long is taken to be done.
QUIET_SECONDS = 0.25
LOOK_SECONDS = 0.5
IGNORES_SIGTERM = "work ignored SIGTERM for {:g} s and was killed"
FORKS_AWAY = "{} left {} processes behind, which were ended"


@dataclass(slots=True)
class Steps:
    """The commands of one run in one slot, and what was noted meanwhile. `waits` is called when only time can help."""

    commands: Commands
    worker: Worker
    slot: Slot
    waits: Callable[[], None] = lambda: None
    # How long `work` is given before it is taken to be waiting for something.
    patience_seconds: float = 2.0
    # Whether the fault has come: then a command that goes on lost one of its processes, and the others are ended with it.
    struck: Callable[[], bool] = lambda: False
    notes: list[str] = field(default_factory=list)
    outputs: list[tuple[str, Ran]] = field(default_factory=list)

    @property
    def values(self) -> dict[str, str]:
        """What the placeholders stand for."""
        return self.commands.values(self.slot.directory, url=self.slot.url, **self.slot.served)

    @property
    def delivered(self) -> frozenset[str]:
        """The jobs that were applied so far."""
        return delivered(self.slot.arrivals)

    async def before(self, role: str) -> None:
        """Make everything as it is before `role` runs: a copy, or by the commands that come before. Raises BadInput where one
        of them fails."""
        if self.slot.remembers(role):
            self.slot.restore(role)
            return
        await self.slot.empty()
        for each in ORDER[: ORDER.index(role)]:
            ran = await self.run(each, JOB if each == ENQUEUE else None)
            if ran is not None and not ran.good:
                raise BadInput(f"{each} fails without any fault, though it did not before: {ran.told}")
        self.slot.remember(role)

    async def run(self, role: str, job: str | None = None, arm: Arm = PLAIN) -> Ran | None:
        """Run setup, enqueue or recover to its end; None where the target has no such command."""
        command = getattr(self.worker, role)
        if command is None:
            return None
        values = self.values if job is None else {**self.values, "job": job}
        ran = await (await self.commands.start(command, values, arm)).ended(COMMAND_SECONDS)
        self._note(role, ran)
        return ran

    async def work(self, wanted: Collection[str], seconds: float, arm: Arm = PLAIN) -> Ran:
        """Run `work` until it ends, or, where it runs until SIGTERM, until it has delivered what is wanted; for so many seconds
        at most."""
        deadline = time.monotonic() + seconds
        running = await self.commands.start(self.worker.work, self.values, arm)
        if self.worker.ends == IDLE:
            ran = await self._idle(running, deadline)
            # The whole of what it was given is told, not what was left of it at last.
            ran = ran if ran.bound is None else replace(ran, bound=seconds)
        else:
            ran = await self._signalled(running, wanted, deadline)
        self._note("work", ran)
        return ran

    async def _idle(self, running: Running, deadline: float) -> Ran:
        began = time.monotonic()
        while not await first_of(running.child.ended, seconds=min(LOOK_SECONDS, deadline - time.monotonic())):
            if self.struck():
                await running.kill()
            elif time.monotonic() > deadline:
                break
            elif time.monotonic() - began > self.patience_seconds:
                self.waits()
        return await running.ended(max(deadline - time.monotonic(), 0.05))

    async def _signalled(self, running: Running, wanted: Collection[str], deadline: float) -> Ran:
        began = time.monotonic()
        while running.running and time.monotonic() < deadline:
            done = self.delivered.issuperset(wanted)
            quiet = QUIET_SECONDS if done else LOOK_SECONDS
            change = self.slot.changed()
            changed = await first_of(running.child.ended, change, seconds=min(quiet, deadline - time.monotonic()))
            change.cancel()
            if changed:
                continue
            if self.struck():
                await running.kill()
                break
            if done and not await stored.pending(self.commands, self.values):
                break
            if time.monotonic() - began > self.patience_seconds:
                self.waits()
        if not running.running:
            return await running.ended(STOP_SECONDS)
        ran = await running.terminate(STOP_SECONDS)
        if ran.bound is not None:
            self.notes.append(IGNORES_SIGTERM.format(STOP_SECONDS))
        return ran

    def _note(self, role: str, ran: Ran) -> None:
        self.outputs.append((role, ran))
        if ran.ending.left and ran.ending.exit_code is not None:
            self.notes.append(FORKS_AWAY.format(role, ran.ending.left))

    def write_outputs(self, place: Path) -> None:
        """What each command wrote, a file for each stream that is not empty."""
        for number, (role, ran) in enumerate(self.outputs, 1):
            for name, text in (("stdout", ran.stdout), ("stderr", ran.stderr)):
                if text:
                    (place / f"{number}.{role}.{name}").write_text(text, encoding="utf-8")


async def sleep_growing(attempt: int) -> None:
    """The pause before a worker is started once more: longer each time, at most a second."""
    await asyncio.sleep(min(0.05 * 2**attempt, 1.0))
