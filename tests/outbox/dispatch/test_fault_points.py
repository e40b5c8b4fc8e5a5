"""Declared = reachable = fired: every fault point of the dispatch outbox halts a real process, on both databases.

What it leaves is compared with all of what the books may hold then: nothing of the step that was cut off, or the whole of it,
row, transitions and event together. Then the same work is done again, and everything ends as it should.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from outbox.dispatch import StateDB
from tests.outbox.dispatch.peek import peek
from tests.outbox.dispatch.programs import Programs, identity, main
from tests.outbox.world import World, python

POINTS = "dispatch."
T0, LEASE_OVER, BACKED_OFF = 1000.0, 1015.0, 1060.0
A, B, C = identity(1), identity(2), identity(3)

Move = tuple[str | None, str, str]
ENQUEUED: Move = (None, "pending", "dispatch.pending.enqueued")
CLAIMED: Move = ("pending", "delivering", "dispatch.delivering.attempt")
TAKEN_OVER: Move = ("delivering", "delivering", "dispatch.delivering.attempt")
SENT: Move = ("delivering", "delivered", "dispatch.delivered.transport_ok")
SENT_UNACKNOWLEDGED: Move = ("delivering", "pending", "dispatch.delivered.transport_ok")
FAILED: Move = ("delivering", "pending", "dispatch.pending.retry_backoff")
DEAD: Move = ("delivering", "dead_letter", "dispatch.dead_letter.max_attempts")
NEVER_ACKNOWLEDGED: Move = ("delivering", "dead_letter", "dispatch.dead_letter.ack_timeout")
OVER: Move = ("pending", "expired", "dispatch.expired.deadline")
ACKNOWLEDGED: Move = ("pending", "acked", "dispatch.acked.consumer")
FORCED: Move = ("dead_letter", "pending", "dispatch.pending.retry_backoff")


class Line(NamedTuple):
    """What the books hold of one dispatch: its row but for the request itself, and its whole history."""

    status: str
    attempt: int
    claim_number: int
    due: float
    error_of: int | None  # the attempt that the error belongs to, if there is one
    moves: tuple[Move, ...]


Books = dict[str, Line]
FRESH = Line("pending", 0, 0, T0, None, (ENQUEUED,))
IN_HAND = Line("delivering", 1, 1, LEASE_OVER, None, (ENQUEUED, CLAIMED))
DELIVERED = Line("delivered", 1, 1, LEASE_OVER, None, (*IN_HAND.moves, SENT))
DELIVERED_AFTER_DEATH = Line("delivered", 2, 2, LEASE_OVER + 15, None, (*IN_HAND.moves, TAKEN_OVER, SENT))
RETRYING = Line("pending", 1, 1, BACKED_OFF, 1, (*IN_HAND.moves, FAILED))
UNACKNOWLEDGED = Line("pending", 1, 1, BACKED_OFF, None, (*IN_HAND.moves, SENT_UNACKNOWLEDGED))
BURIED = Line("dead_letter", 1, 1, LEASE_OVER, 1, (*IN_HAND.moves, DEAD))
# Delivered by the first attempt of a scan that came later.
DELIVERED_LATER = DELIVERED._replace(due=LEASE_OVER + 15)


async def _books(url: str) -> tuple[Books, list[Mapping[str, object]]]:
    async with StateDB(url) as db:
        rows = await peek(db, "SELECT * FROM dispatch_outbox")
        history = await peek(db, "SELECT * FROM status_transitions ORDER BY id")
        events = await peek(db, "SELECT * FROM admin_events ORDER BY id")
    books = {
        row["id"]: Line(
            row["status"],
            row["attempt"],
            row["claim_number"],
            row["next_attempt_at"],
            row["last_error_attempt"],
            tuple((e["previous_status"], e["status"], e["reason_code"]) for e in history if e["entity_id"] == row["id"]),
        )
        for row in rows
    }
    for row in rows:
        assert (row["last_error"] is None) == (row["last_error_attempt"] is None)
    kept = {e["entity_id"] for e in history} - set(books)
    return books | {each: Line("purged", 0, 0, 0, None, ()) for each in kept}, [json.loads(e["details"]) for e in events]


PURGED = Line("purged", 0, 0, 0, None, ())


class Place:
    """A database, a receiver that is up or down, and what is done there without being cut off."""

    def __init__(self, world: World, url: str) -> None:
        self.world, self.url, self.programs = world, url, Programs(world.box, url)
        self.route = f"{world.url}/operations"

    def books(self) -> tuple[Books, list[Mapping[str, object]]]:
        """Every dispatch, and the details of every admin event."""
        return asyncio.run(_books(self.url))

    def do(self, *steps: str) -> None:
        """Do steps one after the other, in this process."""
        for step in steps:
            if step == "receiver":
                self.world.start_receiver()
            elif step == "unkeyed":
                self.world.start_receiver("unkeyed")
            else:
                assert main(self.arguments(step)) == 0, step

    def arguments(self, step: str) -> list[str]:
        return [*step.replace("ROUTE", self.route).split(), "--db", self.url]

    def arrivals(self) -> int:
        """How many requests reached the receiver."""
        return len(self.world.records("arrivals", "arrival"))

    def keys(self) -> set[str]:
        """Which dispatches reached the receiver."""
        return {each["data"]["key"] for each in self.world.records("arrivals", "arrival")}

    def effects(self) -> int:
        """How many effects it had."""
        return len(self.world.records("effects", "effect"))


@pytest.fixture
def place(world: World, url: str) -> Place:
    return Place(world, url)


@dataclass(frozen=True, slots=True)
class Case:
    """How a point is reached: the steps before, the step that is armed; what must be there at the halt, with how many requests
    at the receiver; the steps that do the work again; and what must be there then."""

    point: str
    name: str
    before: tuple[str, ...]
    armed: str
    halted: Books
    sent: int
    again: tuple[str, ...]
    ended: Books
    sent_in_all: int
    events: tuple[int, int] = (0, 0)
    keyed: bool = field(default=True)

    def __str__(self) -> str:
        return f"{self.point}-{self.name}"


def enqueueing() -> Iterator[Case]:
    armed = f"enqueue {A} --to ROUTE --now {T0}"
    for stage, halted in (("before", {}), ("looked", {}), ("written", {}), ("committed", {A: FRESH})):
        again = (armed, f"scan --now {T0}")
        yield Case(f"dispatch.enqueue.{stage}", "one", ("receiver",), armed, halted, 0, again, {A: DELIVERED}, 1)


def claiming() -> Iterator[Case]:
    """One transaction that claims one row, expires one, and buries one that a dead claimant left."""
    before = (
        "receiver",
        f"enqueue {A} --to ROUTE --now {LEASE_OVER}",
        f"enqueue {B} --to ROUTE --now {T0} --expires-at {LEASE_OVER}",
    )
    fresh = FRESH._replace(due=LEASE_OVER)
    abandoned = IN_HAND
    unclaimed = {A: fresh, B: FRESH, C: abandoned}
    claimed = {
        A: IN_HAND._replace(due=LEASE_OVER + 15),
        B: Line("expired", 0, 0, T0, None, (ENQUEUED, OVER)),
        C: BURIED,
    }
    for stage in ("before", "written", "committed"):
        committed = stage == "committed"
        attempt = Line("delivered", 2, 2, LEASE_OVER + 30, None, DELIVERED_AFTER_DEATH.moves) if committed else DELIVERED
        yield Case(
            f"dispatch.claim.{stage}",
            "claimed-expired-and-buried",
            before,
            f"scan --now {LEASE_OVER}",
            claimed if committed else unclaimed,
            0,
            (f"scan --now {LEASE_OVER + 15}",),
            claimed | {A: attempt._replace(due=LEASE_OVER + 30)},
            1,
        )


def sending() -> Iterator[Case]:
    """One row, sent to a receiver that knows it again and to one that does not."""
    for keyed in (True, False):
        before = ("receiver" if keyed else "unkeyed", f"enqueue {A} --to ROUTE --now {T0}")
        for point in ("send.before", "send.response", "outcome.before", "outcome.written", "outcome.committed"):
            done = point == "outcome.committed"
            sent = 0 if point == "send.before" else 1
            yield Case(
                f"dispatch.{point}",
                "keyed" if keyed else "unkeyed",
                before,
                f"scan --now {T0}",
                {A: DELIVERED if done else IN_HAND},
                sent,
                (f"scan --now {LEASE_OVER}",),
                {A: DELIVERED if done else DELIVERED_AFTER_DEATH},
                1 if done else sent + 1,
                keyed=keyed,
            )


def recording() -> Iterator[Case]:
    """Outcomes other than a plain success: each is one transaction too."""
    retried = Line("delivered", 2, 2, BACKED_OFF + 15, 1, (*RETRYING.moves, CLAIMED, SENT))
    taken_over = DELIVERED_AFTER_DEATH._replace
    sent_again = Line("acked", 2, 2, LEASE_OVER + 120, None, (*IN_HAND.moves, TAKEN_OVER, SENT_UNACKNOWLEDGED, ACKNOWLEDGED))
    acked = Line("acked", 1, 1, BACKED_OFF, None, (*UNACKNOWLEDGED.moves, ACKNOWLEDGED))
    ack_dead = Line("dead_letter", 1, 1, LEASE_OVER, None, (*IN_HAND.moves, NEVER_ACKNOWLEDGED))
    up, scan = "receiver", f"scan --now {T0}"
    later, much_later = f"scan --now {LEASE_OVER}", f"scan --now {BACKED_OFF}"
    written, committed = "dispatch.outcome.written", "dispatch.outcome.committed"
    plain = f"enqueue {A} --to ROUTE --now {T0}"
    yield Case(written, "failure", (plain,), scan, {A: IN_HAND}, 0, (up, later), {A: taken_over()}, 1)
    yield Case(committed, "failure", (plain,), scan, {A: RETRYING}, 0, (up, later, much_later), {A: retried}, 1)
    last = f"{plain} --max-attempts 1"
    yield Case(written, "last-failure", (last,), scan, {A: IN_HAND}, 0, (up, later), {A: BURIED}, 0)
    yield Case(committed, "last-failure", (last,), scan, {A: BURIED}, 0, (up, later), {A: BURIED}, 0)
    asked = f"{plain} --ack"
    ack = f"ack {A} --now {BACKED_OFF}"
    yield Case(written, "ack-asked", (up, asked), scan, {A: IN_HAND}, 1, (later, ack), {A: sent_again}, 2)
    yield Case(committed, "ack-asked", (up, asked), scan, {A: UNACKNOWLEDGED}, 1, (later, ack), {A: acked}, 1)
    asked = f"{asked} --max-attempts 1"
    yield Case(written, "last-ack-asked", (up, asked), scan, {A: IN_HAND}, 1, (later,), {A: BURIED}, 1)
    yield Case(committed, "last-ack-asked", (up, asked), scan, {A: ack_dead}, 1, (later,), {A: ack_dead}, 1)


def acknowledging() -> Iterator[Case]:
    before = ("receiver", f"enqueue {A} --ack --to ROUTE --now {T0}", f"scan --now {T0}")
    armed = f"ack {A} --now {T0 + 20}"
    acked = UNACKNOWLEDGED._replace(status="acked", moves=(*UNACKNOWLEDGED.moves, ACKNOWLEDGED))
    scan = f"scan --now {BACKED_OFF}"
    yield Case("dispatch.ack.before", "one", before, armed, {A: UNACKNOWLEDGED}, 1, (armed, scan), {A: acked}, 1)
    yield Case("dispatch.ack.written", "one", before, armed, {A: UNACKNOWLEDGED}, 1, (armed, scan), {A: acked}, 1)
    yield Case("dispatch.ack.committed", "one", before, armed, {A: acked}, 1, (scan,), {A: acked}, 1)


def retrying() -> Iterator[Case]:
    at = T0 + 20
    before = (f"enqueue {A} --to ROUTE --max-attempts 1 --now {T0}", f"scan --now {T0}")
    armed, scan = f"retry {A} --now {at}", f"scan --now {at}"
    forced = Line("pending", 0, 1, at, None, (*BURIED.moves, FORCED))
    # The attempt begins at 1 again; the number of the claim goes on.
    delivered = Line("delivered", 1, 2, at + 15, None, (*forced.moves, CLAIMED, SENT))
    yield Case("dispatch.retry.before", "one", before, armed, {A: BURIED}, 0, ("receiver", armed, scan), {A: delivered}, 1)
    yield Case("dispatch.retry.written", "one", before, armed, {A: BURIED}, 0, ("receiver", armed, scan), {A: delivered}, 1)
    yield Case("dispatch.retry.committed", "one", before, armed, {A: forced}, 0, ("receiver", scan), {A: delivered}, 1)


def purging() -> Iterator[Case]:
    before = ("receiver", f"enqueue {A} {B} {C} --to ROUTE --now {T0}", f"scan --now {T0}")
    everything, nothing = dict.fromkeys((A, B, C), DELIVERED), dict.fromkeys((A, B, C), PURGED)
    for stage in ("before", "written", "committed"):
        one = stage == "committed"
        # By batches of two.
        halted = {A: PURGED, B: PURGED, C: DELIVERED} if one else everything
        armed, point = f"purge-many delivered --now {T0 + 20}", f"dispatch.purge.{stage}"
        yield Case(point, "many", before, armed, halted, 3, (armed,), nothing, 3, events=(int(one), 2))
        halted, armed = (everything | {B: PURGED} if one else everything), f"purge {B} --now {T0 + 20}"
        ended = everything | {B: PURGED}
        yield Case(point, "one", before, armed, halted, 3, (armed,), ended, 3, events=(int(one), 1))


CASES = [
    *enqueueing(),
    *claiming(),
    *sending(),
    *recording(),
    *acknowledging(),
    *retrying(),
    *purging(),
]


def declared_points() -> list[str]:
    """What a process that has the dispatch outbox loaded, and nothing else, has declared."""
    code = "import json, outbox.dispatch; from outbox import faults; print(json.dumps(list(faults.declared())))"
    points: list[str] = json.loads(python(code).stdout)
    return [point for point in points if point.startswith(POINTS)]


def test_every_declared_point_is_fired_by_a_case_and_every_case_has_a_declared_point() -> None:
    assert sorted(declared_points()) == sorted({case.point for case in CASES})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_halt_leaves_nothing_of_a_step_or_all_of_it_and_the_same_work_again_makes_it_whole(place: Place, case: Case) -> None:
    if case.point.startswith("dispatch.claim."):
        place.do(f"enqueue {C} --to ROUTE --max-attempts 1 --now {T0}")
        assert place.programs.run("scan", "--now", T0, halt_at="dispatch.send.before").exit_code == 23
    place.do(*case.before)

    command, *rest = place.arguments(case.armed)[:-2]
    ended = place.programs.run(command, *rest, halt_at=case.point)

    assert (ended.exit_code, ended.signal, ended.stdout) == (23, None, ""), ended
    assert ended.stderr.splitlines()[-1] == f"halt(23) at {case.point}#1"
    books, events = place.books()
    assert books == case.halted
    assert len(events) == case.events[0]
    assert place.arrivals() == case.sent

    place.do(*case.again)

    books, events = place.books()
    assert books == case.ended
    assert len(events) == case.events[1]
    assert place.arrivals() == case.sent_in_all
    # A keyed receiver applies a dispatch once, another one as often as it is sent: twice after a death behind the response.
    assert place.effects() == (len(place.keys()) if case.keyed else case.sent_in_all)

    if case.armed.startswith("scan"):  # and once more nothing happens
        place.do(f"scan --now {BACKED_OFF + 1000}")
        assert place.books()[0] == case.ended
        assert place.arrivals() == case.sent_in_all
