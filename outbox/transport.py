"""One attempt is one HTTP POST: no hidden retry, no redirect followed, no pooled connection, a bounded response.

`post` sends the key and the exact body and says what became of it, `inquire` asks a receiver's status query. Three endings are
told apart, because recovery must treat them differently: `Delivered` (a success with a readable result), a definite failure
(`did_not_happen`: nothing was sent, or the receiver refused before doing anything) and an indefinite one (`may_have_happened`:
the request left, and no usable answer came). Nothing is recorded here; that is the workflow's work.
"""

import errno
import json
import os
import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.tracing import Trace
from yarl import URL

from outbox.errors import BadInput
from outbox.outcome import (
    APPLIED,
    DID_NOT_HAPPEN,
    MAY_HAVE_HAPPENED,
    NOT_APPLIED,
    UNANSWERABLE,
    Delivered,
    Inquiry,
    NotDelivered,
    Outcome,
)

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
ATTEMPT_HEADER = "Halt23-Attempt"
SENDER_HEADER = "Halt23-Sender"
IN_FLIGHT = "key_in_flight"
# Longer than any sender is patient, and still a time that every clock can hold.
MAX_RETRY_AFTER_SECONDS = 999_999_999
MAX_RETRY_AFTER_DIGITS = 12
# Shorter than servers keep idle connections, so that one is hardly ever used in the moment in which they close it.
POOLED_IDLE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one attempt: seconds to connect and in all, and bytes of a response's body."""

    connect_timeout_seconds: float = 5.0
    timeout_seconds: float = 10.0
    max_response_bytes: int = 1024 * 1024


_LOOPBACK = re.compile(r"http://(?P<host>localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::(?P<port>\d{1,5}))?/?", re.ASCII)


def loopback_url(url: str) -> str:
    """`url` without a trailing slash, if it is `http://HOST[:PORT]` on this machine; raises BadInput otherwise.

    The teaching receivers have no authentication, so nothing here may send to another machine.
    """
    match = _LOOPBACK.fullmatch(url)
    octets = re.findall(r"\d+", match["host"]) if match else []
    if not match or not 0 < int(match["port"] or 80) <= 65535 or any(int(octet) > 255 for octet in octets):
        raise BadInput(f"{url!r} is not the address of a receiver on this machine; expected http://127.0.0.1:PORT")
    return url.rstrip("/")


def new_session(
    limits: Limits, pooled_connections: int | None = None, resolver: AbstractResolver | None = None
) -> aiohttp.ClientSession:
    """A session for the functions of this module, in which nothing is done behind the caller's back.

    Each request opens a connection of its own, unless `pooled_connections` says how many may be kept open and used again.
    `resolver` finds the addresses of names, in place of the machine's.
    """
    connector = (
        _Connector(force_close=True, resolver=resolver)
        if pooled_connections is None
        else _Connector(limit=pooled_connections, keepalive_timeout=POOLED_IDLE_SECONDS, resolver=resolver)
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=limits.timeout_seconds, sock_connect=limits.connect_timeout_seconds),
        auto_decompress=False,
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "halt23", "Accept-Encoding": "identity", "Content-Type": "application/json"},
    )


@dataclass(slots=True)
class _Wire:
    """What one request has seen of its connection. (The session's own tracing would tell it at the price of a sixth of all.)"""

    connecting: bool = False
    connected: bool = False


_wire: ContextVar[_Wire] = ContextVar("halt23_wire")


class _Connector(aiohttp.TCPConnector):
    """Gives a request one connection, from the pool or new, and tells its `_Wire` when there is one."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the signature is that of the class above
    ) -> aiohttp.connector.Connection:
        wire = _wire.get()
        # The client repeats a GET whose connection broke. One call here is one request, so the second connection is refused;
        # a pooled connection that breaks is an answer too.
        if wire.connecting:
            raise aiohttp.ServerDisconnectedError
        wire.connecting = True
        connection = await super().connect(req, traces, timeout)
        wire.connected = True
        return connection


async def post(
    session: aiohttp.ClientSession,
    url: str,
    *,
    key: str,
    body: bytes,
    attempt: int | None,
    limits: Limits,
    now: float = 0.0,
    sender: str | None = None,
) -> Outcome:
    """Send `body` under `key` to `url`, once. Never raises for what the network or the receiver does.

    `now` (seconds since the epoch) is what a `Retry-After` in seconds counts from; `sender` names a bare client to a receiver
    that puts concurrent requests in order.
    """
    headers = {KEY_HEADER: key}
    if attempt is not None:
        headers[ATTEMPT_HEADER] = str(attempt)
    if sender is not None:
        headers[SENDER_HEADER] = sender
    outcome = await exchange(session, url, headers=headers, body=body, limits=limits, now=now)
    if isinstance(outcome, Delivered) and _json_object(outcome.result) is None:
        detail = "the response's body is not a JSON object"
        return NotDelivered(MAY_HAVE_HAPPENED, "unreadable_result", outcome.status, detail)
    return outcome


async def exchange(
    session: aiohttp.ClientSession, url: str, *, headers: Mapping[str, str], body: bytes, limits: Limits, now: float = 0.0
) -> Outcome:
    """POST `body` to `url`, once; `Delivered` is any success status (2xx) with a complete body of bounded size.

    Never raises for what the network or the receiver does. `now` is as in `post`.
    """
    status: int | None = None
    wire = _Wire()
    _wire.set(wire)
    # The route goes out as it was given: what looks like a needless escape may be a name's.
    target = URL(url, encoded=True)
    try:
        async with session.post(target, data=body, headers=headers, allow_redirects=False) as response:
            status = response.status
            if not 200 <= status < 300:
                return await _failure(response, limits, now)
            content = await _bounded(response, limits.max_response_bytes)
    except (aiohttp.ClientError, OSError) as error:
        outcome, reason = _classify(error, connected=wire.connected)
        return NotDelivered(outcome, reason, status, _told(error))
    if content is None:
        detail = f"the response exceeds {limits.max_response_bytes} bytes"
        return NotDelivered(MAY_HAVE_HAPPENED, "oversized_response", status, detail)
    return Delivered(status, _is_replayed(response.headers), content)


async def inquire(session: aiohttp.ClientSession, base: str, key: str, limits: Limits) -> Inquiry:
    """Ask the receiver at `base` whether the operation `key` was applied: `GET /operations/KEY`. Never raises.

    Only a clear answer counts: `{"applied":false}`, or `{"applied":true,"status":…,"result":TEXT}`. Anything else is
    UNANSWERABLE.
    """
    try:
        target = URL(f"{base}/operations/{quote(key, safe='')}", encoded=True)
        _wire.set(_Wire())
        async with session.get(target, allow_redirects=False) as response:
            content = await _bounded(response, limits.max_response_bytes) if response.status == 200 else None
            detail = f"the status query answered {response.status}"
    except (aiohttp.ClientError, OSError) as error:
        return Inquiry(UNANSWERABLE, detail=f"{type(error).__name__}: {error}")
    match _json_object(content):
        case {"applied": False}:
            return Inquiry(NOT_APPLIED)
        case {"applied": True, "status": int(status), "result": str(result)} if status in range(200, 300) and _is_text(result):
            return Inquiry(APPLIED, status, result.encode())
        case _:
            return Inquiry(UNANSWERABLE, detail=detail)


def _is_text(result: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in result)


async def _bounded(response: aiohttp.ClientResponse, max_bytes: int) -> bytes | None:
    content = b""
    while not response.content.at_eof():
        content += await response.content.readany()
        if len(content) > max_bytes:
            return None
    return content


def _is_replayed(headers: Mapping[str, str]) -> bool:
    return headers.get(REPLAYED_HEADER, "").lower() == "true"


def _json_object(content: bytes | None) -> dict[str, object] | None:
    try:
        value = None if content is None else json.loads(content.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


async def _failure(response: aiohttp.ClientResponse, limits: Limits, now: float) -> NotDelivered:
    failure = _failure_status(response.status)
    if response.status == 409 and await _is_in_flight(response, limits):
        # The key is not bound to another body, another attempt is being worked on: this one did nothing, a later one may.
        failure = NotDelivered(DID_NOT_HAPPEN, "in_flight", 409, "the receiver is working on this key")
    return replace(failure, not_before=_not_before(response.headers.get("Retry-After"), now))


async def _is_in_flight(response: aiohttp.ClientResponse, limits: Limits) -> bool:
    try:
        told = _json_object(await _bounded(response, limits.max_response_bytes))
    except (aiohttp.ClientError, OSError):
        return False  # the status says enough without its body
    return told is not None and told.get("error") == IN_FLIGHT


def _not_before(retry_after: str | None, now: float) -> float | None:
    """The time that `Retry-After` names, in seconds since the epoch: RFC 9110 allows seconds or an HTTP date."""
    if retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return now + min(int(retry_after[:MAX_RETRY_AFTER_DIGITS]), MAX_RETRY_AFTER_SECONDS)
    try:
        when = parsedate_to_datetime(retry_after)
        return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None  # an unreadable wish is no wish


def _failure_status(status: int) -> NotDelivered:
    detail = f"the receiver answered {status}"
    if status in (409, 422):
        return NotDelivered(DID_NOT_HAPPEN, "conflict", status, f"{detail}: the key is bound to another body")
    if status in (429, 503, 507):
        return NotDelivered(DID_NOT_HAPPEN, "unavailable", status, detail)
    if 400 <= status < 500:
        return NotDelivered(DID_NOT_HAPPEN, "refused", status, detail)
    if 300 <= status < 400:
        # 301 to 303 are often sent after the work was done, so a redirect proves nothing.
        return NotDelivered(MAY_HAVE_HAPPENED, "redirect", status, f"{detail}; redirects are not followed")
    return NotDelivered(MAY_HAVE_HAPPENED, "server_error", status, detail)


# First match wins: several of these are subclasses of later ones. All are for a request that may have left.
_MEANINGS: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, "response_timeout"),
    (aiohttp.ClientPayloadError, "short_response"),
    (aiohttp.ServerDisconnectedError, "connection_closed"),
    (OSError, "connection_reset"),
    (aiohttp.ClientConnectionError, "connection_closed"),
    (aiohttp.ClientError, "malformed_response"),
)


def _told(error: Exception) -> str:
    if type(error) is aiohttp.ClientConnectorError and error.os_error.errno is not None:
        # In our words, by the address as it was given: the library names what it tried, which differs from run to run.
        said = os.strerror(error.os_error.errno)
        return f"no connection to {error.host}:{error.port}: {said}"
    return f"{type(error).__name__}: {error}"


def _classify(error: Exception, *, connected: bool) -> tuple[str, str]:
    """Outcome and reason that an exception of the HTTP client stands for. Before a connection stands, nothing was sent."""
    if connected:
        return MAY_HAVE_HAPPENED, next(reason for kind, reason in _MEANINGS if isinstance(error, kind))
    if isinstance(error, TimeoutError):
        return DID_NOT_HAPPEN, "connect_timeout"
    if isinstance(error, OSError) and error.errno == errno.ECONNREFUSED:
        return DID_NOT_HAPPEN, "connection_refused"
    return DID_NOT_HAPPEN, "unreachable"
