"""What a dispatcher process does about unknown outcomes under each policy, and what it does when it is asked to wait."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from outbox.policies import POLICIES
from outbox.workflow import Intention, submit
from tests.outbox.peer import (
    Action,
    Connection,
    answering,
    reset_after_request,
    response,
    silent,
)
from tests.outbox.test_dispatcher import Peers
from tests.outbox.world import World, payload, state, summary
from tests.support import Ended, ProcessBox

BODY = b'{"q":1}'
RECONCILE = ("--policy", "reconcile")
KEY_PER_ATTEMPT = ("--policy", "key-per-attempt")
REBUILD = ("--policy", "rebuild-body-per-attempt")
MARK = ("--policy", "mark-before-send")
SOON = ("--timeout-seconds", "0.5")
OK = answering(response())
NOT_APPLIED = answering(response(body=b'{"applied":false}'))
EFFECT_1 = b'{"answer":"The counter is now 1.","counter":1}'
EFFECT_2 = b'{"answer":"The counter is now 2.","counter":2}'


@pytest.fixture
def peers(box: ProcessBox) -> Iterator[Peers]:
    """Opens misbehaving receivers that are closed after the test."""
    opened = Peers(box)
    yield opened
    opened.close()


def intend(world: World, *keys: str, body: bytes = BODY) -> None:
    for key in keys or ("turn-1",):
        assert submit(world.outbox, Intention(key, "/operations", body))


def data(world: World, name: str, record_type: str | None = None) -> list[dict[str, Any]]:
    return [each["data"] for each in world.records(name, record_type)]


def attempts(world: World) -> list[tuple[str, int]]:
    return [(each["key"], each["number"]) for each in data(world, "attempts", "attempt")]


def inquiries(world: World) -> list[tuple[str, str]]:
    """Id and answer of every inquiry."""
    return [(each["id"], each["data"]["answer"]) for each in world.records("attempts", "inquiry")]


def arrivals(world: World) -> list[tuple[str, str]]:
    """Key and attempt of every request that arrived."""
    return [(each["key"], each["attempt"]) for each in data(world, "arrivals", "arrival")]


def queries(world: World) -> list[tuple[str, str]]:
    return [(each["key"], each["answer"]) for each in data(world, "arrivals", "query")]


def succeeded(ended: Ended, **told: int) -> None:
    assert (ended.exit_code, summary(ended), ended.stderr) == (0, told, "")


def everything(world: World) -> tuple[int, int, int, int]:
    """E, R, H, A."""
    return (*world.counts(), len(arrivals(world)))


# Choosing a policy.


@pytest.mark.parametrize("policy", ["", "nonsense", "Resend", "resend,reconcile", "mark_before_send"])
def test_an_unknown_policy_is_bad_input_that_names_the_policies_and_touches_nothing(world: World, policy: str) -> None:
    intend(world)
    before = state(world.outbox)
    ended = world.dispatch("--policy", policy)
    assert (ended.exit_code, ended.stdout) == (2, "")
    for name in POLICIES:
        assert name in ended.stderr
    assert state(world.outbox) == before


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_without_any_crash_each_policy_delivers_once(world: World, policy: str) -> None:
    intend(world)
    world.start_receiver()
    marks = policy == "mark-before-send"
    ended = world.dispatch("--policy", policy)
    succeeded(ended, intentions=1, delivered=1, **({} if marks else {"history_added": 1}))
    assert everything(world) == (1, 1, 0 if marks else 1, 1)
    succeeded(world.dispatch("--policy", policy), intentions=1, already_delivered=1)
    assert everything(world) == (1, 1, 0 if marks else 1, 1)


# Reconcile: what nobody can decide.


UNDECIDED: Sequence[tuple[str, bytes]] = (
    ("404", response("404 Not Found", b'{"error":"not_found"}')),
    ("404 that says false", response("404 Not Found", b'{"applied":false}')),
    ("503", response("503 Service Unavailable", b'{"applied":false}')),
    ("202", response("202 Accepted", b'{"applied":false}')),
    ("500 that says true", response("500 Oops", b'{"applied":true,"status":200,"result":"{}"}')),
    ("redirect", response("307 Temporary Redirect", b"", "Location: /operations/elsewhere")),
    ("empty", response(body=b"")),
    ("html", response(body=b"<html>it worked</html>")),
    ("array", response(body=b'[{"applied":false}]')),
    ("word", response(body=b"false")),
    ("null", response(body=b'{"applied":null}')),
    ("0 for false", response(body=b'{"applied":0}')),
    ("1 for true", response(body=b'{"applied":1,"status":200,"result":"{}"}')),
    ("text for false", response(body=b'{"applied":"false"}')),
    ("another member", response(body=b'{"Applied":false}')),
    ("true and nothing else", response(body=b'{"applied":true}')),
    ("true without result", response(body=b'{"applied":true,"status":200}')),
    ("true without status", response(body=b'{"applied":true,"result":"{}"}')),
    ("result that is no text", response(body=b'{"applied":true,"status":200,"result":{"answer":1}}')),
    ("result that is null", response(body=b'{"applied":true,"status":200,"result":null}')),
    ("status that is text", response(body=b'{"applied":true,"status":"200","result":"{}"}')),
    ("cut", b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"applied":fals'),
    ("cut in its headers", b"HTTP/1.1 200 OK\r\nContent-Le"),
    ("no HTTP", b"applied: false\r\n\r\n"),
    ("unknown encoding", response(body=b'{"applied":\xff}')),
    ("nested too deep", response(body=b'{"applied":' + b"[" * 200_000)),
    ("oversized", response(body=b'{"applied":false,"filler":"' + b"x" * (1024 * 1024) + b'"}')),
)


def stays_unknown(world: World, ended: Ended, keys: Sequence[str] = ("turn-1",)) -> None:
    """The exit code says so, the operator is told what to do, and nothing is made up."""
    assert (ended.exit_code, summary(ended)) == (12, {"intentions": len(keys), "unknown": len(keys)})
    assert "Traceback" not in ended.stderr
    for key in keys:
        assert (
            f"dispatcher: {key}: undecided (it may have happened): the receiver cannot say whether it acted: " in ended.stderr
        )
        assert f"dispatcher: {key} stays unknown and is not sent again. Find out at the receiver's side" in ended.stderr
        assert "only if it was not, make one pass with --policy resend" in ended.stderr
    assert world.counts()[1:] == (0, 0)


async def answering_by_key(connection: Connection) -> None:
    """The answer whose number the key ends with."""
    request = await connection.request()
    number = int(request.line.split()[1].rpartition("-")[2])
    await connection.send(UNDECIDED[number - 1][1])


def test_whatever_a_status_query_answers_but_a_clear_word_decides_nothing(world: World, peers: Peers) -> None:
    """One intention for each answer: the first pass leaves all in doubt, the second asks about each."""
    keys = [f"turn-{number:02}" for number in range(1, len(UNDECIDED) + 1)]
    intend(world, *keys)
    assert world.dispatch(*RECONCILE, receiver=peers(reset_after_request).url).exit_code == 12
    asked = peers(answering_by_key)
    ended = world.dispatch(*RECONCILE, receiver=asked.url)
    assert {each.line.split()[0] for each in asked.requests} == {"GET"}
    told = {name: answer for (name, _content), (_id, answer) in zip(UNDECIDED, inquiries(world), strict=True)}
    assert told == {name: "unanswerable" for name, _content in UNDECIDED}
    stays_unknown(world, ended, keys)
    assert attempts(world) == [(key, 1) for key in keys]


@pytest.mark.parametrize("action", [reset_after_request, answering(b""), answering(b"HTTP/1.1 200 OK\r\nContent-Le")])
def test_a_status_query_is_asked_once_also_where_the_connection_ends(world: World, peers: Peers, action: Action) -> None:
    """F04: no request is sent again behind the back of the journals, also not one that changes nothing."""
    intend(world)
    peer = peers(reset_after_request, action, NOT_APPLIED)
    assert world.dispatch(*RECONCILE, receiver=peer.url).exit_code == 12
    ended = world.dispatch(*RECONCILE, receiver=peer.url)
    assert [each.line.split()[0] for each in peer.requests] == ["POST", "GET"]
    stays_unknown(world, ended)
    assert inquiries(world) == [("turn-1#1?1", "unanswerable")]


@pytest.mark.parametrize(
    "answer",
    [
        b'{"applied":true,"status":true,"result":"{}"}',
        b'{"applied":true,"status":500,"result":"{}"}',
        b'{"applied":true,"status":404,"result":"{}"}',
        b'{"applied":true,"status":0,"result":"{}"}',
        b'{"applied":true,"status":-200,"result":"{}"}',
        b'{"applied":true,"status":200,"result":"\\ud800"}',
    ],
    ids=["true for a status", "500", "404", "0", "-200", "a lone surrogate"],
)
def test_an_answer_that_no_receipt_can_be_made_of_decides_nothing(world: World, peers: Peers, answer: bytes) -> None:
    """A receipt's status is an integer from 200 to 299, and its result is bytes that can be written."""
    intend(world)
    peer = peers(reset_after_request, answering(response(body=answer)))
    assert world.dispatch(*RECONCILE, receiver=peer.url).exit_code == 12
    stays_unknown(world, world.dispatch(*RECONCILE, receiver=peer.url))
    assert inquiries(world) == [("turn-1#1?1", "unanswerable")]


def test_an_answer_that_takes_too_long_decides_nothing(world: World, peers: Peers) -> None:
    intend(world)
    peer = peers(reset_after_request, silent)
    assert world.dispatch(*RECONCILE, receiver=peer.url).exit_code == 12
    stays_unknown(world, world.dispatch(*RECONCILE, *SOON, receiver=peer.url))


def test_an_unanswerable_doubt_stays_over_repeated_passes_and_sends_nothing(world: World) -> None:
    intend(world)
    world.start_receiver("unkeyed")
    assert world.dispatch(*RECONCILE, halt_at="send.response").exit_code == 23
    for number in (1, 2, 3):
        stays_unknown(world, world.dispatch(*RECONCILE))
        assert inquiries(world) == [(f"turn-1#1?{n}", "unanswerable") for n in range(1, number + 1)]
        assert everything(world) == (1, 0, 0, 1)
    assert attempts(world) == [("turn-1", 1)]
    # Only the operator's own word sends again.
    succeeded(world.dispatch(), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (2, 1, 1, 2)


def test_a_doubt_does_not_stop_the_intentions_behind_it(world: World) -> None:
    intend(world)
    world.start_receiver("unkeyed")
    assert world.dispatch(*RECONCILE, halt_at="send.response").exit_code == 23
    intend(world, "turn-2", "turn-3")
    ended = world.dispatch(*RECONCILE)
    assert (ended.exit_code, summary(ended)) == (12, {"intentions": 3, "unknown": 1, "delivered": 2, "history_added": 2})
    assert arrivals(world) == [("turn-1", "1"), ("turn-2", "1"), ("turn-3", "1")]


def test_a_receiver_that_is_down_during_the_inquiry_decides_nothing_and_is_asked_again(world: World) -> None:
    intend(world)
    world.start_receiver("status-query")
    assert world.dispatch(*RECONCILE, halt_at="send.response").exit_code == 23
    assert world.receiver is not None
    world.receiver.stop()
    ended = world.dispatch(*RECONCILE)
    stays_unknown(world, ended)
    assert "Connect" in ended.stderr  # why it could not say
    world.start_receiver("status-query")
    succeeded(world.dispatch(*RECONCILE), intentions=1, delivered=1, history_added=1)
    assert inquiries(world) == [("turn-1#1?1", "unanswerable"), ("turn-1#1?2", "applied")]
    assert everything(world) == (1, 1, 1, 1)


# Reconcile: what the receiver decides.


@pytest.mark.parametrize("point", ["send.response", "receipt.append.before", "receipt.append.torn"])
def test_in_doubt_and_applied_brings_a_receipt_with_the_exact_result_and_sends_nothing(world: World, point: str) -> None:
    intend(world)
    world.start_receiver("status-query")
    assert world.dispatch(*RECONCILE, halt_at=point).exit_code == 23
    succeeded(world.dispatch(*RECONCILE), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (1, 1, 1, 1)
    assert inquiries(world) == [("turn-1#1?1", "applied")]
    assert queries(world) == [("turn-1", "applied")]
    (receipt,) = data(world, "receipts")
    (effect,) = data(world, "effects")
    assert (receipt["via"], receipt["attempt"], receipt["key"], receipt["status"]) == ("status_query", 1, "turn-1", 200)
    assert receipt["replayed"] is False
    assert receipt["fingerprint"] == effect["fingerprint"]
    assert payload(receipt["result"]) == EFFECT_1
    (history,) = data(world, "history")
    assert history == {"question": {"content": BODY.decode(), "encoding": "utf-8"}, "answer": receipt["result"]}
    succeeded(world.dispatch(*RECONCILE), intentions=1, already_delivered=1)
    assert queries(world) == [("turn-1", "applied")]  # what is settled is not asked about again


@pytest.mark.parametrize("point", ["attempt.append.written", "attempt.append.synced", "send.before"])
def test_in_doubt_and_not_applied_is_asked_about_before_it_is_sent(world: World, point: str) -> None:
    intend(world)
    world.start_receiver("status-query")
    assert world.dispatch(*RECONCILE, halt_at=point).exit_code == 23
    assert everything(world) == (0, 0, 0, 0)
    succeeded(world.dispatch(*RECONCILE), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (1, 1, 1, 1)
    log = [(each["type"], each["data"].get("attempt")) for each in world.records("arrivals")]
    assert log == [("query", None), ("arrival", "2"), ("answer", None)]
    assert [(each["type"], each["id"]) for each in world.records("attempts")] == [
        ("attempt", "turn-1#1"),
        ("inquiry", "turn-1#1?1"),
        ("attempt", "turn-1#2"),
    ]
    (receipt,) = data(world, "receipts")
    assert (receipt["via"], receipt["attempt"]) == ("response", 2)


@pytest.mark.parametrize("point", ["attempt.append.before", "attempt.append.torn"])
def test_an_attempt_that_was_never_recorded_whole_leaves_no_doubt(world: World, point: str) -> None:
    intend(world)
    world.start_receiver("status-query")
    assert world.dispatch(*RECONCILE, halt_at=point).exit_code == 23
    succeeded(world.dispatch(*RECONCILE), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (1, 1, 1, 1)
    assert queries(world) == []


@pytest.mark.parametrize(
    ("action", "options"),
    [
        (silent, SOON),
        (answering(response("500 Internal Server Error")), ()),
        (answering(response("302 Found", b"", "Location: /")), ()),
        (answering(response(body=b"<html>")), ()),
        (answering(b""), ()),
        (answering(response()[:-4]), ()),
    ],
    ids=["response_timeout", "server_error", "redirect", "unreadable_result", "connection_closed", "short_response"],
)
def test_every_indefinite_outcome_is_asked_about_before_it_is_sent_again(
    world: World, peers: Peers, action: Action, options: Sequence[str]
) -> None:
    intend(world)
    peer = peers(action, NOT_APPLIED, OK)
    assert world.dispatch(*RECONCILE, *options, receiver=peer.url).exit_code == 12
    succeeded(world.dispatch(*RECONCILE, receiver=peer.url), intentions=1, delivered=1, history_added=1)
    assert [each.line for each in peer.requests] == [
        "POST /operations HTTP/1.1",
        "GET /operations/turn-1 HTTP/1.1",
        "POST /operations HTTP/1.1",
    ]
    assert [each.body for each in peer.requests] == [BODY, b"", BODY]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (answering(response("409 Conflict")), 11),
        (answering(response("409 Conflict", b'{"error":"key_in_flight"}')), 10),
        (answering(response("422 Unprocessable Content")), 11),
        (answering(response("503 Service Unavailable")), 10),
        (answering(response("429 Too Many Requests")), 10),
        (answering(response("400 Bad Request")), 15),
    ],
)
def test_a_definite_refusal_is_no_doubt_and_nobody_is_asked(world: World, peers: Peers, action: Action, code: int) -> None:
    intend(world)
    peer = peers(action, OK)
    assert world.dispatch(*RECONCILE, receiver=peer.url).exit_code == code
    succeeded(world.dispatch(*RECONCILE, receiver=peer.url), intentions=1, delivered=1, history_added=1)
    assert [each.line.split()[0] for each in peer.requests] == ["POST", "POST"]
    assert inquiries(world) == []


def test_a_refused_connection_is_no_doubt(world: World) -> None:
    intend(world)
    assert world.dispatch(*RECONCILE).exit_code == 10
    world.start_receiver("unkeyed")  # which could not be asked
    succeeded(world.dispatch(*RECONCILE), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (1, 1, 1, 1)
    assert inquiries(world) == []


@pytest.mark.parametrize("refusal", ["down", "409 Conflict", "503 Service Unavailable"])
def test_a_later_definite_refusal_does_not_settle_an_earlier_doubt(world: World, peers: Peers, refusal: str) -> None:
    """Regression: doubt is about every attempt, not about the last one only."""
    intend(world)
    world.start_receiver("status-query")
    assert world.dispatch(*RECONCILE, halt_at="send.response").exit_code == 23
    elsewhere = peers(answering(response(refusal)))
    if refusal == "down":
        world.box.do(elsewhere.close())
    assert world.dispatch(receiver=elsewhere.url).exit_code in (10, 11)  # policy resend, as the operator was told
    assert attempts(world) == [("turn-1", 1), ("turn-1", 2)]
    succeeded(world.dispatch(*RECONCILE), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (1, 1, 1, 1)
    assert inquiries(world) == [("turn-1#1?1", "applied")]
    (receipt,) = data(world, "receipts")
    assert (receipt["via"], receipt["attempt"]) == ("status_query", 1)


def test_every_attempt_in_doubt_is_asked_about_and_one_that_is_settled_is_not(world: World, peers: Peers) -> None:
    intend(world)
    peer = peers(
        *(reset_after_request, NOT_APPLIED),  # attempt 1, and what became of it
        *(reset_after_request, NOT_APPLIED, answering(response("503 Service Unavailable"))),  # 2, what became of it, and 3
        OK,  # 4, without asking
    )
    codes = [world.dispatch(*RECONCILE, receiver=peer.url).exit_code for _time in range(4)]
    assert codes == [12, 12, 10, 0]
    assert [each.line.split()[0] for each in peer.requests] == ["POST", "GET", "POST", "GET", "POST", "POST"]
    assert inquiries(world) == [("turn-1#1?1", "not_applied"), ("turn-1#2?1", "not_applied")]
    assert [number for _key, number in attempts(world)] == [1, 2, 3, 4]


def test_two_doubts_that_were_left_by_resending_are_both_asked_about(world: World, peers: Peers) -> None:
    intend(world)
    peer = peers(reset_after_request, reset_after_request, NOT_APPLIED, NOT_APPLIED, OK)
    assert [world.dispatch(receiver=peer.url).exit_code for _time in range(2)] == [12, 12]
    succeeded(world.dispatch(*RECONCILE, receiver=peer.url), intentions=1, delivered=1, history_added=1)
    assert inquiries(world) == [("turn-1#1?1", "not_applied"), ("turn-1#2?1", "not_applied")]


def test_a_death_between_the_inquiry_and_what_follows_asks_again_and_sends_nothing_twice(world: World) -> None:
    intend(world)
    world.start_receiver("status-query")
    assert world.dispatch(*RECONCILE, halt_at="send.response").exit_code == 23
    for point in ("inquiry.before", "inquiry.append.torn", "inquiry.append.synced"):
        assert world.dispatch(*RECONCILE, halt_at=point).exit_code == 23
    succeeded(world.dispatch(*RECONCILE), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (1, 1, 1, 1)
    assert [answer for _id, answer in inquiries(world)] == ["applied", "applied"]


@pytest.mark.parametrize("key", ["a/b", "a%2Fb", "a?b#c", "100%", "..", ".", "a+b", 'q="1";x', "k" * 255])
def test_a_receiver_is_asked_about_exactly_the_key_that_was_sent(world: World, key: str) -> None:
    intend(world, key)
    world.start_receiver("status-query")
    assert world.dispatch(*RECONCILE, halt_at="send.response").exit_code == 23
    succeeded(world.dispatch(*RECONCILE), intentions=1, delivered=1, history_added=1)
    assert queries(world) == [(key, "applied")]
    assert everything(world) == (1, 1, 1, 1)


def test_a_result_that_was_told_is_kept_byte_for_byte(world: World, peers: Peers) -> None:
    intend(world)
    result = '{ "answer" : "grün\\u0041\\n€" }  '
    told = json.dumps({"applied": True, "status": 201, "result": result, "more": [1]}).encode()
    peer = peers(reset_after_request, answering(response(body=told)))
    assert world.dispatch(*RECONCILE, receiver=peer.url).exit_code == 12
    succeeded(world.dispatch(*RECONCILE, receiver=peer.url), intentions=1, delivered=1, history_added=1)
    (receipt,) = data(world, "receipts")
    assert (payload(receipt["result"]), receipt["status"]) == (result.encode(), 201)


# Mark before send.


@pytest.mark.parametrize("point", ["send.before", "receipt.append.synced"])
def test_what_is_marked_and_dies_before_the_send_is_lost_for_ever(world: World, point: str) -> None:
    intend(world)
    world.start_receiver()
    assert world.dispatch(*MARK, halt_at=point).exit_code == 23
    for policy in (MARK, (), RECONCILE, MARK):
        succeeded(world.dispatch(*policy), intentions=1, already_delivered=1)
        assert everything(world) == (0, 1, 0, 0)
    (receipt,) = data(world, "receipts")
    assert (receipt["via"], receipt["status"], receipt["result"], receipt["replayed"]) == ("mark", None, None, False)


def test_a_death_before_the_mark_loses_nothing(world: World) -> None:
    intend(world)
    world.start_receiver()
    assert world.dispatch(*MARK, halt_at="receipt.append.before").exit_code == 23
    succeeded(world.dispatch(*MARK), intentions=1, delivered=1)
    assert everything(world) == (1, 1, 0, 1)
    assert data(world, "receipts")[0]["attempt"] == 2


def test_a_mark_says_delivered_although_nobody_was_there(world: World) -> None:
    intend(world)
    succeeded(world.dispatch(*MARK), intentions=1, delivered=1)
    assert everything(world) == (0, 1, 0, 0)
    assert data(world, "attempts", "outcome") == []


def test_a_death_after_a_marked_send_sends_nothing_again(world: World) -> None:
    intend(world)
    world.start_receiver("unkeyed")
    assert world.dispatch(*MARK, halt_at="send.response").exit_code == 23
    succeeded(world.dispatch(*MARK), intentions=1, already_delivered=1)
    assert everything(world) == (1, 1, 0, 1)


# A key for each attempt, a body for each attempt.


def test_a_key_for_each_attempt_makes_each_attempt_an_operation_of_its_own(world: World) -> None:
    intend(world)
    world.start_receiver()
    assert world.dispatch(*KEY_PER_ATTEMPT, halt_at="send.response").exit_code == 23
    succeeded(world.dispatch(*KEY_PER_ATTEMPT), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (2, 1, 1, 2)
    assert attempts(world) == [("turn-1.1", 1), ("turn-1.2", 2)]
    assert arrivals(world) == [("turn-1.1", "1"), ("turn-1.2", "2")]
    (receipt,) = data(world, "receipts")
    assert (receipt["key"], receipt["attempt"], payload(receipt["result"])) == ("turn-1.2", 2, EFFECT_2)


TWO_MEMBERS = b'{"a":1,"b":2}'


@pytest.mark.parametrize(
    ("body", "first", "second"),
    [
        (TWO_MEMBERS, b'{"a":1,"b":2}', b'{"b":2,"a":1}'),
        (b'{ "a" : 1, "b" : [2, 3] }', b'{"a":1,"b":[2,3]}', b'{"b":[2,3],"a":1}'),
        (b'{"a":1,"b":2,"c":3}', b'{"a":1,"b":2,"c":3}', b'{"b":2,"c":3,"a":1}'),
    ],
)
def test_a_rebuilt_body_is_equal_and_other_bytes_and_a_false_conflict(
    world: World, body: bytes, first: bytes, second: bytes, peers: Peers
) -> None:
    intend(world, body=body)
    peer = peers(reset_after_request, answering(response("409 Conflict")))
    assert world.dispatch(*REBUILD, receiver=peer.url).exit_code == 12
    assert world.dispatch(*REBUILD, receiver=peer.url).exit_code == 11
    assert [each.body for each in peer.requests] == [first, second]
    assert json.loads(first) == json.loads(second) == json.loads(body)
    assert len({each["fingerprint"] for each in data(world, "attempts", "attempt")}) == 2


def test_a_rebuilt_body_ends_as_a_conflict_at_a_keyed_receiver_and_the_intention_keeps_its_bytes(world: World) -> None:
    intend(world, body=TWO_MEMBERS)
    world.start_receiver()
    assert world.dispatch(*REBUILD, halt_at="send.response").exit_code == 23
    ended = world.dispatch(*REBUILD)
    assert (ended.exit_code, summary(ended)) == (11, {"intentions": 1, "conflict": 1})
    assert everything(world) == (1, 0, 0, 2)
    # The original bytes are still there, and with them the result.
    succeeded(world.dispatch(), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (1, 1, 1, 3)
    (receipt,) = data(world, "receipts")
    assert (receipt["replayed"], receipt["attempt"]) == (True, 3)


@pytest.mark.parametrize(
    "body",
    [b"[1,2]", b"not json", b'"text"', b"", b"\xff\x00", b'{"a":1', b"null", b"{}", b'{"a":1}', b"[" * 200_000],
    ids=["array", "no JSON", "text", "empty", "no text", "cut", "null", "no member", "one member", "nested too deep"],
)
def test_a_body_that_cannot_be_rebuilt_otherwise_is_sent_as_it_is_both_times(world: World, peers: Peers, body: bytes) -> None:
    intend(world, body=body)
    peer = peers(reset_after_request, OK)
    assert world.dispatch(*REBUILD, receiver=peer.url).exit_code == 12
    succeeded(world.dispatch(*REBUILD, receiver=peer.url), intentions=1, delivered=1, history_added=1)
    assert [each.body for each in peer.requests] == [body, body]


# Another policy for the next pass.


@pytest.mark.parametrize("policy", [KEY_PER_ATTEMPT, REBUILD], ids=["key-per-attempt", "rebuild-body-per-attempt"])
@pytest.mark.parametrize("crash", ["send.response", "send.before"])
def test_reconciling_after_another_policy_asks_about_what_was_really_sent(
    world: World, policy: tuple[str, ...], crash: str
) -> None:
    """The attempt's own record says under which key it went, and which bytes: not what the policy of this pass would send."""
    intend(world, body=b'{ "a" : 1, "b" : 2 }')
    world.start_receiver("status-query")
    assert world.dispatch(*policy, halt_at=crash).exit_code == 23
    (sent,) = data(world, "attempts", "attempt")
    succeeded(world.dispatch(*RECONCILE), intentions=1, delivered=1, history_added=1)
    applied = crash == "send.response"
    assert queries(world) == [(sent["key"], "applied" if applied else "not_applied")]
    assert everything(world) == (1, 1, 1, 1)
    (receipt,) = data(world, "receipts")
    (effect,) = data(world, "effects")
    assert (receipt["key"], receipt["fingerprint"]) == (effect["key"], effect["fingerprint"])
    assert receipt["attempt"] == (1 if applied else 2)


@pytest.mark.parametrize("first", [(), RECONCILE])
@pytest.mark.parametrize("second", [(), RECONCILE])
def test_between_resend_and_reconcile_one_may_go_back_and_forth_at_a_keyed_receiver(
    world: World, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    intend(world)
    world.start_receiver()
    assert world.dispatch(*first, halt_at="send.response").exit_code == 23
    if second:
        stays_unknown(world, world.dispatch(*second))  # a keyed receiver has no status query
    succeeded(world.dispatch(), intentions=1, delivered=1, history_added=1)
    assert everything(world) == (1, 1, 1, 2)
    assert data(world, "receipts")[0]["replayed"] is True


def test_resending_after_a_key_for_each_attempt_is_what_cannot_be_made_safe(world: World) -> None:
    intend(world)
    world.start_receiver()
    assert world.dispatch(*KEY_PER_ATTEMPT, halt_at="send.response").exit_code == 23
    succeeded(world.dispatch(), intentions=1, delivered=1, history_added=1)
    assert arrivals(world) == [("turn-1.1", "1"), ("turn-1", "2")]
    assert everything(world) == (2, 1, 1, 2)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_receipt_ends_the_matter_under_every_policy(world: World, policy: str) -> None:
    intend(world)
    world.start_receiver("unkeyed")
    assert world.dispatch(halt_at="receipt.append.synced").exit_code == 23
    succeeded(world.dispatch("--policy", policy), intentions=1, already_delivered=1, history_added=1)
    assert everything(world) == (1, 1, 1, 1)


# Retry-After.

NOW = 1000.0
AT_1120 = "Thu, 01 Jan 1970 00:18:40 GMT"
UNAVAILABLE = "503 Service Unavailable"
WISHES: Sequence[tuple[str, str | None, float | None]] = (
    (UNAVAILABLE, "120", 1120),
    (UNAVAILABLE, "0", 1000),
    (UNAVAILABLE, "00120", 1120),
    (UNAVAILABLE, "999999999", 1000 + 999_999_999),
    (UNAVAILABLE, AT_1120, 1120),
    (UNAVAILABLE, "Thursday, 01-Jan-70 00:18:40 GMT", 1120),
    (UNAVAILABLE, "Thu Jan  1 00:18:40 1970", 1120),
    (UNAVAILABLE, "Thu, 01 Jan 1970 00:00:10 GMT", 10),
    (UNAVAILABLE, "Fri, 31 Dec 9999 23:59:59 GMT", 253402300799),
    (UNAVAILABLE, None, None),
    (UNAVAILABLE, "", None),
    (UNAVAILABLE, "-5", None),
    (UNAVAILABLE, "+5", None),
    (UNAVAILABLE, "1.5", None),
    (UNAVAILABLE, "1e3", None),
    (UNAVAILABLE, "soon", None),
    (UNAVAILABLE, "120, 240", None),
    (UNAVAILABLE, "Thu, 32 Jan 1970 00:18:40 GMT", None),
    (UNAVAILABLE, "1970-01-01T00:18:40Z", None),
    (UNAVAILABLE, "\u00b2", None),
    ("429 Too Many Requests", "120", 1120),
    ("507 Insufficient Storage", "120", 1120),
    ("409 Conflict", "120", 1120),
    ("409 Conflict", AT_1120, 1120),
    ("422 Unprocessable Content", "120", 1120),
    ("400 Bad Request", "120", 1120),
    ("500 Internal Server Error", "120", 1120),
    ("307 Temporary Redirect", "120", 1120),
    ("429 Too Many Requests", None, None),
    ("500 Internal Server Error", None, None),
)


def wishing(status: str, retry_after: str | None) -> Action:
    return answering(response(status, b"{}", *([] if retry_after is None else [f"Retry-After: {retry_after}"])))


def test_a_wish_to_wait_is_recorded_in_every_form_and_what_cannot_be_read_is_no_wish(world: World, peers: Peers) -> None:
    keys = [f"turn-{number:02}" for number in range(1, len(WISHES) + 1)]
    intend(world, *keys)
    peer = peers(*(wishing(status, retry_after) for status, retry_after, _not_before in WISHES))
    ended = world.dispatch("--now", "1000", receiver=peer.url)
    assert ended.exit_code == 12
    outcomes = data(world, "attempts", "outcome")
    told = [(*wish[:2], outcome["not_before"]) for wish, outcome in zip(WISHES, outcomes, strict=True)]
    assert told == list(WISHES)
    # The same pass again, a moment too early for all that asked to wait: only the others are sent.
    again = peers(OK)
    ended = world.dispatch("--now", "1000", receiver=again.url)
    waiting = [key for key, (_status, _after, when) in zip(keys, WISHES, strict=True) if when is not None and when > NOW]
    assert (ended.exit_code, summary(ended)["waiting"]) == (10, len(waiting))
    assert again.connections == summary(ended)["delivered"] == len(keys) - len(waiting)
    assert [line.split(": ")[1] for line in ended.stderr.splitlines()] == waiting
    assert "the receiver asked for no attempt before 1120" in ended.stderr


@pytest.mark.parametrize(
    "retry_after", ["Thu, 01 Jan 99999999999 00:00:00 GMT", "Thu, 01 Jan 1970 00:18:40 +999999999999999"], ids=["year", "zone"]
)
def test_a_date_beyond_all_numbers_is_no_wish_and_does_not_end_the_pass(world: World, peers: Peers, retry_after: str) -> None:
    intend(world, "turn-1", "turn-2")
    ended = world.dispatch(receiver=peers(wishing(UNAVAILABLE, retry_after), OK).url)
    assert "Traceback" not in ended.stderr
    assert (ended.exit_code, summary(ended)) == (10, {"intentions": 2, "unavailable": 1, "delivered": 1, "history_added": 1})
    assert data(world, "attempts", "outcome")[0]["not_before"] is None


@pytest.mark.parametrize("retry_after", ["120", AT_1120])
def test_nothing_is_sent_before_the_time_and_the_attempt_is_made_at_it(world: World, peers: Peers, retry_after: str) -> None:
    intend(world)
    assert world.dispatch("--now", "1000", receiver=peers(wishing(UNAVAILABLE, retry_after)).url).exit_code == 10
    before = state(world.outbox)
    world.start_receiver()
    for now in ("1000", "1119", "1119.999", "0", "-5"):  # the last two: a clock that went back
        ended = world.dispatch("--now", now)
        assert (ended.exit_code, summary(ended)) == (10, {"intentions": 1, "waiting": 1})
        assert ended.stderr == "dispatcher: turn-1: the receiver asked for no attempt before 1120\n"
    assert state(world.outbox) == before
    assert arrivals(world) == []
    succeeded(world.dispatch("--now", "1120"), intentions=1, delivered=1, history_added=1)
    assert arrivals(world) == [("turn-1", "2")]


def test_later_than_asked_is_in_time_and_so_is_the_real_clock(world: World, peers: Peers) -> None:
    world.start_receiver()
    for key, now in (("turn-1", ("--now", "1120.5")), ("turn-2", ())):
        intend(world, key)
        assert world.dispatch("--now", "1000", receiver=peers(wishing(UNAVAILABLE, "120")).url).exit_code == 10
        assert world.dispatch(*now).exit_code == 0


def test_the_other_intentions_go_on_while_one_waits(world: World, peers: Peers) -> None:
    intend(world, "turn-1", "turn-2", "turn-3")
    peer = peers(OK, wishing(UNAVAILABLE, "120"), OK)
    assert world.dispatch("--now", "1000", receiver=peer.url).exit_code == 10
    intend(world, "turn-4")
    ended = world.dispatch("--now", "1001", receiver=peer.url)
    told = {"intentions": 4, "already_delivered": 2, "waiting": 1, "delivered": 1, "history_added": 1}
    assert (ended.exit_code, summary(ended)) == (10, told)
    assert [each.header("Idempotency-Key") for each in peer.requests] == [[f"turn-{n}"] for n in (1, 2, 3, 4)]


def test_only_the_last_attempts_wish_counts(world: World, peers: Peers) -> None:
    intend(world)
    peer = peers(wishing(UNAVAILABLE, "120"), wishing(UNAVAILABLE, None), OK)
    for now, code in (("1000", 10), ("1120", 10), ("1000", 0)):
        assert world.dispatch("--now", now, receiver=peer.url).exit_code == code
    assert len(peer.requests) == 3


def test_a_doubt_that_is_to_wait_is_neither_asked_about_nor_sent_before_its_time(world: World, peers: Peers) -> None:
    intend(world)
    peer = peers(wishing("500 Internal Server Error", "120"), NOT_APPLIED, OK)
    assert world.dispatch(*RECONCILE, "--now", "1000", receiver=peer.url).exit_code == 12
    ended = world.dispatch(*RECONCILE, "--now", "1119", receiver=peer.url)
    assert (ended.exit_code, summary(ended), peer.connections) == (10, {"intentions": 1, "waiting": 1}, 1)
    assert world.dispatch(*RECONCILE, "--now", "1120", receiver=peer.url).exit_code == 0
    assert inquiries(world) == [("turn-1#1?1", "not_applied")]


def test_a_gone_receiver_and_a_wish_to_wait_are_told_apart(world: World, peers: Peers) -> None:
    intend(world, "turn-1", "turn-2")
    peer = peers(wishing(UNAVAILABLE, "120"), reset_after_request)
    assert world.dispatch("--now", "1000", receiver=peer.url).exit_code == 12
    ended = world.dispatch("--now", "1001")  # nobody listens there
    assert (ended.exit_code, summary(ended)) == (10, {"intentions": 2, "waiting": 1, "unavailable": 1})


@pytest.mark.parametrize("now", ["nan", "inf", "-inf", "noon", ""])
def test_a_time_that_is_none_is_bad_input_and_nothing_is_sent(world: World, peers: Peers, now: str) -> None:
    intend(world)
    peer = peers(wishing(UNAVAILABLE, "120"))
    before = state(world.outbox)
    ended = world.dispatch(f"--now={now}", receiver=peer.url)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--now" in ended.stderr
    assert peer.connections == 0
    assert state(world.outbox) == before


async def redirecting(connection: Connection) -> None:
    """A redirect of the status query to where it would be answered."""
    await connection.request()
    await connection.send(response("307 Temporary Redirect", b"", "Location: /operations/turn-1"))


def test_a_redirected_status_query_is_not_followed(world: World, peers: Peers) -> None:
    intend(world)
    peer = peers(reset_after_request, redirecting, NOT_APPLIED)
    assert world.dispatch(*RECONCILE, receiver=peer.url).exit_code == 12
    stays_unknown(world, world.dispatch(*RECONCILE, receiver=peer.url))
    assert peer.connections == 2
