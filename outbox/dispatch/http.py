"""The HTTP transport: one POST of the payload, for a route that is a URL.

The dispatch's id is the `Idempotency-Key`, the same over all attempts and over an operator's forced retry, and the number of
the attempt travels beside it (`Halt23-Attempt`). Any complete answer with a success status is success; a redirect is not
followed, nothing is repeated, and what may have happened is told apart from what did not (`outbox.transport`).

Only this machine is sent to, unless the settings name other hosts (`allow_hosts`).
"""

import functools
import re
from collections.abc import Collection

import aiohttp
from yarl import URL

from outbox.dispatch.claim import Claim
from outbox.dispatch.errors import BadValue
from outbox.dispatch.settle import SENT, SendResult, failed
from outbox.outcome import DID_NOT_HAPPEN, Delivered
from outbox.transport import ATTEMPT_HEADER, KEY_HEADER, Limits, exchange

ANY_HOST = "*"
_URL = re.compile(r"https?://", re.ASCII | re.IGNORECASE)
_LOOPBACK_HOST = re.compile(r"localhost|::1|127(\.\d{1,3}){3}", re.ASCII | re.IGNORECASE)


def is_url(route: str) -> bool:
    """Whether a route goes by HTTP; any other goes by the template."""
    return _URL.match(route) is not None


def check_url(route: str, allow_hosts: Collection[str]) -> None:
    """Raises BadValue for a URL that cannot be sent to, or whose host is neither this machine nor allowed."""
    _check_url(route, frozenset(allow_hosts))


@functools.lru_cache(maxsize=1024)  # a queue's routes are few
def _check_url(route: str, allow_hosts: frozenset[str]) -> None:
    try:
        url = URL(route, encoded=True)
        host = url.host
        _port = url.port
    except ValueError as error:
        raise BadValue(f"the route {route!r} is no URL: {error}") from error
    if not host:
        raise BadValue(f"the route {route!r} names no host")
    if re.search(r"[\s\x00-\x1f\x7f]", route):
        raise BadValue(f"the route {route!r} holds white space or control characters")
    if not _LOOPBACK_HOST.fullmatch(host) and host not in allow_hosts and ANY_HOST not in allow_hosts:
        raise BadValue(f"the host {host} of the route is not this machine; name it in [dispatch] allow_hosts to send there")


async def post_dispatch(
    session: aiohttp.ClientSession, claim: Claim, *, limits: Limits, allow_hosts: Collection[str], now: float
) -> SendResult:
    """Make one attempt. Never raises for what the network or the destination does. `now` is what `Retry-After` counts from."""
    try:
        check_url(claim.deliver_to, allow_hosts)
    except BadValue as error:
        return failed(str(error), definite=True)
    headers = {KEY_HEADER: claim.id, ATTEMPT_HEADER: str(claim.attempt)}
    outcome = await exchange(session, claim.deliver_to, headers=headers, body=claim.payload.encode(), limits=limits, now=now)
    if isinstance(outcome, Delivered):
        return SENT
    definite = outcome.outcome == DID_NOT_HAPPEN
    return failed(f"{outcome.reason}: {outcome.detail}", definite=definite, not_before=outcome.not_before)
