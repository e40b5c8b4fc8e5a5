"""What the sender's programs do, told again from their journals: producer, dispatcher, bare client.

The dispatcher's pass is that of `outbox.dispatcher` and `outbox.workflow`: intentions in order, each at most one attempt, and
the same fault points in the same order. What became of an attempt is read from the record that follows; only where the
process died before it could write one is it taken from what the receiver answered.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from outbox.dispatcher import Summary
from outbox.outcome import APPLIED, DID_NOT_HAPPEN, MAY_HAVE_HAPPENED, NOT_APPLIED, UNANSWERABLE, NotDelivered
from outbox.workflow import ATTEMPTS, BEFORE_INQUIRY, BEFORE_SEND, HISTORY, INTENTIONS, RECEIPTS, RESPONSE
from scenarios.client import REQUESTS
from scenarios.report.actors import Actor, Replay, Said, capital
from scenarios.report.events import Trait
from scenarios.report.facts import Line
from scenarios.report.scene import Scene
from scenarios.report.servers import Request, target
from scenarios.report.servers import inquire as ask
from scenarios.report.shelf import Cursor
from scenarios.report.ways import exchange
from scenarios.report.words import label, number_of, plain, text_of

NOTHING: frozenset[Trait] = frozenset()
_NO_RECEIVER = ("connection_refused", "connect_timeout", "unreachable")


def producer(scene: Scene, actor: Actor) -> Replay[None]:
    """One intention is persisted, unless it is there already."""
    intentions = scene.shelf.cursor(actor.folder(), INTENTIONS.name)
    yield from scene.open(actor, intentions, INTENTIONS)
    key = actor.process.option("--key")
    if intentions.find("intention", key) is None:
        sentence = f"{capital(actor.name)} writes the intention {plain(key)}: what must be sent."
        yield from scene.append(
            actor, intentions, INTENTIONS.types["intention"], ("intention", key), lambda _: ("intention", sentence, NOTHING)
        )


def client(scene: Scene, actor: Actor) -> Replay[None]:
    """A bare client records its request, sends it, and records what came back."""
    requests = scene.shelf.cursor(actor.folder(), REQUESTS.name)
    line = yield from client_request(scene, actor, requests)
    key = text_of(line.data, "key")
    yield from exchange(scene, actor, target(actor), Request(key, key, None, actor.process.name, "POST"))
    yield from client_result(scene, actor, requests)


def client_request(scene: Scene, actor: Actor, requests: Cursor, *, joined: bool = False) -> Replay[Line]:
    """The record that a client makes before it sends."""

    def say(line: Line) -> Said:
        return "request", f"{capital(actor.name)} records its request under key {plain(text_of(line.data, 'key'))}.", NOTHING

    points = REQUESTS.types["request"]
    return (yield from scene.append(actor, requests, points, ("request", actor.process.name), say, joined=joined))


def client_result(scene: Scene, actor: Actor, requests: Cursor, *, joined: bool = False) -> Replay[None]:
    """The record that a client makes of what came back."""
    wanted = "response" if requests.next_is("response") else "outcome"

    def say(line: Line) -> Said:
        if wanted == "response":
            replayed = line.data.get("replayed") is True
            words = "response, replayed" if replayed else "response"
            return words, f"{capital(actor.name)} records the {words}.", frozenset({Trait.REPLAYED}) if replayed else NOTHING
        return _outcome(actor, line)

    points = REQUESTS.types[wanted]
    yield from scene.append(actor, requests, points, (wanted, actor.process.name), say, joined=joined)


def dispatcher(scene: Scene, actor: Actor) -> Replay[None]:
    """One pass over the intentions, and at its end what the process itself printed about it."""
    told = yield from _Pass(scene, actor).run()
    if told.waiting:
        actor.remark = "not due yet"
    elif told.already_delivered == told.intentions and not told.history_added:
        actor.remark = "nothing to do"
    if actor.process.ended_by == "itself" and not actor.halts:
        found = printed(actor)
        counted = asdict(told)
        if found != counted:
            wrong = [name for name, value in counted.items() if found.get(name) != value] or sorted(found)
            scene.doubt(
                f"{capital(actor.name)} printed another count of its pass than this story has ({', '.join(map(plain, wrong))})."
            )


def printed(actor: Actor) -> Mapping[str, Any]:
    """The JSON object that a process printed, or nothing."""
    try:
        value = json.loads(actor.process.stdout)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _Pass:
    def __init__(self, scene: Scene, actor: Actor) -> None:
        self.scene, self.actor = scene, actor
        self.policy = actor.process.option("--policy", "resend")
        self.server = target(actor)
        folder = actor.folder()
        self.intentions, self.attempts, self.receipts, self.history = (
            scene.shelf.cursor(folder, spec.name) for spec in (INTENTIONS, ATTEMPTS, RECEIPTS, HISTORY)
        )
        self.summary = Summary()
        self.gone = False

    def run(self) -> Replay[Summary]:
        for cursor, spec in ((self.attempts, ATTEMPTS), (self.receipts, RECEIPTS), (self.history, HISTORY)):
            yield from self.scene.open(self.actor, cursor, spec)
        many = len(self.intentions) > 1
        for intention in self.intentions.placed():
            self.summary.intentions += 1
            key = intention.id
            receipt = self.receipts.find("receipt", key)
            if receipt is not None:
                self.summary.already_delivered += 1
            elif self.gone:
                self.summary.not_attempted += 1
                continue
            else:
                receipt = yield from self._deliver(key, f" of {label(key, 24)}" if many else "")
                if receipt is None:
                    continue
                self.summary.delivered += 1
            yield from self._complete(key, receipt)
        return self.summary

    def _complete(self, key: str, receipt: Line) -> Replay[None]:
        if receipt.data.get("result") is None or self.history.find("history", key) is not None:
            return
        sentence = (
            f"{capital(self.actor.name)} writes the history record of {plain(key)}: question and answer, the turn is complete."
        )
        yield from self.scene.append(
            self.actor, self.history, HISTORY.types["history"], ("history", key), lambda _: ("history", sentence, NOTHING)
        )
        self.summary.history_added += 1
        self.scene.say_moment(key)

    def _deliver(self, key: str, of: str) -> Replay[Line | None]:
        last = 0
        while self.attempts.find("attempt", f"{key}#{last + 1}") is not None:
            last += 1
        if self._waits(key, last):
            self.summary.waiting += 1
            return None
        if self.policy == "reconcile":
            for number in range(1, last + 1):
                if self._in_doubt(key, number):
                    settled, receipt = yield from self._reconcile(key, number)
                    if settled:
                        return receipt
        return (yield from self._attempt(key, last + 1, of))

    def _waits(self, key: str, last: int) -> bool:
        ended = self.attempts.find("outcome", f"{key}#{last}")
        not_before = ended.data.get("not_before") if ended else None
        if not isinstance(not_before, int | float):
            return False
        try:
            return float(self.actor.process.option("--now")) < not_before
        except ValueError:  # by the clock: the records tell
            return not self.attempts.next_is("attempt", f"{key}#{last + 1}")

    def _attempt(self, key: str, number: int, of: str) -> Replay[Line | None]:
        scene, actor = self.scene, self.actor
        name = f"{key}#{number}"
        sentence = f"{capital(actor.name)} records attempt {number} of {plain(key)} before its first byte leaves."
        again = key in scene.sent
        traits = frozenset({Trait.RESENT}) if again else NOTHING
        points = ATTEMPTS.types["attempt"]
        line = yield from scene.append(
            actor, self.attempts, points, ("attempt", name), lambda _: (f"attempt {number}{of}", sentence, traits)
        )
        if self.policy == "mark-before-send":
            yield from self._receipt(key)
        yield from scene.reach(actor, BEFORE_SEND)
        words = f"POST{' again' if again else ''}, attempt {number}{of}"
        request = Request(key, text_of(line.data, "key"), number, None, words, again)
        back = yield from exchange(scene, actor, self.server, request)
        receipt = self.receipts.peek() if self.receipts.next_is("receipt", key) else None
        recorded = receipt is not None and receipt.data.get("attempt") == number and text_of(receipt.data, "via") == "response"
        delivered = recorded or (actor.halts and back.success and not self.attempts.next_is("outcome", name))
        ended = self.attempts.peek() if self.attempts.next_is("outcome", name) else None
        status = back.status if ended is None else number_of(ended.data, "status")
        if delivered or status is not None:
            yield from scene.reach(actor, RESPONSE)
        if self.policy == "mark-before-send":
            return self.receipts.find("receipt", key)
        if delivered:
            return (yield from self._receipt(key))
        points = ATTEMPTS.types["outcome"]
        line = yield from scene.append(actor, self.attempts, points, ("outcome", name), lambda each: _outcome(actor, each))
        reason = text_of(line.data, "reason")
        refused = status is not None and text_of(line.data, "outcome") == DID_NOT_HAPPEN
        (scene.denied.add if again and refused else scene.denied.discard)(key)
        self.summary.count(NotDelivered(text_of(line.data, "outcome"), reason, None, ""))
        self.gone = reason in _NO_RECEIVER
        return None

    def _receipt(self, key: str) -> Replay[Line]:
        def say(line: Line) -> Said:
            via = text_of(line.data, "via")
            how = {"status_query": " by status query", "mark": ", before anything is sent"}.get(via, "")
            replayed = line.data.get("replayed") is True
            mark = " (replayed)" if replayed else ""
            sentence = f"{capital(self.actor.name)} writes the receipt of {plain(key)}{how}{mark}."
            return f"receipt{how}{mark}", sentence, frozenset({Trait.REPLAYED}) if replayed else NOTHING

        return (yield from self.scene.append(self.actor, self.receipts, RECEIPTS.types["receipt"], ("receipt", key), say))

    def _asked(self, key: str, number: int) -> int:
        asked = 0
        while self.attempts.find("inquiry", f"{key}#{number}?{asked + 1}") is not None:
            asked += 1
        return asked

    def _in_doubt(self, key: str, number: int) -> bool:
        ended = self.attempts.find("outcome", f"{key}#{number}")
        latest = self.attempts.find("inquiry", f"{key}#{number}?{self._asked(key, number)}")
        cleared = latest is not None and latest.data.get("answer") == NOT_APPLIED
        return (ended is None or ended.data.get("outcome") == MAY_HAVE_HAPPENED) and not cleared

    def _reconcile(self, key: str, number: int) -> Replay[tuple[bool, Line | None]]:
        """Ask about an attempt in doubt: whether that settles the intention, and its receipt."""
        scene, actor = self.scene, self.actor
        yield from scene.reach(actor, BEFORE_INQUIRY)
        attempt = self.attempts.find("attempt", f"{key}#{number}")
        yield from ask(scene, actor, self.server, text_of(attempt.data, "key") if attempt else key)

        def say(line: Line) -> Said:
            answer = plain(text_of(line.data, "answer"))
            sentence = f"{capital(actor.name)} records what it was told about attempt {number}: {answer}."
            return f"inquiry: {answer}", sentence, NOTHING

        name = f"{key}#{number}?{self._asked(key, number) + 1}"
        line = yield from scene.append(actor, self.attempts, ATTEMPTS.types["inquiry"], ("inquiry", name), say)
        answer = text_of(line.data, "answer")
        if answer == NOT_APPLIED:
            return False, None
        if answer == APPLIED:
            return True, (yield from self._receipt(key))
        if answer == UNANSWERABLE:
            self.summary.count(NotDelivered(MAY_HAVE_HAPPENED, "undecided", None, ""))
        return True, None


def _outcome(actor: Actor, line: Line) -> Said:
    reason, outcome = plain(text_of(line.data, "reason"), 60), text_of(line.data, "outcome")
    unknown = outcome == MAY_HAVE_HAPPENED
    meaning = "it may have happened" if unknown else "this attempt did nothing"
    sentence = f"{capital(actor.name)} records the outcome: {reason}; {meaning}."
    return f"outcome: {reason}", sentence, frozenset({Trait.CUT if unknown else Trait.REFUSED})
