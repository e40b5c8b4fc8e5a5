"""One HTTP request to a receiver, byte by byte as it is meant, and whatever comes back.

A library would mend what is to be tried here: two key headers, an empty one, letters outside of ASCII, half a body. So a
request is bytes that are made here, and a response is read by the few rules of HTTP/1.1 that a loopback server can use. Each
request has a connection of its own; nothing is repeated, redirected or kept. Nothing is raised for what a receiver does.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from scenarios.targets import outcomes

MAX_RESPONSE_BYTES = 1024 * 1024
ANSWER_SECONDS = 10.0
SHOWN_CHARACTERS = 2000
# What tells a sender to come again: a time-out, a conflict, a lock, too early, too many. Others do it with Retry-After.
COME_AGAIN = (408, 409, 423, 425, 429)
HUNG_UP = "the client hung up"
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. Header values are text; each character stands for its UTF-8 bytes."""

    method: str
    path: str
    headers: Headers
    body: bytes

    def encoded(self, host: str) -> bytes:
        """The request as bytes. `host` is the address it goes to."""
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join([*lines, f"Content-Length: {len(self.body)}", "Connection: close", "", ""]).encode() + self.body


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what became of it: a response (`status`, `body`), or `error`, in words, where no whole one came."""

    request: Request
    status: int | None
    body: bytes
    error: str | None
    seconds: float
    headers: Headers = field(default=())

    @property
    def success(self) -> bool:
        """Whether it was answered with 2xx."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def refused(self) -> bool:
        """Whether it was answered with 4xx."""
        return self.status is not None and 400 <= self.status < 500

    @property
    def broken(self) -> bool:
        """Whether the receiver was asked for an answer and gave none."""
        return self.status is None and self.error != HUNG_UP

    @property
    def come_again(self) -> bool:
        """Whether it was refused for now: by a status that says so, or with `Retry-After`."""
        asked = any(name.lower() == "retry-after" for name, _ in self.headers)
        return self.refused and (self.status in COME_AGAIN or asked)

    def told(self) -> str:
        """`200`, or why there is no status."""
        return str(self.status) if self.status is not None else self.error or "no answer"

    def outcome(self) -> outcomes.Exchange:
        """As it stands in a result."""
        request = self.request
        headers = tuple((name, _cut(value)) for name, value in request.headers)
        sent = outcomes.Sent(method=request.method, path=request.path, headers=headers, body=shown(request.body))
        body = None if self.status is None else shown(self.body)
        return outcomes.Exchange(request=sent, status=self.status, body=body, error=self.error, seconds=round(self.seconds, 4))


def shown(body: bytes) -> str:
    """A body as text, cut where it is long."""
    return _cut(body.decode("utf-8", "backslashreplace"))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… [{len(text) - SHOWN_CHARACTERS} cut]"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a receiver listens. `base` is a path in front of every other."""

    host: str
    port: int
    base: str = ""

    @property
    def told(self) -> str:
        """For the Host header."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Sending:
    """A request on its way, so that something may happen between its parts. Use `send`, then `answer` or `hang_up`."""

    def __init__(self, address: Address, request: Request) -> None:
        self._address, self._request = address, request
        self._message = request.encoded(address.told)
        self._began = time.monotonic()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._error: str | None = None

    async def send(self, share: float = 1.0) -> bool:
        """Connect and send this much of the body, all headers before it. Whether that was possible."""
        body = len(self._request.body)
        until = len(self._message) - body + int(body * share)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self._streams = await asyncio.open_connection(self._address.host, self._address.port)
                self._streams[1].write(self._message[:until])
                await self._streams[1].drain()
        except (OSError, TimeoutError) as error:
            self._error = _told(error)
        return self._error is None

    async def answer(self, seconds: float = ANSWER_SECONDS) -> Exchange:
        """What comes back, within so many seconds."""
        if self._streams is None or self._error is not None:
            self.hang_up()
            return self._ended(self._error or "not sent")
        try:
            async with asyncio.timeout(seconds):
                status, headers, body = await _response(self._streams[0])
        except TimeoutError:
            return self._ended(f"no answer within {seconds:g} s")
        except (OSError, ValueError, EOFError) as error:
            return self._ended(_told(error))
        finally:
            self.hang_up()
        return Exchange(self._request, status, body, None, time.monotonic() - self._began, headers)

    def hang_up(self) -> Exchange:
        """Close the connection, whatever is still under way."""
        if self._streams is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._streams[1].close()
        return self._ended(HUNG_UP)

    def _ended(self, error: str) -> Exchange:
        return Exchange(self._request, None, b"", error, time.monotonic() - self._began)


async def exchange(address: Address, request: Request, seconds: float = ANSWER_SECONDS) -> Exchange:
    """Send a request and wait for its answer."""
    sending = Sending(address, request)
    await sending.send()
    return await sending.answer(seconds)


async def received(request: Request, message: bytes | None, seconds: float) -> Exchange:
    """The exchange of a request that another process sent, from the bytes that came back to it."""
    if message is None:
        return Exchange(request, None, b"", "it could not be sent", seconds)
    reader = asyncio.StreamReader()
    reader.feed_data(message)
    reader.feed_eof()
    try:
        status, headers, body = await _response(reader)
    except (OSError, ValueError, EOFError) as error:
        return Exchange(request, None, b"", _told(error), seconds)
    return Exchange(request, status, body, None, seconds, headers)


def without(headers: Iterable[tuple[str, str]], name: str) -> Headers:
    """The headers but for those of this name."""
    return tuple((each, value) for each, value in headers if each.lower() != name.lower())


async def _response(reader: asyncio.StreamReader) -> tuple[int, Headers, bytes]:
    """Status, headers and body of a response. Raises ValueError for what is none, EOFError where it ends too early."""
    while True:
        status, headers = await _head(reader)
        if status >= 200:
            break
    found = {name.lower(): value for name, value in headers}
    if "chunked" in found.get("transfer-encoding", "").lower():
        return status, headers, await _chunks(reader)
    if status in (204, 304):
        return status, headers, b""
    if "content-length" in found:
        size = int(found["content-length"])
        if size > MAX_RESPONSE_BYTES:
            raise ValueError(f"the response is larger than {MAX_RESPONSE_BYTES} bytes")
        return status, headers, await reader.readexactly(size)
    body = bytearray()
    while part := await reader.read(1 << 16):
        body += part
        if len(body) > MAX_RESPONSE_BYTES:
            raise ValueError(f"the response is larger than {MAX_RESPONSE_BYTES} bytes")
    return status, headers, bytes(body)


async def _head(reader: asyncio.StreamReader) -> tuple[int, Headers]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise ValueError(f"the response has no end of its headers: {error}") from error
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise ValueError(f"this is no HTTP response: {first[:80]!r}")
    pairs = (line.partition(":") for line in lines)
    return int(rest[:3]), tuple((name.strip(), value.strip()) for name, _, value in pairs)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size == 0:
            await reader.read(1 << 16)
            return bytes(body)
        body += await reader.readexactly(size)
        await reader.readexactly(2)
        if len(body) > MAX_RESPONSE_BYTES:
            raise ValueError(f"the response is larger than {MAX_RESPONSE_BYTES} bytes")


def _told(error: BaseException) -> str:
    if isinstance(error, asyncio.IncompleteReadError):
        return "the connection ended before a whole response"
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, ConnectionResetError):
        return "the connection was reset"
    if isinstance(error, TimeoutError):
        return "it cannot be reached in time"
    return f"{type(error).__name__}: {error}"
