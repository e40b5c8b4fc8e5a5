"""A worker of sixty lines, checked as a user checks it: each mistake is found by its own verdict, and the audit agrees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from audit import cli as audit
from scenarios.explore import strace
from tests.support import ROOT

pytestmark = pytest.mark.campaign
WORKERS = Path(__file__).parent / "workers"


def check(name: str, out: Path, *options: str) -> tuple[int, str]:
    """Run the command; its exit code and what it said."""
    command = [sys.executable, "run.py", "check", "worker", str(WORKERS / f"{name}.toml"), "--out", str(out), *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def verdicts(out: Path) -> Counter[str]:
    return Counter(line["verdict"] for line in lines(out))


@pytest.mark.parametrize(
    ("name", "code", "verdict", "function"),
    [
        ("good", 0, "duplicate-unkeyed", "work"),
        ("deletes-first", 1, "lost", "send"),
        ("no-lease", 1, "stuck", "send"),
        ("new-key", 1, "duplicate-keyed", "work"),
        ("no-key", 1, "duplicate-keyed", "work"),
    ],
)
def test_each_mistake_has_its_verdict(tmp_path: Path, name: str, code: int, verdict: str, function: str) -> None:
    ended, said = check(name, tmp_path / "out")
    assert ended == code, said
    found = verdicts(tmp_path / "out")
    assert set(found) == {verdict, "recovered"}
    assert function in {line["fault"]["function"] for line in lines(tmp_path / "out") if line["verdict"] == verdict}
    assert audit.main([str(tmp_path / "out")], str(ROOT)) == code


def test_executed_or_forked_it_is_the_same(tmp_path: Path) -> None:
    for spawn in ("fork", "exec"):
        assert check("good", tmp_path / spawn, "--spawn", spawn)[0] == 0
    forked, executed = ({line["case"]: line["verdict"] for line in lines(tmp_path / each)} for each in ("fork", "exec"))
    assert forked == executed


@pytest.mark.skipif(strace.why_not() is not None, reason=str(strace.why_not()))
def test_every_system_call_is_struck_and_every_one_comes(tmp_path: Path) -> None:
    code, said = check("good", tmp_path / "out", "--mode", "syscalls")
    assert code == 0, said
    assert {line["ended"]["signal"] for line in lines(tmp_path / "out")} == {"SIGKILL"}
    assert verdicts(tmp_path / "out")["duplicate-unkeyed"] > 0
    assert audit.main([str(tmp_path / "out")], str(ROOT)) == 0


def test_a_receiver_that_dies_refuses_or_hangs_up_costs_no_job(tmp_path: Path) -> None:
    code, said = check("good", tmp_path / "out", "--mode", "receiver")
    assert code == 0, said
    found = {line["case"]: line["verdict"] for line in lines(tmp_path / "out")}
    assert found == {
        "receiver:dies": "duplicate-unkeyed",
        "receiver:refuses": "recovered",
        "receiver:hangs-up": "duplicate-unkeyed",
    }
    assert {line["confirmed"] for line in lines(tmp_path / "out")} == {True, None}


def test_a_worker_that_runs_until_sigterm_is_watched_as_long_as_it_may_send_again(tmp_path: Path) -> None:
    code, said = check("until-signal", tmp_path / "out", "--mode", "all")
    assert code == 0, said
    found = lines(tmp_path / "out")
    assert {line["verdict"] for line in found} == {"duplicate-unkeyed", "recovered"}
    assert {line["confirmed"] for line in found if line["verdict"] == "duplicate-unkeyed"} == {True, None}
    assert audit.main([str(tmp_path / "out")], str(ROOT)) == 0


def test_a_worker_with_points_of_its_own_halts_at_each(tmp_path: Path) -> None:
    code, said = check("points", tmp_path / "out", "--mode", "points")
    assert code == 0, said
    found = {line["case"]: line["verdict"] for line in lines(tmp_path / "out")}
    assert found == {"enqueue:point:file.written#1": "recovered", "work:point:job.sent#1": "duplicate-unkeyed"}


def test_without_a_count_of_what_is_stored_a_late_duplicate_is_waited_for(tmp_path: Path) -> None:
    """The lease of the job that was sent ends after the worker, idle, has ended for the first time."""
    text = (WORKERS / "good.toml").read_text()
    path = tmp_path / "target.toml"
    path.write_text("\n".join(line for line in text.splitlines() if not line.startswith("pending")))
    (tmp_path / "sqlite_worker.py").symlink_to(WORKERS / "sqlite_worker.py")
    code, said = check(str(path.with_suffix("")), tmp_path / "out")
    assert code == 0, said
    assert verdicts(tmp_path / "out")["duplicate-unkeyed"] == 3


def test_the_recovery_is_killed_too(tmp_path: Path) -> None:
    code, said = check("good", tmp_path / "out", "--depth", "2", "--budget", "90")
    assert code == 0, said
    deep = [line for line in lines(tmp_path / "out") if line["then"] is not None]
    assert len(deep) == 40
    assert all(line["fired"] for line in deep)
    assert audit.main([str(tmp_path / "out")], str(ROOT)) == 0


def test_one_case_is_played_again_by_its_name(tmp_path: Path) -> None:
    assert check("good", tmp_path / "all")[0] == 0
    name = next(line["case"] for line in lines(tmp_path / "all") if line["verdict"] == "duplicate-unkeyed")
    assert check("good", tmp_path / "one", "--only", name)[0] == 0
    assert [(line["case"], line["verdict"]) for line in lines(tmp_path / "one")] == [(name, "duplicate-unkeyed")]


def test_a_line_that_is_never_reached_is_unknown(tmp_path: Path) -> None:
    code, said = check("good", tmp_path / "out", "--only", "work:sqlite_worker.py:1#1")
    assert (code, verdicts(tmp_path / "out")) == (3, Counter(unknown=1)), said


def test_nothing_is_left_behind_by_who_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "run.py", "check", "worker", str(WORKERS / "no-lease.toml"), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as running:
        while not (tmp_path / "out" / "results.jsonl").exists() or not lines(tmp_path / "out"):
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        said = running.stderr.read() if running.stderr is not None else ""
        assert running.wait(60) == 3
    assert "stopped by SIGTERM" in said
    assert not [each for each in os.listdir("/dev/shm") if each.startswith(f"halt23-{running.pid}-")]
    assert not [each.pid for each in psutil.process_iter(["cmdline"]) if "no-lease" in (each.info["cmdline"] or [])]


def test_nothing_is_left_behind_by_who_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "run.py", "check", "worker", str(WORKERS / "no-lease.toml"), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as running:
        while not (tmp_path / "out" / "results.jsonl").exists() or not lines(tmp_path / "out"):
            assert running.poll() is None
            time.sleep(0.05)
        running.kill()
    began = time.monotonic()
    while any(each.startswith(f"halt23-{running.pid}-") for each in os.listdir("/dev/shm")):
        assert time.monotonic() < began + 30
        time.sleep(0.05)


def test_what_is_handed_on_does_not_lie_in_the_evidence(tmp_path: Path) -> None:
    for option in ("--junitxml", "--repro"):
        code, said = check("good", tmp_path / "out", option, str(tmp_path / "out" / "more"))
        assert code == 2
        assert "which holds the evidence alone" in said
    assert not (tmp_path / "out").exists()
