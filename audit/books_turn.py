"""A turn at the books of a dispatch outbox: what it did, and what the result of a send asks for, in every bookkeeping."""

from __future__ import annotations

from audit.books_words import (
    ACK_TIMEOUT,
    DEAD_LETTER,
    DELIVERED,
    HAPPENED,
    MAX_ATTEMPTS,
    PENDING,
    RETRY_BACKOFF,
    TRANSPORT_OK,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.books_sends import Claim, Result

    Finished = tuple[Claim, Result]

ACTOR = "deliver_due_dispatches"


class Moved:
    """What a result makes of its row: status, reason, the counters that it adds to, and words."""

    __slots__ = ("counts", "reason", "status", "summary")

    def __init__(self, status: str, reason: str, counts: tuple[str, ...], summary: str) -> None:
        self.status, self.reason, self.counts, self.summary = status, reason, counts, summary


class Turn:
    """What one turn did: the counters, the claim that is ours now, and whether a row was selected."""

    __slots__ = ("claim", "counts", "selected")

    def __init__(self) -> None:
        self.counts: list[str] = []
        self.claim: Claim | None = None
        self.selected = False


def consequence(claim: Claim, result: Result) -> Moved:
    """What a result asks for."""
    last = claim.attempt >= claim.row["max_attempts"]
    if result.outcome == HAPPENED:
        if not claim.row["ack_required"]:
            return Moved(DELIVERED, TRANSPORT_OK, ("delivered",), "the transport reported success")
        if last:
            summary = f"sent {claim.attempt} times, no acknowledgement"
            return Moved(DEAD_LETTER, ACK_TIMEOUT, ("delivered", "dead_letter"), summary)
        return Moved(PENDING, TRANSPORT_OK, ("delivered",), "sent, waiting for the acknowledgement")
    if last:
        return Moved(DEAD_LETTER, MAX_ATTEMPTS, ("dead_letter",), f"attempt {claim.attempt} failed, the last")
    return Moved(PENDING, RETRY_BACKOFF, ("retried",), f"attempt {claim.attempt} failed")
