"""The dispatcher's process: every exit code, the lock, what one pass does and leaves, and that repeating it is harmless."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from outbox.dispatcher import LOCK_NAME, dispatch, dispatcher_lock
from outbox.errors import DamagedJournal
from outbox.workflow import Intention, submit
from tests.outbox.notes import forge, members
from tests.outbox.peer import Action, Connection, Peer, answering, reset_after_request, response
from tests.outbox.world import World, environment_of, python, state, summary
from tests.support import BOUND_SECONDS, ProcessBox

OK = answering(response())
CONFLICT = answering(response("409 Conflict"))
REFUSED = answering(response("400 Bad Request"))
UNAVAILABLE = answering(response("503 Service Unavailable"))
UNKNOWN = answering(response("500 Internal Server Error"))


class Peers:
    """Peers on the event loop of the box, for tests that wait for processes."""

    def __init__(self, box: ProcessBox) -> None:
        self._box = box
        self._open: list[Peer] = []

    def __call__(self, *actions: Action) -> Peer:
        peer = Peer(*actions)
        self._box.do(peer.open())
        self._open.append(peer)
        return peer

    def close(self) -> None:
        for peer in self._open:
            self._box.do(peer.close())


@pytest.fixture
def peers(box: ProcessBox) -> Iterator[Peers]:
    """Opens misbehaving receivers that are closed after the test."""
    opened = Peers(box)
    yield opened
    opened.close()


def produce(world: World, count: int) -> None:
    for number in range(1, count + 1):
        assert world.produce(f"turn-{number}", f'{{"q":{number}}}').exit_code == 0


# Exit codes.


@pytest.mark.parametrize(
    ("actions", "code", "told"),
    [
        ([OK], 0, {"delivered": 3, "history_added": 3}),
        ([UNAVAILABLE], 10, {"unavailable": 3}),
        ([CONFLICT], 11, {"conflict": 3}),
        ([UNKNOWN], 12, {"unknown": 3}),
        ([reset_after_request], 12, {"unknown": 3}),
        ([REFUSED], 15, {"refused": 3}),
        ([OK, UNAVAILABLE, OK], 10, {"delivered": 2, "unavailable": 1, "history_added": 2}),
        ([UNAVAILABLE, REFUSED, OK], 15, {"unavailable": 1, "refused": 1, "delivered": 1, "history_added": 1}),
        ([UNAVAILABLE, CONFLICT, REFUSED], 11, {"unavailable": 1, "conflict": 1, "refused": 1}),
        ([UNKNOWN, CONFLICT, REFUSED], 12, {"unknown": 1, "conflict": 1, "refused": 1}),
        ([REFUSED, UNAVAILABLE, UNKNOWN], 12, {"unknown": 1, "unavailable": 1, "refused": 1}),
    ],
)
def test_the_gravest_ending_is_the_exit_code_and_every_intention_is_counted(
    world: World, peers: Peers, actions: list[Action], code: int, told: dict[str, int]
) -> None:
    produce(world, 3)
    peer = peers(*actions)
    ended = world.dispatch(receiver=peer.url)
    assert (ended.exit_code, summary(ended)) == (code, {"intentions": 3, **told})
    assert (peer.connections, len(peer.requests)) == (3, 3)
    assert len(ended.stderr.splitlines()) == 3 - told.get("delivered", 0)
    for line in ended.stderr.splitlines():
        assert line.startswith("dispatcher: turn-")
        assert ("may have happened" in line) or ("did not happen" in line)


def test_nothing_to_do_is_done(world: World) -> None:
    world.outbox.mkdir()
    ended = world.dispatch()
    assert (ended.exit_code, summary(ended), ended.stderr) == (0, {}, "")


@pytest.mark.parametrize(
    "receiver",
    ["http://example.org:80", "https://127.0.0.1:80", "127.0.0.1:80", "http://127.0.0.1:80/path", "http://127.0.0.1:99999", ""],
)
def test_a_receiver_elsewhere_is_bad_input_and_nothing_is_touched(world: World, receiver: str) -> None:
    produce(world, 1)
    before = state(world.outbox)
    ended = world.box.run("outbox.dispatcher", ["--dir", str(world.outbox), "--receiver", receiver])
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "is not the address of a receiver on this machine" in ended.stderr
    assert state(world.outbox) == before


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "x", ""])
def test_a_timeout_that_is_none_is_bad_input(world: World, seconds: str) -> None:
    produce(world, 1)
    ended = world.dispatch("--timeout-seconds", seconds)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--timeout-seconds" in ended.stderr


def test_a_missing_directory_is_bad_input_and_is_not_created(world: World) -> None:
    ended = world.dispatch()
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "is not a directory" in ended.stderr
    assert not world.outbox.exists()


@pytest.mark.parametrize("arguments", [[], ["--dir", "x"], ["--receiver", "http://127.0.0.1:1"], ["--nonsense"]])
def test_missing_or_unknown_options_are_bad_input(box: ProcessBox, arguments: list[str]) -> None:
    assert box.run("outbox.dispatcher", arguments).exit_code == 2


@pytest.mark.parametrize("name", ["intentions", "attempts", "receipts", "history"])
def test_a_damaged_journal_is_told_and_left_as_it_is(world: World, name: str) -> None:
    world.start_receiver()
    produce(world, 2)
    assert world.dispatch().exit_code == 0
    path = world.journal(name)
    path.write_bytes(path.read_bytes().replace(b'"turn-1', b'"turn-7', 1))
    before = state(world.outbox)
    ended = world.dispatch()
    assert (ended.exit_code, ended.stdout) == (14, "")
    assert f"{path}, line 1: its checksum" in ended.stderr
    assert state(world.outbox) == before


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"key": "a", "route": "/operations", "body": {"content": "x", "encoding": "morse"}},
        {"key": "a", "route": "/operations", "body": "x"},
        {"key": 3, "route": "/operations", "body": {"content": "x", "encoding": "utf-8"}},
        {"key": "a", "route": "operations", "body": {"content": "x", "encoding": "utf-8"}},
    ],
    ids=["nothing", "unknown encoding", "no payload", "key that is no text", "route that is no path"],
)
def test_an_intention_of_a_wrong_shape_is_a_damaged_journal_although_its_sum_is_right(
    world: World, data: dict[str, object]
) -> None:
    world.start_receiver()
    world.outbox.mkdir()
    world.journal("intentions").write_bytes(forge([members("intention", "a", data)], "intentions"))
    ended = world.dispatch()
    assert (ended.exit_code, ended.stdout, "Traceback" in ended.stderr) == (14, "", False)


@pytest.mark.parametrize("name", ["attempts.jsonl", "receipts.jsonl", "history.jsonl", "intentions.jsonl", LOCK_NAME])
def test_a_file_that_cannot_be_opened_is_the_machine_refusing(world: World, name: str) -> None:
    world.outbox.mkdir()
    (world.outbox / name).mkdir()
    ended = world.dispatch()
    assert (ended.exit_code, ended.stdout) == (16, "")
    assert str(world.outbox / name) in ended.stderr


FULL_DISK = """
import resource, sys
from outbox.dispatcher import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(sys.argv[2:]))
"""


def test_a_disk_too_full_to_record_the_attempt_sends_nothing(world: World) -> None:
    world.start_receiver()
    produce(world, 1)
    ended = python(FULL_DISK, "100", "--dir", str(world.outbox), "--receiver", world.url)
    assert (ended.returncode, ended.stdout) == (16, "")
    assert "attempts.jsonl: cannot be written: File too large" in ended.stderr
    assert world.records("arrivals") == []
    assert world.dispatch().exit_code == 0
    assert world.counts() == (1, 1, 1)


def test_a_disk_too_full_for_the_receipt_is_made_good_by_the_next_pass(world: World) -> None:
    world.start_receiver()
    produce(world, 1)
    # An attempt's record fits, the receipt's is longer.
    ended = python(FULL_DISK, "420", "--dir", str(world.outbox), "--receiver", world.url)
    assert (ended.returncode, ended.stdout) == (16, "")
    assert "receipts.jsonl: cannot be written" in ended.stderr
    assert world.counts() == (1, 0, 0)
    assert world.journal("receipts").read_bytes() == b""
    assert world.dispatch().exit_code == 0
    assert world.counts() == (1, 1, 1)
    (receipt,) = world.records("receipts")
    assert (receipt["data"]["replayed"], receipt["data"]["attempt"]) == (True, 2)


# The lock.


def test_a_second_dispatcher_is_told_to_wait_and_touches_nothing(world: World, peers: Peers) -> None:
    asked, proceed = world.box.do(events(2))

    async def slow(connection: Connection) -> None:
        await connection.request()
        asked.set()
        await proceed.wait()
        await connection.send(response())

    produce(world, 1)
    peer = peers(slow)
    first = world.box.launch("outbox.dispatcher", ["--dir", str(world.outbox), "--receiver", peer.url])
    world.box.do(asyncio.wait_for(asked.wait(), BOUND_SECONDS))
    before = state(world.outbox)
    second = world.dispatch(receiver=peer.url)
    assert (second.exit_code, second.stdout) == (13, "")
    assert LOCK_NAME in second.stderr
    assert state(world.outbox) == before
    # A producer is not kept waiting by it.
    assert world.produce("turn-2").exit_code == 0
    world.box.do(set_event(proceed))
    assert first.wait().exit_code == 0
    assert peer.connections == len(peer.requests)


async def events(count: int) -> list[asyncio.Event]:
    return [asyncio.Event() for _ in range(count)]


async def set_event(event: asyncio.Event) -> None:
    event.set()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_dispatcher_that_dies_in_the_middle_of_a_request_blocks_nobody(
    world: World, peers: Peers, number: signal.Signals
) -> None:
    (asked,) = world.box.do(events(1))

    async def endless(connection: Connection) -> None:
        await connection.request()
        asked.set()
        await connection.until_client_gone()

    produce(world, 1)
    first = world.box.launch("outbox.dispatcher", ["--dir", str(world.outbox), "--receiver", peers(endless).url])
    world.box.do(asyncio.wait_for(asked.wait(), BOUND_SECONDS))
    first.send(number)
    assert first.wait().signal == number.name
    world.start_receiver()
    assert world.dispatch().exit_code == 0
    assert world.counts() == (1, 1, 1)
    assert [each["data"]["number"] for each in world.records("attempts", "attempt")] == [1, 2]


@pytest.mark.parametrize("content", ["", "1\n", "live", "dead", "own", "\0\xff garbage"])
def test_what_the_lock_file_contains_does_not_matter(world: World, content: str) -> None:
    """F24: the pid of a live process, of a dead one, our own, or anything else."""
    world.start_receiver()
    produce(world, 1)
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait(BOUND_SECONDS)
    pid = {"live": os.getpid(), "dead": gone.pid}.get(content)
    lock = world.outbox / LOCK_NAME
    lock.write_text(str(pid) if pid else content)
    if content == "own":
        # The program writes its own pid there and goes on as the dispatcher, so the pid is its own.
        code = (
            "import os, sys; from pathlib import Path; from outbox.dispatcher import main\n"
            "Path(sys.argv[1]).write_text(str(os.getpid())); sys.exit(main(sys.argv[2:]))"
        )
        assert python(code, str(lock), "--dir", str(world.outbox), "--receiver", world.url).returncode == 0
    else:
        assert world.dispatch().exit_code == 0
    assert world.counts() == (1, 1, 1)


def test_the_lock_is_free_again_after_every_way_out(world: World) -> None:
    world.outbox.mkdir()
    with pytest.raises(KeyError), dispatcher_lock(world.outbox):
        raise KeyError
    with dispatcher_lock(world.outbox):
        pass
    assert world.dispatch().exit_code == 0


async def test_after_a_damaged_journal_is_restored_the_same_process_can_dispatch(tmp_path: Path) -> None:
    submit(tmp_path, Intention("a", "/operations", b"{}"))
    async with Peer(OK) as peer:
        await dispatch(tmp_path, peer.url)
        for name in ("receipts", "history"):
            path = tmp_path / f"{name}.jsonl"
            good = path.read_bytes()
            path.write_bytes(good.replace(b'"a"', b'"b"', 1))
            with pytest.raises(DamagedJournal):
                await dispatch(tmp_path, peer.url)
            path.write_bytes(good)
            assert (await dispatch(tmp_path, peer.url)).already_delivered == 1


# One pass, and the next ones.


def test_a_refused_connection_ends_the_sending_but_not_the_history(world: World) -> None:
    world.start_receiver()
    produce(world, 2)
    assert world.dispatch(halt_at="history.append.before#2").exit_code == 23
    for key in ("turn-3", "turn-4", "turn-5"):
        assert world.produce(key).exit_code == 0
    assert world.receiver is not None
    world.receiver.stop()
    ended = world.dispatch()
    assert (ended.exit_code, summary(ended)) == (
        10,
        {"intentions": 5, "already_delivered": 2, "unavailable": 1, "not_attempted": 2, "history_added": 1},
    )
    assert "turn-3: connection_refused (this attempt did not happen)" in ended.stderr
    assert world.counts() == (2, 2, 2)
    assert [each["id"] for each in world.records("attempts", "outcome")] == ["turn-3#1"]


def test_history_is_committed_behind_an_intention_that_cannot_be_sent(world: World, peers: Peers) -> None:
    produce(world, 3)
    assert world.dispatch(receiver=peers(UNAVAILABLE, OK, OK).url, halt_at="history.append.before#2").exit_code == 23
    ended = world.dispatch()  # nobody listens: turn-1 is refused, turn-3 has its receipt already
    assert (ended.exit_code, summary(ended)) == (
        10,
        {"intentions": 3, "unavailable": 1, "already_delivered": 2, "history_added": 1},
    )
    assert sorted(each["id"] for each in world.records("history")) == ["turn-2", "turn-3"]


@pytest.mark.parametrize(
    ("action", "recorded"),
    [
        (CONFLICT, {"outcome": "did_not_happen", "reason": "conflict", "status": 409}),
        (UNKNOWN, {"outcome": "may_have_happened", "reason": "server_error", "status": 500}),
        (reset_after_request, {"outcome": "may_have_happened", "reason": "connection_reset", "status": None}),
    ],
)
def test_the_pass_goes_on_behind_a_failure_and_records_it(
    world: World, peers: Peers, action: Action, recorded: dict[str, object]
) -> None:
    produce(world, 2)
    ended = world.dispatch(receiver=peers(action, OK).url)
    assert summary(ended)["delivered"] == 1
    identity = {"intention": "turn-1", "number": 1, "not_before": None}
    assert [each["data"] for each in world.records("attempts", "outcome")] == [{**identity, **recorded}]
    assert [each["id"] for each in world.records("receipts")] == ["turn-2"]


def test_every_attempt_has_the_same_key_route_and_bytes(world: World, peers: Peers, tmp_path: Path) -> None:
    """F05 and F11, with bytes that are no text."""
    body = bytes(range(256)) + b'{"b": 1,\r\n "a": 2}'
    (tmp_path / "body").write_bytes(body)
    arguments = ["--dir", str(world.outbox), "--key", 'k,"1', "--route", "/x?y=1", "--body-file", str(tmp_path / "body")]
    assert world.box.run("outbox.producer", arguments).exit_code == 0
    peer = peers(UNKNOWN, UNAVAILABLE, reset_after_request, OK)
    assert [world.dispatch(receiver=peer.url).exit_code for _pass in range(5)] == [12, 10, 12, 0, 0]
    assert (peer.connections, len(peer.requests)) == (4, 4)
    for number, request in enumerate(peer.requests, 1):
        assert (request.line, request.body) == ("POST /x?y=1 HTTP/1.1", body)
        assert request.header("Idempotency-Key") == ['k,"1']
        assert request.header("Halt23-Attempt") == [str(number)]
    assert [each["id"] for each in world.records("attempts", "attempt")] == [f'k,"1#{number}' for number in (1, 2, 3, 4)]


@pytest.mark.parametrize("route", ["/a?", "/a??", "/?", "/a%41?b=%3d", "/a/../b", "/%", "/[x]", '/"<>'])
def test_a_route_is_refused_by_the_producer_or_goes_out_as_it_was_given(world: World, peers: Peers, route: str) -> None:
    produced = world.produce("k", "b", "--route", route)
    if produced.exit_code == 2:
        assert "route" in produced.stderr
        return
    peer = peers(OK)
    assert world.dispatch(receiver=peer.url).exit_code == 0
    assert [request.line for request in peer.requests] == [f"POST {route} HTTP/1.1"]


def test_intentions_are_sent_in_the_order_of_their_submission(world: World, peers: Peers) -> None:
    for key in ("z", "a", "m"):
        assert world.produce(key).exit_code == 0
    peer = peers(OK)
    assert world.dispatch(receiver=peer.url).exit_code == 0
    assert [request.header("Idempotency-Key") for request in peer.requests] == [["z"], ["a"], ["m"]]


@pytest.mark.parametrize("kind", ["keyed", "unkeyed"])
def test_recovery_is_idempotent(world: World, kind: str) -> None:
    world.start_receiver(kind)
    produce(world, 3)
    assert world.dispatch(halt_at="receipt.append.torn#2").exit_code == 23
    assert world.dispatch().exit_code == 0
    before = {**state(world.outbox), **state(world.receiver_directory)}
    for _pass in range(3):
        ended = world.dispatch()
        assert (ended.exit_code, summary(ended)) == (0, {"intentions": 3, "already_delivered": 3})
    assert {**state(world.outbox), **state(world.receiver_directory)} == before
    assert world.counts() == (3 if kind == "keyed" else 4, 3, 3)


def test_a_body_of_the_largest_size_that_can_be_submitted_is_delivered(world: World, tmp_path: Path) -> None:
    world.start_receiver()
    (tmp_path / "body").write_bytes(b"\0" * 1024 * 1024)
    arguments = ["--dir", str(world.outbox), "--key", "large", "--body-file", str(tmp_path / "body")]
    assert world.box.run("outbox.producer", arguments).exit_code == 0
    ended = world.dispatch()
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert world.counts() == (1, 1, 1)


def test_a_pass_beside_a_producer_that_died_in_the_middle_of_a_write_delivers_what_is_complete(world: World) -> None:
    world.start_receiver()
    produce(world, 1)
    assert world.produce("turn-2", halt_at="intention.append.torn").exit_code == 23
    torn = world.journal("intentions").read_bytes()
    ended = world.dispatch()
    assert (ended.exit_code, summary(ended)) == (0, {"intentions": 1, "delivered": 1, "history_added": 1})
    assert world.journal("intentions").read_bytes() == torn


def test_a_timeout_is_an_unknown_outcome(world: World, peers: Peers) -> None:
    async def silent(connection: Connection) -> None:
        await connection.request()
        await connection.until_client_gone()

    produce(world, 1)
    ended = world.dispatch("--timeout-seconds", "0.2", receiver=peers(silent).url)
    assert (ended.exit_code, summary(ended)) == (12, {"intentions": 1, "unknown": 1})
    assert "response_timeout" in ended.stderr


def test_the_program_run_as_a_module_is_the_same(world: World) -> None:
    world.start_receiver()
    produce(world, 1)
    command = [sys.executable, "-W", "error", "-m", "outbox.dispatcher", "--dir", str(world.outbox), "--receiver", world.url]
    done = subprocess.run(command, capture_output=True, text=True, env=environment_of(), timeout=BOUND_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["delivered"] == 1
