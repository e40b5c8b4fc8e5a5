"""A relay that only carries changes nothing: what a sender drew from its response is what the receiver said."""

from __future__ import annotations

from typing import Any

import pytest

from audit import relay, wire
from audit.journals import Record
from audit.requests import Request

EXCHANGE = {
    "request_bytes": 300, "request_forwarded_bytes": 300, "response_bytes": 250, "response_forwarded_bytes": 250,
}  # fmt: skip
REFUSED = {"effect": None, "outcome": "refused", "reason": "registry_full", "result_sha256": "0" * 64, "status": 429}


def _request(fault: str, outcome: dict[str, Any]) -> Request:
    """A request through a relay, refused because the registry is full, and what its sender wrote."""
    attempt = {"fingerprint": "0" * 64, "intention": "a", "key": "a", "number": 1}
    request = Request(Record("attempts.jsonl:1", 1, "attempt", "a#1", attempt), "1", "/operations", b"{}")
    request.closed = Record(
        "attempts.jsonl:2", 2, "outcome", "a#1", {"intention": "a", "not_before": None, "number": 1, **outcome}
    )
    request.exchange = Record("exchanges.jsonl:1", 1, "exchange", "connection-1", {**EXCHANGE, "fault": fault})
    request.answers = [Record("arrivals.jsonl:2", 2, "answer", "arrival-1", REFUSED)]
    return request


@pytest.mark.parametrize("fault", ["none", "duplicate-request"])
@pytest.mark.parametrize(
    ("reason", "status", "words"),
    [
        ("unavailable", 429, ""),
        (
            "unavailable",
            507,
            "says unavailable with status 507, but arrivals.jsonl:2 is refused (registry_full) with status 429",
        ),
        ("in_flight", 409, "says in_flight with status 409, but"),
        ("server_error", 500, "says server_error, but the relay did nothing to it"),
        ("redirect", 307, "says redirect, but the relay did nothing to it"),
        ("connection_closed", None, "says connection_closed, but the relay did nothing to it"),
    ],
)
def test_what_was_carried_is_what_was_said(fault: str, reason: str, status: int | None, words: str) -> None:
    outcome = "did_not_happen" if reason in ("unavailable", "in_flight") else "may_have_happened"
    request = _request(fault, {"outcome": outcome, "reason": reason, "status": status})
    assert request.exchange is not None
    assert request.closed is not None
    found: list[str] = []

    def note(place: str, sentence: str) -> None:
        found.append(f"{place}: {sentence}")

    wire._outcome(None, request, request.closed, note)  # type: ignore[arg-type]
    relay._sender_side(request, request.exchange, relay.FAULTS[fault], 0, note)
    assert [each for each in found if words and words in each] == found
    assert bool(found) == bool(words)
