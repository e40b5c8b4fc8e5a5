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
    "journal/keyed": "b2d8074165e8638b368c3dc238b4cfd8ba58a92c5cbe2029042b867ca72762b7",
    "journal/unkeyed": "205288e11a47f45b36d6aea239f5c1314c0e313ebb00da02d07910045d83b92e",
    "journal/capacity": "af578811e933c40c20e6fa5a41f73460f3cdc413941a2c19e2929687c7293381",
    "journal/status-query": "9b43455cdd232200c169ab06559e13cca95ce16da5f178b95b66b93b090a5dde",
    "dispatch/keyed": "09f2bdd439cd3bfce7b9e7e6c9dcafe7bc676794f8a58f261d22ad8a1c9c8046",
    "dispatch/unkeyed": "070c9bc00c19564764f5682f925475782614a1d4ab5edc080c2b6d9a651e8bae",
    "dispatch-ack/keyed": "f6bea9f27d4bfc2f643afc0bc3653af4ecfd13e845fee2db52eb8a8f1b73529d",
    "dispatch-operator/keyed": "5d1e1fc1d3c41d56765fb58640c927ab70d3c1a2b22f270154cd835de0755138",
}
"""The SHA-256 of each subject's object, in canonical form. `python -m tests.audit.campaigns` prints them."""
