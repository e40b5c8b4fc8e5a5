"""Whether a claim kept the others away for as long as it lasts, as the recorded transitions tell.

Nothing else sees a lease that is too short: a keyed receiver spares the operation the second effect, and the sender's books
stay in order. What tells is when each attempt began, and whether the one before had ended.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outbox.dispatch.edges import ATTEMPT, DELIVERING


def attempts_in_a_lease(moves: Sequence[Mapping[str, Any]], lease_seconds: int) -> Iterator[str]:
    """A sentence for each attempt at a dispatch whose claimant had not finished, and had not held it for so long."""
    claimed: dict[str, float] = {}
    for move in moves:
        if move["reason_code"] != ATTEMPT:
            continue
        key, at = move["entity_id"], move["created_at"]
        if move["previous_status"] == DELIVERING and key in claimed and at < claimed[key] + lease_seconds:
            yield f"an attempt at {key} began {at - claimed[key]:g} s after another that had not ended, within its lease"
        claimed[key] = at
