"""One scan of a dispatch outbox, told again: claim, send, and what was written down of it.

The turns are those of `outbox.dispatch.delivery` with one slot, as the study's scans have it: settle what has come in and claim
the next row in one transaction, send, and again until nothing is due; the same fault points in the same order. The variant as
recorded writes an outcome in three transactions. Which rows were claimed, and what became of each attempt, is read from the
transitions; an outcome that has none, of a claim that was overtaken meanwhile, came too late.
"""

from dataclasses import dataclass

from outbox.dispatch.books import CLAIM_WRITTEN, OUTCOME_WRITTEN
from outbox.dispatch.claim import ACTOR
from outbox.dispatch.delivery import (
    CLAIM_BEFORE,
    CLAIM_COMMITTED,
    COUNTERS,
    OUTCOME_BEFORE,
    OUTCOME_COMMITTED,
    SEND_BEFORE,
    SEND_RESPONSE,
)
from outbox.dispatch.edges import (
    ACK_TIMEOUT,
    ATTEMPT,
    DEAD_LETTER,
    DEADLINE,
    EXPIRED,
    MAX_ATTEMPTS,
    PENDING,
    RETRY_BACKOFF,
    TRANSPORT_OK,
)
from scenarios.dispatch.recorded import ERROR_COMMITTED, STATUS_COMMITTED
from scenarios.report import servers
from scenarios.report.actors import Absent, Actor, Replay, capital
from scenarios.report.books import Entry, backed_off, clock, short
from scenarios.report.events import Kind, Trait
from scenarios.report.posting import Refused, ask, hold, of, post, same_time, write, writer
from scenarios.report.scene import Scene
from scenarios.report.senders import printed
from scenarios.report.servers import Request
from scenarios.report.ways import exchange
from scenarios.report.words import figure, plain, text_of

SUPERSEDED = "superseded"
_OUTCOMES = (TRANSPORT_OK, RETRY_BACKOFF, MAX_ATTEMPTS, ACK_TIMEOUT)


@dataclass(frozen=True, slots=True)
class Claim:
    """An attempt that a scan has claimed, and whether its send succeeded once it was made."""

    identity: str
    attempt: int
    claim: int | None
    success: bool = False


def scan(scene: Scene, actor: Actor) -> Replay[None]:
    """One scan, and at its end what the process itself printed about it."""
    told = _Scan(scene, actor)
    yield from told.run()
    if actor.process.ended_by == "itself" and actor.process.exit_code == 0:
        counted = {**told.counts, SUPERSEDED: told.superseded}
        found = printed(actor)
        if found != counted:
            wrong = [name for name, value in counted.items() if found.get(name) != value] or sorted(found)
            names = ", ".join(map(plain, wrong))
            scene.doubt(f"{capital(actor.name)} printed another count of its scan than this story has ({names}).")


class _Scan:
    def __init__(self, scene: Scene, actor: Actor) -> None:
        self.scene, self.actor, self.books = scene, actor, of(scene)
        self.recorded = actor.process.option("--books") == "recorded"
        self.counts = dict.fromkeys(COUNTERS, 0)
        self.superseded = 0
        self.passed_over = False  # a row that another process had locked
        self.began = scene.now(actor)  # a variant dates everything by it

    def run(self) -> Replay[None]:
        finished: Claim | None = None
        refused = False
        while True:
            try:
                claim, found = yield from self._turn(finished, room=not refused)
            except Refused:
                if refused or finished is None:
                    return  # said already, and the process ends with the exit code that says so
                refused = True
                continue
            if refused or not found:
                break
            finished = None if claim is None else (yield from self._send(claim))
        if not any(self.counts.values()) and not self.superseded:
            self.actor.remark = "what was due was locked" if self.passed_over else "nothing was due"
            why = "passes over a row that another one has locked" if self.passed_over else "nothing is"
            words = f"{capital(self.actor.name)} asks for what is due, and {why}."
            # One scan of many that did nothing else is one row.
            first = self.scene.events[-1].kind is Kind.START and self.actor.process.incarnation > 1
            label = f"anything due? {'locked' if self.passed_over else 'nothing'}"
            ask(self.scene, self.actor, label, words, joined=first)

    def _turn(self, finished: Claim | None, *, room: bool) -> Replay[tuple[Claim | None, bool]]:
        """Settle and claim: the claim, and whether a row was found due."""
        scene, actor = self.scene, self.actor
        if finished is not None:
            yield from scene.reach(actor, OUTCOME_BEFORE)
        if room:
            yield from scene.reach(actor, CLAIM_BEFORE)
        if not self.recorded:
            if finished is not None:
                what = f"outcome of attempt {figure(finished.attempt)}" if room else "outcome again"
                yield from write(scene, actor, OUTCOME_WRITTEN, what)
            if room:
                yield from write(scene, actor, CLAIM_WRITTEN, "claim")
        else:
            hold(scene, actor, "claim" if finished is None else f"outcome of attempt {figure(finished.attempt)}")
        if finished is not None:
            yield from self._settle(finished)
        claim, found = self._claim() if room else (None, False)
        if finished is not None:
            yield from scene.reach(actor, OUTCOME_COMMITTED)
        if claim is not None:
            yield from scene.reach(actor, CLAIM_COMMITTED)
        return claim, found

    # Claiming.

    def _claim(self) -> tuple[Claim | None, bool]:
        given = self.books.next()
        if given is None or not self._is_claim(given):
            return None, False
        if writer(self.scene, given) is not None:
            self.passed_over = True
            return None, False
        self.counts["attempted"] += 1
        row = post(self.scene, self.actor, given)
        if given.reason == ATTEMPT:
            return Claim(given.identity, row.attempt, given.claim), True
        self.counts[EXPIRED if given.status == EXPIRED else DEAD_LETTER] += 1
        return None, True

    def _is_claim(self, given: Entry) -> bool:
        """Whether this scan made the transition when it looked for what is due."""
        ended = given.reason == MAX_ATTEMPTS and given.attempt is None
        kind = ended or given.reason in (ATTEMPT, DEADLINE)
        row = self.books.rows.get(given.identity)
        known = row is not None and row.status == given.previous
        return kind and known and not given.by_operator and text_of(given.line.data, "actor") == ACTOR and self._dated(given)

    def _dated(self, given: Entry) -> bool:
        if self.recorded:
            return given.at is not None and clock(given.at) == self._date()
        return same_time(self.scene, self.actor, given)

    def _date(self) -> str:
        try:
            return clock(float(self.began))
        except ValueError:
            return ""

    # Sending.

    def _send(self, claim: Claim) -> Replay[Claim]:
        scene, actor = self.scene, self.actor
        yield from scene.reach(actor, SEND_BEFORE)
        again = claim.identity in scene.sent
        by_command = bool(actor.process.option("--courier"))
        how = "command POSTs" if by_command else "POST"
        words = f"{how} {short(claim.identity)}, attempt {figure(claim.attempt)}"
        request = Request(claim.identity, claim.identity, claim.attempt, None, words, again)
        name = servers.target(actor)
        if by_command and "--careless" in actor.process.arguments and scene.running(name) is not None:
            success = yield from self._hand_over(name, request)
        else:
            success = (yield from exchange(scene, actor, name, request)).success
        yield from scene.reach(actor, SEND_RESPONSE)
        return Claim(claim.identity, claim.attempt, claim.claim, success)

    def _hand_over(self, name: str, request: Request) -> Replay[bool]:
        """A command that does not wait: what the receiver does comes when it comes, and is told behind the scan."""
        scene, server = self.scene, self.scene.running(name)
        if server is None:
            return False
        rest = yield from servers.handed_over(scene, self.actor, server, request)
        scene.later.append((server, rest))
        return True

    # Settling.

    def _settle(self, done: Claim) -> Replay[None]:
        """The outcome of an attempt is committed, or comes too late."""
        given = self.books.next()
        ours = given if given is not None and self._is_outcome(given, done) else None
        failed = not done.success if ours is None else ours.reason in (RETRY_BACKOFF, MAX_ATTEMPTS)
        if self.recorded and failed:
            sentence = f"{capital(self.actor.name)} commits the error of attempt {figure(done.attempt)}, by itself."
            ask(self.scene, self.actor, f"error of attempt {figure(done.attempt)}", sentence)
            yield from self.scene.reach(self.actor, ERROR_COMMITTED)
        if ours is None:
            self._too_late(done)
            return
        self._count(ours)
        later = self.recorded and failed and ours.status == PENDING
        post(self.scene, self.actor, ours, due_later=later)
        if later:
            yield from self.scene.reach(self.actor, STATUS_COMMITTED)
            due = backed_off(ours.at, done.attempt)
            self.books.set_due(done.identity, due)
            sentence = f"{capital(self.actor.name)} commits the due time, {clock(due)}, by itself."
            ask(self.scene, self.actor, f"due {clock(due)}", sentence)

    def _is_outcome(self, given: Entry, done: Claim) -> bool:
        same = (given.identity, given.attempt, given.claim) == (done.identity, done.attempt, done.claim)
        return same and given.reason in _OUTCOMES and not given.by_operator and self._dated(given)

    def _count(self, given: Entry) -> None:
        if given.reason in (TRANSPORT_OK, ACK_TIMEOUT):
            self.counts["delivered"] += 1
        if given.status == DEAD_LETTER:
            self.counts["dead_letter"] += 1
        if given.reason == RETRY_BACKOFF:
            self.counts["retried"] += 1

    def _too_late(self, done: Claim) -> None:
        """The row is not as this claim left it. Raises Absent where it is: then a transition is missing."""
        guard = None if self.recorded else done.claim
        if self.books.holds(done.identity, done.attempt, guard):
            which = f"attempt {figure(done.attempt)} of {short(done.identity)}"
            sentence = f"{capital(self.actor.name)} would now commit the outcome of {which}"
            raise Absent(self.actor, f"{sentence}, but no transition says so. What else this process did cannot be told.")
        self.superseded += 1
        self.actor.remark = f"superseded {self.superseded}"
        what = f"outcome of attempt {figure(done.attempt)}{self.books.of(done.identity)}"
        words = f"{capital(self.actor.name)} brings the {what} too late: the row is that claim's no more, and nothing changes."
        label = f"{self.books.name(done.identity)} attempt {figure(done.attempt)}: too late".strip()
        ask(self.scene, self.actor, label, words, traits=[Trait.LATE])
