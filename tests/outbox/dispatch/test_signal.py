"""D1: the envelope is the record's, member for member, and is written once."""

import json
from typing import Any

import pytest

from outbox.dispatch import SIGNAL_SCHEMA_VERSION, BadValue, DispatchSignal, Signal, StateDB, enqueue_dispatch
from outbox.dispatch import deliver_due_dispatches as deliver
from tests.outbox.dispatch.peek import one

ID = "0123456789abcdef0123456789abcdef"
TOKEN = "f" * 32
MEMBERS = [
    "id",
    "created_at",
    "metadata",
    "data",
    "emitter_role",
    "schema_version",
    "dispatch_id",
    "kind",
    "deliver_to",
    "attempt",
    "ack_token",
    "body",
]


def signal(body: dict[str, Any]) -> DispatchSignal:
    return DispatchSignal(id="s", created_at=0.0, kind="ping", body=body)


def circle() -> dict[str, Any]:
    body: dict[str, Any] = {}
    body["again"] = body
    return body


def nest(depth: int) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for _level in range(depth):
        body = {"in": body}
    return body


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"n": float("nan")}, id="NaN"),
        pytest.param({"n": [float("inf")]}, id="infinity"),
        pytest.param({"n": {1, 2}}, id="set"),
        pytest.param({"n": b"bytes"}, id="bytes"),
        pytest.param({"n": object()}, id="object"),
        pytest.param({"n": "\ud800"}, id="surrogate"),
        pytest.param({"\udfff": 1}, id="surrogate in a name"),
        pytest.param({("a",): 1}, id="tuple for a name"),
        pytest.param(circle(), id="circle"),
        pytest.param(nest(100_000), id="too deep"),
        pytest.param({"n": 10**5000}, id="more digits than Python prints"),
    ],
)
def test_a_body_that_is_not_json_is_refused_with_the_kind_in_the_message(body: dict[str, Any]) -> None:
    with pytest.raises(BadValue, match="the body of this 'ping' is not JSON"):
        signal(body).to_json()


def test_the_defaults_are_the_records() -> None:
    bare = DispatchSignal(id="s", created_at=1.5)
    assert isinstance(bare, Signal)
    assert SIGNAL_SCHEMA_VERSION == 1
    assert bare.to_dict() == {
        "id": "s",
        "created_at": 1.5,
        "metadata": {"lion_class": "outbox.dispatch.signal.DispatchSignal"},
        "data": None,
        "emitter_role": None,
        "schema_version": 1,
        "dispatch_id": "",
        "kind": "",
        "deliver_to": "",
        "attempt": 0,
        "ack_token": None,
        "body": {},
    }
    assert list(bare.to_dict()) == MEMBERS


def test_two_signals_share_no_body() -> None:
    first, second = DispatchSignal(id="a", created_at=0.0), DispatchSignal(id="b", created_at=0.0)
    assert first.body == second.body == {}
    assert first.body is not second.body


def test_the_text_is_compact_json_in_the_records_order_with_characters_as_they_are() -> None:
    text = signal({"größe": "5 €\0", "n": [1, 2.5, True, None]}).to_json()
    assert list(json.loads(text)) == MEMBERS
    assert text.endswith('"body":{"größe":"5 €\\u0000","n":[1,2.5,true,null]}}')
    assert ": " not in text


async def test_the_stored_payload_has_the_records_shape(db: StateDB) -> None:
    returned = await enqueue_dispatch(
        db,
        kind="terminal_notify",
        deliver_to="seat-1",
        body={"b": 1, "a": "é"},
        ack_required=True,
        dispatch_id=ID,
        ack_token=TOKEN,
        now=1000.25,
    )
    assert returned == ID
    assert (await one(db, ID))["payload"] == (
        '{"id":"01234567-89ab-cdef-0123-456789abcdef","created_at":1000.25,'
        '"metadata":{"lion_class":"outbox.dispatch.signal.DispatchSignal"},"data":null,"emitter_role":null,"schema_version":1,'
        f'"dispatch_id":"{ID}","kind":"terminal_notify","deliver_to":"seat-1","attempt":0,"ack_token":"{TOKEN}",'
        '"body":{"b":1,"a":"é"}}'
    )


async def test_the_payload_stays_the_same_bytes_with_attempt_0_over_several_attempts(db: StateDB) -> None:
    dispatch = await enqueue_dispatch(db, kind="ping", deliver_to="seat-1", body={"z": 1.10, "a": [1e100]}, now=1000.0)
    before = (await one(db, dispatch))["payload"]
    for scan in range(3):
        counts = await deliver(db, now=2000.0 + 1000 * scan, notify_template=["false"])
        assert counts["retried"] == 1
    row = await one(db, dispatch)
    assert (row["payload"], row["attempt"], json.loads(row["payload"])["attempt"]) == (before, 3, 0)


async def test_no_body_and_an_empty_body_are_both_an_empty_object(db: StateDB) -> None:
    bodies: tuple[dict[str, Any] | None, ...] = (None, {})
    for body in bodies:
        dispatch = await enqueue_dispatch(db, kind="ping", deliver_to="seat-1", body=body, now=1000.0)
        assert (await one(db, dispatch))["payload"].endswith('"body":{}}')


async def test_each_row_has_a_signal_of_its_own_that_names_the_row(db: StateDB) -> None:
    ids = [await enqueue_dispatch(db, kind="ping", deliver_to="seat-1", now=1000.0) for _row in range(2)]
    payloads = [json.loads((await one(db, each))["payload"]) for each in ids]
    assert [each["dispatch_id"] for each in payloads] == ids
    assert payloads[0]["id"] != payloads[1]["id"]
    assert [each["ack_token"] for each in payloads] == [None, None]
