"""Several processes on one database: schedulers beside each other, a claimant thought dead, and deaths at any moment."""

import asyncio
import json
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from outbox.dispatch import StateDB, enqueue_dispatch
from outbox.sqlite_choice import choose
from tests.outbox.dispatch.peek import moves, one, peek
from tests.outbox.dispatch.programs import Programs, goes_on, identity
from tests.outbox.world import World
from tests.support import BOUND_SECONDS, Ended, ProcessBox

NOW, LEASE_OVER = 1000.0, 1015.0
ID = identity(1)
ROWS, ROWS_AROUND_A_DEATH = 2000, 300


@pytest.fixture
def programs(world: World, url: str) -> Programs:
    return Programs(world.box, url)


@pytest.fixture
async def db(programs: Programs) -> AsyncIterator[StateDB]:
    async with StateDB(programs.url) as opened:
        yield opened


def scanned(ended: Ended) -> dict[str, int]:
    """The counters that a scan printed, those that are not zero."""
    assert ended.exit_code == 0, ended
    counts: dict[str, int] = json.loads(ended.stdout)
    return {name: count for name, count in counts.items() if count}


async def ends(db: StateDB, query: str) -> None:
    """Wait until the query, which counts, finds nothing. Raises TimeoutError."""
    async with asyncio.timeout(BOUND_SECONDS):
        while (await peek(db, query))[0]["n"]:  # noqa: ASYNC110 - other processes change it; the database tells nobody
            await asyncio.sleep(0.02)


UNFINISHED = "SELECT count(*) AS n FROM dispatch_outbox WHERE status IN ('pending', 'delivering')"


# A claimant that was thought dead.


@pytest.mark.parametrize(
    ("point", "kind", "effects"),
    [
        ("dispatch.send.before", "keyed", 1),
        ("dispatch.send.before", "unkeyed", 2),
        ("dispatch.send.response", "keyed", 1),
        ("dispatch.send.response", "unkeyed", 2),
    ],
)
async def test_a_claimant_that_wakes_after_its_lease_changes_nothing_and_is_told(
    world: World, programs: Programs, db: StateDB, *, point: str, kind: str, effects: int
) -> None:
    world.start_receiver(kind)
    programs.done("enqueue", ID, "--to", f"{world.url}/operations", "--now", NOW)
    zombie = programs.paused(point, "scan", "--now", NOW)
    try:
        assert scanned(programs.done("scan", "--now", LEASE_OVER - 1)) == {}  # the lease holds
        assert scanned(programs.done("scan", "--now", LEASE_OVER)) == {"attempted": 1, "delivered": 1}
        taken_over, history = await one(db, ID), await moves(db, ID)
        assert (taken_over["status"], taken_over["attempt"], taken_over["claim_number"]) == ("delivered", 2, 2)
        late = goes_on(zombie)
    finally:
        zombie.kill()

    assert scanned(late) == {"attempted": 1, "superseded": 1}
    assert f"dispatch {ID}: the outcome of attempt 1 (happened) came too late and changed nothing" in late.stderr
    assert await one(db, ID) == taken_over
    assert await moves(db, ID) == history
    assert len(world.records("arrivals", "arrival")) == 2
    assert len(world.records("effects", "effect")) == effects


async def test_a_late_success_does_not_undo_the_failure_that_followed_it(world: World, programs: Programs, db: StateDB) -> None:
    receiver = world.start_receiver()
    programs.done("enqueue", ID, "--to", f"{world.url}/operations", "--now", NOW)
    zombie = programs.paused("dispatch.send.response", "scan", "--now", NOW)
    try:
        receiver.kill()
        assert scanned(programs.done("scan", "--now", LEASE_OVER)) == {"attempted": 1, "retried": 1}
        failed = await one(db, ID)
        assert (failed["status"], failed["attempt"], failed["next_attempt_at"]) == ("pending", 2, LEASE_OVER + 120)
        assert scanned(goes_on(zombie)) == {"attempted": 1, "superseded": 1}
    finally:
        zombie.kill()
    assert await one(db, ID) == failed
    world.start_receiver()
    assert scanned(programs.done("scan", "--now", LEASE_OVER + 120)) == {"attempted": 1, "delivered": 1}
    assert len(world.records("effects", "effect")) == 1


@pytest.mark.parametrize(("kind", "effects"), [("keyed", 1), ("unkeyed", 2)])
async def test_the_claim_is_told_from_an_older_one_whose_attempt_number_an_operator_made_repeat(
    world: World, programs: Programs, db: StateDB, kind: str, effects: int
) -> None:
    world.start_receiver(kind)
    programs.done("enqueue", ID, "--to", f"{world.url}/operations", "--max-attempts", 1, "--now", NOW)
    zombie = programs.paused("dispatch.send.response", "scan", "--now", NOW)
    successor = None
    try:
        assert scanned(programs.done("scan", "--now", LEASE_OVER)) == {"attempted": 1, "dead_letter": 1}
        programs.done("retry", ID, "--now", LEASE_OVER + 1)
        successor = programs.paused("dispatch.send.before", "scan", "--now", LEASE_OVER + 2)
        claimed = await one(db, ID)
        # The same status and attempt as when the first one claimed it.
        assert (claimed["status"], claimed["attempt"], claimed["claim_number"]) == ("delivering", 1, 2)
        assert scanned(goes_on(zombie)) == {"attempted": 1, "superseded": 1}
        assert await one(db, ID) == claimed
        assert scanned(goes_on(successor)) == {"attempted": 1, "delivered": 1}
    finally:
        zombie.kill()
        if successor is not None:
            successor.kill()
    assert [status for _previous, status, _reason in await moves(db, ID)] == [
        "pending",
        "delivering",
        "dead_letter",
        "pending",
        "delivering",
        "delivered",
    ]
    assert len(world.records("arrivals", "arrival")) == 2
    assert len(world.records("effects", "effect")) == effects


@pytest.mark.parametrize("meanwhile", ["ack", "purge"])
async def test_an_outcome_that_comes_after_an_acknowledgement_or_a_purge_changes_nothing(
    world: World, programs: Programs, db: StateDB, meanwhile: str
) -> None:
    world.start_receiver()
    programs.done("enqueue", ID, "--ack", "--to", f"{world.url}/operations", "--now", NOW)
    zombie = programs.paused("dispatch.send.response", "scan", "--now", NOW)
    try:
        programs.done(meanwhile, ID, "--now", NOW + 1)
        before = (await peek(db, "SELECT * FROM dispatch_outbox"), await moves(db, ID))
        assert [row["status"] for row in before[0]] == (["acked"] if meanwhile == "ack" else [])
        assert scanned(goes_on(zombie)) == {"attempted": 1, "superseded": 1}
    finally:
        zombie.kill()
    assert (await peek(db, "SELECT * FROM dispatch_outbox"), await moves(db, ID)) == before
    assert len(world.records("effects", "effect")) == 1


# Two schedulers.


async def test_programs_that_find_no_tables_create_them_once_between_them(world: World, url: str) -> None:
    programs = Programs(world.box, url)
    started = [programs.launch("enqueue", identity(number), "--now", NOW) for number in range(1, 9)]
    assert [each.wait().exit_code for each in started] == [0] * 8
    async with StateDB(url, create=False) as db:
        assert len(await peek(db, "SELECT id FROM dispatch_outbox")) == 8


async def enqueue_many(db: StateDB, route: str, rows: int, **options: Any) -> None:
    async with db.begin() as connection:
        for number in range(1, rows + 1):
            await enqueue_dispatch(
                connection, kind="test", deliver_to=route, body={"n": number}, dispatch_id=identity(number), **options
            )


def effects_by_key(world: World) -> Counter[str]:
    return Counter(each["data"]["key"] for each in world.records("effects", "effect"))


async def claims(db: StateDB) -> list[tuple[str, int]]:
    """Which attempt of which dispatch each claim was."""
    rows = await peek(db, "SELECT entity_id, metadata FROM status_transitions WHERE status = 'delivering'")
    return [(row["entity_id"], json.loads(row["metadata"])["attempt"]) for row in rows]


async def test_two_schedulers_deliver_every_row_once_and_share_no_attempt(
    world: World, programs: Programs, db: StateDB
) -> None:
    world.start_receiver()
    await enqueue_many(db, f"{world.url}/operations", ROWS)
    # Both are there before either begins.
    run = ["--db", programs.url, "run", "--tick-seconds", "0.05"]
    both = [world.box.launch("outbox.dispatch", run, {"PAUSE_AT": "dispatch.claim.before"}) for _ in range(2)]
    assert all(programs.stopped(each) for each in both)
    for each in both:
        each.send(signal.SIGCONT)
    await ends(db, UNFINISHED)
    told = [each.stop() for each in both]

    assert [(each.exit_code, each.stderr.splitlines()[-1]) for each in told] == [
        (0, "dispatch: stopped; nothing is being sent")
    ] * 2
    assert all(each.stdout for each in told), "one of the two had no part in it"
    assert await peek(db, "SELECT status, attempt, count(*) AS n FROM dispatch_outbox GROUP BY status, attempt") == [
        {"status": "delivered", "attempt": 1, "n": ROWS}
    ]
    expected = {identity(number) for number in range(1, ROWS + 1)}
    assert effects_by_key(world) == dict.fromkeys(expected, 1)
    assert len(world.records("arrivals", "arrival")) == ROWS
    assert sorted(await claims(db)) == sorted((each, 1) for each in expected)


async def test_when_one_of_two_schedulers_is_killed_in_the_middle_its_rows_are_delivered_all_the_same(
    world: World, programs: Programs, db: StateDB
) -> None:
    world.start_receiver()
    await enqueue_many(db, f"{world.url}/operations", ROWS_AROUND_A_DEATH)
    victim = programs.launch("schedule", "--concurrency", 16, pause_at="dispatch.send.response#40")
    survivor = programs.launch("schedule", "--concurrency", 4)
    assert programs.stopped(victim)
    left = await peek(db, "SELECT count(*) AS n FROM dispatch_outbox WHERE status = 'delivering'")
    assert victim.kill().signal == "SIGKILL"
    assert left[0]["n"] > 0
    await ends(db, "SELECT count(*) AS n FROM dispatch_outbox WHERE status = 'pending'")
    # The victim comes back when the leases of its old self are over.
    successor = programs.launch("schedule", "--ahead", 3600)
    await ends(db, UNFINISHED)
    assert [each.stop().exit_code for each in (survivor, successor)] == [0, 0]

    expected = {identity(number) for number in range(1, ROWS_AROUND_A_DEATH + 1)}
    statuses = await peek(db, "SELECT status, count(*) AS n FROM dispatch_outbox GROUP BY status")
    assert statuses == [{"status": "delivered", "n": ROWS_AROUND_A_DEATH}]
    assert effects_by_key(world) == dict.fromkeys(expected, 1)
    claimed = await claims(db)
    assert len(set(claimed)) == len(claimed)
    assert {attempt for _id, attempt in claimed} == {1, 2}  # some were taken over
    assert [row["n"] for row in await peek(db, HALF_SETTLED)] == [0]


# Deaths at any moment.

HALF_SETTLED = """
    SELECT count(*) AS n FROM dispatch_outbox AS o
    WHERE o.status <> (SELECT t.status FROM status_transitions AS t WHERE t.entity_id = o.id ORDER BY t.id DESC LIMIT 1)
       OR o.attempt <> (SELECT count(*) FROM status_transitions AS t WHERE t.entity_id = o.id AND t.status = 'delivering')
       OR (o.status = 'pending' AND o.attempt > 0 AND o.last_error_attempt <> o.attempt)
       OR (o.status = 'pending' AND o.attempt > 0 AND o.next_attempt_at < o.claimed_at + 60)
"""


async def test_a_writer_of_sqlite_that_is_killed_at_any_moment_leaves_a_whole_database(box: ProcessBox, tmp_path: Path) -> None:
    path = tmp_path / "dispatch.db"
    programs = Programs(box, str(path))
    chance = random.Random(23)
    async with StateDB(path) as db:
        # No template and no URL: every attempt fails at once, and the scan does nothing but write.
        await enqueue_many(db, "nowhere", 200, max_attempts=10_000, now=NOW)
        deaths, now, written = 0, NOW, 200
        while deaths < 20:
            now += 10_000.0
            scan = programs.launch("scan", "--now", now, "--concurrency", 5)
            goal = written + chance.randrange(1, 200)
            deadline = time.monotonic() + BOUND_SECONDS
            while scan.running and (await transitions(db)) < goal:
                assert time.monotonic() < deadline
            ended = scan.kill()
            assert ended.signal == "SIGKILL" or ended.exit_code == 0, ended
            deaths += ended.signal == "SIGKILL"
            assert integrity(path) == [("ok",)]
            async with StateDB(path) as again:
                assert [row["n"] for row in await peek(again, HALF_SETTLED)] == [0]
                written = await transitions(again)
    assert written > 200 + 20
    # What the dead left can be worked on.
    last = scanned(programs.done("scan", "--now", now + 10_000, "--concurrency", 64))
    assert last == {"attempted": 200, "retried": 200}


async def transitions(db: StateDB) -> int:
    (row,) = await peek(db, "SELECT count(*) AS n FROM status_transitions")
    number: int = row["n"]
    return number


def integrity(path: Path) -> list[tuple[str]]:
    """What a fresh connection finds, with the same SQLite as the library's."""
    module: Any = choose().module
    connection: sqlite3.Connection = module.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()
