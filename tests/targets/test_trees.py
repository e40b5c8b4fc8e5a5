"""A worker of several processes: where it dies, and that it dies on either side of the delivery."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.explore import strace
from scenarios.explore.calls import TCP, Call
from scenarios.targets.trees import is_tree, tree_strikes
from tests.support import ROOT

CLAIMED = Call(2, "renameat2", "new/job")
CONNECTED = Call(3, "connect", TCP)
SENT = Call(3, "sendto", TCP)
GONE = Call(4, "unlinkat", "cur/job")
WORKER = Path(__file__).parent / "workers" / "new-key-shell.toml"


def places(calls: list[Call], arrived: int | None) -> list[tuple[str, int, int, bool]]:
    return [(each.call.name, each.number, each.stops, each.arrived) for each in tree_strikes(calls, arrived)]


def test_it_dies_before_it_sends_and_when_the_job_has_arrived() -> None:
    assert is_tree([CLAIMED, CONNECTED, SENT, GONE])
    assert places([CLAIMED, CONNECTED, SENT, GONE], 3) == [("connect", 1, 1, False), ("unlinkat", 1, 1, True)]


def test_a_connection_that_is_older_than_the_delivery_hides_nothing() -> None:
    assert places([CONNECTED, CLAIMED, GONE], 2) == [("sendto", 1, 1, False), ("unlinkat", 1, 1, True)]


def test_where_the_delivery_comes_first_only_what_follows_is_struck() -> None:
    assert places([CONNECTED, SENT, CLAIMED, GONE], 2) == [("renameat2", 1, 0, True), ("unlinkat", 1, 1, False)]


def test_without_a_delivery_it_dies_between_its_file_calls() -> None:
    assert places([CLAIMED, GONE], None) == [("unlinkat", 1, 1, False)]


@pytest.mark.campaign
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl; install it")
@pytest.mark.skipif(strace.why_not() is not None, reason=f"nothing can be traced here: {strace.why_not()}")
def test_a_shell_that_sends_under_a_new_key_after_its_death_is_found(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "run.py", "check", "worker", str(WORKER), "--mode", "syscalls", "--out", str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    found = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [each["case"] for each in found if each["verdict"] != "recovered"] == ["work:sys:unlinkat#1"]
    assert [each["verdict"] for each in found if each["case"] == "work:sys:unlinkat#1"] == ["duplicate-keyed"]


@pytest.mark.campaign
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl; install it")
@pytest.mark.skipif(strace.why_not() is not None, reason=f"nothing can be traced here: {strace.why_not()}")
def test_in_mode_all_a_program_without_lines_is_struck_by_all_else_and_that_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "run.py", "check", "worker", str(WORKER), "--mode", "all", "--out", str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "note: no line of a function was executed" in ended.stdout
    kinds = {json.loads(line)["fault"]["kind"] for line in (out / "results.jsonl").read_text().splitlines()}
    assert kinds == {"syscall", "receiver"}
