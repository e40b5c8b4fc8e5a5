"""D3: the HTTP transport. One attempt is one POST of the stored bytes under the dispatch's id; nothing leaves this machine."""

import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from outbox.dispatch import (
    DeliveryOptions,
    StateDB,
    deliver_due_dispatches,
    enqueue_dispatch,
    list_transitions,
    retry_dispatch,
)
from outbox.dispatch.router import RouterOptions
from tests.outbox.dispatch.peek import one, peek
from tests.outbox.peer import (
    Connection,
    Peer,
    answering,
    answering_and_staying,
    reset_after_request,
    reset_at_once,
    response,
    silent,
)

NOW = 1_800_000_000.0
HAPPENED, MAY_HAVE, DID_NOT = "happened", "may_have_happened", "did_not_happen"
CLOSE = "Connection: close"


@pytest.fixture
async def outbox(tmp_path: Path) -> AsyncIterator[StateDB]:
    """An outbox on SQLite: what a destination does is the same on both databases."""
    async with StateDB(tmp_path / "dispatch.db") as opened:
        yield opened


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that refuses, held so that nobody else can begin to listen on it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


async def scan(db: StateDB, *, at: float = NOW, concurrency: int = 8, **router: Any) -> dict[str, int]:
    options = DeliveryOptions(concurrency=concurrency, router=RouterOptions(**router))
    return await deliver_due_dispatches(db, now=lambda: at, notify_template=["false"], options=options)


async def send(db: StateDB, route: str, **router: Any) -> tuple[str, str | None, str]:
    """Make one attempt of a new dispatch: its status, its error, and how sure the outcome is."""
    dispatch = await enqueue_dispatch(db, kind="ping", deliver_to=route, now=NOW)
    await scan(db, **router)
    return await became(db, dispatch)


async def became(db: StateDB, dispatch: str) -> tuple[str, str | None, str]:
    row = await one(db, dispatch)
    return row["status"], row["last_error"], (await list_transitions(db, dispatch))[-1]["metadata"]["outcome"]


def refusing(status: str, *fields: str) -> Peer:
    return Peer(answering(response(status, b"" if status.startswith("304") else b"{}", CLOSE, *fields)))


# Routes that nothing may be sent to. The names and networks are those that exist for documentation only.

FOREIGN = (
    "http://example.invalid/",
    "https://example.invalid/",
    "http://192.0.2.1/",
    "http://[2001:db8::1]/",
    "http://127.0.0.1.example.invalid/",
    "http://127.0.0.1@example.invalid/",
    "http://user:127.0.0.1@example.invalid:80/",
    "http://localhost.example.invalid/",
    "http://example.invalid?@127.0.0.1/",
    "http://example.invalid#@127.0.0.1/",
    "http://0.0.0.0/",
    "http://[::ffff:127.0.0.1]/",
    "http://2130706433/",
    "http://127.1/",
    "HTTP://EXAMPLE.INVALID/",
)


async def test_only_this_machine_is_sent_to_unless_the_host_is_allowed(outbox: StateDB) -> None:
    ids = {route: await enqueue_dispatch(outbox, kind="ping", deliver_to=route, now=NOW) for route in FOREIGN}
    counts = await scan(outbox, allow_hosts=("other.invalid",))
    assert counts["retried"] == len(FOREIGN)
    for route, dispatch in ids.items():
        status, error, outcome = await became(outbox, dispatch)
        assert (route, status, outcome) == (route, "pending", DID_NOT)
        assert "of the route is not this machine; name it in [dispatch] allow_hosts" in str(error), route


@pytest.mark.parametrize("allowed", ["0.0.0.0", "*"])
async def test_a_host_that_is_allowed_is_sent_to(outbox: StateDB, allowed: str) -> None:
    async with refusing("200 OK") as peer:
        route = f"http://0.0.0.0:{peer.port}/x"  # which is this machine all the same
        assert (await send(outbox, route))[0] == "pending"
        assert peer.connections == 0
        assert await send(outbox, route, allow_hosts=(allowed,)) == ("delivered", None, HAPPENED)
        assert len(peer.requests) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "127.1.2.3", "me:secret@127.0.0.1"])
async def test_this_machine_has_many_names(outbox: StateDB, host: str) -> None:
    async with refusing("200 OK") as peer:
        sent = await send(outbox, f"HtTp://{host}:{peer.port}/x")
        if host == "127.1.2.3":  # nobody listens there
            assert sent[2] == DID_NOT
        else:
            assert sent == ("delivered", None, HAPPENED)


MALFORMED = (
    ("http://", "names no host"),
    ("http:///x", "names no host"),
    ("http://?x", "names no host"),
    ("http://:80/", "names no host"),
    ("http://127.0.0.1:99999/", "is no URL"),
    ("http://127.0.0.1:port/", "is no URL"),
    ("http://127.0.0.1:-1/", "is no URL"),
    ("http://[::1/", "is no URL"),
    ("http://127.0.0.1:1/a b", "holds white space or control characters"),
    ("http://127.0.0.1:1/\r\nHost: example.invalid", "holds white space or control characters"),
    ("http://127.0.0.1:1/\x7f", "holds white space or control characters"),
    ("http://127.0.0.1:1/ ", "holds white space or control characters"),
)


async def test_a_route_that_is_a_bad_url_is_a_definite_failure_that_names_it(outbox: StateDB) -> None:
    ids = [await enqueue_dispatch(outbox, kind="ping", deliver_to=route, now=NOW) for route, _told in MALFORMED]
    await scan(outbox)
    for dispatch, (route, told) in zip(ids, MALFORMED, strict=True):
        status, error, outcome = await became(outbox, dispatch)
        assert (route, status, outcome) == (route, "pending", DID_NOT)
        assert told in str(error), route


@pytest.mark.parametrize("route", ["http:/127.0.0.1/", "ftp://127.0.0.1/", "httpx://127.0.0.1", "/http://127.0.0.1/", "seat-1"])
async def test_a_route_that_is_no_url_goes_by_the_template(outbox: StateDB, route: str) -> None:
    assert await send(outbox, route) == ("pending", "exit 1", MAY_HAVE)


async def test_letters_of_all_scripts_in_a_path_are_sent_as_they_are(outbox: StateDB) -> None:
    async with refusing("200 OK") as peer:
        assert await send(outbox, f"{peer.url}/größe?q=€") == ("delivered", None, HAPPENED)
        assert peer.requests[0].line.encode("latin-1").decode() == "POST /größe?q=€ HTTP/1.1"


# No answer.


async def test_a_refused_connection_did_not_happen(outbox: StateDB, closed_port: int) -> None:
    status, error, outcome = await send(outbox, f"http://127.0.0.1:{closed_port}/x")
    assert (status, outcome) == ("pending", DID_NOT)
    # In our words, by the address of the route: the library's name what it tried, which differs from run to run.
    assert error == f"connection_refused: no connection to 127.0.0.1:{closed_port}: Connection refused"


class Known(AbstractResolver):
    """Finds one name at a port of this machine, whatever port the route says; no other name."""

    def __init__(self, name: str, port: int) -> None:
        self._name, self._port = name, port
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        self.asked.append((host, port))
        if host != self._name:
            raise OSError(f"nobody is named {host}")
        return [ResolveResult(hostname=host, host="127.0.0.1", port=self._port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is held."""


async def test_a_resolver_of_one_s_own_finds_the_destination_and_the_request_is_the_route_s(outbox: StateDB) -> None:
    async with refusing("200 OK") as peer:
        known = Known("seat.test", peer.port)
        route = "http://seat.test/operations"
        assert await send(outbox, route, allow_hosts=("seat.test",), resolver=known) == ("delivered", None, HAPPENED)
        assert known.asked == [("seat.test", 80)]
        assert (peer.requests[0].line, peer.requests[0].header("Host")) == ("POST /operations HTTP/1.1", ["seat.test"])


async def test_a_name_that_a_resolver_does_not_know_did_not_happen(outbox: StateDB, closed_port: int) -> None:
    known = Known("seat.test", closed_port)
    status, error, outcome = await send(outbox, "http://other.test/x", allow_hosts=("*",), resolver=known)
    assert (status, outcome) == ("pending", DID_NOT)
    assert str(error).startswith("unreachable: ")
    assert "other.test" in str(error)


async def test_a_resolver_does_not_open_hosts_that_are_not_allowed(outbox: StateDB, closed_port: int) -> None:
    known = Known("seat.test", closed_port)
    status, error, outcome = await send(outbox, "http://seat.test/x", resolver=known)
    assert (status, outcome, known.asked) == ("pending", DID_NOT, [])
    assert str(error).startswith("the host seat.test of the route is not this machine")


async def test_nobody_at_what_a_resolver_found_is_told_by_the_name(outbox: StateDB, closed_port: int) -> None:
    known = Known("seat.test", closed_port)
    _status, error, outcome = await send(outbox, "http://seat.test/x", allow_hosts=("seat.test",), resolver=known)
    assert (error, outcome) == ("connection_refused: no connection to seat.test:80: Connection refused", DID_NOT)


async def test_a_server_that_speaks_no_tls_did_not_happen(outbox: StateDB) -> None:
    async def plain(connection: Connection) -> None:
        await connection.send(response("400 Bad"))
        await connection.until_client_gone()

    async with Peer(plain) as peer:
        _status, _error, outcome = await send(outbox, f"https://127.0.0.1:{peer.port}/x")
        assert outcome == DID_NOT
        assert peer.requests == []


@pytest.mark.parametrize(
    ("action", "reason", "requests"),
    [
        (reset_at_once, "connection_reset", 0),
        (reset_after_request, "connection_reset", 1),
        (answering(b""), "connection_closed", 1),
        (answering(b"HTTP/1.1 200 OK\r\nConten"), "connection_closed", 1),
        (answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), "short_response", 1),
        (answering(b"nonsense\r\n\r\n"), "malformed_response", 1),
        (answering(response("200 OK", b" " * 1_100_000)), "oversized_response", 1),
    ],
)
async def test_an_answer_that_does_not_come_whole_may_have_happened(
    outbox: StateDB, action: Any, reason: str, requests: int
) -> None:
    async with Peer(action) as peer:
        status, error, outcome = await send(outbox, f"{peer.url}/x")
        assert (status, outcome) == ("pending", MAY_HAVE)
        assert str(error).startswith(f"{reason}: ")
        assert (peer.connections, len(peer.requests)) == (1, requests)


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
async def test_an_answer_that_is_late_may_have_happened(outbox: StateDB, begun: bytes) -> None:
    async with Peer(answering_and_staying(begun) if begun else silent) as peer:
        status, error, outcome = await send(outbox, f"{peer.url}/x", timeout_seconds=0.2)
        assert (status, outcome) == ("pending", MAY_HAVE)
        assert str(error).startswith("response_timeout: ")
        assert len(peer.requests) == 1


async def test_whatever_bytes_an_answer_holds_the_outcome_can_be_stored(db: StateDB) -> None:
    garbage = (b"\0\xff\xfe\r\n\r\n", b"HTTP/1.1 2\xff0 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nA\0\xff: b\r\n\r\n")
    async with Peer(*(answering(each) for each in garbage)) as peer:
        for _each in garbage:
            status, error, outcome = await send(db, f"{peer.url}/x")
            assert (status, outcome, bool(error)) == ("pending", MAY_HAVE, True)
            assert "\0" not in str(error)


async def test_one_garbled_answer_does_not_hold_up_the_other_rows(db: StateDB) -> None:
    async with Peer(answering(b"\0\xff\xfe\r\n\r\n")) as bad, refusing("200 OK") as good:
        for peer in (bad, good, bad, good):
            await enqueue_dispatch(db, kind="ping", deliver_to=f"{peer.url}/x", now=NOW)
        counts = await scan(db)
    assert (counts["delivered"], counts["retried"]) == (2, 2)


async def held(connection: Connection) -> None:
    """Answer the first request, read the second one and close without a word."""
    await connection.request()
    await connection.send(response("200 OK", b"{}"))
    await connection.request()


async def test_a_pooled_connection_that_is_closed_gets_no_second_request(outbox: StateDB) -> None:
    async with Peer(held, answering(response("200 OK", b"{}", CLOSE))) as peer:
        ids = [await enqueue_dispatch(outbox, kind="ping", deliver_to=f"{peer.url}/x", now=NOW + n / 4) for n in range(2)]
        counts = await scan(outbox, at=NOW + 1, concurrency=1)
        assert (counts["delivered"], counts["retried"]) == (1, 1)
        status, error, outcome = await became(outbox, ids[1])
        assert (status, outcome) == ("pending", MAY_HAVE)
        assert str(error).startswith("connection_closed: ")
        assert peer.connections == 1
        assert [request.header("Idempotency-Key") for request in peer.requests] == [[each] for each in ids]


# Answers.


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        ("300 Multiple", MAY_HAVE, "redirect"),
        ("304 Not Modified", MAY_HAVE, "redirect"),
        ("400 Bad", DID_NOT, "refused"),
        ("401 No", DID_NOT, "refused"),
        ("404 Not Found", DID_NOT, "refused"),
        ("409 Conflict", DID_NOT, "conflict"),
        ("413 Large", DID_NOT, "refused"),
        ("422 Unprocessable", DID_NOT, "conflict"),
        ("429 Many", DID_NOT, "unavailable"),
        ("499 Odd", DID_NOT, "refused"),
        ("500 Oh", MAY_HAVE, "server_error"),
        ("502 Bad", MAY_HAVE, "server_error"),
        ("503 Busy", DID_NOT, "unavailable"),
        ("504 Late", MAY_HAVE, "server_error"),
    ],
)
async def test_an_answer_without_success_says_whether_it_may_have_happened(
    outbox: StateDB, status: str, outcome: str, reason: str
) -> None:
    async with refusing(status) as peer:
        became_status, error, became_outcome = await send(outbox, f"{peer.url}/x")
        assert (became_status, became_outcome) == ("pending", outcome)
        assert str(error).startswith(f"{reason}: the receiver answered {status[:3]}")
        assert len(peer.requests) == 1


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_not_followed(outbox: StateDB, status: str) -> None:
    async with refusing("200 OK") as elsewhere, refusing(status, f"Location: {elsewhere.url}/y") as peer:
        _status, error, outcome = await send(outbox, f"{peer.url}/x")
        assert outcome == MAY_HAVE
        assert "redirects are not followed" in str(error)
        assert (len(peer.requests), elsewhere.connections) == (1, 0)


@pytest.mark.parametrize(
    ("status", "content"),
    [
        ("200 OK", b'{"answer":1}'),
        ("200 OK", b""),
        ("200 OK", b"<html>fine</html>"),
        ("200 OK", b"\0\xff"),
        ("201 Created", b"[1]"),
        ("202 Accepted", b"later"),
        ("299 Odd", b"{}"),
    ],
)
async def test_any_success_is_a_delivery_whatever_it_says(outbox: StateDB, status: str, content: bytes) -> None:
    async with Peer(answering(response(status, content, CLOSE))) as peer:
        assert await send(outbox, f"{peer.url}/x") == ("delivered", None, HAPPENED)
        assert len(peer.requests) == 1


async def test_a_success_without_content_is_a_delivery(outbox: StateDB) -> None:
    async with Peer(answering(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")) as peer:
        assert await send(outbox, f"{peer.url}/x") == ("delivered", None, HAPPENED)


@pytest.mark.parametrize(
    ("wish", "due"),
    [
        ("600", NOW + 600),
        ("61", NOW + 61),
        ("5", NOW + 60),
        ("0", NOW + 60),
        ("999999999999999999", NOW + 86_400),
        ("Fri, 15 Jan 2027 09:00:00 GMT", NOW + 3600),
        ("Thu, 01 Jan 1970 00:00:00 GMT", NOW + 60),
        ("soon", NOW + 60),
        ("-5", NOW + 60),
        ("1e9", NOW + 60),
    ],
)
async def test_a_wish_to_wait_puts_the_next_attempt_off_and_never_brings_it_nearer(
    outbox: StateDB, wish: str, due: float
) -> None:
    async with refusing("503 Busy", f"Retry-After: {wish}") as peer:
        await send(outbox, f"{peer.url}/x")
    (row,) = await peek(outbox, "SELECT status, next_attempt_at FROM dispatch_outbox")
    assert row == {"status": "pending", "next_attempt_at": due}


# The request.


async def test_the_key_and_the_bytes_stay_the_same_over_all_attempts_and_a_forced_retry(outbox: StateDB) -> None:
    async with refusing("500 Oh") as peer:
        dispatch = await enqueue_dispatch(
            outbox, kind="ping", deliver_to=f"{peer.url}/x", body={"text": "é €"}, max_attempts=2, now=NOW
        )
        await scan(outbox, at=NOW)
        await scan(outbox, at=NOW + 100)
        assert (await one(outbox, dispatch))["status"] == "dead_letter"
        assert await retry_dispatch(outbox, dispatch, now=NOW + 200)
        await scan(outbox, at=NOW + 200)
        payload = (await one(outbox, dispatch))["payload"]
    assert [request.header("Idempotency-Key") for request in peer.requests] == [[dispatch]] * 3
    assert [request.header("Halt23-Attempt") for request in peer.requests] == [["1"], ["2"], ["1"]]
    assert [request.body for request in peer.requests] == [payload.encode()] * 3
    assert json.loads(payload)["attempt"] == 0


async def test_the_request_goes_to_the_route_as_it_was_given(outbox: StateDB) -> None:
    async with refusing("200 OK") as peer:
        await send(outbox, f"{peer.url}/a%2Fb/%41/../c?x=%2b+&y#fragment")
    (request,) = peer.requests
    assert request.line == "POST /a%2Fb/%41/../c?x=%2b+&y HTTP/1.1"
    assert request.header("Host") == [f"127.0.0.1:{peer.port}"]
    assert request.header("Content-Type") == ["application/json"]
    assert request.header("Content-Length") == [str(len(request.body))]
    assert request.header("Cookie") == []


async def keeping(connection: Connection) -> None:
    """Answer every request of the connection with success and a cookie."""
    while True:
        await connection.request()
        await connection.send(response("200 OK", b"{}", "Set-Cookie: a=b"))


async def test_a_connection_is_used_again_within_a_scan_and_cookies_are_not(outbox: StateDB) -> None:
    async with Peer(keeping) as peer:
        for _row in range(5):
            await enqueue_dispatch(outbox, kind="ping", deliver_to=f"{peer.url}/x", now=NOW)
        assert (await scan(outbox, concurrency=1))["delivered"] == 5
        assert (peer.connections, len(peer.requests)) == (1, 5)
        assert [request.header("Cookie") for request in peer.requests] == [[]] * 5


async def test_a_proxy_of_the_environment_is_not_asked(outbox: StateDB, monkeypatch: pytest.MonkeyPatch) -> None:
    async with refusing("200 OK") as peer, refusing("200 OK") as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert await send(outbox, f"{peer.url}/x") == ("delivered", None, HAPPENED)
        assert (len(peer.requests), proxy.connections) == (1, 0)
