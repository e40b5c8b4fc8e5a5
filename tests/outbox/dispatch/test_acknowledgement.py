"""The acknowledgement tier: a send that succeeded is sent again until its token is presented (ADR-0059, D5)."""

import asyncio
import json
from typing import Any

import pytest

from outbox import faults
from outbox.dispatch import (
    BadValue,
    DeliveryOptions,
    IllegalEdge,
    NoSuchDispatch,
    StateDB,
    ack_dispatch,
    deliver_due_dispatches,
    enqueue_dispatch,
    get_dispatch,
    list_transitions,
)
from outbox.faults import Fault
from tests.outbox.dispatch.peek import moves, one, poke
from tests.outbox.dispatch.waiting import LEASE, NOTHING, NOW, OK, Held, meanwhile, soon
from tests.outbox.peer import Peer, answering
from tests.support import ProcessBox

TOKEN = "0123456789abcdef" * 2
OTHER_TOKEN = "f" * 32
# What does not depend on the database is shown on one.
ONLY_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


async def enqueue(db: StateDB, deliver_to: str = "seat-1", **more: Any) -> str:
    """A dispatch that asks for an acknowledgement, due at NOW."""
    settings = {"kind": "k", "deliver_to": deliver_to, "ack_required": True, "ack_token": TOKEN, "now": NOW, **more}
    return await enqueue_dispatch(db, **settings)


async def scan(db: StateDB, at: float = NOW, command: str = "true") -> dict[str, int]:
    return await deliver_due_dispatches(db, now=lambda: at, notify_template=[command])


async def everything(db: StateDB, dispatch: str) -> tuple[Any, ...]:
    return await one(db, dispatch), await moves(db, dispatch)


# Refused.


async def test_a_dispatch_that_does_not_exist_is_a_lookup_error(db: StateDB) -> None:
    with pytest.raises(NoSuchDispatch, match="there is no dispatch 'gone'") as caught:
        await ack_dispatch(db, "gone", TOKEN)
    assert isinstance(caught.value, LookupError)
    assert caught.value.exit_code == 2


async def test_a_dispatch_that_asks_for_no_acknowledgement_is_a_value_error(db: StateDB) -> None:
    dispatch = await enqueue(db, ack_required=False, ack_token=None)
    before = await everything(db, dispatch)
    for token in (TOKEN, "", "None"):
        with pytest.raises(BadValue, match=f"dispatch {dispatch} asks for no acknowledgement") as caught:
            await ack_dispatch(db, dispatch, token)
        assert isinstance(caught.value, ValueError)
    assert await everything(db, dispatch) == before


@ONLY_SQLITE
@pytest.mark.parametrize("token", [OTHER_TOKEN, "", TOKEN[:-1], TOKEN + "0", TOKEN.upper(), f" {TOKEN}", "ä€", None, 7, b"x"])
async def test_another_token_is_a_value_error_and_changes_nothing(db: StateDB, token: Any) -> None:
    dispatch = await enqueue(db)
    before = await everything(db, dispatch)
    with pytest.raises(BadValue, match=f"the token is not that of dispatch {dispatch}") as caught:
        await ack_dispatch(db, dispatch, token)
    assert TOKEN not in str(caught.value)
    assert await everything(db, dispatch) == before


@ONLY_SQLITE
async def test_a_token_that_is_no_text_at_all_is_a_value_error(db: StateDB) -> None:
    dispatch = await enqueue(db)
    with pytest.raises(ValueError, match="token"):
        await ack_dispatch(db, dispatch, "\udcff")


@ONLY_SQLITE
async def test_the_token_of_another_dispatch_is_refused(db: StateDB) -> None:
    dispatch = await enqueue(db)
    await enqueue(db, ack_token=OTHER_TOKEN)
    with pytest.raises(BadValue):
        await ack_dispatch(db, dispatch, OTHER_TOKEN)


@pytest.mark.parametrize("status", ["dead_letter", "expired", "acked", "delivered"])
async def test_a_finished_dispatch_is_not_acknowledged(db: StateDB, status: str) -> None:
    dispatch = await enqueue(db)
    await poke(db, "UPDATE dispatch_outbox SET status = :status WHERE id = :id", status=status, id=dispatch)
    before = await everything(db, dispatch)
    with pytest.raises(IllegalEdge, match=f"cannot go from {status} to acked") as caught:
        await ack_dispatch(db, dispatch, TOKEN)
    assert isinstance(caught.value, ValueError)
    assert await everything(db, dispatch) == before


# The loop.


async def test_a_send_that_succeeded_comes_back_until_the_token_ends_it(db: StateDB) -> None:
    dispatch = await enqueue(db)
    at = NOW
    for attempt, delay in enumerate((60, 120, 240), 1):
        assert await scan(db, at) == {**NOTHING, "attempted": 1, "delivered": 1}
        row = await one(db, dispatch)
        assert (row["status"], row["attempt"], row["next_attempt_at"]) == ("pending", attempt, at + delay)
        assert (row["updated_at"], row["last_error"]) == (at, None)
        assert await scan(db, at + delay - 0.5) == NOTHING
        at += delay
    assert await ack_dispatch(db, dispatch, TOKEN, now=at) is True
    row = await one(db, dispatch)
    assert (row["status"], row["attempt"], row["updated_at"]) == ("acked", 3, at)
    assert await scan(db, at + 1e6) == NOTHING
    loop = [
        ("pending", "delivering", "dispatch.delivering.attempt"),
        ("delivering", "pending", "dispatch.delivered.transport_ok"),
    ]
    assert (await moves(db, dispatch))[1:] == [*loop * 3, ("pending", "acked", "dispatch.acked.consumer")]
    last = (await list_transitions(db, dispatch))[-1]
    assert (last["source"], last["actor"], last["created_at"]) == ("system", "ack_dispatch", at)


async def test_status_and_due_time_of_a_send_that_awaits_its_token_are_one_transaction(db: StateDB) -> None:
    dispatch = await enqueue(db)

    class Torn(Exception):
        pass

    def tear(fault: Fault) -> None:
        faults.arm(fault, tear)  # for the second try as well
        raise Torn

    faults.arm(Fault("dispatch.outcome.written"), tear)
    with pytest.raises(Torn):
        await scan(db)
    row = await one(db, dispatch)
    assert (row["status"], row["attempt"], row["next_attempt_at"]) == ("delivering", 1, NOW + LEASE)
    assert len(await moves(db, dispatch)) == 2


async def test_the_token_may_come_before_anything_was_sent(db: StateDB) -> None:
    dispatch = await enqueue(db)
    assert await ack_dispatch(db, dispatch, TOKEN)
    assert (await moves(db, dispatch))[-1] == ("pending", "acked", "dispatch.acked.consumer")
    assert await scan(db) == NOTHING


async def test_a_generated_token_is_in_the_row_and_in_the_payload_and_is_accepted(db: StateDB) -> None:
    dispatch = await enqueue(db, ack_token=None)
    row = await get_dispatch(db, dispatch)
    assert row is not None
    assert row["payload"]["ack_token"] == row["ack_token"]
    assert len(row["ack_token"]) == 32
    assert await ack_dispatch(db, dispatch, row["ack_token"])


async def test_sends_without_an_acknowledgement_end_at_the_bound(db: StateDB) -> None:
    dispatch = await enqueue(db, max_attempts=2)
    assert await scan(db) == {**NOTHING, "attempted": 1, "delivered": 1}
    assert await scan(db, NOW + 60) == {**NOTHING, "attempted": 1, "delivered": 1, "dead_letter": 1}
    row = await one(db, dispatch)
    assert (row["status"], row["attempt"], row["last_error"]) == ("dead_letter", 2, None)
    assert (await moves(db, dispatch))[-1] == ("delivering", "dead_letter", "dispatch.dead_letter.ack_timeout")


async def test_expiry_ends_the_wait_for_the_token(db: StateDB) -> None:
    dispatch = await enqueue(db, expires_at=NOW + 60)
    await scan(db)
    assert await scan(db, NOW + 60) == {**NOTHING, "attempted": 1, "expired": 1}
    assert (await moves(db, dispatch))[-1] == ("pending", "expired", "dispatch.expired.deadline")
    with pytest.raises(IllegalEdge):
        await ack_dispatch(db, dispatch, TOKEN)


# Both at once.


@pytest.mark.parametrize("bound", [1, 8])
async def test_a_token_that_comes_during_the_send_wins_over_its_outcome(
    db: StateDB, caplog: pytest.LogCaptureFixture, bound: int
) -> None:
    async with Held() as held:
        dispatch = await enqueue(db, held.url, max_attempts=bound)
        scanning = asyncio.create_task(scan(db))
        await soon(held.arrived)
        assert await ack_dispatch(db, dispatch, TOKEN, now=NOW + 1)
        before = await everything(db, dispatch)
        held.go.set()
        assert await scanning == {**NOTHING, "attempted": 1}
    assert await everything(db, dispatch) == before
    assert before[0]["status"] == "acked"
    assert before[1][-1] == ("delivering", "acked", "dispatch.acked.consumer")
    assert "came too late and changed nothing" in caplog.text


async def test_a_row_that_was_sent_between_reading_and_writing_is_false_and_asking_again_works(db: StateDB, url: str) -> None:
    dispatch = await enqueue(db)
    seen = []

    async def send(other: StateDB) -> None:
        seen.append((await scan(other))["delivered"])

    faults.arm(Fault("dispatch.ack.before"), meanwhile(url, send))
    assert await ack_dispatch(db, dispatch, TOKEN) is False
    assert seen == [1]
    # It is pending as it was when the consumer asked, and yet not the same: it has been sent meanwhile.
    row = await one(db, dispatch)
    assert (row["status"], row["attempt"], len(await moves(db, dispatch))) == ("pending", 1, 3)
    assert await ack_dispatch(db, dispatch, TOKEN) is True


async def test_of_two_acknowledgements_at_once_one_is_recorded(db: StateDB, url: str) -> None:
    dispatch = await enqueue(db)
    answers = []

    async def acknowledge(other: StateDB) -> None:
        answers.append(await ack_dispatch(other, dispatch, TOKEN))

    faults.arm(Fault("dispatch.ack.before"), meanwhile(url, acknowledge))
    answers.append(await ack_dispatch(db, dispatch, TOKEN))
    assert answers == [True, False]
    assert len(await moves(db, dispatch)) == 2


# The whole way.


async def test_success_of_the_transport_is_not_yet_the_acknowledgement_of_the_consumer(
    db: StateDB, url: str, box: ProcessBox
) -> None:
    def acknowledge(token: str) -> tuple[int | None, Any]:
        ended = box.run("outbox.dispatch", ["ack", dispatch, token, "--db", url, "--json"])
        return ended.exit_code, json.loads(ended.stdout) if ended.stdout else ended.stderr

    async with Peer(answering(OK)) as destination:
        dispatch = await enqueue(db, destination.url, ack_token=None)
        await enqueue_dispatch(db, kind="plain", deliver_to=destination.url, now=NOW)
        options = DeliveryOptions(concurrency=1)
        counts = await deliver_due_dispatches(db, now=lambda: NOW, options=options)
        assert counts == {**NOTHING, "attempted": 2, "delivered": 2}
        # Both were answered with 200. Only the one that asks for nothing more is done.
        assert (await one(db, dispatch))["status"] == "pending"
        again = await deliver_due_dispatches(db, now=lambda: NOW + 60, options=options)
        assert again == {**NOTHING, "attempted": 1, "delivered": 1}
    sent = [json.loads(each.body) for each in destination.requests if each.header("Idempotency-Key") == [dispatch]]
    assert len(destination.requests) == 3
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert [each.header("Halt23-Attempt") for each in destination.requests if each.header("Idempotency-Key") == [dispatch]] == [
        ["1"],
        ["2"],
    ]
    # The consumer knows its token from what it received, and comes when it likes.
    code, told = await asyncio.to_thread(acknowledge, OTHER_TOKEN)
    assert (code, "the token is not that of dispatch" in told) == (2, True)
    assert (await one(db, dispatch))["status"] == "pending"
    assert await asyncio.to_thread(acknowledge, sent[0]["ack_token"]) == (
        0,
        {"done": True, "message": f"{dispatch} is acknowledged"},
    )
    assert (await moves(db, dispatch))[-1] == ("pending", "acked", "dispatch.acked.consumer")
    assert await deliver_due_dispatches(db, now=lambda: NOW + 1e6, options=options) == NOTHING
