"""Mode `random`: which histories a campaign plays, the canary before them, and what is made of those that fail.

For each subject those of `seeds/` come first, by name, and then those of the seeds that the plan asks for, one after the
other. What fails is shrunk when all are played, a few of each subject, and written into DIR/seeds.
"""

import asyncio
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from outbox.errors import BadInput
from scenarios.engine.study import ROOT
from scenarios.explore import canary, results, seeds
from scenarios.explore.histories import History, Named
from scenarios.explore.model import Case, Subject
from scenarios.explore.player import play
from scenarios.explore.rounds import KEEP_FAILED, Room
from scenarios.explore.verdicts import VIOLATED

# Of each subject, where the budget says nothing.
HISTORIES = 100
MOST_SHRUNK, MOST_PLAYS = 3, 100
SHRINKING, RESULT, CASE = "shrinking", "result.json", "case"


def named(subject: Subject, name: str, folder: Path = ROOT / seeds.FOLDER) -> Named:
    """The history of this name: a number is a seed, anything else a file of `folder`. Raises BadInput."""
    if seeds.NUMBER.fullmatch(name):
        from scenarios.explore import generate  # noqa: PLC0415 - Hypothesis is an extra, and takes its time

        return Named(name, generate.of_seed(subject, int(name)))
    if not seeds.NAME.fullmatch(name):
        raise BadInput(f"random:{name}: expected a seed, or the name of a file in {folder}")
    kept = seeds.read(folder / f"{name}{seeds.SUFFIX}")
    if kept.subject != subject.name:
        raise BadInput(f"random:{name} is a history of {kept.subject}, not of {subject.name}")
    return kept.named


@dataclass(frozen=True, slots=True)
class Histories:
    """The cases of one subject of mode random: those that are kept, and those of the seeds, each made when its turn comes."""

    subject: Subject
    kept: tuple[Named, ...]
    numbers: range

    def __len__(self) -> int:
        return len(self.kept) + len(self.numbers)

    def __iter__(self) -> Iterator[Case]:
        rest = (named(self.subject, str(number)) for number in self.numbers)
        return (Case(self.subject, history=each) for each in chain(self.kept, rest))


def of_plan(subject: Subject, seed: int, budget: int | None, subjects: int) -> Histories:
    """The cases of one of so many subjects, of which each has its share of the budget."""
    first = [kept.named for kept in seeds.read_all(ROOT / seeds.FOLDER) if kept.subject == subject.name]
    most = HISTORIES if budget is None else max(1, budget // subjects)
    return Histories(subject, tuple(first[:most]), range(seed, seed + max(0, most - len(first))))


async def without_canary(room: Room, directory: Path) -> str | None:
    """Play the canary; why nothing may be believed where it is not found failing. Its files are then in `directory`/canary."""
    from scenarios.explore import archive, generate  # noqa: PLC0415 - as above

    place, system = directory / canary.FOLDER, canary.subject()
    shutil.rmtree(place, ignore_errors=True)  # of a campaign that was interrupted
    place.mkdir()
    found = await canary.found(system, generate.of_seed, room, place / CASE)
    if found is None:
        shutil.rmtree(place)
        return (
            f"the canary {canary.NAME}, which every attempt gives a key of its own, held in {canary.MOST} histories: mode "
            "random does not see what it must see; mend that first"
        )
    told = {"subject": archive.subject_data(system), "result": found}
    (place / RESULT).write_text(json.dumps(told, indent=1) + "\n", encoding="ascii")
    return None


async def shrink_all(
    subject: Subject, failed: Iterable[Mapping[str, Any]], room: Room, directory: Path
) -> list[tuple[Path, int, int]]:
    """Shrink the first failures of a subject and write them; each with how many steps it had, and has now."""
    written: list[tuple[Path, int, int]] = []
    for result in failed:
        name = result["case"].rpartition(":")[2]
        if not seeds.NUMBER.fullmatch(name):
            continue  # it is kept already, and was shrunk once
        if len(written) == MOST_SHRUNK:
            break
        history, last = await shrink(subject, name, result["kinds"][0], replace(room, keep=KEEP_FAILED), directory / SHRINKING)
        path = seeds.write(directory / seeds.FOLDER, subject.name, name, history, last or result)
        written.append((path, len(result["history"]["steps"]), len(history.steps)))
    return written


async def shrink(
    subject: Subject, name: str, kind: str, room: Room, directory: Path
) -> tuple[History, Mapping[str, Any] | None]:
    """The simplest history like that of the seed `name` that is still violated in this kind, and its result if it was played.
    Plays below `directory`, which is removed."""
    from scenarios.explore import generate  # noqa: PLC0415 - as above

    loop = asyncio.get_running_loop()
    told: dict[History, Mapping[str, Any]] = {}

    def fails(history: History) -> bool:
        case = Case(subject, history=Named(name, history))
        playing = play(case, room, directory / str(len(told)))
        result = results.line(asyncio.run_coroutine_threadsafe(playing, loop).result(), reached=False)
        told[history] = result
        return result["verdict"] == VIOLATED and kind in result["kinds"]

    shutil.rmtree(directory, ignore_errors=True)
    smallest = await asyncio.to_thread(generate.shrunk, subject, int(name), fails, MOST_PLAYS)
    shutil.rmtree(directory, ignore_errors=True)
    return smallest, told.get(smallest)
