"""Talking to a receiver as any client would, and reading what it has kept on the disk by the contract of evidence/README.md."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import ProcessBox, Running

BOUND_SECONDS = 20.0
KEY = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
Headers = Sequence[tuple[str, str | bytes]]


class Response(NamedTuple):
    """One response; `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def replayed(self) -> str | None:
        """The header that marks a replay, None where it is absent."""
        return self.headers.get(REPLAYED.lower())


def read_response(connection: socket.socket, method: str = "POST") -> Response:
    """Read one response from a raw connection."""
    with closing(http.client.HTTPResponse(connection, method=method)) as response:
        response.begin()
        body = response.read()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, headers, body)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=BOUND_SECONDS)


def head(method: str, path: str, headers: Headers) -> bytes:
    """The bytes of a request up to its body."""
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: 127.0.0.1"]
    for name, value in headers:
        lines.append(name.encode() + b": " + (value if isinstance(value, bytes) else value.encode()))
    return b"\r\n".join([*lines, b"", b""])


class Receiver:
    """A receiver process, its directory, and a client for it."""

    def __init__(
        self, box: ProcessBox, directory: Path, kind: str = "keyed", port: int = 0, halt_at: str | None = None
    ) -> None:
        environment = {"HALT_AT": halt_at} if halt_at else {}
        arguments = (kind, "--dir", str(directory), "--port", str(port))
        self.directory = directory
        self.process: Running = box.start("receivers", arguments, environment)
        self.port = self.process.port

    def request(self, method: str, path: str, headers: Headers = (), body: bytes | None = None) -> Response:
        """One request on a connection of its own. Headers are sent as they are, also twice."""
        if body is not None:
            headers = [*headers, ("Content-Length", str(len(body)))]
        with closing(connect(self.port)) as connection:
            connection.sendall(head(method, path, headers) + (body or b""))
            return read_response(connection, method)

    def post(self, body: bytes, key: str | bytes | None = None, path: str = "/operations") -> Response:
        return self.request("POST", path, [] if key is None else [(KEY, key)], body)

    def effects(self) -> Any:
        """What `GET /effects` says."""
        response = self.request("GET", "/effects")
        assert response.status == 200
        return response.json

    def arrivals(self) -> list[dict[str, Any]]:
        return [record["data"] for record in records(self.directory, "arrivals") if record["type"] == "arrival"]

    def answers(self) -> list[tuple[str, str | None, int]]:
        """Outcome, reason and status of every answer, in order."""
        answers = [record["data"] for record in records(self.directory, "arrivals") if record["type"] == "answer"]
        return [(each["outcome"], each["reason"], each["status"]) for each in answers]


def records(directory: Path, name: str) -> list[dict[str, Any]]:
    """The complete records of a journal, each checked against its sum and the record before it."""
    path = directory / f"{name}.jsonl"
    previous = hashlib.sha256(f"halt23 journal 1 {name}".encode()).hexdigest()
    found: list[dict[str, Any]] = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        record = json.loads(line)
        covered = line.split(b",", 1)[1]
        assert record["sha256"] == hashlib.sha256(covered).hexdigest()
        assert (record["previous"], record["sequence"]) == (previous, len(found) + 1)
        previous = record["sha256"]
        found.append(record)
    return found


def is_complete(directory: Path, name: str) -> bool:
    """Whether the journal ends with a complete record."""
    content = (directory / f"{name}.jsonl").read_bytes()
    return content in (b"", content.rstrip(b"\n") + b"\n")


def fingerprint(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def result(number: int) -> bytes:
    """The result of the effect with this number, as the contract gives it."""
    return b'{"answer":"The counter is now %d.","counter":%d}' % (number, number)
