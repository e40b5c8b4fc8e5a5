"""The side of a worker: it plays one case of a campaign, in a folder of that attempt alone, and hands the result back.

A worker is a process of a pool, or of a Dask cluster. With its first case it starts a spawner and houses of its own, which
serve all later ones and end with it, however it ends. Where a case is played again because a worker died, it is another attempt
in another folder; only the campaign moves one of them to its place. What a worker needs is in the job: nothing is looked up.
"""

import asyncio
import os
import platform
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.engine.sources import one_hash, source_hashes
from scenarios.engine.stores import SqliteStore
from scenarios.engine.study import ROOT
from scenarios.engine.supervisor import Supervisor
from scenarios.errors import EvidenceIncomplete
from scenarios.explore import results
from scenarios.explore.model import Case
from scenarios.explore.player import play
from scenarios.explore.rounds import Room
from scenarios.explore.tenants import Houses

ATTEMPTS = "attempts"
# A case has a few rounds of a few processes, each with a bound of its own.
MOST_SECONDS = 600.0
# What a room says of how its cases are played; the rest of it is each worker's own.
SETTINGS = ("keep", "observe", "by_line", "restart_servers", "prepared", "record", "listings", "recording")


@dataclass(frozen=True, slots=True)
class Job:
    """One case, and all that its player needs: the campaign's directory, the `settings` of its room, and how children start.

    `sources` is the digest of the campaign's sources: a worker with others refuses.
    """

    case: Case
    number: int
    directory: Path
    settings: Mapping[str, Any]
    spawn: str
    modules: tuple[str, ...]
    lanes: int
    sources: str


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a case, and the name of the attempt's folder where its files are kept."""

    result: Mapping[str, Any]
    attempt: str | None


def sources_digest() -> str:
    """One hash over the sources of this checkout."""
    return one_hash(source_hashes(ROOT))


def hello(shared: str) -> dict[str, Any]:
    """What a worker says of itself, and what it reads in the file `shared`: None where it does not see it."""
    path = Path(shared)
    return {
        "sources": sources_digest(),
        "python": platform.python_version(),
        "root": str(ROOT),
        "shared": path.read_text("ascii") if path.exists() else None,
    }


class Bench:
    """The loop, the spawner and the houses of this worker, in a thread of their own."""

    def __init__(self, spawn: str, modules: tuple[str, ...], lanes: int) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="bench", daemon=True).start()
        self._spawn, self._modules, self._lanes = spawn, modules, lanes
        self._do(self._open())

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(MOST_SECONDS)

    async def _open(self) -> None:
        self._supervisor = await Supervisor(ROOT, self._spawn, self._modules, rehearse=True).__aenter__()
        self._houses = await Houses(self._supervisor, ROOT, self._lanes).__aenter__()

    async def _play(self, job: Job, directory: Path) -> dict[str, Any]:
        room = Room(
            self._supervisor,
            SqliteStore(),
            houses=self._houses,
            **job.settings,
        )
        return results.line(await play(job.case, room, directory), reached=room.observe)

    def play(self, job: Job, directory: Path) -> dict[str, Any]:
        """Play one case."""
        result: dict[str, Any] = self._do(self._play(job, directory))
        return result


_benches: dict[tuple[str, tuple[str, ...], int], Bench] = {}
_checked: dict[str, bool] = {}
_one_at_a_time = threading.Lock()


def play_job(job: Job) -> Done:
    """Play a case in a new folder below the campaign's `attempts`. Raises EvidenceIncomplete where the sources are others."""
    with _one_at_a_time:
        if job.sources not in _checked:
            _checked[job.sources] = sources_digest() == job.sources
        if not _checked[job.sources]:
            raise EvidenceIncomplete(f"a worker runs other sources than the campaign, in {ROOT}; let all run one checkout")
        key = (job.spawn, job.modules, job.lanes)
        if key not in _benches:
            _benches[key] = Bench(*key)
        bench = _benches[key]
    attempt = f"{job.number:06d}.{os.getpid()}.{uuid.uuid4().hex}"
    directory = job.directory / ATTEMPTS / attempt
    result = bench.play(job, directory)
    return Done(result, attempt if directory.exists() else None)
