"""`run.py check receiver`: what somebody else's receiver does with keys, and what it loses, applies twice, or leaves stuck."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from outbox.errors import BadInput, say
from scenarios.engine.interrupts import stoppable
from scenarios.engine.study import ROOT
from scenarios.engine.supervisor import Supervisor
from scenarios.targets import presence, receiver_check, results, room, verdicts
from scenarios.targets.battery_model import Expectation
from scenarios.targets.file import read
from scenarios.targets.model import Target
from scenarios.targets.receiver_stand import MAX_KEPT_BYTES, WATCH_SECONDS, Site, folder_bytes, output_of, special
from scenarios.targets.receiver_trial import MET, SKIPPED, UNCLEAR, VIOLATED, Seen
from scenarios.targets.services import Services

CROWD_MODULE = "scenarios.targets.receiver_crowd"


@dataclass(frozen=True, slots=True)
class Asked:
    """What `run.py check receiver` was asked for."""

    file: Path
    out: Path
    only: str | None
    python: str
    watch_seconds: float = WATCH_SECONDS


def check(asked: Asked, stream: TextIO) -> int:
    """Try the receiver; prints what a person wants to know, leaves the results in `out`, returns the exit code."""
    target = read(asked.file)
    if target.contents.receiver is None:
        raise BadInput(f"{asked.file}: it describes no receiver: add a table [receiver]")
    here = presence.look(target, asked.python)
    if here.missing is not None:
        raise BadInput(here.missing)
    receiver_check.choose(asked.only)
    options = {"only": asked.only, "watch_seconds": asked.watch_seconds}
    plan = results.Plan(kind=results.RECEIVER, target=target, options=options, python=asked.python, versions=here.versions)
    with results.begin(asked.out, plan) as made:
        asyncio.run(_played(asked, target, made, stream))
        summary = made.finish()
    for line in told_of(asked.out):
        print(line)
    for line in results.told(summary, asked.out)[-2:]:
        print(line)
    return verdicts.EXIT_CODES[summary["verdict"]]


async def _played(asked: Asked, target: Target, made: results.Check, stream: TextIO) -> None:
    def told(expectation: Expectation, seen: Sequence[Seen]) -> None:
        verdict = [each.verdict for each in seen]
        worst = next((word for word in (VIOLATED, UNCLEAR, MET, SKIPPED) if word in verdict), SKIPPED)
        say(f"{expectation.name}: {worst}", stream)

    async def play(place: Path) -> None:
        servers = Services(target.contents.services)
        async with servers, Supervisor(ROOT, "fork", (CROWD_MODULE,)) as supervisor:
            scratch = place / "crowd"
            scratch.mkdir()
            site = Site(target, supervisor, asked.python, servers, scratch, asked.watch_seconds)
            for case in await receiver_check.play(site, place, asked.only, told):
                made.add(case.case)
                if case.files is not None:
                    _keep(case.files, made.folder(case.case.name))

    with room.made(made.out) as place, stoppable() as stopped_by:
        try:
            await room.within(place, play(place), whose=f"{target.file}: ")
        except asyncio.CancelledError:
            raise results.interrupted(asked.out, stopped_by()) from None


def _keep(directory: Path, folder: Path) -> None:
    """Keep what the processes of a receiver wrote, and its own folder where that is small."""
    shutil.copytree(output_of(directory), folder / "output")
    if folder_bytes(directory) <= MAX_KEPT_BYTES:
        shutil.copytree(directory, folder / "state", symlinks=True, ignore_dangling_symlinks=True, ignore=special)


def told_of(out: Path) -> Iterator[str]:
    """What was seen of each expectation that was not met, or could not be tried; places of one kind are told together."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    places: Counter[str] = Counter()
    for text in (out / results.RESULTS).read_text("utf-8").splitlines():
        line = json.loads(text)
        name = line["expectation"].partition(":")[0]
        places[name] += 1
        if line["verdict"] != MET:
            word = line["severity"] if line["verdict"] == VIOLATED else line["verdict"]
            groups.setdefault((name, word), []).append(line)
    for (name, word), lines in groups.items():
        first, more = lines[0], ""
        if places[name] > 1:
            more = f" at {len(lines)} of {places[name]} places, first at {first['expectation'].partition(':')[2]}"
        if word == SKIPPED:
            yield f"skipped {name}{more}: {first['seen']}"
        else:
            yield f"{word.upper()} {name}{more} ({first['source']})\n  {first['expected']}\n  seen: {first['seen']}"
