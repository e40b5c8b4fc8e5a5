"""A check of one worker: the fault-free runs, the cases that follow from them, and each case in a lane.

As many cases run at once as there are lanes. A case that has come to where only time helps leaves its lane to the next one: so
many workers may be watched at the same time, at the cost of their folders and receivers alone.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from outbox.errors import BadInput
from scenarios.engine.groups import one_error
from scenarios.engine.study import ROOT
from scenarios.engine.supervisor import Supervisor
from scenarios.targets import derive
from scenarios.targets.baseline import Baseline, Baselines, Lines, forkable, merged, read_lines
from scenarios.targets.commands import Commands
from scenarios.targets.faults import LINE, RECEIVER, RECOVER, SETUP, SYSCALL, WORK, Case, parse
from scenarios.targets.model import IDLE, Target, Worker
from scenarios.targets.outcomes import WorkerCase
from scenarios.targets.play import Bench, Play, write_finding
from scenarios.targets.services import Services
from scenarios.targets.slot import MODULE, Slot
from scenarios.targets.steps import Steps
from scenarios.targets.verdicts import RECOVERED, UNKEYED, UNKNOWN

WATCHED_AT_ONCE = 48
FORK, EXEC = "fork", "exec"
# A case whose fault does not come is played once more: timing may be to blame.
ATTEMPTS = 2
KEPT_STATE_BYTES = 1 << 20
NONE = Lines({}, {})


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be checked, and how."""

    target: Target
    mode: str = derive.LINES
    depth: int = 1
    budget: int | None = None
    jobs: int = 2
    spawn: str = FORK
    python: str = ""
    only: str | None = None


class Told(Protocol):
    """Who wants to know how a check goes."""

    def level(self, name: str, total: int) -> None:
        """So many cases begin."""

    def ended(self, line: WorkerCase) -> None:
        """One case has ended."""


class Written(Protocol):
    """Where results go: see `results.Check`."""

    not_played: int

    def add(self, case: WorkerCase) -> None:
        """Append the line of a case."""

    def folder(self, case: str) -> Path:
        """The new folder for the files of a case that found something."""


class Check:
    """One check; `run` it. `notes` are about the target itself."""

    def __init__(self, asked: Asked, written: Written, scratch: Path, told: Told) -> None:
        worker = asked.target.contents.worker
        if worker is None:
            raise BadInput(f"{asked.target.file}: it has no table [worker]")
        self._asked, self._written, self._scratch, self._told = asked, written, scratch, told
        self._worker: Worker = worker
        self._only = None if asked.only is None else _playable(parse(asked.only), worker)
        self._services: Services | None = None
        self._free: list[Slot] = []
        self._slots: list[Slot] = []
        self._lanes = asyncio.Semaphore(asked.jobs)
        self._watching = 0
        self._done: dict[int, WorkerCase] = {}
        self._cases_played: dict[int, Case] = {}
        self._next = 0
        self._confirmed: set[tuple[str, ...]] = set()
        self.notes: list[str] = []
        self.spawn = EXEC
        # Cases that were not gone deeper into: their recovery is that of another one.
        self.pruned = 0

    async def run(self) -> None:
        """Do it all. Raises BadInput for a target that cannot be judged, HarnessBug and OSError."""
        async with contextlib.AsyncExitStack() as stack:
            if self._asked.target.contents.services:
                self._services = await stack.enter_async_context(Services(self._asked.target.contents.services))
            self._house = await stack.enter_async_context(Supervisor(ROOT, "fork", (MODULE,)))
            stack.push_async_callback(self._close_slots)
            commands = Commands(self._asked.target, self._asked.python, self._house)
            slot = await self._take()
            bench = await self._prepared(commands, slot, stack)
            cases = await self._cases(bench, slot)
            self._free.append(slot)
            deep = self._asked.depth > 1 and self._asked.only is None
            if deep:
                (self._scratch / "recoveries").mkdir()
            try:
                await self._all(cases, bench, "depth 1", self._scratch / "recoveries" if deep else None)
                if deep:
                    await self._deeper(bench)
            finally:
                self._write(whole=False)

    def _write(self, *, whole: bool = True) -> None:
        """Write the lines of cases in their order, as far as there is no gap; or all of them."""
        while self._next in self._done or (not whole and self._next < max(self._done, default=-1)):
            if self._next in self._done:
                self._written.add(self._done[self._next])
            self._next += 1

    # Before the cases

    async def _prepared(self, commands: Commands, slot: Slot, stack: contextlib.AsyncExitStack) -> Bench:
        """The fault-free runs. Raises BadInput."""
        runs = Baselines(commands, self._worker, slot)
        baseline = await runs.first()
        self.notes += baseline.notes
        if self._asked.spawn == FORK and forkable(commands, self._worker):
            await self._fork(commands, runs, slot, stack)
        self.spawn = FORK if commands.forker is not None else EXEC
        only = self._only
        if self._asked.mode in (derive.LINES, derive.ALL) and (only is None or any(each.kind == LINE for each in only.faults)):
            await self._listed(commands, runs, baseline)
        return Bench(commands, self._worker, baseline)

    async def _fork(self, commands: Commands, runs: Baselines, slot: Slot, stack: contextlib.AsyncExitStack) -> None:
        """Start a spawner that has the target's modules; or note why commands are executed."""
        modules = await runs.loadable()
        if isinstance(modules, str):
            self.notes.append(f"{modules}, so each command is executed anew: slower, the same")
            return
        environment = commands.environment(Steps(commands, self._worker, slot).values)
        environment["PYTHONPATH"] = ":".join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
        forker = Supervisor(ROOT, "fork", tuple(f"+{each}" for each in modules), (), environment)
        commands.forker = await stack.enter_async_context(forker)

    async def _listed(self, commands: Commands, runs: Baselines, baseline: Baseline) -> None:
        """The lines that two runs came to. Raises BadInput where there are none of `work`, or not all."""
        commands.scripts = {**runs.own_modules(), **commands.scripts}
        self.notes += baseline.unseen
        if baseline.traces and self._asked.mode == derive.LINES:
            # Nobody knows which lines come after that: a PASS would not be about them.
            raise BadInput("work sets a trace function of its own, which ends the watch over its lines: use --mode syscalls")
        first = await runs.listed(commands.scripts)
        if isinstance(first, str) and commands.forker is not None:
            self.notes.append(f"in a fork it does something else ({first}), so each command is executed anew")
            commands.forker = None
            self.spawn = EXEC
            first = await runs.listed(commands.scripts)
        second = await runs.listed(commands.scripts)
        if isinstance(first, str) or isinstance(second, str):
            raise BadInput(f"without any fault it does not do the same twice: {first if isinstance(first, str) else second}")
        baseline.lines.update(merged(first, second, waits=self._worker.ends != IDLE))
        bare = [role for role, lines in baseline.lines.items() if not lines.counts]
        if WORK in bare and self._asked.mode == derive.LINES:
            # Of the others something may be found, but a PASS would not be about the worker.
            raise BadInput(
                "no line of a function was executed by work, neither of the target's own Python scripts nor of packages: name "
                "packages in [worker], put what the script does into functions, start Python without -I, -E, -S and with the "
                "PYTHONPATH that it is given, or use --mode syscalls, which needs no Python"
            )
        self.notes += [f"no line of a function was executed by {role}, so no line of it is struck" for role in bare]

    async def _cases(self, bench: Bench, slot: Slot) -> list[Case]:
        """The cases of the first level, in order."""
        mode = self._asked.mode
        found: list[Case] = []
        only = self._only
        wants = {each.kind for each in only.faults} if only is not None else set()
        if mode in (derive.LINES, derive.ALL):
            found += derive.line_cases(bench.baseline)
        if mode in (derive.SYSCALLS, derive.ALL) or SYSCALL in wants:
            strikes, doubts = await derive.strikes_of(bench.commands, self._worker, slot)
            self.notes += doubts
            bench.strikes.update(strikes)
            found += derive.call_cases(strikes)
        if mode == derive.POINTS or (mode == derive.ALL and self._worker.points):
            found += await derive.point_cases(bench.commands, self._worker, slot)
        if mode in (derive.OF_RECEIVER, derive.ALL):
            found += derive.receiver_cases()
        if only is not None:
            return [only]
        chosen = _spread(found, self._asked.budget)
        self._written.not_played += len(found) - len(chosen)
        return chosen

    # Cases in lanes

    async def _take(self) -> Slot:
        if self._free:
            return self._free.pop()
        slot = Slot(len(self._slots) + 1, self._scratch, self._house, self._services)
        self._slots.append(slot)
        await slot.open()
        return slot

    async def _close_slots(self) -> None:
        for slot in self._slots:
            with contextlib.suppress(Exception):
                await slot.close()

    async def _all(self, cases: Sequence[Case], bench: Bench, name: str = "depth 1", listing: Path | None = None) -> list[int]:
        """Play all of them; their numbers."""
        first = len(self._done)
        self._told.level(f"{self._asked.target.name}, {name}", len(cases))
        async with one_error(), asyncio.TaskGroup() as group:
            for number, case in enumerate(cases, first):
                self._cases_played[number] = case
                await self._lanes.acquire()
                group.create_task(self._one(number, case, bench, listing))
        return [*range(first, first + len(cases))]

    async def _one(self, number: int, case: Case, bench: Bench, listing: Path | None) -> None:
        lane = _Lane(self)
        try:
            slot = await self._take()
            path = None if listing is None else listing / f"{number}"
            for _ in range(ATTEMPTS):
                if path is not None:
                    path.unlink(missing_ok=True)
                play = Play(case, bench, slot, lane.leave, listing=path)
                line = await play.run()
                if line.verdict != UNKNOWN:
                    break
            if line.verdict != RECOVERED:
                write_finding(play, line, self._written.folder(line.case), KEPT_STATE_BYTES)
            if line.verdict == UNKEYED:
                line = await self._confirmed_by(line, case, bench, slot, lane)
            self._free.append(slot)
            self._done[number] = line
            self._write()
            self._told.ended(line)
        finally:
            lane.end()

    async def _confirmed_by(self, line: WorkerCase, case: Case, bench: Bench, slot: Slot, lane: "_Lane") -> WorkerCase:
        """The first case of each window that duplicates is played again, at a real receiver that ignores keys."""
        fault = line.then or line.fault
        window = (fault.role, fault.kind, fault.where.partition(":")[0], fault.function or "")
        if window in self._confirmed:
            return line
        self._confirmed.add(window)
        again = await Play(case, bench, slot, lane.leave, keyed=False).run()
        # What that receiver has in its own book counts, not what we make of its arrivals.
        return replace(line, confirmed=again.fired and await slot.effects() > len(line.effects))

    async def _deeper(self, bench: Bench) -> None:
        """Kill the recoveries, too: of each case whose recovery does something that no other one's did."""
        listing = self._scratch / "recoveries"
        met: set[tuple[Any, ...]] = set()
        cases: list[Case] = []
        for number in sorted(self._done):
            line = self._done[number]
            case = self._cases_played[number]
            if case.faults[0].role == RECEIVER or not line.fired:
                continue
            lines = read_lines(listing / f"{number}")
            before = sum(not each.after_restart for each in line.arrivals)
            signature = (case.faults[0].role, before, tuple(lines.counts.items()))
            if signature in met or not lines.counts:
                self.pruned += 1
                continue
            met.add(signature)
            faults = [*derive.line_faults(WORK, lines), *derive.line_faults(RECOVER, bench.baseline.lines.get(RECOVER, NONE))]
            cases += [Case((*case.faults, fault)) for fault in faults]
        if not cases:
            self.notes.append("--depth 2: no line of a recovery was executed, so no recovery was killed")
        if self._asked.budget is not None:
            found, cases = len(cases), cases[: max(self._asked.budget - len(self._done), 0)]
            self._written.not_played += found - len(cases)
        await self._all(cases, bench, "depth 2")


def _playable(case: Case, worker: Worker) -> Case:
    """The case. Raises BadInput where it strikes a command that the target has not."""
    for role in (SETUP, RECOVER):
        if any(each.role == role for each in case.faults) and getattr(worker, role) is None:
            raise BadInput(f"--only {case}: the target has no command {role}")
    return case


def _spread(cases: list[Case], budget: int | None) -> list[Case]:
    """At most so many of the cases, from all of their range: the first ones alone would never come to `work`."""
    if budget is None or len(cases) <= budget:
        return cases
    return [cases[number * len(cases) // budget] for number in range(budget)]


class _Lane:
    """The lane of one case, until it leaves it for the watch, or ends."""

    def __init__(self, check: Check) -> None:
        self._check, self._watches = check, False

    def leave(self) -> None:
        """Only time can help from here on: let the next one in, unless too many are waiting already."""
        if not self._watches and self._check._watching < WATCHED_AT_ONCE:
            self._watches = True
            self._check._watching += 1
            self._check._lanes.release()

    def end(self) -> None:
        """The case has ended."""
        if self._watches:
            self._check._watching -= 1
        else:
            self._check._lanes.release()
