"""What was seen of a worker's case, counted and put into words. What follows from the counts is said by `verdicts`.

A request that was applied is an effect: each one at a receiver without keys, one for each key at a receiver with keys (what
comes without a key is always one more).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scenarios.targets import verdicts
from scenarios.targets.outcomes import PENDING, Arrival, Effect

TAKEN = "{job} came under the key of {other} only: a receiver with keys takes it for that one, and does not apply it"
REFUSED = "{job} comes again and again with another body under its key: a receiver with keys refuses it (409), so it never ends"
CONFLICT = 409
# With two deaths in a row a job comes three times, and is refused twice at most.
REFUSALS = 3


class Keyed(Protocol):
    """What is needed of an arrival to see whose key it has."""

    @property
    def job(self) -> str | None:
        """Which job it names."""

    @property
    def key(self) -> str | None:
        """Its key."""

    @property
    def applied(self) -> bool:
        """Whether a receiver without keys applied it."""


def effects(arrivals: Sequence[Arrival], jobs: Sequence[str]) -> dict[str, Effect]:
    """For each job how often it was applied: by a receiver with keys, and by one without."""
    keyed, unkeyed = dict.fromkeys(jobs, 0), dict.fromkeys(jobs, 0)
    seen: set[str] = set()
    for each in arrivals:
        if each.job is None or not each.applied:
            continue
        first = each.key is None or each.key not in seen
        keyed[each.job] = keyed.get(each.job, 0) + first
        unkeyed[each.job] = unkeyed.get(each.job, 0) + 1
        if each.key is not None:
            seen.add(each.key)
    return {job: Effect(keyed=keyed[job], unkeyed=unkeyed[job]) for job in keyed}


def taken(arrivals: Sequence[Keyed], job: str) -> str | None:
    """The other job under whose key this one came each time; None where it had a key of its own, or never came."""
    own = [number for number, each in enumerate(arrivals) if each.job == job and each.applied]
    others = [
        next((before.job for before in arrivals[:number] if before.key == arrivals[number].key and before.job != job), None)
        for number in own
        if arrivals[number].key is not None
    ]
    return others[0] if own and len(others) == len(own) and all(others) else None


def refused(arrivals: Sequence[Arrival], jobs: Sequence[str]) -> list[str]:
    """The jobs that came with another body under their key, the last times all: more often than deaths could explain."""
    last = {job: [each.status for each in arrivals if each.job == job][-REFUSALS:] for job in jobs}
    return [job for job, statuses in last.items() if statuses == [CONFLICT] * REFUSALS]


@dataclass(frozen=True, slots=True)
class Watch:
    """What is known beside the arrivals."""

    canary: str
    seconds: float
    stored: bool | None
    stored_by: str | None


def reasons(arrivals: Sequence[Arrival], counted: Mapping[str, Effect], watch: Watch, verdict: str) -> list[str]:
    """Why this is the verdict, in words."""
    missing = [job for job, effect in counted.items() if effect.keyed == 0]
    jobs = [job for job in missing if job != watch.canary]
    for job in missing if verdict in (verdicts.LOST, verdicts.STUCK) else ():
        other = taken(arrivals, job)
        if other is not None:
            return [TAKEN.format(job=job, other=other)]
    if verdict == verdicts.LOST:
        by = "by the target's own count" if watch.stored_by == PENDING else "in any file of its folder"
        return [f"{jobs[0]} was not delivered, and is stored no more {by}"]
    if verdict == verdicts.STUCK:
        again = [] if missing else refused(arrivals, list(counted))
        return [REFUSED.format(job=again[0]) if again else _stuck(jobs, watch, canary=watch.canary not in missing)]
    if verdict == verdicts.KEYED:
        job = next(job for job, effect in counted.items() if effect.keyed > 1)
        keyless = any(each.job == job and each.key is None for each in arrivals)
        why = "it is sent without a key" if keyless else "its key is another one each time"
        return [f"{job} was applied {counted[job].keyed} times by a receiver with keys: {why}"]
    if verdict == verdicts.UNKEYED:
        job = next(job for job, effect in counted.items() if effect.unkeyed > 1)
        return [f"{job} came {counted[job].unkeyed} times under the same key: a receiver without keys applies it each time"]
    return []


def _stuck(jobs: Sequence[str], watch: Watch, *, canary: bool) -> str:
    if not jobs:
        return f"{watch.canary}, enqueued after the restart, was not delivered within {watch.seconds:g} s: it works no more"
    where = "it is still stored" if watch.stored else "whether it is still stored cannot be told"
    beside = "was, so the worker lives" if canary else "was not, either"
    return (
        f"{jobs[0]} was not delivered within {watch.seconds:g} s; {where}; {watch.canary}, enqueued after the restart, {beside}"
    )
