"""A receiver on a disk that is full: it says so, does nothing, and goes on when there is space again.

The disk is made full by the kernel's own bound on a file's size, set from outside on the running receiver.
"""

from __future__ import annotations

import psutil
import pytest

from tests.receivers.conftest import Open
from tests.receivers.http import Receiver, is_complete, records, result

KINDS = ("keyed", "unkeyed")
BODY = b"{}"


def limit(running: Receiver, file_bytes: int) -> None:
    """Let no file of the receiver grow beyond this size, -1 for no limit."""
    process = psutil.Process(running.process.pid)
    process.rlimit(psutil.RLIMIT_FSIZE, (file_bytes, psutil.RLIM_INFINITY))


def size(running: Receiver, name: str) -> int:
    return (running.directory / f"{name}.jsonl").stat().st_size


def test_a_full_disk_is_507_no_effect_and_an_old_key_still_replays(receiver: Open) -> None:
    running = receiver()
    assert running.post(BODY, "old").status == 200
    effects = (running.directory / "effects.jsonl").read_bytes()
    limit(running, 1)
    for _time in range(2):
        response = running.post(BODY, "new")
        assert (response.status, response.json["error"]) == (507, "storage_full")
    limit(running, size(running, "arrivals") + 4000)
    assert running.post(BODY, "old").replayed == "true"
    assert (running.directory / "effects.jsonl").read_bytes() == effects
    limit(running, psutil.RLIM_INFINITY)
    response = running.post(BODY, "new")
    assert (response.status, response.body, response.replayed) == (200, result(2), None)
    ended = running.process.stop()
    assert ended.exit_code == 0
    assert "cannot be written: File too large" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("room", [0, 1, 100, 300])
def test_an_effect_that_does_not_fit_is_not_applied_in_part(receiver: Open, kind: str, room: int) -> None:
    # The log of arrivals grows faster than the effects: only with a fresh log is it the effect that meets the bound.
    first = receiver(kind)
    for number in range(6):
        assert first.post(BODY, str(number)).status == 200
    first.process.stop()
    (first.directory / "arrivals.jsonl").unlink()
    running = receiver(kind)
    before = (running.directory / "effects.jsonl").read_bytes()
    limit(running, len(before) + room)
    assert running.post(BODY, "new").status == 507
    assert (running.directory / "effects.jsonl").read_bytes() == before
    assert running.answers() == [("failed", "storage_full", 507)]
    limit(running, psutil.RLIM_INFINITY)
    assert running.post(BODY, "new").body == result(7)
    assert len(records(running.directory, "effects")) == 7
    assert is_complete(running.directory, "effects")
    assert is_complete(running.directory, "arrivals")


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_record_that_does_not_fit_does_not_spoil_what_comes_after(receiver: Open, kind: str) -> None:
    # The request's record is long and is refused; its answer's record is short and would fit.
    running = receiver(kind)
    running.post(BODY, "old")
    limit(running, size(running, "arrivals") + 700)
    assert running.post(BODY, "lost", "/operations?" + "x" * 1500).status == 507
    limit(running, psutil.RLIM_INFINITY)
    for number, key in ((2, "new"), (3, "newer")):
        response = running.post(BODY, key)
        assert (response.status, response.body) == (200, result(number))
    ended = running.process.stop()
    assert "Traceback" not in ended.stderr
    log = records(running.directory, "arrivals")
    arrived = [record["id"] for record in log if record["type"] == "arrival"]
    answered = [record["id"] for record in log if record["type"] == "answer"]
    assert arrived == answered == ["arrival-1", "arrival-2", "arrival-3"]


def test_an_answer_that_cannot_be_logged_is_given_all_the_same(receiver: Open) -> None:
    # The effect is durable by then: a refusal would be a lie.
    running = receiver()
    running.post(BODY, "k")
    log = (running.directory / "arrivals.jsonl").read_bytes()
    arrival_bytes = len(log.splitlines(keepends=True)[0])
    limit(running, len(log) + arrival_bytes + 10)
    assert running.post(BODY, "k").replayed == "true"
    limit(running, psutil.RLIM_INFINITY)
    assert running.post(BODY, "k").replayed == "true"
    kept = [(record["type"], record["id"]) for record in records(running.directory, "arrivals")]
    assert kept == [(kind, "arrival-1") for kind in ("arrival", "answer")] + [("arrival", "arrival-2")] + [
        (kind, "arrival-3") for kind in ("arrival", "answer")
    ]
    assert "cannot be written" in running.process.stop().stderr


def test_a_receiver_restarts_on_what_a_full_disk_left(receiver: Open) -> None:
    first = receiver()
    first.post(BODY, "old")
    limit(first, size(first, "arrivals") + 50)
    assert first.post(BODY, "new").status == 507
    first.process.kill()
    second = receiver()
    assert second.post(BODY, "old").replayed == "true"
    assert second.post(BODY, "new").body == result(2)
