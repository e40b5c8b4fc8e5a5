"""The programs around a dispatch outbox, as processes: what they refuse, what they tell, and what they leave alone."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from scenarios.catalogue.dispatch.parts import ONE, ROUTE, THREE, TWO
from scenarios.dispatch.names import Names, names
from scenarios.engine.supervisor import PRELOADED
from tests.support import BOUND_SECONDS, Ended, ProcessBox

DISPATCH, COURIER, OPERATOR = "scenarios.dispatch", "scenarios.courier", "outbox.dispatch"
NOTHING_DONE = {"attempted": 0, "delivered": 0, "dead_letter": 0, "expired": 0, "retried": 0, "superseded": 0}


@pytest.fixture(scope="module")
def box() -> Iterator[ProcessBox]:
    with ProcessBox(preloaded=(*PRELOADED, "scenarios.dispatch.__main__", "outbox.dispatch.__main__")) as opened:
        yield opened


class Place:
    """A folder with a database `d.db`, and the programs run there."""

    def __init__(self, box: ProcessBox, directory: Path) -> None:
        self.box, self.directory = box, directory

    def run(self, command: str, *arguments: str, module: str = DISPATCH) -> Ended:
        given = [command, "--db", "d.db", *arguments]
        return self.box.run(module, given, directory=self.directory)

    def enqueued(self, *options: str, to: str = ROUTE) -> None:
        ended = self.run("enqueue", "--now", "1000", "--to", to, *options, ONE)
        assert (ended.exit_code, ended.stdout) == (0, f"{ONE}\n"), ended

    def row(self) -> dict[str, object]:
        ended = self.run("show", ONE, "--json", module=OPERATOR)
        assert ended.exit_code == 0, ended
        return dict(json.loads(ended.stdout)["dispatch"])


@pytest.fixture
def place(box: ProcessBox, tmp_path: Path) -> Place:
    return Place(box, tmp_path)


def refused(ended: Ended, code: int, *words: str) -> None:
    assert (ended.exit_code, ended.stdout) == (code, ""), ended
    assert [word for word in words if word not in ended.stderr] == [], ended.stderr
    assert "Traceback" not in ended.stderr


# Producers.

ENQUEUE = ("enqueue", "--now", "1000", "--to", ROUTE)
REVIVE = ("revive", "--now", "1000", "--reset-epoch", "1000")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*ENQUEUE, "--body", "{", ONE), ("--body is no JSON",)),
        ((*ENQUEUE, "--body", "[7]", ONE), ("--body is no JSON object",)),
        ((*ENQUEUE, "--body", '{"a":NaN}', ONE), ("is not JSON",)),
        ((*ENQUEUE, "short"), ("dispatch_id 'short'", "32 hexadecimal digits")),
        (ENQUEUE, ("arguments are required: ID",)),
        (("enqueue", "--now", "nan", "--to", ROUTE, ONE), ("now is nan",)),
        (("enqueue", "--to", ROUTE, ONE), ("--now",)),
        (("enqueue", "--now", "1000", "--to", "", ONE), ("deliver_to",)),
        ((*ENQUEUE, "--expires-at", "999", ONE), ("expires_at",)),
        ((*ENQUEUE, "--max-attempts", "0", ONE), ("max_attempts",)),
        ((*REVIVE, "a=short"), ("dispatch_id 'short'",)),
        ((*REVIVE, f"={ONE}"), ("seat is empty",)),
        (REVIVE, ("arguments are required: SEAT=ID",)),
    ],
)
def test_what_cannot_be_enqueued_is_refused_and_nothing_is_written(
    place: Place, arguments: tuple[str, ...], words: Sequence[str]
) -> None:
    refused(place.run(*arguments), 2, *words)
    listed = place.run("ls", "--json", module=OPERATOR)
    assert (listed.exit_code, listed.stdout.strip() or "[]") in ((0, "[]"), (2, "[]")), listed  # 2: not even a database


def test_a_seat_without_an_id_is_refused_in_the_words_of_the_option(place: Place) -> None:
    refused(place.run(*REVIVE, "seat-1"), 2, "'seat-1'", "expected SEAT=ID")


def test_ids_are_told_in_the_order_in_which_they_were_asked_for_up_to_the_one_that_is_taken(place: Place) -> None:
    ended = place.run(*ENQUEUE, TWO, ONE, TWO, THREE)
    assert (ended.exit_code, ended.stdout) == (2, f"{TWO}\n{ONE}\n"), ended


def test_a_heartbeat_that_is_asked_for_again_tells_the_first_ids(place: Place) -> None:
    assert place.run(*REVIVE, f"a={ONE}", f"b={TWO}").stdout == f"{ONE}\n{TWO}\n"
    assert place.run(*REVIVE, f"b={THREE}").stdout == f"{TWO}\n"


# Scans.


@pytest.mark.parametrize("receiver", ["", "receiver.localhost", "=80", "a=", "a=x", "a=0", "a=65536", "a=-1", "a=8\u0660"])
def test_a_receiver_that_is_no_name_and_port_is_refused_and_nothing_is_claimed(place: Place, receiver: str) -> None:
    place.enqueued()
    refused(place.run("scan", "--now", "1000", "--receiver", receiver), 2, "expected HOST=PORT")
    assert place.row()["attempt"] == 0


def test_a_receiver_that_is_refused_is_told_by_the_name_of_its_option(place: Place) -> None:
    refused(place.run("scan", "--now", "1000", "--receiver", "x"), 2, "--receiver 'x'")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("scan",), ("one of the arguments --now --clock is required",)),
        (("scan", "--now", "1", "--clock", "clock"), ("--clock: not allowed with argument --now",)),
        (("scan", "--now", "inf"), ("the time is inf",)),
        (("scan", "--now", "1000", "--books", "mended"), ("--books", "recorded")),
        (("scan", "--db", "nowhere/d.db", "--now", "1000"), ("there is no directory", "nowhere")),
        (("deliver",), ("invalid choice: 'deliver'",)),
    ],
)
def test_a_scan_that_cannot_be_meant_is_refused(place: Place, arguments: tuple[str, ...], words: Sequence[str]) -> None:
    refused(place.run(*arguments), 2, *words)


@pytest.mark.parametrize("content", [None, "", "x", "inf", "nan", "1000 seconds", "\u0661"])
def test_a_clock_that_tells_no_time_is_no_error_of_the_database_and_nothing_is_claimed(
    place: Place, content: str | None
) -> None:
    place.enqueued()
    if content is not None:
        (place.directory / "clock").write_text(content, encoding="utf-8")
    ended = place.run("scan", "--clock", "clock")
    refused(ended, 16, "clock")
    assert place.row()["attempt"] == 0


def test_a_host_that_the_scan_was_not_told_of_is_sent_nothing(place: Place) -> None:
    place.enqueued()
    ended = place.run("scan", "--now", "1000", "--receiver", "other.localhost=4000")
    assert (ended.exit_code, json.loads(ended.stdout)) == (0, {**NOTHING_DONE, "attempted": 1, "retried": 1})
    assert "the host receiver.localhost of the route is not this machine" in str(place.row()["last_error"])


async def test_a_name_that_was_not_given_has_no_address() -> None:
    known = Names(names(["receiver.localhost=4000"]))
    (found,) = await known.resolve("receiver.localhost", 80)
    assert (found["host"], found["port"]) == ("127.0.0.1", 4000)
    with pytest.raises(OSError, match=r"the scenario names no other\.localhost"):
        await known.resolve("other.localhost", 80)


def test_nobody_at_the_port_of_a_name_is_an_error_without_the_port(place: Place) -> None:
    place.enqueued()
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        place.run("scan", "--now", "1000", "--receiver", f"receiver.localhost={held.getsockname()[1]}")
    assert place.row()["last_error"] == "connection_refused: no connection to receiver.localhost:80: Connection refused"


# The notify command.


@pytest.mark.parametrize(
    "arguments",
    [
        ["/x"],
        ["--receiver", "http://127.0.0.1:1"],
        ["--receiver", "http://127.0.0.1:1", "x"],
        ["--receiver", "http://example.org:80", "/x"],
        ["--receiver", "https://127.0.0.1:1", "/x"],
        ["--receiver", "http://127.0.0.1", "/x"],
        ["--receiver", "http://127.0.0.1:1/y", "/x"],
        ["--receiver", "http://127.0.0.1:65536", "/x"],
        ["--receiver", "http://127.0.0.1:1", "--hasty", "/x"],
    ],
)
def test_a_courier_that_is_sent_nowhere_refuses(place: Place, arguments: list[str]) -> None:
    refused(place.box.run(COURIER, arguments), 2, "usage: python -m scenarios.courier")


class Answering:
    """A listener that reads one request to the end of its body, answers these bytes and closes."""

    def __init__(self, answer: bytes) -> None:
        self._answer, self.heard = answer, b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(BOUND_SECONDS)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Answering:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._thread.join(BOUND_SECONDS)
        self._listener.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        connection, _address = self._listener.accept()
        with connection:
            connection.settimeout(BOUND_SECONDS)
            while b"\r\n\r\n" not in self.heard:
                self.heard += connection.recv(65536)
            connection.sendall(self._answer)


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", 0, ""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 0, ""),
        (b"HTTP/1.1 199 Odd\r\n\r\n", 1, "the receiver answered 199\n"),
        (b"HTTP/1.1 302 Found\r\n\r\n", 1, "the receiver answered 302\n"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", 1, "the receiver answered 503\n"),
        (b"HTTP/1.1 2", 1, "no answer: the connection ended\n"),
        (b"", 1, "no answer: the connection ended\n"),
    ],
)
def test_a_courier_ends_by_what_it_was_answered(place: Place, answer: bytes, code: int, words: str) -> None:
    with Answering(answer) as peer:
        ended = place.box.run(COURIER, ["--receiver", peer.url, "/x"], {"HALT23_DISPATCH_ID": ONE, "HALT23_ATTEMPT": "2"})
    assert (ended.exit_code, ended.stdout, ended.stderr) == (code, "", words), ended
    assert peer.heard.startswith(b"POST /x HTTP/1.1\r\n")
    assert f"\r\nIdempotency-Key: {ONE}\r\nHalt23-Attempt: 2\r\n".encode() in peer.heard


def test_a_careless_courier_does_not_ask_what_became_of_it(place: Place) -> None:
    with Answering(b"HTTP/1.1 503 Busy\r\n\r\n") as peer:
        ended = place.box.run(COURIER, ["--receiver", peer.url, "--careless", "/x"])
    assert (ended.exit_code, ended.stderr) == (0, "")


@pytest.mark.parametrize("options", [[], ["--careless"]])
def test_a_courier_that_finds_nobody_says_so_however_careless(place: Place, options: list[str]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        ended = place.box.run(COURIER, ["--receiver", f"http://127.0.0.1:{held.getsockname()[1]}", *options, "/x"])
    assert (ended.exit_code, ended.stderr) == (1, "no answer: ConnectionRefusedError\n")
