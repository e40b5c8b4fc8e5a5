"""The words of a check of somebody else's worker or receiver, and what they come to: the audit's own statement of the rules."""

from __future__ import annotations

from audit.findings import FAIL, PASS, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORKER, RECEIVER = "worker", "receiver"
ROLES = ("setup", "enqueue", "work", "recover", RECEIVER)
LINE, SYSCALL, POINT = "line", "syscall", "point"
IN_DOUBT, LOST, STUCK, KEYED, UNKEYED, RECOVERED = (
    "unknown",
    "lost",
    "stuck",
    "duplicate-keyed",
    "duplicate-unkeyed",
    "recovered",
)
OF_WORKER = (IN_DOUBT, LOST, STUCK, KEYED, UNKEYED, RECOVERED)
"""The worst first."""
VIOLATED, UNCLEAR, MET, SKIPPED = "violated", "unclear", "met", "skipped"
OF_RECEIVER = (VIOLATED, UNCLEAR, MET, SKIPPED)
SEVERITIES = ("lost", "duplicated", "stuck", "unclear", "style")
DUPLICATED = "duplicated"
GRAVE = ("lost", DUPLICATED, "stuck")
DECLARED = "declared"
ONE_EFFECT = (
    "replay", "other-body", "failure-then-retry", "hang-up-during-request", "hang-up-after-request", "hang-up-while-handled",
    "concurrent-duplicates", "concurrent-slowed", "restart-after-success", "killed-after-success", "killed-while-handling",
    "killed-at-call", "retention-kept",
)  # fmt: skip
"""The expectations that ask for one effect, whatever is answered; where effects were counted they tell which it is."""
ONCE_AT_MOST, ONCE_AT_LEAST, APPLIED_ONCE = "at-most-once", "at-least-once", "applied-once-with-keys"
CLAIMS = (ONCE_AT_MOST, ONCE_AT_LEAST, APPLIED_ONCE)


def effects(arrivals: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Effects at a receiver with keys and at one without, by job: each applied arrival is one without, and one with keys if its
    key was not seen before. One without a key is nobody's duplicate."""
    found: dict[str, tuple[int, int]] = {}
    seen: set[str] = set()
    for each in arrivals:
        if not each["applied"] or each["job"] is None:
            continue
        keyed, unkeyed = found.get(each["job"], (0, 0))
        first = each["key"] is None or each["key"] not in seen
        found[each["job"]] = (keyed + first, unkeyed + 1)
        if each["key"] is not None:
            seen.add(each["key"])
    return found


def of_case(line: dict[str, Any]) -> str:
    """The verdict that follows from the effects, the canary and what is stored, doubts left aside."""
    if not line["fired"] or line["canary"] not in line["effects"]:
        return IN_DOUBT
    missing = [job for job, each in line["effects"].items() if not each["keyed"]]
    if missing:
        return LOST if line["stored"] is False and missing != [line["canary"]] else STUCK
    if any(_refused(line["arrivals"], job) for job in line["effects"]):
        return STUCK
    most = [max(each[kind] for each in line["effects"].values()) for kind in ("keyed", "unkeyed")]
    return KEYED if most[0] > 1 else UNKEYED if most[1] > 1 else RECOVERED


def _refused(arrivals: list[dict[str, Any]], job: str) -> bool:
    """Whether a job came the last three times with another body under its key: two deaths in a row explain two such times."""
    statuses = [each["status"] for each in arrivals if each["job"] == job]
    return len(statuses) >= 3 and all(status == 409 for status in statuses[-3:])


class Held:
    """Which claims hold so far."""

    __slots__ = ("decided", "delivered", "once", "same_key")

    def __init__(self) -> None:
        self.decided = False
        self.once = self.delivered = self.same_key = True

    def add(self, line: dict[str, Any]) -> None:
        """Hold the claims against one line; one that is in doubt says nothing."""
        if line["verdict"] == IN_DOUBT:
            return
        self.decided = True
        counts = list(line["effects"].values())
        self.once &= all(each["unkeyed"] < 2 for each in counts)
        self.same_key &= all(each["keyed"] == 1 for each in counts)
        self.delivered &= line["verdict"] not in (LOST, STUCK)

    def claims(self) -> list[str]:
        """Those that hold, the weaker first."""
        found = zip(CLAIMS, (self.once, self.delivered, self.delivered and self.same_key), strict=True)
        return [claim for claim, holds in found if holds and self.decided]


def of_worker(counts: dict[str, int], holds: list[str], claims: str | None) -> str:
    """The verdict on a worker."""
    if counts[IN_DOUBT] or not sum(counts.values()):
        return UNKNOWN
    if claims is None:
        return FAIL if counts[LOST] or counts[STUCK] or counts[KEYED] else PASS
    return PASS if claims in holds else FAIL


def fails(line: dict[str, Any]) -> bool:
    """Whether an expectation fails its receiver: it is violated, and grave, or the receiver's own word."""
    return line["verdict"] == VIOLATED and (line["severity"] in GRAVE or line["source"] == DECLARED)


def of_receiver(lines: list[dict[str, Any]]) -> str:
    """The verdict on a receiver."""
    tried = [line for line in lines if line["verdict"] != SKIPPED]
    if not tried or any(line["verdict"] == UNCLEAR and line["severity"] in GRAVE for line in tried):
        return UNKNOWN
    return FAIL if any(map(fails, tried)) else PASS
