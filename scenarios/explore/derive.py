"""Derives the cases of a subject from runs without faults, and refuses to do so where green would mean nothing.

The subject is run twice: both must reach the same points equally often, leave the same durable state, and hold. At least one
point must be reached. Then one effect is planted at the receiver, behind the sender's back: whoever counts effects must see it.
And in a copy of what is durable then each effect is written once more: whoever judges must call that a duplicate.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from outbox.errors import Halt23Error
from receivers.ledger import EFFECTS
from scenarios.engine.stage import StepFailed
from scenarios.explore.calls import Listings, strikes
from scenarios.explore.model import RELAY, Case, Cut, Pause, Reached, Subject, deaths
from scenarios.explore.readers import RECEIVER
from scenarios.explore.rounds import KEEP_ALL, Play, Played, Room, write_state
from scenarios.explore.state import Place, State, Unreadable
from scenarios.explore.strace import ERRORS, KILLED, SHORT
from scenarios.explore.sysfaults import SysFault
from scenarios.explore.uncovered import Window
from scenarios.explore.verdicts import DUPLICATE, HELD, judge
from scenarios.power.recording import Recording

# Every byte class of a message: nothing, inside the start line, after it, inside the headers, between, inside the body, all.
PLACES = ("start", "7", "start-line", "60", "headers", "body-middle", "end")
CUTS = tuple(f"{how}-{side}:{place}" for how, side, place in product(("cut", "reset"), ("request", "response"), PLACES))
WHOLE = ("duplicate-request", "hold-response", "redirect", "unreadable-success", "oversized-success", "retry-after-seconds")

# Where the second run has a copy of what is durable, with every effect once more.
TWICE = "twice"


@dataclass(frozen=True, slots=True)
class Derived:
    """What the runs without faults gave: the points of each round, the last state, and why they cannot be trusted. In mode
    `power` also what was recorded of another such run."""

    subject: Subject
    reached: tuple[Reached, ...]
    state: State
    doubts: tuple[str, ...]
    listings: Listings | None = None
    windows: tuple[Window, ...] = ()
    recording: Recording | None = None


async def derive(subject: Subject, room: Room, directory: Path) -> Derived:
    """Run `subject` without faults, in new folders below `directory`. Raises HarnessBug and OSError."""
    room = replace(room, observe=True, prepared=None, keep=KEEP_ALL)
    first, second = [await Play(Case(subject), room, directory / f"run-{number}").run() for number in (1, 2)]
    doubts = [*_doubts(subject, first, second)]
    if room.by_line and not doubts:
        doubts += _unwatched(subject, first)
    if not doubts:
        assert second.state is not None
        doubts += await _plant(subject, room, directory / "run-2", second.state)
    assert first.state is not None
    return Derived(subject, tuple(first.reached), first.state, tuple(doubts))


def _doubts(subject: Subject, first: Played, second: Played) -> Iterator[str]:
    for played in (first, second):
        if played.verdict.outcome != HELD:
            yield f"{subject.name} does not hold without any fault: {played.verdict.why}; mend that before anything is injected"
            return
    if first.reached != second.reached:
        yield f"{subject.name}: two runs without faults reached other points: {_difference(first.reached, second.reached)}"
    if first.state is not None and second.state is not None and first.state.digest != second.state.digest:
        yield f"{subject.name}: two runs without faults left other files; what differs by chance cannot be compared"
    if not any(points for each in first.reached for points in each.values()):
        yield f"{subject.name}: no point was reached, so there is nothing to arm; do the programs call arm_from_environment?"


def _unwatched(subject: Subject, played: Played) -> Iterator[str]:
    """Processes of a run that listed no line: each has a `main`, so nobody watched it, and nobody would die in it."""
    for process in played.processes:
        if not played.reached[process.step - 1].get(process.name):
            yield (
                f"{subject.name}: {process.name} listed no line in round {process.step}, so it was not watched; see whether "
                "its functions are under study, and whether anything in it sets another trace"
            )


def _difference(first: list[Reached], second: list[Reached]) -> str:
    counts = [
        {
            (n, process, point): count
            for n, each in enumerate(run, 1)
            for process, points in each.items()
            for point, count in points.items()
        }
        for run in (first, second)
    ]
    other = sorted(set(counts[0].items()) ^ set(counts[1].items()))
    (number, process, point), _count = other[0] if other else ((0, "", ""), 0)
    return f"for instance {process} at {point} in round {number}: {counts[0].get((number, process, point), 0)} and " + str(
        counts[1].get((number, process, point), 0)
    )


async def _plant(subject: Subject, room: Room, directory: Path, ended: State) -> list[str]:
    """Make one effect at the receiver of a finished run, which `ended` so; what is wrong if the count does not follow."""
    stage = room.stage(f"{subject.name}/planted", directory)
    receiver = next(role for role in subject.roles if role.server and role.process != RELAY)
    place = Place(directory, tables=ended.tables)  # its database is gone
    try:
        before = _effects(subject.read(place))
        server = await stage.launch(1, receiver.program, {})
        await stage.ready(server)
        planted = await stage.launch(1, subject.plant, {})
        ending = await stage.ended(planted, room.bounds.run_seconds)
        await stage.end(server)
        planted_state = subject.read(place)
        after = _effects(planted_state)
    except (StepFailed, Unreadable) as sentence:
        return [f"{subject.name}: an effect could not be planted: {sentence}"]
    finally:
        for process in stage.processes:
            if process.child.running:
                await stage.end(process)
        await stage.close()
    if ending.exit_code != 0:
        return [f"{subject.name}: the effect that was to be planted was refused ({ending})"]
    if after != before + 1:
        return [f"{subject.name}: an effect was planted, and {after - before} more are counted; the counter is blind"]
    return _twice(subject, directory / TWICE, planted_state)


def _twice(subject: Subject, directory: Path, ended: State) -> list[str]:
    """Write all effects of a finished run once more, in a copy of its files; what is wrong if nobody calls that a duplicate."""
    case, name = Case(subject), f"{subject.name}: each effect was written once more"
    copies = subject.allowed.up_to(case)
    try:
        write_state(directory, ended)
        with EFFECTS.open(directory / RECEIVER) as journal:
            for record in list(EFFECTS.read(directory / RECEIVER)) * copies:
                journal.append(record.type, f"again-{len(journal) + 1}", {**record.data, "number": len(journal) + 1})
        state = subject.read(Place(directory, tables=ended.tables))
    except (Halt23Error, OSError, Unreadable) as error:
        return [f"{name}, which failed: {error}"]
    seen = [each.sentence for each in judge(case, state, finished=True).violations if each.kind == DUPLICATE]
    for key in subject.operations:
        wanted, counted = ended.effects.get(key, 0) * (1 + copies), state.effects.get(key, 0)
        if counted != wanted or not any(each.startswith(f"{key} has {wanted} effects") for each in seen):
            said = "and that is no duplicate" if counted == wanted else f"not {wanted}"
            return [f"{name}, and {counted} are counted of {key}, {said}; the counter is blind to a duplicate"]
    return []


def _effects(state: State) -> int:
    return sum(state.effects.values())


def point_cases(derived: Derived) -> Iterator[Case]:
    """One case for each process, point and occurrence."""
    for before, reached in enumerate(derived.reached):
        for death in deaths(reached):
            yield Case(derived.subject, (*((),) * before, (death,)))


def pause_cases(derived: Derived) -> Iterator[Case]:
    """For each point of a program that runs to its end: stopped there, and overtaken by another of its kind; where it has a
    lease, once more within that."""
    for before, reached in enumerate(derived.reached):
        for death in deaths(reached):
            role = derived.subject.role(death.process)
            for in_lease in (False, True)[: 1 + (role.lease_seconds is not None)]:
                if role.stoppable and not role.server:
                    pause = Pause(death.process, death.point, death.occurrence, in_lease)
                    yield Case(derived.subject, (*((),) * before, (pause,)))


def wire_cases(derived: Derived) -> Iterator[Case]:
    """Every cut, alone, on each exchange of the first round. A deeper level adds the deaths beside it."""
    connections = derived.reached[0].get("receiver", {}).get("arrival.append.before", 0)
    for fault in (*CUTS, *WHOLE):
        for connection in range(1, connections + 1):
            yield Case(derived.subject, ((Cut(fault, connection),),))


def call_cases(derived: Derived) -> Iterator[Case]:
    """For each call that changes something: a death before it has any effect, then each error that it may end with."""
    for before, listed in enumerate(derived.listings or ()):
        for process, found in listed.items():
            for strike in strikes(found):
                name = strike.call.name
                for error in (KILLED, *ERRORS.get(name, ())):
                    if error != SHORT or (strike.before is not None and strike.call.size > 1):
                        yield Case(derived.subject, (*((),) * before, (SysFault(process, name, strike.number, error),)))
