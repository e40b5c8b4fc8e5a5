"""Probes in which the receiver is ended and started again, and in which time passes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from scenarios.targets.battery_model import Bench
from scenarios.targets.receiver_effects import Uncounted
from scenarios.targets.receiver_http import Exchange, Request, Sending
from scenarios.targets.receiver_process import Unusable
from scenarios.targets.receiver_stand import Stand
from scenarios.targets.receiver_trial import (
    LINGER_SECONDS,
    LOST,
    MET,
    STUCK,
    UNCLEAR,
    VIOLATED,
    Seen,
    Trial,
    after_fault,
    told_effects,
)

# Shares of the time that an operation usually takes, after which the receiver is killed.
MOMENTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MOST_WAITED_SECONDS = 5.0


async def restart_after_success(bench: Bench) -> Sequence[Seen]:
    """A success, SIGTERM, a restart, and the request again."""
    return await _after_success(bench, "restart-after-success", Stand.stop)


async def killed_after_success(bench: Bench) -> Sequence[Seen]:
    """A success, SIGKILL, a restart, and the request again."""
    return await _after_success(bench, "killed-after-success", Stand.kill)


async def _after_success(bench: Bench, label: str, stop: Callable[[Stand], Awaitable[object]]) -> Sequence[Seen]:
    async with bench.lanes, bench.fresh(label) as stand:
        trial = await bench.trial(label, stand)
        request = trial.request(trial.operation())
        first = await trial.send(request)
        if not first.success:
            return [trial.seen(UNCLEAR, f"the first request was answered {first.told()}")]
        # At once: who answers before it has recorded everything is not given the time to.
        await stop(stand)
        seen = await restarted(bench, trial, request, None, done=1)
        return [kept(stand, seen)]


async def restarted(bench: Bench, trial: Trial, request: Request, fault: Mapping[str, Any] | None, *, done: int = 0) -> Seen:
    """Start the receiver again, in the same folder, and send the request again until it is answered for good. `done`
    effects of this trial had been answered with success."""
    try:
        wrong = await started_again(trial, fault, done)
        if wrong is not None:
            return wrong
        seen = await after_fault(trial, await trial.persist(request), fault)
    except Uncounted as error:
        return uncounted(trial, fault, error)
    trial.stand.check()
    return seen


def uncounted(trial: Trial, fault: Mapping[str, Any] | None, error: Uncounted) -> Seen:
    """What is said where the effects could be counted before a death, and not after it: nobody knows what happened."""
    return trial.seen(UNCLEAR, f"after its death the effects cannot be counted: {error}", None, fault)


async def started_again(trial: Trial, fault: Mapping[str, Any] | None, done: int = 0) -> Seen | None:
    """Start the receiver again, in the same folder. What is wrong then already: it does not come up, or forgot effects."""
    try:
        await trial.stand.start()
    except Unusable as error:
        return trial.seen(VIOLATED, f"after its death it does not start again: {error}", STUCK, fault)
    gone = done - await trial.applied(done)
    if gone > 0:
        told = f"{told_effects(gone)} that had been answered with success gone after the restart"
        trial.notes.append("if they are only counted in memory, let receiver.effects count them where they last")
        return trial.seen(VIOLATED, told, LOST, fault)
    return None


async def killed_while_handling(bench: Bench) -> Sequence[Seen]:
    """SIGKILL at several moments after the request was sent."""
    found = []
    async with bench.lanes, bench.fresh("killed-while-handling") as stand:
        warm = await bench.trial("killed-while-handling-warm", stand)
        usual = (await warm.send(warm.request(warm.operation()))).seconds
        for moment in MOMENTS:
            label = f"killed-while-handling-{moment:g}"
            trial = await bench.trial(label, stand)
            request = trial.request(trial.operation())
            killed = await _killed(stand, request, moment * usual)
            trial.note(killed)
            trial.notes.append(f"killed {moment * usual * 1000:.1f} ms after the request was sent: {killed.told()}")
            fault = {"kind": "kill", "where": f"{moment:g} of the usual time", "function": None, "occurrence": 1}
            # Who was told of a success does not ask again: the effect must be there.
            seen = await restarted(bench, trial, request, fault, done=int(killed.success))
            found.append(replace(seen, part=f"{moment:g}"))
            if found[-1].verdict == VIOLATED:
                found[-1] = kept(stand, found[-1])
                break
    return found


def kept(stand: Stand, seen: Seen) -> Seen:
    """The same, with the folder of the receiver where something was found with it."""
    if seen.verdict != VIOLATED:
        return seen
    stand.keep = True
    return replace(seen, files=stand.directory)


async def _killed(stand: Stand, request: Request, seconds: float) -> Exchange:
    sending = Sending(stand.address, request)
    await sending.send()
    await asyncio.sleep(seconds)
    await stand.kill()
    return await sending.answer(1.0)


async def retention_kept(bench: Bench) -> Sequence[Seen]:
    """Shortly before the declared retention is over the key is still known."""
    trial, told, applied = await _aged(bench, "retention-kept", 0.5 if bench.site.receiver.policy.clock is None else 0.9)
    return [trial.seen(MET if applied == 1 else VIOLATED, told)]


async def retention_over(bench: Bench) -> Sequence[Seen]:
    """After the declared retention the request comes once more."""
    trial, told, applied = await _aged(bench, "retention-over", 1.5)
    if applied == 1:
        return [trial.seen(MET, told)]
    return [trial.seen(VIOLATED, f"{told}: a sender must have given up before")]


async def _aged(bench: Bench, label: str, share: float) -> tuple[Trial, str, int]:
    """An operation, and again after this share of the declared retention."""
    policy = bench.site.receiver.policy
    assert policy.retention_seconds is not None
    seconds = policy.retention_seconds * share
    async with bench.lanes, bench.fresh(label) as stand:
        trial = await bench.trial(label, stand)
        request = trial.request(trial.operation())
        first = await trial.send(request)
        if policy.clock is None:
            await asyncio.sleep(seconds)
        else:
            stand.set_clock(seconds)
        again = await trial.send(request)
        applied = await trial.applied(1, LINGER_SECONDS)
        stand.check()
    return trial, f"after {seconds:g} s: {told_effects(applied)}; answered {first.told()}, then {again.told()}", applied
