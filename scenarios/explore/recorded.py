"""Runs without faults whose system calls are recorded: which calls there are to strike, and which windows no fault point covers.

The calls come from two runs as every case is played, in which nobody lists points: a process whose points are observed writes its
records in two halves. Both runs must make the same calls. The windows come from the two runs in which points are observed.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from scenarios.explore.calls import Listings, not_told_apart
from scenarios.explore.derive import Derived
from scenarios.explore.model import Case, Subject
from scenarios.explore.rounds import KEEP_ALL, Play, Room
from scenarios.explore.struck import recorded
from scenarios.explore.verdicts import HELD


async def with_calls(derived: Derived, room: Room, directory: Path) -> Derived:
    """`derived` with the calls of the subject's processes, from new folders below `directory`. Raises HarnessBug and OSError."""
    subject = derived.subject
    room = replace(room, observe=False, record=True, restart_servers=True, prepared=None, keep=KEEP_ALL)
    found, doubts = [], []
    for number in (1, 2):
        played = await Play(Case(subject), room, directory / f"calls-{number}").run()
        if played.verdict.outcome != HELD:
            why = [*played.verdict.doubts, *(violation.sentence for violation in played.verdict.violations)]
            doubts.append(f"{subject.name} does not hold without any fault while it is traced: {'; '.join(why)}")
        found.append(listings(subject, directory / f"calls-{number}", played.rounds))
    if not doubts:
        doubts += [*_doubts(subject, *found)]
    return replace(derived, listings=found[0], doubts=(*derived.doubts, *doubts))


def listings(subject: Subject, directory: Path, rounds: int) -> Listings:
    """What the recorded run in `directory` lists."""
    return recorded(directory, [role.process for role in subject.roles], rounds)


def _doubts(subject: Subject, first: Listings, second: Listings) -> Iterator[str]:
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        for process in one:
            if one[process] != other.get(process):
                yield f"{subject.name}: two runs without faults made other system calls: {process} in round {number}"
            for why in not_told_apart(one[process]):
                yield f"{subject.name}: {process} in round {number}: {why}, so its calls cannot be told apart by their numbers"
    if len(first) != len(second):
        yield f"{subject.name}: two runs without faults had other numbers of rounds"
    if not any(found for each in first for found in each.values()):
        yield f"{subject.name}: no system call was recorded, so there is nothing to strike; see whether strace traces anything"
