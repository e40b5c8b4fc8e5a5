"""The schemas of a check: its manifest, its plan, one line of its results, and its summary."""

from __future__ import annotations

from tests.evidence.forms import (
    COUNT,
    FLAG,
    MOMENT,
    NAME,
    NUMBER,
    POSITIVE,
    SHA,
    STATUS,
    TEXT,
    Schema,
    array,
    exact,
    named,
    one_of,
    or_null,
)

KIND = one_of("worker", "receiver")
ROLE = one_of("setup", "enqueue", "work", "recover", "receiver")
VERDICT = one_of("PASS", "FAIL", "UNKNOWN")
CLAIM = one_of("at-most-once", "at-least-once", "applied-once-with-keys")
OF_WORKER = ("unknown", "lost", "stuck", "duplicate-keyed", "duplicate-unkeyed", "recovered")
OF_RECEIVER = ("violated", "unclear", "met", "skipped")
SEVERITY = one_of("lost", "duplicated", "stuck", "unclear", "style")
FAULT = {
    "kind": one_of("line", "syscall", "point", "receiver"), "where": NAME, "function": or_null(NAME), "occurrence": POSITIVE,
}  # fmt: skip
ARRIVAL = exact({
    "job": or_null(NAME), "key": or_null(TEXT), "status": or_null(STATUS), "applied": FLAG, "after_restart": FLAG,
    "seconds": NUMBER,
})  # fmt: skip
WORKER = exact({
    "case": NAME, "role": ROLE, "fault": exact(FAULT), "then": or_null(exact({"role": ROLE, **FAULT})),
    "ended": exact({"exit_code": or_null(COUNT), "signal": or_null(NAME)}), "fired": FLAG, "arrivals": array(ARRIVAL),
    "effects": named(exact({"keyed": COUNT, "unkeyed": COUNT})), "canary": NAME, "stored": or_null(FLAG),
    "stored_by": or_null(one_of("pending", "bytes")), "recovered_seconds": or_null(NUMBER), "watched_seconds": NUMBER,
    "verdict": one_of(*OF_WORKER), "reasons": array(NAME), "notes": array(NAME), "confirmed": or_null(FLAG),
})  # fmt: skip
REQUEST = exact({"method": NAME, "path": NAME, "headers": array(array(TEXT)), "body": TEXT})
EXCHANGE = exact({
    "request": REQUEST, "status": or_null(STATUS), "body": or_null(TEXT), "error": or_null(TEXT), "seconds": NUMBER,
})  # fmt: skip
RECEIVER = exact({
    "expectation": NAME, "source": NAME, "severity": SEVERITY, "verdict": one_of(*OF_RECEIVER), "expected": TEXT, "seen": TEXT,
    "exchanges": array(EXCHANGE), "effects": exact({"before": or_null(COUNT), "after": or_null(COUNT)}),
    "fault": or_null({"type": "object"}), "notes": array(NAME),
})  # fmt: skip
WINDOW = exact({
    "role": ROLE, "kind": FAULT["kind"], "where": NAME, "function": or_null(NAME), "depth": POSITIVE,
    "verdict": one_of(*OF_WORKER), "cases": POSITIVE, "tried": POSITIVE, "seconds": or_null(NUMBER), "example": NAME,
})  # fmt: skip
UNMET = exact({
    "where": NAME, "severity": SEVERITY, "source": NAME, "verdict": one_of("violated", "unclear"), "fails": FLAG,
})  # fmt: skip
SUMMARY = exact({
    "kind": KIND, "target": NAME, "verdict": VERDICT, "claims": or_null(CLAIM), "holds": or_null(array(CLAIM)), "cases": COUNT,
    "not_played": COUNT, "by_verdict": named(COUNT), "wall_seconds": NUMBER, "cases_per_second": NUMBER,
    "windows": array({"anyOf": [WINDOW, UNMET]}), "notes": array(NAME),
})  # fmt: skip
PLAN = exact({
    "kind": KIND, "target": {"type": "object", "required": ["name", "claims", "worker", "receiver"]},
    "options": {"type": "object"}, "machine": {"type": "object"}, "python": NAME, "versions": named(NAME),
})  # fmt: skip
MANIFEST = exact({
    "format": {"const": "halt23.check"}, "format_version": {"const": 1}, "kind": KIND, "target": NAME, "verdict": VERDICT,
    "run": exact({"started_at": MOMENT, "wall_seconds": NUMBER}), "sources": named(SHA),
    "files": named(exact({"bytes": COUNT, "sha256": SHA})),
})  # fmt: skip

CHECK: dict[str, tuple[Schema, str]] = {
    "check-manifest": (MANIFEST, "manifest.json of a check"),
    "check-plan": (PLAN, "plan.json of a check"),
    "check-summary": (SUMMARY, "summary.json of a check"),
    "check-worker-result": (WORKER, "One line of results.jsonl of a check of a worker"),
    "check-receiver-result": (RECEIVER, "One line of results.jsonl of a check of a receiver"),
}
