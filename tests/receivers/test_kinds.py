"""Each kind of receiver makes exactly the mistake that its module tells of, or none, and the options do what they say."""

from __future__ import annotations

import http.client
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from receivers.server import SHUTDOWN_SECONDS
from tests.receivers.http import (
    KEY,
    Headers,
    Receiver,
    Response,
    connect,
    fingerprint,
    head,
    is_complete,
    read_response,
    records,
    result,
)
from tests.support import BOUND_SECONDS, Ended, ProcessBox

BODY = b'{"question":"?"}'
OTHER = b'{"question":"!"}'
KEEPS_KEYS = ("volatile-registry", "effect-then-key", "key-then-effect", "check-then-act", "forgetful", "capacity", "keyed")
KEEPS_NO_KEYS = ("status-query", "unkeyed")
ALL = (*KEEPS_KEYS, *KEEPS_NO_KEYS)
CLIENTS = 12


class Configured(Receiver):
    """A receiver that was started with options."""

    def __init__(self, box: ProcessBox, directory: Path, kind: str, options: Sequence[str], halt_at: str | None) -> None:
        self.directory = directory
        environment = {"HALT_AT": halt_at} if halt_at else {}
        self.process = box.start("receivers", (kind, "--dir", str(directory), *options), environment)
        self.port = self.process.port

    def effects_file(self) -> list[dict[str, Any]]:
        """The records of the journal of effects."""
        return records(self.directory, "effects")

    def log(self) -> list[tuple[str, str]]:
        """Type and id of everything that was logged, in order."""
        return [(record["type"], record["id"]) for record in records(self.directory, "arrivals")]

    def queries(self) -> list[tuple[str, str, str]]:
        """Id, key and answer of the status queries."""
        logged = [record for record in records(self.directory, "arrivals") if record["type"] == "query"]
        return [(each["id"], each["data"]["key"], each["data"]["answer"]) for each in logged]

    def ask(self, key: str) -> Response:
        """A status query for a key that needs no escapes, or is escaped already."""
        return self.request("GET", f"/operations/{key}")

    def limit(self, file_bytes: int) -> None:
        """Let no file of the receiver grow beyond this size, -1 for no limit."""
        psutil.Process(self.process.pid).rlimit(psutil.RLIMIT_FSIZE, (file_bytes, psutil.RLIM_INFINITY))


class Open:
    """Starts receivers on one directory, with a clock beside it; killed at the end."""

    def __init__(self, box: ProcessBox, root: Path) -> None:
        self._box = box
        self.directory, self.clock = root / "receiver", root / "clock"
        self.started: list[Configured] = []

    def __call__(self, kind: str, *options: str, halt_at: str | None = None) -> Configured:
        if kind == "forgetful" and "--clock" not in options:
            if not self.clock.exists():
                self.clock.write_text("0")
            options = (*options, "--clock", str(self.clock))
        self.started.append(Configured(self._box, self.directory, kind, options, halt_at))
        return self.started[-1]

    def refused(self, *arguments: str) -> Ended:
        """Start a receiver that must refuse."""
        running = self._box.launch("receivers", (*arguments, "--dir", str(self.directory)))
        ready = self._box.do(running._child.wait_ready(BOUND_SECONDS))
        ended = running.wait() if ready is None else running.kill()
        assert ready is None, "it serves"
        assert ended.stdout == ""
        assert "Traceback" not in ended.stderr
        return ended


@pytest.fixture
def opened(box: ProcessBox, tmp_path: Path) -> Iterator[Open]:
    opener = Open(box, tmp_path)
    yield opener
    for each in opener.started:
        each.process.kill()


def dies(running: Receiver, key: str = "k", body: bytes = BODY) -> Ended:
    """Send a request that kills the receiver."""
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        running.post(body, key)
    ended = running.process.wait()
    assert ended.exit_code == 23
    return ended


def outcome(response: Response) -> tuple[int, bytes, str | None]:
    return response.status, response.body, response.replayed


def applied(number: int) -> tuple[int, bytes, str | None]:
    return 200, result(number), None


def replayed(number: int) -> tuple[int, bytes, str | None]:
    return 200, result(number), "true"


# What all kinds with keys refuse, and what none of them does wrong.


@pytest.mark.parametrize("kind", KEEPS_KEYS)
def test_a_kind_with_keys_refuses_requests_without_one_and_does_nothing(opened: Open, kind: str) -> None:
    running = opened(kind)
    refusals: Sequence[tuple[Headers, str]] = (
        ([], "key_missing"),
        ([(KEY, "")], "key_empty"),
        ([(KEY, "k"), (KEY, "k")], "key_repeated"),
        ([(KEY, "k" * 256)], "key_overlong"),
        ([(KEY, "two words")], "key_not_ascii"),
    )
    for headers, reason in refusals:
        response = running.request("POST", "/operations", headers, BODY)
        assert (response.status, response.json["error"]) == (400, reason)
    assert running.answers() == [("refused", reason, 400) for _headers, reason in refusals]
    assert running.effects_file() == []
    assert outcome(running.post(BODY, "k")) == applied(1)


@pytest.mark.parametrize("kind", KEEPS_KEYS)
@pytest.mark.parametrize("status", [409, 422])
def test_another_body_under_a_known_key_is_a_conflict_with_the_chosen_status(opened: Open, kind: str, status: int) -> None:
    running = opened(kind, "--conflict-status", str(status), "--capacity", "9")
    assert outcome(running.post(BODY, "k")) == applied(1)
    response = running.post(OTHER, "k")
    assert (response.status, response.json["error"], response.replayed) == (status, "body_differs", None)
    assert outcome(running.post(BODY, "k")) == replayed(1)
    assert running.answers() == [("applied", None, 200), ("conflict", "body_differs", status), ("replayed", None, 200)]
    (effect,) = running.effects_file()
    assert effect["data"]["fingerprint"] == fingerprint(BODY)


@pytest.mark.parametrize("kind", KEEPS_KEYS)
def test_a_kind_with_keys_replays_as_long_as_nothing_goes_wrong(opened: Open, kind: str) -> None:
    running = opened(kind, "--capacity", "9")
    assert [outcome(running.post(BODY, "a")) for _time in range(3)] == [applied(1), replayed(1), replayed(1)]
    assert [outcome(running.post(BODY, "b")) for _time in range(2)] == [applied(2), replayed(2)]
    assert [each["data"]["key"] for each in running.effects_file()] == ["a", "b"]
    expected = ["a", "b"] if kind in ("keyed", "capacity") else ["effect-1", "effect-2"]
    assert [each["id"] for each in running.effects_file()] == expected


@pytest.mark.parametrize("kind", ["effect-then-key", "key-then-effect", "check-then-act", "forgetful", "capacity"])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_durable_kind_remembers_across_a_restart(opened: Open, kind: str, end: str) -> None:
    first = opened(kind, "--capacity", "2")
    assert outcome(first.post(BODY, "k")) == applied(1)
    getattr(first.process, end)()
    second = opened(kind, "--capacity", "2")
    assert outcome(second.post(BODY, "k")) == replayed(1)
    assert second.post(OTHER, "k").status == 409
    assert outcome(second.post(BODY, "new")) == applied(2)


# Volatile registry.


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_volatile_registry_forgets_all_keys_with_the_process_and_keeps_the_effects(opened: Open, end: str) -> None:
    first = opened("volatile-registry")
    assert [outcome(first.post(BODY, "k")) for _time in range(2)] == [applied(1), replayed(1)]
    getattr(first.process, end)()
    second = opened("volatile-registry")
    assert outcome(second.post(BODY, "k")) == applied(2)
    assert outcome(second.post(BODY, "k")) == replayed(2)
    assert [each["data"]["key"] for each in second.effects_file()] == ["k", "k"]


def test_a_volatile_registry_applies_another_body_under_a_forgotten_key(opened: Open) -> None:
    opened("volatile-registry").post(BODY, "k")
    opened.started[0].process.stop()
    assert outcome(opened("volatile-registry").post(OTHER, "k")) == applied(2)


# Effect and key apart.

# What a death at this point of the key's record leaves: effects and keys after the retry, and what the retry gets.
Deaths = Mapping[str, tuple[int, int, tuple[int, bytes, str | None]]]
EFFECT_FIRST: Deaths = {
    "key.append.before": (2, 1, applied(2)),
    "key.append.torn": (2, 1, applied(2)),
    "key.append.written": (1, 1, replayed(1)),
    "key.append.synced": (1, 1, replayed(1)),
    "effect.append.before": (1, 1, applied(1)),
    "effect.append.torn": (1, 1, applied(1)),
    "effect.append.written": (2, 1, applied(2)),
    "effect.append.synced": (2, 1, applied(2)),
}
KEY_FIRST: Deaths = {
    "key.append.before": (1, 1, applied(1)),
    "key.append.torn": (1, 1, applied(1)),
    "key.append.written": (0, 1, replayed(1)),
    "key.append.synced": (0, 1, replayed(1)),
    "effect.append.before": (0, 1, replayed(1)),
    "effect.append.torn": (0, 1, replayed(1)),
    "effect.append.written": (1, 1, replayed(1)),
    "effect.append.synced": (1, 1, replayed(1)),
}


@pytest.mark.parametrize(
    ("kind", "point", "after"),
    [("effect-then-key", *each) for each in EFFECT_FIRST.items()] + [("key-then-effect", *each) for each in KEY_FIRST.items()],
)
def test_a_death_between_key_and_effect_leaves_what_the_order_of_the_two_says(
    opened: Open, kind: str, point: str, after: tuple[int, int, tuple[int, bytes, str | None]]
) -> None:
    effects, keys, retry = after
    ended = dies(opened(kind, halt_at=point))
    assert ended.stderr == f"halt(23) at {point}#1\n"
    running = opened(kind)
    assert outcome(running.post(BODY, "k")) == retry
    assert outcome(running.post(BODY, "k"))[1:] == (retry[1], "true")  # from here on it is remembered
    assert [each["id"] for each in running.effects_file()] == [f"effect-{number}" for number in range(1, effects + 1)]
    known = records(running.directory, "keys")
    assert [each["id"] for each in known] == ["k"] * keys
    assert is_complete(running.directory, "effects")
    assert is_complete(running.directory, "keys")
    assert running.answers()[0] == ("replayed" if retry[2] else "applied", None, 200)


def test_effect_then_key_knows_the_second_of_two_effects_only(opened: Open) -> None:
    dies(opened("effect-then-key", halt_at="key.append.before"))
    running = opened("effect-then-key")
    running.post(BODY, "k")
    (key,) = records(running.directory, "keys")
    assert key["data"]["effect"] == "effect-2"
    assert set(key["data"]) == {"effect", "fingerprint", "status", "result"}
    assert [each["data"]["arrival"] for each in running.effects_file()] == ["arrival-1", "arrival-2"]


def test_key_then_effect_answers_with_the_result_of_an_effect_that_there_never_was(opened: Open) -> None:
    dies(opened("key-then-effect", halt_at="effect.append.before"))
    running = opened("key-then-effect")
    assert outcome(running.post(BODY, "k")) == replayed(1)
    assert running.post(OTHER, "k").status == 409
    assert running.effects_file() == []
    answer = next(each["data"] for each in records(running.directory, "arrivals") if each["type"] == "answer")
    assert (answer["outcome"], answer["effect"]) == ("replayed", "effect-1")
    assert outcome(running.post(BODY, "other")) == applied(1)  # the loss is of that key alone


@pytest.mark.parametrize("kind", ["effect-then-key", "key-then-effect"])
def test_a_disk_that_is_full_for_the_key_is_told_and_the_receiver_goes_on(opened: Open, kind: str) -> None:
    first = opened(kind)
    for number in range(4):
        assert first.post(BODY, f"old-{number}").status == 200
    first.process.stop()
    (first.directory / "arrivals.jsonl").unlink()  # the log grows faster, and must not be what meets the bound
    running = opened(kind)
    smaller = min("keys", "effects", key=lambda name: (running.directory / f"{name}.jsonl").stat().st_size)
    running.limit((running.directory / f"{smaller}.jsonl").stat().st_size + 10)
    response = running.post(BODY, "new")
    assert (response.status, response.json["error"]) == (507, "storage_full")
    assert outcome(running.post(BODY, "old-0")) == replayed(1)
    running.limit(psutil.RLIM_INFINITY)
    assert running.post(BODY, "new").status == 200
    assert "Traceback" not in running.process.stop().stderr


# Check, then act.


def test_check_then_act_applies_two_that_both_look_before_either_acts(opened: Open) -> None:
    running = opened("check-then-act", "--gate", "2", "--work-until", "2")
    # Whoever came last has nobody to wait for, and acts first.
    assert [outcome(each) for each in crowd(running, 2)] == [applied(2), applied(1)]
    assert senders(running) == ["client_01", "client_02"]
    assert [kind for kind, _id in running.log()] == ["arrival", "arrival", "answer", "answer"]
    assert [each["data"]["key"] for each in running.effects_file()] == ["k", "k"]
    assert outcome(running.post(BODY, "k")) == replayed(2)  # whoever comes afterwards looks and finds


def test_check_then_act_does_not_mix_up_two_keys(opened: Open) -> None:
    running = opened("check-then-act", "--gate", "2", "--work-until", "2")
    assert [outcome(each) for each in crowd(running, 2, keys=("a", "b"))] == [applied(2), applied(1)]
    assert outcome(running.post(BODY, "a")) == replayed(2)
    assert outcome(running.post(BODY, "b")) == replayed(1)


# Forgetful.


@pytest.mark.parametrize(
    ("first", "later", "again"),
    [
        ("0", "59.999", replayed(1)),
        ("0", "60", applied(2)),
        ("0", "60.001", applied(2)),
        ("0", "7200", applied(2)),
        ("1700000000", "1700000059", replayed(1)),
        ("1700000000", "1700000060", applied(2)),
        ("100", "40", replayed(1)),
        ("100", "-1000000", replayed(1)),
        (" 5\n", "6\n", replayed(1)),
    ],
)
def test_a_forgetful_receiver_forgets_exactly_at_its_retention_and_not_when_the_clock_goes_back(
    opened: Open, first: str, later: str, again: tuple[int, bytes, str | None]
) -> None:
    opened.clock.write_text(first)
    running = opened("forgetful")
    assert outcome(running.post(BODY, "k")) == applied(1)
    opened.clock.write_text(later)
    assert outcome(running.post(BODY, "k")) == again
    times = [each["data"]["at_seconds"] for each in running.effects_file()]
    assert times == [float(first), float(later)][: len(times)]


def test_a_forgetful_receiver_counts_from_the_newest_effect_and_not_from_the_latest_replay(opened: Open) -> None:
    running = opened("forgetful", "--retention-seconds", "10")
    gets = []
    for now in ("0", "9", "10", "19", "20"):
        opened.clock.write_text(now)
        gets.append(outcome(running.post(BODY, "k")))
    assert gets == [applied(1), replayed(1), applied(2), replayed(2), applied(3)]


def test_a_forgetful_receiver_forgets_a_conflict_as_well_and_no_other_key(opened: Open) -> None:
    running = opened("forgetful")
    running.post(BODY, "k")
    opened.clock.write_text("30")
    running.post(BODY, "younger")
    assert running.post(OTHER, "k").status == 409
    opened.clock.write_text("60")
    assert outcome(running.post(OTHER, "k")) == applied(3)
    assert outcome(running.post(BODY, "younger")) == replayed(2)


def test_a_forgetful_receiver_remembers_the_time_across_a_restart(opened: Open) -> None:
    opened("forgetful").post(BODY, "k")
    opened.started[0].process.kill()
    opened.clock.write_text("59")
    second = opened("forgetful")
    assert outcome(second.post(BODY, "k")) == replayed(1)
    opened.clock.write_text("60")
    assert outcome(second.post(BODY, "k")) == applied(2)


@pytest.mark.parametrize("content", [None, b"", b"noon", b"\xff", b"12:00", b"1 2", b"nan", b"inf", b"-inf"])
def test_a_clock_that_is_missing_or_holds_no_number_is_bad_input_at_the_start(opened: Open, content: bytes | None) -> None:
    if content is not None:
        opened.clock.write_bytes(content)
    ended = opened.refused("forgetful", "--clock", str(opened.clock))
    assert ended.exit_code == 2
    assert ended.stderr.startswith("receiver: a forgetful receiver needs --clock FILE with a number of seconds in it: ")


def test_no_clock_at_all_is_bad_input_and_so_is_a_folder(opened: Open, tmp_path: Path) -> None:
    for arguments, said in (((), "no file was named"), (("--clock", str(tmp_path)), "Is a directory")):
        ended = opened.refused("forgetful", *arguments)
        assert ended.exit_code == 2
        assert "needs --clock FILE" in ended.stderr
        assert said in ended.stderr


def test_a_receiver_that_is_refused_for_its_clock_has_changed_nothing(opened: Open, tmp_path: Path) -> None:
    assert opened.refused("forgetful").exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, b"", b"noon", b"\xff", b"nan", b"inf"])
def test_a_clock_that_breaks_in_the_middle_does_nothing_is_answered_and_told(opened: Open, content: bytes | None) -> None:
    running = opened("forgetful")
    assert outcome(running.post(BODY, "k")) == applied(1)
    opened.clock.unlink()
    if content is not None:
        opened.clock.write_bytes(content)
    for key in ("k", "new"):
        response = running.post(BODY, key)
        assert response.status in (500, 503)
        assert response.replayed is None
    assert len(running.effects_file()) == 1
    opened.clock.write_text("1")
    assert outcome(running.post(BODY, "k")) == replayed(1)
    assert outcome(running.post(BODY, "new")) == applied(2)
    # Every arrival has its answer, also those that could not be served.
    assert [kind for kind, _id in running.log()] == ["arrival", "answer"] * 5
    assert [each[0] for each in running.answers()] == ["applied", "failed", "failed", "replayed", "applied"]
    assert "Traceback" not in running.process.stop().stderr


@pytest.mark.parametrize("seconds", ["-1", "nan", "soon"])
def test_a_retention_that_is_none_is_bad_input(opened: Open, seconds: str) -> None:
    opened.clock.write_text("0")
    ended = opened.refused("forgetful", "--clock", str(opened.clock), f"--retention-seconds={seconds}")
    assert ended.exit_code == 2
    assert "--retention-seconds" in ended.stderr


# Capacity.


@pytest.mark.parametrize("capacity", ["0", "-1", "1.5", "many", ""])
def test_a_capacity_that_is_none_is_bad_input_and_nothing_is_created(opened: Open, capacity: str, tmp_path: Path) -> None:
    ended = opened.refused("capacity", f"--capacity={capacity}")
    assert ended.exit_code == 2
    assert "--capacity" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_registry_refuses_new_keys_and_still_replays_and_holds_conflicts(opened: Open) -> None:
    running = opened("capacity", "--capacity", "2")
    for number, key in enumerate("ab", 1):
        assert outcome(running.post(BODY, key)) == applied(number)
    for _time in range(2):
        response = running.post(BODY, "c")
        assert (response.status, response.json["error"], response.replayed) == (429, "registry_full", None)
        assert "2 places" in response.json["message"]
    assert [outcome(running.post(BODY, key)) for key in "ab"] == [replayed(1), replayed(2)]
    assert running.post(OTHER, "a").status == 409
    assert [each["id"] for each in running.effects_file()] == ["a", "b"]
    assert running.answers()[2:4] == [("refused", "registry_full", 429)] * 2


def test_a_full_registry_is_full_after_a_restart_and_has_room_with_a_larger_capacity(opened: Open) -> None:
    opened("capacity").post(BODY, "a")
    opened.started[0].process.kill()
    second = opened("capacity")
    assert second.post(BODY, "b").status == 429
    assert outcome(second.post(BODY, "a")) == replayed(1)
    second.process.stop()
    assert outcome(opened("capacity", "--capacity", "2").post(BODY, "b")) == applied(2)


# Status query.


@pytest.mark.parametrize("headers", [[], [(KEY, "k")], [(KEY, "k"), (KEY, "k")], [(KEY, "")], [(KEY, "k" * 300)]])
def test_a_status_query_receiver_applies_whatever_comes(opened: Open, headers: Headers) -> None:
    running = opened("status-query")
    for number in (1, 2):
        assert outcome(running.request("POST", "/operations", headers, BODY)) == applied(number)
    assert [each["id"] for each in running.effects_file()] == ["effect-1", "effect-2"]


def test_a_status_query_tells_whether_and_with_which_result_and_is_no_arrival(opened: Open) -> None:
    running = opened("status-query")
    assert running.ask("k").json == {"applied": False}
    assert outcome(running.post(BODY, "k")) == applied(1)
    response = running.ask("k")
    assert (response.status, response.headers["content-type"]) == (200, "application/json")
    assert response.json == {"applied": True, "status": 200, "result": result(1).decode()}
    assert running.ask("K").json == {"applied": False}
    running.post(OTHER, "k")
    assert running.ask("k").json["result"] == result(2).decode()  # the latest under this reference
    assert running.queries() == [
        ("query-1", "k", "not_applied"),
        ("query-2", "k", "applied"),
        ("query-3", "K", "not_applied"),
        ("query-4", "k", "applied"),
    ]
    assert [each["method"] for each in running.arrivals()] == ["POST", "POST"]
    assert running.effects()["count"] == 2


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("a/b", "a%2Fb"),
        ("a/b", "a/b"),
        ("a%2Fb", "a%252Fb"),
        ("a?b#c", "a%3Fb%23c"),
        ("a+b", "a+b"),
        ("a+b", "a%2Bb"),
        ("100%", "100%25"),
        ("..", "%2E%2E"),
        ("..", ".."),
        (".", "."),
        ('a,b;c="d"#1', "a%2Cb%3Bc%3D%22d%22%231"),
        ("~!$&'()*", "~!$&'()*"),
        ("k" * 255, "k" * 255),
    ],
)
def test_a_key_is_found_by_its_percent_encoded_form(opened: Open, key: str, path: str) -> None:
    running = opened("status-query")
    running.post(BODY, key)
    assert running.ask(path).json["applied"] is True
    assert running.queries() == [("query-1", key, "applied")]


@pytest.mark.parametrize("path", ["", "%20", "%00", "%C3%BC", "%FF", "%", "%zz", "a%2", "k?x=1", "/k", "k/"])
def test_a_query_for_what_cannot_have_been_applied_is_answered_in_the_negative(opened: Open, path: str) -> None:
    running = opened("status-query")
    running.post(BODY)  # applied without a key: no reference finds it
    response = running.ask(path)
    assert (response.status, response.json) == (200, {"applied": False})
    (query,) = running.queries()
    assert (query[0], query[2]) == ("query-1", "not_applied")


def test_a_very_long_key_is_answered_and_logged_up_to_the_bound_of_a_key(opened: Open) -> None:
    running = opened("status-query")
    running.post(BODY, "k" * 255)
    assert running.ask("k" * 256).json == {"applied": False}  # longer than any key: not the one that it begins with
    assert running.ask("k" * 7000).json == {"applied": False}
    assert running.queries() == [(f"query-{number}", "k" * 255, "not_applied") for number in (1, 2)]
    assert running.ask("k" * 20_000).status in (400, 414)  # beyond what a request line may hold
    assert running.process.stop().exit_code == 0


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != "status-query"])
def test_other_kinds_have_no_status_query_and_do_not_log_one(opened: Open, kind: str) -> None:
    running = opened(kind)
    running.post(BODY, "k")
    before = (running.directory / "arrivals.jsonl").read_bytes()
    response = running.ask("k")
    assert (response.status, response.json["error"]) == (404, "not_found")
    assert (running.directory / "arrivals.jsonl").read_bytes() == before


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE"])
def test_another_method_on_an_operation_is_a_refused_arrival_and_does_nothing(opened: Open, method: str) -> None:
    running = opened("status-query")
    response = running.request(method, "/operations/k", [(KEY, "k")], None if method == "HEAD" else BODY)
    assert response.status in (404, 405)
    assert running.effects_file() == []
    assert running.queries() == []
    (arrival,) = running.arrivals()
    assert (arrival["method"], arrival["route"], arrival["fingerprint"]) == (method, "/operations/k", None)
    assert [each[0] for each in running.answers()] == ["refused"]
    assert running.ask("k").json == {"applied": False}


def test_queries_go_on_counting_after_a_restart(opened: Open) -> None:
    first = opened("status-query")
    first.post(BODY, "k")
    first.ask("k")
    first.process.kill()
    second = opened("status-query")
    assert second.ask("k").json["applied"] is True
    second.post(BODY, "k")
    assert second.log() == [
        ("arrival", "arrival-1"),
        ("answer", "arrival-1"),
        ("query", "query-1"),
        ("query", "query-2"),
        ("arrival", "arrival-2"),
        ("answer", "arrival-2"),
    ]


def test_a_query_that_cannot_be_logged_is_answered_all_the_same_and_leaves_no_gap(opened: Open) -> None:
    running = opened("status-query")
    running.post(BODY, "k")
    running.limit(1)
    assert running.ask("k").json["applied"] is True
    assert running.ask("other").json == {"applied": False}
    running.limit(psutil.RLIM_INFINITY)
    assert running.ask("k").json["applied"] is True
    assert [each[0] for each in running.queries()] == ["query-1"]
    ended = running.process.stop()
    assert "cannot be written: File too large" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_after_a_full_disk_and_a_restart_queries_are_answered_and_logged(opened: Open) -> None:
    first = opened("status-query")
    first.post(BODY, "k")
    first.limit(1)
    first.ask("k")
    first.limit(psutil.RLIM_INFINITY)
    first.ask("k")
    first.process.stop()
    second = opened("status-query")
    response = second.ask("other")
    assert (response.status, response.json) == (200, {"applied": False})
    assert [each[1:] for each in second.queries()] == [("k", "applied"), ("other", "not_applied")]
    assert "Traceback" not in second.process.stop().stderr


# Many at once: the gate, work that takes long, duplicates in flight.


def crowd(
    running: Receiver, count: int, *, keys: Sequence[str] = ("k",), bodies: Sequence[bytes] = (BODY,), backwards: bool = True
) -> list[Response]:
    """So many requests on connections of their own, their senders called client_01 …; the answers in the order of the names.

    They are sent in the opposite order, one after the other: the gate, not the order of coming, is to decide.
    """
    with ExitStack() as stack:
        connections = [stack.enter_context(closing(connect(running.port))) for _number in range(count)]
        order = range(count - 1, -1, -1) if backwards else range(count)
        for number in order:
            body = bodies[number % len(bodies)]
            headers = [
                (KEY, keys[number % len(keys)]),
                ("Halt23-Sender", f"client_{number + 1:02}"),
                ("Content-Length", str(len(body))),
            ]
            connections[number].sendall(head("POST", "/operations", headers) + body)
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(read_response, connections))


def senders(running: Receiver) -> list[str]:
    return [each["sender"] for each in running.arrivals()]


IN_ORDER = [f"client_{number:02}" for number in range(1, CLIENTS + 1)]


@pytest.mark.parametrize("backwards", [True, False])
def test_twelve_at_the_gate_are_served_in_the_order_of_their_names_one_applied_eleven_replayed(
    opened: Open, backwards: bool
) -> None:
    running = opened("keyed", "--gate", "12", "--work-until", "12")
    answers = crowd(running, CLIENTS, backwards=backwards)
    assert [outcome(each) for each in answers] == [applied(1)] + [replayed(1)] * 11
    assert senders(running) == IN_ORDER
    assert running.log() == [(kind, f"arrival-{n}") for kind in ("arrival", "answer") for n in range(1, CLIENTS + 1)]
    assert len(running.effects_file()) == 1


def test_duplicates_in_flight_are_told_to_come_again_where_that_was_chosen(opened: Open) -> None:
    running = opened("keyed", "--gate", "12", "--work-until", "12", "--in-flight", "reject")
    answers = crowd(running, CLIENTS)
    assert outcome(answers[0]) == applied(1)
    assert [(each.status, each.json["error"], each.replayed) for each in answers[1:]] == [(409, "key_in_flight", None)] * 11
    assert senders(running) == IN_ORDER
    assert running.answers() == [("refused", "key_in_flight", 409)] * 11 + [("applied", None, 200)]
    assert outcome(running.post(BODY, "k")) == replayed(1)  # and when they come again they get the result


@pytest.mark.parametrize(("in_flight", "error", "status"), [("wait", "body_differs", 422), ("reject", "key_in_flight", 409)])
def test_another_body_in_flight_is_never_applied(opened: Open, in_flight: str, error: str, status: int) -> None:
    options = ("--gate", "2", "--work-until", "2", "--in-flight", in_flight, "--conflict-status", "422")
    running = opened("keyed", *options)
    first, second = crowd(running, 2, bodies=(BODY, OTHER))
    assert outcome(first) == applied(1)
    assert (second.status, second.json["error"]) == (status, error)
    assert running.post(OTHER, "k").status == 422
    assert [each["data"]["fingerprint"] for each in running.effects_file()] == [fingerprint(BODY)]


def test_requests_under_different_keys_do_not_wait_for_each_other(opened: Open) -> None:
    running = opened("keyed", "--gate", "12", "--work-until", "12", "--in-flight", "reject")
    answers = crowd(running, CLIENTS, keys=[f"k-{number:02}" for number in range(CLIENTS)])
    # The last one's coming ends everybody's work; it has nothing to wait for itself.
    assert [outcome(each) for each in answers] == [applied(number) for number in (*range(2, CLIENTS + 1), 1)]
    assert {each["id"] for each in running.effects_file()} == {f"k-{number:02}" for number in range(CLIENTS)}


def test_the_gate_without_long_work_serves_one_after_the_other(opened: Open) -> None:
    running = opened("keyed", "--gate", "12")
    answers = crowd(running, CLIENTS)
    assert [outcome(each) for each in answers] == [applied(1)] + [replayed(1)] * 11
    assert running.log() == [(kind, f"arrival-{n}") for n in range(1, CLIENTS + 1) for kind in ("arrival", "answer")]


def test_the_gate_opens_once_and_stays_open(opened: Open) -> None:
    running = opened("keyed", "--gate", "3", "--work-until", "3")
    crowd(running, 3)
    assert outcome(running.post(BODY, "k")) == replayed(1)
    assert outcome(running.post(BODY, "new")) == applied(2)


def test_work_takes_until_enough_have_come_and_no_time_afterwards(opened: Open) -> None:
    running = opened("keyed", "--work-until", "2")
    with closing(connect(running.port)) as slow:
        slow.sendall(head("POST", "/operations", [(KEY, "a"), ("Content-Length", str(len(BODY)))]) + BODY)
        assert running.effects()["count"] == 0
        running.post(BODY, "b")
        assert read_response(slow).status == 200
    assert outcome(running.post(BODY, "c")) == applied(3)


def test_effects_and_queries_are_not_held_at_the_gate(opened: Open) -> None:
    running = opened("status-query", "--gate", "2")
    assert running.effects()["count"] == 0
    assert running.ask("k").json == {"applied": False}
    crowd(running, 2)
    assert running.effects()["count"] == 2


def test_a_client_that_gives_up_at_the_gate_does_not_keep_the_others_out(opened: Open) -> None:
    running = opened("keyed", "--gate", "2", "--work-until", "2")
    with closing(connect(running.port)) as gone:
        headers = [(KEY, "k"), ("Halt23-Sender", "client_00"), ("Content-Length", "2"), ("Expect", "100-continue")]
        gone.sendall(head("POST", "/operations", headers))
        assert gone.recv(100).startswith(b"HTTP/1.1 100")
        gone.sendall(b"{}")
    assert running.post(b"{}", "k").status == 200
    assert len(running.effects_file()) == 1


def hold(stack: ExitStack, running: Receiver, key: str) -> None:
    """Send a request that is being served, and stays so."""
    connection = stack.enter_context(closing(connect(running.port)))
    headers = [(KEY, key), ("Content-Length", "2"), ("Expect", "100-continue")]
    connection.sendall(head("POST", "/operations", headers))
    assert connection.recv(100).startswith(b"HTTP/1.1 100")
    connection.sendall(b"{}")


def test_a_receiver_that_waits_for_more_than_come_still_ends_when_asked(opened: Open, tmp_path: Path) -> None:
    receivers = []
    for option in ("--gate", "--work-until"):
        opened.directory = tmp_path / option
        receivers.append(opened("keyed", option, "3"))
    with ExitStack() as stack:
        for running in receivers:
            for number in range(2):
                hold(stack, running, f"k-{number}")
        for running in receivers:
            running.process.send(signal.SIGTERM)
        # No request in progress is waited for longer than that; the rest is for a busy machine.
        ends = [running.process.wait(2 * SHUTDOWN_SECONDS) for running in receivers]
    for running, ended in zip(receivers, ends, strict=True):
        assert (ended.exit_code, ended.signal) == (0, None)
        assert "Traceback" not in ended.stderr
        assert running.effects_file() == []


@pytest.mark.parametrize("option", ["--gate", "--work-until"])
@pytest.mark.parametrize("number", ["-1", "x", "1.5"])
def test_a_crowd_that_is_no_number_is_bad_input(opened: Open, option: str, number: str) -> None:
    ended = opened.refused("keyed", f"{option}={number}")
    assert ended.exit_code == 2
    assert option in ended.stderr


# Options in general.


@pytest.mark.parametrize(
    "arguments",
    [
        ("keyed", "--conflict-status", "400"),
        ("keyed", "--in-flight", "ignore"),
        ("keyed", "--nonsense"),
        ("keyed", "--capacity", "x"),
        ("Keyed",),
        ("key-then",),
    ],
)
def test_an_option_or_a_value_that_there_is_not_is_bad_input(opened: Open, arguments: tuple[str, ...], tmp_path: Path) -> None:
    ended = opened.refused(*arguments)
    assert ended.exit_code == 2
    assert "usage: python -m receivers" in ended.stderr
    assert list(tmp_path.iterdir()) == []


EVERY_OPTION = ("--capacity", "1", "--retention-seconds", "0", "--conflict-status", "422", "--in-flight", "reject")


@pytest.mark.parametrize(
    ("kind", "gets"),
    [
        ("keyed", [applied(1), replayed(1), applied(2)]),
        ("volatile-registry", [applied(1), replayed(1), applied(2)]),
        ("effect-then-key", [applied(1), replayed(1), applied(2)]),
        ("key-then-effect", [applied(1), replayed(1), applied(2)]),
        ("check-then-act", [applied(1), replayed(1), applied(2)]),
        ("unkeyed", [applied(1), applied(2), applied(3)]),
        ("status-query", [applied(1), applied(2), applied(3)]),
    ],
)
def test_options_of_another_kind_change_nothing(
    opened: Open, kind: str, gets: list[tuple[int, bytes, str | None]], tmp_path: Path
) -> None:
    running = opened(kind, *EVERY_OPTION, "--clock", str(tmp_path / "no clock"))
    assert [outcome(running.post(BODY, key)) for key in ("a", "a", "b")] == gets


JOURNALS: Mapping[str, set[str]] = {kind: {"effects.jsonl", "arrivals.jsonl"} for kind in ALL} | {
    kind: {"effects.jsonl", "arrivals.jsonl", "keys.jsonl"} for kind in ("effect-then-key", "key-then-effect")
}


@pytest.mark.parametrize("kind", ALL)
def test_a_kind_keeps_its_own_files_and_no_others_and_ends_in_order(opened: Open, kind: str) -> None:
    running = opened(kind)
    running.post(BODY, "k")
    ended = running.process.stop()
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "")
    assert {path.name for path in running.directory.iterdir()} == JOURNALS[kind]
    (effect,) = running.effects_file()
    common = {"arrival", "key", "fingerprint", "number", "status", "result"}
    assert set(effect["data"]) == common | ({"at_seconds"} if kind == "forgetful" else set())
    assert effect["data"]["key"] == (None if kind == "unkeyed" else "k")


def second_on_the_same(opened: Open, kind: str) -> Ended:
    return opened.refused(kind, "--clock", str(opened.clock))


def damaged(opened: Open, kind: str) -> Ended:
    running = opened.started[0]
    running.process.stop()
    path = running.directory / "keys.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"k"', b'"j"', 1))
    return opened.refused(kind)


@pytest.mark.parametrize("kind", ["effect-then-key", "key-then-effect"])
@pytest.mark.parametrize(("cause", "code"), [(second_on_the_same, 13), (damaged, 14)])
def test_the_registry_of_keys_is_locked_and_checked_as_every_journal(
    opened: Open, kind: str, cause: Callable[[Open, str], Ended], code: int
) -> None:
    opened(kind).post(BODY, "k")
    assert cause(opened, kind).exit_code == code
