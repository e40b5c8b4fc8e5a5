"""`python -m tests.equality`: what it refuses, what it says of runs that are equal, and of one that is not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import equality
from tests.support import ROOT


@pytest.fixture(autouse=True)
def _runs_go_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.equality", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--runs", "0"], "must be at least 1"),
        (["--spawn", "thread"], "invalid choice"),
        (["--store", "files"], "invalid choice"),
        (["--python", "/no/such/python"], "/no/such/python cannot be started"),
        (["--python", "/bin/false"], "give it the dependencies"),
        (["--against", "/no/such/archive"], "is no finished archive"),
    ],
)
def test_bad_usage(arguments: list[str], said: str) -> None:
    done = call(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_run_that_fails_is_no_equality() -> None:
    done = call("--runs", "1", "--section", "no-such-section")
    assert done.returncode == 1
    assert "run.py ended with 2" in done.stdout
    assert "NOT EQUAL: 1 of 1 runs; they are kept in " in done.stdout


@pytest.mark.campaign  # test_evidence compares them, too
def test_both_ways_of_spawning_leave_the_same_evidence(tmp_path: Path) -> None:
    done = call("--section", "unknown", "--jobs", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second, verdict = done.stdout.splitlines()
    version = re.escape(sys.version.split()[0])
    assert re.fullmatch(rf"  1  Python {version}, fork, --jobs 2: [\d.]+ s: the first", first)
    assert re.fullmatch(rf"  2  Python {version}, exec, --jobs 2: [\d.]+ s: equal", second)
    assert verdict == "EQUAL: 2 runs, 2 ways"
    assert list(tmp_path.iterdir()) == [], "the runs were not taken away"


def test_a_run_that_differs_is_told_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    command = [sys.executable, str(ROOT / "run.py"), "--out", str(out), "--section", "history", "--spawn", "fork"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["sources"]["run.py"] = "0" * 64
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    code = equality.main(["--spawn", "fork", "--jobs", "1", "--section", "history", "--against", str(out)])
    said = capsys.readouterr().out
    assert code == 1
    assert "manifest.json: sources['run.py']: is '0000" in said
    kept = Path(said.split("kept in ")[1].strip())
    assert (kept / "1" / "run" / "manifest.json").is_file()
