"""D2: a dispatch and its first transition are committed together, once for each key, or not at all."""

import asyncio
import json
import random
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from outbox.dispatch import BadValue, StateDB, add_schedule_run, add_session, enqueue_dispatch
from outbox.errors import BadInput
from tests.outbox.dispatch.peek import moves, one, peek, poke
from tests.support import ProcessBox

NOW = 1000.0
ID = "0123456789abcdef0123456789abcdef"
SURROGATE = "\udc80"


async def enqueue(db: StateDB | AsyncConnection, **values: Any) -> str:
    return await enqueue_dispatch(db, **{"kind": "ping", "deliver_to": "seat-1", "now": NOW, **values})


async def census(db: StateDB) -> tuple[int, int]:
    """How many dispatches, and how many transitions."""
    (row,) = await peek(
        db, "SELECT (SELECT count(*) FROM dispatch_outbox) AS rows, (SELECT count(*) FROM status_transitions) AS moves"
    )
    return row["rows"], row["moves"]


# What cannot be enqueued: the argument, its value, and what the message says.
TEXTS: tuple[tuple[str, Any, str], ...] = tuple(
    (name, value, told)
    for name in ("kind", "deliver_to", "dedup_key", "lane", "session_id", "schedule_run_id")
    for value, told in (
        ("", f"^{name} is empty"),
        ("a\0b", f"^{name} .* holds a NUL"),
        (f"a{SURROGATE}", f"^{name} .* is not text"),
        (7, f"^{name} is int; expected text"),
        (b"bytes", f"^{name} is bytes; expected text"),
    )
)
VALUES: tuple[tuple[str, Any, str], ...] = (
    ("kind", None, "^kind is NoneType; expected text"),
    ("deliver_to", None, "^deliver_to is NoneType; expected text"),
    ("body", [1], "the body is list; a body is a JSON object"),
    ("body", "{}", "the body is str; a body is a JSON object"),
    ("body", 0, "the body is int; a body is a JSON object"),
    ("body", {1: 2}, "the body has a member 1; the names of JSON members are text"),
    ("body", {None: 2}, "the body has a member None"),
    ("body", {"a": {1: 2}}, "the body has a member 1"),
    ("body", {"a": [{"b": {True: 2}}]}, "the body has a member True"),
    ("body", {"n": float("nan")}, "the body of this 'ping' is not JSON"),
    ("body", {"n": float("-inf")}, "the body of this 'ping' is not JSON"),
    ("body", {"n": {1, 2}}, "the body of this 'ping' is not JSON: .*set"),
    ("body", {"n": SURROGATE}, "the body of this 'ping' is not JSON"),
    ("max_attempts", 0, "^max_attempts is 0; expected 1 to 2147483647"),
    ("max_attempts", -1, "^max_attempts is -1; expected 1"),
    ("max_attempts", True, "^max_attempts is True; expected a whole number"),
    ("max_attempts", 1.0, "^max_attempts is 1.0; expected a whole number"),
    ("max_attempts", "8", "^max_attempts is '8'; expected a whole number"),
    ("max_attempts", None, "^max_attempts is None; expected a whole number"),
    ("max_attempts", 2**31, "^max_attempts is 2147483648; expected 1 to 2147483647"),
    ("max_attempts", 10**30, "^max_attempts is 10*; expected 1 to"),
    ("expires_at", NOW, r"^expires_at 1000\.0 is not after now \(1000\.0\)"),
    ("expires_at", 1, r"^expires_at 1\.0 is not after now"),
    ("expires_at", 0, r"^expires_at 0\.0 is not after now"),
    ("expires_at", -1.0, r"^expires_at -1\.0 is not after now"),
    ("expires_at", float("nan"), "^expires_at is nan; expected seconds"),
    ("expires_at", float("inf"), "^expires_at is inf; expected seconds"),
    ("expires_at", 10**400, "^expires_at is 10*; expected seconds"),
    ("expires_at", "tomorrow", "^expires_at is 'tomorrow'; expected seconds"),
    ("expires_at", True, "^expires_at is True; expected seconds"),
    ("now", float("nan"), "^now is nan; expected seconds"),
    ("now", "now", "^now is 'now'; expected seconds"),
    ("now", 10**400, "^now is 10*; expected seconds"),
    ("dispatch_id", "", "^dispatch_id is empty"),
    ("dispatch_id", ID.upper(), "^dispatch_id .* is not 32 hexadecimal digits"),
    ("dispatch_id", ID[1:], "^dispatch_id .* is not 32 hexadecimal digits"),
    ("dispatch_id", "٣" * 32, "^dispatch_id .* is not 32 hexadecimal digits"),
    ("dispatch_id", 7, "^dispatch_id is int; expected text"),
    ("ack_token", "f" * 32, "an ack_token was given, but no acknowledgement is asked for"),
    ("session_id", "nobody", "session_id 'nobody' or .* is in no row of sessions"),
    ("schedule_run_id", "never", "schedule_run_id 'never' is in no row of .*schedule_runs"),
)


@pytest.mark.parametrize("cases", [TEXTS, VALUES], ids=["texts", "values"])
async def test_a_value_that_cannot_be_used_is_named_and_nothing_is_written(
    db: StateDB, cases: tuple[tuple[str, Any, str], ...]
) -> None:
    for name, value, told in cases:
        with pytest.raises(BadValue, match=told) as raised:
            await enqueue(db, **{name: value})
        assert isinstance(raised.value, ValueError), name
        assert isinstance(raised.value, BadInput), name
    assert await census(db) == (0, 0)


async def test_a_token_that_is_none_is_refused_where_an_acknowledgement_is_asked_for(db: StateDB) -> None:
    with pytest.raises(BadValue, match=r"^ack_token .* is not 32 hexadecimal digits"):
        await enqueue(db, ack_required=True, ack_token="hunter2")
    assert await census(db) == (0, 0)


async def test_an_id_that_is_taken_is_refused_and_the_first_row_stays(db: StateDB) -> None:
    await enqueue(db, dispatch_id=ID, body={"first": True})
    with pytest.raises(BadValue, match=f"the dispatch {ID} cannot be written"):
        await enqueue(db, dispatch_id=ID, body={"first": False})
    assert await census(db) == (1, 1)
    assert json.loads((await one(db, ID))["payload"])["body"] == {"first": True}


async def test_a_key_as_long_as_an_index_takes_is_kept_and_a_longer_one_refused(db: StateDB) -> None:
    noise = random.Random(7)
    longest = "".join(chr(noise.randrange(0x80, 0x800)) for _two_bytes in range(1000))  # nothing that compresses
    row = await one(db, await enqueue(db, dedup_key=longest, lane=longest))
    assert (row["dedup_key"], row["lane"]) == (longest, longest)
    for name in ("dedup_key", "lane"):
        with pytest.raises(BadValue, match=f"^{name} is 2001 bytes long; expected at most 2000"):
            await enqueue(db, **{name: longest + "x"})
    await add_session(db, longest)
    with pytest.raises(BadValue, match=r"^id is 2001 bytes long"):
        await add_session(db, longest + "x")
    assert await census(db) == (1, 1)


# One row and its first transition.


async def test_a_row_is_written_with_its_first_transition_exactly_as_recorded(db: StateDB) -> None:
    dispatch = await enqueue(db, kind="order paid", body={"order": 7})
    row = await one(db, dispatch)
    assert {name: value for name, value in row.items() if name != "payload"} == {
        "id": dispatch,
        "kind": "order paid",
        "deliver_to": "seat-1",
        "dedup_key": None,
        "status": "pending",
        "attempt": 0,
        "max_attempts": 8,
        "next_attempt_at": NOW,
        "ack_required": 0,
        "ack_token": None,
        "session_id": None,
        "schedule_run_id": None,
        "last_error": None,
        "created_at": NOW,
        "expires_at": None,
        "updated_at": None,
        "claim_number": 0,
        "claimed_at": None,
        "last_error_attempt": None,
        "lane": None,
        "lane_position": None,
    }
    (move,) = await peek(db, "SELECT * FROM status_transitions")
    del move["id"]
    assert move == {
        "entity_type": "dispatch",
        "entity_id": dispatch,
        "previous_status": None,
        "status": "pending",
        "reason_code": "dispatch.pending.enqueued",
        "reason_summary": "enqueued kind=order paid",
        "source": "system",
        "actor": "enqueue_dispatch",
        "evidence_refs": "[]",
        "metadata": "{}",
        "created_at": NOW,
    }


async def test_every_argument_is_kept(db: StateDB) -> None:
    await add_session(db, "s", now=NOW)
    await add_schedule_run(db, "r", now=NOW)
    given = {
        "kind": "käse; DROP TABLE sessions",
        "deliver_to": "seat '1' \"$(x)\"\n\t",
        "dedup_key": "k",
        "max_attempts": 2**31 - 1,
        "expires_at": NOW + 0.5,
        "session_id": "s",
        "schedule_run_id": "r",
    }
    row = await one(db, await enqueue(db, **given, ack_required=True))
    assert {name: row[name] for name in given} == given
    assert row["ack_required"] == 1
    assert len(row["ack_token"]) == 32
    assert set(row["ack_token"]) <= set("0123456789abcdef")
    assert json.loads(row["payload"])["ack_token"] == row["ack_token"]
    assert json.loads(row["payload"])["deliver_to"] == given["deliver_to"]


async def test_ids_are_32_hexadecimal_digits_and_without_a_key_every_call_is_a_new_row(db: StateDB) -> None:
    ids = {await enqueue(db) for _call in range(3)}
    assert len(ids) == 3
    assert all(len(each) == 32 and set(each) <= set("0123456789abcdef") for each in ids)
    assert await census(db) == (3, 3)


async def test_a_session_that_is_there_already_is_refused(db: StateDB) -> None:
    await add_session(db, "s", now=NOW)
    with pytest.raises(BadValue, match="sessions has a row 's' already"):
        await add_session(db, "s", now=NOW)
    with pytest.raises(BadValue, match=r"^id is empty"):
        await add_schedule_run(db, "")


# One row for each key.


async def test_a_known_key_returns_the_first_id_and_compares_and_changes_nothing(db: StateDB) -> None:
    first = await enqueue(db, dedup_key="k", body={"n": 1}, expires_at=NOW + 10)
    before = await one(db, first)
    again = await enqueue(
        db,
        dedup_key="k",
        kind="pong",
        deliver_to="seat-2",
        body={"n": 2},
        ack_required=True,
        max_attempts=1,
        expires_at=NOW + 99,
        lane="l",
        session_id="nobody",
        now=NOW + 50,
    )
    assert again == first
    assert await one(db, first) == before
    assert await moves(db, first) == [(None, "pending", "dispatch.pending.enqueued")]
    assert await census(db) == (1, 1)


async def test_a_known_key_answers_also_when_the_expiry_has_passed_since(db: StateDB) -> None:
    first = await enqueue(db, dedup_key="k", expires_at=NOW + 10)
    assert await enqueue(db, dedup_key="k", expires_at=NOW + 10, now=NOW + 20) == first


async def test_a_known_key_still_needs_values_that_can_be_used(db: StateDB) -> None:
    await enqueue(db, dedup_key="k")
    with pytest.raises(BadValue, match="kind is empty"):
        await enqueue(db, dedup_key="k", kind="")
    assert await census(db) == (1, 1)


async def test_keys_are_compared_to_the_letter(db: StateDB) -> None:
    ids = {await enqueue(db, dedup_key=key) for key in ("k", "K", "k ", "ⓚ", "é", "e\u0301")}
    assert len(ids) == 6


async def test_a_key_is_free_again_when_its_row_is_gone(db: StateDB) -> None:
    first = await enqueue(db, dedup_key="k")
    await poke(db, "DELETE FROM dispatch_outbox")
    assert await enqueue(db, dedup_key="k") != first


async def test_many_tasks_with_one_key_on_several_connections_get_one_row_and_one_id(url: str) -> None:
    opened = [await StateDB(url).__aenter__() for _each in range(4)]
    try:
        for key in ("a", "b", "c"):
            ids = await asyncio.gather(*(enqueue(opened[n % 4], dedup_key=key, body={"n": n}) for n in range(16)))
            assert len(set(ids)) == 1
        assert await census(opened[0]) == (3, 3)
    finally:
        for each in opened:
            await each.__aexit__(None, None, None)


async def test_two_processes_with_the_same_keys_get_the_same_ids(url: str, box: ProcessBox) -> None:
    async with StateDB(url) as db:
        running = [box.launch("tests.outbox.dispatch.d13_child", ["enqueue", url, "40"]) for _each in range(2)]
        first, second = [await asyncio.to_thread(each.wait) for each in running]
        assert (first.exit_code, first.stderr, second.exit_code, second.stderr) == (0, "", 0, "")
        assert first.stdout == second.stdout
        assert len(set(first.stdout.split())) == 40
        assert await census(db) == (40, 40)


async def test_a_key_that_another_transaction_is_about_to_commit_is_waited_for_and_its_id_returned(url: str) -> None:
    async with StateDB(url) as ours, StateDB(url) as theirs:
        async with theirs.begin() as connection:
            first = await enqueue(connection, dedup_key="k")
            waiting = asyncio.create_task(enqueue(ours, dedup_key="k"))
            for _turn in range(50):
                await asyncio.sleep(0)
            assert not waiting.done()
        assert await waiting == first
        assert await census(ours) == (1, 1)


async def test_a_key_that_another_transaction_gives_up_is_ours(url: str) -> None:
    async with StateDB(url) as ours, StateDB(url) as theirs:
        with pytest.raises(ZeroDivisionError):
            async with theirs.begin() as connection:
                first = await enqueue(connection, dedup_key="k")
                waiting = asyncio.create_task(enqueue(ours, dedup_key="k"))
                raise ZeroDivisionError
        assert await waiting != first
        assert await census(ours) == (1, 1)


# In the caller's own transaction.


@pytest.fixture
async def orders(db: StateDB) -> StateDB:
    """An outbox in a database that has rows of its producer's."""
    await poke(db, "CREATE TABLE orders (id INTEGER)")
    return db


async def order(connection: AsyncConnection) -> None:
    await connection.execute(text("INSERT INTO orders VALUES (7)"))


async def test_the_caller_s_rows_and_the_dispatch_are_committed_together(orders: StateDB) -> None:
    async with orders.begin() as connection:
        await order(connection)
        dispatch = await enqueue(connection)
    assert await moves(orders, dispatch) == [(None, "pending", "dispatch.pending.enqueued")]
    assert await peek(orders, "SELECT id FROM orders") == [{"id": 7}]


async def test_the_caller_s_rows_and_the_dispatch_are_rolled_back_together(orders: StateDB) -> None:
    with pytest.raises(ZeroDivisionError):
        async with orders.begin() as connection:
            await order(connection)
            await enqueue(connection)
            raise ZeroDivisionError
    assert await census(orders) == (0, 0)
    assert await peek(orders, "SELECT id FROM orders") == []


async def test_a_refused_dispatch_takes_the_caller_s_rows_back_with_it(orders: StateDB) -> None:
    with pytest.raises(BadValue, match="session_id 'nobody'"):
        async with orders.begin() as connection:
            await order(connection)
            await enqueue(connection, session_id="nobody")
    assert await census(orders) == (0, 0)
    assert await peek(orders, "SELECT id FROM orders") == []


async def test_a_caller_who_goes_on_after_a_refused_dispatch_keeps_its_own_rows(orders: StateDB) -> None:
    async with orders.begin() as connection:
        await order(connection)
        with pytest.raises(BadValue, match="session_id 'nobody'"):
            await enqueue(connection, session_id="nobody")
        with pytest.raises(BadValue, match="kind is empty"):
            await enqueue(connection, kind="")
    assert await census(orders) == (0, 0)
    assert await peek(orders, "SELECT id FROM orders") == [{"id": 7}]


async def test_a_dispatch_may_refer_to_a_session_of_the_same_transaction(db: StateDB) -> None:
    async with db.begin() as connection:
        await connection.execute(text("INSERT INTO sessions (id, created_at) VALUES ('s', 1.0)"))
        dispatch = await enqueue(connection, session_id="s")
    assert (await one(db, dispatch))["session_id"] == "s"


async def test_several_dispatches_of_one_transaction_are_told_apart_and_deduplicated(db: StateDB) -> None:
    async with db.begin() as connection:
        ids = [await enqueue(connection, dedup_key=key, lane="l") for key in ("a", "b", "a")]
    assert ids[0] == ids[2] != ids[1]
    assert [(await one(db, each))["lane_position"] for each in ids[:2]] == [1, 2]
    assert await census(db) == (2, 2)


async def test_a_connection_without_a_transaction_is_refused(db: StateDB) -> None:
    async with db.begin() as connection:
        await connection.rollback()
        with pytest.raises(BadValue, match=r"in no transaction; use the one of `async with db\.begin\(\)`"):
            await enqueue(connection)
    assert await census(db) == (0, 0)


# Lanes.


async def test_rows_of_a_lane_have_places_in_the_order_of_their_commits(url: str) -> None:
    opened = [await StateDB(url).__aenter__() for _each in range(3)]
    try:
        await asyncio.gather(*(enqueue(opened[n % 3], lane=f"lane {n % 2}") for n in range(12)))
        rows = await peek(opened[0], "SELECT lane, lane_position FROM dispatch_outbox ORDER BY lane, lane_position")
        assert [(row["lane"], row["lane_position"]) for row in rows] == [
            (f"lane {lane}", place) for lane in range(2) for place in range(1, 7)
        ]
    finally:
        for each in opened:
            await each.__aexit__(None, None, None)
