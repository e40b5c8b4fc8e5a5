"""Where jobs are delivered: a small HTTP receiver, a process of its own, that applies each key once.

It takes any path and any body, because somebody else's worker sends what it sends; a request that changes something is an
arrival, `GET` and `HEAD` only look. The first arrival under a key is applied, the same key with the same body gets the stored
answer again, with another body a conflict (409). What comes without a key is applied as it comes. Effects are in one file, one
record for look-up, effect and answer, so that no death of this process separates them.

The harness is connected, too: it says when a case begins (`begin`, with the fault of this receiver, if any) and is told of each
arrival in the moment in which it is applied. Faults, each once, at the first arrival: `dies` halts with 23 after the effect and
before the answer, `refuses` answers 503 and applies nothing, `hangs-up` applies and closes the connection. After `hold` the
next arrival is applied, and answered when the harness says `go`. As `unkeyed` it ignores keys, as most services do.

    python -m scenarios.targets.destination --port PORT --dir DIR [--unkeyed]
"""

import argparse
import asyncio
import hashlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from receivers.server import listen, tell_ready

EFFECTS = "effects.jsonl"
DIES, REFUSES, HANGS_UP = "dies", "refuses", "hangs-up"
FAULTS = (DIES, REFUSES, HANGS_UP)
HOLDS = "holds"
CONTROL = b"HALT23 CONTROL\n"
HALT_EXIT_CODE = 23
REFUSED_STATUS = 503
_MAX_HEAD_BYTES, _MAX_BODY_BYTES = 1 << 16, 1 << 22
_LOOKS = ("GET", "HEAD", "OPTIONS")
JOB = re.compile(r"halt23-(?:job|canary)-\d+")


class Book:
    """The effects of one case, on the disk before anybody is answered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)
        self._answers: dict[str, tuple[str, int]] = {}
        self._count = 0
        for line in path.read_bytes().splitlines():
            self._remember(json.loads(line))

    def _remember(self, record: Mapping[str, Any]) -> None:
        self._count += 1
        if record["key"] is not None:
            self._answers.setdefault(record["key"], (record["sha256"], self._count))

    def apply(self, key: str | None, body: bytes, *, keyed: bool) -> tuple[int, int]:
        """Status and number of the effect."""
        digest = hashlib.sha256(body).hexdigest()
        known = self._answers.get(key) if keyed and key is not None else None
        if known is not None:
            return (200 if known[0] == digest else 409), known[1]
        record = {"key": key, "sha256": digest}
        self._file.write(json.dumps(record).encode() + b"\n")
        self._remember(record)
        return 200, self._count

    def clear(self) -> None:
        """Begin anew."""
        os.ftruncate(self._file.fileno(), 0)
        self._answers, self._count = {}, 0

    def close(self) -> None:
        """Close its file."""
        self._file.close()

    @property
    def count(self) -> int:
        """How many effects there are."""
        return self._count


class Destination:
    """One receiver: its book, its fault, and who is told."""

    def __init__(self, directory: Path) -> None:
        self.book = Book(directory / EFFECTS)
        self.fault: str | None = None
        self.keyed = True
        self._told: asyncio.StreamWriter | None = None
        self._going = asyncio.Event()
        self._going.set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, the harness's or a worker's."""
        try:
            first = await reader.readline()
            if first == CONTROL:
                await self._controlled(reader, writer)
            else:
                while first.strip() and await self._request(first, reader, writer):
                    first = await reader.readline()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # who hung up in the middle has sent nothing
        finally:
            writer.close()

    async def _controlled(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._told = writer
        writer.write(b'{"event":"connected"}\n')
        while line := await reader.readline():
            asked = json.loads(line)
            if asked["do"] == "begin":
                self.book.clear()
                self.fault, self.keyed = asked.get("fault"), asked.get("keyed", True)
                self._going.set()
            elif asked["do"] == "hold":
                self.fault = HOLDS
                self._going.clear()
            elif asked["do"] == "go":
                self.fault = None if self.fault == HOLDS else self.fault
                self._going.set()
            self._tell({"event": asked["do"], "effects": self.book.count})

    def _tell(self, event: Mapping[str, Any]) -> None:
        if self._told is not None:
            self._told.write(json.dumps(event).encode() + b"\n")  # the transport sends at once what the socket takes

    async def _request(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; whether the connection goes on."""
        method, path, version = first.decode("latin-1").split()
        headers: dict[str, list[str]] = {}
        size = len(first)
        while (line := await reader.readline()).strip():
            size += len(line)
            if size > _MAX_HEAD_BYTES or not line.endswith(b"\n"):
                return False
            name, _, value = line.decode("latin-1").partition(":")
            headers.setdefault(name.strip().lower(), []).append(value.strip())
        if not line:
            return False  # it ended in the middle of the head
        if "100-continue" in headers.get("expect", [""])[0].lower():
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await _body(reader, headers)
        going_on = version == "HTTP/1.1" and "close" not in headers.get("connection", [""])[0].lower()
        status: int | None
        if method in _LOOKS:
            status, answer = 200, {"effects": self.book.count}
        else:
            held = self.fault == HOLDS
            status, answer = self._arrived(method, path, headers, body)
            if held:
                await self._going.wait()
        if status is None:
            writer.transport.abort()
            return False
        text = b"" if method == "HEAD" else json.dumps(answer).encode()
        writer.write(
            f"HTTP/1.1 {status} {'OK' if status == 200 else 'No'}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(text)}\r\nConnection: {'keep-alive' if going_on else 'close'}\r\n\r\n".encode()
            + text
        )
        await writer.drain()
        return going_on

    def _arrived(
        self, method: str, path: str, headers: Mapping[str, Sequence[str]], body: bytes
    ) -> tuple[int | None, dict[str, Any]]:
        """Apply one arrival and tell of it; the answer, or no status where there is to be none."""
        fault, self.fault = self.fault, None
        keys = headers.get("idempotency-key", [])
        key = keys[0] if keys and keys[0] else None
        status: int | None
        number = 0
        if fault == REFUSES:
            status = REFUSED_STATUS
        else:
            status, number = self.book.apply(key, body, keyed=self.keyed)
        if fault in (DIES, HANGS_UP):
            status = None
        # Whose answer is held back is killed, and never has it.
        told = {"job": job_of(body, key, path), "key": key, "status": None if fault == HOLDS else status}
        told |= {"method": method, "path": path}
        self._tell({"event": "arrival", "monotonic": time.monotonic(), **told})
        if fault == DIES:
            os.write(2, b"halt(23) at receiver:dies, between the effect and its answer\n")
            os._exit(HALT_EXIT_CODE)
        if status == REFUSED_STATUS:
            return status, {"error": "come again later; nothing was done"}
        return status, {"answer": "done", "number": number} if status != 409 else {"error": "this key had another body"}


def job_of(body: bytes, key: str | None, path: str) -> str | None:
    """Which job an arrival is: by its name in the body, else in the key, else in the path."""
    for text in (body.decode("utf-8", "replace"), key or "", path):
        found = JOB.search(text)
        if found:
            return found[0]
    return None


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, Sequence[str]]) -> bytes:
    """The body of a request. Raises IncompleteReadError, and ValueError for one that is too large or malformed."""
    if "chunked" in headers.get("transfer-encoding", [""])[0].lower():
        parts = b""
        while size := int((await reader.readline()).partition(b";")[0], 16):
            if len(parts) + size > _MAX_BODY_BYTES:
                raise ValueError("too large")
            parts += await reader.readexactly(size)
            await reader.readline()
        while (await reader.readline()).strip():
            pass
        return parts
    size = int(headers.get("content-length", ["0"])[0])
    if not 0 <= size <= _MAX_BODY_BYTES:
        raise ValueError("too large")
    return await reader.readexactly(size)


async def serve(port: int, directory: Path, *, keyed: bool) -> None:
    """Serve until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    listener = listen(port)
    destination = Destination(directory)
    destination.keyed = keyed
    server = await asyncio.start_server(destination.connected, sock=listener, limit=_MAX_HEAD_BYTES)
    tell_ready(listener)
    await stopped.wait()
    server.close()
    destination.book.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.targets.destination")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--unkeyed", action="store_true")
    arguments = parser.parse_args(argv)
    asyncio.run(serve(arguments.port, arguments.dir, keyed=not arguments.unkeyed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
