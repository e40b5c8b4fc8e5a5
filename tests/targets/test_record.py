"""The track record: facts beside what is documented, and what was not checked with the reason."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from outbox.errors import BadInput
from scenarios.targets import all_command, file, handed, record, verdicts
from scenarios.targets.record import Entry
from tests.targets.made import WORKER_FILE, checked, receiver_case, target


def entry(folder: Path, kind: str, out: Path) -> Entry:
    return Entry(file.read(folder / "target" / "target.toml"), kind, f"run.py check {kind}", handed.read(out))


def asked_of(out: Path, targets: Path) -> argparse.Namespace:
    return argparse.Namespace(out=out, set="fast", targets=targets, only=["*"], python=[sys.executable], budget=None)


def test_what_is_documented_stands_beside_what_was_found(tmp_path: Path) -> None:
    text = record.render([entry(tmp_path, "worker", checked(tmp_path))])
    row = next(line for line in text.splitlines() if line.startswith("| `toy-worker`"))
    assert row == (
        "| `toy-worker`: toy 1.0. a queue in a table | a job that was accepted is done "
        "([source](https://toy.example/guarantee)) | at-least-once: it does not hold | none | 6 "
        "| lost in 1 of 6 cases: `worker.py:14` work(); stuck in 1 of 6 cases: `worker.py:11` work(); "
        "duplicate-unkeyed in 2 of 6 cases: `worker.py:12-13` work() "
        "| 0.5 s |"
    )
    assert "run.py check worker" in text


def test_expectations_of_a_receiver_are_told_by_severity(tmp_path: Path) -> None:
    cases = (
        receiver_case("killed-at-call:fsync#1", verdicts.VIOLATED),
        receiver_case("killed-at-call:fsync#2", verdicts.VIOLATED),
        receiver_case("key-empty", verdicts.VIOLATED, "style"),
        receiver_case("replay"),
    )
    text = record.render([entry(tmp_path, "receiver", checked(tmp_path, *cases))])
    assert "| 3 violated, 1 met | duplicated: killed-at-call (2) | style: key-empty |" in text


def test_a_target_that_cannot_run_here_is_told_with_what_to_install_and_one_that_is_broken_with_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imports = 'install = "pip install toy==1.0"\nimports = ["no_such_module"]'
    target(tmp_path / "targets" / "missing", WORKER_FILE.replace('install = "pip install toy==1.0"', imports))
    target(tmp_path / "targets" / "broken", WORKER_FILE.replace("toy-worker", "broken"))
    assert all_command.run(asked_of(tmp_path / "out", tmp_path / "targets")) == 2
    text = (tmp_path / "out" / "track-record.md").read_text()
    assert (
        "| `toy-worker` | toy 1.0 | toy-worker needs the modules no_such_module; install with: pip install toy==1.0 |" in text
    )
    assert "| `broken` | toy 1.0 | exit code 2: " in text
    assert "2 targets, 2 not checked" in capsys.readouterr().out


def test_a_folder_without_targets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no folder with a target\.toml"):
        all_command.run(asked_of(tmp_path / "out", tmp_path))
    assert not (tmp_path / "out").exists()
