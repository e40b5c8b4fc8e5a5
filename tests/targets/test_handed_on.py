"""What is handed on of a check: JUnit for a CI server, and each finding as a folder that stands alone."""

from __future__ import annotations

import json
import os
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from outbox.errors import BadInput
from scenarios.targets import handed, junit, repro, repro_words, results, verdicts
from scenarios.targets.windows import Window
from tests.targets.made import CASES, checked, plan, receiver_case, worker_case


def suite_of(out: Path, path: Path) -> ET.Element:
    junit.write_of(out, path)
    found = ET.parse(path).getroot().find("testsuite")
    assert found is not None
    return found


def test_each_window_is_a_testcase_that_fails_where_it_goes_against_the_claim(tmp_path: Path) -> None:
    suite = suite_of(checked(tmp_path), tmp_path / "junit.xml")
    outcomes = [(case.get("name"), case.find("failure") is not None) for case in suite.iter("testcase")]
    assert outcomes == [
        ("work: worker.py:14 work()", True),
        ("work: worker.py:11 work()", True),
        ("work: worker.py:12-13 work()", False),
        ("work: worker.py:10 work()", False),
    ]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "2", "0")


def test_a_doubt_is_an_error_and_what_xml_cannot_hold_is_replaced(tmp_path: Path) -> None:
    doubt = worker_case(11, "k", verdict=verdicts.UNKNOWN, reasons=("it said \x1b[31m\0 and <ended>",), fired=False)
    suite = suite_of(checked(tmp_path, doubt), tmp_path / "junit.xml")
    error = suite.find("testcase/error")
    assert error is not None
    assert "it said \ufffd[31m\ufffd and <ended>" in str(error.text)


def test_each_expectation_of_a_receiver_is_a_testcase(tmp_path: Path) -> None:
    cases = (
        receiver_case("replay", verdicts.VIOLATED),
        receiver_case("style", verdicts.VIOLATED, "style"),
        receiver_case("retention", verdicts.SKIPPED, seen="no clock is declared"),
    )
    suite = suite_of(checked(tmp_path, *cases), tmp_path / "junit.xml")
    told = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert told == {"replay": ["failure"], "style": ["system-out"], "retention": ["skipped"]}


def test_a_finding_stands_alone_with_its_target_and_one_command(tmp_path: Path) -> None:
    out = checked(tmp_path)
    target = tmp_path / "target"
    (target / "worker.py").write_text("\n".join(f"line {number}" for number in range(1, 21)))
    (target / ".secret").write_text("x")
    folders = repro.write_of(out, tmp_path / "repro", target / "target.toml")
    assert [folder.name for folder in folders] == ["1-lost-worker.py-14", "2-stuck-worker.py-11"]
    assert sorted(path.name for path in folders[0].iterdir()) == [
        "REPORT.md",
        "actual.json",
        "expected.json",
        "reproduce.sh",
        "seen",
        "target",
    ]
    assert sorted(path.name for path in (folders[0] / "target").iterdir()) == ["target.toml", "worker.py"]
    assert json.loads((folders[0] / "actual.json").read_text()) == CASES[5].data()
    assert json.loads((folders[0] / "expected.json").read_text())["claims"] == "at-least-once"
    report = (folders[0] / "REPORT.md").read_text()
    assert report.startswith("# toy 1.0: a job can be lost when the process dies in worker.py:14\n")
    for part in (
        "a job that was accepted is done",
        "https://toy.example/guarantee",
        ">   14 line 14\n    15 line 15",
        "* toy 1.0",
    ):
        assert part in report


def test_the_script_of_a_finding_plays_its_case_with_the_halt23_that_is_named(tmp_path: Path) -> None:
    (folder, _) = repro.write_of(checked(tmp_path), tmp_path / "repro", tmp_path / "target" / "target.toml")
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "run.py").write_text("import sys; print(sys.argv[1:])")
    told = subprocess.run(
        [folder / "reproduce.sh"], env={**os.environ, "HALT23": str(clone)}, capture_output=True, text=True, check=True
    ).stdout
    file = str(folder / "target" / "target.toml")
    assert told == f"{['check', 'worker', file, '--only', 'work:worker.py:14#1', '--out', str(folder / 'out')]}\n"
    silent = subprocess.run(
        [folder / "reproduce.sh"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    assert silent.returncode == 2
    assert "HALT23= is to be a clone of it, PYTHON=python3 an interpreter that has it installed" in silent.stderr
    (clone / "run.py").write_text("import halt23_is_not_installed_here")
    broken = subprocess.run(
        [folder / "reproduce.sh"], env={**os.environ, "HALT23": str(clone)}, capture_output=True, text=True, check=False
    )
    assert broken.returncode == 2  # an interpreter that fails ends with 1, as a finding does


def test_a_receiver_s_finding_tells_its_exchanges(tmp_path: Path) -> None:
    out = checked(tmp_path, receiver_case("replay", verdicts.VIOLATED), receiver_case("style", verdicts.VIOLATED, "style"))
    (folder,) = repro.write_of(out, tmp_path / "repro", tmp_path / "target" / "target.toml")
    assert folder.name == "1-duplicated-replay"
    report = (folder / "REPORT.md").read_text()
    for part in ("`POST /operations`", "`Idempotency-Key: key-1`", "(source: study)", "0 before, 2 after"):
        assert part in report


def test_at_most_five_findings_are_written_and_none_of_a_check_that_passes(tmp_path: Path) -> None:
    many = checked(tmp_path / "many", *(worker_case(10 + 2 * number, stored=number % 2 == 0) for number in range(12)))
    assert len(repro.write_of(many, tmp_path / "repro", tmp_path / "many" / "target" / "target.toml")) == repro.MOST
    well = checked(tmp_path / "well", worker_case(10, "k"))
    assert repro.write_of(well, tmp_path / "none", tmp_path / "well" / "target" / "target.toml") == []
    assert not (tmp_path / "none").exists()


def test_files_beyond_a_bound_are_left_where_they_are_and_the_report_says_so(tmp_path: Path) -> None:
    out = checked(tmp_path)
    for number in range(repro.MOST_FILES + 1):
        (tmp_path / "target" / f"{number}.txt").touch()
    (folder, _) = repro.write_of(out, tmp_path / "repro", tmp_path / "target" / "target.toml")
    assert [path.name for path in (folder / "target").iterdir()] == ["target.toml"]
    assert "beside it lie 502 files" in (folder / "REPORT.md").read_text()


def test_an_existing_folder_and_an_interrupted_check_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="it exists"):
        repro.refuse(tmp_path)
    with results.begin(tmp_path / "out", plan(tmp_path / "target")) as check:
        check.add(CASES[0])
    with pytest.raises(BadInput, match="holds no finished check"):
        handed.read(tmp_path / "out")


def test_lines_of_a_package_are_quoted_from_the_target_s_interpreter(tmp_path: Path) -> None:
    import sys  # noqa: PLC0415

    import yarl  # noqa: PLC0415

    path = repro_words.source("yarl/__init__.py", sys.executable, tmp_path)
    assert path == Path(yarl.__file__)
    assert repro_words.source("no_such_package/x.py", sys.executable, tmp_path) is None
    window = Window(
        role="work",
        kind="line",
        where="yarl/__init__.py:1-2",
        function=None,
        depth=1,
        verdict="lost",
        cases=1,
        tried=1,
        seconds=None,
        example="x",
    )
    assert "```" in list(repro_words.quoted(window, sys.executable, tmp_path))
