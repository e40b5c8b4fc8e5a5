"""What the battery is made of, each by itself: requests and responses as bytes, pointers, places in strace's log, the table."""

import asyncio
from pathlib import Path

import pytest

from scenarios.targets.battery import BATTERY
from scenarios.targets.battery_model import DRAFT, STUDY
from scenarios.targets.model import Effects, FailOnce, Operation, Policy, Receiver
from scenarios.targets.receiver_check import choose
from scenarios.targets.receiver_effects import pointed
from scenarios.targets.receiver_http import Address, Exchange, Request, exchange, received
from scenarios.targets.receiver_strace import handling
from scenarios.targets.receiver_trial import with_key
from scenarios.targets.verdicts import SEVERITIES

POST = Request("POST", "/operations", (("Idempotency-Key", "a"), ("Idempotency-Key", "ключ")), b"{}")
LARGE = "ValueError: the response is larger than 1048576 bytes"
EFFECTS = Effects(url="/effects", pointer="/count")


def test_a_request_goes_out_as_it_is_meant() -> None:
    encoded = POST.encoded("127.0.0.1:80").decode()

    assert encoded.startswith("POST /operations HTTP/1.1\r\nHost: 127.0.0.1:80\r\n")
    assert "\r\nIdempotency-Key: a\r\nIdempotency-Key: ключ\r\n" in encoded
    assert encoded.endswith("Content-Length: 2\r\nConnection: close\r\n\r\n{}")


@pytest.mark.parametrize(
    ("message", "status", "body", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi", None),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n", 201, b"", None),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, b"until the end", None),
        (b"HTTP/1.1 204 Nothing\r\n\r\n", 204, b"", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", 200, b"abcd", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", None, b"", "the connection ended before a whole response"),
        (b"", None, b"", "the connection ended before a whole response"),
        (b"SSH-2.0-x\r\n\r\n", None, b"", "ValueError: this is no HTTP response: 'SSH-2.0-x'"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
            None,
            b"",
            LARGE,
        ),
        (None, None, b"", "it could not be sent"),
    ],
)
async def test_what_comes_back_is_read_or_told(
    message: bytes | None, status: int | None, body: bytes, error: str | None
) -> None:
    found = await received(POST, message, 0.0)

    assert (found.status, found.body, found.error) == (status, body, error)


async def test_nobody_there_is_told_and_no_error() -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    closed = await exchange(Address("127.0.0.1", port), POST)
    server.close()
    await server.wait_closed()
    refused = await exchange(Address("127.0.0.1", port), POST)

    assert (refused.status, refused.error) == (None, "the connection was refused")
    assert closed.broken
    assert refused.broken


@pytest.mark.parametrize(
    ("status", "headers", "again"),
    [(409, (), True), (423, (), True), (422, (), False), (403, (("Retry-After", "1"),), True), (503, (), False)],
)
def test_who_is_refused_for_now_knows_it(status: int, headers: tuple[tuple[str, str], ...], again: bool) -> None:
    assert Exchange(POST, status, b"", None, 0.0, headers).come_again is again


@pytest.mark.parametrize(("pointer", "value"), [("", {"a": [1, {"b/c": 5}]}), ("/a", [1, {"b/c": 5}]), ("/a/1/b~1c", 5)])
def test_a_pointer_names_a_place(pointer: str, value: object) -> None:
    assert pointed({"a": [1, {"b/c": 5}]}, pointer) == value


def test_a_pointer_to_nothing_says_where_it_ends() -> None:
    with pytest.raises(LookupError, match="there is no '2'"):
        pointed({"a": [1, 2]}, "/a/2")


def test_a_key_in_the_body_stands_where_the_pointer_says() -> None:
    assert with_key(b'{"a": 1}', "/meta/key", ["k"]) == b'{"a": 1, "meta": {"key": "k"}}'
    assert with_key(b'{"a": 1, "key": "k"}', "/key", []) == b'{"a": 1}'


def test_places_are_calls_that_change_something_counted_in_each_thread() -> None:
    log = "\n".join(
        (
            '7 openat(AT_FDCWD</case>, "app.db-journal", O_RDWR|O_CREAT, 0644) = 5</case/app.db-journal>',
            '7 openat(AT_FDCWD</case>, "/etc/hosts", O_RDONLY) = 6</etc/hosts>',
            '7 write(9<anon_inode:[eventfd]>, "\\1", 8) = 8',
            '8 write(5</case/app.db-journal>, "x"..., 512) = 512',
            '8 write(5</case/app.db-journal>, "x"..., 512 <unfinished ...>',
            "8 <... write resumed>) = 512",
            '8 write(2<pipe:[33]>, "log", 3) = 3',
            "8 fdatasync(5</case/app.db-journal>) = 0",
            '7 sendto(8<TCP:[127.0.0.1:8000->127.0.0.1:9]>, "HTTP"..., 90, 0, NULL, 0) = 90',
            '7 sendto(9<TCPv6:[[::1]:9->[::1]:8000]>, "SET"..., 90, 0, NULL, 0) = 90',
            '7 sendto(8<UNIX-STREAM:[1->2]>, "x", 1, 0, NULL, 0) = 1',
            '7 unlink("/case/app.db-journal") = 0',
            "--- SIGCHLD ---",
            '9 openat(AT_FDCWD</case>, "keys", O_RDWR|O_CREAT, 0644) = 6</case/keys>',
            '9 sendto(8<TCP:[127.0.0.1:8000->127.0.0.1:9]>, "HTTP"..., 90, 0, NULL, 0) = 90',
            "8 fdatasync(5</case/app.db-journal>) = 0",
            "7 fdatasync(5</case/app.db-journal>) = 0",
        )
    )

    found = handling(log, Path("/case"), 8000, threads=(7, 8))

    assert found.shadowed == 1
    assert [(str(each), each.what) for each in found.places] == [
        ("openat#1", "app.db-journal"),
        ("write#1 of app.db-journal", "app.db-journal"),
        ("write#2", "app.db-journal"),
        ("fdatasync#1", "app.db-journal"),
        ("sendto#1", "to the client"),
        ("sendto#2", "to another server"),
        ("unlink#1", "app.db-journal"),
        ("openat#1 of keys", "keys"),
        ("fdatasync#2", "app.db-journal"),
        ("fdatasync#1 of thread 1", "app.db-journal"),
    ]


def test_files_of_a_receiver_in_memory_are_files_and_devices_are_none() -> None:
    log = '7 write(5</dev/shm/case/app.db>, "x"..., 1) = 1\n7 write(1</dev/null>, "x"..., 1) = 1'
    found = handling(log, Path("/dev/shm/case"), 8000, threads=(7,))
    assert [(str(each), each.what) for each in found.places] == [("write#1", "app.db")]


def test_every_expectation_says_whose_it_is_and_how_grave() -> None:
    names = [each.name for each in BATTERY]

    assert len(names) == len(set(names))
    assert {each.source for each in BATTERY} == {STUDY, DRAFT}
    assert {each.severity for each in BATTERY} <= set(SEVERITIES)
    # All that the draft asks of answers is a SHOULD: by itself it fails nobody.
    assert not [each.name for each in BATTERY if each.source == DRAFT and each.severity not in ("unclear", "style")]
    assert all("section" in each.expected for each in BATTERY if each.source == DRAFT)


def test_what_a_receiver_declares_replaces_what_is_expected() -> None:
    receiver = Receiver(
        operation=Operation(path="/"), effects=EFFECTS, url="http://127.0.0.1:1", policy=Policy(in_flight="wait")
    )
    (expectation,) = choose("in-flight")

    assert expectation.declared(receiver) == "as declared: in_flight = wait"


def test_what_cannot_be_tried_says_why() -> None:
    running = Receiver(operation=Operation(path="/", key_field="/key", body="[]"), effects=EFFECTS, url="http://127.0.0.1:1")
    reasons = {each.name: each.skipped(running) for each in BATTERY}

    assert {name for name, reason in reasons.items() if reason is None} == {
        "replay",
        "replay-answer",
        "missing-key",
        "hang-up-during-request",
        "hang-up-after-request",
        "concurrent-duplicates",
        "concurrent-answers",
    }
    assert "nothing is killed" in str(reasons["killed-at-call"])
    assert "no header" in str(reasons["key-case"])


def test_failing_on_purpose_needs_a_way_to_do_it() -> None:
    (expectation,) = choose("failure-then-retry")
    without = Receiver(operation=Operation(path="/"), effects=EFFECTS, command=("x",))
    with_one = Receiver(operation=Operation(path="/"), effects=EFFECTS, command=("x",), fail_once=FailOnce(headers={"X": "1"}))

    assert expectation.skipped(without) == "the target file has no receiver.fail_once"
    assert expectation.skipped(with_one) is None
