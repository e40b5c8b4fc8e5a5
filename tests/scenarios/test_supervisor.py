"""The supervisor and its spawner: both ways of spawning mean the same, every wait has a bound, nobody outlives the harness."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from scenarios.engine.output import KEPT_BYTES, Output
from scenarios.engine.supervisor import Launch, Supervisor
from scenarios.errors import HarnessBug
from tests.scenarios.watch import Watch
from tests.support import ROOT, Ended, ProcessBox

PROGRAMS = "tests.scenarios.programs"
BOUND_SECONDS = 20.0


@pytest.fixture(scope="module", params=["fork", "exec"])
def box(request: pytest.FixtureRequest) -> Iterator[ProcessBox]:
    with ProcessBox(request.param) as opened:
        yield opened


def run(box: ProcessBox, *arguments: str) -> Ended:
    return box.run(PROGRAMS, arguments)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "last_word"),
    [
        (("exit", "0"), 0, ""),
        (("exit", "255"), 255, ""),
        (("fail",), 1, "RuntimeError: a bug of its own"),
        (("usage",), 2, "program: error: unrecognized arguments: --nonsense"),
        (("halt",), 23, ""),
        (("text",), 1, "it gave up"),
    ],
)
def test_an_exit_code_is_the_programs_own(box: ProcessBox, arguments: tuple[str, ...], exit_code: int, last_word: str) -> None:
    ended = run(box, *arguments)
    assert (ended.exit_code, ended.signal, ended.stdout) == (exit_code, None, "")
    assert (ended.stderr.strip().splitlines() or [""])[-1] == last_word


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGABRT", "SIGUSR1"])
def test_a_signal_is_not_taken_for_an_exit_code(box: ProcessBox, name: str) -> None:
    ended = run(box, "raise_signal", name)
    assert (ended.exit_code, ended.signal) == (None, name)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_from_the_harness_ends_a_program_as_it_would_anywhere(box: ProcessBox, number: signal.Signals) -> None:
    running = box.start(PROGRAMS, ("wait",))
    running.send(number)
    ended = running.wait()
    assert (ended.exit_code, ended.signal, ended.stdout) == (None, number.name, "")


def test_what_an_interrupted_program_had_printed_is_kept(box: ProcessBox) -> None:
    # Python flushes its output when a Ctrl-C ends it; standard output is not volatile, so both ways of spawning must.
    running = box.start(PROGRAMS, ("print_and_wait",))
    running.send(signal.SIGINT)
    assert running.wait().stdout == "in the buffer\n"


def test_a_program_that_does_not_exist_fails_by_itself_and_harms_nobody(box: ProcessBox) -> None:
    ended = box.run("no.such.module", ())
    assert ended.exit_code not in (0, 23)
    assert "no.such.module" in ended.stderr or "No module named 'no'" in ended.stderr
    assert run(box, "exit", "0").exit_code == 0


def test_a_directory_that_does_not_exist_fails_by_itself_and_harms_nobody(box: ProcessBox, tmp_path: Path) -> None:
    ended = box.run(PROGRAMS, ("exit", "0"), directory=tmp_path / "nowhere")
    assert ended.exit_code not in (0, 23)
    assert "nowhere" in ended.stderr
    assert run(box, "exit", "0").exit_code == 0


@pytest.mark.parametrize("excess", [0, 1, 1_000_000])
def test_output_is_kept_up_to_a_bound_and_says_how_much_was_cut(box: ProcessBox, excess: int) -> None:
    ended = run(box, "flood", str(KEPT_BYTES + excess))
    mark = f"… [{excess} bytes cut]" if excess else ""
    assert KEPT_BYTES == 65_536
    assert ended.exit_code == 0
    assert ended.stdout == "o" * KEPT_BYTES + mark
    assert ended.stderr == "e" * KEPT_BYTES + mark


def test_standard_input_is_empty(box: ProcessBox) -> None:
    assert run(box, "stdin").stdout == "0\n"


def test_the_environment_holds_the_fixed_variables_and_what_was_given(box: ProcessBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALT_AT", "send.before")
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    environment = json.loads(box.run(PROGRAMS, ("environment",), {"GIVEN": "ü = 1"}).stdout)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    fixed = {"LANG": "C.UTF-8", "TZ": "UTC", "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    assert environment == {**kept, **fixed, "GIVEN": "ü = 1"}


def test_the_environment_given_to_one_process_does_not_reach_the_next(box: ProcessBox) -> None:
    box.run(PROGRAMS, ("exit", "0"), {"GIVEN": "1"})
    assert "GIVEN" not in json.loads(run(box, "environment").stdout)


def test_a_program_starts_in_its_directory_in_a_session_of_its_own_with_three_descriptors(
    box: ProcessBox, tmp_path: Path
) -> None:
    found = json.loads(box.run(PROGRAMS, ("place",), directory=tmp_path).stdout)
    assert found == {"directory": str(tmp_path), "leads_session": True, "descriptors": [0, 1, 2]}


def test_a_wait_ends_at_its_bound_and_the_process_goes_on(box: ProcessBox) -> None:
    running = box.launch(PROGRAMS, ("silent",))
    with pytest.raises(TimeoutError):
        running.wait(0.05)
    with pytest.raises(TimeoutError):
        box.do(running._child.wait_ready(0.05))
    assert psutil.pid_exists(running.pid)
    assert running.kill().signal == "SIGKILL"


def test_a_process_that_ends_without_ready_is_told_at_once(box: ProcessBox) -> None:
    running = box.launch(PROGRAMS, ("exit", "3"))
    assert box.do(running._child.wait_ready(BOUND_SECONDS)) is None


def test_signalling_an_ended_process_is_harmless(box: ProcessBox) -> None:
    running = box.launch(PROGRAMS, ("exit", "0"))
    assert running.wait().exit_code == 0
    running.send(signal.SIGKILL)
    assert run(box, "exit", "4").exit_code == 4


def test_many_processes_at_once_end_each_with_its_own_code(box: ProcessBox) -> None:
    running = [box.launch(PROGRAMS, ("exit", str(code))) for code in range(12)]
    assert [each.wait().exit_code for each in running] == list(range(12))


# The READY line, as it comes through a pipe.


async def written(*parts: bytes) -> Output:
    """What an output has made of these writes, each of which it saw before the next."""
    read, write = os.pipe()
    output = Output(asyncio.get_running_loop(), read)
    seen = 0
    try:
        async with asyncio.timeout(BOUND_SECONDS):
            for part in parts:
                os.write(write, part)
                seen += len(part)
                # An output tells of lines, and nobody but this test wants to know of bytes.
                while len(output.text()) + (len(output.ready_line) + 1 if output.ready_line else 0) < seen:  # noqa: ASYNC110
                    await asyncio.sleep(0)
    finally:
        os.close(write)
    return output


async def test_a_ready_line_split_over_writes_is_found_when_it_is_complete() -> None:
    for cut in range(1, len(b"before\nREADY 127.0.0.1:1\n")):
        whole = b"before\nREADY 127.0.0.1:1\n"
        output = await written(whole[:cut])
        assert (output.ready_line, output.ready_or_complete.is_set()) == (None, False)
        output.close()
        output = await written(whole[:cut], whole[cut:], b"after\n")
        assert output.ready_line == "READY 127.0.0.1:1"
        assert output.ready_or_complete.is_set()
        assert output.text() == "before\nafter\n"
        output.close()


async def test_a_line_that_only_holds_the_word_ready_is_no_ready_line() -> None:
    output = await written(b"not READY yet\n READY 1\nREADY\n")
    assert output.ready_line is None
    output.close()


async def test_bytes_that_are_no_text_are_kept_readable() -> None:
    read, write = os.pipe()
    output = Output(asyncio.get_running_loop(), read)
    os.write(write, b"\xff\xfe ok\n")
    os.close(write)
    await asyncio.wait_for(output.complete.wait(), BOUND_SECONDS)
    assert output.text() == "\\xff\\xfe ok\n"


# Nobody outlives the harness.


@pytest.mark.parametrize("spawn", ["fork", "exec"])
def test_closing_the_supervisor_ends_children_and_what_they_left_behind(spawn: str) -> None:
    with ProcessBox(spawn) as box:
        ending = box.start(PROGRAMS, ("daemon", "end"))
        waiting = box.start(PROGRAMS, ("daemon", "wait"))
        assert ending.wait().exit_code == 0
        pids = [waiting.pid, ending.port, waiting.port, psutil.Process(waiting.pid).ppid()]
        watch = Watch(pids)
        assert len(watch) >= 3
    watch.assert_all_end()


def test_closing_the_supervisor_ends_also_those_that_are_forked_meanwhile(tmp_path: Path) -> None:
    fifo = tmp_path / "held"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with ProcessBox() as box:
            box.start(PROGRAMS, ("breed", str(fifo)))
            assert not select.select([reading], [], [], 0)[0]  # held: nobody has written, and it is not at its end
        assert os.read(reading, 1) == b""  # at its end: no writer is left
    finally:
        os.close(reading)


@pytest.mark.parametrize("spawn", ["fork", "exec"])
def test_a_killed_spawner_is_told_as_a_fault_of_the_harness_and_no_child_survives(spawn: str) -> None:
    with ProcessBox(spawn) as box:
        running = box.start(PROGRAMS, ("wait",))
        spawner = psutil.Process(psutil.Process(running.pid).ppid())
        watch = Watch([running.pid, spawner.pid])
        spawner.kill()
        with pytest.raises(HarnessBug, match="spawner ended unexpectedly"):
            running.wait()
        with pytest.raises(HarnessBug, match="spawner is gone"):
            box.launch(PROGRAMS, ("wait",))
    watch.assert_all_end()


@pytest.mark.parametrize("spawn", ["fork", "exec"])
def test_a_killed_harness_leaves_no_process_behind(spawn: str) -> None:
    command = [sys.executable, "-m", "tests.scenarios.harness", "supervisor", spawn]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as harness:
        try:
            assert harness.stdout is not None
            assert select.select([harness.stdout], [], [], BOUND_SECONDS)[0]
            watch = Watch(json.loads(harness.stdout.readline()))
            assert len(watch) >= 4
        finally:
            harness.kill()
    watch.assert_all_end()


@pytest.mark.parametrize("spawn", ["fork", "exec"])
async def test_a_start_that_is_cancelled_at_any_moment_disturbs_nothing(spawn: str) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    async with Supervisor(ROOT, spawn) as supervisor:
        launch = Launch(PROGRAMS, ("exit", "0"), ROOT, {})
        for turns in range(1, 8):
            starting = asyncio.create_task(supervisor.start(launch))
            for _turn in range(turns):
                await asyncio.sleep(0)
            starting.cancel()
            await asyncio.wait([starting], timeout=BOUND_SECONDS)
            async with asyncio.timeout(5):
                after = await supervisor.start(Launch(PROGRAMS, ("exit", "7"), ROOT, {}))
            assert (await after.wait(BOUND_SECONDS)).exit_code == 7
    assert complaints == []
