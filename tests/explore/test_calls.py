"""System calls: what strace's log says, what can be struck, which windows are left, what may not follow from a failure."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit import campaign_calls, campaign_words
from outbox.errors import BadInput
from scenarios.engine.supervisor import Ending, Launch, Supervisor
from scenarios.explore import calls, strace, struck, uncovered
from scenarios.explore.calls import Call, Strike, listing, not_told_apart, parse, read_listing, strikes
from scenarios.explore.command import find
from scenarios.explore.sysfaults import SysFault
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


@pytest.mark.parametrize(
    "fault", ["dispatcher:sys:fsync#3", "receiver:sys:accept4=ECONNABORTED#2", "producer:sys:write=SHORT#1"]
)
def test_the_name_of_a_strike_is_read_as_it_is_written(fault: str) -> None:
    assert str(find(f"journal/keyed/{fault}")) == f"journal/keyed/{fault}"


@pytest.mark.parametrize("fault", ["nobody:sys:fsync#3", "sys:fsync#3", "dispatcher:sys:fsync#0", "dispatcher:sys:fsync=#1"])
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


def produce(directory: Path, error: str, strike: Strike | None, *, program: str = "strace") -> tuple[Ending, str]:
    """How a producer ends whose call is struck, and what it said."""
    command = () if strike is None else (program, *strace.striking(strike, error, directory, directory / "log")[1:])

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
    ending, said = produce(tmp_path, strace.KILLED, AT_WRITE, program=os.fspath(tmp_path / "nothing"))
    assert ending.exit_code == 70
    assert said == "strace could not be attached: it cannot be started\n"
    assert not (tmp_path / "outbox").exists()
