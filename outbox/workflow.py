"""Intention, delivery, receipt, history: four durable steps, each safe to repeat.

An intention (key, route, exact body bytes) is persisted before anything is sent. Each attempt is recorded before its first byte
leaves, so an attempt without an ending is *in doubt*, not forgotten. The result that comes back is persisted as a receipt, and
the receipt makes the history record possible. A process may die between any two steps; the next one reads the journals and goes
on.

What this cannot know is whether the receiver acted when no receipt was written. The policy says what is done about that; the
default sends again with the original key and the unchanged bytes: delivered at least once, applied once only if the receiver
keeps its part of the agreement (a keyed receiver).
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from outbox import faults, journal
from outbox.errors import BadInput, DamagedJournal
from outbox.journal import Record
from outbox.outcome import APPLIED, DID_NOT_HAPPEN, MAY_HAVE_HAPPENED, NOT_APPLIED, Delivered, Inquiry, NotDelivered, Outcome
from outbox.policies import Policy

MAX_KEY_CHARACTERS = 255
MAX_ROUTE_CHARACTERS = 2000
MAX_BODY_BYTES = 1024 * 1024

INTENTIONS = journal.declare("intentions", "intention")
ATTEMPTS = journal.declare("attempts", "attempt", "outcome", "inquiry")
RECEIPTS = journal.declare("receipts", "receipt")
HISTORY = journal.declare("history", "history")

BEFORE_SEND = faults.declare("send.before", "the attempt is recorded, nothing is sent")
RESPONSE = faults.declare("send.response", "a response is in hand, nothing of it is recorded")
BEFORE_INQUIRY = faults.declare("inquiry.before", "the attempt is in doubt, the receiver has not been asked")

VIA_RESPONSE, VIA_QUERY, VIA_MARK = "response", "status_query", "mark"


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


@dataclass(frozen=True, slots=True)
class Sent:
    """What an attempt carries: its number (from 1), the key, and the fingerprint of the bytes."""

    number: int
    key: str
    fingerprint: str


class Wire(Protocol):
    """What a workflow needs of a transport."""

    async def send(self, *, route: str, key: str, body: bytes, attempt: int) -> Outcome:
        """Make one request and say what became of it."""

    async def inquire(self, key: str) -> Inquiry:
        """Ask whether the operation was applied."""

    def now(self) -> float:
        """Seconds since the epoch, by the clock that is injected where time decides."""


@dataclass(frozen=True, slots=True)
class NotDue:
    """Nothing was sent: the receiver asked for no attempt before `not_before` (seconds since the epoch)."""

    not_before: float


def submit(directory: Path, intention: Intention, *, wait_seconds: float = 10.0) -> bool:
    """Persist `intention` in `directory`, which is created if absent. True if it is new, False if the same was there.

    Raises BadInput for a key, route or body that cannot be sent, and for a known key with another route or body.
    """
    check(intention)
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
            check(intention)
            whole = record.id == intention.key and record.data["fingerprint"] == intention.fingerprint
        except (KeyError, TypeError, ValueError, BadInput) as error:
            raise DamagedJournal(f"{INTENTIONS.path(directory)}, line {record.sequence}: no intention: {error!r}") from None
        if not whole:
            raise DamagedJournal(f"{INTENTIONS.path(directory)}, line {record.sequence}: its key or fingerprint is not its own")
        yield intention


class Workflow:
    """The dispatcher's journals of one directory, owned for appending. The caller holds `dispatcher.lock`."""

    def __init__(self, directory: Path, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()
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
        """The receipt of `intention`, if there is one."""
        return self._receipts.find("receipt", intention.key)

    async def deliver(self, intention: Intention, wire: Wire) -> Record | NotDelivered | NotDue:
        """Bring one intention as far as it goes now. Returns its receipt, or why there is none, after recording either."""
        last = self._last_attempt(intention)
        ended = self._attempts.find("outcome", f"{intention.key}#{last}")
        not_before = ended.data["not_before"] if ended else None
        if not_before is not None and wire.now() < not_before:
            return NotDue(not_before)
        if self._policy.reconciles:
            for number in range(1, last + 1):
                settled = await self._reconcile(intention, number, wire) if self._in_doubt(intention, number) else None
                if settled is not None:
                    return settled
        return await self._attempt(intention, last + 1, wire)

    def commit_history(self, intention: Intention, receipt: Record) -> bool:
        """Record the completed turn. True if it was not there yet. Without a result there is no answer, and no record."""
        if receipt.data["result"] is None:
            return False
        known = len(self._history)
        self._history.append(
            "history", intention.key, {"question": journal.payload(intention.body), "answer": receipt.data["result"]}
        )
        return len(self._history) > known

    async def _attempt(self, intention: Intention, number: int, wire: Wire) -> Record | NotDelivered:
        body = self._policy.body(intention.body, number)
        sent = Sent(number, self._policy.key(intention.key, number), journal.fingerprint(body))
        attempt_id = f"{intention.key}#{number}"
        identity = {"intention": intention.key, "number": number}
        self._attempts.append("attempt", attempt_id, {**identity, "key": sent.key, "fingerprint": sent.fingerprint})
        if self._policy.marks_before_send:
            self._record_receipt(intention, sent, VIA_MARK)
        faults.reach(BEFORE_SEND)
        outcome = await wire.send(route=intention.route, key=sent.key, body=body, attempt=number)
        if isinstance(outcome, Delivered) or outcome.status is not None:
            faults.reach(RESPONSE)
        if self._policy.marks_before_send:
            return self._record_receipt(intention, sent, VIA_MARK)
        if isinstance(outcome, Delivered):
            return self._record_receipt(
                intention, sent, VIA_RESPONSE, status=outcome.status, result=outcome.result, replayed=outcome.replayed
            )
        ending = {"outcome": outcome.outcome, "reason": outcome.reason, "status": outcome.status}
        self._attempts.append("outcome", attempt_id, {**identity, **ending, "not_before": outcome.not_before})
        return outcome

    def _in_doubt(self, intention: Intention, number: int) -> bool:
        """Whether attempt `number` left and nobody has said yet what became of it."""
        ended = self._attempts.find("outcome", f"{intention.key}#{number}")
        asked = self._attempts.find("inquiry", f"{intention.key}#{number}?{self._times_asked(intention, number)}")
        not_applied = asked is not None and asked.data["answer"] == NOT_APPLIED
        return (ended is None or ended.data["outcome"] != DID_NOT_HAPPEN) and not not_applied

    def _times_asked(self, intention: Intention, number: int) -> int:
        asked = 0
        while self._attempts.find("inquiry", f"{intention.key}#{number}?{asked + 1}") is not None:
            asked += 1
        return asked

    async def _reconcile(self, intention: Intention, number: int, wire: Wire) -> Record | NotDelivered | None:
        """Ask about the attempt in doubt. None means that it was not applied, and may be sent again."""
        faults.reach(BEFORE_INQUIRY)
        sent = self._sent(intention, number)
        inquiry = await wire.inquire(sent.key)
        asked = self._times_asked(intention, number) + 1
        self._attempts.append(
            "inquiry",
            f"{intention.key}#{number}?{asked}",
            {"intention": intention.key, "number": number, "answer": inquiry.answer},
        )
        if inquiry.answer == NOT_APPLIED:
            return None
        if inquiry.answer == APPLIED:
            return self._record_receipt(intention, sent, VIA_QUERY, status=inquiry.status, result=inquiry.result)
        return NotDelivered(MAY_HAVE_HAPPENED, "undecided", None, f"the receiver cannot say whether it acted: {inquiry.detail}")

    def _sent(self, intention: Intention, number: int) -> Sent:
        """What attempt `number` carried, from its record: another policy may have made it."""
        record = self._attempts.find("attempt", f"{intention.key}#{number}")
        if record is None:
            raise LookupError(f"{intention.key} has no attempt {number}")
        return Sent(number, record.data["key"], record.data["fingerprint"])

    def _last_attempt(self, intention: Intention) -> int:
        number = 0
        while self._attempts.find("attempt", f"{intention.key}#{number + 1}") is not None:
            number += 1
        return number

    def _record_receipt(
        self,
        intention: Intention,
        sent: Sent,
        via: str,
        *,
        status: int | None = None,
        result: bytes | None = None,
        replayed: bool = False,
    ) -> Record:
        data: dict[str, Any] = {
            "intention": intention.key,
            "key": sent.key,
            "attempt": sent.number,
            "fingerprint": sent.fingerprint,
            "via": via,
            "status": status,
            "replayed": replayed,
            "result": None if result is None else journal.payload(result),
        }
        return self._receipts.append("receipt", intention.key, data)


def check(intention: Intention) -> None:
    """Raise BadInput for a key, route or body that cannot be sent. A route begins with one slash, so no host can hide in it."""
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
    return text.isascii() and text.isprintable() and " " not in text
