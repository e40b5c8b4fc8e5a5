"""The readers of the subjects' durable states: journals on the sender's side, a database on it, and the receiver's journals."""

import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from outbox.dispatch.edges import (
    ACK_TIMEOUT,
    ACTIVE,
    ATTEMPT,
    CONSUMER,
    DEAD_LETTER,
    EXPIRED,
    PENDING,
    STATUSES,
    TRANSPORT_OK,
)
from outbox.sqlite_choice import choose
from scenarios.explore.causes import (
    changed_bodies,
    changed_routes,
    history_of_nothing,
    moves_without_cause,
    overtaken,
    receipts_of_nothing,
    requests_of_nobody,
)
from scenarios.explore.state import Lines, Place, State, counted, digest_of, in_words, lines_of, reading

SENDER, RECEIVER = "outbox", "receiver"
_RECEIPTS = (TRANSPORT_OK, ACK_TIMEOUT, CONSUMER)
_ACKNOWLEDGED = (ACK_TIMEOUT, CONSUMER)
DATABASE = "the database"


def read_journals(place: Place) -> State:
    """The state of a sender that keeps journals."""
    return _journals_state(tuple(_contents(place.directory).items()))


# A case is looked at when somebody died, when a round is over and at its end, and cases often end alike.
@lru_cache(maxsize=32)
def _journals_state(files_of_both: tuple[tuple[str, bytes], ...]) -> State:
    contents = dict(files_of_both)
    intentions, attempts, receipts, history = (
        _lines(contents, SENDER, name) for name in ("intentions", "attempts", "receipts", "history")
    )
    effects, arrivals = _receiver(contents)
    files = [intentions, attempts, receipts, history, effects, arrivals]
    have = {record["id"] for record in receipts.of_type("receipt")}
    done = {record["id"] for record in history.of_type("history")}
    intended = [record["id"] for record in intentions.of_type("intention")]
    unfinished = [f"{key} has no receipt" for key in intended if key not in have]
    # A receipt without a result, a mere mark, makes no history record possible.
    answered = {record["id"] for record in receipts.of_type("receipt") if record["data"].get("result") is not None}
    unfinished += [f"{key} has no history record" for key in intended if key in answered and key not in done]
    sender = {
        "intention": len(intended),
        "attempt": len(attempts.of_type("attempt")),
        "receipt": len(receipts.of_type("receipt")),
        "history record": len(history.of_type("history")),
    }
    bodies = {each["id"]: str(each["data"].get("fingerprint")) for each in intentions.of_type("intention")}
    routes = {each["id"]: str(each["data"].get("route")) for each in intentions.of_type("intention")}
    order = _operations(effects, bodies)
    turns = counted(record["id"] for record in history.of_type("history"))
    return State(
        digest=digest_of(contents),
        effects=counted(order),
        receipts=counted(record["id"] for record in receipts.of_type("receipt")),
        history=turns,
        arrivals=len(arrivals.of_type("arrival")),
        attempts=len(attempts.of_type("attempt")),
        unfinished=tuple(unfinished),
        ended={},
        uncaused=(
            *_of_receiver(effects, order, arrivals, bodies, routes),
            *receipts_of_nothing(receipts.of_type("receipt"), effects.of_type("effect"), order),
            *history_of_nothing(history.of_type("history"), receipts.of_type("receipt"), intentions.of_type("intention")),
        ),
        repeated=tuple(f"{key} has {count} history records" for key, count in turns.items() if count > 1),
        torn=tuple(each.name for each in files if each.torn_bytes),
        damaged=tuple(each.name for each in files if each.damaged_lines),
        told=_told(sender, effects, arrivals, files),
        intended=tuple(intended),
        contents=contents,
    )


def read_database(place: Place, unfinished: Collection[str] = ACTIVE) -> State:
    """The state of a dispatch outbox in its database. Rows of a status among `unfinished` are still somebody's work."""
    address = place.database
    if address is None:
        return _database_state(place.directory, place.tables or {}, unfinished)
    read = _from_postgres if address.startswith("postgresql") else _from_sqlite
    with reading(DATABASE):
        tables = read(address)
    return _database_state(place.directory, tables, unfinished)


def unfinished_statuses(read: Callable[..., State]) -> list[str]:
    """The statuses whose rows are still somebody's work for a reader of databases, in the order of the table's."""
    chosen = read.keywords.get("unfinished", ACTIVE) if isinstance(read, partial) else ACTIVE
    return [status for status in STATUSES if status in chosen]


_TABLES = ("dispatch_outbox", "status_transitions", "admin_events")
Tables = Mapping[str, list[dict[str, Any]]]


def _from_sqlite(path: str) -> Tables:
    if not Path(path).exists():
        return {}
    with contextlib.closing(choose().module.connect(path, isolation_level=None)) as connection:
        known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return _tables(connection, known)


def _from_postgres(url: str) -> Tables:
    import psycopg  # noqa: PLC0415 - an extra that most runs do without
    from psycopg.types.json import set_json_loads  # noqa: PLC0415 - as above

    with psycopg.connect(url) as connection:
        set_json_loads(lambda stored: stored if isinstance(stored, str) else stored.decode(), connection)  # as it is stored
        known = {name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
        return _tables(connection, known)


def _tables(connection: Any, known: Collection[str]) -> Tables:
    """The rows of those tables that are there. Numbers that the database chose are left out."""
    found = {}
    for table in _TABLES:
        if table in known:
            rows = _rows(connection.execute(f"SELECT * FROM {table} ORDER BY id"))  # noqa: S608 - a name of ours
            found[table] = rows if table == "dispatch_outbox" else [{k: v for k, v in row.items() if k != "id"} for row in rows]
    return found


def _rows(cursor: Any) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _database_state(root: Path, tables: Tables, unfinished: Collection[str]) -> State:
    rows, moves = tables.get("dispatch_outbox", []), tables.get("status_transitions", [])
    contents = _contents(root)
    effects, arrivals = _receiver(contents)
    bodies = {row["id"]: hashlib.sha256(row["payload"].encode()).hexdigest() for row in rows}
    order = _operations(effects, bodies)
    told = json.dumps(tables, sort_keys=True, separators=(",", ":")).encode() + digest_of(contents).encode()
    sender = {"row": len(rows), "transition": len(moves)}
    status = ", ".join(f"{row['status']} (attempt {row['attempt']})" for row in rows)
    return State(
        digest=hashlib.sha256(told).hexdigest(),
        effects=counted(order),
        receipts=_receipts(rows, moves),
        history=counted(move["entity_id"] for move in moves),
        arrivals=len(arrivals.of_type("arrival")),
        attempts=sum(move["reason_code"] == ATTEMPT for move in moves),
        ended={row["id"]: row["status"] for row in rows if row["status"] in (DEAD_LETTER, EXPIRED)},
        uncaused=(
            *_of_receiver(
                effects, order, arrivals, _lasting(bodies, moves), {row["id"]: _path(row["deliver_to"]) for row in rows}
            ),
            *moves_without_cause(rows, moves),
            *overtaken(rows, order),
        ),
        unfinished=tuple(f"{row['id']} is {row['status']}" for row in rows if row["status"] in unfinished),
        torn=tuple(each.name for each in (effects, arrivals) if each.torn_bytes),
        damaged=tuple(each.name for each in (effects, arrivals) if each.damaged_lines),
        told=_told(sender, effects, arrivals, [effects, arrivals]) + (f"; {status}" if status else ""),
        intended=tuple(row["id"] for row in rows),
        contents=contents,
        tables=tables,
    )


def _receipts(rows: list[dict[str, Any]], moves: list[dict[str, Any]]) -> dict[str, int]:
    """Recorded successes by dispatch. Of one that waits for an acknowledgement a success says nothing yet: the acknowledgement
    does, or that none has come after the last attempt, and either is enough."""
    asking = {row["id"] for row in rows if row["ack_required"]}
    # Of a row that is gone this move tells: sent, and not done.
    asking |= {move["entity_id"] for move in moves if (move["status"], move["reason_code"]) == (PENDING, TRANSPORT_OK)}
    counts = counted(
        move["entity_id"]
        for move in moves
        if move["reason_code"] in (_ACKNOWLEDGED if move["entity_id"] in asking else _RECEIPTS)
    )
    return {key: min(count, 1) if key in asking else count for key, count in counts.items()}


def _lasting(bodies: Mapping[str, str], moves: list[dict[str, Any]]) -> dict[str, str]:
    """Those of the dispatches that were enqueued once: whose row was deleted and made anew had another body before."""
    enqueued = counted(move["entity_id"] for move in moves if move["previous_status"] is None)
    return {key: body for key, body in bodies.items() if enqueued.get(key, 0) < 2}


def _path(route: str) -> str:
    """What a receiver sees of a route that is a URL."""
    _scheme, found, rest = route.partition("://")
    return f"/{rest.partition('/')[2].partition('#')[0]}" if found else route


def _receiver(contents: Mapping[str, bytes]) -> tuple[Lines, Lines]:
    return _lines(contents, RECEIVER, "effects"), _lines(contents, RECEIVER, "arrivals")


def _lines(contents: Mapping[str, bytes], side: str, name: str) -> Lines:
    return lines_of(f"{name}.jsonl", contents.get(f"{side}/{name}.jsonl", b""))


def _contents(root: Path) -> dict[str, bytes]:
    contents = {}
    for side in (SENDER, RECEIVER):
        for path in sorted((root / side).glob("*.jsonl")):
            with reading(name := f"{side}/{path.name}"):
                contents[name] = path.read_bytes()
    return contents


def _of_receiver(
    effects: Lines, order: list[str], arrivals: Lines, bodies: Mapping[str, str], routes: Mapping[str, str]
) -> Iterator[str]:
    """What came to the receiver, and was not sent so: `bodies` and `routes` are those of the operations."""
    by_body = {body: key for key, body in bodies.items()}
    yield from requests_of_nobody(arrivals.of_type("arrival"))
    yield from changed_routes(arrivals.of_type("arrival"), routes, by_body)
    yield from changed_bodies(effects.of_type("effect"), order, bodies)


def _operations(effects: Lines, bodies: Mapping[str, str]) -> list[str]:
    """The operation of each effect: whose body it was, whatever key came with it, and else whose key. An effect that tells
    neither is one all the same, of nobody's operation."""
    by_fingerprint = {body: key for key, body in bodies.items()}
    told = ((record, record["data"].get("fingerprint"), record["data"].get("key")) for record in effects.of_type("effect"))
    return [by_fingerprint.get(str(body)) or str(key or body or record["id"]) for record, body, key in told]


def _told(sender: Mapping[str, int], effects: Lines, arrivals: Lines, files: list[Lines]) -> str:
    receiver = {
        "arrival": len(arrivals.of_type("arrival")),
        "effect": len(effects.of_type("effect")),
        "answer": len(arrivals.of_type("answer")),
    }
    torn = [f"{each.name} ends in {each.torn_bytes} torn bytes" for each in files if each.torn_bytes]
    torn += [f"{each.name} has {each.damaged_lines} damaged lines" for each in files if each.damaged_lines]
    return "; ".join([f"sender: {in_words(sender)}", f"receiver: {in_words(receiver)}", *torn])
