"""Plays the battery against one receiver: a result for each expectation, or several where a fault has several places.

First it is seen whether it can be tried at all: it becomes ready, one operation succeeds, and the effects rise by one.
Then probes in which nobody dies share one process, one after another; those that kill have receivers of their own, beside it.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from outbox.errors import BadInput, Halt23Error
from scenarios.targets import outcomes, verdicts
from scenarios.targets.battery import BATTERY
from scenarios.targets.battery_model import DECLARED, DRAFT, STUDY, Bench, Expectation
from scenarios.targets.receiver_effects import Uncounted
from scenarios.targets.receiver_http import ANSWER_SECONDS, Exchange, shown
from scenarios.targets.receiver_process import Unusable
from scenarios.targets.receiver_stand import Site, Stand
from scenarios.targets.receiver_trial import SKIPPED, UNCLEAR, VIOLATED, Seen, Trial

# Requests that no well-behaved sender makes: a receiver that dies of one is no receiver that cannot be tried.
ODD = ("key-", "missing-key", "hang-up-")
Told = Callable[[Expectation, Sequence[Seen]], None]


@dataclass(frozen=True, slots=True)
class Case:
    """What is written of one thing that was seen. `files`, if any, is a folder worth keeping."""

    case: outcomes.ReceiverCase
    files: Path | None = None


def choose(only: str | None, battery: Sequence[Expectation] = BATTERY) -> tuple[Expectation, ...]:
    """The expectations to try: all, or that of a case's name. Raises BadInput for a name that there is not."""
    chosen = tuple(each for each in battery if only is None or each.name == only.partition(":")[0])
    if not chosen:
        raise BadInput(f"--only {only}: there is no such expectation; there are: {', '.join(each.name for each in battery)}")
    return chosen


async def play(site: Site, place: Path, only: str | None, told: Told) -> list[Case]:
    """Try them all, or `only` one; in the order of the battery. Raises BadInput where the receiver cannot be tried."""
    chosen = choose(only)
    try:
        found = await _Check(site, place, told, (only or "").partition(":")[2] or None).run(chosen)
    except (Unusable, Uncounted) as error:
        raise BadInput(f"{site.target.file}: {error}") from None
    except BaseExceptionGroup as group:
        reason = _first(group, (Unusable, Uncounted))
        if reason is not None:
            raise BadInput(f"{site.target.file}: {reason}") from None
        ours = _first(group, (Halt23Error,))
        raise ours or group from None
    return [case(each, seen, site) for each in chosen for seen in found[each.name]]


def _first(group: BaseExceptionGroup, kinds: tuple[type[BaseException], ...]) -> BaseException | None:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            inner = _first(error, kinds)
            if inner is not None:
                return inner
        elif isinstance(error, kinds):
            return error
    return None


def case(expectation: Expectation, seen: Seen, site: Site) -> Case:
    """What is written of it."""
    declared = expectation.declared(site.receiver)
    # What the effects show is no matter of how an answer should look.
    grave = seen.severity in verdicts.GRAVE and expectation.source == DRAFT
    made = outcomes.ReceiverCase(
        expectation=expectation.name if seen.part is None else f"{expectation.name}:{seen.part}",
        source=STUDY if grave else expectation.source if declared is None else DECLARED,
        severity=seen.severity or expectation.severity,
        verdict=seen.verdict,
        expected=f"{expectation.does}: {declared or expectation.expected}",
        seen=seen.text,
        exchanges=tuple(each.outcome() for each in seen.exchanges),
        before=seen.before,
        after=seen.after,
        fault=seen.fault,
        notes=seen.notes,
    )
    return Case(made, seen.files)


class _Check:
    def __init__(self, site: Site, place: Path, told: Told, part: str | None) -> None:
        self._site, self._place, self._told, self._part = site, place, told, part
        self._found: dict[str, Sequence[Seen]] = {}
        self._stands = 0

    async def run(self, chosen: Sequence[Expectation]) -> dict[str, Sequence[Seen]]:
        for each in chosen:
            reason = each.skipped(self._site.receiver)
            if reason is not None:
                self._tell(each, [Seen(SKIPPED, reason)])
        waiting = [each for each in chosen if each.name not in self._found]
        async with AsyncExitStack() as stack:
            stand = await stack.enter_async_context(Stand(self._site, self._directory()))
            _first, again = await usual(stand)
            bench = Bench(self._site, stand, again, self._place, asyncio.Semaphore(os.cpu_count() or 1), self._part)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._one_after_another([each for each in waiting if not each.own], bench, stack))
                for each in waiting:
                    if each.own:
                        group.create_task(self._alone(each, bench))
        return self._found

    def _tell(self, expectation: Expectation, seen: Sequence[Seen]) -> None:
        self._found[expectation.name] = seen
        self._told(expectation, seen)

    def _directory(self) -> Path:
        self._stands += 1
        return self._place / f"shared-{self._stands}"

    async def _alone(self, expectation: Expectation, bench: Bench) -> None:
        self._tell(expectation, await expectation.probe(bench))

    async def _one_after_another(self, waiting: Sequence[Expectation], bench: Bench, stack: AsyncExitStack) -> None:
        for each in waiting:
            try:
                seen = await each.probe(bench)
                if any(exchange.broken for one in seen for exchange in one.exchanges):
                    await bench.shared.settled()
                bench.shared.check()
            except (Unusable, Uncounted):
                if bench.shared.alive or not each.name.startswith(ODD):
                    bench.shared.check()
                    raise
                seen = [_died(bench.shared)]
                bench.shared = await stack.enter_async_context(Stand(self._site, self._directory()))
            self._tell(each, seen)


def _died(stand: Stand) -> Seen:
    assert stand.child is not None
    return Seen(VIOLATED, f"the receiver ended with {stand.child.ended.result()}; it said: {stand.said!r}", UNCLEAR)


async def usual(stand: Stand) -> tuple[Exchange, Exchange]:
    """What an operation and its repetition are answered when nothing goes wrong. Raises Unusable or Uncounted where an
    operation does not succeed, or where the effects do not rise by one."""
    trial = await Trial(stand, "usual").begin()
    if (again := await stand.counter.count()) != trial.before:
        raise Uncounted(f"the effects are counted wrongly: {trial.before}, then {again}, and nothing was sent in between")
    request = trial.request(trial.operation())
    first = await trial.send(request)
    if first.status is None:
        await stand.settled()
    stand.check()
    if not first.success:
        said = f": {shown(first.body)[:300]!r}" if first.body else ""
        if first.status is None:
            raise Unusable(f"{request.method} {request.path} has no answer ({first.error}; it had {ANSWER_SECONDS:g} s)")
        raise Unusable(f"{request.method} {request.path} is answered {first.told()}{said}; see receiver.operation")
    applied = await trial.applied(1)
    if applied != 1:
        raise Uncounted(
            f"the effects are counted wrongly: {trial.before} before one operation that was answered {first.told()}, "
            f"{trial.after} after it; see receiver.effects"
        )
    return first, await trial.send(request)
