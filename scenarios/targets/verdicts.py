"""What follows from what was seen: the verdict of a case, the claims that hold, and the verdict of a whole check.

The audit states all of it anew from the results, by its own code; evidence/README.md has the rules in words. A doubt outweighs
everything: what was seen may then not be what happened.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from scenarios.targets.model import APPLIED_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE
from scenarios.targets.outcomes import Effect

PASS, FAIL, IN_DOUBT = "PASS", "FAIL", "UNKNOWN"
EXIT_CODES: Mapping[str, int] = {PASS: 0, FAIL: 1, IN_DOUBT: 3}

UNKNOWN, LOST, STUCK, KEYED, UNKEYED, RECOVERED = (
    "unknown",
    "lost",
    "stuck",
    "duplicate-keyed",
    "duplicate-unkeyed",
    "recovered",
)
# The worst first.
WORKER_VERDICTS = (UNKNOWN, LOST, STUCK, KEYED, UNKEYED, RECOVERED)
# The verdicts that go against a claim. Who claims nothing is held to at-least-once with keys that stay the same: a duplicate at
# a receiver without keys is what at-least-once means.
_BREAKS: Mapping[str | None, tuple[str, ...]] = {
    AT_MOST_ONCE: (KEYED, UNKEYED),
    AT_LEAST_ONCE: (LOST, STUCK),
    APPLIED_ONCE: (LOST, STUCK, KEYED),
    None: (LOST, STUCK, KEYED),
}

VIOLATED, UNCLEAR, MET, SKIPPED = "violated", "unclear", "met", "skipped"
RECEIVER_VERDICTS = (VIOLATED, UNCLEAR, MET, SKIPPED)
SEVERITIES = ("lost", "duplicated", "stuck", "unclear", "style")
# Severities that fail a receiver. What it declares of itself fails it, too, however light it is.
GRAVE = ("lost", "duplicated", "stuck")
DECLARED = "declared"


def of_worker(
    *,
    fired: bool,
    doubts: Sequence[str],
    effects: Mapping[str, Effect],
    canary: str,
    stored: bool | None,
    refused: Collection[str] = (),
) -> str:
    """The verdict of one case. `effects` has every job, the canary among them; `stored` is about the undelivered ones; those
    that are `refused` come again and again with another body under their key, and never to an end.
    """
    if not fired or doubts or canary not in effects:
        return UNKNOWN
    undelivered = [job for job, effect in effects.items() if effect.keyed == 0]
    if undelivered:
        # A canary that does not come is stuck, not lost: the worker is what stands still.
        return LOST if stored is False and undelivered != [canary] else STUCK
    if refused:
        return STUCK
    if any(effect.keyed > 1 for effect in effects.values()):
        return KEYED
    return UNKEYED if any(effect.unkeyed > 1 for effect in effects.values()) else RECOVERED


def breaks(claims: str | None) -> tuple[str, ...]:
    """The verdicts that go against a claim."""
    return _BREAKS[claims]


def holding(cases: Iterable[Mapping[str, Any]]) -> list[str]:
    """The claims that hold over these lines, those in doubt left out: the weaker first, none where nothing holds."""
    once = delivered = keyed = True
    decided = False
    for case in cases:
        if case["verdict"] == UNKNOWN:
            continue
        decided = True
        effects = case["effects"].values()
        once = once and all(effect["unkeyed"] <= 1 for effect in effects)
        delivered = delivered and case["verdict"] not in (LOST, STUCK)
        keyed = keyed and all(effect["keyed"] == 1 for effect in effects)
    found = ((AT_MOST_ONCE, once), (AT_LEAST_ONCE, delivered), (APPLIED_ONCE, delivered and keyed))
    return [claim for claim, holds in found if holds and decided]


def of_worker_check(by_verdict: Mapping[str, int], holds: Sequence[str], claims: str | None) -> str:
    """PASS, FAIL or UNKNOWN of all cases, by what the worker claims."""
    if by_verdict.get(UNKNOWN) or not sum(by_verdict.values()):
        return IN_DOUBT
    if claims is not None:
        return PASS if claims in holds else FAIL
    return FAIL if any(by_verdict.get(each) for each in breaks(None)) else PASS


def fails(case: Mapping[str, Any]) -> bool:
    """Whether this line of a receiver fails it."""
    return case["verdict"] == VIOLATED and (case["severity"] in GRAVE or case["source"] == DECLARED)


def of_receiver_check(cases: Iterable[Mapping[str, Any]]) -> str:
    """PASS, FAIL or UNKNOWN of all expectations."""
    lines = list(cases)
    if not any(case["verdict"] != SKIPPED for case in lines):
        return IN_DOUBT
    if any(case["verdict"] == UNCLEAR and case["severity"] in GRAVE for case in lines):
        return IN_DOUBT
    return FAIL if any(map(fails, lines)) else PASS
