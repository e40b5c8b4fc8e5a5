"""Producers of dispatches: `enqueue` and `revive`, followed word for word.

A row and its first transition are written together. Under a deduplication key that a row has already nothing is written, and
the id of that row is the answer, also where another producer commits it between the look for the key and the insert. The
payload is the text that every attempt will send; it is made here and never again.
"""

from __future__ import annotations

from audit.books_tables import BadInput
from audit.books_text import Arguments, Unknown, is_identity, text_of
from audit.books_words import ENQUEUED, PENDING, REVIVAL_SECONDS
from audit.findings import show
from audit.strict_json import Malformed, encode, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from audit.books_play import Process
    from audit.books_tables import Program, Row, Transaction

ACTOR = "enqueue_dispatch"
ENVELOPE = "outbox.dispatch.signal.DispatchSignal"
PORTS = {"http": "80", "https": "443"}
MOST_ATTEMPTS = 8


def enqueue(process: Process, given: list[str]) -> Program[int]:
    """Enqueue a dispatch under each id."""
    options = ("--db", "--now", "--to", "--kind", "--body", "--dedup-key", "--ack-token", "--max-attempts", "--expires-at")
    arguments = Arguments(given, (*options, "--lane"))
    at, attempts = arguments.moment("--now"), arguments.number("--max-attempts")
    body = _body(arguments.get("--body") or "{}")
    yield from process.database.open(process, create=True)
    for identity in arguments.rest:
        row = new_row(
            identity,
            arguments.get("--kind") or "study",
            arguments.get("--to") or "",
            body,
            at=at,
            dedup_key=arguments.get("--dedup-key"),
            ack_token=arguments.get("--ack-token"),
            max_attempts=MOST_ATTEMPTS if attempts is None else int(attempts),
            expires_at=arguments.number("--expires-at"),
            lane=arguments.get("--lane"),
        )
        process.say((yield from _written(process, row)))
    return 0


def revive(process: Process, given: list[str]) -> Program[int]:
    """Enqueue a heartbeat to each seat; the ids are told when all are there."""
    arguments = Arguments(given, ("--db", "--now", "--reset-epoch"))
    at, epoch = arguments.moment("--now"), arguments.moment("--reset-epoch")
    seats = {seat: identity for seat, _mark, identity in [each.rpartition("=") for each in arguments.rest]}
    yield from process.database.open(process, create=True)
    said = []
    for seat, identity in seats.items():
        row = new_row(
            identity,
            "revival_ping",
            seat,
            {"seat": seat, "reset_epoch": epoch},
            at=at,
            dedup_key=f"revival:{seat}:{epoch}",
            expires_at=epoch + REVIVAL_SECONDS if epoch else None,
        )
        said.append((yield from _written(process, row)))
    for identity in said:
        process.say(identity)
    return 0


def _body(text: str) -> dict[str, Any]:
    escaped = "".join(each if each.isascii() else encode(each)[1:-1] for each in text)
    try:
        return parse(escaped.encode("ascii"))
    except Malformed:
        raise Unknown(f"the body {show(text)} is no object in JSON") from None


def new_row(
    identity: str,
    kind: str,
    route: str,
    body: dict[str, Any],
    *,
    at: float,
    dedup_key: str | None = None,
    ack_token: str | None = None,
    max_attempts: int = MOST_ATTEMPTS,
    expires_at: float | None = None,
    lane: str | None = None,
) -> Row:
    """The row of a new dispatch, all members in the order of the columns."""
    if not is_identity(identity) or not (ack_token is None or is_identity(ack_token)):
        raise BadInput
    if not kind or not route or max_attempts < 1:
        raise BadInput
    payload = {
        "id": "-".join([identity[:8], identity[8:12], identity[12:16], identity[16:20], identity[20:]]),
        "created_at": at,
        "metadata": {"lion_class": ENVELOPE},
        "data": None,
        "emitter_role": None,
        "schema_version": 1,
        "dispatch_id": identity,
        "kind": kind,
        "deliver_to": route,
        "attempt": 0,
        "ack_token": ack_token,
        "body": body,
    }
    return {
        "id": identity,
        "kind": kind,
        "deliver_to": route,
        "payload": text_of(payload),
        "dedup_key": dedup_key,
        "status": PENDING,
        "attempt": 0,
        "max_attempts": max_attempts,
        "next_attempt_at": at,
        "ack_required": int(ack_token is not None),
        "ack_token": ack_token,
        "session_id": None,
        "schedule_run_id": None,
        "last_error": None,
        "created_at": at,
        "expires_at": expires_at,
        "updated_at": None,
        "claim_number": 0,
        "claimed_at": None,
        "last_error_attempt": None,
        "lane": lane,
        "lane_position": None,
        "destination": _destination(route),
    }


def _destination(route: str) -> str | None:
    """The origin of a URL; None for what goes by the command."""
    scheme, mark, rest = route.partition("://")
    if not mark or scheme.lower() not in PORTS:
        return None
    host, _colon, port = host_of(rest).partition(":")
    return f"{scheme}://{host}:{port or PORTS[scheme.lower()]}".lower()


def host_of(rest: str) -> str:
    """Host and port of what follows the `://` of a URL."""
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    return rest


def _written(process: Process, row: Row) -> Program[str]:
    """The id under which the dispatch is in the tables afterwards."""

    def work(tables: Transaction) -> Program[str]:
        while True:
            known = _known(tables, row["dedup_key"])
            if known is not None:
                return known
            if row["dedup_key"] is not None:
                yield "dispatch.enqueue.looked"
            if (yield from _inserted(tables, row)):
                break
            tables.look()  # another producer committed the key meanwhile
        summary = f"enqueued kind={row['kind']}"
        tables.record(row["id"], None, PENDING, reason=ENQUEUED, actor=ACTOR, summary=summary, at=row["created_at"])
        yield "dispatch.enqueue.written"
        return str(row["id"])

    yield "dispatch.enqueue.before"
    identity = yield from process.database.write(process, work)
    yield "dispatch.enqueue.committed"
    return identity


def _known(tables: Transaction, key: str | None) -> str | None:
    """The id of the row that has the key already."""
    return next((each["id"] for each in tables.rows.values() if key is not None and each["dedup_key"] == key), None)


def _inserted(tables: Transaction, row: Row) -> Program[bool]:
    """Write the row; False where its key was taken since it was looked for."""
    if row["expires_at"] is not None and row["expires_at"] <= row["created_at"]:
        raise BadInput
    if row["lane"] is not None:
        yield from tables.lock(f"lane {row['lane']}")
        places = [each["lane_position"] for each in tables.rows.values() if each["lane"] == row["lane"]]
        row["lane_position"] = max(places, default=0) + 1
    return (yield from tables.insert(row))
