"""`run.py check all`: every shipped target, one after the other, and one table of all.

Each check is a command of its own (`python -m scenarios.targets`), so that none of them can disturb another. A target that
cannot run here is told with what to install. Exit codes: 0 every target could be checked or was skipped, whatever was found; 2
one could not be checked; 3 one is UNKNOWN, or all was interrupted.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from outbox.errors import BadInput, say
from scenarios.engine.directories import fresh_directory, machine_faults
from scenarios.engine.study import ROOT
from scenarios.targets import command, handed, presence, record
from scenarios.targets.file import read
from scenarios.targets.model import Target
from scenarios.targets.record import Entry
from scenarios.targets.results import RECEIVER, WORKER

TARGETS = ROOT / "examples" / "targets"
FAST, SLOW, EVERY = "fast", "slow", "every"
CHECKS, RECORD = "checks", "track-record.md"
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be checked: targets below `folder` with a name like one of `only`, each with the first of `pythons` that has
    its packages."""

    out: Path
    chosen: str
    folder: Path
    only: tuple[str, ...]
    pythons: tuple[str, ...]
    budget: int | None


def options(parser: argparse.ArgumentParser) -> None:
    """The command line."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new directory")
    parser.add_argument(
        "--set",
        choices=(FAST, SLOW, EVERY),
        default=FAST,
        help="without servers, with servers, or every target (default: fast)",
    )
    parser.add_argument("--targets", type=Path, default=TARGETS, metavar="DIR", help="a folder with a folder for each target")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="GLOB", help="targets by name")
    parser.add_argument(
        "--python",
        nargs="+",
        default=[sys.executable],
        metavar="PATH",
        help="interpreters; a target gets the first that has it",
    )
    parser.add_argument("--budget", type=int, metavar="N", help="at most N cases of each worker")


def run(arguments: argparse.Namespace) -> int:
    """Check every shipped target, and put them all into one table."""
    if arguments.budget is not None and arguments.budget < 1:
        raise BadInput(f"--budget {arguments.budget}: expected a positive number")
    pythons = tuple(command.interpreter(each) for each in arguments.python)
    asked = Asked(arguments.out, arguments.set, arguments.targets, tuple(arguments.only), pythons, arguments.budget)
    targets = list(_targets(asked))
    if not targets:
        raise BadInput(f"{asked.folder}: no target has a name like {' '.join(asked.only)} and belongs to --set {asked.chosen}")
    fresh_directory(asked.out, CHECKS)
    entries, codes = [], []
    with machine_faults(asked.out, go_on="begin again in a new folder"):
        for target, kind in targets:
            entry, code = _checked(asked, target, kind)
            entries.append(entry)
            codes.append(code)
            say(_told(entry), sys.stdout)
        record.write(entries, asked.out / RECORD)
    print(f"{len(entries)} targets, {sum(entry.check is None for entry in entries)} not checked: {asked.out / RECORD}")
    print(f"Now let the audit judge: python audit/audit.py {asked.out / CHECKS}")
    return 2 if 2 in codes else 3 if 3 in codes else 0


def _targets(asked: Asked) -> Iterator[tuple[Target, str]]:
    """Targets by name, each once for each table that it has. Raises BadInput."""
    files = sorted(asked.folder.glob("*/target.toml"))
    if not files:
        raise BadInput(f"{asked.folder}: it has no folder with a target.toml")
    for file in files:
        if not any(fnmatch(file.parent.name, each) for each in asked.only):
            continue
        target = read(file)
        if asked.chosen != EVERY and (asked.chosen == SLOW) != bool(target.contents.services):
            continue
        for kind in (WORKER, RECEIVER):
            if getattr(target.contents, kind) is not None:
                yield target, kind


def _checked(asked: Asked, target: Target, kind: str) -> tuple[Entry, int]:
    file = target.file.relative_to(ROOT) if target.file.is_relative_to(ROOT) else target.file
    more = _more(asked, target, kind)
    told = " ".join(["python run.py check", kind, str(file), *more, "--out DIR"])
    missing = ""
    for python in asked.pythons:
        here = presence.look(target, python)
        if here.missing is None:
            out = asked.out / CHECKS / f"{target.name}-{kind}"
            code, said = _run([kind, str(target.file), "--python", python, *more, "--out", str(out)])
            if code in (0, 1, 3) and (out / "manifest.json").exists():
                return Entry(target, kind, told, handed.read(out)), code
            return Entry(target, kind, told, reason=f"exit code {code}: {said}"), code
        missing = missing or here.missing
    return Entry(target, kind, told, reason=missing), 0


def _more(asked: Asked, target: Target, kind: str) -> list[str]:
    """Options beyond the usual ones. Who runs no Python has no lines that could be struck, but system calls."""
    worker = target.contents.worker
    if kind != WORKER or worker is None:
        return []
    runs_python = any(each[0] == "{python}" for each in (worker.work, worker.enqueue))
    budget = [] if asked.budget is None else ["--budget", str(asked.budget)]
    return [*([] if runs_python else ["--mode", "syscalls"]), *budget]


def _run(arguments: Sequence[str]) -> tuple[int, str]:
    """Run one check; its exit code and the last line that it said. Whatever ends this wait ends the check, too."""
    with tempfile.TemporaryFile() as said:
        done = subprocess.Popen(
            [sys.executable, "-m", "scenarios.targets", *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            code = done.wait()
        except BaseException:
            done.terminate()
            try:
                done.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                done.kill()
            raise
        said.seek(0)
        lines = said.read().decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        return code, lines[-1].removeprefix("check: ")


def _told(entry: Entry) -> str:
    if entry.check is None:
        return f"{entry.target.name} ({entry.kind}): not checked: {entry.reason}"
    summary = entry.check.summary
    counts = ", ".join(f"{count} {verdict}" for verdict, count in summary["by_verdict"].items() if count)
    return f"{entry.target.name} ({entry.kind}): {summary['verdict']}, {counts}, {summary['wall_seconds']:.1f} s"
