"""One scan: claim what is due, send it, write what came of it (ADR-0059, D3 and D4).

The scan alternates between the database and the network. One transaction at a time settles all results that have come in and
claims as many due rows as there are free slots (`books`); then the claims are sent, each in a task of its own, while the next
results come in. So a commit is shared by many rows, and yet each send has one durable claim before it and one durable outcome
after it. A slow destination holds its own slots and nothing else.

Nothing is open in the database while something is sent. Whoever dies here leaves rows in `delivering`; they are due again when
their lease has passed, which is why a receiver should know the dispatch's id.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from outbox import faults
from outbox.dispatch.books import Books, DeliveryOptions, Finished, GuardedBooks, Scan, Turn
from outbox.dispatch.claim import Claim
from outbox.dispatch.clock import Clock, clock_from
from outbox.dispatch.others import Others
from outbox.dispatch.router import Router
from outbox.dispatch.settings import resolve_notify_template
from outbox.dispatch.settle import failed
from outbox.dispatch.slots import Room, Slots
from outbox.dispatch.store import StateDB

log = logging.getLogger("outbox.dispatch")

COUNTERS = ("attempted", "delivered", "dead_letter", "expired", "retried")
# So many rows are settled in one transaction at most: what a statement can name, and what is lost to a rollback.
MAX_SETTLED_ROWS = 1000
# So long a result waits for others at most before it is recorded.
MAX_GATHER_SECONDS = 0.05

CLAIM_BEFORE = faults.declare("dispatch.claim.before", "due rows are not claimed yet")
CLAIM_COMMITTED = faults.declare("dispatch.claim.committed", "claims are committed, nothing is sent")
SEND_BEFORE = faults.declare("dispatch.send.before", "a claimed dispatch is about to be sent")
SEND_RESPONSE = faults.declare("dispatch.send.response", "the result of a send is in hand, nothing recorded")
OUTCOME_BEFORE = faults.declare("dispatch.outcome.before", "results are about to be recorded")
OUTCOME_COMMITTED = faults.declare("dispatch.outcome.committed", "results are committed")


@dataclass(slots=True)
class Delivery:
    """What a scan did: the record's counters, and how many outcomes came too late to count (`superseded`)."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))
    superseded: int = 0

    def add(self, turn: Turn) -> None:
        """Count a turn, and log what came too late."""
        for settled in turn.applied:
            for name in settled.counts:
                self.counts[name] += 1
        self.counts["attempted"] += turn.claimed.selected
        self.counts["expired"] += turn.claimed.expired
        self.counts["dead_letter"] += turn.claimed.dead_letter
        self.superseded += len(turn.superseded)
        for late in turn.superseded:
            log.warning(
                "dispatch %s: the outcome of attempt %d (%s) came too late and changed nothing: the row was taken over, "
                "acknowledged or purged meanwhile",
                late.claim.id,
                late.claim.attempt,
                late.result.outcome,
            )


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
    tick_seconds: float | None = None,
    books: Books | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Delivery:
    """The same, with all that can be told and set.

    Without `resolve_template` no template means none; with `tick_seconds` a long scan goes on with what becomes due meanwhile,
    at each tick; `books` are those of a variant; `stopping` is asked before each claim.
    """
    chosen = options or DeliveryOptions()
    template = resolve_notify_template() if notify_template is None and resolve_template else notify_template
    clock = clock_from(now)
    scan = Scan(clock(), clock, chosen, tick_seconds)
    slots = Slots(chosen.concurrency, chosen.total)
    async with Router(template, chosen.router, slots.total, clock) as router:
        running = _Running(db, scan, router, slots)
        running.books, running.stopping = books or running.books, stopping
        await running.run()
    return running.delivery


class _Running:
    """One scan at work."""

    def __init__(self, db: StateDB, scan: Scan, router: Router, slots: Slots) -> None:
        self.delivery = Delivery()
        self.books: Books = GuardedBooks()
        self.stopping: Callable[[], bool] = lambda: False
        self._db, self._scan, self._router, self._slots = db, scan, router, slots
        self._finished: list[Finished] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._half = asyncio.Event()
        self._turn_seconds = 0.0
        self._others = Others()
        self._due_until = scan.began_at
        self._failure: Exception | None = None

    async def run(self) -> None:
        """Go on until nothing that was due is left and everything sent is recorded. Raises what the database raised."""
        try:
            while await self._turn():
                # After a refusal too: the database is asked again when there is more to write, not over and over.
                if self._sending and (self._failure or not self._finished):
                    await self._wait()
                await self._gather()
                self._news.clear()
        finally:
            # Reached with sends under way only when the scan itself is cancelled: their commands are killed, not abandoned.
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    async def _wait(self) -> None:
        """Until a send has ended, or until the next tick."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._scan.tick_seconds):
                await self._news.wait()

    async def _gather(self) -> None:
        """Wait for more results, until as many have ended as are still under way, or for as long as the last turn took.

        A turn is shared by all that have ended before it. Without this one of few and one of many would take turns, and the
        network would rest during the large ones.
        """
        if not self._finished or len(self._finished) >= len(self._sending):
            return
        self._half.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(self._turn_seconds, MAX_GATHER_SECONDS)):
                await self._half.wait()

    async def _turn(self) -> bool:
        """Write what has come in and claim what there is room for; False when there is nothing left to do."""
        finished, self._finished = self._finished[:MAX_SETTLED_ROWS], self._finished[MAX_SETTLED_ROWS:]
        self._others.ending(finished)
        room = self._room()
        if not finished and room is None:
            return bool(self._sending)
        try:
            turn = await self._at_the_books(finished, room)
        except Exception as error:
            return self._put_off(error, finished)
        self.delivery.add(turn)
        for each in turn.claimed.claims:
            self._start(each)
        if room is not None and turn.claimed.selected == room.rows:
            self._news.set()  # there may be more, for those who still have room
        self._others.learn(turn.claimed, room, self._due_until)
        return bool(self._sending or self._finished or turn.claimed.selected)

    def _room(self) -> Room | None:
        if self._failure is not None or self.stopping():
            return None
        room = self._slots.room()
        if room.full and self._scan.tick_seconds is not None:
            self._due_until = self._scan.due_until(self._scan.clock())
        return None if room.rows == 0 or self._others.none_due(room, self._due_until) else room

    async def _at_the_books(self, finished: Sequence[Finished], room: Room | None) -> Turn:
        if finished:
            faults.reach(OUTCOME_BEFORE)
        if room is not None:
            faults.reach(CLAIM_BEFORE)
        began = asyncio.get_running_loop().time()
        turn = await self.books.turn(self._db, finished, self._scan, room)
        self._turn_seconds = asyncio.get_running_loop().time() - began
        if finished:
            faults.reach(OUTCOME_COMMITTED)
        if turn.claimed.claims:
            faults.reach(CLAIM_COMMITTED)
        return turn

    def _put_off(self, error: Exception, finished: list[Finished]) -> bool:
        """The database refused: claim nothing more, wait for what is being sent, then try once more to write outcomes."""
        again = self._failure is not None
        self._failure = self._failure or error
        self._finished = finished + self._finished
        if again and not self._sending:
            log.error(
                "the outcomes of %d sends could not be recorded; their dispatches are due again when the leases have passed",
                len(self._finished),
            )
            return False
        return bool(self._sending or self._finished)

    def _start(self, claim: Claim) -> None:
        self._slots.take(claim)
        task = asyncio.create_task(self._send(claim), name=f"dispatch {claim.id}")
        self._sending.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._news.set()
        if len(self._finished) >= len(self._sending):
            self._half.set()

    async def _send(self, claim: Claim) -> None:
        faults.reach(SEND_BEFORE)
        try:
            result = await self._router.send(claim)
        except Exception as error:
            # A bug of ours in one row must not hold up the others; it is told, and the row is tried again.
            log.exception("dispatch %s: sending raised", claim.id)
            result = failed(f"{type(error).__name__}: {error}", definite=False)
        finally:
            self._slots.give_back(claim)
        faults.reach(SEND_RESPONSE)
        if result.error is not None:
            log.info("dispatch %s: attempt %d: %s", claim.id, claim.attempt, result.error)
        self._finished.append(Finished(claim, result))
