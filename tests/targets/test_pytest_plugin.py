"""The fixture `halt23_check`, in test runs of others."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from pathlib import Path

import pytest

from scenarios.engine.study import ROOT

pytest_plugins = ["pytester"]

WORKERS = Path(__file__).parent / "workers"


@pytest.fixture
def others(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A test run of somebody else who has us installed."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
    return pytester


def run(others: pytest.Pytester) -> pytest.RunResult:
    known = importlib.metadata.entry_points(group="pytest11", name="halt23")
    return others.runpytest_subprocess("-p", "no:cacheprovider", *(() if known else ("-p", "scenarios.targets.pytest_plugin")))


def test_a_test_run_that_does_not_use_it_loads_nothing(others: pytest.Pytester) -> None:
    others.makepyfile(
        """
        import sys

        def test_nothing_is_loaded():
            ours = {name for name in sys.modules if name.split(".")[0] in ("scenarios", "outbox", "receivers", "audit")}
            assert ours <= {"scenarios", "scenarios.targets", "scenarios.targets.pytest_plugin"}
        """
    )
    run(others).assert_outcomes(passed=1)


def test_a_target_that_cannot_be_checked_fails_with_what_is_wrong_with_it(others: pytest.Pytester) -> None:
    others.makefile(".toml", target='name = "mine"\n[worker]\nenqueue = ["true"]\nworkk = ["true"]\n')
    others.makepyfile("def test_my_worker(halt23_check):\n    halt23_check.worker('target.toml')\n")
    result = run(others)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["halt23 could not check target.toml (exit code 2):", "*target.toml:4: worker.workk: *"])


@pytest.mark.campaign
def test_a_worker_that_loses_jobs_fails_with_its_windows_and_one_that_does_not_passes(others: pytest.Pytester) -> None:
    for name in ("sqlite_worker.py", "good.toml", "deletes-first.toml"):
        shutil.copy(WORKERS / name, others.path / name)
    others.makepyfile(
        """
        def test_loses(halt23_check):
            halt23_check.worker("deletes-first.toml")

        def test_well(halt23_check):
            assert halt23_check.worker("good.toml", budget=10)["cases"] == 10
        """
    )
    result = run(others)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "halt23: sqlite-deletes-first: FAIL",
            "  work: sqlite_worker.py:* send(): lost, * cases*",
            "    again: --only 'work:sqlite_worker.py:*",
            "  no claim: judged as at-least-once with stable keys; holds: at-most-once",
        ]
    )
