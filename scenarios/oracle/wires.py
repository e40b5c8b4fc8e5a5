"""Transports with one mistake each; `Plain` is the right one, which all of them wrap (`outbox.transport`)."""

import json

import aiohttp

from outbox import transport
from outbox.outcome import Delivered, Inquiry, NotDelivered, Outcome
from outbox.transport import Limits


class Plain:
    """One request for one attempt, its outcome as it is. The twin of all others."""

    def __init__(self, session: aiohttp.ClientSession, base: str, limits: Limits, now: float) -> None:
        self._session, self._base, self._limits, self._now = session, base, limits, now

    async def send(self, *, route: str, key: str, body: bytes, attempt: int) -> Outcome:
        """Make one request and say what became of it."""
        return await transport.post(
            self._session, self._base + route, key=key, body=body, attempt=attempt, limits=self._limits, now=self._now
        )

    async def inquire(self, key: str) -> Inquiry:
        """Ask whether the operation was applied."""
        return await transport.inquire(self._session, self._base, key, self._limits)

    def now(self) -> float:
        """The time of the pass."""
        return self._now


class HiddenResend(Plain):
    """Mistake (F04): the HTTP library sends again by itself when a connection ends early. One attempt is recorded, two arrive.

    Right: one call is one request, and whoever records attempts decides about the next.
    """

    async def send(self, *, route: str, key: str, body: bytes, attempt: int) -> Outcome:
        """Twice, where the connection ended early."""
        outcome = await super().send(route=route, key=key, body=body, attempt=attempt)
        if isinstance(outcome, NotDelivered) and outcome.reason in ("connection_closed", "connection_reset", "short_response"):
            return await super().send(route=route, key=key, body=body, attempt=attempt)
        return outcome


class KeyOfItsOwn(Plain):
    """Mistake (F05): a layer below replaces the caller's key by one for each request. The records show the key that was meant.

    Right: the key that is stored is the key that is sent.
    """

    async def send(self, *, route: str, key: str, body: bytes, attempt: int) -> Outcome:
        """Under another key at each attempt."""
        return await super().send(route=route, key=f"request-{key}-{attempt}", body=body, attempt=attempt)


def _delivered(outcome: NotDelivered) -> Delivered:
    return Delivered(outcome.status or 0, False, json.dumps({"status": outcome.status}).encode())


class AnyStatus(Plain):
    """Mistake: a response came, so it was sent; nobody looks at the status. A 503 that did nothing becomes a receipt.

    Right: only a success status with a whole result is success.
    """

    async def send(self, *, route: str, key: str, body: bytes, attempt: int) -> Outcome:
        """Success, whatever the response says."""
        outcome = await super().send(route=route, key=key, body=body, attempt=attempt)
        return _delivered(outcome) if isinstance(outcome, NotDelivered) and outcome.status is not None else outcome


class BelowFourHundred(Plain):
    """Mistake (F12): every status below 400 is success, so a redirect that nobody followed is one.

    Right: a redirect proves nothing, and is not followed with a changed method, key or body.
    """

    async def send(self, *, route: str, key: str, body: bytes, attempt: int) -> Outcome:
        """Success for what is no error."""
        outcome = await super().send(route=route, key=key, body=body, attempt=attempt)
        return _delivered(outcome) if isinstance(outcome, NotDelivered) and outcome.reason == "redirect" else outcome


class RedirectFollowed(Plain):
    """Mistake (F12): a redirect is followed, and the request that goes to the other origin has lost its key.

    Right: as above. Who must follow sends the same key and body there, and calls that an attempt.
    """

    def __init__(self, session: aiohttp.ClientSession, base: str, limits: Limits, now: float) -> None:
        super().__init__(session, base, limits, now)
        self._location: str | None = None
        noted = aiohttp.TraceConfig()
        noted.on_request_end.append(self._note)
        noted.freeze()
        session.trace_configs.append(noted)

    async def _note(self, _session: object, _context: object, parameters: aiohttp.TraceRequestEndParams) -> None:
        self._location = parameters.response.headers.get("Location")

    async def send(self, *, route: str, key: str, body: bytes, attempt: int) -> Outcome:
        """Once more, where another place was named."""
        outcome = await super().send(route=route, key=key, body=body, attempt=attempt)
        if isinstance(outcome, NotDelivered) and outcome.reason == "redirect" and self._location is not None:
            return await transport.exchange(
                self._session, self._location, headers={}, body=body, limits=self._limits, now=self._now
            )
        return outcome


class ShortResponse(Plain):
    """Mistake: the status line said 200, so whatever came of the body is the result. A receipt tells what nobody answered.

    Right: a result is what arrived whole and can be read; anything else may have happened, and is asked for again.
    """

    async def send(self, *, route: str, key: str, body: bytes, attempt: int) -> Outcome:
        """Success, once the status says so."""
        outcome = await super().send(route=route, key=key, body=body, attempt=attempt)
        if isinstance(outcome, NotDelivered) and outcome.status is not None and 200 <= outcome.status < 300:
            return _delivered(outcome)
        return outcome
