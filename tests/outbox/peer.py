"""An HTTP peer that behaves as badly as a test wants: a raw socket server that answers exact bytes, or none."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came over the wire."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> list[str]:
        """All values of a header."""
        return [value for known, value in self.headers if known.lower() == name.lower()]


class Connection:
    """One accepted connection. It is closed when its action returns."""

    def __init__(self, peer: "Peer", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._peer, self._reader, self._writer = peer, reader, writer

    async def request(self) -> Request:
        """Read one request to its end and remember it at the peer."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head[:-4].split("\r\n")
        headers = tuple((name, value.strip()) for name, _colon, value in (field.partition(":") for field in fields))
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        request = Request(line, headers, await self._reader.readexactly(length))
        self._peer.requests.append(request)
        return request

    async def send(self, content: bytes) -> None:
        """Send bytes; the other side may be gone."""
        self._writer.write(content)
        await self._writer.drain()

    async def until_client_gone(self) -> bytes:
        """Wait until the client closes; returns what it sent meanwhile."""
        return await self._reader.read()

    def reset(self) -> None:
        """Make the end of the connection an RST."""
        connection: socket.socket = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Action = Callable[[Connection], Awaitable[None]]


class Peer:
    """Serves the n-th connection with the n-th action, the later ones with the last. `async with Peer(action) as peer`."""

    def __init__(self, *actions: Action) -> None:
        self._actions = actions
        self.connections = 0
        self.requests: list[Request] = []
        self.port = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def open(self) -> Self:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self._tasks: set[asyncio.Task[None]] = set()
        return self

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        action = self._actions[min(self.connections, len(self._actions)) - 1]
        try:
            await action(Connection(self, reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away: what the test looks at is on its side
        finally:
            self._tasks.discard(task)
            writer.close()


def response(status: str = "200 OK", body: bytes = b'{"answer":1}', *fields: str) -> bytes:
    """A whole response with a right Content-Length."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def answering(content: bytes) -> Action:
    """Read the request, send these bytes, close."""

    async def action(connection: Connection) -> None:
        await connection.request()
        await connection.send(content)

    return action


def answering_and_staying(content: bytes) -> Action:
    """Read the request, send these bytes, and leave the connection open until the client closes it."""

    async def action(connection: Connection) -> None:
        await connection.request()
        await connection.send(content)
        await connection.until_client_gone()

    return action


async def reset_at_once(connection: Connection) -> None:
    """RST before anything is read."""
    connection.reset()


async def reset_after_request(connection: Connection) -> None:
    """RST after the request was read."""
    await connection.request()
    connection.reset()


async def silent(connection: Connection) -> None:
    """Read the request and say nothing until the client gives up."""
    await connection.request()
    await connection.until_client_gone()
