"""How a scan writes: the outcomes that have come in and the claims that there is room for, in one transaction (ADR-0059, D3,
D4).

Each outcome is guarded by the claim that it belongs to: whoever was overtaken changes nothing and is told. `Books` is what a
scan needs of this; the study has another implementation, with the flaws that the record lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sqlalchemy import Connection

from outbox import faults
from outbox.dispatch import checks
from outbox.dispatch.claim import CLAIM_LEASE_SECONDS, Claim, Claimed, claim
from outbox.dispatch.clock import Clock
from outbox.dispatch.errors import BadValue
from outbox.dispatch.router import RouterOptions
from outbox.dispatch.settings import CONCURRENCY, MAX_CONCURRENCY
from outbox.dispatch.settle import Jitter, SendResult, Settled, settle
from outbox.dispatch.slots import Room
from outbox.dispatch.store import StateDB
from outbox.dispatch.transitions import Seen, apply

CLAIM_WRITTEN = faults.declare("dispatch.claim.written", "claims are written, not committed")
OUTCOME_WRITTEN = faults.declare("dispatch.outcome.written", "results are written, not committed")


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """How a scan works: sends at once to one destination, seconds of a lease, jitter of the backoff, the transports' bounds,
    and sends at once altogether (None: twice as many as to one).

    Raises BadValue when it is made. A lease must be longer than a send may take, or a live claimant is taken for a dead one.
    """

    concurrency: int = CONCURRENCY
    lease_seconds: float = CLAIM_LEASE_SECONDS
    jitter: Jitter | None = None
    router: RouterOptions = field(default_factory=RouterOptions)
    total: int | None = None

    def __post_init__(self) -> None:
        if self.total is not None:
            checks.whole("total", self.total, 1, 2 * MAX_CONCURRENCY)
        checks.whole("concurrency", self.concurrency, 1, MAX_CONCURRENCY)
        if checks.seconds("lease_seconds", self.lease_seconds) <= self.router.timeout_seconds:
            raise BadValue(
                f"lease_seconds is {self.lease_seconds!r}; expected more than the {self.router.timeout_seconds:g} seconds that "
                "a send may take"
            )


class Finished(NamedTuple):
    """A claim, and the result of its send."""

    claim: Claim
    result: SendResult


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn at the books did: results `applied` and `superseded` (their claim was taken over), and new claims."""

    applied: tuple[Settled, ...]
    superseded: tuple[Finished, ...]
    claimed: Claimed


@dataclass(frozen=True, slots=True)
class Scan:
    """What one scan knows: when it began, its clock and options. Its work is what was due at `due_until`.

    That is its beginning, or, where it has `tick_seconds`, the latest tick since: a scan that takes long goes on with what
    became due meanwhile.
    """

    began_at: float
    clock: Clock
    options: DeliveryOptions
    tick_seconds: float | None = None

    def due_until(self, at: float) -> float:
        """The moment up to which rows are due for this scan, at `at`."""
        if self.tick_seconds is None:
            return self.began_at
        return self.began_at + (at - self.began_at) // self.tick_seconds * self.tick_seconds


class Books(Protocol):
    """How claims and outcomes are written."""

    async def turn(self, db: StateDB, finished: Sequence[Finished], scan: Scan, room: Room | None) -> Turn:
        """Write the outcomes of `finished`, then claim what there is room for (None: nothing)."""


class GuardedBooks:
    """Outcomes and claims in one transaction, each guarded by the claim that it belongs to."""

    async def turn(self, db: StateDB, finished: Sequence[Finished], scan: Scan, room: Room | None) -> Turn:
        """As `Books` says."""
        settled = [settle(each.claim, each.result, scan.options.jitter) for each in finished]

        def work(connection: Connection) -> tuple[frozenset[Seen], Claimed]:
            at = scan.clock()
            done = _settle(connection, settled, at)
            return done, _claim(connection, scan, room, at)

        done, claimed = await db.write(work, "claims and outcomes")
        applied = tuple(each for each in settled if each.change.seen in done)
        superseded = tuple(each for each in finished if each.claim.seen not in done)
        return Turn(applied, superseded, claimed)


def _settle(connection: Connection, settled: Sequence[Settled], at: float) -> frozenset[Seen]:
    if not settled:
        return frozenset()
    done = apply(connection, [each.change for each in settled], at)
    faults.reach(OUTCOME_WRITTEN)
    return done


def _claim(connection: Connection, scan: Scan, room: Room | None, at: float) -> Claimed:
    if room is None:
        return Claimed(0, (), 0, 0)
    claimed = claim(
        connection,
        due_until=scan.due_until(at),
        at=at,
        limit=room.rows,
        lease_seconds=scan.options.lease_seconds,
        not_to=room.full,
    )
    faults.reach(CLAIM_WRITTEN)
    return claimed
