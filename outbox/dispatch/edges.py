"""The life of a dispatch: its six states, the reasons for moving between them, and the closed graph of what may follow what.

The graph is data and is enforced in one place (`outbox.dispatch.transitions`), for the scheduler, for consumers and for
operators alike. An edge that is not listed does not exist: `delivered` and `acked` have no way out, `dead_letter` and `expired`
only the operator's forced retry. States and reason codes are those of ADR-0059, sections D1, D4 and D5.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from outbox.dispatch.errors import BadValue, IllegalEdge

PENDING = "pending"
DELIVERING = "delivering"
DELIVERED = "delivered"
ACKED = "acked"
DEAD_LETTER = "dead_letter"
EXPIRED = "expired"

STATUSES = (PENDING, DELIVERING, DELIVERED, ACKED, DEAD_LETTER, EXPIRED)
ACTIVE = (PENDING, DELIVERING)
FINISHED = (DELIVERED, ACKED, DEAD_LETTER, EXPIRED)

ENQUEUED = "dispatch.pending.enqueued"
RETRY_BACKOFF = "dispatch.pending.retry_backoff"
ATTEMPT = "dispatch.delivering.attempt"
TRANSPORT_OK = "dispatch.delivered.transport_ok"
MAX_ATTEMPTS = "dispatch.dead_letter.max_attempts"
ACK_TIMEOUT = "dispatch.dead_letter.ack_timeout"
DEADLINE = "dispatch.expired.deadline"
CONSUMER = "dispatch.acked.consumer"

REASONS = (ENQUEUED, RETRY_BACKOFF, ATTEMPT, TRANSPORT_OK, MAX_ATTEMPTS, ACK_TIMEOUT, DEADLINE, CONSUMER)

SYSTEM = "system"
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Edge:
    """One legal move: from `previous` (None: the row is new) to `status`, because of `reason`, by `source`."""

    previous: str | None
    status: str
    reason: str
    source: str = SYSTEM


EDGES = frozenset(
    {
        Edge(None, PENDING, ENQUEUED),
        Edge(PENDING, DELIVERING, ATTEMPT),
        Edge(DELIVERING, DELIVERING, ATTEMPT),  # recovery: the claimant before never finished
        Edge(DELIVERING, DELIVERED, TRANSPORT_OK),
        Edge(DELIVERING, PENDING, TRANSPORT_OK),  # acknowledgement tier: sent, waiting for the token
        Edge(DELIVERING, PENDING, RETRY_BACKOFF),
        Edge(DELIVERING, DEAD_LETTER, MAX_ATTEMPTS),
        Edge(DELIVERING, DEAD_LETTER, ACK_TIMEOUT),
        Edge(PENDING, EXPIRED, DEADLINE),
        Edge(DELIVERING, EXPIRED, DEADLINE),
        Edge(PENDING, ACKED, CONSUMER),
        Edge(DELIVERING, ACKED, CONSUMER),
        Edge(DEAD_LETTER, PENDING, RETRY_BACKOFF, OPERATOR),
        Edge(EXPIRED, PENDING, RETRY_BACKOFF, OPERATOR),
    }
)


@functools.lru_cache(maxsize=4 * len(EDGES))
def edge(previous: str | None, status: str, reason: str, source: str = SYSTEM) -> Edge:
    """The edge of these four. Raises BadValue for a word that does not exist and IllegalEdge for a move that does not."""
    for word in (previous, status):
        if word is not None:
            known_status(word)
    if reason not in REASONS:
        raise BadValue(f"{reason!r} is no reason code; they are: {', '.join(REASONS)}")
    wanted = Edge(previous, status, reason, source)
    if wanted not in EDGES:
        leaving = sorted({f"{each.status} ({each.reason}, {each.source})" for each in EDGES if each.previous == previous})
        raise IllegalEdge(
            f"a dispatch cannot go from {previous or 'nothing'} to {status} for the reason {reason} as {source}; "
            f"from {previous or 'nothing'} it can go to: {', '.join(leaving) or 'nothing, this state is final'}"
        )
    return wanted


def known_status(status: str) -> str:
    """`status` itself. Raises BadValue if it is none of the six."""
    if status not in STATUSES:
        raise BadValue(f"{status!r} is no status; a dispatch is one of: {', '.join(STATUSES)}")
    return status


def known_statuses(statuses: Iterable[str]) -> tuple[str, ...]:
    """The same for several; in the order of STATUSES, each once."""
    asked = {known_status(status) for status in statuses}
    return tuple(status for status in STATUSES if status in asked)
