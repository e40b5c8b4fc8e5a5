"""How fast the study runs: `fork` against `exec`, and the audit against the start of a bare interpreter, in one run.

    python -m benchmarks.study [--repeat N] [--section NAME …]

Prints wall times and ratios; absolute numbers drift with the machine, ratios within one run do not. Takes about a minute for
each repetition of the whole study, nearly all of it in `exec`.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from outbox import faults

ROOT = Path(__file__).resolve().parents[1]
CALLS = 1_000_000


def seconds(command: Sequence[str]) -> float:
    """Wall time of a command that must succeed."""
    began = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def study_seconds(spawn: str, sections: Sequence[str], out: Path) -> float:
    """Wall time of `run.py` in one spawn mode, into `out`."""
    chosen = ["--section", *sections] if sections else []
    return seconds([sys.executable, "run.py", "--out", str(out), "--spawn", spawn, *chosen])


def idle_point_nanoseconds() -> float:
    """What a fault point costs that nobody has armed, less the cost of the loop around it."""
    reach = faults.reach
    began = time.perf_counter_ns()
    for _ in range(CALLS):
        reach("send.before")
    called = time.perf_counter_ns()
    for _ in range(CALLS):
        pass
    return ((called - began) - (time.perf_counter_ns() - called)) / CALLS


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study", description="Measure the study, its audit, an idle point."
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N")
    parser.add_argument("--section", nargs="+", default=[], metavar="NAME")
    given = parser.parse_args()
    times: dict[str, list[float]] = {"fork": [], "exec": [], "audit": [], "bare interpreter": []}
    with tempfile.TemporaryDirectory() as scratch:
        for repetition in range(given.repeat):
            for spawn in ("fork", "exec"):
                out = Path(scratch) / f"{spawn}-{repetition}"
                times[spawn].append(study_seconds(spawn, given.section, out))
                times["audit"].append(seconds([sys.executable, "audit/audit.py", str(out)]))
                times["bare interpreter"].append(seconds([sys.executable, "-c", "pass"]))
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, value in median.items():
        print(f"{name:<18} {value:8.3f} s")
    print(f"exec / fork             {median['exec'] / median['fork']:.1f}")
    print(f"audit / bare interpreter {median['audit'] / median['bare interpreter']:.1f}")
    print(f"idle fault point        {idle_point_nanoseconds():.0f} ns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
