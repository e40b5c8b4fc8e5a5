"""Slots: one destination that hangs does not hold up another, and no destination gets more sends at once than its bound."""

import asyncio
import resource
from collections.abc import Sequence

import pytest
from aiohttp import web

from outbox.dispatch import BadValue, DeliveryOptions, StateDB, deliver_due_dispatches, enqueue_dispatch
from outbox.dispatch.books import Finished, GuardedBooks, Scan, Turn
from outbox.dispatch.claim import Claim
from outbox.dispatch.delivery import deliver
from outbox.dispatch.router import RouterOptions
from outbox.dispatch.slots import Room, Slots
from outbox.dispatch.transitions import Seen
from tests.outbox.dispatch.peek import one, peek
from tests.outbox.dispatch.waiting import Held, soon

NOW = 1000.0
BOUND_SECONDS = 30.0


class Place:
    """A destination that holds every request until it is let go, and remembers how many it held at once."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: list[str] = []
        self.most = self.inside = 0
        self.go = asyncio.Event()
        self.arrived = asyncio.Condition()

    async def __aenter__(self) -> "Place":
        app = web.Application()
        app.router.add_post("/", self._hold)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/"
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.go.set()
        await self._runner.cleanup()

    async def _hold(self, request: web.Request) -> web.Response:
        self.inside += 1
        self.most = max(self.most, self.inside)
        async with self.arrived:
            self.keys.append(request.headers["Idempotency-Key"])
            self.arrived.notify_all()
        await self.go.wait()
        self.inside -= 1
        return web.Response()

    async def until(self, number: int) -> None:
        """Wait until so many requests have come."""
        async with asyncio.timeout(BOUND_SECONDS), self.arrived:
            await self.arrived.wait_for(lambda: len(self.keys) >= number)


async def test_a_destination_that_hangs_holds_its_own_slots_and_no_other_row(db: StateDB) -> None:
    async with Place() as hanging, Place() as good:
        good.go.set()
        for _ in range(20):
            await enqueue_dispatch(db, kind="k", deliver_to=hanging.url, now=NOW - 1)
        late = [await enqueue_dispatch(db, kind="k", deliver_to=good.url, now=NOW) for _ in range(10)]
        scan = asyncio.create_task(deliver_due_dispatches(db, now=lambda: NOW, options=DeliveryOptions(concurrency=4)))
        await good.until(10)
        await hanging.until(4)
        assert (sorted(good.keys), hanging.most) == (sorted(late), 4)
        hanging.go.set()
        counts = await asyncio.wait_for(scan, BOUND_SECONDS)
        assert (counts["delivered"], hanging.most) == (30, 4)


async def test_a_row_of_a_lane_goes_when_the_one_before_it_has_ended_at_a_destination_without_a_free_slot(db: StateDB) -> None:
    async with Held() as first, Place() as full, Place() as good:
        good.go.set()
        for _ in range(20):
            await enqueue_dispatch(db, kind="k", deliver_to=full.url, now=NOW - 9)
        await enqueue_dispatch(db, kind="k", deliver_to=f"{first.url}/", lane="a", now=NOW - 1)
        behind = await enqueue_dispatch(db, kind="k", deliver_to=good.url, lane="a", now=NOW)
        scan = asyncio.create_task(deliver_due_dispatches(db, now=lambda: NOW, options=DeliveryOptions(concurrency=4)))
        await soon(first.arrived)
        await full.until(4)
        first.go.set()
        await good.until(1)
        assert (good.keys, full.most) == ([behind], 4)
        full.go.set()
        assert (await asyncio.wait_for(scan, BOUND_SECONDS))["delivered"] == 22


async def test_others_are_asked_for_once_while_a_destination_is_full_and_the_waiting_rows_are_not_walked_again(
    db: StateDB,
) -> None:
    asked: list[tuple[str, ...]] = []

    class Noted(GuardedBooks):
        async def turn(self, db: StateDB, finished: Sequence[Finished], scan: Scan, room: Room | None) -> Turn:
            asked.extend([] if room is None else [room.full])
            return await super().turn(db, finished, scan, room)

    async with Place() as place:
        place.go.set()
        for _ in range(40):
            await enqueue_dispatch(db, kind="k", deliver_to=place.url, now=NOW)
        options = DeliveryOptions(concurrency=4)
        delivery = await deliver(db, now=lambda: NOW, options=options, resolve_template=False, books=Noted())
    assert delivery.counts["delivered"] == 40
    assert len([each for each in asked if each]) == 1


async def test_a_result_is_recorded_soon_though_the_other_sends_hang(db: StateDB) -> None:
    async with Place() as hanging, Place() as good:
        good.go.set()
        for _ in range(3):
            await enqueue_dispatch(db, kind="k", deliver_to=hanging.url, now=NOW)
        done = await enqueue_dispatch(db, kind="k", deliver_to=good.url, now=NOW)
        scan = asyncio.create_task(deliver_due_dispatches(db, now=lambda: NOW))
        await hanging.until(3)
        async with asyncio.timeout(BOUND_SECONDS):
            while (await one(db, done))["status"] != "delivered":  # noqa: ASYNC110 - of a database there is no event
                await asyncio.sleep(0)
        hanging.go.set()
        assert (await asyncio.wait_for(scan, BOUND_SECONDS))["delivered"] == 4


async def test_a_scan_with_ticks_goes_on_with_what_becomes_due_while_it_lasts(db: StateDB) -> None:
    now = NOW
    async with Place() as hanging, Place() as good:
        good.go.set()
        await enqueue_dispatch(db, kind="k", deliver_to=hanging.url, now=NOW)
        scan = asyncio.create_task(deliver(db, now=lambda: now, tick_seconds=0.05, resolve_template=False))
        await hanging.until(1)
        meanwhile = await enqueue_dispatch(db, kind="k", deliver_to=good.url, now=NOW + 1)
        now = NOW + 2
        await good.until(1)
        assert good.keys == [meanwhile]
        hanging.go.set()
        delivery = await asyncio.wait_for(scan, BOUND_SECONDS)
    assert delivery.counts["delivered"] == 2


async def test_a_clock_that_is_set_back_makes_no_scan_claim_its_own_rows_again(db: StateDB) -> None:
    times = iter([NOW])
    async with Place() as hanging, Place() as good:
        good.go.set()
        slow = await enqueue_dispatch(db, kind="k", deliver_to=hanging.url, now=NOW - 100)
        for _ in range(30):
            await enqueue_dispatch(db, kind="k", deliver_to=good.url, now=NOW - 100)
        scan = asyncio.create_task(
            deliver_due_dispatches(db, now=lambda: next(times, NOW - 60), options=DeliveryOptions(concurrency=2))
        )
        await good.until(30)
        hanging.go.set()
        counts = await asyncio.wait_for(scan, BOUND_SECONDS)
        assert (counts["attempted"], counts["delivered"], hanging.keys) == (31, 31, [slow])
        assert (await one(db, slow))["attempt"] == 1


def claim_for(destination: str) -> Claim:
    return Claim(Seen("a", "delivering", 1, 1), "k", "r", "{}", 8, False, NOW, None, destination)


def test_room_overfills_no_destination_and_leaves_half_for_the_others() -> None:
    slots = Slots(4)
    assert (slots.room().rows, slots.room().full) == (4, ())
    for _ in range(3):
        slots.take(claim_for("a"))
    assert (slots.room().rows, slots.room().full) == (1, ())
    slots.take(claim_for("a"))
    assert (slots.room().rows, slots.room().full) == (4, ("a",))
    for _ in range(4):
        slots.take(claim_for("b"))
    assert (slots.room().rows, slots.room().full) == (0, ("a", "b"))
    slots.give_back(claim_for("a"))
    assert (slots.room().rows, slots.room().full) == (1, ("b",))


@pytest.mark.parametrize(("total", "rows"), [(1, 1), (3, 3), (8, 4), (100, 4), (None, 4)])
def test_a_total_is_what_all_destinations_share_and_no_more_than_twice_what_one_may_have(total: int | None, rows: int) -> None:
    slots = Slots(4, total)
    assert (slots.room().rows, slots.total) == (rows, min(total or 8, 8))
    for number in range(slots.total):
        slots.take(claim_for(str(number)))
    assert slots.room().rows == 0


async def test_with_a_total_of_one_the_second_destination_waits_for_the_first(db: StateDB) -> None:
    async with Held() as first, Held() as second:
        for number, peer in enumerate((first, second)):
            await enqueue_dispatch(db, kind="k", deliver_to=f"{peer.url}/", now=NOW - 60 + number)
        options = DeliveryOptions(concurrency=4, total=1)
        scan = asyncio.create_task(deliver_due_dispatches(db, now=lambda: NOW, options=options))
        await soon(first.arrived)
        claimed = [row["status"] for row in await peek(db, "SELECT status FROM dispatch_outbox ORDER BY created_at")]
        assert (claimed, second.connections) == (["delivering", "pending"], 0)
        first.go.set()
        await soon(second.arrived)
        second.go.set()
        assert (await asyncio.wait_for(scan, BOUND_SECONDS))["delivered"] == 2


def test_slots_give_way_to_the_number_of_files_that_may_be_open() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        assert (Slots(64).each, Slots(2).each) == (24, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concurrency": 0}, "concurrency is 0"),
        ({"concurrency": True}, "concurrency is True"),
        ({"concurrency": 10_000}, "concurrency is 10000"),
        ({"total": 0}, "total is 0"),
        ({"total": True}, "total is True"),
        ({"total": 1.0}, r"total is 1\.0"),
        ({"total": 10_000}, "total is 10000"),
        ({"lease_seconds": 0}, "lease_seconds is 0"),
        ({"lease_seconds": 10.0}, "lease_seconds is 10.0"),
        ({"lease_seconds": float("nan")}, "lease_seconds is nan"),
        ({"lease_seconds": 15.0, "router": RouterOptions(timeout_seconds=20.0)}, "more than the 20 seconds"),
    ],
)
def test_options_that_would_send_twice_or_nothing_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(BadValue, match=words):
        DeliveryOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("now", ["x", float("nan"), 10**400, True, lambda: float("inf"), lambda: "x"])
async def test_a_time_that_is_none_is_refused_and_nothing_is_claimed(db: StateDB, now: object) -> None:
    dispatch = await enqueue_dispatch(db, kind="k", deliver_to="seat", now=NOW)
    with pytest.raises(BadValue, match="the time is"):
        await deliver_due_dispatches(db, now=now, notify_template=["true"])  # type: ignore[arg-type]
    assert (await one(db, dispatch))["status"] == "pending"
