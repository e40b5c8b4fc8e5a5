"""System calls: what strace's log says, what can be struck, which windows are left, what may not follow from a failure."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from audit import campaign_calls, campaign_struck, campaign_words
from outbox.errors import BadInput
from scenarios.engine.processes import Process
from scenarios.engine.supervisor import Ending, Launch, Supervisor
from scenarios.errors import EvidenceIncomplete
from scenarios.explore import calls, strace, struck, uncovered
from scenarios.explore.calls import Call, Strike, listing, not_told_apart, parse, read_listing, strikes
from scenarios.explore.command import find, replay, shrink
from scenarios.explore.sysfaults import SysFault
from scenarios.model import Program
from tests.explore.ground import Ground, program
from tests.support import ROOT

needs_strace = pytest.mark.skipif(strace.why_not() is not None, reason=str(strace.why_not()))
CASE = Path("/case")
LOG = """\
7 openat(AT_FDCWD</case>, "/usr/lib/x.pyc", O_RDONLY|O_CLOEXEC) = 3</usr/lib/x.pyc>
7 mkdir("outbox", 0777) = 0
7 openat(AT_FDCWD</case>, ".", O_RDONLY|O_DIRECTORY) = 4</case>
7 fsync(4</case>) = 0
7 openat(AT_FDCWD</case>, "outbox/a.jsonl", O_RDWR|O_APPEND) = -1 ENOENT (No such file or directory)
7 openat(AT_FDCWD</case>, "outbox/a.jsonl", O_RDWR|O_CREAT|O_APPEND, 0644) = 5</case/outbox/a.jsonl>
7 write(3</case/points/1.sender>, "a.append.before\\n", 16) = 16
7 write(5</case/outbox/a.jsonl>, "{\\"x\\": 1, 2)", 24) = 12
8 fsync(5</case/outbox/a.jsonl> <unfinished ...>
7 sendto(6<UNIX-STREAM:[1->2]>, "\\0", 1, 0, NULL, 0) = 1
8 <... fsync resumed>) = -1 EIO (Input/output error) (INJECTED)
7 connect(9<TCP:[3]>, {sa_family=AF_INET, sin_port=htons(1)}, 16) = -1 EINPROGRESS (Operation now in progress)
7 sendto(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, "POST"..., 267, 0, NULL, 0) = 267
7 write(1<pipe:[5]>, "done\\n", 5) = 5
8 pwrite64(5</case/outbox/a.jsonl>, "y", 1, 4096) = ?
7 +++ killed by SIGKILL +++
"""
LISTING = """\
1 mkdir outbox 0 - changes ok
1 openat . 0 - counts ok
1 fsync . 0 - changes ok
1 openat outbox/a.jsonl 0 - counts ENOENT
1 openat outbox/a.jsonl 0 - changes ok
1 point a.append.before 0 - changes ok
1 write outbox/a.jsonl 24 - changes 12
2 fsync outbox/a.jsonl 0 - counts EIO!
1 sendto other 1 - counts 1
1 connect tcp 0 - changes EINPROGRESS
1 sendto tcp 267 - changes 267
2 pwrite64 outbox/a.jsonl 1 4096 changes -
"""


def test_a_log_of_strace_becomes_a_listing_of_what_outlives_the_process() -> None:
    assert listing(parse(LOG, CASE)) == LISTING
    assert read_listing(LISTING) == parse(LOG, CASE)


def test_the_first_thread_is_that_of_the_process_whoever_calls_first() -> None:
    log = LOG.partition("\n")[2].replace("7 mkdir", "8 mkdir")
    assert [each.thread for each in parse(log, CASE, 7)[:2]] == [2, 1]


def test_numbers_count_what_changes_nothing_too_and_of_sockets_the_first_thread() -> None:
    found = [(each.call.told, each.number) for each in strikes(parse(LOG, CASE))]
    assert found == [
        ("mkdir outbox", 1), ("fsync .", 1), ("openat outbox/a.jsonl", 3), ("write outbox/a.jsonl", 1), ("connect tcp", 1),
        ("sendto tcp", 2), ("pwrite64 outbox/a.jsonl", 1),
    ]  # fmt: skip


def test_a_name_that_two_threads_count_is_told() -> None:
    both = [Call(1, "write", "a"), Call(2, "write", "a"), Call(2, "sendto", "tcp")]
    assert [*not_told_apart(both)] == [
        "write is called by more than one thread",
        "sendto on a connection is called by another thread than the first",
    ]
    assert [*not_told_apart([Call(1, "write", "a"), Call(2, "fsync", "a"), Call(2, "write", "b", changes=False)])] == []


def test_a_window_is_two_changes_without_a_point_between() -> None:
    new = [Call(1, "fsync", "outbox/a.jsonl"), Call(1, "fsync", "outbox")]
    seen = [Call(1, "write", "outbox/a.jsonl"), Call(1, "openat", "x", changes=False), Call(1, "write", "outbox/b.jsonl")]
    found = uncovered.windows([{"sender": (*new, Call(1, "point", "a.b"), *seen)}, {"sender": tuple(new)}])
    assert [(each.told, each.count, each.why is None) for each in found] == [
        ("sender: fsync outbox/a.jsonl → fsync outbox", 2, False),
        ("sender: write outbox/a.jsonl → write outbox/b.jsonl", 1, True),
    ]
    assert [*uncovered.told(found)][:2] == [
        "windows that no fault point covers: 2, 1 of them not explained",
        "  sender: write outbox/a.jsonl → write outbox/b.jsonl",
    ]


SYNC, WRITE = Call(1, "fsync", "outbox/a.jsonl", result="EIO!"), Call(1, "write", "outbox/a.jsonl", 9, result="ENOSPC!")
CUT, OTHER = Call(1, "ftruncate", "outbox/a.jsonl"), Call(1, "write", "outbox/b.jsonl", 5, result="5")
AGAIN, OPEN = Call(1, "write", "outbox/a.jsonl", 9, result="9"), Call(1, "openat", "outbox/a.jsonl")
ABOVE = Call(1, "fsync", ".", result="EIO!")
FOLDER, SHORT = Call(1, "fsync", "outbox", result="EIO!"), Call(1, "write", "outbox/a.jsonl", 9, result="4")
GOOD_SYNC, BROKEN_OFF = Call(1, "fsync", "outbox/a.jsonl"), Call(1, "fsync", "outbox/a.jsonl", result="EINTR!")


@pytest.mark.parametrize(
    ("error", "found", "wrong"),
    [
        ("EIO", [SYNC, CUT], None),
        ("EIO", [SYNC, CUT, OTHER], None),
        ("EIO", [SYNC, OTHER], "on the strength of fsync outbox/a.jsonl"),
        ("EIO", [SYNC, GOOD_SYNC], "after its sync had failed"),
        ("EIO", [SYNC, CUT, AGAIN], "after its sync had failed"),
        ("EIO", [SYNC, CUT, OPEN, AGAIN, GOOD_SYNC], None),
        ("EINTR", [BROKEN_OFF, GOOD_SYNC, OTHER], None),
        ("EIO", [FOLDER, OTHER], "on the strength of fsync outbox"),
        ("EIO", [ABOVE, OTHER], "on the strength of fsync ."),
        ("ENOSPC", [WRITE, CUT, AGAIN], None),
        ("ENOSPC", [WRITE, OTHER], "on the strength of write outbox/a.jsonl"),
        ("SHORT", [SHORT, AGAIN, GOOD_SYNC], None),
        ("SHORT", [SHORT, GOOD_SYNC], "only a part of a record"),
    ],
)
def test_nothing_is_recorded_on_the_strength_of_what_failed(error: str, found: list[Call], wrong: str | None) -> None:
    fault = SysFault("sender", found[0].name, 1, error)
    assert struck.struck_at(fault, found) == 0
    said = [*struck.relied_on(fault, found, 0)]
    assert wrong in said[0] if wrong else said == [], said
    notes: list[str] = []
    read = campaign_calls.read(listing(found).encode(), lambda _place, sentence: notes.append(sentence), "")
    assert notes == []
    assert campaign_calls.struck(read, fault.call, 1, error) == 0
    assert campaign_calls.relied_on("sender", read, 0, error) == (said[0] if said else None)


def test_a_strike_that_does_not_show_is_told() -> None:
    assert struck.struck_at(SysFault("sender", "fsync", 1, "ENOSPC"), [SYNC]) is None
    assert struck.struck_at(SysFault("sender", "fsync", 2, "EIO"), [SYNC]) is None
    assert struck.struck_at(SysFault("sender", "fsync"), [GOOD_SYNC]) is None
    assert struck.struck_at(SysFault("sender", "write", 1, "SHORT"), [AGAIN]) is None


def test_the_audit_knows_the_same_calls_errors_and_explanations() -> None:
    assert campaign_words.ERRORS == strace.ERRORS
    assert campaign_words.EXPLAINED == uncovered.EXPLAINED
    assert set(campaign_words.ON_FILES) == set(calls.ON_FILES)
    assert campaign_words.ON_SOCKETS == calls.ON_SOCKETS
    assert frozenset(campaign_words.DECLARED_CODES) == struck.DECLARED_CODES
    assert frozenset(campaign_words.MAY_FIND_NOTHING) == struck.MAY_FIND_NOTHING
    assert campaign_words.NOTHING_TO_DO == struck.NOTHING_TO_DO


@pytest.mark.parametrize(
    "fault", ["dispatcher:sys:fsync#3", "receiver:sys:accept4=ECONNABORTED#2", "producer:sys:write=SHORT#1"]
)
def test_the_name_of_a_strike_is_read_as_it_is_written(fault: str) -> None:
    assert str(find(f"journal/keyed/{fault}")) == f"journal/keyed/{fault}"


@pytest.mark.parametrize(
    "fault",
    [
        "nobody:sys:fsync#3",
        "sys:fsync#3",
        "dispatcher:sys:fsync#0",
        "dispatcher:sys:fsync=#1",
        "dispatcher:sys:read#1",
        "dispatcher:sys:fsync=ENOENT#1",
        "dispatcher:sys:unlink=SHORT#1",
    ],
)
def test_what_names_no_strike_is_refused(fault: str) -> None:
    with pytest.raises(BadInput):
        find(f"journal/keyed/{fault}")


@pytest.fixture
def _no_strace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("PATH", str(tmp_path))
    strace.why_not.cache_clear()
    yield
    strace.why_not.cache_clear()


@pytest.mark.usefixtures("_no_strace")
def test_a_machine_without_strace_says_so() -> None:
    assert strace.why_not() is not None


@pytest.mark.usefixtures("_no_strace")
@pytest.mark.parametrize("command", [replay, shrink])
def test_without_strace_no_folder_is_made_for_a_case_that_needs_it(command: Callable[..., int], tmp_path: Path) -> None:
    with pytest.raises(EvidenceIncomplete, match="there is no strace"):
        command("journal/keyed/dispatcher:sys:fsync#1", tmp_path / "out", "fork")
    assert not (tmp_path / "out").exists()


NOT_DECLARED: tuple[tuple[Program, list[str], list[str]], ...] = (
    (program("other", "exit", "0"), [], []),
    (program("other", "exit", "16"), [], []),
    (program("other", "exit", "1"), ["it ended with 1, which it does not declare"], []),
    (program("other", "exit", "23"), ["it ended with 23, which it does not declare"], []),
    (program("other", "signal", "6"), ["it ended with SIGABRT, which nobody had sent"], []),
    (program("other", "signal", "9"), [], ["other (incarnation 1) was ended by SIGKILL, which nobody had sent"]),
    (Program("other", "scenarios.explore.consumer", ("effects.jsonl", "first")), [], []),  # with 1: nothing is there yet
)


@pytest.mark.parametrize(("which", "wrong", "doubts"), NOT_DECLARED, ids=[str(each[0].arguments) for each in NOT_DECLARED])
def test_an_end_that_no_program_declares_is_told(
    ground: Ground, tmp_path: Path, which: Program, wrong: list[str], doubts: list[str]
) -> None:
    async def end() -> Process:
        stage = ground.room.stage("small/ended", tmp_path)
        process = await stage.launch(1, which, {})
        await stage.ended(process, 30)
        await stage.close()
        return process

    process = ground.do(end())
    told = [f"other (incarnation 1): {each}" for each in wrong]
    assert [*struck.undeclared([process])] == told
    assert [*campaign_struck._undeclared(process.data(0))] == told
    found = [*struck.doubtful_ends([process], struck=True)]
    assert [each.partition(";")[0] for each in found] == doubts


def produce(directory: Path, error: str, strike: Strike | None, *, tracer: str = "strace") -> tuple[Ending, str]:
    """How a producer ends whose call is struck, and what it said."""
    command = () if strike is None else (tracer, *strace.striking(strike, error, directory, directory / "log")[1:])

    async def run() -> tuple[Ending, str]:
        async with Supervisor(ROOT, "fork", ("outbox.producer",)) as supervisor:
            arguments = ("--dir", "outbox", "--key", "a", "--route", "/operations", "--body", "{}")
            child = await supervisor.start(Launch("outbox.producer", arguments, directory, {}, command))
            return await child.wait(30), child.stderr.text()

    return asyncio.run(run())


AT_WRITE = Strike(Call(1, "write", "outbox/intentions.jsonl"), 1, ("outbox/intentions.jsonl",), None)


@needs_strace
def test_a_call_in_which_a_process_is_killed_has_no_effect(tmp_path: Path) -> None:
    ending, _said = produce(tmp_path, strace.KILLED, AT_WRITE)
    assert (ending.exit_code, ending.signal) == (None, "SIGKILL")
    assert (tmp_path / "outbox" / "intentions.jsonl").read_bytes() == b""
    found = parse((tmp_path / "log").read_text(), tmp_path)
    assert struck.struck_at(SysFault("producer", "write"), found) == len(found) - 1


@needs_strace
def test_a_call_that_fails_has_no_effect_and_the_process_says_why(tmp_path: Path) -> None:
    ending, said = produce(tmp_path, "ENOSPC", AT_WRITE)
    assert ending.exit_code == 16
    assert "No space left on device" in said
    assert (tmp_path / "outbox" / "intentions.jsonl").read_bytes() == b""


def test_a_program_that_cannot_be_traced_does_not_run(tmp_path: Path) -> None:
    ending, said = produce(tmp_path, strace.KILLED, AT_WRITE, tracer=os.fspath(tmp_path / "nothing"))
    assert ending.exit_code == 70
    assert said == "strace could not be attached: it cannot be started\n"
    assert not (tmp_path / "outbox").exists()


@pytest.mark.campaign
def test_a_strace_that_does_not_end_with_its_child_is_ended(tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.write_text('#!/bin/sh\necho "Process 1 attached" >&2\nexec sleep 1000\n')
    endless.chmod(0o755)
    ending, _said = produce(tmp_path, strace.KILLED, AT_WRITE, tracer=os.fspath(endless))
    assert ending.exit_code == 0  # it was struck by nobody, and that is for the listing to tell
