"""Exports: the tables of a dispatch outbox, as an export step found them, read strictly and counted again.

Every export step leaves `exports/NAME.json`: rows in the order of their ids, then transitions and admin events in the order in
which they were written. Each file has the one layout of a document, the columns of each table in their order, and values of
their types. What is counted of it must be what the step, and the audit's own table, ask for. How the rows came about is held in
`books`, and who sent them in `scans`.
"""

from __future__ import annotations

from audit.books_words import ATTEMPT, EDGES, FAILURES, OPERATOR, RETRY_BACKOFF, SUCCESSES, SYSTEM, backoff
from audit.expectations.words import ROWS, STATUSES
from audit.findings import show
from audit.shapes import COUNT, LIST, NAME, POSITIVE, TEXT, TIME, Kind, exactly, holds, is_hex, one_of, optional
from audit.strict_json import Malformed, encode, parse, parse_laid_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.case import Case
    from audit.findings import Note
    from audit.shapes import Shape

LAST = "end"
"""The export that is taken last, after everything."""


def _is_json(value: Any) -> bool:
    """Whether a text is that of a JSON object. Databases keep it as it was written, also characters that are not ASCII."""
    if type(value) is not str:
        return False
    text = value if value.isascii() else "".join([each if each.isascii() else encode(each)[1:-1] for each in value])
    try:
        parse(text.encode("ascii"))
    except Malformed:
        return False
    return True


IDENTITY = Kind("32 lower-case hex digits", lambda value: type(value) is str and len(value) == 32 and is_hex(value))
STATUS = one_of(*STATUSES)
BIT = Kind("0 or 1", lambda value: type(value) is int and value in (0, 1))
JSON = Kind("the text of a JSON object", _is_json)
NOTHING = exactly(None)
FILE: Shape = {
    "format": exactly("halt23.dispatch"), "format_version": exactly(1), "dispatch_outbox": LIST, "status_transitions": LIST,
    "admin_events": LIST,
}  # fmt: skip
ROW: Shape = {
    "id": IDENTITY, "kind": NAME, "deliver_to": NAME, "payload": JSON, "dedup_key": optional(NAME), "status": STATUS,
    "attempt": COUNT, "max_attempts": POSITIVE, "next_attempt_at": TIME, "ack_required": BIT,
    "ack_token": optional(IDENTITY), "session_id": NOTHING, "schedule_run_id": NOTHING, "last_error": optional(TEXT),
    "created_at": TIME, "expires_at": optional(TIME), "updated_at": optional(TIME), "claim_number": COUNT,
    "claimed_at": optional(TIME), "last_error_attempt": optional(POSITIVE), "lane": optional(NAME),
    "lane_position": optional(POSITIVE), "destination": optional(NAME),
}  # fmt: skip
TRANSITION: Shape = {
    "entity_type": exactly("dispatch"), "entity_id": IDENTITY, "previous_status": optional(STATUS), "status": STATUS,
    "reason_code": one_of(*sorted({reason for _, _, reason, _ in EDGES})), "reason_summary": NAME,
    "source": one_of(SYSTEM, OPERATOR), "actor": NAME, "evidence_refs": exactly("[]"), "metadata": JSON, "created_at": TIME,
}  # fmt: skip
EVENT: Shape = {
    "action": NAME, "entity_type": exactly("dispatch"), "entity_id": IDENTITY, "actor": NAME, "details": JSON,
    "created_at": TIME,
}  # fmt: skip
TABLES: dict[str, Shape] = {"dispatch_outbox": ROW, "status_transitions": TRANSITION, "admin_events": EVENT}


def gather(case: Case) -> None:
    """Read the file of every export step, hold it, and count it."""
    steps = [step for step in case.plan["steps"] if step["do"] == "export"]
    expected = case.expectation.exports if case.expectation is not None else None
    names = [step["name"] for step in steps]
    if expected is not None and names != list(expected):
        case.note("steps", f"the protocol has the exports {show(names)}, the audit expects {show(list(expected))}")
    for step in steps:
        name = step["name"]
        path = f"{case.folder}exports/{name}.json"
        case.files.add(path)
        tables = _read(case, path)
        if tables is None:
            continue
        case.exports[name] = tables
        case.rows[name] = counts = count(tables)
        for what, wanted in (
            ("the protocol asks for", tuple(step["rows"][each] for each in ROWS)),
            ("the audit expects", (expected or {}).get(name, counts)),
        ):
            if counts != wanted:
                case.note(path, f"holds {say(counts)}, but {what} {say(wanted)}")
    if names[-1] != LAST or case.plan["steps"][-1]["do"] != "export":
        case.note("steps", f"the last step of a scenario with exports is the export {LAST}")
    end = case.exports.get(LAST)
    if end is not None:
        case.moves = len(end["status_transitions"])
        case.successes = sum(move["reason_code"] in SUCCESSES for move in end["status_transitions"])


def _read(case: Case, path: str) -> dict[str, Any] | None:
    """The tables of one file; None, with findings, where they cannot be worked with."""
    if path not in case.tree.sizes:
        case.note(path, "the export is missing, though a step made it")
        return None
    data = case.tree.read(path)
    if data is None:
        return None
    try:
        document, in_layout = parse_laid_out(data)
    except Malformed as problem:
        case.note(path, f"cannot be read: {problem}")
        return None
    if not in_layout:
        case.note(path, "is not in the study's layout: a line for each member and item, one blank a level")
    if not holds(document, FILE, case.note, f"{path} "):
        return None
    good = [
        holds(row, shape, case.note, f"{path} {table}[{number}]")
        for table, shape in TABLES.items()
        for number, row in enumerate(document[table])
    ]
    if not all(good):
        return None
    _in_order(document["dispatch_outbox"], case.note, path)
    return document


def _in_order(rows: list[dict[str, Any]], note: Note, path: str) -> None:
    """Rows stand in the order of their ids, each once."""
    before = ""
    for number, row in enumerate(rows):
        if row["id"] <= before:
            note(f"{path} dispatch_outbox[{number}].id", f"is {row['id']}, which does not come after {before}")
        before = row["id"]


def count(tables: dict[str, Any]) -> tuple[int, ...]:
    """Rows by status, then attempts, events, and rows with stale data."""
    found = dict.fromkeys(ROWS, 0)
    told: dict[str, list[str]] = {}
    for move in tables["status_transitions"]:
        found["attempts"] += move["reason_code"] == ATTEMPT
        if move["source"] == SYSTEM:
            told.setdefault(move["entity_id"], []).append(move["reason_code"])
    for row in tables["dispatch_outbox"]:
        found[row["status"]] += 1
        found["stale"] += _is_stale(row, told.get(row["id"], []))
    found["events"] = len(tables["admin_events"])
    return tuple(found.values())


def _is_stale(row: dict[str, Any], reasons: list[str]) -> bool:
    """Whether a row has an error of no recorded failure, or is due before its backoff is over.

    `reasons` are those of the transitions that the system wrote.
    """
    if row["last_error"] is not None and not set(reasons) & set(FAILURES):
        return True
    waits = row["status"] == "pending" and row["attempt"] > 0 and reasons[-1:] == [RETRY_BACKOFF]
    return waits and bool(row["next_attempt_at"] < (row["claimed_at"] or 0.0) + backoff(row["attempt"]))


def say(counts: tuple[int, ...]) -> str:
    """What an export holds, in words; what there is none of is left out."""
    told = [f"{number} {name}" for name, number in zip(ROWS, counts, strict=True) if number]
    return ", ".join(told) or "nothing"


def in_words(counts: tuple[int, ...]) -> str:
    """The same as a cell of `tables.md`: rows by status, then events and stale rows; attempts have a cell of their own."""
    found = dict(zip(ROWS, counts, strict=True))
    told = [f"{found[status]} {status}" for status in STATUSES if found[status]]
    if found["events"]:
        told.append(f"{found['events']} event{'s' if found['events'] > 1 else ''}")
    if found["stale"]:
        told.append(f"{found['stale']} stale")
    return ", ".join(told) or "none"
