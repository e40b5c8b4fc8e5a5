"""A run that is ended at any moment leaves nothing that passes, and nothing that runs.

    python -m tests.tamper.interrupted [--times N] [--seed N] [--json FILE] [--only GLOB ...]

starts run.py on a frozen copy of the sources and ends it with SIGKILL, SIGTERM or SIGINT at seeded random moments, which are
fractions of the time that an undisturbed run takes. Each leftover must be audited as UNKNOWN or FAIL (PASS only where the
manifest, which is written last, was there already), no process of the run may be alive a moment later, and a run into a new
directory must pass. Exit code 1: one of that is not so.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from audit.archive import audit_archive
from tests.audit.real import freeze
from tests.tamper.ground import own_pins

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ONLY = ("delivery/*", "history/*", "ledger/*")
RUN_SECONDS = 120
PATIENCE_SECONDS = 10.0
"""How long processes of an ended run may take to be gone: a bound, not a wait."""
FINISHED = 0


@dataclass
class Interrupted:
    """What was ended and what was left."""

    whole_seconds: float = 0.0
    verdicts: dict[str, int] = field(default_factory=dict)
    """By signal and verdict."""
    without_directory: int = 0
    reruns: int = 0
    slowest_end_seconds: float = 0.0
    bad: list[str] = field(default_factory=list)


def _start(root: Path, out: Path, only: tuple[str, ...]) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(root / "run.py"), "--out", str(out), "--only", *only]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=root, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)


def _family(pid: int) -> dict[int, psutil.Process]:
    """A process and everything below it."""
    try:
        top = psutil.Process(pid)
        return {each.pid: each for each in [top, *top.children(recursive=True)]}
    except psutil.NoSuchProcess:
        return {}


def _of_run(root: Path) -> list[psutil.Process]:
    """Every process that works in the frozen copy or in a directory of its runs; only a run's own do."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()).is_relative_to(root.parent):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def _gone(family: dict[int, psutil.Process], root: Path) -> list[psutil.Process]:
    """What is still alive once the patience is over; it is ended."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        alive = [p for p in family.values() if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
        left = [*alive, *_of_run(root)]
        if not left or time.monotonic() > end:
            break
        time.sleep(0.02)
    for process in left:
        process.kill()
    return left


def _verdict(out: Path, root: Path) -> str:
    with own_pins():
        return audit_archive(str(out), str(root)).verdict


def interrupt(times: int, seed: int, only: tuple[str, ...] = ONLY, reruns: int = 1) -> Interrupted:
    """End `times` runs, and let `reruns` runs go to their end afterwards, spread evenly."""
    found = Interrupted()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch).resolve()
        root = home / "checkout"
        root.mkdir()
        freeze(root)
        found.whole_seconds = _undisturbed(root, home / "first", only, found)
        for number in range(times):
            _once(root, home / str(number), only, chance, found)
            if (number + 1) % max(1, times // reruns) == 0:
                _undisturbed(root, home / f"again-{number}", only, found)
                found.reruns += 1
    return found


def _undisturbed(root: Path, out: Path, only: tuple[str, ...], found: Interrupted) -> float:
    began = time.monotonic()
    with _start(root, out, only) as run:
        code = run.wait(RUN_SECONDS)
    seconds = time.monotonic() - began
    verdict = _verdict(out, root)
    if code != FINISHED or verdict != "PASS":
        found.bad.append(f"a run that nobody ended: exit code {code}, {verdict}")
    return seconds


def _once(root: Path, out: Path, only: tuple[str, ...], chance: random.Random, found: Interrupted) -> None:
    ended_by = chance.choice(SIGNALS)
    fraction = chance.random()
    with _start(root, out, only) as run:
        try:
            code: int | None = run.wait(fraction * found.whole_seconds)
        except subprocess.TimeoutExpired:
            code = None
        family = _family(run.pid)
        began = time.monotonic()
        if code is None:
            run.send_signal(ended_by)
            code = run.wait(RUN_SECONDS)
        left = _gone(family, root)
        found.slowest_end_seconds = max(found.slowest_end_seconds, time.monotonic() - began)
    words = f"{ended_by.name} at {fraction:.4f} of a run"
    if left:
        found.bad.append(f"{words}: alive afterwards: {[process.pid for process in left]}")
    if not out.exists():
        found.without_directory += 1
        return
    verdict = _verdict(out, root)
    label = f"{ended_by.name} {verdict}{' (the run had finished)' if code == FINISHED else ''}"
    found.verdicts[label] = found.verdicts.get(label, 0) + 1
    if verdict == "PASS" and code not in (FINISHED, -ended_by, 3):
        found.bad.append(f"{words}: exit code {code}, and the leftover passes")
    if verdict != "PASS" and code == FINISHED:
        found.bad.append(f"{words}: exit code 0, and the archive is {verdict}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tamper.interrupted", description="Ends runs at random moments.")
    parser.add_argument("--times", type=int, default=50, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--only", nargs="+", default=list(ONLY), metavar="GLOB", help="which scenarios the runs have")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    given = parser.parse_args()
    # What a shell starts in the background ignores SIGINT, and so would every run that is to be ended by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = interrupt(given.times, given.seed, tuple(given.only), reruns=3)
    if given.json:
        given.json.write_text(json.dumps(asdict(found), indent=1) + "\n")
    print(
        f"a whole run takes {found.whole_seconds:.1f} s; {given.times} ended, {found.without_directory} before their directory"
    )
    for words, times in sorted(found.verdicts.items()):
        print(f"{words}: {times}")
    print(f"{found.reruns} reruns; everything was gone within {found.slowest_end_seconds:.2f} s")
    for line in found.bad:
        print(f"bad: {line}")
    return 1 if found.bad else 0


if __name__ == "__main__":
    sys.exit(main())
