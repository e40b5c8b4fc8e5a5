"""A check of one worker: the fault-free runs, the cases that follow from them, and each case in a lane.

As many cases run at once as there are lanes. A case that has come to where only time helps leaves its lane to the next one: so
many workers may be watched at the same time, at the cost of their folders and receivers alone.
"""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from outbox.errors import BadInput
from scenarios.engine.study import ROOT
from scenarios.engine.supervisor import Supervisor
from scenarios.targets import derive
from scenarios.targets.baseline import Baseline, Baselines, Lines, forkable, merged, read_lines
from scenarios.targets.commands import Commands
from scenarios.targets.faults import RECEIVER, RECOVER, SYSCALL, WORK, Case, parse
from scenarios.targets.judge import DUPLICATE_UNKEYED, RECOVERED, UNKNOWN
from scenarios.targets.model import Target, Worker
from scenarios.targets.play import Bench, Play, write_finding
from scenarios.targets.slot import MODULE, Slot

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

    def ended(self, line: dict[str, Any]) -> None:
        """One case has ended."""


@dataclass(slots=True)
class Outcome:
    """What a check found: a line for each case, in their order, and what was noted of the target itself."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spawn: str = EXEC
    seconds: float = 0.0
    cases_seconds: float = 0.0
    pruned: int = 0


class Check:
    """One check; `run` it. Findings are kept below `out`/cases, whatever else is written is the caller's."""

    def __init__(self, asked: Asked, out: Path, scratch: Path, told: Told) -> None:
        worker = asked.target.contents.worker
        if worker is None:
            raise BadInput(f"{asked.target.file}: it has no table [worker]")
        self._asked, self._out, self._scratch, self._told = asked, out, scratch, told
        self._worker: Worker = worker
        self._free: list[Slot] = []
        self._slots: list[Slot] = []
        self._lanes = asyncio.Semaphore(asked.jobs)
        self._watching = 0
        self.outcome = Outcome()
        self._done: dict[int, dict[str, Any]] = {}

    async def run(self) -> None:
        """Do it all. Raises BadInput for a target that cannot be judged, HarnessBug and OSError."""
        began = time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            house = await stack.enter_async_context(Supervisor(ROOT, "fork", (MODULE,)))
            self._house = house
            stack.push_async_callback(self._close_slots)
            commands = Commands(self._asked.target, self._asked.python, house)
            slot = await self._take()
            bench = await self._prepared(commands, slot, stack)
            cases = await self._cases(bench, slot)
            self._free.append(slot)
            at = time.monotonic()
            deep = self._asked.depth > 1 and self._asked.only is None
            try:
                if deep:
                    (self._scratch / "recoveries").mkdir()
                await self._all(cases, bench, "depth 1", self._scratch / "recoveries" if deep else None)
                if deep:
                    await self._deeper(bench)
                await self._confirm(bench)
            finally:
                self.outcome.lines = [self._done[number] for number in sorted(self._done)]
                self.outcome.seconds = time.monotonic() - began
                self.outcome.cases_seconds = time.monotonic() - at

    # Before the cases

    async def _prepared(self, commands: Commands, slot: Slot, stack: contextlib.AsyncExitStack) -> Bench:
        """The fault-free runs. Raises BadInput."""
        runs = Baselines(commands, self._worker, slot)
        baseline = await runs.first()
        self.outcome.notes += baseline.notes
        if self._asked.spawn == FORK and forkable(commands, self._worker):
            await self._fork(commands, runs, slot, stack)
        self.outcome.spawn = FORK if commands.forker is not None else EXEC
        if self._asked.mode in (derive.LINES, derive.ALL):
            await self._listed(commands, runs, baseline)
        return Bench(commands, self._worker, baseline)

    async def _fork(self, commands: Commands, runs: Baselines, slot: Slot, stack: contextlib.AsyncExitStack) -> None:
        """Start a spawner that has the target's modules; or note why commands are executed."""
        modules = await runs.loadable()
        if isinstance(modules, str):
            self.outcome.notes.append(f"{modules}, so each command is executed anew: slower, the same")
            return
        environment = commands.environment(commands.values(slot.directory, url=slot.url))
        environment["PYTHONPATH"] = ":".join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
        forker = Supervisor(ROOT, "fork", tuple(f"+{each}" for each in modules), (), environment)
        commands.forker = await stack.enter_async_context(forker)

    async def _listed(self, commands: Commands, runs: Baselines, baseline: Baseline) -> None:
        """The lines that two runs came to. Raises BadInput where there are none."""
        first = await runs.listed(commands.scripts)
        if isinstance(first, str) and commands.forker is not None:
            self.outcome.notes.append(f"in a fork it does something else ({first}), so each command is executed anew")
            commands.forker = None
            self.outcome.spawn = EXEC
            first = await runs.listed(commands.scripts)
        second = await runs.listed(commands.scripts)
        if isinstance(first, str) or isinstance(second, str):
            raise BadInput(f"without any fault it does not do the same twice: {first if isinstance(first, str) else second}")
        baseline.lines.update(merged(first, second))
        if not any(lines.counts for lines in baseline.lines.values()):
            raise BadInput(
                "no line of a function was executed, neither of the target's own Python scripts nor of packages: name packages in "
                "[worker], put what the script does into functions, or use --mode syscalls, which needs no Python"
            )

    async def _cases(self, bench: Bench, slot: Slot) -> list[Case]:
        """The cases of the first level, in order."""
        mode = self._asked.mode
        found: list[Case] = []
        only = parse(self._asked.only) if self._asked.only is not None else None
        wants = {each.kind for each in only.faults} if only is not None else set()
        if mode in (derive.LINES, derive.ALL):
            found += derive.line_cases(bench.baseline)
        if mode in (derive.SYSCALLS, derive.ALL) or SYSCALL in wants:
            strikes, doubts = await derive.strikes_of(bench.commands, self._worker, slot)
            self.outcome.notes += doubts
            bench.strikes.update(strikes)
            found += derive.call_cases(strikes)
        if mode == derive.POINTS or (mode == derive.ALL and self._worker.points):
            found += await derive.point_cases(bench.commands, self._worker, slot)
        if mode in (derive.OF_RECEIVER, derive.ALL):
            found += derive.receiver_cases()
        if only is not None:
            return [only]
        return found[: self._asked.budget]

    # Cases in lanes

    async def _take(self) -> Slot:
        if self._free:
            return self._free.pop()
        slot = Slot(len(self._slots) + 1, self._scratch, self._house)
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
        async with _one_error(), asyncio.TaskGroup() as group:
            for number, case in enumerate(cases, first):
                await self._lanes.acquire()
                group.create_task(self._one(number, case, bench, listing))
        return [*range(first, first + len(cases))]

    async def _one(self, number: int, case: Case, bench: Bench, listing: Path | None) -> None:
        lane = _Lane(self)
        try:
            slot = await self._take()
            for _ in range(ATTEMPTS):
                line = await self._play(case, bench, slot, lane.leave, None if listing is None else listing / f"{number}")
                if line["verdict"] != UNKNOWN:
                    break
            self._free.append(slot)
            self._done[number] = line
            self._told.ended(line)
        finally:
            lane.end()

    async def _play(
        self, case: Case, bench: Bench, slot: Slot, waits: Callable[[], None], listing: Path | None
    ) -> dict[str, Any]:
        if listing is not None:
            listing.unlink(missing_ok=True)
        play = Play(case, bench, slot, waits, listing=listing)
        line = await play.run()
        if line["verdict"] != RECOVERED:
            place = self._out / "cases" / str(case).replace("/", "_")
            if not place.exists():
                write_finding(play, line, place, KEPT_STATE_BYTES)
        return line

    async def _deeper(self, bench: Bench) -> None:
        """Kill the recoveries, too: of each case whose recovery does something that no other one's did."""
        listing = self._scratch / "recoveries"
        met: set[tuple[Any, ...]] = set()
        cases: list[Case] = []
        for number in sorted(self._done):
            line = self._done[number]
            case = parse(line["case"])
            if case.faults[0].role == RECEIVER or not line["fired"]:
                continue
            lines = read_lines(listing / f"{number}")
            before = [each["key"] is None for each in line["arrivals"] if not each["after_restart"]]
            signature = (case.faults[0].role, len(before), tuple(lines.counts.items()))
            if signature in met or not lines.counts:
                self.outcome.pruned += 1
                continue
            met.add(signature)
            faults = [*derive.line_faults(WORK, lines), *derive.line_faults(RECOVER, bench.baseline.lines.get(RECOVER, NONE))]
            cases += [Case((*case.faults, fault)) for fault in faults]
        if self._asked.budget is not None:
            cases = cases[: max(self._asked.budget - len(self._done), 0)]
        await self._all(cases, bench, "depth 2")

    async def _confirm(self, bench: Bench) -> None:
        """Play one case of each window that duplicates again, at a real receiver that ignores keys."""
        met: set[tuple[Any, ...]] = set()
        for number in sorted(self._done):
            line = self._done[number]
            fault = line["fault"]
            window = (line["role"], fault["kind"], fault["where"].partition(":")[0], fault["function"])
            if line["verdict"] != DUPLICATE_UNKEYED or window in met:
                continue
            met.add(window)
            slot = await self._take()
            again = Play(parse(line["case"]), bench, slot, lambda: None, keyed=False)
            seen = await again.run()
            self._free.append(slot)
            # What that receiver has in its own book counts, not what we make of its arrivals.
            line["confirmed"] = seen["fired"] and await slot.effects() > len(line["effects"])


@contextlib.asynccontextmanager
async def _one_error() -> AsyncIterator[None]:
    """Of the errors of a group one is enough to end the check, and is easier to read."""
    try:
        yield
    except* Exception as errors:
        raise errors.exceptions[0] from None


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


def scratch_folder() -> Path | None:
    """A folder in memory for what cases write, where there is one: no power fails here, so no disk need be waited for."""
    place = Path("/dev/shm")
    return place if place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free > (1 << 30) else None
