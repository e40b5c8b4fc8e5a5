"""What the audit knows of campaigns by itself: which subjects there are, which points, and what a network can do.

Subjects are pinned by the hash of their object in `plan.json`: what one operation may come to is part of it, and must not be
softened after the fact. A subject that is not here is not refused; what it allows is its own word then, and the campaign's
verdict is UNKNOWN.
"""

from __future__ import annotations

DEATH, PAUSE, CUT = "death", "pause", "cut"
POINTS, WIRE, PAUSES, LINES = "points", "wire", "pauses", "lines"
KEEP_FAILED, KEEP_ALL = "failed", "all"
HELD, VIOLATED, UNKNOWN = "held", "violated", "unknown"
LOST, DUPLICATE, PHANTOM, STUCK = "lost", "duplicate", "phantom", "stuck"
KINDS = (LOST, DUPLICATE, PHANTOM, STUCK)
SPARE_ROUNDS = 3
FIRST_OF_LINE = 2
"""Of the many times that a run comes to a line, the first two and the last are cases."""
STUDIED = ("outbox", "receivers", "scenarios.oracle")
"""Where the modules are whose lines count."""
START_SECONDS = 1000
DEEPEST = 3
RELAY, COPY = "relay", "duplicate-request"

PLACES = ("start", "7", "start-line", "60", "headers", "body-middle", "end")
CUTS = (
    *[f"{how}-{side}:{place}" for how in ("cut", "reset") for side in ("request", "response") for place in PLACES],
    "duplicate-request", "hold-response", "redirect", "unreadable-success", "oversized-success", "retry-after-seconds",
)  # fmt: skip
"""What a relay is told to do, in the order of the cases."""

SYNCED, UNSYNCED = ("before", "written", "synced"), ("before", "written")
JOURNALS = {
    "intentions": (("intention",), SYNCED),
    "attempts": (("attempt", "outcome", "inquiry"), SYNCED),
    "receipts": (("receipt",), SYNCED),
    "history": (("history",), SYNCED),
    "arrivals": (("arrival", "answer", "query"), UNSYNCED),
    "effects": (("effect",), SYNCED),
    "keys": (("key",), SYNCED),
}
"""The types that each journal holds, and what there is of a write of it."""
TRANSACTIONS = ("claim", "outcome", "enqueue", "ack", "retry", "purge")


def is_line(point: str) -> bool:
    """Whether this is `MODULE:LINE`, and no declared point."""
    module, colon, number = point.rpartition(":")
    studied = any(module == each or module.startswith(each + ".") for each in STUDIED)
    return bool(colon) and studied and number.isascii() and number.isdigit() and number[0] != "0"


def declared() -> list[str]:
    """Every point, sorted."""
    found = ["send.before", "send.response", "inquiry.before", "dispatch.send.before", "dispatch.send.response"]
    found += ["recorded.error.committed", "recorded.status.committed", "dispatch.enqueue.looked"]
    found += [f"dispatch.{act}.{when}" for act in TRANSACTIONS for when in ("before", "written", "committed")]
    for journal, (types, steps) in JOURNALS.items():
        found += [f"{journal}.{act}.{when}" for act in ("create", "repair") for when in steps]
        found += [f"{each}.append.{when}" for each in types for when in (*steps, "torn")]
    return sorted(found)


SUBJECTS: dict[str, str] = {
    "journal/keyed": "ebc701214ea192d9ce24bff880232d44559ac2c358c37ac3cdd2790dc1a511d5",
    "journal/unkeyed": "a40a969394503f86e1c2920c83007db48087c73aa19fc13473496ee2f0cab994",
    "journal/capacity": "448816d527665c7720db87320f08da96ab337599888c98fafda31fe2db0f7bd6",
    "journal/status-query": "b7368ed56133859d3bd2e6ecce9ae6ab5a742b1938df76f98bc7851f634442e7",
    "dispatch/keyed": "e4e64e65f2a93e1c3137f132ea23eda13f76ec7f846e1909ddd3ad780f0609cd",
    "dispatch/unkeyed": "5f9f52ababd899a596ec4a17f4f53dcc7b0378245ac93dfe6a58e4f61102dab9",
    "dispatch-ack/keyed": "46e6931b681ab02457c08ec704d292025aa222792535208537449377c994f5d4",
    "dispatch-operator/keyed": "ab1c671a4453dbc82be4ff7019995bb4932f3d7ba6357217978cdb4a7fa7c709",
}
"""The SHA-256 of each subject's object, in canonical form. `python -m tests.audit.campaigns` prints them."""
