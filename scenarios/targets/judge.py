"""What a case comes to, from what was seen of it: nothing but the fields of its line in the results.

A request that was applied is an effect: each one at a receiver without keys, one for each key at a receiver with keys (what
comes without a key is always one more). A worker is asked for a claim, and of all its cases the strongest claim that holds is
told.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scenarios.targets.model import APPLIED_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE

UNKNOWN, LOST, STUCK = "unknown", "lost", "stuck"
DUPLICATE_KEYED, DUPLICATE_UNKEYED, RECOVERED = "duplicate-keyed", "duplicate-unkeyed", "recovered"
VERDICTS = (UNKNOWN, LOST, STUCK, DUPLICATE_KEYED, DUPLICATE_UNKEYED, RECOVERED)
REFUSED_STATUS = 503
NO_CLAIM = "none"
# The verdicts that break a claim; without one a worker is held to the last but one, with keys that stay the same.
BREAKS: Mapping[str | None, tuple[str, ...]] = {
    AT_MOST_ONCE: (DUPLICATE_KEYED, DUPLICATE_UNKEYED),
    AT_LEAST_ONCE: (LOST, STUCK),
    APPLIED_ONCE: (LOST, STUCK, DUPLICATE_KEYED),
    None: (LOST, STUCK, DUPLICATE_KEYED),
}


def effects(arrivals: Iterable[Mapping[str, Any]], jobs: Sequence[str]) -> dict[str, dict[str, int]]:
    """For each job how often it was applied: by a receiver with keys, and by one without."""
    found = {}
    for job in jobs:
        applied = [each["key"] for each in arrivals if each["job"] == job and each["status"] != REFUSED_STATUS]
        keys = {key for key in applied if key is not None}
        found[job] = {"keyed": len(keys) + applied.count(None), "unkeyed": len(applied)}
    return found


def judge(line: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The verdict of a case, and why."""
    if not line["fired"]:
        return UNKNOWN, ["the fault did not come: this run is not the one that the case was derived from"]
    found: Mapping[str, Mapping[str, int]] = line["effects"]
    canary, waited = line["canary"], f"{line['watched_seconds']:g} s"
    missing = [job for job, count in found.items() if count["unkeyed"] == 0]
    jobs = [job for job in missing if job != canary]
    if jobs and line["stored"] is False:
        by = "the target's own count" if line["stored_by"] == "pending" else "any file of the folder"
        return LOST, [f"{jobs[0]} was not delivered, and is not in {by} any more"]
    if jobs:
        where = {True: "it is still stored", None: "whether it is still stored cannot be told"}[line["stored"]]
        beside = "neither was" if canary in missing else "was, so the worker lives:"
        return STUCK, [f"{jobs[0]} was not delivered within {waited}; {where}; {canary}, enqueued after the restart, {beside}".rstrip(":")]
    if missing:
        return STUCK, [f"{canary}, enqueued after the restart, was not delivered within {waited}: the worker works no more"]
    for kind, verdict in (("keyed", DUPLICATE_KEYED), ("unkeyed", DUPLICATE_UNKEYED)):
        twice = [f"{job} was applied {count[kind]} times" for job, count in found.items() if count[kind] > 1]
        if twice:
            why = "its key is not the same each time" if kind == "keyed" else "by a receiver that ignores keys"
            return verdict, [f"{', '.join(twice)}: {why}"]
    return RECOVERED, []


def holds(lines: Iterable[Mapping[str, Any]]) -> str:
    """The strongest claim that holds in all cases."""
    lines = list(lines)
    verdicts = {line["verdict"] for line in lines}
    counts = [count for line in lines for count in line["effects"].values()]
    if not verdicts & {LOST, STUCK, UNKNOWN}:
        return APPLIED_ONCE if all(count["keyed"] == 1 for count in counts) else AT_LEAST_ONCE
    if UNKNOWN not in verdicts and all(count["unkeyed"] <= 1 for count in counts):
        return AT_MOST_ONCE
    return NO_CLAIM


def overall(lines: Iterable[Mapping[str, Any]], claim: str | None) -> str:
    """PASS, FAIL or UNKNOWN of a worker that makes this claim."""
    verdicts = {line["verdict"] for line in lines}
    if verdicts & set(BREAKS[claim]):
        return "FAIL"
    return "UNKNOWN" if UNKNOWN in verdicts or not verdicts else "PASS"
