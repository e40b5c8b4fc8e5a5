"""D1: the table, its defaults and its bounds are the database's own, on both kinds; a schema of another version is refused."""

import asyncio
import contextlib
from typing import Any

import pytest
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import IntegrityError

from outbox.dispatch import StateDB, add_schedule_run, add_session, enqueue_dispatch
from outbox.errors import BadInput
from tests.outbox.dispatch.d13_hand import hand, tables
from tests.outbox.dispatch.peek import one, peek, poke
from tests.support import ProcessBox

TABLES = {"admin_events", "dispatch_outbox", "schedule_runs", "schema_meta", "sessions", "status_transitions"}
# What a row needs that has no default.
NEEDED: dict[str, Any] = {
    "id": "a",
    "kind": "ping",
    "deliver_to": "seat-1",
    "payload": '{"x": 1}',
    "next_attempt_at": 5.0,
    "created_at": 5.0,
}


async def insert(db: StateDB, **values: Any) -> None:
    row = {**NEEDED, **values}
    names = ", ".join(row)
    await poke(db, f"INSERT INTO dispatch_outbox ({names}) VALUES ({', '.join(f':{name}' for name in row)})", **row)


# What the database refuses.


OUT_OF_BOUNDS: tuple[dict[str, Any], ...] = (
    {"status": "sent"},
    {"status": "PENDING"},
    {"status": ""},
    {"ack_required": 2},
    {"ack_required": -1},
    {"attempt": -1},
    {"max_attempts": 0},
    {"max_attempts": -8},
    {"claim_number": -1},
    {"lane": "l"},
    {"lane_position": 1},
    {"session_id": "nobody"},
    {"schedule_run_id": "never"},
    {"status": None},
    {"attempt": None},
    {"max_attempts": None},
    {"ack_required": None},
    *({name: None} for name in NEEDED if name != "id"),
)


async def test_the_database_itself_refuses_a_row_outside_the_bounds(db: StateDB) -> None:
    taken = []
    for values in OUT_OF_BOUNDS:
        with contextlib.suppress(IntegrityError):
            await insert(db, **values)
            taken.append(values)
    assert taken == []
    assert await peek(db, "SELECT id FROM dispatch_outbox") == []


async def test_the_database_itself_refuses_an_update_out_of_the_bounds(db: StateDB) -> None:
    await insert(db)
    for change in ("status = 'gone'", "attempt = -1", "max_attempts = 0", "ack_required = 7"):
        with pytest.raises(IntegrityError):
            await poke(db, f"UPDATE dispatch_outbox SET {change}")
    assert await peek(db, "SELECT status, attempt, max_attempts, ack_required FROM dispatch_outbox") == [
        {"status": "pending", "attempt": 0, "max_attempts": 8, "ack_required": 0}
    ]


async def test_an_id_a_dedup_key_and_a_place_in_a_lane_are_each_taken_once(db: StateDB) -> None:
    await insert(db, dedup_key="k", lane="l", lane_position=1)
    for values in ({"id": "a"}, {"id": "b", "dedup_key": "k"}, {"id": "b", "lane": "l", "lane_position": 1}):
        with pytest.raises(IntegrityError):
            await insert(db, **values)
    assert await peek(db, "SELECT id FROM dispatch_outbox") == [{"id": "a"}]


async def test_rows_without_a_dedup_key_or_lane_are_never_the_same(db: StateDB) -> None:
    await insert(db, id="a")
    await insert(db, id="b")
    await insert(db, id="c", lane="l", lane_position=1)
    await insert(db, id="d", lane="m", lane_position=1)
    assert len(await peek(db, "SELECT id FROM dispatch_outbox")) == 4


async def test_a_session_and_a_schedule_run_that_a_row_names_cannot_go(db: StateDB) -> None:
    await add_session(db, "s", now=1.0)
    await add_schedule_run(db, "r", now=1.0)
    await insert(db, session_id="s", schedule_run_id="r")
    for table in ("sessions", "schedule_runs"):
        with pytest.raises(IntegrityError):
            await poke(db, f"DELETE FROM {table}")
        assert len(await peek(db, f"SELECT id FROM {table}")) == 1


VERSIONS = {
    "0": "schema version 0, this program needs 1: it is older",
    "2": "schema version 2, this program needs 1: it is newer or unknown",
    "-1": "schema version -1, .* newer or unknown",
    "one": "schema version one, .* newer or unknown",
    "²": "schema version ², .* newer or unknown",
    "": "schema version none, .* newer or unknown",
}


async def test_another_schema_version_is_refused_by_name(url: str) -> None:
    async with StateDB(url):
        pass
    for version, told in VERSIONS.items():
        hand(url, f"UPDATE schema_meta SET value = '{version}'")
        with pytest.raises(BadInput, match=told):
            async with StateDB(url):
                pass
        assert hand(url, "SELECT value FROM schema_meta") == [(version,)]
    hand(url, "DELETE FROM schema_meta")
    with pytest.raises(BadInput, match="schema version none"):
        async with StateDB(url):
            pass
    assert hand(url, "SELECT value FROM schema_meta") == []


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("admin_events", "says schema version 1 but lacks admin_events"),
        ("schema_meta", "has admin_events, dispatch_outbox, .* but no schema version"),
    ],
)
async def test_tables_that_are_not_whole_are_refused_by_name_and_left_as_they_are(url: str, missing: str, told: str) -> None:
    async with StateDB(url):
        pass
    hand(url, f"DROP TABLE {missing}")
    refused = StateDB(url)
    with pytest.raises(BadInput, match=told):
        async with refused:
            pass
    assert tables(url) == TABLES - {missing}
    with pytest.raises(BadInput, match="is not open"):
        await peek(refused, "SELECT 1")


async def test_without_create_an_empty_database_is_refused_and_stays_empty(url: str) -> None:
    hand(url, "CREATE TABLE users (id TEXT PRIMARY KEY)")
    with pytest.raises(BadInput, match="has no dispatch outbox"):
        async with StateDB(url, create=False):
            pass
    assert tables(url) == {"users"}


# What it makes.


async def test_a_row_with_only_what_it_needs_gets_the_records_defaults(db: StateDB) -> None:
    await insert(db)
    assert await one(db, "a") == {
        **NEEDED,
        "dedup_key": None,
        "status": "pending",
        "attempt": 0,
        "max_attempts": 8,
        "ack_required": 0,
        "ack_token": None,
        "session_id": None,
        "schedule_run_id": None,
        "last_error": None,
        "expires_at": None,
        "updated_at": None,
        "claim_number": 0,
        "claimed_at": None,
        "last_error_attempt": None,
        "lane": None,
        "lane_position": None,
    }


async def test_every_status_of_the_record_can_be_stored(db: StateDB) -> None:
    for status in ("pending", "delivering", "delivered", "acked", "dead_letter", "expired"):
        await insert(db, id=status, status=status)
    assert len(await peek(db, "SELECT id FROM dispatch_outbox WHERE id = status")) == 6


async def test_the_tables_the_indexes_and_the_version_are_there(db: StateDB) -> None:
    def look(connection: Connection) -> dict[str, tuple[list[str | None], bool, str]]:
        return {
            str(each["name"]): (
                each["column_names"],
                bool(each["unique"]),
                str(each["dialect_options"][f"{connection.dialect.name}_where"]).replace("(", "").replace(")", ""),
            )
            for each in inspect(connection).get_indexes("dispatch_outbox")
        }

    indexes = await db.read(look, "indexes")
    assert set(indexes) == {"dispatch_outbox_dedup_key", "dispatch_outbox_due", "dispatch_outbox_lane"}
    assert indexes["dispatch_outbox_dedup_key"] == (["dedup_key"], True, "dedup_key IS NOT NULL")
    columns, unique, where = indexes["dispatch_outbox_due"]
    assert (columns, unique) == (["status", "next_attempt_at"], False)
    assert "pending" in where
    assert "delivering" in where
    assert "delivered" not in where
    assert indexes["dispatch_outbox_lane"] == (["lane", "lane_position"], True, "lane IS NOT NULL")
    assert await peek(db, "SELECT key, value FROM schema_meta") == [{"key": "schema_version", "value": "1"}]


async def test_a_payload_comes_back_as_the_text_that_was_written(db: StateDB) -> None:
    texts = ('{"b":1,  "a":2}', '{"a":1,"a":2}', '{"n":1.10e2}', '{"t":"\\u00e9 é"}')
    for number, text in enumerate(texts):
        await insert(db, id=str(number), payload=text)
    assert [row["payload"] for row in await peek(db, "SELECT payload FROM dispatch_outbox ORDER BY id")] == list(texts)


async def test_an_open_database_opens_again_with_its_rows(url: str) -> None:
    async with StateDB(url) as db:
        dispatch = await enqueue_dispatch(db, kind="ping", deliver_to="seat-1", now=1000.0)
    async with StateDB(url, create=False) as db:
        assert (await one(db, dispatch))["deliver_to"] == "seat-1"


async def test_tables_of_others_stand_beside_ours(url: str) -> None:
    hand(url, "CREATE TABLE users (id TEXT PRIMARY KEY)")
    async with StateDB(url):
        assert tables(url) == TABLES | {"users"}


async def test_many_who_create_the_tables_at_once_make_them_once(url: str) -> None:
    opened = [StateDB(url) for _each in range(6)]
    try:
        await asyncio.gather(*(each.__aenter__() for each in opened))
        assert await peek(opened[0], "SELECT value FROM schema_meta") == [{"value": "1"}]
    finally:
        await asyncio.gather(*(each.__aexit__(None, None, None) for each in opened))


async def test_two_processes_that_create_the_tables_at_once_make_them_once(url: str, box: ProcessBox) -> None:
    running = [box.launch("tests.outbox.dispatch.d13_child", ["create", url]) for _each in range(3)]
    ended = [await asyncio.to_thread(each.wait) for each in running]
    assert [(each.exit_code, each.stderr) for each in ended] == [(0, "")] * 3
    async with StateDB(url, create=False) as db:
        assert await peek(db, "SELECT value FROM schema_meta") == [{"value": "1"}]
