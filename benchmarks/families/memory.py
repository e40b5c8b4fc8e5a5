"""Peak memory: of run.py over its scenarios, of a campaign of up to 1,600 cases, of a scan of the dispatcher.

The peak is that of the largest single process among run.py and those that it waited for, as the kernel keeps it (`ru_maxrss`).
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import floor, scanning
from benchmarks.families.study import points
from benchmarks.measuring import FLAT, Growth, Part, Series, Slope

SCENARIOS, QUICK_SCENARIOS = (12, 42, 84), (1, 2)
CASES, QUICK_CASES = (100, 400, 1600), (2, 4)
# Deaths in recovery, too: 1,602 cases. A campaign that has ten thousand takes a quarter of an hour.
CAMPAIGN = ["explore", "--subject", "journal/keyed", "--depth", "2"]


def parts(quick: bool) -> Iterator[Part]:
    """Runs, campaigns and scans of growing size."""
    with tempfile.TemporaryDirectory() as folder:
        peaks = Peaks(Path(folder))
        yield Growth(
            "memory of run.py",
            "scenarios",
            "MiB at the peak",
            QUICK_SCENARIOS if quick else SCENARIOS,
            (Series("run.py", lambda size: peaks.of(["--only", *points(size)], scenarios, size)),),
            (Slope("memory: run.py over the most scenarios over the fewest", "run.py", FLAT, 1.25),),
        )
        yield Growth(
            "memory of a campaign",
            "cases",
            "MiB at the peak",
            QUICK_CASES if quick else CASES,
            (Series("run.py explore", lambda size: peaks.of([*CAMPAIGN, "--budget", str(size)], cases, size)),),
            (Slope("memory: a campaign of the most cases over one of the fewest", "run.py explore", FLAT, 1.25),),
        )
    yield from scanning.parts(quick)


def scenarios(archive: Path) -> int:
    """How many scenarios were run."""
    return len(list((archive / "scenarios").glob("*/*")))


def cases(archive: Path) -> int:
    """How many cases a campaign played."""
    return int(json.loads((archive / "manifest.json").read_bytes())["totals"]["cases"])


class Peaks:
    """Runs of run.py, each into a new folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0

    def of(self, arguments: Sequence[str], counted: Callable[[Path], int], number: int) -> float:
        """MiB at the peak of one run, which must pass and be of so many scenarios or cases."""
        self._number += 1
        out = str(self._folder / str(self._number))
        command = [sys.executable, "run.py", *arguments, "--out", out]
        # An interpreter between us and run.py: a new process begins with the peak of whoever started it.
        between = [sys.executable, "-S", "-c", _BETWEEN, *command]
        done = subprocess.run(between, cwd=floor.ROOT, check=True, stdout=subprocess.PIPE, env=floor.environment(), text=True)
        code, kib = done.stdout.split()[-2:]
        if code != "0":
            raise floor.Failed(f"{' '.join(command)} ended with {code}")
        if (found := counted(Path(out))) != number:
            raise floor.Failed(f"{' '.join(command)} was of {found}, not of {number}")
        return int(kib) / 1024


_BETWEEN = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_pid, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""
