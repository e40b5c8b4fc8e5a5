"""The study: forks against new interpreters, against the floor, over its size and over two cores.

The floor is as many forks, requests (connections that were accepted: each has one) and syncs as strace counts in a run of
the study, spread evenly over two lanes: no supervisor, no evidence, no event loop. What it leaves out is what the study costs
beyond them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import floor
from benchmarks.measuring import LINEAR, Comparison, Contender, Goal, Growth, Part, Series, Slope

LANES = 2
FORKS, SYNCS, REQUESTS = ("clone", "fork", "vfork"), ("fsync", "fdatasync"), ("accept4",)
FEW = ["--only", "keyed_delivery", "unkeyed_delivery"]
SIZES = (21, 42, 84)


@dataclass(frozen=True, slots=True)
class Counts:
    """What the kernel did in a run."""

    forks: int
    syncs: int
    requests: int


def parts(quick: bool) -> Iterator[Part]:
    """The whole study (with `quick` two scenarios of it) in all ways."""
    chosen = FEW if quick else []
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        counts = counted(runs, chosen)
        floor.settled()
        yield Comparison(
            "the study",
            "seconds",
            (
                Contender("fork, two lanes", lambda _round: runs.seconds("fork", LANES, chosen)),
                Contender("new interpreters, two lanes", lambda _round: runs.seconds("exec", LANES, chosen)),
                Contender("fork, one lane", lambda _round: runs.seconds("fork", 1, chosen)),
                Contender(
                    "floor, two lanes",
                    lambda _round: bare(runs, counts),
                    f"{counts.forks} forks, {counts.requests} requests, {counts.syncs} syncs" if counts else "",
                    None if counts else "strace counts what the floor is: apt-get install strace, and let it trace",
                ),
            ),
            (
                Goal("study: new interpreters over forks", "new interpreters, two lanes", "fork, two lanes", at_least=8),
                Goal("study: over its floor of forks, requests and syncs", "fork, two lanes", "floor, two lanes", at_most=2),
                Goal("study: one lane over two", "fork, one lane", "fork, two lanes", at_least=1.6),
            ),
            rounds=2,
            warm_up=0,
        )
        sizes = (1, 2) if quick else SIZES
        yield Growth(
            "the study by its size",
            "scenarios",
            "seconds",
            sizes,
            (Series("fork, two lanes", lambda size: runs.seconds("fork", LANES, ["--only", *points(size)])),),
            (Slope("study: cost of a scenario in the largest over the smallest run", "fork, two lanes", LINEAR, 1.2),),
            note="Scenarios of the section points, which are alike.",
            rounds=2,
        )


class Runs:
    """Runs of run.py, each into a new folder that is thrown away."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0

    def new(self) -> Path:
        """A path where nothing is."""
        self._number += 1
        return self._folder / str(self._number)

    def seconds(self, spawn: str, jobs: int, chosen: list[str]) -> float:
        """Wall time of a run that passes."""
        out = self.new()
        try:
            command = [sys.executable, "run.py", "--out", str(out), "--spawn", spawn, "--jobs", str(jobs), *chosen]
            return floor.seconds(command)
        finally:
            shutil.rmtree(out, ignore_errors=True)


def points(number: int) -> list[str]:
    """So many scenarios of the section points, spread over it."""
    told = subprocess.run([sys.executable, "run.py", "list", "--json"], cwd=floor.ROOT, check=True, capture_output=True)
    names = [f"points/{each['name']}" for each in json.loads(told.stdout)["scenarios"] if each["section"] == "points"]
    return names[:: len(names) // number][:number]


def counted(runs: Runs, chosen: list[str]) -> Counts | None:
    """What strace counts in one run; None without strace, or where it may not trace."""
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "-f", "true"], check=False, capture_output=True).returncode != 0:
        return None
    told, out = runs.new(), runs.new()
    calls = ",".join((*FORKS, *SYNCS, *REQUESTS))
    filters = [strace, "-f", "--seccomp-bpf", "-c", "-o", str(told), "-e", f"trace={calls}"]
    floor.seconds([*filters, sys.executable, "run.py", "--out", str(out), "--jobs", str(LANES), *chosen])
    shutil.rmtree(out, ignore_errors=True)
    found: dict[str, int] = {}
    for line in told.read_text("utf-8", "replace").splitlines():
        match = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(\d+)?\s*(\w+)$", line)
        if match:
            found[match[3]] = int(match[1]) - int(match[2] or 0)
    return Counts(*(sum(found.get(name, 0) for name in names) for names in (FORKS, SYNCS, REQUESTS)))


def bare(runs: Runs, counts: Counts | None) -> float:
    """Seconds of the floor."""
    assert counts is not None
    folder = runs.new()
    folder.mkdir()
    with floor.receiver(folder / "receiver") as port:
        return floor.in_lanes(LANES, lambda lane: _lane(lane, folder, port, counts))


def _lane(lane: int, folder: Path, port: int, counts: Counts) -> None:
    for number in range(lane, counts.forks, LANES):
        syncs, requests = (_share(whole, number, counts.forks) for whole in (counts.syncs, counts.requests))
        keys = [f"{os.getpid()}-{number}-{each}" for each in range(requests)]
        floor.waited(floor.forked(lambda: floor.share(port, folder / f"{lane}", keys, syncs)))  # noqa: B023 - waited for at once


def _share(whole: int, number: int, among: int) -> int:
    """The part of `whole` things that falls to one of `among`."""
    return whole * (number + 1) // among - whole * number // among
