"""`run.py check receiver`: what somebody else's receiver does with keys, and what it loses, applies twice, or leaves stuck."""

import argparse
import asyncio
import io
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from outbox.errors import BadInput, say
from scenarios.engine.interrupts import stoppable
from scenarios.engine.study import ROOT
from scenarios.engine.supervisor import Supervisor
from scenarios.targets import available, receiver_check, results, verdicts
from scenarios.targets.battery_model import Expectation
from scenarios.targets.file import read
from scenarios.targets.model import Target
from scenarios.targets.receiver_stand import Site
from scenarios.targets.receiver_trial import MET, SKIPPED, UNCLEAR, VIOLATED, Seen
from scenarios.targets.services import Services

STANDS = "stands"
CROWD_MODULE = "scenarios.targets.receiver_crowd"


@dataclass(frozen=True, slots=True)
class Asked:
    """What `run.py check receiver` was asked for."""

    file: Path
    out: Path
    only: str | None = None
    python: str = sys.executable


def options(parser: argparse.ArgumentParser) -> None:
    """The command line."""
    parser.add_argument("file", type=Path, metavar="TARGET.toml", help="describes the receiver")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new directory for what was found")
    parser.add_argument("--only", metavar="NAME", help="one expectation, by its name")
    parser.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="the interpreter of the target (default: ours)"
    )


def run(arguments: argparse.Namespace) -> int:
    """As the command line asks; returns the exit code."""
    asked = Asked(arguments.file, arguments.out, arguments.only, arguments.python)
    return check(asked, sys.stderr or io.StringIO())


def check(asked: Asked, stream: TextIO) -> int:
    """Try the receiver; prints what a person wants to know, leaves the results in `out`, returns the exit code."""
    target = read(asked.file)
    if target.contents.receiver is None:
        raise BadInput(f"{asked.file}: it describes no receiver: add a table [receiver]")
    missing = available.why_not(target, asked.python)
    if missing is not None:
        raise BadInput(f"{asked.file}: {target.name} cannot run here: {missing}")
    receiver_check.choose(asked.only)
    plan = results.Plan(kind=results.RECEIVER, target=target, options={"only": asked.only}, python=asked.python)
    with results.begin(asked.out, plan) as made:
        asyncio.run(_played(asked, target, made, stream))
        summary = made.finish()
    for line in told_of(asked.out):
        print(line)
    for line in results.told(summary, asked.out):
        print(line)
    return verdicts.EXIT_CODES[summary["verdict"]]


async def _played(asked: Asked, target: Target, made: results.Check, stream: TextIO) -> None:
    place = asked.out.resolve() / STANDS
    place.mkdir()

    def told(expectation: Expectation, seen: Sequence[Seen]) -> None:
        verdict = [each.verdict for each in seen]
        worst = next((word for word in (VIOLATED, UNCLEAR, MET, SKIPPED) if word in verdict), SKIPPED)
        say(f"{expectation.name}: {worst}", stream)

    with stoppable() as stopped_by:
        try:
            servers = Services(target.contents.services)
            async with servers, Supervisor(ROOT, "fork", (CROWD_MODULE,)) as supervisor:
                scratch = place / "crowd"
                scratch.mkdir()
                site = Site(target, supervisor, asked.python, servers, scratch)
                for case in await receiver_check.play(site, place, asked.only, told):
                    made.add(case.case)
                    if case.files is not None:
                        shutil.copytree(case.files, made.folder(case.case.name), symlinks=True, dirs_exist_ok=True)
        except asyncio.CancelledError:
            raise results.interrupted(asked.out, stopped_by()) from None
        finally:
            shutil.rmtree(place, ignore_errors=True)


def told_of(out: Path) -> Iterator[str]:
    """What was seen of each expectation that was not met, or could not be tried."""
    for text in (out / results.RESULTS).read_text("utf-8").splitlines():
        line = json.loads(text)
        if line["verdict"] == SKIPPED:
            yield f"skipped {line['expectation']}: {line['seen']}"
        elif line["verdict"] != MET:
            word = line["severity"] if line["verdict"] == VIOLATED else line["verdict"]
            yield f"{word.upper()} {line['expectation']} ({line['source']})\n  {line['expected']}\n  seen: {line['seen']}"
