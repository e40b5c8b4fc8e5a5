"""Intention, delivery, receipt, history: four durable steps, each safe to repeat.

An intention (key, route, exact body bytes) is persisted before anything is sent. Delivery sends it with the original key and
the unchanged bytes, whatever happened before. The result that comes back is persisted as a receipt, and the receipt makes
the history record possible. A process may die between any two steps; the next one reads the journals and goes on.

What this cannot know: whether the receiver acted when no receipt was written. It sends again, so an operation is delivered at
least once; that it is applied once is the receiver's part of the agreement (a keyed receiver).
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from outbox import faults, journal
from outbox.errors import BadInput, DamagedJournal
from outbox.journal import Record
from outbox.outcome import Delivered, NotDelivered, Outcome

MAX_KEY_CHARACTERS = 255
MAX_ROUTE_CHARACTERS = 2000
MAX_BODY_BYTES = 1024 * 1024

INTENTIONS = journal.declare("intentions", "intention")
ATTEMPTS = journal.declare("attempts", "attempt", "outcome")
RECEIPTS = journal.declare("receipts", "receipt")
HISTORY = journal.declare("history", "history")

BEFORE_SEND = faults.declare("send.before", "the attempt is recorded, nothing is sent")
RESPONSE = faults.declare("send.response", "a response is in hand, nothing of it is recorded")


@dataclass(frozen=True, slots=True)
class Intention:
    """What must be sent: `key` and `route` are text, `body` the exact bytes."""

    key: str
    route: str
    body: bytes

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the body, 64 hex digits."""
        return journal.fingerprint(self.body)


# Sends an intention as its attempt number N (from 1) and says what came of it.
Send = Callable[[Intention, int], Awaitable[Outcome]]


def submit(directory: Path, intention: Intention, *, wait_seconds: float = 10.0) -> bool:
    """Persist `intention` in `directory`, which is created if absent. True if it is new, False if the same was there.

    Raises BadInput for a key, route or body that cannot be sent, and for a known key with another route or body.
    """
    _check(intention)
    journal.make_directory(directory)
    with INTENTIONS.open(directory, wait_seconds=wait_seconds) as intentions:
        known = len(intentions)
        intentions.append(
            "intention",
            intention.key,
            {
                "key": intention.key,
                "route": intention.route,
                "body": journal.payload(intention.body),
                "fingerprint": intention.fingerprint,
            },
        )
        return len(intentions) > known


def intentions(directory: Path) -> Iterator[Intention]:
    """All intentions of `directory` as a stream, oldest first. Raises DamagedJournal also for one that is not whole."""
    for record in INTENTIONS.read(directory):
        try:
            intention = Intention(record.data["key"], record.data["route"], journal.payload_bytes(record.data["body"]))
            _check(intention)
            whole = record.id == intention.key and record.data["fingerprint"] == intention.fingerprint
        except (KeyError, TypeError, ValueError, BadInput) as error:
            raise DamagedJournal(f"{INTENTIONS.path(directory)}, line {record.sequence}: no intention: {error!r}") from None
        if not whole:
            raise DamagedJournal(f"{INTENTIONS.path(directory)}, line {record.sequence}: its key or fingerprint is not its own")
        yield intention


class Workflow:
    """The dispatcher's journals of one directory, owned for appending. The caller holds `dispatcher.lock`."""

    def __init__(self, directory: Path) -> None:
        with ExitStack() as opened:  # all of them or none
            self._attempts = opened.enter_context(ATTEMPTS.open(directory))
            self._receipts = opened.enter_context(RECEIPTS.open(directory))
            self._history = opened.enter_context(HISTORY.open(directory))
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._opened.close()

    def receipt(self, intention: Intention) -> Record | None:
        """The receipt of `intention`, if its result came back and was recorded."""
        return self._receipts.find("receipt", intention.key)

    async def deliver(self, intention: Intention, send: Send) -> Record | NotDelivered:
        """Make one attempt. Returns the receipt, or why there is none, after recording either."""
        number = self._next_attempt(intention)
        attempt_id = f"{intention.key}#{number}"
        identity = {"intention": intention.key, "number": number}
        self._attempts.append("attempt", attempt_id, {**identity, "key": intention.key, "fingerprint": intention.fingerprint})
        faults.reach(BEFORE_SEND)
        outcome = await send(intention, number)
        if isinstance(outcome, Delivered):
            faults.reach(RESPONSE)
            return self._record_receipt(intention, number, outcome)
        if outcome.status is not None:
            faults.reach(RESPONSE)
        self._attempts.append(
            "outcome", attempt_id, {**identity, "outcome": outcome.outcome, "reason": outcome.reason, "status": outcome.status}
        )
        return outcome

    def commit_history(self, intention: Intention, receipt: Record) -> bool:
        """Record the completed turn. True if it was not there yet."""
        known = len(self._history)
        self._history.append(
            "history", intention.key, {"question": journal.payload(intention.body), "answer": receipt.data["result"]}
        )
        return len(self._history) > known

    def _next_attempt(self, intention: Intention) -> int:
        number = 1
        while self._attempts.find("attempt", f"{intention.key}#{number}") is not None:
            number += 1
        return number

    def _record_receipt(self, intention: Intention, number: int, outcome: Delivered) -> Record:
        return self._receipts.append(
            "receipt",
            intention.key,
            {
                "intention": intention.key,
                "key": intention.key,
                "attempt": number,
                "fingerprint": intention.fingerprint,
                "status": outcome.status,
                "replayed": outcome.replayed,
                "result": journal.payload(outcome.result),
            },
        )


def _check(intention: Intention) -> None:
    key, route = intention.key, intention.route
    if not (isinstance(key, str) and isinstance(route, str)):
        raise BadInput("key and route are text")
    if not (0 < len(key) <= MAX_KEY_CHARACTERS and _is_visible_ascii(key)):
        raise BadInput(f"key {key!r} is not 1 to {MAX_KEY_CHARACTERS} visible ASCII characters")
    if not (route.startswith("/") and not route.startswith("//") and len(route) <= MAX_ROUTE_CHARACTERS):
        raise BadInput(f"route {route!r} is not a path of at most {MAX_ROUTE_CHARACTERS} characters that begins with one /")
    if not _is_visible_ascii(route) or "#" in route or route.endswith("?"):
        raise BadInput(f"route {route!r} holds characters that a request line cannot carry; percent-encode them")
    if len(intention.body) > MAX_BODY_BYTES:
        raise BadInput(f"the body has {len(intention.body)} bytes, at most {MAX_BODY_BYTES} can be sent")


def _is_visible_ascii(text: str) -> bool:
    return all("!" <= character <= "~" for character in text)
