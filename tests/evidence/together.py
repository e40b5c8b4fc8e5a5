"""What goes together in one record: which reasons with which status, what came back on which way, how a process ends.

Each tuple holds the ways of which a record has exactly one.
"""

from __future__ import annotations

from tests.evidence.forms import NAME, PAYLOAD, STATUS, SUCCESS, Schema, exactly, integer, one_of, or_null

NULL: Schema = {"type": "null"}
DEFINITE: dict[str, Schema] = {
    "connection_refused": NULL, "connect_timeout": NULL, "unreachable": NULL, "conflict": {"enum": [409, 422]},
    "in_flight": {"enum": [409]}, "unavailable": {"enum": [429, 503, 507]},
    "refused": {**integer(400, 499), "not": {"enum": [409, 422, 429]}},
}  # fmt: skip
INDEFINITE: dict[str, Schema] = {
    "connection_reset": NULL, "connection_closed": NULL, "malformed_response": NULL, "response_timeout": or_null(STATUS),
    "short_response": or_null(STATUS), "oversized_response": or_null(STATUS), "unreadable_result": or_null(STATUS),
    "redirect": integer(300, 399), "server_error": {**integer(500, 599), "not": {"enum": [503, 507]}},
}  # fmt: skip
"""The reasons of an outcome, each with the status that it goes with."""
OUTCOME = {
    "outcome": one_of("did_not_happen", "may_have_happened"), "reason": one_of(*DEFINITE, *INDEFINITE),
    "status": or_null(STATUS),
}  # fmt: skip
OUTCOMES = tuple(
    {"outcome": exactly(outcome), "reason": exactly(reason), "status": status}
    for outcome, reasons in (("did_not_happen", DEFINITE), ("may_have_happened", INDEFINITE))
    for reason, status in reasons.items()
)
VIA: tuple[dict[str, Schema], ...] = (
    {"via": exactly("response"), "status": SUCCESS, "result": PAYLOAD},
    {"via": exactly("status_query"), "status": SUCCESS, "result": PAYLOAD, "replayed": exactly(False)},
    {"via": exactly("mark"), "status": NULL, "result": NULL, "replayed": exactly(False)},
)
REFUSALS = {
    "conflict": {"body_differs": [409, 422]},
    "refused": {
        "key_missing": [400], "key_empty": [400], "key_overlong": [400], "key_repeated": [400], "key_not_ascii": [400],
        "body_too_large": [413], "body_incomplete": [400], "method_not_allowed": [405], "not_found": [404],
        "key_in_flight": [409], "registry_full": [429],
    },
    "failed": {"storage_full": [507], "storage_failed": [503]},
}  # fmt: skip
ANSWERS: tuple[dict[str, Schema], ...] = (
    {"outcome": one_of("applied", "replayed"), "reason": NULL, "effect": NAME, "status": SUCCESS},
    *[
        {"outcome": exactly(outcome), "reason": exactly(reason), "effect": NULL, "status": {"enum": statuses}}
        for outcome, reasons in REFUSALS.items()
        for reason, statuses in reasons.items()
    ],
)
FAULT = (
    "(none|hold-response|duplicate-request|redirect|unreadable-success|oversized-success|retry-after-seconds|retry-after-date"
    "|(cut|reset)-(request|response):(start|start-line|headers|body-middle|end|[0-9]{1,9}))"
)


def ends(code: str) -> tuple[dict[str, Schema], ...]:
    """A process ends with an exit code or by a signal."""
    return {code: {"type": "integer"}, "signal": NULL}, {code: NULL, "signal": {"type": "string"}}


UNKNOWN_OR_BOTH: tuple[dict[str, Schema], ...] = (
    {"commit": NULL, "clean": NULL},
    {"commit": {"type": "string"}, "clean": {"type": "boolean"}},
)
SERVER_OF_STORE: tuple[dict[str, Schema], ...] = tuple(
    {"selection": {"properties": {"store": {"const": store}}}, "run": {"properties": {"postgres": server}}}
    for store, server in (("sqlite", NULL), ("postgres", {"type": "object"}))
)
"""A run says of a server what it was exactly where it had one."""
