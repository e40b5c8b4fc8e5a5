"""Mode syscalls with real processes: a campaign of it, a case of it again, what it refuses, and that nothing of it survives."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import run
from scenarios.explore import strace
from tests.support import ROOT

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(strace.why_not() is not None, reason=str(strace.why_not())),
]
MODE = ("explore", "--mode", "syscalls")


def test_a_campaign_strikes_each_call_and_tells_the_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run.main([*MODE, "--subject", "journal/keyed", "--budget", "14", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "PASS" in told
    assert "windows that no fault point covers: 9, 0 of them not explained" in told
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    names = [each["case"].rpartition("/")[2] for each in results]
    assert names[:5] == [
        f"producer:sys:{each}" for each in ("mkdir#1", "mkdir=ENOSPC#1", "mkdir=EIO#1", "fsync#1", "fsync=EIO#1")
    ]
    assert [each["deaths"][0]["point"] for each in results if each["deaths"]] == [
        "sys:mkdir",
        "sys:fsync",
        "sys:openat",
        "sys:fsync",
    ]
    windows = json.loads((out / "baseline" / "journal" / "keyed" / "windows.json").read_text())["windows"]
    assert all(each["why"] for each in windows)


@pytest.mark.parametrize("case", ["receiver:sys:sendto#1", "dispatcher:sys:write=SHORT#1", "receiver:sys:fsync=EIO#3"])
def test_a_case_is_played_again_by_its_name(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["replay", f"journal/keyed/{case}", "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith(f"HELD journal/keyed/{case}: ")


def test_a_strike_that_does_not_come_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["replay", "journal/keyed/dispatcher:sys:fsync#99", "--out", str(tmp_path / "out")]) == 3
    assert "dispatcher comes to no sys:fsync#99 in round 1 without faults" in capsys.readouterr().out


def test_a_process_that_strace_does_not_see_leaves_its_subject_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, false = shutil.which(strace.PROGRAM), tmp_path / "strace"
    false.write_text(
        f'#!/bin/sh\ncase "$*" in *receiver.strace*) echo "Process 1 attached" >&2; exit 0;; esac\nexec {real} "$@"\n'
    )
    false.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert run.main([*MODE, "--subject", "journal/keyed", "--budget", "1", "--out", str(tmp_path / "out")]) == 3
    assert "no system call of receiver was recorded in round 1" in capsys.readouterr().out


def test_a_failing_case_is_shrunk_to_its_strike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = "oracle/sync-error-ignored/receiver:sys:fsync=EINTR#1&dispatcher:sys:fsync=EIO#8"
    assert run.main(["shrink", case, "--out", str(tmp_path / "out")]) == 1
    assert "again: python run.py replay 'oracle/sync-error-ignored/dispatcher:sys:fsync=EIO#8' --out" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--depth", "2"], ["--store", "postgres"]])
def test_what_it_does_not_do_is_refused(option: list[str], tmp_path: Path) -> None:
    assert run.main([*MODE, *option, "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_survives_an_interrupted_campaign(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "run.py", *MODE, "--subject", "dispatch/keyed", "--out", str(tmp_path / "out")]
    campaign = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: any("strace" in each for each in begun_by(campaign.pid)))
        children = psutil.Process(campaign.pid).children(recursive=True)
    finally:
        campaign.send_signal(number)
        campaign.wait(30)
    _gone, alive = psutil.wait_procs(children, 30)
    assert alive == []
    assert not [each for each in map(words, psutil.process_iter()) if str(tmp_path) in each]


def begun_by(pid: int) -> list[str]:
    """The command lines of what a process has begun."""
    return [words(each) for each in psutil.Process(pid).children(recursive=True)]


def words(process: psutil.Process) -> str:
    """The command line of a process; empty of one that is gone."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def wait_until(holds: object) -> None:
    """Look again and again until it holds, for at most a minute."""
    assert callable(holds)
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        os.sched_yield()
