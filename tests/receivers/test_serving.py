"""What a receiver answers over HTTP, and what it logs of it."""

from __future__ import annotations

import gzip
import json
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

from tests.receivers.conftest import Open
from tests.receivers.http import KEY, Headers, Receiver, Response, connect, fingerprint, head, read_response, records, result

MEBIBYTE = 1024 * 1024
KINDS = ("keyed", "unkeyed")
BODY = '{"question":"ü?"}'.encode()


def nothing_was_done(running: Receiver) -> None:
    assert running.effects() == {"effects": [], "count": 0}
    assert (running.directory / "effects.jsonl").read_bytes() == b""


# The keyed receiver: requests without an acceptable key.


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([], "key_missing"),
        ([(KEY, "")], "key_empty"),
        ([(KEY, "   ")], "key_empty"),
        ([(KEY, "k" * 256)], "key_overlong"),
        ([(KEY, "k"), (KEY, "k")], "key_repeated"),
        ([(KEY, "k"), (KEY.lower(), "other")], "key_repeated"),
        ([(KEY, ""), (KEY, "")], "key_repeated"),
        ([(KEY, "schlüssel".encode())], "key_not_ascii"),
        ([(KEY, b"caf\xe9")], "key_not_ascii"),
        ([(KEY, "two words")], "key_not_ascii"),
        ([(KEY, "tab\tbed")], "key_not_ascii"),
    ],
)
def test_a_request_without_one_acceptable_key_is_refused_with_the_reason(receiver: Open, headers: Headers, reason: str) -> None:
    running = receiver()
    response = running.request("POST", "/operations", headers, BODY)
    assert response.status == 400
    assert response.headers["content-type"].startswith("application/json")
    assert response.json["error"] == reason
    assert response.json["message"]
    assert response.replayed is None
    nothing_was_done(running)
    assert running.answers() == [("refused", reason, 400)]
    arrival = running.arrivals()[0]
    assert (arrival["key"], arrival["fingerprint"], arrival["body_bytes"]) == (None, fingerprint(BODY), len(BODY))


def test_a_key_beyond_what_a_header_may_hold_is_refused_and_does_nothing(receiver: Open) -> None:
    running = receiver()
    assert running.post(BODY, "k" * 10_000).status == 400
    nothing_was_done(running)


@pytest.mark.parametrize("key", ["k" * 255, "!", "~", 'a,b;c="d"#1', "k"])
def test_an_acceptable_key_is_kept_as_it_came(receiver: Open, key: str) -> None:
    running = receiver()
    assert running.post(BODY, key).status == 200
    assert running.post(BODY, key).replayed == "true"
    assert [record["id"] for record in records(running.directory, "effects")] == [key]
    assert [each["key"] for each in running.arrivals()] == [key, key]


def test_keys_differ_by_case_and_the_headers_name_does_not(receiver: Open) -> None:
    running = receiver()
    assert running.request("POST", "/operations", [("idempotency-KEY", "Key")], BODY).body == result(1)
    assert running.post(BODY, "key").body == result(2)
    assert running.post(BODY, "Key").body == result(1)


# The keyed receiver: replays and conflicts.


def test_a_first_request_is_applied_and_the_same_again_is_replayed_byte_for_byte(receiver: Open) -> None:
    running = receiver()
    first, second = running.post(BODY, "k"), running.post(BODY, "k")
    assert (first.status, first.body, first.replayed) == (200, result(1), None)
    assert (second.status, second.body, second.replayed) == (200, result(1), "true")
    assert second.headers["content-type"] == first.headers["content-type"]
    assert running.answers() == [("applied", None, 200), ("replayed", None, 200)]
    assert [record["data"] for record in records(running.directory, "effects")] == [
        {
            "arrival": "arrival-1",
            "fingerprint": fingerprint(BODY),
            "key": "k",
            "number": 1,
            "result": {"content": result(1).decode(), "encoding": "utf-8"},
            "status": 200,
        }
    ]


@pytest.mark.parametrize("other", [b"", BODY + b" ", BODY.upper(), b"\x00\xff"])
def test_another_body_under_a_known_key_is_a_conflict_and_changes_nothing(receiver: Open, other: bytes) -> None:
    running = receiver()
    running.post(BODY, "k")
    before = (running.directory / "effects.jsonl").read_bytes()
    response = running.post(other, "k")
    assert (response.status, response.json["error"], response.replayed) == (409, "body_differs", None)
    assert (running.directory / "effects.jsonl").read_bytes() == before
    assert running.post(BODY, "k").replayed == "true"
    assert running.answers()[1] == ("conflict", "body_differs", 409)


def test_the_route_and_other_headers_are_no_part_of_what_a_key_is_bound_to(receiver: Open) -> None:
    running = receiver()
    running.post(BODY, "k")
    headers = [(KEY, "k"), ("Content-Type", "text/plain"), ("Halt23-Attempt", "2")]
    assert running.request("POST", "/operations?again=1", headers, BODY).replayed == "true"
    assert running.arrivals()[1]["route"] == "/operations?again=1"
    assert [each["attempt"] for each in running.arrivals()] == [None, "2"]


def test_thirty_concurrent_duplicates_make_one_effect_and_twenty_nine_replays(receiver: Open) -> None:
    running = receiver()
    together = Barrier(30)

    def send(_number: int) -> Response:
        with closing(connect(running.port)) as connection:
            together.wait(20)
            connection.sendall(head("POST", "/operations", [(KEY, "k"), ("Content-Length", str(len(BODY)))]) + BODY)
            return read_response(connection)

    with ThreadPoolExecutor(30) as pool:
        responses = list(pool.map(send, range(30)))
    assert {(each.status, each.body) for each in responses} == {(200, result(1))}
    assert [each.replayed for each in responses].count("true") == 29
    assert running.effects()["count"] == 1
    assert running.answers() == [("applied", None, 200)] + [("replayed", None, 200)] * 29


def test_the_first_of_two_requests_whose_body_is_complete_is_the_one_that_is_applied(receiver: Open) -> None:
    running = receiver()
    with closing(connect(running.port)) as slow:
        slow.sendall(head("POST", "/operations", [(KEY, "k"), ("Content-Length", "2"), ("Expect", "100-continue")]))
        assert slow.recv(100).startswith(b"HTTP/1.1 100")
        slow.sendall(b"{")
        assert running.post(b"{}", "k").replayed is None
        slow.sendall(b"}")
        assert read_response(slow).replayed == "true"


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_replay_survives_the_receiver(receiver: Open, end: str) -> None:
    first = receiver()
    applied = first.post(BODY, "k")
    getattr(first.process, end)()
    second = receiver()
    again = second.post(BODY, "k")
    assert (again.status, again.body, again.replayed) == (200, applied.body, "true")
    assert second.post(b"other", "k").status == 409
    assert second.post(BODY, "new").body == result(2)
    assert second.effects()["count"] == 2


# The unkeyed receiver.


@pytest.mark.parametrize(
    "headers", [[], [(KEY, "k")], [(KEY, "k"), (KEY, "k")], [(KEY, "")], [(KEY, "k" * 300)], [(KEY, b"\xff")]]
)
def test_the_unkeyed_receiver_applies_every_arrival_whatever_key_comes(receiver: Open, headers: Headers) -> None:
    running = receiver("unkeyed")
    for number in (1, 2):
        response = running.request("POST", "/operations", headers, BODY)
        assert (response.status, response.body, response.replayed) == (200, result(number), None)
    effects = records(running.directory, "effects")
    assert [record["id"] for record in effects] == ["effect-1", "effect-2"]
    assert [record["data"]["key"] for record in effects] == [None, None]
    assert running.answers() == [("applied", None, 200)] * 2


def test_the_unkeyed_receiver_goes_on_counting_after_it_was_killed(receiver: Open) -> None:
    first = receiver("unkeyed")
    first.post(BODY, "k")
    first.process.kill()
    second = receiver("unkeyed")
    assert second.post(BODY, "k").body == result(2)
    assert [each["id"] for each in second.effects()["effects"]] == ["effect-1", "effect-2"]


# Bodies: the bound, and bodies that never end.


def chunked(body: bytes) -> bytes:
    size = 64 * 1024
    chunks = [body[begin : begin + size] for begin in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def post_chunked(running: Receiver, body: bytes) -> Response:
    with closing(connect(running.port)) as connection:
        connection.sendall(head("POST", "/operations", [(KEY, "k"), ("Transfer-Encoding", "chunked")]) + chunked(body))
        return read_response(connection)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("send", [lambda running, body: running.post(body, "k"), post_chunked], ids=["length", "chunked"])
def test_a_body_of_exactly_one_mebibyte_is_served_and_one_byte_more_is_refused(
    receiver: Open, kind: str, send: Callable[[Receiver, bytes], Response]
) -> None:
    running = receiver(kind)
    response = send(running, b"x" * (MEBIBYTE + 1))
    assert (response.status, response.json["error"]) == (413, "body_too_large")
    nothing_was_done(running)
    body = b"x" * MEBIBYTE
    response = send(running, body)
    assert (response.status, response.body) == (200, result(1))
    assert running.answers() == [("refused", "body_too_large", 413), ("applied", None, 200)]
    first, second = running.arrivals()
    assert (first["fingerprint"], first["body_bytes"]) == (None, None)
    assert (second["fingerprint"], second["body_bytes"]) == (fingerprint(body), MEBIBYTE)


def test_a_length_beyond_the_bound_is_refused_before_the_body_is_sent(receiver: Open) -> None:
    running = receiver()
    with closing(connect(running.port)) as connection:
        connection.sendall(head("POST", "/operations", [(KEY, "k"), ("Content-Length", str(10**15))]))
        assert read_response(connection).status == 413
    nothing_was_done(running)


def test_an_empty_body_is_a_body(receiver: Open) -> None:
    running = receiver()
    assert running.request("POST", "/operations", [(KEY, "k")]).status == 200
    assert running.post(b"", "k").replayed == "true"
    assert running.post(b"x", "k").status == 409
    assert running.arrivals()[0]["body_bytes"] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_hangs_up_in_the_middle_of_the_body_causes_no_effect(receiver: Open, kind: str, how: str) -> None:
    running = receiver(kind)
    with closing(connect(running.port)) as connection:
        headers = [(KEY, "k"), ("Content-Length", str(len(BODY))), ("Expect", "100-continue")]
        connection.sendall(head("POST", "/operations", headers))
        assert connection.recv(100).startswith(b"HTTP/1.1 100")  # it is being served
        connection.sendall(BODY[:-1])
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert running.post(BODY, "other").status == 200  # and the receiver goes on
    assert running.process.stop().exit_code == 0
    assert sorted(running.answers(), key=str) == [("applied", None, 200), ("refused", "body_incomplete", 400)]
    lost = next(each for each in running.arrivals() if each["fingerprint"] is None)
    assert (lost["method"], lost["key"], lost["body_bytes"]) == ("POST", "k", None)
    assert len(records(running.directory, "effects")) == 1


# Other routes and methods.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("GET", "/operations", (405, "method_not_allowed", "POST")),
        ("PUT", "/operations", (405, "method_not_allowed", "POST")),
        ("DELETE", "/operations", (405, "method_not_allowed", "POST")),
        ("OPTIONS", "/operations", (405, "method_not_allowed", "POST")),
        ("HEAD", "/operations", (405, "method_not_allowed", "POST")),
        ("POST", "/effects", (405, "method_not_allowed", "GET")),
        ("HEAD", "/effects", (405, "method_not_allowed", "GET")),
        ("GET", "/", (404, "not_found", None)),
        ("POST", "/operations/", (404, "not_found", None)),
        ("POST", "/Operations", (404, "not_found", None)),
        ("GET", "/%6eothing?x=1", (404, "not_found", None)),
        ("HEAD", "/nothing", (404, "not_found", None)),
    ],
)
def test_what_is_not_served_is_refused_logged_and_does_nothing(
    receiver: Open, kind: str, method: str, path: str, answer: tuple[int, str, str | None]
) -> None:
    status, reason, allow = answer
    running = receiver(kind)
    response = running.request(method, path, [(KEY, "k")], BODY)
    assert (response.status, response.headers.get("allow")) == (status, allow)
    if method == "HEAD":
        assert response.body == b""
    else:
        assert response.json["error"] == reason
    nothing_was_done(running)
    assert running.answers() == [("refused", reason, status)]
    arrival = running.arrivals()[0]
    assert (arrival["method"], arrival["key"], arrival["fingerprint"]) == (method, "k", None)


def test_bytes_that_are_no_http_do_no_harm(receiver: Open) -> None:
    running = receiver()
    for nonsense in (b"\x16\x03\x01\x00\xa5" * 20 + b"\r\n\r\n", b"POST\r\n\r\n", b"\x00"):
        with closing(connect(running.port)) as connection:
            connection.sendall(nonsense)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
    nothing_was_done(running)
    assert running.post(BODY, "k").status == 200


# What it keeps and tells.


@pytest.mark.parametrize("kind", KINDS)
def test_reading_the_effects_counts_them_and_changes_no_file(receiver: Open, kind: str) -> None:
    running = receiver(kind)
    for key in ("a", "b"):
        running.post(BODY, key)

    def files() -> dict[str, tuple[bytes, int]]:
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in running.directory.iterdir()}

    before = files()
    told = running.effects()
    names = ("a", "b") if kind == "keyed" else ("effect-1", "effect-2")
    keys = ("a", "b") if kind == "keyed" else (None, None)
    assert told["count"] == 2
    assert told["effects"] == [
        {"id": name, "key": key, "fingerprint": fingerprint(BODY), "number": number}
        for number, (name, key) in enumerate(zip(names, keys, strict=True), 1)
    ]
    response = running.request("GET", "/effects?again=1")
    assert response.json == told
    assert response.headers["content-type"] == "application/json"
    assert files() == before


def test_every_arrival_is_logged_with_its_answer_and_the_numbers_go_on_after_a_restart(receiver: Open) -> None:
    first = receiver()
    first.post(BODY, "k")
    first.post(b"other", "k")
    first.process.kill()
    second = receiver()
    second.post(BODY)
    second.post(BODY, "k")
    log = records(second.directory, "arrivals")
    numbers = [f"arrival-{number}" for number in (1, 2, 3, 4)]
    assert [(record["type"], record["id"]) for record in log] == [
        (kind, number) for number in numbers for kind in ("arrival", "answer")
    ]
    assert [(each["key"], each["fingerprint"]) for each in second.arrivals()] == [
        ("k", fingerprint(BODY)),
        ("k", fingerprint(b"other")),
        (None, fingerprint(BODY)),
        ("k", fingerprint(BODY)),
    ]
    assert second.answers() == [
        ("applied", None, 200),
        ("conflict", "body_differs", 409),
        ("refused", "key_missing", 400),
        ("replayed", None, 200),
    ]
    told = [record["data"] for record in log if record["type"] == "answer"]
    assert [each["effect"] for each in told] == ["k", None, None, "k"]
    assert told[0]["result_sha256"] == told[3]["result_sha256"] == fingerprint(result(1))


def test_many_requests_on_one_connection_are_many_arrivals(receiver: Open) -> None:
    running = receiver()
    request = head("POST", "/operations", [(KEY, "k"), ("Content-Length", str(len(BODY)))]) + BODY
    with closing(connect(running.port)) as connection:
        for replayed in (None, "true", "true"):
            connection.sendall(request)
            response = read_response(connection)
            assert (response.status, response.replayed) == (200, replayed)
    assert len(running.arrivals()) == 3


def test_the_log_holds_no_more_than_a_bounded_part_of_a_long_route(receiver: Open) -> None:
    running = receiver()
    assert running.post(BODY, "k", "/operations?" + "x" * 5000).status == 200
    assert len(running.arrivals()[0]["route"]) == 2000


def test_the_bytes_that_arrived_are_what_the_key_is_bound_to(receiver: Open) -> None:
    # A compressed body is fingerprinted as it came over the wire, not as what somebody made of it.
    running = receiver()
    body = gzip.compress(BODY, mtime=0)
    headers = [(KEY, "k"), ("Content-Encoding", "gzip")]
    assert running.request("POST", "/operations", headers, body).status == 200
    arrival = running.arrivals()[0]
    assert (arrival["fingerprint"], arrival["body_bytes"]) == (fingerprint(body), len(body))


def test_a_log_line_is_json_whatever_came(receiver: Open) -> None:
    running = receiver()
    headers: Headers = [(KEY, b"\xff\xfe"), ("Halt23-Attempt", b"\xff one")]
    assert running.request("POST", "/operations?\u00fc", headers, b"\xff\x00").status == 400
    for line in (running.directory / "arrivals.jsonl").read_bytes().splitlines():
        assert line.isascii()
        json.loads(line)
