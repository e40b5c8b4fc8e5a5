"""A whole study: a fresh directory, the scenarios side by side, and the evidence.

Ctrl-C, SIGTERM and a lost terminal end the run in order: no new step begins, every child is ended, no manifest is written.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from scenarios.engine import evidence
from scenarios.engine.directories import fresh_directory, machine_faults
from scenarios.engine.interrupts import stoppable
from scenarios.engine.progress import Progress, shown
from scenarios.engine.provenance import provenance
from scenarios.engine.runner import ScenarioResult, ScenarioRunner
from scenarios.engine.sources import source_hashes
from scenarios.engine.stage import Bounds
from scenarios.engine.stores import Store, store
from scenarios.engine.supervisor import Supervisor
from scenarios.errors import EvidenceIncomplete, Interrupted
from scenarios.model import SQLITE, Scenario

ROOT = Path(__file__).resolve().parents[2]
# With so many scenarios a rehearsal costs less than it spares.
REHEARSED_FROM = 30


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """How to run: into which directory, which way of spawning, how many scenarios at once, on which database."""

    out: Path
    spawn: str = "fork" if sys.platform == "linux" else "exec"
    jobs: int = os.cpu_count() or 1
    store: str = SQLITE
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, slots=True)
class StudyResult:
    """The scenarios' results, in the order of the catalogue, how long the run took, and why it has no page for people."""

    results: tuple[ScenarioResult, ...]
    wall_seconds: float
    no_page: str | None = None

    @property
    def problems(self) -> list[str]:
        """Everything that did not come out as declared, a sentence each."""
        return [problem for result in self.results for problem in result.problems]

    @property
    def processes(self) -> int:
        """How many child processes there were."""
        return sum(len(result.processes) for result in self.results)


def run_study(scenarios: Sequence[Scenario], options: StudyOptions, stream: TextIO) -> StudyResult:
    """Run `scenarios` into the new directory `options.out`, telling of it on `stream`.

    Raises BadInput where the directory exists or cannot be made, Interrupted, and EvidenceIncomplete where the machine
    refused to hold the evidence; in the last two cases the directory is left without a manifest.
    """
    place = store(options.store)
    fresh_directory(options.out, "scenarios")
    with machine_faults(options.out, go_on="run again into a new directory"):
        return asyncio.run(_run(scenarios, options, place, stream))


async def _run(scenarios: Sequence[Scenario], options: StudyOptions, place: Store, stream: TextIO) -> StudyResult:
    sources = source_hashes(ROOT)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    clock_zero = time.monotonic()
    with stoppable() as stopped_by, shown(len(scenarios), stream) as progress:
        try:
            many = len(scenarios) >= REHEARSED_FROM
            async with place, Supervisor(ROOT, options.spawn, rehearse=many) as supervisor:
                told = provenance(ROOT, options.out)  # the spawner is loading meanwhile
                results = await _all(scenarios, options, _Rooms(supervisor, place), progress)
                told |= {"postgres": await place.facts()}
        except asyncio.CancelledError:
            raise Interrupted(
                f"stopped by {stopped_by() or 'cancellation'}: {options.out} holds an incomplete run without a manifest, which "
                "audits as UNKNOWN; all processes were ended"
            ) from None
        wall_seconds = time.monotonic() - clock_zero
        if source_hashes(ROOT) != sources:
            raise EvidenceIncomplete(f"the sources in {ROOT} changed while the study ran; run again into a new directory")
        facts = evidence.RunFacts(
            options.spawn, options.jobs, started_at, round(wall_seconds, 3), clock_zero, told, options.store
        )
        no_page = evidence.write(options.out, results, scenarios, sources, facts)
    return StudyResult(tuple(results), wall_seconds, no_page)


@dataclass(frozen=True, slots=True)
class _Rooms:
    """What all scenarios share."""

    supervisor: Supervisor
    store: Store


async def _all(scenarios: Sequence[Scenario], options: StudyOptions, rooms: _Rooms, progress: Progress) -> list[ScenarioResult]:
    lanes = asyncio.Semaphore(options.jobs)

    async def one(scenario: Scenario) -> ScenarioResult:
        async with lanes:
            began = time.monotonic()
            directory = options.out.resolve() / "scenarios" / scenario.section / scenario.name
            result = await ScenarioRunner(scenario, rooms.supervisor, directory, options.bounds, rooms.store).run()
            progress.ended(result, time.monotonic() - began)
            return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(scenario)) for scenario in scenarios]
    except* Exception as errors:  # one is enough to end the run, and is easier to read than a group
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
