"""What a check leaves behind: line by line as it comes, windows and sums at the end, no manifest where it was broken off."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from outbox.errors import BadInput
from scenarios.engine.study import ROOT
from scenarios.errors import EvidenceIncomplete
from scenarios.targets import results, verdicts
from scenarios.targets.outcomes import Effect, Fault
from tests.targets.made import CANARY, CASES, JOB, checked, plan, receiver_case, worker_case

WORKERS = Path(__file__).parent / "workers"


def test_a_line_is_on_the_disk_as_soon_as_its_case_has_ended(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with results.begin(out, plan(tmp_path / "target")) as check:
        check.add(CASES[0])
        line = json.loads((out / "results.jsonl").read_text())
        assert line == CASES[0].data()
        assert not (out / "manifest.json").exists()


def test_neighbouring_lines_with_the_same_verdict_are_one_window_the_worst_first(tmp_path: Path) -> None:
    summary = json.loads((checked(tmp_path) / "summary.json").read_text())
    windows = [(each["where"], each["verdict"], each["cases"], each["tried"]) for each in summary["windows"]]
    assert windows == [
        ("worker.py:14", "lost", 1, 1),
        ("worker.py:11", "stuck", 1, 1),
        ("worker.py:12-13", "duplicate-unkeyed", 2, 3),
        ("worker.py:10", "recovered", 1, 1),
    ]
    assert summary["by_verdict"]["duplicate-unkeyed"] == 2
    assert (summary["holds"], summary["verdict"]) == ([], "FAIL")


def test_over_nothing_but_doubts_no_claim_holds() -> None:
    doubt = worker_case(11, "k", verdict=verdicts.UNKNOWN, fired=False).data()
    assert verdicts.holding([]) == verdicts.holding([doubt]) == []
    assert verdicts.holding([doubt, CASES[0].data()]) == ["at-most-once", "at-least-once", "applied-once-with-keys"]


def test_a_claim_is_judged_by_what_holds_and_no_claim_by_what_is_lost_stuck_or_under_two_keys() -> None:
    counts = {verdicts.UNKEYED: 3, verdicts.RECOVERED: 4}
    holds = ["at-least-once", "applied-once-with-keys"]
    assert verdicts.of_worker_check(counts, holds, "at-least-once") == "PASS"
    assert verdicts.of_worker_check(counts, holds, "at-most-once") == "FAIL"
    assert verdicts.of_worker_check(counts, holds, None) == "PASS"
    assert verdicts.of_worker_check({verdicts.KEYED: 1}, ["at-least-once"], None) == "FAIL"
    assert verdicts.of_worker_check({verdicts.KEYED: 1}, ["at-least-once"], "at-least-once") == "PASS"
    assert verdicts.of_worker_check({verdicts.UNKNOWN: 1, verdicts.LOST: 9}, [], None) == "UNKNOWN"
    assert verdicts.of_worker_check({}, holds, None) == "UNKNOWN"


@pytest.mark.parametrize(
    ("effects", "stored", "verdict"),
    [
        ({JOB: (1, 1), CANARY: (1, 1)}, None, "recovered"),
        ({JOB: (1, 2), CANARY: (1, 1)}, None, "duplicate-unkeyed"),
        ({JOB: (2, 2), CANARY: (1, 1)}, None, "duplicate-keyed"),
        ({JOB: (0, 0), CANARY: (1, 1)}, False, "lost"),
        ({JOB: (0, 0), CANARY: (1, 1)}, True, "stuck"),
        ({JOB: (0, 0), CANARY: (1, 1)}, None, "stuck"),
        ({JOB: (1, 1), CANARY: (0, 0)}, False, "stuck"),
        ({JOB: (1, 1)}, None, "unknown"),
    ],
)
def test_the_verdict_of_a_case(effects: dict[str, tuple[int, int]], stored: bool | None, verdict: str) -> None:
    counted = {job: Effect(keyed=keyed, unkeyed=unkeyed) for job, (keyed, unkeyed) in effects.items()}
    assert verdicts.of_worker(fired=True, doubts=(), effects=counted, canary=CANARY, stored=stored) == verdict
    assert verdicts.of_worker(fired=False, doubts=(), effects=counted, canary=CANARY, stored=stored) == "unknown"


def test_a_death_of_the_recovery_is_a_window_of_its_own(tmp_path: Path) -> None:
    then = Fault(role="recover", kind="syscall", where="fsync", occurrence=3)
    again = worker_case(10, "k1", "k1", case="work:worker.py:10#1+recover:sys:fsync#3", then=then)
    summary = json.loads((checked(tmp_path, worker_case(10, "k1"), again) / "summary.json").read_text())
    assert [(each["role"], each["where"], each["depth"]) for each in summary["windows"]] == [
        ("recover", "fsync#3", 2),
        ("work", "worker.py:10", 1),
    ]


def test_a_receiver_fails_by_what_is_grave_or_declared_and_passes_what_is_style(tmp_path: Path) -> None:
    style = receiver_case("doubled-header", verdicts.VIOLATED, "style")
    assert verdicts.of_receiver_check([style.data(), receiver_case("replay").data()]) == "PASS"
    assert verdicts.of_receiver_check([receiver_case("x", verdicts.VIOLATED, "style", source="declared").data()]) == "FAIL"
    assert verdicts.of_receiver_check([receiver_case("replay", verdicts.UNCLEAR).data()]) == "UNKNOWN"
    assert verdicts.of_receiver_check([receiver_case("replay", verdicts.SKIPPED).data()]) == "UNKNOWN"
    out = checked(tmp_path, receiver_case("other-body", verdicts.VIOLATED), style, receiver_case("replay"))
    summary = json.loads((out / "summary.json").read_text())
    assert [(each["where"], each["fails"]) for each in summary["windows"]] == [("other-body", True), ("doubled-header", False)]
    assert "| replay | study | duplicated | met | one effect | one effect |" in (out / "table.md").read_text()


def test_a_folder_that_exists_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(BadInput, match="it exists, and nothing is overwritten"), results.begin(out, plan(tmp_path / "target")):
        pass
    assert list(out.iterdir()) == []


def test_an_interrupted_check_has_its_lines_and_no_manifest_and_a_second_one_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), results.begin(out, plan(tmp_path / "target")) as check:
        check.add(CASES[0])
        with pytest.raises(BadInput, match="it exists"), results.begin(out, check.plan):
            pass
        raise KeyboardInterrupt
    assert (out / "results.jsonl").read_text().count("\n") == 1
    assert not (out / "manifest.json").exists()
    assert "begin the check again in a new folder" in str(results.interrupted(out, "SIGINT"))


@pytest.mark.campaign
def test_a_check_that_is_stopped_says_so_and_leaves_lines_and_no_manifest(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, str(ROOT / "run.py"), "check", "worker", str(WORKERS / "no-lease.toml"), "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as check:
        until = time.monotonic() + 60
        while not ((out / "results.jsonl").exists() and (out / "results.jsonl").read_bytes()):
            assert time.monotonic() < until
            assert check.poll() is None
            time.sleep(0.05)
        check.send_signal(signal.SIGINT)
        said, _ = check.communicate(timeout=60)
    assert check.returncode == 3
    assert f"stopped by SIGINT: {out} holds an incomplete check" in said
    assert not (out / "manifest.json").exists()
    assert all(json.loads(line)["case"] for line in (out / "results.jsonl").read_text().splitlines())


def test_a_full_disk_is_told_with_what_to_do(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        pytest.raises(EvidenceIncomplete, match="Make room, then begin the check again"),
        results.begin(out, plan(tmp_path / "t")),
    ):
        raise OSError(errno.ENOSPC, "No space left on device", str(out / "results.jsonl"))
    assert not (out / "manifest.json").exists()


def test_files_of_two_cases_never_share_a_folder_and_no_empty_one_is_left(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with results.begin(out, plan(tmp_path / "target")) as check:
        first, second = check.folder("work:a#1"), check.folder("work_a_1")
        assert first != second
        assert check.folder("work:a#1") == first
        (second / "state").mkdir()
        (first / "out.txt").write_text("x")
        check.add(CASES[0])
        check.finish()
    assert [path.name for path in (out / "cases").iterdir()] == [first.name]
