"""A campaign: many cases side by side, level by level, every result on the disk as soon as it is there.

The first level are the cases that were derived from runs without faults. A deeper level adds a death to the recovery of each
case of the level before (mode `points`) or to the round of a cut (mode `wire`), unless that case left a durable state that was
met before: what comes after it is then known. Levels and cases have one order, so a campaign that was interrupted goes on where
it stopped, and the same campaign gives the same results.
"""

import asyncio
import shutil
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from outbox.errors import BadInput
from scenarios.engine.groups import one_error
from scenarios.engine.stage import StepFailed
from scenarios.explore import randoms, results, seeds
from scenarios.explore.derive import Derived, derive
from scenarios.explore.levels import FIRST, LINES, POINTS, POWER, SYSCALLS, WIRE, Deeper
from scenarios.explore.model import RANDOM, Case, Subject
from scenarios.explore.player import play
from scenarios.explore.powered import recorded
from scenarios.explore.prepare import can_prepare, prepare
from scenarios.explore.recorded import with_calls
from scenarios.explore.rounds import KEEP_FAILED, Room
from scenarios.explore.spread import Spread
from scenarios.explore.subjects import wired
from scenarios.explore.verdicts import UNKNOWN, VIOLATED

CASES, BASELINE = "cases", "baseline"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign explores: subjects, mode, depth, at most `budget` cases, and which cases' files are kept."""

    subjects: tuple[Subject, ...]
    mode: str = POINTS
    depth: int = 1
    budget: int | None = None
    keep: str = KEEP_FAILED
    jobs: int = 1
    # The first of mode random.
    seed: int | None = None


@dataclass(slots=True)
class Totals:
    """What came out: cases by verdict, cases not gone deeper into, child processes, and the points that were fired."""

    cases: int = 0
    held: int = 0
    violated: int = 0
    unknown: int = 0
    pruned: int = 0
    processes: int = 0
    fired: set[str] = field(default_factory=set)

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one result."""
        self.cases += 1
        self.processes += result["processes"]
        self.fired.update(death["point"] for death in result["deaths"])
        self.violated += result["verdict"] == VIOLATED
        self.unknown += result["verdict"] == UNKNOWN
        self.held = self.cases - self.violated - self.unknown


class Told(Protocol):
    """Who wants to know how a campaign goes."""

    def level(self, name: str, total: int) -> None:
        """A level of so many cases begins."""

    def ended(self, result: Mapping[str, Any]) -> None:
        """One case has ended, or had ended before the campaign went on."""


class Campaign:
    """One campaign in `directory`, of which `told` hears. Its cases are played here, or where `spread` plays them."""

    def __init__(self, plan: Plan, room: Room, directory: Path, told: Told, spread: Spread | None = None) -> None:
        self.plan, self._directory, self._told, self._spread = plan, directory, told, spread
        deep = plan.depth > 1
        by_line = plan.mode == LINES
        self._room = replace(room, keep=plan.keep, observe=deep, by_line=by_line, restart_servers=deep and plan.mode != WIRE)
        self._lanes = asyncio.Semaphore(plan.jobs if spread is None else spread.lanes)
        self._known = 0
        self._number = 0
        self.totals = Totals()
        self.derived: list[Derived] = []
        # Histories that failed and were shrunk: the file, how many steps there were, and how many are left.
        self.shrunk: list[tuple[Path, int, int]] = []
        self._blind: str | None = None

    async def run(self, *, resume: bool) -> None:
        """Explore every subject of the plan. Raises HarnessBug, OSError, and BadInput for results that are not this plan's."""
        if resume:
            self._known = results.repair(self._directory)
        if self.plan.mode == RANDOM:
            self._blind = await randoms.without_canary(self._room, self._directory)
            shutil.rmtree(self._directory / seeds.FOLDER, ignore_errors=True)  # of a campaign that was interrupted
        with results.Results(self._directory, self._known) as written:
            for subject in self.plan.subjects:
                await self._explore(wired(subject) if self.plan.mode == WIRE else subject, written)
        if self._number < self._known:
            raise BadInput(
                f"{self._directory} has {self._known} results where this plan has {self._number} cases: go on with the first "
                "options and sources, or begin a new campaign"
            )

    async def _explore(self, subject: Subject, written: results.Results) -> None:
        base = self._directory / BASELINE / subject.name
        shutil.rmtree(base, ignore_errors=True)  # of a campaign that was interrupted
        derived = await derive(subject, replace(self._room, record=self.plan.mode == SYSCALLS), base)
        if self._blind is not None:
            derived = replace(derived, doubts=(*derived.doubts, self._blind))
        if self.plan.budget == self._number and not derived.doubts:
            derived = replace(derived, doubts=(_spent(subject, self._number),))
        if self.plan.mode == SYSCALLS and not derived.doubts:
            derived = await with_calls(derived, self._room, base)
        room = self._room
        if self.plan.mode == POWER and not derived.doubts:
            derived = await recorded(derived, room, base)
            room = replace(room, recording=derived.recording)
        self.derived.append(derived)
        if derived.doubts:
            return
        room = replace(room, listings=derived.listings)
        if self.plan.mode != RANDOM and can_prepare(subject, room):
            room = replace(room, prepared=base / "prepared")
            try:
                await prepare(subject, room, base / "prepared")
            except StepFailed as sentence:
                why = f"{subject.name}: what its cases begin with could not be prepared: {sentence}"
                self.derived[-1] = replace(derived, doubts=(why,))
                return
        first = end = self._number
        for depth in range(1, self.plan.depth + 1):
            first, end = end, self._number
            cases = Deeper(derived, self.plan.mode, self._directory, first, end) if depth > 1 else self._first(derived)
            total = len(cases) if isinstance(cases, Sized) else sum(1 for _ in cases)
            if self.plan.budget is not None:
                total = min(total, self.plan.budget - self._number)
            self._told.level(f"{subject.name}, depth {depth}", total)
            self.totals.pruned += cases.pruned if isinstance(cases, Deeper) else 0
            await self._level(cases, replace(room, observe=depth < self.plan.depth), written)
        shutil.rmtree(base / "prepared", ignore_errors=True)
        if self.plan.mode == RANDOM:
            failed = [each for each in results.read(self._directory, end) if each["verdict"] == VIOLATED]
            self.shrunk += await randoms.shrink_all(subject, failed, self._room, self._directory)

    def _first(self, derived: Derived) -> Sequence[Case] | randoms.Histories:
        """The cases of the first level."""
        if self.plan.mode == RANDOM:
            return randoms.of_plan(derived.subject, self.plan.seed or 0, self.plan.budget, len(self.plan.subjects))
        return [*FIRST[self.plan.mode](derived)]

    async def _level(self, cases: Iterable[Case], room: Room, written: results.Results) -> None:
        """Play all cases of one level that are not done yet."""
        known = results.read(self._directory, self._number, self._known)
        async with one_error(), asyncio.TaskGroup() as group:
            for case in cases:
                if self._number == self.plan.budget:
                    break
                number, self._number = self._number, self._number + 1
                if number < self._known:
                    self._is_this(case, next(known))
                    continue
                await self._lanes.acquire()
                group.create_task(self._one(case, number, room, written))

    async def _one(self, case: Case, number: int, room: Room, written: results.Results) -> None:
        try:
            name = folder(number)
            shutil.rmtree(self._directory / CASES / name, ignore_errors=True)  # of a campaign that was interrupted
            place = self._directory / CASES / name
            if self._spread is None:
                result = results.line(await play(case, room, place), reached=room.observe)
            else:
                result = await self._spread.play(case, room, number, place)
            written.put(number, result)
            self._count(result)
        finally:
            self._lanes.release()

    def _is_this(self, case: Case, result: Mapping[str, Any]) -> None:
        # Another release of Hypothesis gives other histories for the same seeds.
        told = case.history.history.data() if case.history is not None else None
        if result["case"] != str(case) or result.get("history") != told:
            raise BadInput(
                f"{self._directory} has {result['case']} where this plan has {case}, or another history for it: go on with the "
                "first options, sources and releases, or begin a new campaign"
            )
        self._count(result)

    def _count(self, result: Mapping[str, Any]) -> None:
        self.totals.add(result)
        self._told.ended(result)


def _spent(subject: Subject, budget: int) -> str:
    return (
        f"{subject.name}: the budget of {budget} cases was spent before it, so nothing is known of it; "
        "raise --budget, or choose subjects"
    )


def folder(number: int) -> str:
    """The name of a case's folder: its number, from 0, with as many digits as sort well."""
    return f"{number:06d}"
