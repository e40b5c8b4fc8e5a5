"""`PAUSE_AT`: a process stops itself at a named point, says so, and goes on when it is told to."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from outbox.workflow import Intention, submit
from tests.outbox.world import World, lines, python, summary
from tests.support import BOUND_SECONDS, ProcessBox, Running

KEYS = ("turn-1", "turn-2")


class Paused:
    """Starts programs that are to pause; what still runs at the end is killed."""

    def __init__(self, box: ProcessBox) -> None:
        self._box = box
        self._started: list[Running] = []

    def launch(self, module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Running:
        running = self._box.launch(module, arguments, environment)
        self._started.append(running)
        return running

    def dispatcher(self, world: World, pause_at: str, halt_at: str | None = None, *options: str) -> Running:
        """A dispatcher that has not been waited for."""
        environment = {"PAUSE_AT": pause_at} | ({"HALT_AT": halt_at} if halt_at else {})
        return self.launch("outbox.dispatcher", ["--dir", str(world.outbox), "--receiver", world.url, *options], environment)

    def wait(self, running: Running) -> bool:
        """Wait until it stopped. False if it ended instead."""
        return self._box.do(running._child.wait_stopped(BOUND_SECONDS))

    def close(self) -> None:
        for each in self._started:
            each.kill()


@pytest.fixture
def paused(box: ProcessBox) -> Iterator[Paused]:
    opened = Paused(box)
    yield opened
    opened.close()


@pytest.fixture
def ready(world: World) -> World:
    """Two intentions and a keyed receiver."""
    for key in KEYS:
        submit(world.outbox, Intention(key, "/operations", b"{}"))
    world.start_receiver()
    return world


def is_stopped(running: Running) -> bool:
    return psutil.Process(running.pid).status() == psutil.STATUS_STOPPED


# What is refused at the start.


@pytest.mark.parametrize(
    "setting", ["", "send", "send.before#0", "send.before#x", "send.before#", "no.such_point", "SEND.BEFORE"]
)
def test_a_pause_that_cannot_be_is_refused_at_the_start_and_names_its_variable(world: World, setting: str) -> None:
    arguments = ["--dir", str(world.outbox), "--key", "k", "--body", "{}"]
    ended = world.box.run("outbox.producer", arguments, {"PAUSE_AT": setting})
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"PAUSE_AT={setting!r}: " in ended.stderr
    assert "HALT_AT" not in ended.stderr
    assert not world.outbox.exists()


def test_an_unknown_point_is_told_with_the_points_that_there_are(world: World) -> None:
    arguments = ["--dir", str(world.outbox), "--key", "k", "--body", "{}"]
    ended = world.box.run("outbox.producer", arguments, {"PAUSE_AT": "no.such_point"})
    assert "this program has no fault point 'no.such_point'" in ended.stderr
    assert "send.before" in ended.stderr


@pytest.mark.parametrize("halt_at", ["send.before", "send.before#1", "send.before#2"])
def test_halting_and_pausing_at_one_point_is_refused(ready: World, halt_at: str) -> None:
    arguments = ["--dir", str(ready.outbox), "--receiver", ready.url]
    ended = ready.box.run("outbox.dispatcher", arguments, {"HALT_AT": halt_at, "PAUSE_AT": "send.before"})
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == "dispatcher: PAUSE_AT='send.before': HALT_AT names the same point; arm one of them\n"
    assert ready.records("arrivals") == []
    assert not ready.journal("attempts").exists()


def test_a_receiver_refuses_what_cannot_be_as_well(world: World, tmp_path: Path) -> None:
    directory = tmp_path / "other"
    ended = world.box.run("receivers", ["keyed", "--dir", str(directory)], {"PAUSE_AT": "effect.append.befor"})
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "PAUSE_AT='effect.append.befor'" in ended.stderr
    assert not directory.exists()


# Ends while paused.


def test_a_paused_process_can_be_killed_and_its_lock_dies_with_it(ready: World, paused: Paused) -> None:
    running = paused.dispatcher(ready, "send.before")
    assert paused.wait(running)
    second = ready.dispatch()
    assert second.exit_code == 13  # it is alive and holds the lock
    ended = running.kill()
    assert (ended.exit_code, ended.signal, ended.stdout) == (None, "SIGKILL", "")
    assert ended.stderr == "paused at send.before#1\n"
    assert ready.records("arrivals") == []
    assert ready.dispatch().exit_code == 0
    assert ready.counts() == (2, 2, 2)


def test_a_paused_process_that_is_asked_to_end_does_so_when_it_goes_on(ready: World, paused: Paused) -> None:
    running = paused.dispatcher(ready, "send.before")
    assert paused.wait(running)
    running.send(signal.SIGTERM)
    assert is_stopped(running)
    running.send(signal.SIGCONT)
    ended = running.wait()
    assert (ended.exit_code, ended.signal) == (None, "SIGTERM")
    assert ready.records("arrivals") == []


def test_a_point_that_is_never_reached_pauses_nothing(ready: World, paused: Paused) -> None:
    running = paused.dispatcher(ready, "send.before#3")
    ended = running.wait()
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ready.counts() == (2, 2, 2)
    assert paused.wait(running) is False


# Pausing and going on.


def test_it_says_where_stops_at_once_and_goes_on_as_if_nothing_had_been(ready: World, paused: Paused) -> None:
    running = paused.dispatcher(ready, "receipt.append.before")
    assert paused.wait(running)
    assert is_stopped(running)
    assert running.running
    assert ready.counts() == (1, 0, 0)
    running.send(signal.SIGCONT)
    ended = running.wait()
    assert (ended.exit_code, ended.signal, ended.stderr) == (0, None, "paused at receipt.append.before#1\n")
    assert summary(ended) == {"intentions": 2, "delivered": 2, "history_added": 2}
    assert ready.counts() == (2, 2, 2)


def test_it_pauses_at_that_occurrence_and_at_no_other(ready: World, paused: Paused) -> None:
    running = paused.dispatcher(ready, "receipt.append.synced#2")
    assert paused.wait(running)
    assert is_stopped(running)
    assert ready.counts() == (2, 2, 1)
    running.send(signal.SIGCONT)
    ended = running.wait()
    assert (ended.exit_code, ended.stderr) == (0, "paused at receipt.append.synced#2\n")


def test_a_torn_write_can_be_looked_at_and_is_made_whole(ready: World, paused: Paused) -> None:
    running = paused.dispatcher(ready, "receipt.append.torn")
    assert paused.wait(running)
    half = ready.journal("receipts").read_bytes()
    assert half
    assert not half.endswith(b"\n")
    assert lines(ready.journal("receipts")) == []
    running.send(signal.SIGCONT)
    assert running.wait().exit_code == 0
    whole = ready.journal("receipts").read_bytes()
    assert whole.startswith(half)
    assert [each["id"] for each in ready.records("receipts")] == list(KEYS)


def test_pausing_and_halting_at_two_points_both_act_in_their_order(ready: World, paused: Paused) -> None:
    running = paused.dispatcher(ready, "send.before#2", "send.response#2")
    assert paused.wait(running)
    assert ready.counts() == (1, 1, 1)
    running.send(signal.SIGCONT)
    ended = running.wait()
    assert (ended.exit_code, ended.signal) == (23, None)
    assert ended.stderr == "paused at send.before#2\nhalt(23) at send.response#2\n"
    assert ready.counts() == (2, 1, 1)


def test_a_halt_that_comes_first_leaves_nothing_to_pause(ready: World, paused: Paused) -> None:
    running = paused.dispatcher(ready, "send.response", "send.before")
    assert paused.wait(running) is False
    assert (running.wait().exit_code, running.wait().stderr) == (23, "halt(23) at send.before#1\n")


def test_a_paused_producer_has_written_or_not_as_its_point_says(world: World, paused: Paused) -> None:
    arguments = ["--dir", str(world.outbox), "--key", "k", "--body", "{}"]
    running = paused.launch("outbox.producer", arguments, {"PAUSE_AT": "intention.append.synced"})
    assert paused.wait(running)
    assert [each["id"] for each in world.records("intentions")] == ["k"]
    running.send(signal.SIGCONT)
    assert running.wait().exit_code == 0


def test_a_paused_receiver_keeps_its_sender_waiting_and_applies_when_it_goes_on(world: World, paused: Paused) -> None:
    submit(world.outbox, Intention("turn-1", "/operations", b"{}"))
    arguments = ["keyed", "--dir", str(world.receiver_directory), "--port", str(world.port)]
    running = world.box.start("receivers", arguments, {"PAUSE_AT": "effect.append.before"})
    world.receiver = running
    sender = paused.launch("outbox.dispatcher", ["--dir", str(world.outbox), "--receiver", world.url], {})
    assert paused.wait(running)
    assert sender.running
    assert world.counts() == (0, 0, 0)
    assert len(world.records("arrivals")) == 1
    running.send(signal.SIGCONT)
    assert sender.wait().exit_code == 0
    assert world.counts() == (1, 1, 1)
    assert running.stop().stderr == "paused at effect.append.before#1\n"


def test_pausing_needs_nobody_who_reads_its_witness(box: ProcessBox, tmp_path: Path) -> None:
    # A parent of its own: the program closes its standard error, and its parent sees it stop and lets it go on.
    code = (
        "import os, signal; from outbox import faults; faults.declare('probe.here', '')\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os.close(2); faults.arm_from_environment(); faults.reach('probe.here'); faults.reach('probe.here'); os._exit(7)\n"
        "assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]); os.kill(pid, signal.SIGCONT)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7"
    )
    ended = python(code, PAUSE_AT="probe.here")
    assert (ended.returncode, ended.stderr) == (0, "")
