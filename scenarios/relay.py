"""A relay between sender and receiver that breaks chosen exchanges at chosen places. An instrument, not under study.

    python -m scenarios.relay --dir DIR --port PORT --upstream http://127.0.0.1:PORT [--fault CONNECTION:NAME[:PLACE] …]

Connections are counted from 1 in the order in which they are accepted; each carries one request. What was done to it is
recorded in the journal `exchanges`. The relay never waits for time to pass: it reads whole messages, cuts them, and waits for
the other side's end. Prints READY as the receivers do. Exit codes: 0 stopped by SIGTERM or SIGINT, 2 bad input, 13 another
relay owns DIR, 14 damaged journal, 16 the machine refused.
"""

import argparse
import asyncio
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from outbox import journal
from outbox.errors import BadInput, reported
from outbox.transport import loopback_url
from receivers.server import listen, tell_ready
from scenarios.wire import PLAIN, Fault, parse, split_at

EXCHANGES = journal.declare("exchanges", "exchange", under_study=False)
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
SUCCESS = b"HTTP/1.1 2"


@dataclass(frozen=True, slots=True)
class Exchange:
    """Bytes of one exchange: of the request as sent, what of it went on, of the response as received, what of it went back."""

    request: int
    request_forwarded: int
    response: int
    response_forwarded: int


class Relay:
    """Carries requests to `upstream` and responses back, and does `faults` to the connections that they name."""

    def __init__(self, directory: Path, upstream: str, faults: Mapping[int, Fault]) -> None:
        journal.make_directory(directory)
        self._journal = EXCHANGES.open(directory)
        self._upstream = upstream
        self._faults = faults
        self._connections = sum(1 for _ in EXCHANGES.read(directory))
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Give the journal up."""
        self._journal.close()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin to serve one connection of a sender."""
        task = asyncio.get_running_loop().create_task(self._serve(self._next(), reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _next(self) -> int:
        """The number of the next exchange: that of its connection, where each has one of its own."""
        self._connections += 1
        return self._connections

    async def _serve(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry the exchanges of one connection: one, or as many as a sender that keeps it open asks for."""
        fault, begun = self._faults.get(number, PLAIN), b""
        try:
            while await self._carry(number, fault, begun, reader, writer):
                # It ends where the next request would begin: a sender that has just got all must not meet an end by chance.
                begun = await reader.read(1)
                if not begun or fault.place is not None:
                    break
                number = self._next()
                fault = self._faults.get(number, PLAIN)
        except ConnectionError:
            pass  # the sender has gone
        finally:
            _end(writer, reset=fault.reset)

    async def _carry(
        self, number: int, fault: Fault, begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Carry one exchange, of whose request `begun` was read already; whether the sender may ask for another one."""
        back, stays_open = await self._exchange(number, fault, begun, reader)
        if fault.hold:
            await reader.read()  # until the sender has given up
        writer.write(back)
        await writer.drain()
        return stays_open

    async def finish(self) -> None:
        """End the connections that are still served."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _exchange(self, number: int, fault: Fault, begun: bytes, reader: asyncio.StreamReader) -> tuple[bytes, bool]:
        """Read the request, send on what the fault lets through, record it all whatever happens; returns what the sender gets,
        and whether its connection outlives that."""
        request = forwarded = response = back = b""
        try:
            request = begun + await _read_message(reader)
            forwarded = _part(request, fault, "request")
            for _ in range(fault.times):
                response = await self._upstream_exchange(forwarded) or response
            back = self._back(request, response, forwarded, fault)
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            forwarded = b""  # a sender that left, or spoke no HTTP: nothing was sent on
        finally:
            exchange = Exchange(len(request), len(forwarded) if fault.times else 0, len(response), len(back))
            self._record(number, fault, exchange)
        return back, bool(back) and back == response and _keeps_open(request)

    def _back(self, request: bytes, response: bytes, forwarded: bytes, fault: Fault) -> bytes:
        # What is made unreadable is a success that was given: whoever has none to spoil does not invent one.
        if fault.answer is not None and (fault.times == 0 or response.startswith(SUCCESS)):
            return fault.answer.replace(b"{upstream}", self._upstream.encode())
        if fault.hold or (fault.side == "request" and fault.place is not None):
            return b""  # a request that was broken off gets no answer, even if it had reached the receiver whole
        return _part(response, fault, "response")

    async def _upstream_exchange(self, request: bytes) -> bytes:
        if not request:
            return b""
        parts = urlsplit(self._upstream)
        try:
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
        except ConnectionError:
            return b""
        try:
            writer.write(request)
            if _is_partial(request):
                writer.write_eof()
            if _keeps_open(request):
                return await _read_message(reader)
            return await reader.read()  # to its end: by then the receiver has done what it does
        except (ConnectionError, asyncio.IncompleteReadError):
            return b""
        finally:
            writer.close()

    def _record(self, number: int, fault: Fault, exchange: Exchange) -> None:
        data = {
            "fault": fault.name,
            "request_bytes": exchange.request,
            "request_forwarded_bytes": exchange.request_forwarded,
            "response_bytes": exchange.response,
            "response_forwarded_bytes": exchange.response_forwarded,
        }
        self._journal.append("exchange", f"connection-{number}", data)


def _part(message: bytes, fault: Fault, side: str) -> bytes:
    if fault.side != side or fault.place is None or not message:
        return message
    return message[: split_at(message, fault.place)]


def _is_partial(request: bytes) -> bool:
    headers, blank, body = request.partition(b"\r\n\r\n")
    return not blank or len(body) < _content_length(headers)


def _keeps_open(request: bytes) -> bool:
    """Whether the sender asked for a connection that outlives this exchange: then only the message tells its end."""
    headers, blank, _body = request.partition(b"\r\n\r\n")
    return bool(blank) and not _is_partial(request) and b"connection: close" not in headers.lower()


def _content_length(headers: bytes) -> int:
    for line in headers.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def _read_message(reader: asyncio.StreamReader) -> bytes:
    headers = await reader.readuntil(b"\r\n\r\n")
    return headers + await reader.readexactly(_content_length(headers))


def _end(writer: asyncio.StreamWriter, *, reset: bool) -> None:
    if reset:
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


async def run(directory: Path, port: int, upstream: str, faults: Mapping[int, Fault]) -> None:
    """Relay until SIGTERM or SIGINT. Raises LockHeld, DamagedJournal and MachineRefused before the READY line."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    listener = listen(port)
    relay = Relay(directory, upstream, faults)
    server = await asyncio.start_server(relay.accept, sock=listener, limit=MAX_MESSAGE_BYTES)
    async with server:
        tell_ready(listener)
        await stopped.wait()
        server.close()
        await relay.finish()
    relay.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Process entry; see the module for the exit codes."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.relay", description="Break chosen exchanges at chosen places.")
    parser.add_argument("--dir", type=Path, required=True, help="the relay's directory; created if absent")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free port")
    parser.add_argument("--upstream", required=True, metavar="URL", help="the receiver, http://127.0.0.1:PORT")
    fault = "what to do to which connection; see evidence/README.md for names and places"
    parser.add_argument("--fault", action="append", default=[], metavar="CONNECTION:NAME[:PLACE]", help=fault)
    given = parser.parse_args(argv)

    def serve() -> int:
        if not 0 <= given.port <= 65535:
            raise BadInput(f"--port {given.port}: expected 0 to 65535")
        faults = dict(parse(text) for text in given.fault)
        asyncio.run(run(given.dir, given.port, loopback_url(given.upstream), faults))
        return 0

    return reported("relay", serve)


if __name__ == "__main__":
    sys.exit(main())
