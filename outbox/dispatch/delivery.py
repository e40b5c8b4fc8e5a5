"""One scan: claim what is due, send it, write what came of it (ADR-0059, D3 and D4).

The scan alternates between the database and the network. One transaction at a time settles all results that have come in and
claims as many due rows as there are free slots; then the claims are sent, each in a task of its own, while the next results
come in. So a commit is shared by many rows, and yet each send has one durable claim before it and one durable outcome after it.
A slow destination holds its slot and nothing else.

Nothing is open in the database while something is sent. Whoever dies here leaves rows in `delivering`; they are due again when
their lease has passed, which is why a receiver should know the dispatch's id.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import Connection

from outbox import faults
from outbox.dispatch.claim import CLAIM_LEASE_SECONDS, Claim, Claimed, claim
from outbox.dispatch.router import Router, RouterOptions
from outbox.dispatch.settings import CONCURRENCY, resolve_notify_template
from outbox.dispatch.settle import Jitter, SendResult, Settled, failed, settle
from outbox.dispatch.store import StateDB
from outbox.dispatch.transitions import Seen, apply
from outbox.errors import LockHeld, MachineRefused

log = logging.getLogger("outbox.dispatch")

COUNTERS = ("attempted", "delivered", "dead_letter", "expired", "retried")
# So many rows are settled in one transaction at most: what a statement can name, and what is lost to a rollback.
MAX_SETTLED_ROWS = 1000

CLAIM_BEFORE = faults.declare("dispatch.claim.before", "due rows are not claimed yet")
CLAIM_WRITTEN = faults.declare("dispatch.claim.written", "claims are written, not committed")
CLAIM_COMMITTED = faults.declare("dispatch.claim.committed", "claims are committed, nothing is sent")
SEND_BEFORE = faults.declare("dispatch.send.before", "a claimed dispatch is about to be sent")
SEND_RESPONSE = faults.declare("dispatch.send.response", "the result of a send is in hand, nothing recorded")
OUTCOME_BEFORE = faults.declare("dispatch.outcome.before", "results are about to be recorded")
OUTCOME_WRITTEN = faults.declare("dispatch.outcome.written", "results are written, not committed")
OUTCOME_COMMITTED = faults.declare("dispatch.outcome.committed", "results are committed")

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """How a scan works: sends at once, seconds of a lease, jitter of the backoff, and the transports' own bounds.

    A lease must be longer than a send may take, or a live claimant is taken for a dead one.
    """

    concurrency: int = CONCURRENCY
    lease_seconds: float = CLAIM_LEASE_SECONDS
    jitter: Jitter | None = None
    router: RouterOptions = field(default_factory=RouterOptions)


@dataclass(frozen=True, slots=True)
class Finished:
    """A claim, and the result of its send."""

    claim: Claim
    result: SendResult


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn at the books did: results `applied` and `superseded` (their claim was taken over), and new claims."""

    applied: tuple[Settled, ...]
    superseded: tuple[Finished, ...]
    claimed: Claimed


class Books(Protocol):
    """How claims and outcomes are written. The study has another one beside this module's, with the record's flaws."""

    async def turn(self, db: StateDB, finished: Sequence[Finished], scan: "Scan", room: int) -> Turn:
        """Write the outcomes of `finished`, then claim up to `room` rows."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What one scan knows: when it began (rows due then are its work), the clock, and its options."""

    began_at: float
    clock: Clock
    options: DeliveryOptions


class GuardedBooks:
    """Outcomes and claims in one transaction, each guarded by the claim that it belongs to."""

    async def turn(self, db: StateDB, finished: Sequence[Finished], scan: Scan, room: int) -> Turn:
        settled = [settle(each.claim, each.result, scan.options.jitter) for each in finished]
        return await db.write(lambda connection: self._work(connection, finished, settled, scan, room), "claims and outcomes")

    @staticmethod
    def _work(connection: Connection, finished: Sequence[Finished], settled: Sequence[Settled], scan: Scan, room: int) -> Turn:
        at = scan.clock()
        done: frozenset[Seen] = frozenset()
        if settled:
            done = apply(connection, [each.change for each in settled], at)
            faults.reach(OUTCOME_WRITTEN)
        claimed = Claimed(0, (), 0, 0)
        if room:
            claimed = claim(connection, due_until=scan.began_at, at=at, limit=room, lease_seconds=scan.options.lease_seconds)
            faults.reach(CLAIM_WRITTEN)
        applied = tuple(each for each in settled if each.change.seen in done)
        superseded = tuple(each for each in finished if each.claim.seen not in done)
        return Turn(applied, superseded, claimed)


@dataclass(slots=True)
class Delivery:
    """What a scan did: the record's counters, and how many outcomes came too late to count (`superseded`)."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))
    superseded: int = 0


async def deliver_due_dispatches(
    db: StateDB,
    *,
    now: float | Clock | None = None,
    notify_template: Sequence[str] | None = None,
    options: DeliveryOptions | None = None,
) -> dict[str, int]:
    """Make one scan and return its counters: `attempted`, `delivered`, `dead_letter`, `expired`, `retried`.

    `attempted` counts the rows that were selected; `delivered` the sends that the transport called a success, also where the
    row now waits for its acknowledgement; the others the rows that went there. An outcome that came after its claim was taken
    over changes nothing and is counted nowhere, but logged.

    `now`: None for the machine's clock, a function that is asked for the time (seconds since the epoch), or a number: the time
    at which the scan begins, from which it passes in whole seconds. Without `notify_template` that of the current directory's
    settings is used, if there is one. Raises BadValue for a template that cannot be used, and what `StateDB.write` raises; what
    was being sent then is waited for first, and its outcome is tried once more.
    """
    delivery = await deliver(db, now=now, notify_template=notify_template, options=options)
    return delivery.counts


async def deliver(
    db: StateDB,
    *,
    now: float | Clock | None = None,
    notify_template: Sequence[str] | None = None,
    options: DeliveryOptions | None = None,
    resolve_template: bool = True,
    books: Books | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Delivery:
    """The same, with all that can be told and set.

    Without `resolve_template` no template means none; `books` are those of a variant; `stopping` is asked before each claim.
    """
    chosen = options or DeliveryOptions()
    template = resolve_notify_template() if notify_template is None and resolve_template else notify_template
    clock = _clock(now)
    scan = Scan(clock(), clock, chosen)
    async with Router(template, chosen.router, chosen.concurrency, clock) as router:
        running = _Running(db, scan, router, books or GuardedBooks(), stopping)
        await running.run()
    return running.delivery


def _clock(now: float | Clock | None) -> Clock:
    if now is None:
        return time.time
    if callable(now):
        return now
    start, began = float(now), time.monotonic()
    # In whole seconds, so that a short scan happens at the very number, and the leases of a long one are right all the same.
    return lambda: start + math.floor(time.monotonic() - began)


class _Running:
    """One scan at work."""

    def __init__(self, db: StateDB, scan: Scan, router: Router, books: Books, stopping: Callable[[], bool]) -> None:
        self.delivery = Delivery()
        self._db, self._scan, self._router, self._books, self._stopping = db, scan, router, books, stopping
        self._finished: list[Finished] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._failure: Exception | None = None

    async def run(self) -> None:
        """Go on until nothing that was due is left and everything sent is recorded. Raises what the database raised."""
        try:
            while await self._turn():
                # After a refusal too: the database is asked again when there is more to write, not over and over.
                if self._sending and (self._failure or not self._finished):
                    await self._news.wait()
                self._news.clear()
        finally:
            # Reached with sends under way only when the scan itself is cancelled: their commands are killed, not abandoned.
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    async def _turn(self) -> bool:
        """Write what has come in and claim what there is room for; False when there is nothing left to do."""
        finished, self._finished = self._finished[:MAX_SETTLED_ROWS], self._finished[MAX_SETTLED_ROWS:]
        room = 0 if self._failure or self._stopping() else self._scan.options.concurrency - len(self._sending)
        if not finished and not room:
            return bool(self._sending)
        try:
            turn = await self._at_the_books(finished, room)
        except (LockHeld, MachineRefused) as error:
            return self._put_off(error, finished)
        self._count(turn)
        for each in turn.claimed.claims:
            self._start(each)
        return bool(self._sending or self._finished or turn.claimed.selected)

    async def _at_the_books(self, finished: Sequence[Finished], room: int) -> Turn:
        if finished:
            faults.reach(OUTCOME_BEFORE)
        if room:
            faults.reach(CLAIM_BEFORE)
        turn = await self._books.turn(self._db, finished, self._scan, room)
        if finished:
            faults.reach(OUTCOME_COMMITTED)
        if turn.claimed.claims:
            faults.reach(CLAIM_COMMITTED)
        return turn

    def _put_off(self, error: Exception, finished: list[Finished]) -> bool:
        """The database refused: claim nothing more, wait for what is being sent, then try once more to write outcomes."""
        if self._failure is not None and not self._sending:
            return False  # that was the second time; the rows are due again when their leases have passed
        self._failure = self._failure or error
        self._finished = finished + self._finished
        return bool(self._sending or self._finished)

    def _count(self, turn: Turn) -> None:
        counts = self.delivery.counts
        for settled in turn.applied:
            for name in settled.counts:
                counts[name] += 1
        counts["attempted"] += turn.claimed.selected
        counts["expired"] += turn.claimed.expired
        counts["dead_letter"] += turn.claimed.dead_letter
        self.delivery.superseded += len(turn.superseded)
        for late in turn.superseded:
            log.warning(
                "dispatch %s: the outcome of attempt %d (%s) came too late and changed nothing: the row was taken over, "
                "acknowledged or purged meanwhile",
                late.claim.id,
                late.claim.attempt,
                late.result.outcome,
            )

    def _start(self, claim: Claim) -> None:
        task = asyncio.create_task(self._send(claim), name=f"dispatch {claim.id}")
        self._sending.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._news.set()

    async def _send(self, claim: Claim) -> None:
        faults.reach(SEND_BEFORE)
        try:
            result = await self._router.send(claim)
        except Exception as error:
            # A bug of ours in one row must not hold up the others; it is told, and the row is tried again.
            log.exception("dispatch %s: sending raised", claim.id)
            result = failed(f"{type(error).__name__}: {error}", definite=False)
        faults.reach(SEND_RESPONSE)
        if result.error is not None:
            log.info("dispatch %s: attempt %d: %s", claim.id, claim.attempt, result.error)
        self._finished.append(Finished(claim, result))
