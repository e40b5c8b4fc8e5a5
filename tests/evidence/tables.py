"""The schema of an export: the tables of a dispatch outbox, column by column, and which values of one row go together."""

from __future__ import annotations

from tests.evidence.forms import (
    COUNT,
    LARGEST,
    NAME,
    POSITIVE,
    TEXT,
    Schema,
    array,
    exact,
    exactly,
    matching,
    one_of,
    or_null,
)  # fmt: skip

STATUSES = ("pending", "delivering", "delivered", "acked", "dead_letter", "expired")
REASONS = {
    "pending": ("enqueued", "retry_backoff"), "delivering": ("attempt",), "delivered": ("transport_ok",),
    "acked": ("consumer",), "dead_letter": ("max_attempts", "ack_timeout"), "expired": ("deadline",),
}  # fmt: skip
"""The reasons of transitions, as their codes name them: `dispatch.STATUS.REASON`."""
ROW_COUNTS = exact({name: COUNT for name in (*STATUSES, "attempts", "events", "stale")})
STORE = one_of("sqlite", "postgres")
DATABASE: Schema = {
    "anyOf": [
        {"const": "state/dispatch.db"},
        matching("postgresql://postgres@127[.]0[.]0[.]1:[1-9][0-9]{3,4}/halt23_[1-9][0-9]*"),
    ]
}
IDENTITY = matching("[0-9a-f]{32}")
TIME: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": LARGEST}
OBJECT_TEXT = matching("[{].*[}]")
NULL: Schema = {"type": "null"}
ROW = exact({
    "id": IDENTITY, "kind": NAME, "deliver_to": NAME, "payload": OBJECT_TEXT, "dedup_key": or_null(NAME),
    "status": one_of(*STATUSES), "attempt": COUNT, "max_attempts": POSITIVE, "next_attempt_at": TIME,
    "ack_required": {"enum": [0, 1]}, "ack_token": or_null(IDENTITY), "session_id": NULL, "schedule_run_id": NULL,
    "last_error": or_null(TEXT), "created_at": TIME, "expires_at": or_null(TIME), "updated_at": or_null(TIME),
    "claim_number": COUNT, "claimed_at": or_null(TIME), "last_error_attempt": or_null(POSITIVE), "lane": or_null(NAME),
    "lane_position": or_null(POSITIVE), "destination": or_null(NAME),
})  # fmt: skip
TRANSITION = exact({
    "entity_type": exactly("dispatch"), "entity_id": IDENTITY, "previous_status": or_null(one_of(*STATUSES)),
    "status": one_of(*STATUSES),
    "reason_code": one_of(*[f"dispatch.{status}.{reason}" for status, several in REASONS.items() for reason in several]),
    "reason_summary": NAME, "source": one_of("system", "operator"), "actor": NAME, "evidence_refs": exactly("[]"),
    "metadata": OBJECT_TEXT, "created_at": TIME,
})  # fmt: skip
EVENT = exact({
    "action": NAME, "entity_type": exactly("dispatch"), "entity_id": IDENTITY, "actor": NAME, "details": OBJECT_TEXT,
    "created_at": TIME,
})  # fmt: skip
EXPORT = exact({
    "format": exactly("halt23.dispatch"), "format_version": exactly(1), "dispatch_outbox": array(ROW),
    "status_transitions": array(TRANSITION), "admin_events": array(EVENT),
})  # fmt: skip
