"""The shapes of journal records: which types a journal holds, and which members the data of each type has.

Only the effects of a receiver with a clock (`timed`) depend on more than the type: they hold its time. Shapes look at one
record alone; what records mean to each other is for the checks.
"""

from __future__ import annotations

from audit.shapes import (
    COUNT,
    FLAG,
    NAME,
    PAYLOAD,
    POSITIVE,
    ROUTE,
    SHA,
    STATUS,
    SUCCESS,
    TEXT,
    TIME,
    one_of,
    optional,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.shapes import Shape

DEFINITE = ("connection_refused", "connect_timeout", "unreachable", "conflict", "in_flight", "unavailable", "refused")
INDEFINITE = (
    "connection_reset", "connection_closed", "response_timeout", "short_response", "malformed_response",
    "oversized_response", "unreadable_result", "redirect", "server_error",
)  # fmt: skip
OUTCOME: Shape = {
    "outcome": one_of("did_not_happen", "may_have_happened"),
    "reason": one_of(*DEFINITE, *INDEFINITE),
    "status": optional(STATUS),
}
SHAPES: dict[str, dict[str, Shape]] = {
    "intentions": {"intention": {"body": PAYLOAD, "fingerprint": SHA, "key": NAME, "route": ROUTE}},
    "attempts": {
        "attempt": {"fingerprint": SHA, "intention": NAME, "key": NAME, "number": POSITIVE},
        "outcome": {"intention": NAME, "not_before": optional(TIME), "number": POSITIVE, **OUTCOME},
        "inquiry": {"answer": one_of("applied", "not_applied", "unanswerable"), "intention": NAME, "number": POSITIVE},
    },
    "receipts": {
        "receipt": {
            "attempt": POSITIVE, "fingerprint": SHA, "intention": NAME, "key": NAME, "replayed": FLAG,
            "result": optional(PAYLOAD), "status": optional(SUCCESS), "via": one_of("response", "status_query", "mark"),
        },
    },
    "history": {"history": {"answer": PAYLOAD, "question": PAYLOAD}},
    "effects": {
        "effect": {
            "arrival": NAME, "fingerprint": SHA, "key": optional(NAME), "number": POSITIVE, "result": PAYLOAD,
            "status": SUCCESS,
        },
    },
    "keys": {"key": {"effect": NAME, "fingerprint": SHA, "result": PAYLOAD, "status": SUCCESS}},
    "arrivals": {
        "arrival": {
            "attempt": optional(TEXT), "body_bytes": optional(COUNT), "fingerprint": optional(SHA), "key": optional(NAME),
            "method": NAME, "route": TEXT, "sender": optional(TEXT),
        },
        "answer": {
            "effect": optional(NAME), "outcome": one_of("applied", "replayed", "conflict", "refused", "failed"),
            "reason": optional(NAME), "result_sha256": SHA, "status": STATUS,
        },
        "query": {"answer": one_of("applied", "not_applied"), "key": NAME},
    },
    "requests": {
        "request": {"body": PAYLOAD, "fingerprint": SHA, "key": NAME, "route": ROUTE},
        "response": {"replayed": FLAG, "result": PAYLOAD, "status": SUCCESS},
        "outcome": OUTCOME,
    },
    "exchanges": {
        "exchange": {
            "fault": NAME, "request_bytes": COUNT, "request_forwarded_bytes": COUNT, "response_bytes": COUNT,
            "response_forwarded_bytes": COUNT,
        },
    },
    "prefixes": {"prefix": {"after": COUNT, "bytes": COUNT, "kept": COUNT}},
}  # fmt: skip
AT_SECONDS = "at_seconds"
TIMED: Shape = dict(sorted({**SHAPES["effects"]["effect"], AT_SECONDS: TIME}.items()))
"""An effect of a receiver that has a clock."""


def shape_of(journal: str, kind: str, timed: bool) -> Shape:
    """The shape of the data of a record."""
    return TIMED if timed and kind == "effect" else SHAPES[journal][kind]
