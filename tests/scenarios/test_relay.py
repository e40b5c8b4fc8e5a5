"""The relay between a real sender and a real receiver: every fault at every place, and whatever else may happen around it."""

from __future__ import annotations

import asyncio
import http.client
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox import transport
from outbox.errors import BadInput
from outbox.outcome import Delivered, Outcome
from scenarios.engine.ports import Ports
from scenarios.wire import FAULTS, PLACES, parse, split_at
from tests.receivers.http import connect, head, read_response, records, result
from tests.support import Ended, ProcessBox, Running

BODY = b'{"question":"hello"}'
NOW = 1000.0
HELD_SECONDS = 0.5
NUMBERS = ("0", "1", "25", "100000")
PLACED = ("cut-request", "reset-request", "cut-response", "reset-response")
CASES = (*(f"{name}:{place}" for name in PLACED for place in (*PLACES, *NUMBERS)), *FAULTS, "none")


@pytest.fixture(scope="module")
def box() -> Iterator[ProcessBox]:
    with ProcessBox() as opened:
        yield opened


class Line:
    """A receiver, a relay in front of it, and a directory of their own."""

    def __init__(self, box: ProcessBox, root: Path) -> None:
        self.box, self.root = box, root
        self._ports = Ports()
        self.port = self._ports.of("receiver")
        self.url = f"http://127.0.0.1:{self.port}"
        self._started: list[Running] = []

    def close(self) -> None:
        for each in self._started:
            each.kill()
        self._ports.close()

    def receiver(self, kind: str = "keyed", halt_at: str | None = None) -> Running:
        arguments = [kind, "--dir", str(self.root / "receiver"), "--port", str(self.port)]
        self._started.append(self.box.start("receivers", arguments, {"HALT_AT": halt_at} if halt_at else {}))
        return self._started[-1]

    def relay_arguments(self, *faults: str) -> list[str]:
        chosen = [f"--fault={fault}" for fault in faults]
        return ["--dir", str(self.root / "relay"), "--upstream", self.url, *chosen]

    def relay(self, *faults: str) -> Running:
        self._started.append(self.box.start("scenarios.relay", self.relay_arguments(*faults)))
        return self._started[-1]

    def exchanges(self) -> list[dict[str, Any]]:
        return [{"id": record["id"], **record["data"]} for record in records(self.root / "relay", "exchanges")]

    def received(self, key: str) -> list[tuple[str, str | None]]:
        """Outcome and reason of every arrival under this key."""
        log = records(self.root / "receiver", "arrivals")
        mine = {each["id"] for each in log if each["type"] == "arrival" and each["data"]["key"] == key}
        answers = [each["data"] for each in log if each["type"] == "answer" and each["id"] in mine]
        return [(each["outcome"], each["reason"]) for each in answers]

    def effects(self) -> list[str]:
        return [record["id"] for record in records(self.root / "receiver", "effects")]


@pytest.fixture
def line(box: ProcessBox, tmp_path: Path) -> Iterator[Line]:
    opened = Line(box, tmp_path)
    yield opened
    opened.close()


async def post(url: str, key: str, timeout_seconds: float = 20.0) -> Outcome:
    """Send as the dispatcher sends."""
    limits = transport.Limits(timeout_seconds=timeout_seconds)
    async with transport.new_session(limits) as session:
        target = f"{url}/operations"
        return await transport.post(session, target, key=key, body=BODY, attempt=1, limits=limits, now=NOW)


def send(relay: Running, *keys: str) -> list[Outcome]:
    """Send one after the other through the relay."""

    async def all_of_them() -> list[Outcome]:
        return [await post(relay.url, key) for key in keys]

    return asyncio.run(all_of_them())


def short(outcome: Outcome) -> tuple[str, int | None]:
    """Delivered or the reason, and the status."""
    return ("delivered" if isinstance(outcome, Delivered) else outcome.reason), outcome.status


# Every fault at every place, each on a connection of its own, through one relay to one receiver.


class Seen(NamedTuple):
    """What became of one exchange, from three sides; and once more when it was sent again without a fault."""

    received: list[tuple[str, str | None]]
    outcome: Outcome
    exchange: Mapping[str, Any]
    again: Outcome


@pytest.fixture(scope="module")
def seen(box: ProcessBox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Seen]]:
    line = Line(box, tmp_path_factory.mktemp("relay"))
    receiver = line.receiver()
    faults = [f"{number}:{case}" for number, case in enumerate(CASES, 1) if case != "none"]
    relay = line.relay(*faults)

    async def through() -> list[Outcome]:
        return [await post(relay.url, case, HELD_SECONDS if case == "hold-response" else 20.0) for case in CASES]

    outcomes = asyncio.run(through())
    received = [line.received(case) for case in CASES]
    again = send(receiver, *CASES)
    ended = relay.stop()
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "")
    exchanges = {each["id"]: each for each in line.exchanges()}
    assert list(exchanges) == [f"connection-{number}" for number in range(1, len(CASES) + 1)]
    numbers = enumerate(zip(CASES, received, outcomes, again, strict=True), 1)
    yield {
        case: Seen(arrived, outcome, exchanges[f"connection-{number}"], repeated)
        for number, (case, arrived, outcome, repeated) in numbers
    }
    line.close()


NOT_WHOLE: list[tuple[str, str | None]] = [("refused", "body_incomplete")]
APPLIED: list[tuple[str, str | None]] = [("applied", None)]
NOTHING: list[tuple[str, str | None]] = []
REQUEST_PLACES = {
    **{place: NOTHING for place in ("start", "0", "1", "25", "start-line")},
    **{place: NOT_WHOLE for place in ("headers", "body-middle")},
    **{place: APPLIED for place in ("end", "100000")},
}


def forwarded_bytes(place: str, whole: int, start_line: int, headers: int) -> int:
    named = {"start": 0, "start-line": start_line, "headers": headers, "body-middle": (headers + whole) // 2, "end": whole}
    return named[place] if place in named else min(int(place), whole)


START_LINE = len(b"POST /operations HTTP/1.1\r\n")


@pytest.mark.parametrize("place", REQUEST_PLACES)
@pytest.mark.parametrize(("how", "reason"), [("cut", "connection_closed"), ("reset", "connection_reset")])
def test_a_request_that_is_broken_off_arrives_up_to_its_place_and_gets_no_answer(
    seen: Mapping[str, Seen], how: str, reason: str, place: str
) -> None:
    case = f"{how}-request:{place}"
    it = seen[case]
    assert it.received == REQUEST_PLACES[place]
    assert short(it.outcome) == (reason, None)
    whole = it.exchange["request_bytes"]
    assert it.exchange["fault"] == case
    assert it.exchange["request_forwarded_bytes"] == forwarded_bytes(place, whole, START_LINE, whole - len(BODY))
    # To a connection that ended in the middle of a request the receiver gives no answer; any other one ends at the relay.
    assert (it.exchange["response_bytes"] > 0) is (it.received == APPLIED)
    assert it.exchange["response_forwarded_bytes"] == 0
    assert isinstance(it.again, Delivered)
    assert it.again.replayed is (it.received == APPLIED)


RESPONSE_START_LINE = len(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("place", "told"),
    [
        *((place, (None, None)) for place in ("start", "0", "1", "25", "start-line")),
        *((place, ("short_response", 200)) for place in ("headers", "body-middle")),
        *((place, ("delivered", 200)) for place in ("end", "100000")),
    ],
)
@pytest.mark.parametrize(("how", "reason"), [("cut", "connection_closed"), ("reset", "connection_reset")])
def test_a_response_that_is_broken_off_leaves_an_effect_and_a_sender_that_cannot_know(
    seen: Mapping[str, Seen], how: str, reason: str, place: str, told: tuple[str | None, int | None]
) -> None:
    it = seen[f"{how}-response:{place}"]
    assert it.received == APPLIED
    assert short(it.outcome) == (told[0] or reason, told[1])
    assert it.exchange["request_bytes"] == it.exchange["request_forwarded_bytes"]
    whole = it.exchange["response_bytes"]
    assert isinstance(it.again, Delivered)
    headers = whole - len(it.again.result)
    assert it.exchange["response_forwarded_bytes"] == forwarded_bytes(place, whole, RESPONSE_START_LINE, headers)
    assert it.again.replayed is True


@pytest.mark.parametrize(
    ("case", "received", "told", "times", "passes_on"),
    [
        ("none", APPLIED, ("delivered", 200), 1, True),
        ("hold-response", APPLIED, ("response_timeout", None), 1, False),
        ("duplicate-request", [*APPLIED, ("replayed", None)], ("delivered", 200), 1, True),
        ("redirect", [], ("redirect", 307), 0, False),
        ("unreadable-success", APPLIED, ("unreadable_result", 200), 1, False),
        ("oversized-success", APPLIED, ("oversized_response", 200), 1, False),
        ("retry-after-seconds", [], ("unavailable", 503), 0, False),
        ("retry-after-date", [], ("unavailable", 503), 0, False),
    ],
)
def test_a_fault_without_a_place_does_what_its_name_says(
    seen: Mapping[str, Seen],
    *,
    case: str,
    received: list[tuple[str, str | None]],
    told: tuple[str, int | None],
    times: int,
    passes_on: bool,
) -> None:
    it = seen[case]
    assert it.received == received
    assert short(it.outcome) == told
    assert it.exchange["fault"] == case
    assert it.exchange["request_forwarded_bytes"] == it.exchange["request_bytes"] * times
    assert (it.exchange["response_bytes"] > 0) is (times > 0)
    assert (it.exchange["response_forwarded_bytes"] == it.exchange["response_bytes"] > 0) is passes_on
    assert isinstance(it.again, Delivered)
    assert it.again.replayed is bool(received)


def test_every_fault_is_tried_above() -> None:
    assert {*FAULTS, "none"} == {case for case in CASES if ":" not in case}


def test_a_duplicate_is_answered_with_the_second_response(seen: Mapping[str, Seen]) -> None:
    outcome = seen["duplicate-request"].outcome
    assert isinstance(outcome, Delivered)
    assert outcome.replayed is True


@pytest.mark.parametrize("form", ["retry-after-seconds", "retry-after-date"])
def test_both_forms_of_a_wish_to_wait_mean_the_same_second(seen: Mapping[str, Seen], form: str) -> None:
    outcome = seen[form].outcome
    assert not isinstance(outcome, Delivered)
    assert outcome.not_before == 1120


def test_what_was_answered_in_place_of_the_receiver_is_counted_as_forwarded(seen: Mapping[str, Seen]) -> None:
    assert seen["oversized-success"].exchange["response_forwarded_bytes"] > 1024 * 1024
    assert 0 < seen["redirect"].exchange["response_forwarded_bytes"] < 1000


# Several exchanges, and the journal.


def test_a_fault_hits_the_connection_that_it_names_and_no_other(line: Line) -> None:
    line.receiver()
    relay = line.relay("2:cut-response:start", "4:redirect", "9:hold-response")
    outcomes = send(relay, "a", "b", "b", "c", "c")
    assert [short(each)[0] for each in outcomes] == ["delivered", "connection_closed", "delivered", "redirect", "delivered"]
    assert [(each["id"], each["fault"]) for each in line.exchanges()] == [
        ("connection-1", "none"),
        ("connection-2", "cut-response:start"),
        ("connection-3", "none"),
        ("connection-4", "redirect"),
        ("connection-5", "none"),
    ]
    assert line.effects() == ["a", "b", "c"]


def test_a_request_twice_at_an_unkeyed_receiver_is_applied_twice(line: Line) -> None:
    line.receiver("unkeyed")
    (outcome,) = send(line.relay("1:duplicate-request"), "k")
    assert isinstance(outcome, Delivered)
    assert outcome.result == result(2)
    assert line.effects() == ["effect-1", "effect-2"]


def test_it_goes_on_counting_connections_after_it_was_stopped(line: Line) -> None:
    line.receiver()
    for number in (1, 2):
        relay = line.relay("2:redirect")
        send(relay, f"k-{number}")
        assert relay.stop().exit_code == 0
    assert [(each["id"], each["fault"]) for each in line.exchanges()] == [
        ("connection-1", "none"),
        ("connection-2", "redirect"),
    ]


# Sides that go away.


def test_a_receiver_that_is_down_is_recorded_as_one_that_gave_nothing(line: Line) -> None:
    relay = line.relay()
    (outcome,) = send(relay, "k")
    assert short(outcome) in (("connection_closed", None), ("connection_reset", None))
    line.receiver()
    (outcome,) = send(relay, "k")
    assert isinstance(outcome, Delivered)
    ended = relay.stop()
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert line.effects() == ["k"]
    lost, through = line.exchanges()
    assert (lost["id"], lost["response_bytes"], lost["response_forwarded_bytes"]) == ("connection-1", 0, 0)
    assert lost["request_bytes"] > 0
    assert (through["id"], through["response_bytes"] > 0) == ("connection-2", True)


def test_a_receiver_that_dies_in_the_middle_leaves_a_sender_that_cannot_know(line: Line) -> None:
    receiver = line.receiver(halt_at="effect.append.synced")
    relay = line.relay()
    (outcome,) = send(relay, "k")
    assert receiver.wait().exit_code == 23
    assert short(outcome) == ("connection_closed", None)
    (exchange,) = line.exchanges()
    assert exchange["request_forwarded_bytes"] == exchange["request_bytes"] > 0
    assert (exchange["response_bytes"], exchange["response_forwarded_bytes"]) == (0, 0)
    line.receiver()
    (outcome,) = send(relay, "k")
    assert isinstance(outcome, Delivered)
    assert outcome.replayed is True
    assert relay.stop().stderr == ""


def hang_up(relay: Running, content: bytes, how: str) -> None:
    """Send so much and end the connection; return when the relay has noticed."""
    with closing(connect(relay.port)) as connection:
        connection.sendall(content)
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""  # the relay ends it as well


HEADERS = [("Idempotency-Key", "lost"), ("Content-Length", str(len(BODY))), ("Connection", "close")]
REQUEST = head("POST", "/operations", HEADERS) + BODY


@pytest.mark.parametrize("content", [b"", REQUEST[:1], REQUEST[:40], REQUEST[: -len(BODY)], REQUEST[:-1]])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_sender_that_hangs_up_early_disturbs_nobody(line: Line, how: str, content: bytes) -> None:
    line.receiver()
    relay = line.relay()
    hang_up(relay, content, how)
    (outcome,) = send(relay, "k")
    assert isinstance(outcome, Delivered)
    ended = relay.stop()
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert line.received("lost") == []
    assert line.effects() == ["k"]
    assert line.exchanges()[-1]["id"] == "connection-2"


def test_connections_are_counted_on_behind_one_that_came_to_nothing_also_by_the_next_relay(line: Line) -> None:
    line.receiver()
    first = line.relay()
    hang_up(first, b"", "close")
    send(first, "a")
    assert first.stop().stderr == ""
    second = line.relay()
    outcomes = send(second, "bb", "ccc")
    assert second.stop().stderr == ""
    assert [short(each)[0] for each in outcomes] == ["delivered", "delivered"]
    whole = [each for each in line.exchanges() if each["response_bytes"]]
    assert len({each["id"] for each in whole}) == len(whole) == 3
    assert line.effects() == ["a", "bb", "ccc"]


def test_bytes_that_are_no_request_reach_the_receiver_and_end_in_order(line: Line) -> None:
    line.receiver()
    relay = line.relay()
    with closing(connect(relay.port)) as connection:
        connection.sendall(b"NONSENSE\r\n\r\n")
        assert read_response(connection).status == 400
    assert relay.stop().stderr == ""
    assert line.effects() == []


@pytest.mark.parametrize("fault", ["1:hold-response", "1:redirect"])
def test_it_ends_when_asked_also_while_a_sender_stays(line: Line, fault: str) -> None:
    line.receiver()
    relay = line.relay(fault)
    with closing(connect(relay.port)) as idle, closing(connect(relay.port)) as second:
        idle.sendall(REQUEST if fault == "1:hold-response" else REQUEST[:10])
        second.sendall(REQUEST.replace(b"lost", b"held"))
        assert read_response(second).status == 200
        ended = relay.stop()
    assert (ended.exit_code, ended.signal, ended.stderr) == (0, None, "")


def test_a_relay_that_ended_refuses_connections(line: Line) -> None:
    relay = line.relay()
    assert relay.stop().exit_code == 0
    with pytest.raises(ConnectionRefusedError):
        connect(relay.port)


# What is refused at the start.


def refused(line: Line, *arguments: str) -> Ended:
    running = line.box.launch("scenarios.relay", arguments)
    ready = line.box.do(running._child.wait_ready(30))
    ended = running.wait() if ready is None else running.kill()
    assert ready is None, "it serves"
    assert "Traceback" not in ended.stderr
    return ended


BAD_NAMES = ["1", "1:", "1:nonsense", "1:nonsense:end", "1::end", "1:Redirect", "1: redirect", "1:cut", "1:none"]
BAD_CONNECTIONS = ["", "x", ":redirect", "0:redirect", "-1:redirect", "1.5:redirect", "redirect", "\u00b2:redirect"]
BAD_PLACES = ["", ":", ":middle", ":-1", ":1.5", ":End", ":headers:1", ":\u00b2", ": 1", ":body"]


@pytest.mark.parametrize("text", BAD_NAMES)
def test_a_fault_that_there_is_not_is_bad_input_that_names_all_faults(line: Line, text: str) -> None:
    ended = refused(line, *line.relay_arguments(text))
    assert ended.exit_code == 2
    assert f"relay: --fault {text!r}: " in ended.stderr
    for name in (*FAULTS, *PLACED):
        assert name in ended.stderr
    assert list(line.root.iterdir()) == []


@pytest.mark.parametrize("text", BAD_CONNECTIONS)
def test_a_connection_that_there_is_not_is_bad_input_that_shows_the_form(line: Line, text: str) -> None:
    ended = refused(line, *line.relay_arguments(text))
    assert ended.exit_code == 2
    assert f"relay: --fault {text!r}: expected CONNECTION:NAME[:PLACE] with a connection from 1" in ended.stderr


@pytest.mark.parametrize("place", BAD_PLACES)
@pytest.mark.parametrize("name", ["cut-request", "reset-response"])
def test_a_place_that_there_is_not_is_bad_input_that_names_all_places(line: Line, name: str, place: str) -> None:
    text = f"1:{name}{place}"
    ended = refused(line, *line.relay_arguments(text))
    assert ended.exit_code == 2
    assert f"relay: --fault {text!r}: {name} needs a place: a number of bytes, or {', '.join(PLACES)}" in ended.stderr


def test_a_place_where_none_belongs_is_told_as_that(line: Line) -> None:
    ended = refused(line, *line.relay_arguments("1:redirect:end"))
    assert ended.exit_code == 2
    assert "no fault 'redirect'" not in ended.stderr
    assert "place" in ended.stderr.split("1:redirect:end")[1]


@pytest.mark.parametrize("upstream", ["http://example.org:80", "https://127.0.0.1:80", "127.0.0.1:80", ""])
def test_a_receiver_elsewhere_is_bad_input(line: Line, upstream: str) -> None:
    ended = refused(line, "--dir", str(line.root / "relay"), "--upstream", upstream)
    assert ended.exit_code == 2
    assert "is not the address of a receiver on this machine" in ended.stderr


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_is_none_is_bad_input(line: Line, port: str) -> None:
    ended = refused(line, *line.relay_arguments(), "--port", port)
    assert (ended.exit_code, ended.stderr) == (2, f"relay: --port {port}: expected 0 to 65535\n")


def test_a_second_relay_on_the_directory_is_refused_and_disturbs_nothing(line: Line) -> None:
    line.receiver()
    relay = line.relay()
    send(relay, "a")
    before = (line.root / "relay" / "exchanges.jsonl").read_bytes()
    ended = refused(line, *line.relay_arguments())
    assert ended.exit_code == 13
    assert "another process holds its lock" in ended.stderr
    assert (line.root / "relay" / "exchanges.jsonl").read_bytes() == before
    (outcome,) = send(relay, "b")
    assert isinstance(outcome, Delivered)


def test_a_damaged_journal_and_a_taken_port_are_told_as_by_the_receivers(line: Line) -> None:
    line.receiver()
    relay = line.relay()
    send(relay, "a")
    ended = refused(line, "--dir", str(line.root / "other"), "--upstream", line.url, "--port", str(relay.port))
    assert ended.exit_code == 16
    relay.stop()
    path = line.root / "relay" / "exchanges.jsonl"
    path.write_bytes(path.read_bytes().replace(b"none", b"nonE"))
    assert refused(line, *line.relay_arguments()).exit_code == 14


# Places, as functions.

LINES: Sequence[bytes] = (b"POST /operations HTTP/1.1", b"HTTP/1.1 200 OK", b"GET / HTTP/1.1")
FIELD = st.tuples(st.from_regex(rb"[A-Za-z-]{1,12}", fullmatch=True), st.from_regex(rb"[ -~]{0,30}", fullmatch=True))


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, int, int]:
    """A message, and the lengths of its start line and of its headers."""
    start = draw(st.sampled_from(LINES)) + b"\r\n"
    fields = b"".join(b"%b: %b\r\n" % field for field in draw(st.lists(FIELD, max_size=4)))
    headers = start + fields + b"\r\n"
    return headers + draw(st.binary(max_size=200)), len(start), len(headers)


@given(messages())
def test_named_places_are_in_their_order_and_exactly_where_they_say(message: tuple[bytes, int, int]) -> None:
    content, start_line, headers = message
    splits = [split_at(content, place) for place in PLACES]
    assert splits == sorted(splits)
    assert (splits[0], splits[1], splits[2], splits[-1]) == (0, start_line, headers, len(content))
    body = len(content) - headers
    assert splits[3] - headers == body // 2


@given(messages(), st.integers(min_value=0, max_value=10**8))
def test_a_number_is_that_many_bytes_but_never_beyond_the_end(message: tuple[bytes, int, int], number: int) -> None:
    content = message[0]
    assert split_at(content, str(number)) == min(number, len(content))


@given(st.integers(min_value=1, max_value=10**6), st.sampled_from(PLACED), st.sampled_from((*PLACES, *NUMBERS)))
def test_a_placed_fault_reads_back_as_it_was_written(connection: int, name: str, place: str) -> None:
    number, fault = parse(f"{connection}:{name}:{place}")
    how, side = name.split("-")
    assert (number, fault.name, fault.side, fault.place) == (connection, f"{name}:{place}", side, place)
    assert (fault.reset, fault.hold, fault.times, fault.answer) == (how == "reset", False, 1, None)


@given(st.text(max_size=30) | st.from_regex(r"[0-9\u00b2\u0663]{1,2}:[a-z-]{1,20}(:[a-z0-9\u00b2-]{0,8})?", fullmatch=True))
def test_any_other_text_is_bad_input_and_nothing_worse(text: str) -> None:
    try:
        number, fault = parse(text)
    except BadInput as error:
        assert repr(text) in str(error)
    else:
        assert number >= 1
        assert fault.name == text.partition(":")[2]
        assert fault.name.isascii()


def test_a_number_of_any_length_is_bad_input_or_a_number() -> None:
    for text in ("9" * 5000 + ":redirect", "1:cut-request:" + "9" * 5000):
        try:
            _number, fault = parse(text)
        except BadInput:
            continue
        assert fault.place is None or split_at(b"abc", fault.place) == 3


def test_http_client_agrees_on_the_answers_that_the_relay_makes_up() -> None:
    for name in ("redirect", "unreadable-success", "oversized-success", "retry-after-seconds", "retry-after-date"):
        answer = FAULTS[name].answer
        assert answer is not None
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * 1024 * 1024)
            theirs.settimeout(20)
            head_bytes = answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
            theirs.sendall(head_bytes)
            with closing(http.client.HTTPResponse(ours)) as response:
                response.begin()
                assert response.length == len(answer) - len(head_bytes)
                assert response.getheader("Connection") == "close"


def ask(connection: http.client.HTTPConnection, key: str) -> bytes:
    connection.request("POST", "/operations", BODY, {"Idempotency-Key": key})
    return connection.getresponse().read()


def test_a_sender_that_keeps_its_connection_is_served_on_it_and_each_exchange_has_its_number(
    box: ProcessBox, tmp_path: Path
) -> None:
    with closing(Line(box, tmp_path)) as line:
        line.receiver()
        relay = line.relay("2:cut-response:headers")
        with closing(http.client.HTTPConnection("127.0.0.1", relay.port, timeout=10)) as kept:
            first = ask(kept, "first")
            address = kept.sock.getsockname()
            with pytest.raises(http.client.IncompleteRead):
                ask(kept, "second")
        assert (b'"answer"' in first, address[0]) == (True, "127.0.0.1")
    assert [(each["id"], each["fault"]) for each in line.exchanges()] == [
        ("connection-1", "none"),
        ("connection-2", "cut-response:headers"),
    ]


@pytest.mark.parametrize("how", ["cut", "reset"])
def test_a_response_that_is_broken_at_its_end_is_whole_and_its_connection_ends_where_the_next_request_begins(
    box: ProcessBox, tmp_path: Path, how: str
) -> None:
    with closing(Line(box, tmp_path)) as line:
        line.receiver()
        relay = line.relay(f"1:{how}-response:end")
        with closing(http.client.HTTPConnection("127.0.0.1", relay.port, timeout=10)) as kept:
            assert b'"answer"' in ask(kept, "first")
            with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
                ask(kept, "second")
        assert [each["id"] for each in line.exchanges()] == ["connection-1"]
