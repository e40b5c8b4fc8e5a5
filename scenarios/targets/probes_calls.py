"""Probes that need strace: a death at each call of the handling, and requests that come while another is really under way."""

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from scenarios.targets.battery_model import Bench
from scenarios.targets.probes_crowds import CROWD, crowd, judge_crowd
from scenarios.targets.probes_deaths import kept, started_again, uncounted
from scenarios.targets.receiver_effects import Uncounted
from scenarios.targets.receiver_http import Exchange, Request, Sending
from scenarios.targets.receiver_stand import Stand
from scenarios.targets.receiver_strace import AFTER_SECONDS, NAMES, Handling, Place, Tracing, handling, traced
from scenarios.targets.receiver_trial import (
    DUPLICATED,
    LOST,
    MET,
    SKIPPED,
    STUCK,
    STYLE,
    UNCLEAR,
    VIOLATED,
    Seen,
    Trial,
    after_fault,
    told_effects,
)

LANES = 3
MOST_PLACES = 80
MOST_DOWN = 3
MOST_COPIES = 8
DEATH_SECONDS = 1.0
# How long the handling of one request is made to take, and how soon the other comes.
SLOWED_SECONDS, MEANWHILE_SECONDS = 0.5, 0.15
LEAST_DELAY, MOST_DELAY = 0.001, 0.25


async def recorded(bench: Bench) -> Handling:
    """What the handling of one request does. The receiver has handled two before: a first one does what no other does."""
    async with bench.recording:
        if bench.handling is None:
            async with bench.lanes, bench.fresh("recorded") as stand:
                await _warmed(bench, stand, "recorded")
                trial = await bench.trial("recorded", stand)
                threads = stand.threads()
                async with traced(stand, "recorded", names=NAMES) as tracing:
                    await trial.send(trial.request(trial.operation()))
                    await asyncio.sleep(AFTER_SECONDS)
                    text = tracing.text()
                stand.check()
                bench.handling = handling(text, stand.directory, stand.address.port, threads)
    return bench.handling


async def _warmed(bench: Bench, stand: Stand, label: str) -> None:
    warm = await bench.trial(f"{label}-warm", stand)
    for _each in range(2):
        await warm.send(warm.request(warm.operation()))
    await warm.applied(2)


async def killed_at_calls(bench: Bench) -> Sequence[Seen]:
    """SIGKILL at each system call of the handling that changes something."""
    found = await recorded(bench)
    chosen = [each for each in found.places if bench.part in (None, str(each))]
    if not chosen:
        return [Seen(SKIPPED, "no call of the handling changes a file or writes to a connection")]
    step = max(1, -(-len(chosen) // MOST_PLACES))
    played = await _Strikes(bench, chosen[::step]).run()
    notes = list(played[0].notes)
    if step > 1:
        notes.append(f"one in {step} of {len(chosen)} calls was tried")
    if found.shadowed:
        notes.append(
            f"{found.shadowed} calls of threads that live for one request were not tried: others come to their number first"
        )
    return [replace(played[0], notes=tuple(notes)), *played[1:]]


@dataclass(slots=True)
class _Open:
    """A strike whose retry was not answered at once: it is watched elsewhere, while its lane goes on."""

    place: Place
    stand: Stand
    trial: Trial
    request: Request


class _Strikes:
    def __init__(self, bench: Bench, chosen: Sequence[Place]) -> None:
        self._bench = bench
        self._chosen = chosen
        self._waiting = deque(chosen)
        self._seen: dict[str, Seen] = {}
        self._down = self._copies = 0

    async def run(self) -> list[Seen]:
        async with asyncio.TaskGroup() as group:
            for _lane in range(LANES):
                group.create_task(self._lane(group))
        return [replace(self._seen[str(place)], part=str(place)) for place in self._chosen]

    async def _lane(self, group: asyncio.TaskGroup) -> None:
        """Strike one after another at the same receiver, as long as it comes back well; then begin with a new one."""
        while self._waiting:
            async with AsyncExitStack() as stack:
                async with self._bench.lanes:
                    stand = await stack.enter_async_context(self._bench.fresh("killed-at-call"))
                    await _warmed(self._bench, stand, stand.directory.name)
                    left = await self._strike_on(stand)
                if left is not None:
                    group.create_task(self._watch(left, stack.pop_all()))

    async def _strike_on(self, stand: Stand) -> _Open | None:
        while self._waiting:
            place = self._waiting.popleft()
            if self._down >= MOST_DOWN:
                text = f"not tried: {self._down} times it had not started again, and each time is waited for"
                self._seen[str(place)] = Seen(SKIPPED, text, None, fault=_fault(place))
                continue
            outcome = await self._strike(stand, place)
            if isinstance(outcome, _Open):
                return outcome
            if outcome.verdict == VIOLATED and outcome.severity in (LOST, DUPLICATED) and stand.alive:
                # It is as good as before: the next one dies here, too, and what is there now is copied.
                self._seen[str(place)] = await asyncio.to_thread(self._copied, stand, outcome)
                continue
            self._seen[str(place)] = kept(stand, outcome)
            if outcome.verdict in (VIOLATED, UNCLEAR):
                return None
        return None

    def _copied(self, stand: Stand, seen: Seen) -> Seen:
        """The same with a copy of the receiver's folder, of the first few."""
        self._copies += 1
        if self._copies > MOST_COPIES:
            return seen
        return replace(seen, files=stand.copy(self._copies))

    async def _watch(self, left: _Open, stack: AsyncExitStack) -> None:
        async with stack:
            try:
                last = await left.trial.persist(left.request)
                seen = await after_fault(left.trial, last, _fault(left.place))
            except Uncounted as error:
                seen = uncounted(left.trial, _fault(left.place), error)
            self._seen[str(left.place)] = kept(left.stand, seen)

    async def _strike(self, stand: Stand, place: Place) -> Seen | _Open:
        label = re.sub(r"[^A-Za-z0-9.-]+", "-", f"killed-at-{place}")
        trial = await self._bench.trial(label, stand)
        request = trial.request(trial.operation())
        inject = f"{place.name}:error=EIO:signal=KILL:when={place.number}"
        async with traced(stand, label, names=(place.name,), inject=inject, place=place) as tracing:
            await trial.send(request)
            answered = trial.exchanges[-1].status is not None
            struck = await _struck(tracing, stand, AFTER_SECONDS if answered else DEATH_SECONDS)
        if not struck:
            return trial.seen(SKIPPED, f"{place.told} was not come to this time", None, _fault(place))
        await stand.kill()
        try:
            return await self._again(trial, place, request)
        except Uncounted as error:
            return uncounted(trial, _fault(place), error)

    async def _again(self, trial: Trial, place: Place, request: Request) -> Seen | _Open:
        """Start it again after its death, and send the request once more."""
        # Who was told of a success does not ask again: the effect must be there.
        wrong = await started_again(trial, _fault(place), done=int(trial.exchanges[-1].success))
        if wrong is not None:
            self._down += wrong.severity == STUCK
            return wrong
        last = await trial.persist(request, 0.0)
        if last.success or (trial.is_usual(last) and trial.after > trial.before):
            return await after_fault(trial, last, _fault(place))
        return _Open(place, trial.stand, trial, request)


async def _struck(tracing: Tracing, stand: Stand, seconds: float) -> bool:
    """Whether a call is struck within so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        if tracing.struck or not stand.alive:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(AFTER_SECONDS / 5)


def _fault(place: Place) -> dict[str, Any]:
    return {"kind": "syscall", "where": place.told, "function": None, "occurrence": place.number}


@asynccontextmanager
async def slowed(bench: Bench, stand: Stand, label: str) -> AsyncIterator[float]:
    """Let each changing call of the receiver take longer, for as long as this lasts; yields the seconds of one such call."""
    found = await recorded(bench)
    names = tuple(dict.fromkeys(each.name for each in found.places if each.name not in ("accept", "accept4", "shutdown")))
    seconds = min(max(SLOWED_SECONDS / max(len(found.places), 1), LEAST_DELAY), MOST_DELAY)
    inject = f"{','.join(names)}:delay_enter={int(seconds * 1_000_000)}" if names else None
    async with traced(stand, label, names=names or NAMES, inject=inject):
        yield seconds


async def concurrent_slowed(bench: Bench) -> Sequence[Seen]:
    """A crowd, while every call takes long: there is time for all to look before any acts."""
    await recorded(bench)
    async with bench.lanes, bench.fresh("concurrent-slowed") as stand:
        await _warmed(bench, stand, "concurrent-slowed")
        trial = await bench.trial("concurrent-slowed", stand)
        request = trial.request(trial.operation())
        async with slowed(bench, stand, "concurrent-slowed"):
            await crowd(trial, request, CROWD)
        seen = kept(stand, await judge_crowd(trial, request))
        stand.check()
    return [seen]


async def in_flight(bench: Bench) -> Sequence[Seen]:
    """A duplicate while the first is under way: what it is told."""
    await recorded(bench)
    async with bench.lanes, bench.fresh("in-flight") as stand:
        await _warmed(bench, stand, "in-flight")
        trial = await bench.trial("in-flight", stand)
        request = trial.request(trial.operation())
        async with slowed(bench, stand, "in-flight"):
            first = asyncio.create_task(trial.send(request))
            await asyncio.sleep(MEANWHILE_SECONDS)
            late = first.done()
            second = await trial.send(request)
            one = await first
        applied = await trial.applied(1)
        stand.check()
        if late:
            return [trial.seen(SKIPPED, "the first request is answered at once, however slow its calls are")]
        return [_in_flight(bench, trial, one, second, applied)]


def _in_flight(bench: Bench, trial: Trial, first: Exchange, second: Exchange, applied: int) -> Seen:
    declared = bench.site.receiver.policy.in_flight
    told = f"the first was answered {first.told()}, its duplicate {second.told()}; {told_effects(applied)}"
    if applied > 1:
        return trial.seen(VIOLATED, told, DUPLICATED)
    if declared is not None:
        held = second.success if declared == "wait" else str(second.status) == declared
        return trial.seen(MET if held else VIOLATED, told)
    if second.status == 409:
        return trial.seen(MET, told)
    return trial.seen(VIOLATED, told, STYLE if second.success or second.come_again else UNCLEAR)


async def hang_up_while_handled(bench: Bench) -> Sequence[Seen]:
    """The client goes while its request is worked on; then the same request comes again."""
    await recorded(bench)
    async with bench.lanes, bench.fresh("hang-up-while-handled") as stand:
        await _warmed(bench, stand, "hang-up-while-handled")
        trial = await bench.trial("hang-up-while-handled", stand)
        request = trial.request(trial.operation())
        async with slowed(bench, stand, "hang-up-while-handled"):
            sending = Sending(stand.address, request)
            await sending.send()
            await asyncio.sleep(MEANWHILE_SECONDS)
            trial.note(sending.hang_up())
            await asyncio.sleep(SLOWED_SECONDS)
        last = await trial.persist(request)
        seen = kept(stand, await after_fault(trial, last, None))
        stand.check()
    return [seen]
