"""What the audit knows of campaigns by itself: which subjects there are, which points, and what a network can do.

Subjects are pinned by the hash of their object in `plan.json`: what one operation may come to is part of it, and must not be
softened after the fact. A subject that is not here is not refused; what it allows is its own word then, and the campaign's
verdict is UNKNOWN.
"""

from __future__ import annotations

DEATH, PAUSE, CUT = "death", "pause", "cut"
POINTS, WIRE, PAUSES = "points", "wire", "pauses"
KEEP_FAILED, KEEP_ALL = "failed", "all"
HELD, VIOLATED, UNKNOWN = "held", "violated", "unknown"
LOST, DUPLICATE, PHANTOM, STUCK = "lost", "duplicate", "phantom", "stuck"
KINDS = (LOST, DUPLICATE, PHANTOM, STUCK)
SPARE_ROUNDS = 3
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


def declared() -> list[str]:
    """Every point, sorted."""
    found = ["send.before", "send.response", "inquiry.before", "dispatch.send.before", "dispatch.send.response"]
    found += ["recorded.error.committed", "recorded.status.committed"]
    found += [f"dispatch.{act}.{when}" for act in TRANSACTIONS for when in ("before", "written", "committed")]
    for journal, (types, steps) in JOURNALS.items():
        found += [f"{journal}.{act}.{when}" for act in ("create", "repair") for when in steps]
        found += [f"{each}.append.{when}" for each in types for when in (*steps, "torn")]
    return sorted(found)


SUBJECTS: dict[str, str] = {
    "journal/keyed": "fa82aaba587ac36ddc0b544043479959e15c55a3e5c7bba19269fec7774080b0",
    "journal/unkeyed": "13e296d4241ec9187f4c3b72225a14d851c1a0467f0ae70061deb0de972bc777",
    "journal/capacity": "77b2ea66587e85f01af20049ed7ba3b018e1e33bfb97e983d988ba6829deeca7",
    "journal/status-query": "82f7098c176008bddc8e0ba3259b9cb467ca8ba61a460005764ea53a9a75c9ef",
    "dispatch/keyed": "63bec490d8fb7a2fd78fbfc83d96a2ea775de06326c7cfae6a12c71775d10bc7",
    "dispatch/unkeyed": "beaaa853f4d4415c0370065d2931d9d1c755179d06001655e4af9ad397359ff5",
    "dispatch-ack/keyed": "8f97fa4df3eb07f8fe6565ead7a8554297b4aedd266bab33527bf19d90338032",
    "dispatch-operator/keyed": "d7b025bbcc4773c1af8ef2034b02111135a3e16f76db53197a38b2a7ca79463c",
}
"""The SHA-256 of each subject's object, in canonical form. `python -m tests.audit.campaigns` prints them."""
