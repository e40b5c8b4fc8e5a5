"""One attempt is one request: what a misbehaving peer does to it is told apart, and nothing happens unasked."""

import asyncio
import socket
import tracemalloc
from collections.abc import Iterator

import pytest

from outbox import transport
from outbox.errors import BadInput
from outbox.outcome import DID_NOT_HAPPEN, MAY_HAVE_HAPPENED, Delivered, NotDelivered, Outcome
from outbox.transport import Limits
from tests.outbox.peer import (
    Connection,
    Peer,
    Request,
    answering,
    answering_and_staying,
    reset_after_request,
    reset_at_once,
    response,
    silent,
)

LIMITS = Limits(connect_timeout_seconds=5, timeout_seconds=10, max_response_bytes=1000)
IMPATIENT = Limits(connect_timeout_seconds=5, timeout_seconds=0.2, max_response_bytes=1000)


async def post(
    url: str, *, key: str = "turn-1", body: bytes = b'{"q":1}', attempt: int | None = 1, limits: Limits = LIMITS
) -> Outcome:
    async with transport.new_session(limits) as session:
        return await transport.post(session, url, key=key, body=body, attempt=attempt, limits=limits)


def meaning(outcome: Outcome) -> tuple[str, str, int | None]:
    assert isinstance(outcome, NotDelivered), outcome
    assert outcome.detail
    return outcome.outcome, outcome.reason, outcome.status


def only_request(peer: Peer) -> Request:
    """F04: one attempt is exactly one connection and one request."""
    assert (peer.connections, len(peer.requests)) == (1, 1)
    return peer.requests[0]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that refuses, held so that nobody else can begin to listen on it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


# Nothing was sent.


async def test_a_refused_connection_did_not_happen(closed_port: int) -> None:
    assert meaning(await post(f"http://127.0.0.1:{closed_port}/x")) == (DID_NOT_HAPPEN, "connection_refused", None)


@pytest.mark.parametrize(
    "limits", [Limits(connect_timeout_seconds=0.2), Limits(timeout_seconds=0.2)], ids=["connect timeout", "timeout in all"]
)
async def test_a_connection_that_never_stands_did_not_happen(limits: Limits) -> None:
    with socket.socket() as listener, socket.socket() as first:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        first.connect(listener.getsockname())  # fills the queue: the kernel drops whoever knocks next
        outcome = await post(f"http://127.0.0.1:{listener.getsockname()[1]}/x", limits=limits)
    assert meaning(outcome) == (DID_NOT_HAPPEN, "connect_timeout", None)


# The request left, and no usable answer came.


async def test_a_reset_before_the_request_is_read_may_have_happened() -> None:
    async with Peer(reset_at_once) as peer:
        assert meaning(await post(f"{peer.url}/x")) == (MAY_HAVE_HAPPENED, "connection_reset", None)
        assert (peer.connections, peer.requests) == (1, [])


async def test_a_reset_after_the_request_was_read_may_have_happened() -> None:
    async with Peer(reset_after_request) as peer:
        assert meaning(await post(f"{peer.url}/x")) == (MAY_HAVE_HAPPENED, "connection_reset", None)
        only_request(peer)


async def test_a_connection_closed_without_a_response_may_have_happened_and_is_not_tried_again() -> None:
    async with Peer(answering(b"")) as peer:
        assert meaning(await post(f"{peer.url}/x")) == (MAY_HAVE_HAPPENED, "connection_closed", None)
        only_request(peer)


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
async def test_a_response_that_does_not_come_in_time_may_have_happened(begun: bytes) -> None:
    async with Peer(answering_and_staying(begun)) as peer:
        outcome = await post(f"{peer.url}/x", limits=IMPATIENT)
        assert meaning(outcome) == (MAY_HAVE_HAPPENED, "response_timeout", 200 if begun.endswith(b"{") else None)
        only_request(peer)


async def trickle(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
    for _byte in range(900):
        await connection.send(b" ")
        await asyncio.sleep(0.01)  # the pace of the peer, not a wait for anything


async def test_a_response_that_trickles_is_bounded_in_all_and_not_byte_by_byte() -> None:
    async with Peer(trickle) as peer:
        assert meaning(await post(f"{peer.url}/x", limits=IMPATIENT)) == (MAY_HAVE_HAPPENED, "response_timeout", 200)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("content", "reason", "status"),
    [
        pytest.param(b'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"answer":1}', "short_response", 200, id="truncated body"),
        pytest.param(CHUNKED + b'c\r\n{"answer":1}\r\n', "short_response", 200, id="chunks without an end"),
        pytest.param(b"HTTP/1.1 abc OK\r\n\r\n", "malformed_response", None, id="status that is no number"),
        pytest.param(b"HTTP/1.1 20 OK\r\n\r\n", "malformed_response", None, id="short status"),
        pytest.param(b"nonsense\r\n\r\n", "malformed_response", None, id="garbage status line"),
        pytest.param(b"\0\xff\xfe\r\n\r\n", "malformed_response", None, id="binary status line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "malformed_response", None, id="garbage header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "malformed_response", None, id="garbage length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: " + b"a" * 20_000 + b"\r\n\r\n", "malformed_response", None, id="huge header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConten", "connection_closed", None, id="cut in the head"),
        pytest.param(response("200 OK", b"not json"), "unreadable_result", 200, id="no JSON"),
        pytest.param(response("200 OK", b""), "unreadable_result", 200, id="empty body"),
        pytest.param(response("200 OK", b"[1]"), "unreadable_result", 200, id="JSON that is no object"),
        pytest.param(response("200 OK", b'{"a":\xff}'), "unreadable_result", 200, id="no UTF-8"),
        pytest.param(response("200 OK", b"[" * 900), "unreadable_result", 200, id="deep nesting"),
        pytest.param(response("200 OK", b"\x1f\x8b\x08", "Content-Encoding: gzip"), "unreadable_result", 200, id="compressed"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", "unreadable_result", 204, id="204"),
        pytest.param(response("200 OK", b"{" + b" " * 999 + b"}"), "oversized_response", 200, id="one byte over the bound"),
    ],
)
async def test_an_unusable_answer_may_have_happened(content: bytes, reason: str, status: int | None) -> None:
    async with Peer(answering(content)) as peer:
        assert meaning(await post(f"{peer.url}/x")) == (MAY_HAVE_HAPPENED, reason, status)
        only_request(peer)


@pytest.mark.parametrize("chunks", [b"zz\r\ngarbage\r\n", b'5\r\n{"answer":1}\r\n0\r\n\r\n', b"-1\r\n\r\n", b"\xff"])
async def test_garbage_for_chunks_may_have_happened(chunks: bytes) -> None:
    async with Peer(answering(CHUNKED + chunks)) as peer:
        # Which of the two it is depends on how much of the answer the kernel hands over at once.
        outcome, reason, _status = meaning(await post(f"{peer.url}/x"))
        assert (outcome, reason in ("short_response", "malformed_response")) == (MAY_HAVE_HAPPENED, True)
        only_request(peer)


async def flood(connection: Connection) -> None:
    await connection.request()
    await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n{")
    for _mebibyte in range(64):
        await connection.send(b" " * 1024 * 1024)  # ends in ConnectionError once the client has had enough


async def test_an_oversized_answer_is_dropped_before_it_fills_the_memory() -> None:
    limits = Limits(max_response_bytes=100_000)
    async with Peer(flood) as peer:
        await post(f"{peer.url}/x", limits=limits)  # whatever is loaded at the first use is not counted
        tracemalloc.start()
        try:
            outcome = await post(f"{peer.url}/x", limits=limits)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert meaning(outcome) == (MAY_HAVE_HAPPENED, "oversized_response", 200)
    assert peak < 8_000_000


# The receiver answered, and it was no success.


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        (400, DID_NOT_HAPPEN, "refused"),
        (404, DID_NOT_HAPPEN, "refused"),
        (409, DID_NOT_HAPPEN, "conflict"),
        (413, DID_NOT_HAPPEN, "refused"),
        (422, DID_NOT_HAPPEN, "conflict"),
        (429, DID_NOT_HAPPEN, "unavailable"),
        (499, DID_NOT_HAPPEN, "refused"),
        (500, MAY_HAVE_HAPPENED, "server_error"),
        (502, MAY_HAVE_HAPPENED, "server_error"),
        (503, DID_NOT_HAPPEN, "unavailable"),
        (504, MAY_HAVE_HAPPENED, "server_error"),
        (507, DID_NOT_HAPPEN, "unavailable"),
        (300, MAY_HAVE_HAPPENED, "redirect"),
        (304, MAY_HAVE_HAPPENED, "redirect"),
        (600, MAY_HAVE_HAPPENED, "server_error"),
    ],
)
async def test_a_status_that_is_no_success_means(status: int, outcome: str, reason: str) -> None:
    body = b"" if status == 304 else b'{"answer":1}'
    async with Peer(answering(response(f"{status} Whatever", body))) as peer:
        assert meaning(await post(f"{peer.url}/x")) == (outcome, reason, status)
        only_request(peer)


async def test_a_status_without_its_body_still_means_what_it_says() -> None:
    async with Peer(answering(b"HTTP/1.1 409 Conflict\r\nContent-Length: 100\r\n\r\n")) as peer:
        assert meaning(await post(f"{peer.url}/x")) == (DID_NOT_HAPPEN, "conflict", 409)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_the_other_origin_sees_nothing(status: int) -> None:
    """F12."""
    async with Peer(answering(response())) as other:
        async with Peer(answering(response(f"{status} Elsewhere", b"", f"Location: {other.url}/x"))) as peer:
            assert meaning(await post(f"{peer.url}/x")) == (MAY_HAVE_HAPPENED, "redirect", status)
            only_request(peer)
        assert other.connections == 0


# Success, and what goes over the wire.


@pytest.mark.parametrize(
    "content",
    [
        response("200 OK", b'{"answer":1}'),
        response("201 Created", b'{"answer":1}'),
        CHUNKED + b'6\r\n{"answ\r\n6\r\ner":1}\r\n0\r\n\r\n',
        b'HTTP/1.0 200 OK\r\n\r\n{"answer":1}',
        b"HTTP/1.1 100 Continue\r\n\r\n" + response(),
    ],
    ids=["200", "201", "chunked", "until the end of the connection", "after a 100"],
)
async def test_a_success_gives_the_exact_bytes(content: bytes) -> None:
    async with Peer(answering(content)) as peer:
        outcome = await post(f"{peer.url}/x")
        assert outcome == Delivered(201 if b"201" in content else 200, replayed=False, result=b'{"answer":1}')
        only_request(peer)


async def test_a_body_of_exactly_the_bound_is_a_success() -> None:
    body = b"{" + b" " * 998 + b"}"
    async with Peer(answering(response("200 OK", body))) as peer:
        assert await post(f"{peer.url}/x") == Delivered(200, replayed=False, result=body)


@pytest.mark.parametrize(("value", "replayed"), [("true", True), ("TRUE", True), ("false", False), ("", False), ("1", False)])
async def test_a_replay_is_known_by_its_header(value: str, replayed: bool) -> None:
    async with Peer(answering(response("200 OK", b"{}", f"idempotency-replayed: {value}"))) as peer:
        assert await post(f"{peer.url}/x") == Delivered(200, replayed, b"{}")


@pytest.mark.parametrize("key", ["turn-1", "!", "~", "a" * 255, 'a,b;c="d"', "%41", "(){}<>@[]?=\\"])
async def test_the_key_goes_out_once_and_unchanged(key: str) -> None:
    """F05."""
    async with Peer(answering(response())) as peer:
        await post(f"{peer.url}/x", key=key)
        assert only_request(peer).header("Idempotency-Key") == [key]


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"\xff\xfe\0\r\n\r\n", bytes(range(256)) * 40, b'{"b":1, "a":2}', b"x" * 1024 * 1024]
)
async def test_the_body_goes_out_byte_for_byte(body: bytes) -> None:
    """F11."""
    async with Peer(answering(response())) as peer:
        await post(f"{peer.url}/x", body=body)
        request = only_request(peer)
        assert request.body == body
        assert request.header("Content-Length") == [str(len(body))]
        assert request.header("Transfer-Encoding") == request.header("Content-Encoding") == request.header("Expect") == []


@pytest.mark.parametrize("attempt", [1, 12, None])
async def test_the_attempt_is_told_where_there_is_one(attempt: int | None) -> None:
    async with Peer(answering(response())) as peer:
        await post(f"{peer.url}/x", attempt=attempt)
        assert only_request(peer).header("Halt23-Attempt") == ([] if attempt is None else [str(attempt)])


@pytest.mark.parametrize(
    "route",
    [
        *("/operations", "/", "/a?b=c&d=e+f", "/a%2Fb", "/a%41b", "/a%c3%a4", "/a/../b", "/a/./b", "/a//b", '/"<>{}|^`', "/%"),
        *("/a?b?c", "/~a!$&'()*+,;=:@", "/%zz", "/a?x=%26&y=%3d", "/a;b=c", "/[x]", "/a?b=%20"),
    ],
)
async def test_the_route_goes_out_as_it_was_given(route: str) -> None:
    async with Peer(answering(response())) as peer:
        await post(peer.url + route)
        assert only_request(peer).line == f"POST {route} HTTP/1.1"


async def test_attempts_share_no_connection_even_where_the_peer_would_keep_it() -> None:
    """F04: a pooled connection that was closed in between is what makes a library send twice."""
    async with Peer(answering_and_staying(response("200 OK", b"{}", "Connection: keep-alive"))) as peer:
        async with transport.new_session(LIMITS) as session:
            for number in (1, 2, 3):
                outcome = await transport.post(session, f"{peer.url}/x", key="k", body=b"b", attempt=number, limits=LIMITS)
                assert isinstance(outcome, Delivered)
        assert (peer.connections, len(peer.requests)) == (3, 3)
        assert [request.header("Connection") for request in peer.requests] == [["close"]] * 3


async def test_no_cookie_is_taken_from_one_attempt_to_the_next() -> None:
    async with Peer(answering(response("200 OK", b"{}", "Set-Cookie: a=b"))) as peer:
        async with transport.new_session(LIMITS) as session:
            for number in (1, 2):
                await transport.post(session, f"{peer.url}/x", key="k", body=b"b", attempt=number, limits=LIMITS)
        assert peer.requests[1].header("Cookie") == []


async def test_no_proxy_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Peer(silent) as proxy, Peer(answering(response())) as peer:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert isinstance(await post(f"{peer.url}/x"), Delivered)
        assert proxy.connections == 0


# Where it may send at all.


@pytest.mark.parametrize(
    "url",
    [
        *("", "127.0.0.1:80", "//127.0.0.1:80", "http:127.0.0.1", "http://", "http://:80", "http:///x"),
        *("https://127.0.0.1:80", "ftp://127.0.0.1", "unix://127.0.0.1"),
        *("http://example.org", "http://192.168.0.1:80", "http://0.0.0.0:80", "http://128.0.0.1", "http://[::]:80"),
        *("http://127.0.0.1.example.org", "http://localhost.example.org", "http://127.0.0.1@example.org", "http://2130706433"),
        *("http://user@127.0.0.1:80", "http://user:secret@127.0.0.1:80", "http://:secret@127.0.0.1:80", "http://@127.0.0.1:80"),
        *("http://127.0.0.1:80/path", "http://127.0.0.1:80//", "http://127.0.0.1:80/?", "http://127.0.0.1:80/#"),
        *("http://127.0.0.1:80?", "http://127.0.0.1:80#", "http://127.0.0.1:80?q", "http://127.0.0.1:80#f"),
        *("http://127.0.0.1:x", "http://127.0.0.1:-1", "http://127.0.0.1:65536", "http://127.0.0.1:0"),
        *("http://[::1", "http://127.0.0.1:80x", "http://127.0.0.1:\u0668\u0660"),
        *(" http://127.0.0.1:80", "http://127.0.0.1:80 ", "http://127.0.0.1:80\n", "http://127.0.0\t.1:80"),
    ],
)
def test_what_is_no_plain_address_on_this_machine_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="expected http://127"):
        transport.loopback_url(url)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8000", "http://127.0.0.1:65535", "http://127.0.0.1", "http://localhost:1", "http://[::1]:80"],
)
def test_an_address_on_this_machine_is_accepted_with_and_without_a_slash(url: str) -> None:
    assert transport.loopback_url(url) == url
    assert transport.loopback_url(f"{url}/") == url
