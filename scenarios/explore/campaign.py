"""A campaign: many cases side by side, level by level, every result on the disk as soon as it is there.

The first level are the cases that were derived from runs without faults. A deeper level adds a death to the recovery of each
case of the level before (mode `points`) or to the round of a cut (mode `wire`), unless that case left a durable state that was
met before: what comes after it is then known. Levels and cases have one order, so a campaign that was interrupted goes on where
it stopped, and the same campaign gives the same results.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from outbox.errors import BadInput
from scenarios.explore import results
from scenarios.explore.derive import Derived, derive, pause_cases, point_cases, wire_cases
from scenarios.explore.model import Case, Subject, deaths, parse
from scenarios.explore.prepare import can_prepare, prepare
from scenarios.explore.rounds import KEEP_FAILED, Play, Room
from scenarios.explore.subjects import wired
from scenarios.explore.verdicts import UNKNOWN, VIOLATED

POINTS, WIRE, PAUSES = "points", "wire", "pauses"
CASES_OF: Mapping[str, Callable[[Derived], Iterator[Case]]] = {POINTS: point_cases, WIRE: wire_cases, PAUSES: pause_cases}
MODES = tuple(CASES_OF)
CASES, BASELINE = "cases", "baseline"
MAX_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign explores: subjects, mode, depth, at most `budget` cases, and which cases' files are kept."""

    subjects: tuple[Subject, ...]
    mode: str = POINTS
    depth: int = 1
    budget: int | None = None
    keep: str = KEEP_FAILED
    jobs: int = 1


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


Told = Callable[[Mapping[str, Any]], None]


class Campaign:
    """One campaign in `directory`. `told` hears of each result, also of those that are there already."""

    def __init__(self, plan: Plan, room: Room, directory: Path, told: Told) -> None:
        self.plan, self._directory, self._told = plan, directory, told
        deep = plan.depth > 1
        self._room = replace(room, keep=plan.keep, observe=deep, restart_servers=deep and plan.mode != WIRE)
        self._lanes = asyncio.Semaphore(plan.jobs)
        self._known = 0
        self._number = 0
        self.totals = Totals()
        self.derived: list[Derived] = []

    async def run(self, *, resume: bool) -> None:
        """Explore every subject of the plan. Raises HarnessBug, OSError, and BadInput for results that are not this plan's."""
        if resume:
            self._known = results.repair(self._directory)
        with results.Results(self._directory, self._known) as written:
            for subject in self.plan.subjects:
                await self._explore(wired(subject) if self.plan.mode == WIRE else subject, written)

    async def _explore(self, subject: Subject, written: results.Results) -> None:
        base = self._directory / BASELINE / subject.name
        shutil.rmtree(base, ignore_errors=True)  # of a campaign that was interrupted
        derived = await derive(subject, self._room, base)
        self.derived.append(derived)
        if derived.doubts:
            return
        room = self._room
        if can_prepare(subject, room):
            room = replace(room, prepared=base / "prepared")
            await prepare(subject, room, base / "prepared")
        cases = CASES_OF[self.plan.mode](derived)
        for depth in range(1, self.plan.depth + 1):
            first = self._number
            await self._level(cases, replace(room, observe=depth < self.plan.depth), written)
            cases = self._deeper(subject, first, self._number)
        shutil.rmtree(base / "prepared", ignore_errors=True)

    async def _level(self, cases: Iterable[Case], room: Room, written: results.Results) -> None:
        """Play all cases of one level that are not done yet."""
        known = results.read(self._directory, self._number, self._known)
        async with _one_error(), asyncio.TaskGroup() as group:
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
            played = await Play(case, room, self._directory / CASES / name).run()
            result = results.line(played, reached=room.observe)
            written.put(number, result)
            self._count(result)
        finally:
            self._lanes.release()

    def _is_this(self, case: Case, result: Mapping[str, Any]) -> None:
        if result["case"] != str(case):
            raise BadInput(
                f"{self._directory} has {result['case']} where this plan has {case}: go on with the first options and sources, "
                "or begin a new campaign"
            )
        self._count(result)

    def _count(self, result: Mapping[str, Any]) -> None:
        self.totals.add(result)
        self._told(result)

    def _deeper(self, subject: Subject, first: int, end: int) -> Iterator[Case]:
        """The cases that go on from those numbered `first` to `end`, read from the disk as they are needed."""
        met: set[str] = set()
        for result in results.read(self._directory, first, end):
            case = parse(result["case"], [subject])
            same_round = self.plan.mode == WIRE
            at = 0 if same_round else len(case.rounds)
            reached = result["reached"][at : at + 1]
            if not reached or (not same_round and not self._is_new(result, met)):
                continue
            for death in deaths(reached[0]):
                yield Case(subject, ((*case.rounds[0], death),) if same_round else (*case.rounds, (death,)))

    def _is_new(self, result: Mapping[str, Any], met: set[str]) -> bool:
        """Whether the case's last death left what no other had left. Who had died matters: its work may be unfinished."""
        if not result["deaths"]:
            return False
        last = result["deaths"][-1]
        state = f"{last['process']} {last['digest']}"
        if state in met:
            self.totals.pruned += 1
            return False
        met.add(state)
        return True


def folder(number: int) -> str:
    """The name of a case's folder: its number, from 0, with as many digits as sort well."""
    return f"{number:06d}"


@contextlib.asynccontextmanager
async def _one_error() -> AsyncIterator[None]:
    """Of the errors of a group one is enough to end the campaign, and is easier to read."""
    try:
        yield
    except* Exception as errors:
        raise errors.exceptions[0] from None
