"""The families around the dispatch outbox run, at sizes that only show that they do. No time is judged here."""

import asyncio
import contextlib
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.families import peers
from benchmarks.filling import fill
from benchmarks.floor import Failed
from benchmarks.measuring import measure
from benchmarks.peers.jobs import KIND, ORDER, jobs
from benchmarks.peers.known import KNOWN, OURS, OURS_ON_POSTGRESQL, one_round
from benchmarks.peers.rounds import Rounds
from benchmarks.posting import post_all
from benchmarks.receiver import Counted, counted, receiver
from outbox.dispatch import StateDB, deliver_due_dispatches, enqueue_dispatch, list_dispatches, list_transitions
from scenarios.engine.postgres import PostgresServer, programs


@pytest.fixture
def url() -> Iterator[str]:
    with receiver() as started:
        yield started


def posted(key: str, url: str, body: str) -> None:
    request = urllib.request.Request(url, body.encode(), {"Idempotency-Key": key})
    urllib.request.urlopen(request, timeout=10).close()


def no_database() -> str:
    raise AssertionError("nothing here is on PostgreSQL")


@pytest.mark.parametrize(
    "queues",
    [
        pytest.param((OURS, "litequeue", OURS_ON_POSTGRESQL, "pgqueuer"), id="some"),
        pytest.param(tuple(KNOWN), id="all", marks=pytest.mark.campaign),  # a process or two of each take their time
    ],
)
def test_each_queue_is_measured_or_says_what_to_install_and_goals_are_judged_where_both_sides_are_there(
    queues: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "KNOWN", {name: KNOWN[name] for name in queues})
    told: list[str] = []
    found = [measure(part, told.append, 1) for part in peers.parts(True)]
    assert len(found) == 4
    for part in found:
        skipped = {line.name for line in part.lines if line.skipped}
        assert all("install" in (line.skipped or "") if line.name in skipped else line.median > 0 for line in part.lines)
        for verdict in part.verdicts:
            assert (verdict.ratio is None) == any(f" {name}" in verdict.text for name in skipped), verdict


def test_the_receiver_counts_posts_keys_and_bytes_and_forgets_what_it_has_told(url: str) -> None:
    posted("one", url, "abc")
    posted("one", url, "abc")
    posted("two", url, "é")
    told = counted(url)
    assert (told.posts, told.keys, told.bytes) == (3, 2, 8)
    assert told.last_ns > 0
    assert counted(url) == Counted()


def test_a_key_that_comes_again_does_not_move_the_moment_of_the_effect(url: str) -> None:
    posted("one", url, "abc")
    between = time.monotonic_ns()
    posted("one", url, "abc")
    assert 0 < counted(url).last_ns < between


def test_the_bare_client_never_uses_a_key_twice(url: str) -> None:
    asyncio.run(post_all(url, 20, 4))
    asyncio.run(post_all(url, 20, 4))
    told = counted(url)
    assert (told.posts, told.keys) == (40, 40)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
async def test_filled_rows_are_rows_of_the_outbox(engine: str, url: str, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        store = str(tmp_path / "dispatch.db")
        if engine == "postgresql":
            if programs() is None:
                pytest.skip("PostgreSQL's server is not installed")
            store = stack.enter_context(PostgresServer()).new_database()
        async with StateDB(store) as db:
            await fill(db, 7, url)
            assert not (await deliver_due_dispatches(db))["attempted"]
            rows = await list_dispatches(db)
            assert [row["status"] for row in rows] == ["delivered"] * 7
            steps = [each["status"] for each in await list_transitions(db, rows[0]["id"])]
            assert steps == ["pending", "delivering", "delivered"]


async def test_rows_filled_as_pending_are_delivered_by_a_scan(url: str, tmp_path: Path) -> None:
    async with StateDB(tmp_path / "dispatch.db") as db:
        await fill(db, 7, url, "pending")
        assert (await deliver_due_dispatches(db))["delivered"] == 7
    assert counted(url).keys == 7


def test_a_round_of_the_outbox_is_read_twice_and_played_once(url: str) -> None:
    rounds = Rounds(url, no_database, 5)
    assert rounds.tried(KNOWN[OURS]).endswith("synchronous FULL")
    assert rounds.way(KNOWN[OURS]).endswith("256 at once; 5 jobs")
    assert rounds.round(KNOWN[OURS], 0) is rounds.round(KNOWN[OURS], 0)


def test_a_round_whose_receiver_refuses_is_an_error_and_not_a_slow_round(url: str, tmp_path: Path) -> None:
    with pytest.raises(Failed, match="outbox: work ended with 1"):
        one_round(KNOWN[OURS], str(tmp_path / "store"), url.replace("operations", "elsewhere"), 5, 4)


async def test_all_queues_send_what_the_outbox_sends(url: str, tmp_path: Path) -> None:
    async with StateDB(tmp_path / "dispatch.db") as db:
        await enqueue_dispatch(db, kind=KIND, deliver_to=url, body=ORDER)
        (row,) = await list_dispatches(db)
    sent = json.loads(jobs(url, 1)[0].body)
    assert {name: type(value) for name, value in sent.items()} == {name: type(value) for name, value in row["payload"].items()}
    assert sent["body"] == row["payload"]["body"]
