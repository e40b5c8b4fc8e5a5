"""Plays one case of a worker: the fault, the restart, a canary, and then the watch until everything arrived or time is up.

What is restarted is what a service manager and an honest producer would restart: a command that died runs again, and so do
those that come after it; a producer that died never heard of success and enqueues again. The canary is a second job, enqueued
after the restart: it tells a worker that is dead from a job that is stuck.
"""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from outbox import faults as points
from scenarios.explore import strace
from scenarios.explore.calls import Strike
from scenarios.targets import judge, outcomes, stored, verdicts
from scenarios.targets.baseline import Baseline
from scenarios.targets.commands import PLAIN, Arm, Commands, Ran, Watched
from scenarios.targets.faults import ENQUEUE, LINE, POINT, RECEIVER, RECOVER, SETUP, SYSCALL, WORK, Case, Fault
from scenarios.targets.model import IDLE, Worker
from scenarios.targets.outcomes import Arrival, Ended, WorkerCase
from scenarios.targets.slot import Slot, size_of
from scenarios.targets.steps import CANARY, JOB, Steps, sleep_growing
from scenarios.targets.trees import Follower, TreeStrike, stopping

NEVER = "halt23-never"


@dataclass(frozen=True, slots=True)
class Bench:
    """What all cases of a check share. `strikes` are the system calls that the fault-free run made, by role and name."""

    commands: Commands
    worker: Worker
    baseline: Baseline
    strikes: dict[tuple[str, str, int], Strike | TreeStrike] = field(default_factory=dict)


@dataclass(slots=True)
class Seen:
    """What is known of a case so far."""

    began: float
    fired: bool = False
    ending: tuple[int | None, str | None] = (None, None)
    place: tuple[str, str] | None = None
    restarted: float | None = None
    watched_until: float | None = None
    reasons: list[str] = field(default_factory=list)


class Play:
    """One case in one slot; call `run`."""

    def __init__(
        self,
        case: Case,
        bench: Bench,
        slot: Slot,
        waits: Callable[[], None],
        *,
        keyed: bool = True,
        listing: Path | None = None,
    ) -> None:
        self._case, self._bench, self._slot, self._keyed = case, bench, slot, keyed
        patience = bench.baseline.work_seconds * 4 + 0.5
        self._steps = Steps(bench.commands, bench.worker, slot, waits, patience)
        self._waits = waits
        self._left = list(case.faults)
        self._listing = listing
        self._follower: Follower | None = None
        self._seen = Seen(time.monotonic())
        self.witness = slot.folder / "witness"

    @property
    def steps(self) -> Steps:
        """Its commands, with what they wrote."""
        return self._steps

    async def run(self) -> WorkerCase:
        """Play it; its line in the results. Raises HarnessBug and OSError."""
        first = self._case.faults[0]
        await self._slot.begin(keyed=self._keyed, fault=first.where if first.role == RECEIVER else None)
        role = WORK if first.role in (RECEIVER, RECOVER) else first.role
        await self._steps.before(role)
        self._seen.began = time.monotonic()
        if first.role == RECEIVER:
            await self._receiver_fails()
        elif first.role != RECOVER:
            await self._struck(role)
        if self._seen.fired or first.role == RECOVER:
            await self._recover(role)
        return await self._case_of()

    @property
    def _bound(self) -> float:
        """How long a command may take that has something to do: not long without load, but a machine may be busy."""
        return max(10.0, self._bench.baseline.work_seconds * 10)

    # Faults

    async def _struck(self, role: str) -> Ran:
        """Run a command that is to die at the next fault."""
        fault = self._left.pop(0)
        self.witness.unlink(missing_ok=True)
        arm = self._armed(fault)
        self._steps.struck = self.witness.exists
        holding = self._dies_arrived(fault)
        if holding:
            # Nobody is told that the job was applied: the answer is held back until the worker is dead.
            held = len(self._slot.arrivals)
            self._steps.struck = lambda: len(self._slot.arrivals) > held
            await self._slot.hold()
        following = asyncio.create_task(self._follower.follow()) if self._follower is not None else None
        if role == WORK:
            ran: Ran | None = await self._steps.work((JOB,), self._bound, arm)
        else:
            ran = await self._steps.run(role, JOB if role == ENQUEUE else None, arm)
        if following is not None:
            following.cancel()
        self._steps.struck = lambda: False
        if holding:
            await self._slot.go()
        assert ran is not None
        self._seen.fired = self._fired(fault, ran)
        self._seen.ending = (ran.ending.exit_code, ran.ending.signal)
        self._seen.restarted = time.monotonic()
        if not self._seen.fired:
            self._seen.reasons.append(f"{fault} did not come: {role} ended with {ran.told}")
        return ran

    def _dies_arrived(self, fault: Fault) -> bool:
        strike = self._bench.strikes.get((fault.role, fault.where, fault.occurrence)) if fault.kind == SYSCALL else None
        return isinstance(strike, TreeStrike) and strike.arrived

    def _armed(self, fault: Fault) -> Arm:
        if fault.kind == LINE:
            place, number = fault.line
            halt = (place, number, fault.occurrence)
            scripts = self._bench.commands.scripts
            return Arm(Watched(self._bench.worker.packages, scripts, halt=halt, witness=self.witness))
        if fault.kind == SYSCALL:
            strike = self._bench.strikes.get((fault.role, fault.where, fault.occurrence))
            if strike is None:
                return PLAIN
            if self._dies_arrived(fault):
                return PLAIN
            log = self._slot.folder / "strace"
            log.unlink(missing_ok=True)
            if isinstance(strike, TreeStrike):
                self._follower = Follower(strike, log)
                return Arm(trace=stopping(strike, self._slot.directory, log))
            return Arm(trace=strace.striking(strike, strace.KILLED, self._slot.directory, log))
        assert fault.kind == POINT
        return Arm(environment={points.HALT_VARIABLE: f"{fault.where}#{fault.occurrence}"})

    def _fired(self, fault: Fault, ran: Ran) -> bool:
        if fault.kind == LINE:
            if not self.witness.exists():
                return False
            file, _, function = self.witness.read_text("utf-8").strip().partition("\t")
            self._seen.place = (file, function)
            if ran.ending.exit_code != outcomes.HALTED and ran.ending.signal != outcomes.KILLED:
                self._steps.notes.append(outcomes.ENDED_FIRST)
            return True
        if fault.kind == SYSCALL:
            return ran.ending.signal == signal.SIGKILL.name and ran.bound is None
        return ran.ending.exit_code == points.HALT_EXIT_CODE

    async def _receiver_fails(self) -> None:
        """Run `work` against a receiver that fails once, and start that again where it died."""
        fault = self._left.pop(0)
        reviving = asyncio.create_task(self._revive()) if fault.where == "dies" else None
        await self._steps.work((JOB,), self._bound)
        if reviving is not None:
            # It is told of a moment later than its last arrival.
            if not any(each.status is None for each in self._slot.arrivals):
                reviving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reviving
        self._seen.fired = any(each.status in (None, 503) for each in self._slot.arrivals)
        self._seen.restarted = self._slot.arrivals[0].monotonic if self._slot.arrivals else time.monotonic()

    async def _revive(self) -> None:
        while not self._slot.deaths:
            await self._slot.changed()
        await self._slot.revive()

    # The recovery

    async def _recover(self, role: str) -> None:
        """Run everything again that an honest house would."""
        died = role
        if self._case.faults[0].role != RECEIVER:
            await self._recovered()
            if died == SETUP:
                await self._again(SETUP, None)
            if died in (SETUP, ENQUEUE):
                await self._again(ENQUEUE, JOB)
        await self._again(ENQUEUE, CANARY)
        await self._watch()

    async def _recovered(self) -> None:
        """Run `recover`, which may be the next to die, and then runs again."""
        if self._left and self._left[0].role == RECOVER:
            await self._struck(RECOVER)
        ran = await self._steps.run(RECOVER)
        if ran is not None and not ran.good:
            self._seen.reasons.append(f"recover, after the death: {ran.told}")

    async def _again(self, role: str, job: str | None) -> None:
        ran = await self._steps.run(role, job)
        if ran is not None and not ran.good:
            self._seen.reasons.append(f"{role}{f' of {job}' if job else ''}, after the death: {ran.told}")

    async def _watch(self) -> None:
        """Run `work` until both jobs arrived and nothing is left, or the time is up."""
        began = time.monotonic()
        seconds = self._bench.worker.watch_seconds
        attempt = 0
        while True:
            if self._left:
                await self._struck(WORK)
                if not self._seen.fired:
                    break
                await self._recovered()
                began = time.monotonic()
            left = max(began + seconds - time.monotonic(), 0.0)
            # A run that has begun and is to end by itself is not cut off: only who hangs is.
            left += self._bound if self._bench.worker.ends == IDLE else self._bench.baseline.work_seconds
            listed = Watched(self._bench.worker.packages, self._bench.commands.scripts, lines=self._listing)
            ran = await self._steps.work(self._wanted(), left, Arm(listed) if self._listing else PLAIN)
            self._listing = None
            if await self._is_over(ran) or (time.monotonic() > began + seconds and attempt):
                break
            if attempt:
                self._waits()
            await sleep_growing(attempt)
            attempt += 1
        self._seen.watched_until = time.monotonic()

    def _wanted(self) -> tuple[str, ...]:
        """What `work` is to deliver before it may be stopped; the last one never comes, so that it runs as long as it may."""
        on = self._bench.worker.pending is None and self._may_come_again()
        return (JOB, CANARY, NEVER) if on else (JOB, CANARY)

    def _may_come_again(self) -> bool:
        """Whether the job came before the death and not since, and nobody can say that it is stored no more: then it is waited
        for, because it may come once more."""
        came = {
            each.monotonic > (self._seen.restarted or 0.0) for each in self._slot.arrivals if each.job == JOB and each.applied
        }
        known = self._bench.baseline.gone and not stored.holds(self._slot.directory, JOB)
        return came == {False} and not known

    async def _is_over(self, ran: Ran) -> bool:
        """Whether no more can come: everything arrived and nothing is stored, or what did not arrive is nowhere."""
        if ran.bound is not None:
            self._steps.notes.append(f"work went on for {ran.bound:g} s and was killed")
        missing = {JOB, CANARY} - self._steps.delivered
        count = await stored.pending(self._bench.commands, self._steps.values)
        if not missing:
            return not (count or (count is None and self._may_come_again()))
        return count == 0 and self._bench.worker.ends == IDLE

    # What came of it

    async def _case_of(self) -> WorkerCase:
        seen, arrivals = self._seen, self._slot.arrivals
        restarted = seen.restarted or time.monotonic()
        told = tuple(
            Arrival(
                job=each.job,
                key=each.key,
                status=each.status,
                applied=each.applied,
                after_restart=each.monotonic > restarted,
                seconds=round(max(each.monotonic - seen.began, 0.0), 3),
            )
            for each in arrivals
        )
        counted = judge.effects(told, (JOB, CANARY))
        stored, by = None, None
        if seen.fired and not counted[JOB].keyed:
            stored, by = await self._stored()
        verdict = verdicts.of_worker(
            fired=seen.fired,
            doubts=(),
            effects=counted,
            canary=CANARY,
            stored=stored,
            refused=judge.refused(told, (JOB, CANARY)),
        )
        recovered = None
        late = [each.monotonic for each in arrivals if each.job == JOB and each.applied and each.monotonic > restarted]
        before = any(each.job == JOB and each.applied and each.monotonic <= restarted for each in arrivals)
        if late and not before and verdict not in (verdicts.LOST, verdicts.STUCK):
            recovered = round(late[0] - restarted, 3)
        if any(each.job is None for each in arrivals):
            self._steps.notes.append("requests came that name no job")
        first, *then = self._case.faults
        watched = round(max((seen.watched_until or restarted) - restarted, 0.0), 3)
        reasons = judge.reasons(told, counted, judge.Watch(CANARY, watched, stored, by), verdict)
        return WorkerCase(
            case=str(self._case),
            fault=_told(first, None if then else seen),
            then=_told(then[0], seen) if then else None,
            ended=Ended(*seen.ending),
            fired=seen.fired,
            arrivals=told,
            effects=counted,
            canary=CANARY,
            verdict=verdict,
            watched_seconds=watched,
            stored=stored,
            stored_by=by,
            recovered_seconds=recovered,
            reasons=(*reasons, *seen.reasons),
            notes=tuple(dict.fromkeys(self._steps.notes)),
        )

    async def _stored(self) -> tuple[bool | None, str | None]:
        """Whether the job is still there, and who says so."""
        missing = {JOB, CANARY} - self._steps.delivered
        count = await stored.pending(self._bench.commands, self._steps.values)
        if count is not None:
            return count >= len(missing), stored.PENDING
        if not self._bench.baseline.by_bytes:
            return None, None
        return stored.holds(self._slot.directory, JOB), stored.BYTES


def _told(fault: Fault, seen: Seen | None) -> outcomes.Fault:
    """A fault as the results have it; what the watch said of the place is known only where it came."""
    file, function, where = fault.file, fault.function, fault.where
    if seen is not None and seen.place is not None and function is None:
        file, function = seen.place
    if fault.kind == LINE:
        place, number = fault.line
        where = f"{file or place}:{number}"
    return outcomes.Fault(role=fault.role, kind=fault.kind, where=where, function=function, occurrence=fault.occurrence)


def write_finding(play: Play, line: WorkerCase, place: Path, largest_bytes: int) -> None:
    """Keep what a finding can be looked at with: its line, what was written, the folder where it is small."""
    (place / "case.json").write_text(json.dumps(line.data(), indent=1) + "\n", encoding="utf-8")
    play.steps.write_outputs(place)
    if size_of(play.steps.slot.directory) <= largest_bytes:
        play.steps.slot.write_down(place / "state")
