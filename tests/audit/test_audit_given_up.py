"""A run that failed: the audit begins with the step that failed, and not with what the harness ended because of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit import forge
from tests.audit.conftest import Audit

NAME = "keyed_delivery"
GIVEN_UP = "the scenario was given up at step"


def _end(archive: forge.Archive, name: str, incarnation: int = 1) -> None:
    """The process was still running when the harness ended it: nobody had said yet how it should end."""
    process = archive.process(NAME, name, incarnation)
    process.update(exit_code=None, signal="SIGKILL", ended_by="harness", expected_exit={"code": None, "signal": None})


def _told(judge: Audit, run: Path) -> list[str]:
    report = judge(run)
    assert report.verdict == "FAIL"
    return [str(finding) for finding in report.findings]


def test_the_failed_step_is_told_before_all_that_comes_of_it(judge: Audit, run: Path, archive: forge.Archive) -> None:
    dispatcher = archive.process(NAME, "dispatcher", 2)
    dispatcher.update(exit_code=16, expected_exit={"code": 0, "signal": None})
    _end(archive, "receiver")
    archive.results["verdict"] = archive.results["scenarios"][0]["verdict"] = "FAIL"
    first, *others = _told(judge, archive.write(run))
    place = f"delivery/{NAME}: processes.json dispatcher (incarnation 2)"
    assert first.startswith(
        f"{place}: {GIVEN_UP} {dispatcher['step']} (run): it ended with exit code 16, but the protocol asks"
    )
    nobody = [each for each in others if "has code None and signal None, expected exactly one of them" in each]
    behind = [each for each in others if each.startswith("delivery/")]
    assert len(nobody) == 1
    assert others.index(nobody[0]) > others.index(behind[-1])


def test_where_a_bound_was_passed_the_step_is_that_of_the_process_that_did_not_end(
    judge: Audit, run: Path, archive: forge.Archive
) -> None:
    _end(archive, "dispatcher", 2)
    _end(archive, "receiver")
    first = _told(judge, archive.write(run))[0]
    step = archive.process(NAME, "dispatcher", 2)["step"]
    assert f"dispatcher (incarnation 2): {GIVEN_UP} {step} (run): it did not end as the protocol asks" in first


def test_where_a_process_was_not_started_the_step_is_its_own(judge: Audit, run: Path, archive: forge.Archive) -> None:
    missing = archive.process(NAME, "dispatcher", 2)
    archive.processes.remove(missing)
    _end(archive, "receiver")
    found = _told(judge, archive.write(run))
    assert f"{GIVEN_UP} {missing['step']} (run): 'dispatcher' was not started" in "\n".join(found)


@pytest.mark.parametrize("said", ["PASS", "FAIL"])
def test_what_the_harness_ended_is_never_passed(said: str, judge: Audit, run: Path, archive: forge.Archive) -> None:
    _end(archive, "receiver")
    archive.results["verdict"] = said
    assert GIVEN_UP in _told(judge, archive.write(run))[0]


def test_a_scenario_of_which_nothing_was_ended_is_not_said_to_be_given_up(
    judge: Audit, run: Path, archive: forge.Archive
) -> None:
    archive.process(NAME, "dispatcher", 2).update(exit_code=16)
    assert GIVEN_UP not in "\n".join(_told(judge, archive.write(run)))
