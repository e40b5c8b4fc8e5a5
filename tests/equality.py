"""`python -m tests.equality`: many runs of the study, and whether all left the same evidence.

    python -m tests.equality [--runs N] [--python PATH ...] [--spawn fork|exec ...] [--jobs N ...]
                             [--section NAME ...] [--store sqlite|postgres] [--against DIR]

Every Python is tried with every way of spawning and every number of jobs; with `--runs` the list is gone through again, or cut
short. Each run goes to a temporary directory and is compared with the first one, or with the archive DIR, by
`audit.py --compare`; a run that differs is kept. Each Python needs the project's dependencies, as
`python3 -m venv V && V/bin/pip install -e .` installs them. One line a run, then the verdict. Exit codes: 0 all equal,
1 a run differs or did not come out as declared, 2 bad usage or a Python that cannot be used.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUN_SECONDS = 900
ASK_SECONDS = 60
DEPENDENCIES = (
    "import sys, aiohttp, aiosqlite, jinja2, psutil, rich, sqlalchemy, yarl; print('.'.join(map(str, sys.version_info[:3])))"
)
NOT_EQUAL, BAD_USAGE = 1, 2


@dataclass(frozen=True, slots=True)
class Way:
    """One way to make a run: the interpreter (with its version), the way of spawning, the scenarios at once."""

    python: str
    version: str
    spawn: str
    jobs: int

    def __str__(self) -> str:
        return f"Python {self.version}, {self.spawn}, --jobs {self.jobs}"


class Unusable(Exception):
    """A Python cannot make runs; the message says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the runs and compare them; the exit code."""
    options = _options(arguments)
    try:
        versions = {python: _version(python) for python in options.python}
    except Unusable as problem:
        print(problem, file=sys.stderr)
        return BAD_USAGE
    if options.against is not None and not (options.against / "manifest.json").is_file():
        print(f"{options.against} is no finished archive", file=sys.stderr)
        return BAD_USAGE
    ways = [
        Way(python, versions[python], spawn, jobs)
        for spawn, jobs, python in itertools.product(options.spawn, options.jobs, options.python)
    ]
    folder = Path(tempfile.mkdtemp(prefix="halt23-equality-"))
    try:
        return _compare_all(folder, list(itertools.islice(itertools.cycle(ways), options.runs or len(ways))), options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return NOT_EQUAL
    finally:
        if not any((run / "keep").exists() for run in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.equality", description="Make many runs and compare their evidence.")
    parser.add_argument("--runs", type=_positive, help="how many runs (default: every combination)")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters that have the dependencies")
    parser.add_argument("--spawn", nargs="+", choices=("fork", "exec"), default=["fork", "exec"])
    parser.add_argument("--jobs", nargs="+", type=_positive, default=[1, 4], help="numbers of scenarios at once")
    parser.add_argument("--section", nargs="+", default=[], help="only these sections")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite", help="the databases of the runs")
    parser.add_argument("--against", type=Path, help="an archive to compare with, in place of the first run")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _version(python: str) -> str:
    """The version of an interpreter that has the dependencies. Raises Unusable."""
    help_ = f"{python} cannot make runs: give it the dependencies with {python} -m pip install -e {ROOT}"
    try:
        asked = subprocess.run([python, "-c", DEPENDENCIES], capture_output=True, text=True, timeout=ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unusable(f"{python} cannot be started: {error}") from None
    if asked.returncode:
        reason = (asked.stderr.strip().splitlines() or [f"exit code {asked.returncode}"])[-1]
        raise Unusable(f"{help_} ({reason})")
    return asked.stdout.strip()


def _compare_all(folder: Path, ways: Sequence[Way], options: argparse.Namespace) -> int:
    first: Path | None = options.against
    unequal = 0
    for number, way in enumerate(ways, 1):
        run = folder / str(number)
        run.mkdir()
        began = time.monotonic()
        problem = _make(run / "run", way, options)
        seconds = time.monotonic() - began
        verdict = problem or ("the first" if first is None else _compared(first, run / "run"))
        good = not problem and (first is None or verdict == "equal")
        print(f"{number:3}  {way}: {seconds:.1f} s: {verdict}", flush=True)
        if not good:
            unequal += 1
            (run / "keep").touch()
            if first is not None and first.is_relative_to(folder):
                (first.parent / "keep").touch()
        elif first is None:
            first = run / "run"
        elif first != run / "run":
            shutil.rmtree(run)
    if unequal:
        print(f"NOT EQUAL: {unequal} of {len(ways)} runs; they are kept in {folder}")
        return NOT_EQUAL
    print(f"EQUAL: {len(ways)} runs, {len(set(ways))} ways" + (f", all equal to {options.against}" if options.against else ""))
    return 0


def _make(out: Path, way: Way, options: argparse.Namespace) -> str | None:
    """Make one run and audit it; what was wrong with it, or None."""
    command = [way.python, str(ROOT / "run.py"), "--out", str(out), "--spawn", way.spawn, "--jobs", str(way.jobs)]
    command += ["--store", options.store]
    if options.section:
        command += ["--section", *options.section]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"the run did not end within {RUN_SECONDS} s"
    if done.returncode:
        return "\n     ".join([f"run.py ended with {done.returncode}", *done.stderr.strip().splitlines()[-5:]])
    return _audited(out)


def _audited(run: Path) -> str | None:
    """What the audit holds against a run, or None: runs that are equal may be wrong alike."""
    audit = [sys.executable, str(ROOT / "audit" / "audit.py"), str(run)]
    done = subprocess.run(audit, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    if done.returncode:
        return "\n     ".join([f"the audit ended with {done.returncode}", *done.stdout.strip().splitlines()[:5]])
    return None


def _compared(first: Path, run: Path) -> str:
    """`equal`, or the sentences of the comparison."""
    command = [sys.executable, str(ROOT / "audit" / "audit.py"), str(first), "--compare", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ASK_SECONDS, check=False)
    return "\n     ".join(["differs", *(done.stdout + done.stderr).splitlines()]) if done.returncode else "equal"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
