"""A whole study: a fresh directory, the scenarios side by side, and the evidence.

Ctrl-C, SIGTERM and a lost terminal end the run in order: no new step begins, every child is ended, no manifest is written.
"""

import asyncio
import contextlib
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from outbox.errors import BadInput
from scenarios.engine import evidence
from scenarios.engine.progress import Progress, shown
from scenarios.engine.provenance import provenance
from scenarios.engine.runner import ScenarioResult, ScenarioRunner
from scenarios.engine.sources import source_hashes
from scenarios.engine.steps import Bounds
from scenarios.engine.stores import Store, store
from scenarios.engine.supervisor import Supervisor
from scenarios.errors import EvidenceIncomplete, Interrupted
from scenarios.model import SQLITE, Scenario

ROOT = Path(__file__).resolve().parents[2]


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
    _make_fresh(options.out)
    try:
        return asyncio.run(_run(scenarios, options, place, stream))
    except OSError as error:
        if error.errno is None:
            raise  # a TimeoutError of ours, not the machine's
        raise EvidenceIncomplete(
            f"the run is incomplete: {error.filename or options.out}: {error.strerror or error}. "
            f"All processes were ended. {_advice(error)}, then run again into a new directory"
        ) from error


def _advice(error: OSError) -> str:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "Allow more open files (ulimit -n) or lower --jobs"
    return "Make room"


def _make_fresh(out: Path) -> None:
    if os.path.lexists(out):
        raise BadInput(f"--out {out}: it exists, and nothing is overwritten; name a new directory")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--out {out}: {out.parent} cannot be a directory: {error.strerror}") from error
    try:
        out.mkdir()
        (out / "scenarios").mkdir()  # from the first moment on it is known for what it is: a run without a manifest
    except OSError as error:
        raise BadInput(f"--out {out}: it cannot be created: {error.strerror}") from error


async def _run(scenarios: Sequence[Scenario], options: StudyOptions, place: Store, stream: TextIO) -> StudyResult:
    sources = source_hashes(ROOT)
    told = provenance(ROOT, options.out)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    clock_zero = time.monotonic()
    with _stoppable() as stopped_by, shown(len(scenarios), stream) as progress:
        try:
            async with place, Supervisor(ROOT, options.spawn) as supervisor:
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


@contextlib.contextmanager
def _stoppable() -> Iterator[Callable[[], str | None]]:
    """While this lasts, the stopping signals cancel the current task, once; yields a function that names the signal."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    received: list[str] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: signal.Signals) -> None:
        received.append(number.name)
        if len(received) == 1 and task is not None:
            task.cancel()

    # Who started us with a signal ignored (nohup) wants it to stay so.
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, stop, number)
    try:
        yield lambda: received[0] if received else None
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
