"""Values that go together: in each combination of them, what the audit refuses the schema refuses as well, and no more.

Every schema is held against the check of the audit that knows the same, over all combinations of a few values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from audit import ledger, outbox, processes, protocol, relay
from audit.journals import Record
from audit.records import DEFINITE, INDEFINITE, SHAPES
from audit.shapes import holds, payload_bytes
from tests.evidence.forms import PAYLOAD, Schema
from tests.evidence.schemas import JOURNALS, MANIFEST, PROCESSES

STATUSES = (None, 200, 204, 307, 400, 404, 405, 409, 413, 422, 429, 500, 503, 507)
SHA = "0" * 64
TEXT = {"content": "x", "encoding": "utf-8"}


def refused(check: Callable[[Any], object]) -> bool:
    """Whether a check has anything to say."""
    said: list[str] = []
    check(lambda place, sentence: said.append(sentence))
    return bool(said)


def agree(schema: Schema, values: Iterator[dict[str, Any]], refuses: Callable[[dict[str, Any]], bool]) -> None:
    way = Draft202012Validator(schema)
    good = bad = 0
    for value in values:
        valid = way.is_valid(value)
        assert valid is not refuses(value), value
        good, bad = good + valid, bad + (not valid)
    assert good > 0
    assert bad > 0


@pytest.mark.parametrize(
    ("journal", "more"), [("attempts", {"intention": "k", "number": 1, "not_before": None}), ("requests", {})]
)
def test_outcome_reason_and_status(journal: str, more: dict[str, Any]) -> None:
    reasons = (*DEFINITE, *INDEFINITE)
    agree(
        JOURNALS[journal]["outcome"][1],
        (
            {**more, "outcome": outcome, "reason": reason, "status": status}
            for outcome, reason, status in product(("did_not_happen", "may_have_happened"), reasons, STATUSES)
        ),
        lambda data: refused(lambda note: outbox.hold_outcome(Record("x:1", 1, "outcome", "k#1", data), note)),
    )


def test_what_came_back_and_how() -> None:
    base = {"attempt": 1, "fingerprint": SHA, "intention": "k", "key": "k"}
    agree(
        JOURNALS["receipts"]["receipt"][1],
        (
            {**base, "replayed": replayed, "result": result, "status": status, "via": via}
            for via, replayed, result, status in product(
                ("response", "status_query", "mark"), (True, False), (None, TEXT), (None, 200, 299)
            )
        ),
        lambda data: refused(lambda note: outbox.hold_via(Record("x:1", 1, "receipt", "k", data), note)),
    )


def test_outcome_reason_status_and_effect_of_an_answer() -> None:
    def refuses(data: dict[str, Any]) -> bool:
        shaped = lambda note: holds(data, SHAPES["arrivals"]["answer"], note, "")  # noqa: E731
        said = lambda note: ledger.hold_answer(Record("x:1", 1, "answer", "arrival-1", data), None, note)  # noqa: E731
        success = data["outcome"] in ("applied", "replayed")
        return refused(shaped) or refused(said) or (success and not 200 <= data["status"] <= 299)

    agree(
        JOURNALS["arrivals"]["answer"][1],
        (
            {"effect": effect, "outcome": outcome, "reason": reason, "result_sha256": sha, "status": status}
            for outcome, reason, status, effect, sha in product(
                ("applied", "replayed", "conflict", "refused", "failed"),
                (None, *ledger.REASONS), STATUSES[1:], (None, "effect-1"), (SHA, None),
            )
        ),
        refuses,
    )  # fmt: skip


def test_the_names_of_faults_and_their_places() -> None:
    placed = {name for name, fault in relay.FAULTS.items() if fault.breaks and name != "hold-response"}
    places = ("", "start", "start-line", "headers", "body-middle", "end", "7", "x", "-1", "end\n", "1234567890")

    def refuses(data: dict[str, Any]) -> bool:
        name, mark, place = data["fault"].partition(":")
        known = name in relay.FAULTS and (bool(mark) == (name in placed))
        return not known or (bool(mark) and relay.place_in(place, 9, 5, 2) is None)

    sizes = dict.fromkeys(("request_bytes", "request_forwarded_bytes", "response_bytes", "response_forwarded_bytes"), 1)
    names = (*relay.FAULTS, "cut", "none ", "redirect\n", "")
    agree(
        JOURNALS["exchanges"]["exchange"][1],
        ({"fault": f"{name}:{place}" if place else name, **sizes} for name, place in product(names, places)),
        refuses,
    )


@pytest.mark.parametrize(("member", "code"), [("expected_exit", "code"), ("", "exit_code")])
def test_an_exit_code_or_a_signal(member: str, code: str) -> None:
    process: dict[str, Any] = {
        "scenario": "a/b", "process": "p", "incarnation": 1, "step": 1, "command": [], "substitutions": {}, "environment": {},
        "fault": None, "pause": None, "expected_exit": {"code": 0, "signal": None}, "exit_code": 0, "signal": None,
        "ended_by": "itself", "stdout": "", "ready": None, "stderr": "", "pid": 1, "started_seconds": 0, "ended_seconds": 0,
        "resources": {"user_cpu_seconds": 0, "system_cpu_seconds": 0, "max_rss_bytes": 0},
    }  # fmt: skip

    def found() -> Iterator[dict[str, Any]]:
        for number, signal in product((None, 0, 23, 255, 256), (None, "SIGKILL")):
            ending = {code: number, "signal": signal}
            yield {**process, member: ending} if member else {**process, **ending}

    agree(
        PROCESSES["properties"]["processes"]["items"],
        found(),
        lambda record: refused(lambda note: processes.readable({"processes": [record]}, note, note)),
    )


def test_a_commit_and_whether_it_was_clean() -> None:
    run = {
        "spawn": "fork", "jobs": 1, "started_at": "2026-01-01T00:00:00Z", "wall_seconds": 1, "cores": 1, "python": "3",
        "implementation": "C", "platform": "L", "file_system": None, "packages": {"aiohttp": "3"},
        "sqlite": {"package": "sqlite3", "version": "3", "journal_mode": "wal"}, "postgres": None,
    }  # fmt: skip
    agree(
        MANIFEST["properties"]["run"],
        ({**run, "commit": commit, "clean": clean} for commit, clean in product((None, "0" * 40), (None, True, False))),
        lambda value: refused(lambda note: protocol.hold_run(value, "sqlite", note)),
    )


def test_the_encodings_of_a_payload() -> None:
    way = Draft202012Validator(PAYLOAD)
    for content in ("/w==", "gIE=", "gIGC", "", "x", "/w=", "/w==\n", "/w==/w==", "\u00ff", "====", "/-=="):
        value = {"content": content, "encoding": "base64"}
        if payload_bytes(value) is not None:
            assert way.is_valid(value), content
    assert not way.is_valid({"content": "x", "encoding": "base64"})
    assert not way.is_valid({"content": "/w==\n", "encoding": "base64"})
    assert way.is_valid({"content": "/w==\n", "encoding": "utf-8"})
