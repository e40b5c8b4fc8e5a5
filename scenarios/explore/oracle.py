"""`run.py explore --oracle`: every system with a mistake must be caught by each mode that claims to see it, and its correct
twin must be clean. A checker that has never failed proves nothing.

Each system is explored in a campaign of its own, DIR/MODE/NAME; `oracle.json` holds the matrix. Exit codes: 0 all caught and
all twins clean, 1 not so, 2 bad usage, 3 something is unknown or was interrupted.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TextIO

from outbox.errors import BadInput
from scenarios.engine.directories import fresh_directory
from scenarios.engine.provenance import provenance
from scenarios.engine.sources import source_hashes
from scenarios.engine.stores import store
from scenarios.engine.study import ROOT
from scenarios.engine.supervisor import Supervisor
from scenarios.errors import EvidenceIncomplete
from scenarios.explore import archive, modes, results, windows
from scenarios.explore.campaign import CASES, Campaign, Plan
from scenarios.explore.command import Where, staged
from scenarios.explore.levels import LINES, MODES
from scenarios.explore.model import Subject
from scenarios.explore.progress import QUIET_SECONDS
from scenarios.explore.rounds import KEEP_FAILED, Room
from scenarios.explore.story import replay_line, story
from scenarios.explore.tenants import Houses
from scenarios.explore.verdicts import KINDS, VIOLATED
from scenarios.model import SQLITE
from scenarios.oracle.variant import Variant
from scenarios.oracle.variants import VARIANTS, subjects

__all__ = ["MODES", "Asked", "run", "subjects"]
MOST_WINDOWS = 4
FORMAT, FORMAT_VERSION, MATRIX = "halt23.oracle", 1, "oracle.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be explored: the modes, the variants whose names match (all where none is given), at most `budget` cases of
    each system and mode."""

    out: Path
    spawn: str
    modes: Sequence[str] = MODES
    patterns: Sequence[str] = ()
    budget: int | None = None
    keep: str = KEEP_FAILED
    jobs: int = 1
    variants: Sequence[Variant] = VARIANTS

    def chosen(self) -> list[Variant]:
        """The variants that are asked for. Raises BadInput for a glob that matches none."""
        for pattern in self.patterns:
            if not any(fnmatchcase(each.subject.name, pattern) for each in self.variants):
                known = ", ".join(each.subject.name for each in self.variants)
                raise BadInput(f"--subject {pattern!r} matches no variant; there are: {known}")
        names = self.patterns or ("*",)
        return [each for each in self.variants if any(fnmatchcase(each.subject.name, name) for name in names)]


@dataclass(frozen=True, slots=True)
class Cell:
    """What one mode made of one system: how many cases, in how many something did not hold, what, the shortest of them, and of
    deaths at lines the ranges of lines."""

    cases: int
    caught: int
    unknown: int
    kinds: tuple[str, ...]
    shortest: Mapping[str, Any] | None
    doubts: tuple[str, ...]
    windows: tuple[str, ...] = ()


Cells = Mapping[tuple[str, str], Cell]


def run(asked: Asked, stream: TextIO) -> int:
    """Explore, print the matrix and what is wrong with it, and write it; returns the exit code."""
    variants = asked.chosen()
    asked = replace(asked, modes=_working(asked.modes))
    work = _systems(variants, asked.modes)
    fresh_directory(asked.out, CASES)
    origin, began = _Origin(source_hashes(ROOT), provenance(ROOT, asked.out)), time.monotonic()
    watch = _Watch(stream, len(work))

    async def play(supervisor: Supervisor, place: Any) -> Cells:
        async with Houses(supervisor, ROOT, asked.jobs) as houses:
            return await _explore(asked, work, Room(supervisor, place, houses=houses), watch, origin)

    cells = staged(play, Where(asked.out, asked.spawn, store(SQLITE), tuple(work.values())))
    seconds = time.monotonic() - began
    if source_hashes(ROOT) != origin.sources:
        raise EvidenceIncomplete(f"the sources in {ROOT} changed while the oracle ran; begin again")
    wrong, unknown = [*_wrong(variants, asked.modes, cells)], [*_unknown(cells)]
    _write(
        asked, variants, cells, {"wrong": wrong, "unknown": unknown, "run": dict(origin.facts), "sources": dict(origin.sources)}
    )
    for line in [*_table(variants, asked.modes, cells), *wrong, *(f"UNKNOWN: {each}" for each in unknown)]:
        print(line)
    code, verdict = (3, "UNKNOWN") if unknown else (1, "FAIL") if wrong else (0, "PASS")
    cases = sum(cell.cases for cell in cells.values())
    print(
        f"{verdict} {asked.out}: {len(variants)} variants, {len(work)} systems in their modes, {cases} cases, "
        f"{len(wrong)} wrong, {len(unknown)} unknown; {seconds:.1f} s, {cases / seconds:.1f} cases a second"
    )
    return code


def _working(asked: Sequence[str]) -> list[str]:
    """The modes that work on this machine; why another does not is told. Raises EvidenceIncomplete where none is left."""
    missing = {mode: why for mode in asked if (why := modes.why_not(mode)) is not None}
    if len(missing) == len(asked):
        raise EvidenceIncomplete(f"skipped: {'; '.join(f'{mode}: {why}' for mode, why in missing.items())}")
    for mode, why in missing.items():
        print(f"SKIPPED {mode}: {why}")
    return [mode for mode in asked if mode not in missing]


class _Watch:
    """What a person sees of many campaigns side by side: now and then how far they are."""

    def __init__(self, stream: TextIO, systems: int) -> None:
        self._stream, self._systems = stream, systems
        self._done = self._cases = 0
        self._told = time.monotonic()

    def level(self, name: str, total: int) -> None:
        """A campaign's cases are known."""

    def ended(self, _result: Mapping[str, Any]) -> None:
        """One case has ended."""
        self._cases += 1
        now = time.monotonic()
        if now - self._told >= QUIET_SECONDS:
            self._told = now
            print(f"{self._done} of {self._systems} systems, {self._cases} cases", file=self._stream, flush=True)

    def done(self) -> None:
        """One system is explored."""
        self._done += 1


def _systems(variants: Sequence[Variant], modes: Sequence[str]) -> dict[tuple[str, str], Subject]:
    """Every variant and twin in each mode that claims the variant, each once."""
    found = {}
    for variant in variants:
        for mode in modes:
            if mode in variant.modes:
                found[variant.subject.name, mode] = variant.subject
                found[variant.twin.name, mode] = variant.twin
    return found


@dataclass(frozen=True, slots=True)
class _Origin:
    """With which sources, and where."""

    sources: Mapping[str, str]
    facts: Mapping[str, Any]


async def _explore(
    asked: Asked, work: Mapping[tuple[str, str], Subject], room: Room, watch: "_Watch", origin: _Origin
) -> Cells:
    """Explore the systems side by side, each case by case."""
    lanes = asyncio.Semaphore(asked.jobs)

    async def one(subject: Subject, mode: str) -> Cell:
        async with lanes:
            directory = asked.out.resolve() / mode / subject.name.rpartition("/")[2]
            directory.mkdir(parents=True)
            plan = Plan((subject,), mode, budget=asked.budget, keep=asked.keep)
            begun = archive.Begun(archive.plan_data(plan, SQLITE, origin.sources), origin.sources, origin.facts)
            begun.note(directory)
            campaign = Campaign(plan, room, directory, watch)
            await campaign.run(resume=False)
            archive.write(directory, begun.facts(asked.spawn, plan.jobs), campaign.derived, campaign.totals)
            watch.done()
            return _cell(directory, campaign)

    played = await asyncio.gather(*(one(subject, mode) for (_name, mode), subject in work.items()))
    return dict(zip(work, played, strict=True))


def _cell(directory: Path, campaign: Campaign) -> Cell:
    totals = campaign.totals
    kinds: set[str] = set()
    shortest: Mapping[str, Any] | None = None
    for result in results.read(directory):
        if result["verdict"] == VIOLATED:
            kinds |= set(result["kinds"])
            if shortest is None or _rank(result) < _rank(shortest):
                shortest = result
    doubts = [doubt for each in campaign.derived for doubt in each.doubts]
    doubts += [f"{each['case']}: {doubt}" for each in results.read(directory) for doubt in each["doubts"]]
    if not totals.cases and not doubts:
        doubts.append(f"{directory.name}: no case was derived")
    ordered = tuple(kind for kind in KINDS if kind in kinds)
    ranges = windows.collected(results.read(directory)).ranges() if campaign.plan.mode == LINES else ()
    # First those where every death is a bad one: the others are of functions that many call.
    bad = sorted((each for each in ranges if not each.held), key=lambda each: each.bad < each.cases)
    return Cell(totals.cases, totals.violated, totals.unknown, ordered, shortest, tuple(doubts), tuple(map(str, bad)))


def _rank(result: Mapping[str, Any]) -> tuple[int, int]:
    """The fewest faults first; of equally many the gravest kind."""
    return result["case"].count("+") + result["case"].count("&"), KINDS.index(result["kinds"][0])


def _wrong(variants: Sequence[Variant], modes: Sequence[str], cells: Cells) -> Iterator[str]:
    """Holes of the matrix, other kinds than were declared, and twins that are not clean."""
    for variant in variants:
        found = {mode: cells[variant.subject.name, mode] for mode in modes if mode in variant.modes}
        for mode, cell in found.items():
            if not cell.caught:
                yield f"HOLE: {variant.subject.name} is not caught by {mode}, which claims to see that {variant.shows}"
        kinds = {kind for cell in found.values() for kind in cell.kinds}
        whole = len(found) == len(variant.modes)
        if kinds - set(variant.kinds) or (whole and set(variant.kinds) != kinds and kinds):
            yield f"KINDS: {variant.subject.name} is declared {_listed(variant.kinds)} and was seen as {_listed(sorted(kinds))}"
    twins = {variant.twin.name for variant in variants}
    for (name, mode), cell in cells.items():
        if name in twins and cell.shortest is not None:
            yield (
                f"TWIN: {name} is correct and {mode} does not find it so, in {cell.caught} cases: {cell.shortest['case']}: "
                f"{story(cell.shortest)}\n  again: {replay_line(cell.shortest['case'])}"
            )


def _unknown(cells: Cells) -> Iterator[str]:
    for (_name, mode), cell in cells.items():
        for doubt in cell.doubts:
            yield f"{mode}: {doubt}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words) or "nothing"


def _table(variants: Sequence[Variant], modes: Sequence[str], cells: Cells) -> Iterator[str]:
    """The matrix: a line for each variant and mode that claims it, with its shortest failing case below."""
    yield f"{'variant':<26} {'case':<5} {'mode':<7} {'cases':>5} {'caught':>6}  kinds"
    for variant in variants:
        for mode in modes:
            if mode not in variant.modes:
                continue
            cell = cells[variant.subject.name, mode]
            case = variant.field_case or ""
            yield f"{variant.name:<26} {case:<5} {mode:<7} {cell.cases:>5} {cell.caught:>6}  {_listed(cell.kinds)}"
            if cell.shortest is not None:
                yield f"    {replay_line(cell.shortest['case'])}"
            yield from (f"    {each}" for each in cell.windows[:MOST_WINDOWS])
            if len(cell.windows) > MOST_WINDOWS:
                yield f"    and {len(cell.windows) - MOST_WINDOWS} more such ranges"
    twins = {variant.twin.name for variant in variants}
    clean = {key: cell for key, cell in cells.items() if key[0] in twins}
    for mode in modes:
        of_mode = [cell for (_name, each), cell in clean.items() if each == mode]
        if of_mode:
            cases, caught = sum(cell.cases for cell in of_mode), sum(cell.caught for cell in of_mode)
            yield f"{len(of_mode)} correct twins: {mode}, {cases} cases, {caught} violated"


def _write(asked: Asked, variants: Sequence[Variant], cells: Cells, rest: Mapping[str, Any]) -> None:
    told = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "budget": asked.budget,
        "variants": [
            {
                "name": variant.subject.name,
                "twin": variant.twin.name,
                "field_case": variant.field_case,
                "shows": variant.shows,
                "kinds": list(variant.kinds),
                "modes": {mode: _cell_data(cells, variant.subject, mode) for mode in asked.modes if mode in variant.modes},
                "twin_modes": {mode: _cell_data(cells, variant.twin, mode) for mode in asked.modes if mode in variant.modes},
            }
            for variant in variants
        ],
        **rest,
    }
    (asked.out / MATRIX).write_text(json.dumps(told, indent=1) + "\n", encoding="ascii")


def _cell_data(cells: Cells, subject: Subject, mode: str) -> dict[str, Any]:
    cell = cells[subject.name, mode]
    return {
        "cases": cell.cases,
        "caught": cell.caught,
        "unknown": cell.unknown,
        "kinds": list(cell.kinds),
        "shortest": None if cell.shortest is None else cell.shortest["case"],
    }
