"""Runs without faults whose system calls are recorded: which calls there are to strike, and which windows no point covers.

The calls come from two runs as every case is played, in which nobody lists points: a process whose points are observed writes
its records in two halves. Both runs must make the same calls. The windows come from the first of the two runs in which points
are observed.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from scenarios.errors import EvidenceIncomplete
from scenarios.explore import strace
from scenarios.explore.calls import Listings, not_told_apart
from scenarios.explore.derive import Derived
from scenarios.explore.model import Case, Subject
from scenarios.explore.rounds import KEEP_ALL, Play, Played, Room
from scenarios.explore.struck import recorded
from scenarios.explore.sysfaults import SysFault
from scenarios.explore.uncovered import WINDOWS, windows, write
from scenarios.explore.verdicts import HELD


async def with_calls(derived: Derived, room: Room, directory: Path) -> Derived:
    """`derived` with the calls of the subject's processes and the windows, from folders below `directory`, where the runs are
    whose points were observed. Raises HarnessBug and OSError."""
    found, doubts = await calls_of(derived.subject, room, directory)
    observed = windows(listings(derived.subject, directory / "run-1", len(derived.reached)))
    write(directory / WINDOWS, observed)
    return replace(derived, listings=found, windows=tuple(observed), doubts=(*derived.doubts, *doubts))


async def calls_of(subject: Subject, room: Room, directory: Path) -> tuple[Listings, list[str]]:
    """The calls of the subject's processes in two runs without faults, and why they cannot be trusted."""
    room = replace(room, observe=False, record=True, restart_servers=True, prepared=None, keep=KEEP_ALL)
    found: list[Listings] = []
    doubts: list[str] = []
    for number in (1, 2):
        played = await Play(Case(subject), room, directory / f"calls-{number}").run()
        if played.verdict.outcome != HELD:
            doubts.append(f"{subject.name} does not hold without any fault while it is traced: {played.verdict.why}")
        found.append(listings(subject, directory / f"calls-{number}", played.rounds))
        doubts += () if doubts else _unrecorded(played, found[-1])
    if not doubts:
        doubts += [*_doubts(subject, *found)]
    return found[0], doubts


def _unrecorded(played: Played, found: Listings) -> Iterator[str]:
    """Processes of a recorded run that made no call: each opens something, so strace did not see it."""
    for process in played.processes:
        if not found[process.step - 1].get(process.name):
            yield (
                f"{played.case.subject.name}: no system call of {process.name} was recorded in round {process.step}; see "
                "whether strace traces it"
            )


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


def can_trace() -> None:
    """Raises EvidenceIncomplete, with the reason, where this machine lets nobody trace."""
    why = strace.why_not()
    if why is not None:
        raise EvidenceIncomplete(f"skipped: system calls cannot be struck on this machine: {why}")


def strikes_calls(case: Case) -> bool:
    """Whether a fault of the case strikes a system call."""
    return any(isinstance(fault, SysFault) for fault in case.faults)


async def with_listings(case: Case, room: Room, directory: Path) -> Room:
    """`room` with the calls of runs without faults in `directory`, where the case needs them. Raises EvidenceIncomplete."""
    if not strikes_calls(case):
        return room
    can_trace()
    found, doubts = await calls_of(case.subject, room, directory)
    if doubts:
        raise EvidenceIncomplete(f"which calls there are cannot be told: {'; '.join(doubts)}")
    return replace(room, listings=found)
