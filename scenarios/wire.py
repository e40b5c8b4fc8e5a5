"""Places in an HTTP message, and the faults that a relay can do to one exchange. Values and pure functions; no sockets.

A fault is written `CONNECTION:NAME` or `CONNECTION:NAME:PLACE`, for instance `1:cut-response:headers`. A place is a number of
bytes or one of `start` (nothing), `start-line`, `headers` (all of them, with the blank line), `body-middle` and `end`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from outbox.errors import BadInput

# Longer than the senders' bound of one MiB.
_OVERSIZED_BODY = b'{"answer":"' + b"x" * (1024 * 1024) + b'"}'


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one exchange.

    `side` is `request` or `response` and `place` says after how much of it the exchange is broken off (`reset`: by a reset
    instead of an end). `hold`: the response is kept back until the sender gives up. `times`: how often the request is sent on;
    0 where the receiver never sees it. `answer`: what the sender gets instead of the receiver's response.
    """

    name: str
    side: str | None = None
    place: str | None = None
    reset: bool = False
    hold: bool = False
    times: int = 1
    answer: bytes | None = None


def _response(status: str, body: bytes, *headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        *headers,
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


PLAIN = Fault("none")
# Faults without a place. A redirect names the receiver's real address: a sender that followed it would be applied there.
FAULTS: Mapping[str, Fault] = {
    "hold-response": Fault("hold-response", hold=True),
    "duplicate-request": Fault("duplicate-request", times=2),
    "redirect": Fault("redirect", times=0, answer=_response("307 Temporary Redirect", b"", "Location: {upstream}/operations")),
    "unreadable-success": Fault("unreadable-success", answer=_response("200 OK", b"<html>it worked</html>")),
    "oversized-success": Fault("oversized-success", answer=_response("200 OK", _OVERSIZED_BODY)),
    "retry-after-seconds": Fault(
        "retry-after-seconds", times=0, answer=_response("503 Service Unavailable", b"{}", "Retry-After: 120")
    ),
    "retry-after-date": Fault(
        "retry-after-date",
        times=0,
        answer=_response("503 Service Unavailable", b"{}", "Retry-After: Thu, 01 Jan 1970 00:18:40 GMT"),
    ),
}
_PLACED = ("cut-request", "cut-response", "reset-request", "reset-response")
_NUMBER = re.compile("[0-9]{1,9}")
PLACES = ("start", "start-line", "headers", "body-middle", "end")


def parse(text: str) -> tuple[int, Fault]:
    """Read `CONNECTION:NAME[:PLACE]`. Raises BadInput and says what is allowed."""
    connection, _, rest = text.partition(":")
    name, _, place = rest.partition(":")
    if not _NUMBER.fullmatch(connection) or int(connection) < 1:
        raise BadInput(f"--fault {text!r}: expected CONNECTION:NAME[:PLACE] with a connection from 1")
    if name in FAULTS:
        if place:
            raise BadInput(f"--fault {text!r}: {name} takes no place")
        return int(connection), FAULTS[name]
    if name not in _PLACED:
        raise BadInput(f"--fault {text!r}: no fault {name!r}; there are: {', '.join((*FAULTS, *_PLACED))}")
    if place not in PLACES and not _NUMBER.fullmatch(place):
        raise BadInput(f"--fault {text!r}: {name} needs a place: a number of bytes, or {', '.join(PLACES)}")
    how, _, side = name.partition("-")
    return int(connection), Fault(f"{name}:{place}", side=side, place=place, reset=how == "reset")


def split_at(message: bytes, place: str) -> int:
    """How many bytes of `message` (start line, headers, body) come before `place`."""
    headers = message.find(b"\r\n\r\n") + 4
    match place:
        case "start":
            return 0
        case "start-line":
            return message.find(b"\r\n") + 2
        case "headers":
            return headers
        case "body-middle":
            return headers + (len(message) - headers) // 2
        case "end":
            return len(message)
        case _:
            return min(int(place), len(message))
