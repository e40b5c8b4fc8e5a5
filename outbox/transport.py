"""One attempt is one HTTP POST: no hidden retry, no redirect followed, no pooled connection, a bounded response.

`post` sends the key and the exact body and says what became of it. Three endings are told apart, because recovery must treat
them differently: `Delivered` (a success with a readable result), a definite failure (`did_not_happen`: nothing was sent, or
the receiver refused before doing anything) and an indefinite one (`may_have_happened`: the request left, and no usable answer
came). Nothing is recorded here; that is the workflow's work.
"""

import errno
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp
from yarl import URL

from outbox.errors import BadInput
from outbox.outcome import DID_NOT_HAPPEN, MAY_HAVE_HAPPENED, Delivered, NotDelivered, Outcome

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
ATTEMPT_HEADER = "Halt23-Attempt"


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
    if not match or not 0 < int(match["port"] or 80) <= 65535:
        raise BadInput(f"{url!r} is not the address of a receiver on this machine; expected http://127.0.0.1:PORT")
    return url.rstrip("/")


def new_session(limits: Limits) -> aiohttp.ClientSession:
    """A session in which each request opens a connection of its own and nothing is done behind the caller's back."""
    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(_connected)
    return aiohttp.ClientSession(
        trace_configs=[trace],
        connector=aiohttp.TCPConnector(force_close=True),
        timeout=aiohttp.ClientTimeout(total=limits.timeout_seconds, sock_connect=limits.connect_timeout_seconds),
        auto_decompress=False,
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "halt23", "Accept-Encoding": "identity", "Content-Type": "application/json"},
    )


async def _connected(_session: aiohttp.ClientSession, context: SimpleNamespace, _parameters: object) -> None:
    context.trace_request_ctx.connected = True


async def post(
    session: aiohttp.ClientSession, url: str, *, key: str, body: bytes, attempt: int | None, limits: Limits
) -> Outcome:
    """Send `body` under `key` to `url`, once. Never raises for what the network or the receiver does."""
    headers = {KEY_HEADER: key}
    if attempt is not None:
        headers[ATTEMPT_HEADER] = str(attempt)
    status: int | None = None
    wire = SimpleNamespace(connected=False)
    # The route goes out as it was given: what looks like a needless escape may be a name's.
    target = URL(url, encoded=True)
    try:
        async with session.post(target, data=body, headers=headers, allow_redirects=False, trace_request_ctx=wire) as response:
            status = response.status
            if not 200 <= status < 300:
                return _failure_status(status)
            content = await _bounded(response, limits.max_response_bytes)
    except (aiohttp.ClientError, OSError) as error:
        outcome, reason = _classify(error, connected=wire.connected)
        return NotDelivered(outcome, reason, status, f"{type(error).__name__}: {error}")
    if content is None:
        return NotDelivered(
            MAY_HAVE_HAPPENED, "oversized_response", status, f"the response exceeds {limits.max_response_bytes} bytes"
        )
    if not _is_json_object(content):
        return NotDelivered(MAY_HAVE_HAPPENED, "unreadable_result", status, "the response's body is not a JSON object")
    return Delivered(status, _is_replayed(response.headers), content)


async def _bounded(response: aiohttp.ClientResponse, max_bytes: int) -> bytes | None:
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > max_bytes:
            return None
    return bytes(content)


def _is_replayed(headers: Mapping[str, str]) -> bool:
    return headers.get(REPLAYED_HEADER, "").lower() == "true"


def _is_json_object(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content.decode("utf-8")), dict)
    except (ValueError, RecursionError):
        return False


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


# First match wins: several of these are subclasses of later ones. Before a connection stands, nothing was sent.
_MEANINGS: tuple[tuple[type[Exception], str, str], ...] = (
    (aiohttp.ClientConnectorError, DID_NOT_HAPPEN, "unreachable"),
    (aiohttp.ConnectionTimeoutError, DID_NOT_HAPPEN, "connect_timeout"),
    (TimeoutError, MAY_HAVE_HAPPENED, "response_timeout"),
    (aiohttp.ClientPayloadError, MAY_HAVE_HAPPENED, "short_response"),
    (aiohttp.ServerDisconnectedError, MAY_HAVE_HAPPENED, "connection_closed"),
    (OSError, MAY_HAVE_HAPPENED, "connection_reset"),
    (aiohttp.ClientConnectionError, MAY_HAVE_HAPPENED, "connection_closed"),
    (aiohttp.ClientError, MAY_HAVE_HAPPENED, "malformed_response"),
)


def _classify(error: Exception, *, connected: bool) -> tuple[str, str]:
    """Outcome and reason that an exception of the HTTP client stands for."""
    if isinstance(error, TimeoutError) and not connected:
        return DID_NOT_HAPPEN, "connect_timeout"
    if isinstance(error, aiohttp.ClientConnectorError) and error.errno == errno.ECONNREFUSED:
        return DID_NOT_HAPPEN, "connection_refused"
    return next((outcome, reason) for kind, outcome, reason in _MEANINGS if isinstance(error, kind))
