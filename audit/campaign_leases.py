"""Attempts within the lease of another one, stated anew from the recorded transitions."""

from __future__ import annotations

from audit.books_words import ATTEMPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def broken(moves: list[dict[str, Any]], lease_seconds: int) -> list[str]:
    """Each attempt at what another one had claimed, had not finished, and had not held for as long as its lease lasts."""
    found = []
    before: dict[str, float] = {}
    for move in [each for each in moves if each["reason_code"] == ATTEMPT]:
        name, began = move["entity_id"], move["created_at"]
        passed = began - before.get(name, began - lease_seconds)
        if move["previous_status"] == "delivering" and passed < lease_seconds:
            found.append(f"an attempt at {name} began {passed:g} s after another that had not ended, within its lease")
        before[name] = began
    return found
