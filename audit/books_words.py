"""The words of a dispatch outbox: states, reasons, and the closed graph of what may follow what; the audit's own copy.

The graph is that of ADR-0059 (D1, D4, D5). An edge that is not listed does not exist: `delivered` and `acked` have no way out,
`dead_letter` and `expired` only the operator's forced retry. Times of the record stand here as well.
"""

from __future__ import annotations

PENDING, DELIVERING, DELIVERED = "pending", "delivering", "delivered"
ACKED, DEAD_LETTER, EXPIRED = "acked", "dead_letter", "expired"
STATUSES = (PENDING, DELIVERING, DELIVERED, ACKED, DEAD_LETTER, EXPIRED)

ENQUEUED = "dispatch.pending.enqueued"
RETRY_BACKOFF = "dispatch.pending.retry_backoff"
ATTEMPT = "dispatch.delivering.attempt"
TRANSPORT_OK = "dispatch.delivered.transport_ok"
MAX_ATTEMPTS = "dispatch.dead_letter.max_attempts"
ACK_TIMEOUT = "dispatch.dead_letter.ack_timeout"
DEADLINE = "dispatch.expired.deadline"
CONSUMER = "dispatch.acked.consumer"

SUCCESSES = (TRANSPORT_OK, ACK_TIMEOUT)
"""The reasons of a transition that records a success of the transport."""
FAILURES = (RETRY_BACKOFF, MAX_ATTEMPTS)
"""The reasons of a transition that records a failure, where the system wrote it."""

SYSTEM, OPERATOR = "system", "operator"
HAPPENED, DID_NOT_HAPPEN, MAY_HAVE_HAPPENED = "happened", "did_not_happen", "may_have_happened"

EDGES = frozenset(
    {
        (None, PENDING, ENQUEUED, SYSTEM),
        (PENDING, DELIVERING, ATTEMPT, SYSTEM),
        (DELIVERING, DELIVERING, ATTEMPT, SYSTEM),
        (DELIVERING, DELIVERED, TRANSPORT_OK, SYSTEM),
        (DELIVERING, PENDING, TRANSPORT_OK, SYSTEM),
        (DELIVERING, PENDING, RETRY_BACKOFF, SYSTEM),
        (DELIVERING, DEAD_LETTER, MAX_ATTEMPTS, SYSTEM),
        (DELIVERING, DEAD_LETTER, ACK_TIMEOUT, SYSTEM),
        (PENDING, EXPIRED, DEADLINE, SYSTEM),
        (DELIVERING, EXPIRED, DEADLINE, SYSTEM),
        (PENDING, ACKED, CONSUMER, SYSTEM),
        (DELIVERING, ACKED, CONSUMER, SYSTEM),
        (DEAD_LETTER, PENDING, RETRY_BACKOFF, OPERATOR),
        (EXPIRED, PENDING, RETRY_BACKOFF, OPERATOR),
    }
)
"""Status before, status, reason, source."""

LEASE_SECONDS = 15.0
REVIVAL_SECONDS = 3600.0
BASE_SECONDS, MOST_SECONDS = 30, 1800
ENOUGH_DOUBLINGS = 11


def backoff(attempt: int) -> float:
    """How long a row waits after an attempt that failed."""
    return float(min(BASE_SECONDS * 2.0 ** min(attempt, ENOUGH_DOUBLINGS), MOST_SECONDS))
