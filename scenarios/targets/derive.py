"""Which cases there are: from what the fault-free runs came to."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from outbox import faults as points
from outbox.errors import BadInput
from scenarios.explore import calls, strace
from scenarios.explore.calls import Call, Strike
from scenarios.targets import trees
from scenarios.targets.baseline import Baseline, Lines
from scenarios.targets.commands import Arm, Commands
from scenarios.targets.destination import FAULTS
from scenarios.targets.faults import ENQUEUE, LINE, POINT, RECEIVER, RECOVER, SETUP, SYSCALL, WORK, Case, Fault, occurrences
from scenarios.targets.model import Worker
from scenarios.targets.slot import Slot
from scenarios.targets.steps import JOB, Steps
from scenarios.targets.trees import TreeStrike

LINES, SYSCALLS, POINTS, OF_RECEIVER, ALL = "lines", "syscalls", "points", "receiver", "all"
MODES = (LINES, SYSCALLS, POINTS, OF_RECEIVER, ALL)
Strikes = Mapping[tuple[str, str, int], Strike | TreeStrike]
_BOUND_SECONDS = 60.0


def line_faults(role: str, lines: Lines) -> Iterator[Fault]:
    """A halt at each line that a command came to; of many occurrences the first two and the last."""
    for where, count in lines.counts.items():
        for occurrence in occurrences(count, last=where in lines.steady):
            yield Fault(role, LINE, where, occurrence, *lines.places[where])


def line_cases(baseline: Baseline) -> Iterator[Case]:
    """One case for each of them, in the order of the commands."""
    for role in (SETUP, ENQUEUE, WORK, RECOVER):
        if role in baseline.lines:
            yield from (Case((fault,)) for fault in line_faults(role, baseline.lines[role]))


def receiver_cases() -> Iterator[Case]:
    """One case for each way in which the receiver fails."""
    yield from (Case((Fault(RECEIVER, RECEIVER, each),)) for each in FAULTS)


async def strikes_of(commands: Commands, worker: Worker, slot: Slot) -> tuple[Strikes, list[str]]:
    """The system calls of one run without faults that can be struck, by role, name and number; and doubts about the counts.

    Raises BadInput where nothing can be traced here.
    """
    why = strace.why_not()
    if why is not None:
        raise BadInput(f"--mode {SYSCALLS}: {why}")
    found: dict[tuple[str, str, int], Strike | TreeStrike] = {}
    doubts: list[str] = []
    for role, (listed, arrived) in (await _recorded(commands, worker, slot)).items():
        tree = trees.is_tree(listed)
        strikes: Iterable[Strike | TreeStrike] = trees.tree_strikes(listed, arrived) if tree else calls.strikes(listed)
        found |= {(role, strike.call.name, strike.number): strike for strike in strikes}
        if not tree:
            doubts += [f"{role}: {each}; {_what_follows(each)}" for each in calls.not_told_apart(listed)]
    return found, doubts


def _what_follows(doubt: str) -> str:
    """Of a doubt about calls: those of files may come elsewhere, but what another thread sends is struck nowhere."""
    return "so it is not struck" if " on a connection " in doubt else "cases may not come"


async def _recorded(commands: Commands, worker: Worker, slot: Slot) -> dict[str, tuple[tuple[Call, ...], int | None]]:
    """The calls of each command; and of `work` how many of them had begun when the job arrived."""
    await slot.begin()
    await slot.empty()
    steps = Steps(commands, worker, slot)
    found = {}
    for role in (SETUP, ENQUEUE, WORK, RECOVER):
        if getattr(worker, role) is None:
            continue
        log = slot.folder / f"calls.{role}"
        log.unlink(missing_ok=True)
        arm = Arm(trace=strace.recording(log))
        arrived: int | None = None
        if role == RECOVER:
            await steps.before(WORK)
        if role == WORK:
            arrived = await _work_recorded(steps, slot, arm, log)
        else:
            await steps.run(role, JOB if role == ENQUEUE else None, arm)
        if log.exists():
            found[role] = calls.parse(log.read_text("utf-8", "replace"), slot.directory), arrived
    return found


async def _work_recorded(steps: Steps, slot: Slot, arm: Arm, log: Path) -> int | None:
    """Run `work`; how many calls had begun when the job arrived, which is not answered before they are counted."""
    await slot.hold()
    working = asyncio.create_task(steps.work((JOB,), _BOUND_SECONDS, arm))
    while not slot.arrivals and not working.done():
        change = slot.changed()
        await asyncio.wait((working, change), return_when=asyncio.FIRST_COMPLETED)
        change.cancel()
    arrived = None
    if slot.arrivals and log.exists():
        arrived = len(calls.parse(log.read_text("utf-8", "replace"), slot.directory))
    await slot.go()
    await working
    return arrived


def call_cases(strikes: Strikes) -> Iterator[Case]:
    """A kill before each system call that leaves something."""
    for role, name, number in strikes:
        yield Case((Fault(role, SYSCALL, name, number),))


async def point_cases(commands: Commands, worker: Worker, slot: Slot) -> list[Case]:
    """A halt at each fault point of the target's own that a run without faults came to.

    Such a program appends each point that it reaches to the file that POINTS_TO names, and halts where HALT_AT says. Raises
    BadInput where none is reached.
    """
    await slot.begin()
    await slot.empty()
    steps = Steps(commands, worker, slot)
    found: list[Case] = []
    for role in (SETUP, ENQUEUE, WORK):
        listing = slot.folder / f"points.{role}"
        listing.unlink(missing_ok=True)
        arm = Arm(environment={points.POINTS_VARIABLE: str(listing)})
        if role == WORK:
            await steps.work((JOB,), _BOUND_SECONDS, arm)
        else:
            await steps.run(role, JOB if role == ENQUEUE else None, arm)
        reached = listing.read_text("utf-8").split() if listing.exists() else []
        for name in dict.fromkeys(each for each in reached if each in worker.points):
            found += [Case((Fault(role, POINT, name, number),)) for number in occurrences(reached.count(name))]
    if not found:
        raise BadInput(
            f"--mode {POINTS}: no point of {list(worker.points)} was reached; the program must append each one that it reaches "
            f"to the file that {points.POINTS_VARIABLE} names, and exit 23 at the one that {points.HALT_VARIABLE} names"
        )
    return found
