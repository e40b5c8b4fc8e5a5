"""`run.py explore`, `run.py replay` and `run.py shrink`.

Exit codes: 0 every case held, 1 a case did not, 2 bad usage, 3 something is unknown or was interrupted; a doubt outweighs a
violation.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TextIO, TypeVar

from outbox import faults
from outbox.errors import BadInput
from scenarios.engine.directories import alone_in, fresh_directory, machine_faults
from scenarios.engine.interrupts import stoppable
from scenarios.engine.provenance import provenance
from scenarios.engine.sources import source_hashes
from scenarios.engine.stores import Store, store
from scenarios.engine.study import ROOT
from scenarios.engine.supervisor import Supervisor
from scenarios.errors import EvidenceIncomplete, Interrupted
from scenarios.explore import archive, cluster, randoms, results, seeds, uncovered, windows
from scenarios.explore.campaign import CASES, Campaign, Plan
from scenarios.explore.levels import LINES, POINTS, POWER, SYSCALLS
from scenarios.explore.model import NONE, Case, Subject, parse
from scenarios.explore.player import play
from scenarios.explore.powered import can_record, record_for
from scenarios.explore.progress import shown
from scenarios.explore.recorded import can_trace, strikes_calls, with_listings
from scenarios.explore.rounds import KEEP_ALL, Room
from scenarios.explore.spread import How, Spread, pool
from scenarios.explore.story import kept_line, replay_line
from scenarios.explore.subjects import SUBJECTS, wired
from scenarios.explore.tenants import MODULE as HOUSE
from scenarios.explore.tenants import Houses
from scenarios.explore.verdicts import HELD, UNKNOWN, VIOLATED
from scenarios.model import SQLITE

T = TypeVar("T")
MOST_TOLD = 10
EXIT_CODES = {HELD: 0, VIOLATED: 1, UNKNOWN: 3}
GO_ON = "go on with --resume, or begin again in a new directory"


@dataclass(frozen=True, slots=True)
class Spreading:
    """Where the cases are played: in `workers` processes of a pool, on the Dask cluster at `dask`, or right here."""

    workers: int | None = None
    dask: str | None = None

    def check(self, store_name: str) -> None:
        """Raises BadInput where that cannot be."""
        if self.workers is not None and self.dask is not None:
            raise BadInput("--workers does not go with --dask")
        if (self.workers or self.dask) and store_name != SQLITE:
            raise BadInput(f"--store {store_name} does not go with --workers or --dask: its server is one for all cases")
        if self.dask is not None:
            cluster.check(self.dask)

    def open(self, asked: "Exploring") -> AbstractAsyncContextManager[Spread | None]:
        """What plays the cases of a campaign, for as long as it is entered; None is this process."""
        modules = _modules(asked.plan.subjects)
        if self.workers is not None:
            return pool(asked.out.resolve(), How(asked.spawn, modules), self.workers)
        if self.dask is not None:
            return cluster.cluster(self.dask, asked.out.resolve(), asked.spawn, modules)
        return nullcontext()


@dataclass(frozen=True, slots=True)
class Exploring:
    """What `run.py explore` was asked for."""

    out: Path
    plan: Plan
    spawn: str
    store: str = SQLITE
    resume: bool = False
    spread: Spreading = Spreading()


def choose(patterns: Sequence[str], subjects: Sequence[Subject] = SUBJECTS) -> tuple[Subject, ...]:
    """The subjects whose name matches one of the globs; all where none is given. Raises BadInput for a glob that matches
    none."""
    for pattern in patterns:
        if not any(fnmatchcase(subject.name, pattern) for subject in subjects):
            raise BadInput(f"--subject {pattern!r} matches no subject; there are: {', '.join(each.name for each in subjects)}")
    return tuple(each for each in subjects if not patterns or any(fnmatchcase(each.name, pattern) for pattern in patterns))


def explore(asked: Exploring, stream: TextIO) -> int:
    """Run a campaign, or go on with it. Prints what a person wants to know; returns the exit code."""
    place = store(asked.store)
    _can_be_played(asked)
    sources = source_hashes(ROOT)
    told_plan = archive.plan_data(asked.plan, asked.store, sources)
    if not asked.resume:
        fresh_directory(asked.out, CASES)
    with alone_in(asked.out), machine_faults(asked.out, go_on=GO_ON):
        if asked.resume:
            _same_plan(asked.out, told_plan)
        begun = archive.Begun(told_plan, sources, provenance(ROOT, asked.out))
        if not asked.resume:
            begun.note(asked.out)
        return _explore(asked, place, begun, stream)


def _can_be_played(asked: Exploring) -> None:
    """Raises BadInput for what a mode does not do, and EvidenceIncomplete where the machine does not let it."""
    if asked.plan.mode == POWER:
        can_record(asked.plan.subjects, asked.store)
        if asked.plan.depth > 1:
            raise BadInput("--depth: a loss of power is followed by a recovery without faults; leave --depth out")
    if asked.plan.mode != SYSCALLS:
        return
    if asked.plan.depth > 1 or asked.store != SQLITE:
        raise BadInput(
            f"--mode {SYSCALLS} strikes one call in each case, and of a database only SQLite's; leave --depth and --store"
        )
    can_trace()


def _explore(asked: Exploring, databases: Store, begun: archive.Begun, stream: TextIO) -> int:
    server: dict[str, Any] = {}
    with shown(stream) as progress:

        async def work(supervisor: Supervisor, place: Any) -> Campaign:
            lanes = 0 if asked.spread != Spreading() else asked.plan.jobs
            async with Houses(supervisor, ROOT, lanes) as houses, asked.spread.open(asked) as spread:
                room = Room(supervisor, place, houses=houses)
                campaign = Campaign(asked.plan, room, asked.out.resolve(), progress, spread)
                await campaign.run(resume=asked.resume)
            if begun.plan["store"] is not None:
                server["postgres"] = await place.facts()
            return campaign

        campaign = staged(work, Where(asked.out, asked.spawn, databases, asked.plan.subjects, rehearse=True))
    facts = begun.facts(asked.spawn, asked.plan.jobs, **server)
    if source_hashes(ROOT) != begun.sources:
        raise EvidenceIncomplete(f"the sources in {ROOT} changed while the campaign ran; begin a new one")
    archive.write(asked.out, facts, campaign.derived, campaign.totals)
    return _report(asked.out, campaign, facts.run["wall_seconds"])


def _same_plan(out: Path, wanted: dict[str, Any]) -> None:
    try:
        found = json.loads((out / archive.PLAN).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{out} holds no campaign that could go on: {archive.PLAN}: {error}") from error
    if not isinstance(found, dict):
        raise BadInput(f"{out} holds no campaign that could go on: {archive.PLAN}: it is no JSON object")
    if (out / "manifest.json").exists():
        raise BadInput(f"{out} is finished; there is nothing to go on with")
    if found != wanted:
        other = ", ".join(name for name in wanted if found.get(name) != wanted[name])
        raise BadInput(f"{out} was begun with another plan ({other}); go on with the options of the first run")


def _report(out: Path, campaign: Campaign, wall_seconds: float) -> int:
    totals = campaign.totals
    doubts = [doubt for each in campaign.derived for doubt in each.doubts]
    for doubt in doubts:
        print(f"UNKNOWN: {doubt}")
    for number, result in enumerate(each for each in results.read(out) if each["verdict"] != HELD):
        if number == MOST_TOLD:
            print(f"… and more; all are in {out / results.RESULTS}")
            break
        print(f"{kept_line(result)}\n  again: {replay_line(result['case'])}")
    _tell_shrunk(campaign.shrunk)
    if not totals.cases and not doubts:
        print("UNKNOWN: no case was derived")
    verdict = archive.verdict(campaign.derived, totals)
    print(
        f"{verdict} {out}: {totals.cases} cases, {totals.violated} violated, {totals.unknown} unknown, {totals.pruned} pruned; "
        f"{totals.processes} child processes, {wall_seconds:.1f} s, {totals.cases / wall_seconds:.1f} cases a second"
    )
    if campaign.plan.mode == POINTS:
        owned = [point for point in faults.declared() if any(each.subject.owner(point) for each in campaign.derived)]
        silent = [point for point in owned if point not in totals.fired]
        print(
            f"points fired: {len(owned) - len(silent)} of {len(owned)}"
            + (f"; not in this campaign: {', '.join(silent)}" if silent else "")
        )
    if campaign.plan.mode == LINES:
        for line in windows.told(results.read(out), everything=campaign.plan.keep == KEEP_ALL):
            print(line)
    if campaign.plan.mode == SYSCALLS:
        for line in uncovered.told([window for each in campaign.derived for window in each.windows]):
            print(line)
    print(f"Now let the audit judge: python audit/audit.py {out}")
    return {"PASS": 0, "FAIL": 1, "UNKNOWN": 3}[verdict]


def _tell_shrunk(shrunk: Sequence[tuple[Path, int, int]]) -> None:
    for path, before, after in shrunk:
        print(f"shrunk from {before} steps to {after}: {path}\n  again: {replay_line(str(path))}")


def find(text: str) -> Case:
    """The case of this name, on the subjects that there are. Raises BadInput."""
    kept = seeds.read(Path(text)) if text.endswith(seeds.SUFFIX) else None
    if kept is not None:
        subject = find(f"{kept.subject}/{NONE}").subject
        return Case(subject, history=kept.named)
    known = SUBJECTS
    if text.startswith("oracle/"):
        from scenarios.explore import oracle  # noqa: PLC0415 - systems with a mistake are loaded only where they are asked for

        known = oracle.subjects()
    through_relay = "wire:" in text
    return parse(text, [wired(subject) if through_relay else subject for subject in known])


def _playable(text: str, store_name: str) -> tuple[Case, Store]:
    """The case of this name and its databases. Raises BadInput where it cannot be played on this machine."""
    case, databases = find(text), store(store_name)
    if case.power is not None:
        can_record((case.subject,), store_name)
    if strikes_calls(case):
        if store_name != SQLITE:
            raise BadInput(f"{case}: of a database only SQLite's calls are struck; leave --store")
        can_trace()
    return case, databases


async def _with_runs(case: Case, room: Room, out: Path) -> Room:
    """The room with the runs without faults that the case's faults are told of, recorded below `out`."""
    return await record_for(case, await with_listings(case, room, out), out)


def replay(text: str, out: Path, spawn: str, store_name: str = SQLITE) -> int:
    """Run one case again into the new directory `out` and tell its story; the exit code is its verdict's."""
    case, databases = _playable(text, store_name)
    fresh_directory(out, CASES)

    async def work(supervisor: Supervisor, place: Any) -> dict[str, Any]:
        # A process whose points are observed writes its records in halves: its calls have other numbers.
        room = Room(
            supervisor,
            place,
            keep=KEEP_ALL,
            observe=not strikes_calls(case),
            by_line=case.by_line,
            restart_servers=len(case.rounds) > 1,
        )
        return await _play(case, await _with_runs(case, room, out.resolve()), out.resolve() / "case")

    result = staged(work, Where(out, spawn, databases, (case.subject,)))
    print(f"{kept_line(result)}\nfiles: {out / 'case'}")
    return EXIT_CODES[result["verdict"]]


def shrink(text: str, out: Path, spawn: str, store_name: str = SQLITE) -> int:
    """Find the fewest faults of a failing case that still fail, in new folders below `out`."""
    case, databases = _playable(text, store_name)
    if case.history is not None:
        return _shrink_history(case, out, spawn, databases)
    fresh_directory(out, CASES)

    async def work(supervisor: Supervisor, place: Any) -> dict[str, Any]:
        room = Room(supervisor, place, keep=KEEP_ALL, restart_servers=len(case.rounds) > 1)
        room = await _with_runs(case, room, out.resolve())
        smallest = await _play(case, room, out.resolve() / "0-whole")
        if smallest["verdict"] != VIOLATED:
            return smallest
        number, current, going = 0, case, True
        while going:
            going = False
            for smaller in _smaller(current):
                number += 1
                tried = await _play(smaller, room, out.resolve() / f"{number}-smaller")
                if tried["verdict"] == VIOLATED and set(tried["kinds"]) & set(smallest["kinds"]):
                    smallest, current, going = tried, smaller, True
                    break
        return smallest

    result = staged(work, Where(out, spawn, databases, (case.subject,)))
    if result["verdict"] != VIOLATED:
        why = "the case does not fail" if result["verdict"] == HELD else "what is in doubt is no failure; mend that first"
        print(f"{kept_line(result)}\nthere is nothing to shrink: {why}")
        return EXIT_CODES[result["verdict"]]
    print(f"{kept_line(result)}\n  again: {replay_line(result['case'])}")
    return 1


def _shrink_history(case: Case, out: Path, spawn: str, databases: Store) -> int:
    """The same for a history, by Hypothesis."""
    assert case.history is not None
    if not seeds.NUMBER.fullmatch(case.history.name):
        raise BadInput(f"{case}: a history of a file is shrunk already; take steps out of a copy of it, and replay that")
    fresh_directory(out, CASES)

    async def work(supervisor: Supervisor, place: Any) -> tuple[dict[str, Any], list[tuple[Path, int, int]]]:
        room = Room(supervisor, place, keep=KEEP_ALL)
        result = await _play(case, room, out.resolve() / "0-whole")
        failed = [result] if result["verdict"] == VIOLATED else []
        return result, await randoms.shrink_all(case.subject, failed, room, out.resolve())

    result, shrunk = staged(work, Where(out, spawn, databases, (case.subject,)))
    print(kept_line(result))
    _tell_shrunk(shrunk)
    if not shrunk:
        print("there is nothing to shrink: the case does not fail")
    return EXIT_CODES[result["verdict"]]


def _smaller(case: Case) -> list[Case]:
    """The same case with one fault less, each once. A round that becomes empty falls away, or else stays as an empty one,
    where a later round strikes what only a second round comes to."""
    found: dict[str, Case] = {}
    for at, struck in enumerate(case.rounds):
        for which in range(len(struck)):
            left = (*struck[:which], *struck[which + 1 :])
            for there in ((left,),) if left else ((), ((),)):
                rounds = [*case.rounds[:at], *there, *case.rounds[at + 1 :]]
                while rounds and not rounds[-1]:
                    rounds.pop()
                smaller = replace(case, rounds=tuple(rounds))
                if rounds:
                    found[str(smaller)] = smaller
    return list(found.values())


async def _play(case: Case, room: Room, directory: Path) -> dict[str, Any]:
    return results.line(await play(case, room, directory), reached=False)


def _modules(subjects: Sequence[Subject]) -> tuple[str, ...]:
    """What the spawner has to have loaded, and no more: a fork is the cheaper, the smaller its parent is."""
    programs = [program for subject in subjects for program in (*(role.program for role in subject.roles), subject.plant)]
    return tuple(dict.fromkeys([*(program.module for program in programs), HOUSE, "scenarios.relay"]))


@dataclass(frozen=True, slots=True)
class Where:
    """Where and with what something is run; `rehearse` is worth it where there are many processes."""

    out: Path
    spawn: str
    store: Store
    subjects: tuple[Subject, ...]
    rehearse: bool = False


def staged(work: Callable[[Supervisor, Any], Awaitable[T]], stage: Where) -> T:
    """Run `work` with a supervisor and databases, until it ends or is interrupted."""
    place, out = stage.store, stage.out

    async def run() -> T:
        with stoppable() as stopped_by:
            try:
                begun = Supervisor(ROOT, stage.spawn, _modules(stage.subjects), rehearse=stage.rehearse)
                async with place, begun as supervisor:
                    return await work(supervisor, place)
            except asyncio.CancelledError:
                raise Interrupted(
                    f"stopped by {stopped_by() or 'cancellation'}: {out} holds an incomplete run, which audits as UNKNOWN; all "
                    "processes were ended. A campaign goes on with --resume"
                ) from None

    with machine_faults(out, go_on=GO_ON):
        return asyncio.run(run())
