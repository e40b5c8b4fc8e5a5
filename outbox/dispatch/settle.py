"""What an attempt's result makes of its row: status, reason, due time, error. Pure: nothing is read or written here.

The tables are those of ADR-0059 (D4, D5). Everything that follows from one result is one `Change`, so that it is written
together and guarded by the claim that it belongs to. Due times count from the moment of the claim. A destination's
`Retry-After` may put the next attempt off further, never bring it nearer.
"""

import random
from dataclasses import dataclass
from typing import NamedTuple

from outbox.dispatch.backoff import backoff_seconds, jittered
from outbox.dispatch.claim import ACTOR, Claim
from outbox.dispatch.edges import (
    ACK_TIMEOUT,
    DEAD_LETTER,
    DELIVERED,
    MAX_ATTEMPTS,
    PENDING,
    RETRY_BACKOFF,
    TRANSPORT_OK,
)
from outbox.dispatch.transitions import Change
from outbox.outcome import DID_NOT_HAPPEN, MAY_HAVE_HAPPENED

MAX_ERROR_CHARACTERS = 2000
# A destination that asks for more patience than a day gets a day: a mistake of its clock must not bury a dispatch.
MAX_RETRY_AFTER_SECONDS = 86_400.0
HAPPENED = "happened"


class SendResult(NamedTuple):
    """What became of one send.

    `outcome` is HAPPENED (the transport reported success), DID_NOT_HAPPEN or MAY_HAVE_HAPPENED; `error` says why, for a person,
    where it did not succeed; `not_before` is the earliest next attempt that the destination asked for, in seconds since the
    epoch.
    """

    outcome: str
    error: str | None = None
    not_before: float | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the transport reported success. It does not say that a consumer has it."""
        return self.outcome == HAPPENED


SENT = SendResult(HAPPENED)


def failed(error: str, *, definite: bool, not_before: float | None = None) -> SendResult:
    """A send without success. `definite`: it certainly did not happen; otherwise it may have."""
    # Whatever the other side said, a text column must take it: one row that cannot be written would stop the whole scan.
    kept = error[:MAX_ERROR_CHARACTERS].replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return SendResult(DID_NOT_HAPPEN if definite else MAY_HAVE_HAPPENED, kept, not_before)


@dataclass(frozen=True, slots=True)
class Jitter:
    """How delays are spread (outbox.dispatch.backoff), and where the chance comes from."""

    fraction: float
    chance: random.Random


class Settled(NamedTuple):
    """The change that a result asks for, and the counters of the scan that it adds to once it is applied."""

    change: Change
    counts: tuple[str, ...]


def settle(claim: Claim, result: SendResult, jitter: Jitter | None = None) -> Settled:
    """The consequence of `result` for the row of `claim`."""
    move = _move(claim, result)
    patch: dict[str, object] = {}
    if move.status == PENDING:
        patch["next_attempt_at"] = _due(claim, result, jitter)
    if result.error is not None:
        # An error stays when a later attempt succeeds, as recorded; the attempt beside it tells whether it is the current one.
        patch |= {"last_error": result.error, "last_error_attempt": claim.attempt}
    metadata = {"attempt": claim.attempt, "claim_number": claim.seen.claim_number, "outcome": result.outcome}
    change = Change(claim.seen, move.status, move.reason, ACTOR, move.summary, patch=patch, metadata=metadata)
    return Settled(change, move.counts)


class _Move(NamedTuple):
    status: str
    reason: str
    counts: tuple[str, ...]
    summary: str


def _move(claim: Claim, result: SendResult) -> _Move:
    last = claim.attempt >= claim.max_attempts
    if result.succeeded:
        if not claim.ack_required:
            return _Move(DELIVERED, TRANSPORT_OK, ("delivered",), "the transport reported success")
        if last:
            summary = f"sent {claim.attempt} times, no acknowledgement"
            return _Move(DEAD_LETTER, ACK_TIMEOUT, ("delivered", "dead_letter"), summary)
        return _Move(PENDING, TRANSPORT_OK, ("delivered",), "sent, waiting for the acknowledgement")
    if last:
        return _Move(DEAD_LETTER, MAX_ATTEMPTS, ("dead_letter",), f"attempt {claim.attempt} failed, the last")
    return _Move(PENDING, RETRY_BACKOFF, ("retried",), f"attempt {claim.attempt} failed")


def _due(claim: Claim, result: SendResult, jitter: Jitter | None) -> float:
    delay = backoff_seconds(claim.attempt)
    if jitter is not None:
        delay = jittered(delay, jitter.fraction, jitter.chance)
    due = max(claim.claimed_at + delay, min(result.not_before or 0.0, claim.claimed_at + MAX_RETRY_AFTER_SECONDS))
    # Expiry is seen when a row is due, so a destination's wish does not put it off.
    return (
        due
        if claim.expires_at is None or result.not_before is None
        else min(due, max(claim.expires_at, claim.claimed_at + delay))
    )
