"""The agreement kept, in the standard library alone: key, fingerprint, effect and response are one commit.

No death can separate the four, so that a retry finds all of them or none. What the IETF draft asks for besides: no key 400,
another request under a known key 422, a duplicate while its key is being worked on 409. Keys are kept for ever. JSON whose
members come in another order is the same request.
"""

import argparse
import contextlib
import decimal
import hashlib
import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MAX_KEY_CHARACTERS = 255
MAX_BODY_BYTES = 1024 * 1024

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--dir", type=Path, required=True)
OPTIONS = parser.parse_args()
DATABASE = OPTIONS.dir / "app.db"

Answer = tuple[int, bytes]


def connect() -> contextlib.closing[sqlite3.Connection]:
    """The database; transactions are begun and ended by hand."""
    return contextlib.closing(sqlite3.connect(DATABASE, timeout=30, isolation_level=None))


def prepare() -> None:
    """Create the tables: one row in `effects` is one effect, one in `failed` a name that has failed once."""
    with connect() as database:
        database.execute("create table if not exists effects (number integer primary key, body blob)")
        database.execute("create table if not exists failed (name text primary key)")
        columns = "key text primary key, fingerprint text, status integer, body blob"
        database.execute(f"create table if not exists answers ({columns})")


def problem(status: int, message: str) -> Answer:
    """An answer that changed nothing."""
    return status, json.dumps({"error": message}).encode()


class InFlight:
    """The keys that are being worked on, with the request that each was sent with; forgotten with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[str, str] = {}

    def enter(self, key: str, fingerprint: str) -> str | None:
        """Take the key, or tell the fingerprint of the request that has it."""
        with self._lock:
            holder = self._requests.get(key)
            if holder is None:
                self._requests[key] = fingerprint
            return holder

    def leave(self, key: str) -> None:
        """Give the key up."""
        with self._lock:
            del self._requests[key]


IN_FLIGHT = InFlight()


class Handler(BaseHTTPRequestHandler):
    """POST /operations."""

    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        """Answer one request; the connection is closed where its body was not read. Whoever has gone is told nothing."""
        status, body = self.answer()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        with contextlib.suppress(ConnectionError):
            self.end_headers()
            self.wfile.write(body)

    def answer(self) -> Answer:
        """What to tell the sender; an effect has been committed when this says that there is one."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            return problem(413 if length.isdigit() else 411, "expected a body with its length, up to 1 MiB")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return problem(400, "the connection ended in the middle of the body")
        if self.path != "/operations":
            return problem(404, "there is only /operations")
        keys = self.headers.get_all("Idempotency-Key", [])
        if len(keys) != 1 or not 1 <= len(keys[0]) <= MAX_KEY_CHARACTERS or not all("!" <= c <= "~" for c in keys[0]):
            return problem(400, f"expected one Idempotency-Key of 1 to {MAX_KEY_CHARACTERS} visible ASCII characters")
        fingerprint = hashlib.sha256(told(body)).hexdigest()
        holder = IN_FLIGHT.enter(keys[0], fingerprint)
        if holder is not None:
            return in_flight() if holder == fingerprint else differs()
        try:
            return self.apply_once(keys[0], fingerprint, body)
        finally:
            IN_FLIGHT.leave(keys[0])

    def apply_once(self, key: str, fingerprint: str, body: bytes) -> Answer:
        """The stored answer, or the effect with its answer in one transaction."""
        with connect() as database:
            known = find(database, key, fingerprint)
            if known is not None:
                return known
            if self.fails(database):
                return problem(500, "this request asked for one failure")
            database.execute("begin immediate")
            known = find(database, key, fingerprint)  # again: another process may share the file
            if known is not None:
                return known
            number = database.execute("insert into effects (body) values (?)", [body]).lastrowid
            answer = 201, json.dumps({"number": number}).encode()
            database.execute("insert into answers values (?, ?, ?, ?)", [key, fingerprint, *answer])
            database.execute("commit")
            return answer

    def fails(self, database: sqlite3.Connection) -> bool:
        """Whether the sender asked for one failure under a name that has not failed yet."""
        name = self.headers.get("X-Fail-Once")
        return name is not None and database.execute("insert or ignore into failed values (?)", [name]).rowcount == 1

    def log_message(self, *_arguments: object) -> None:
        """Say nothing of requests."""


def told(body: bytes) -> bytes:
    """What tells one request from another: JSON with the members of its objects in order, or the bytes of anything else."""
    try:
        data = json.loads(body, object_pairs_hook=ordered, parse_float=decimal.Decimal)
    except (ValueError, RecursionError):
        return body
    return repr(data).encode()


def ordered(members: list[tuple[str, object]]) -> tuple[tuple[str, object], ...]:
    """An object: a tuple, which no array is; a member that comes twice stays twice."""
    return tuple(sorted(members, key=lambda member: member[0]))


def find(database: sqlite3.Connection, key: str, fingerprint: str) -> Answer | None:
    """What a request under a known key is told; None for a key that is not known."""
    row = database.execute("select fingerprint, status, body from answers where key = ?", [key]).fetchone()
    if row is None:
        return None
    return (row[1], row[2]) if row[0] == fingerprint else differs()


def differs() -> Answer:
    """The answer to another request under a known key."""
    return problem(422, "this key was used with another body; nothing was done")


def in_flight() -> Answer:
    """The answer to a duplicate that came too early."""
    return problem(409, "a request under this key is being worked on; come again")


class Server(ThreadingHTTPServer):
    """A thread for each connection; as many wait to be accepted as a crowd of duplicates needs."""

    request_queue_size = 128
    daemon_threads = True


prepare()
Server(("127.0.0.1", OPTIONS.port), Handler).serve_forever()
