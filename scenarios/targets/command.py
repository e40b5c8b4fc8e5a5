"""The command `run.py check`: what is checked, progress, the result in a few lines, and the exit code.

0 PASS, 1 FAIL, 2 a target file or a target that cannot be used, 3 UNKNOWN or interrupted.
"""

import argparse
import asyncio
import io
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from outbox.errors import BadInput
from scenarios.engine.directories import machine_faults
from scenarios.engine.interrupts import stoppable
from scenarios.targets import derive, junit, presence, receiver_command, repro, results, room, verdicts
from scenarios.targets.file import read
from scenarios.targets.outcomes import WorkerCase
from scenarios.targets.receiver_stand import WATCH_SECONDS
from scenarios.targets.worker import EXEC, FORK, Asked, Check

QUIET_SECONDS, LIVELY_SECONDS = 5.0, 0.1
LONGEST_WATCH_SECONDS = 3600.0


class Progress:
    """How much of a level is done, how fast, how long it will take, and what was found. A moving line on a terminal, a plain
    line every few seconds anywhere else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._lively = stream, stream.isatty()
        self._began = self._told = time.monotonic()
        self._level, self._total = "", 0
        self._verdicts: Counter[str] = Counter()

    def level(self, name: str, total: int) -> None:
        """So many cases begin."""
        self._level, self._total = name, total
        self._verdicts.clear()
        self._began = time.monotonic()

    def ended(self, line: WorkerCase) -> None:
        """One case has ended."""
        self._verdicts[line.verdict] += 1
        now = time.monotonic()
        if now - self._told >= (LIVELY_SECONDS if self._lively else QUIET_SECONDS):
            self._told = now
            self._say(self._line())

    def _line(self) -> str:
        cases = self._verdicts.total()
        rate = cases / max(time.monotonic() - self._began, 1e-9)
        left_seconds = (self._total - cases) / rate
        found = "".join(f", {self._verdicts[each]} {each}" for each in verdicts.WORKER_VERDICTS if self._verdicts[each])
        return f"{self._level}: {cases} of {self._total} cases, {rate:.1f} a second, about {left_seconds:.0f} s left{found}"

    def _say(self, line: str) -> None:
        print(f"\r\x1b[K{line}" if self._lively else line, end="" if self._lively else "\n", file=self._stream, flush=True)

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self._lively:
            self._say("")


def worker(arguments: argparse.Namespace) -> int:
    """Check a worker: kill it everywhere, restart it, and see what it lost, doubled, or left stuck."""
    for name in ("jobs", "budget"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise BadInput(f"--{name} {value}: expected a positive number")
    target = read(arguments.target)
    python = interpreter(arguments.python)
    asked = Asked(
        target,
        mode=arguments.mode,
        depth=arguments.depth,
        budget=arguments.budget,
        # A case waits more than it computes.
        jobs=arguments.jobs or 2 * (os.cpu_count() or 1),
        spawn=arguments.spawn or (FORK if sys.platform == "linux" else EXEC),
        python=python,
        only=arguments.only,
    )
    here = presence.look(target, python)
    if here.missing is not None:
        raise BadInput(here.missing)
    options = {name: getattr(asked, name) for name in ("mode", "depth", "budget", "spawn", "only")}
    plan = results.Plan(kind=results.WORKER, target=target, options=options, python=python, versions=here.versions)
    with results.begin(arguments.out, plan) as written:
        check = asyncio.run(_checked(asked, written))
        written.notes += check.notes
        summary = written.finish()
    for line in results.told(summary, arguments.out):
        print(line)
    return verdicts.EXIT_CODES[summary["verdict"]]


def receiver(arguments: argparse.Namespace) -> int:
    """Check a receiver: repeat, disturb, stop and kill, and see what it lost, applied twice, or left stuck."""
    python = interpreter(arguments.python)
    if not 0 < arguments.watch <= LONGEST_WATCH_SECONDS:
        raise BadInput(f"--watch {arguments.watch:g}: expected seconds, more than 0 and at most {LONGEST_WATCH_SECONDS:g}")
    asked = receiver_command.Asked(arguments.target, arguments.out, arguments.only, python, arguments.watch)
    return receiver_command.check(asked, sys.stderr or io.StringIO())


def interpreter(given: str | None) -> str:
    """The interpreter that was asked for, or ours. Raises BadInput."""
    if given is None:
        return sys.executable
    found = shutil.which(given)
    if found is None:
        raise BadInput(f"--python {given}: there is no such program")
    return str(Path(found).absolute())


async def _checked(asked: Asked, written: results.Check) -> Check:
    progress = Progress(sys.stderr or io.StringIO())
    with room.made(written.out) as scratch, stoppable() as stopped_by:
        check = Check(asked, written, scratch, progress)
        try:
            await room.within(scratch, check.run())
        except BadInput as error:
            raise BadInput(f"{asked.target.file}: {error}") from None
        except asyncio.CancelledError:
            raise results.interrupted(written.out, stopped_by()) from None
        finally:
            progress.end()
    return check


def _worker_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--mode", choices=derive.MODES, default=derive.LINES, help="where the faults strike (default: lines)")
    command.add_argument("--depth", type=int, choices=(1, 2), default=1, help="2: the recovery is killed, too")
    command.add_argument("--budget", type=int, metavar="N", help="at most N cases, taken evenly from all")
    command.add_argument("--jobs", type=int, metavar="N", help="cases at once (default: two a core)")
    command.add_argument("--spawn", choices=(FORK, EXEC), help="how Python commands start (default: fork on Linux)")
    command.add_argument("--only", metavar="CASE", help="one case, by its name")


def _receiver_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--only", metavar="NAME", help="one expectation, or one place of it, by its name")
    command.add_argument(
        "--watch",
        type=float,
        default=WATCH_SECONDS,
        metavar="SECONDS",
        help="how long a retry after a fault has until it is called stuck (default: %(default)g)",
    )


def _shared_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", type=Path, metavar="TARGET.toml", help="what is to be checked")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new directory")
    command.add_argument("--python", metavar="PATH", help="what {python} stands for (default: this one)")


Kind = tuple[Callable[[argparse.Namespace], int], Sequence[Callable[[argparse.ArgumentParser], None]]]
# What can be checked: the function, and who adds its options.
KINDS: Mapping[str, Kind] = {
    "worker": (worker, (_shared_options, _worker_options)),
    "receiver": (receiver, (_shared_options, _receiver_options)),
}


def _hands_on(command: argparse.ArgumentParser) -> None:
    command.add_argument("--junitxml", type=Path, metavar="FILE", help="the result as a CI server reads it")
    command.add_argument("--repro", type=Path, metavar="DIR", help="a new folder: each finding by itself, to be handed on")


def _handing_on(function: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The same, and afterwards what is to be handed on is written from the check's folder."""

    def run(arguments: argparse.Namespace) -> int:
        if arguments.repro is not None:
            repro.refuse(arguments.repro)
        code = function(arguments)
        with machine_faults(arguments.out, go_on="write it again"):
            if arguments.junitxml is not None:
                junit.write_of(arguments.out, arguments.junitxml)
                print(f"written: {arguments.junitxml}")
            if arguments.repro is not None:
                for folder in repro.write_of(arguments.out, arguments.repro, arguments.target.resolve()):
                    print(f"written: {folder}")
        return code

    return run


def add_to(command: argparse.ArgumentParser) -> None:
    """The command line of `run.py check`."""
    kinds = command.add_subparsers(required=True, metavar="{" + ",".join((*KINDS, "all")) + "}")
    for name, (function, options) in KINDS.items():
        kind = kinds.add_parser(name, description=function.__doc__)
        for add in (*options, _hands_on):
            add(kind)
        kind.set_defaults(command=_handing_on(function))
    from scenarios.targets import all_command  # noqa: PLC0415 - it needs this module

    every = kinds.add_parser("all", description=all_command.run.__doc__)
    all_command.options(every)
    every.set_defaults(command=all_command.run)
