"""The audit of a check: it agrees with what was left, and sees every edit though the manifest was mended behind it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from audit import check_battery
from audit.archive import Report, audit_archive
from audit.compare import compare
from audit.explain import explain
from audit.inventory import Checkout
from scenarios.engine.study import ROOT
from scenarios.targets import battery, results, verdicts
from scenarios.targets.outcomes import ENDED_FIRST, Ended
from tests.targets.made import CASES, checked, plan, receiver_case, worker_case

Edit = Callable[[dict[str, Any]], object]


CHECKOUT = Checkout(str(ROOT))


def audited(out: Path) -> Report:
    return audit_archive(str(out), CHECKOUT)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A worker's check in which something was found; who edits it takes a copy."""
    return checked(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "out"))


def mended(out: Path, name: str) -> None:
    """Give the manifest the size and hash that a file has now."""
    manifest = json.loads((out / "manifest.json").read_bytes())
    data = (out / name).read_bytes()
    manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def edit_line(out: Path, number: int, edit: Edit) -> None:
    path = out / "results.jsonl"
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    edit(lines[number])
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    mended(out, path.name)


def edit_document(out: Path, name: str, edit: Edit) -> None:
    path = out / name
    value = json.loads(path.read_bytes())
    edit(value)
    path.write_text(json.dumps(value, indent=1) + "\n")
    if name != "manifest.json":
        mended(out, name)


def test_a_check_in_which_all_recovered_passes_and_says_what_it_takes_on_its_word(tmp_path: Path) -> None:
    report = audited(checked(tmp_path, worker_case(10, "k"), worker_case(11, "k", "k")))
    assert (report.verdict, report.findings) == ("PASS", [])
    assert "taken on its word: that the processes died so" in report.checked
    assert any(line.startswith("PASS means") for line in explain(report))
    assert all(line.isascii() for line in explain(report))


def test_a_process_that_was_quicker_than_its_death_is_no_contradiction_where_that_is_noted(tmp_path: Path) -> None:
    case = worker_case(10, "k", ended=Ended(exit_code=0), notes=(ENDED_FIRST,))
    assert audited(checked(tmp_path, case)).verdict == "PASS"


def test_a_check_that_found_something_fails_with_its_windows_and_evidence_that_agrees(whole: Path) -> None:
    report = audited(whole)
    assert report.verdict == "FAIL"
    assert any(line.startswith("What it is held to does not hold") for line in explain(report))
    assert report.checked.startswith("the evidence agrees with itself; worker toy-worker: 6 cases (1 lost, 1 stuck")
    assert [str(each) for each in report.findings] == [
        "lost: worker.py:14: 1 case, such as work:worker.py:14#1",
        "stuck: worker.py:11: 1 case, such as work:worker.py:11#1",
    ]


def test_a_receiver_fails_by_its_expectations(tmp_path: Path) -> None:
    report = audited(checked(tmp_path, receiver_case("replay", verdicts.VIOLATED), receiver_case("restart-after-success")))
    assert report.verdict == "FAIL"
    assert [str(each) for each in report.findings] == ["duplicated: replay (study): expected one effect, seen two effects"]
    assert audited(checked(tmp_path / "well", receiver_case("replay"))).verdict == "PASS"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda line: line.update(verdict="met"), "is met, but the counted effects rose by 2"),
        (lambda line: line.update(severity="lost"), "is violated (lost), but the counted effects rose by 2"),
        (lambda line: line["effects"].update(after=1), "is violated (duplicated), but the counted effects rose by 1"),
        (lambda line: line["effects"].update(after=None), "were counted only once"),
        (lambda line: line.update(severity="style"), "is style, but who does not meet it is one of lost, duplicated, stuck"),
        (lambda line: line.update(source="declared"), "is 'declared', but by its name and the target's policy it is study"),
        (lambda line: line.update(expectation="replay-of-mine"), "is 'replay-of-mine', which no receiver is asked"),
    ],
)
def test_an_edited_line_of_a_receiver_is_seen(edit: Edit, said: str, tmp_path: Path) -> None:
    out = checked(tmp_path, receiver_case("replay", verdicts.VIOLATED))
    edit_line(out, 0, edit)
    report = audited(out)
    assert report.checked == "the evidence does not agree with itself"
    assert any(said in str(each) for each in report.findings), [str(each) for each in report.findings]


def test_a_case_in_doubt_leaves_a_check_unknown(tmp_path: Path) -> None:
    doubt = worker_case(11, "k", verdict=verdicts.UNKNOWN, reasons=("it never got there",), fired=False)
    report = audited(checked(tmp_path, worker_case(10, "k"), doubt))
    assert (report.verdict, [str(each) for each in report.findings]) == (
        "UNKNOWN",
        ["UNKNOWN: work:worker.py:11#1: it never got there"],
    )


def test_an_interrupted_check_is_unknown(tmp_path: Path) -> None:
    with results.begin(tmp_path / "out", plan(tmp_path / "target")) as check:
        check.add(CASES[0])
    report = audited(tmp_path / "out")
    assert report.verdict == "UNKNOWN"
    assert "a check is begun again in a new folder" in str(report.findings[0])


LINES: dict[str, tuple[int, Edit, str]] = {
    "a verdict": (5, lambda line: line.update(verdict="recovered", recovered_seconds=0.1), "what was seen makes it lost"),
    "effects": (2, lambda line: line["effects"]["halt23-job-1"].update(unkeyed=1), "the arrivals come to 1 and 2"),
    "an arrival": (2, lambda line: line["arrivals"].pop(0), "the arrivals come to 1 and 1"),
    "an arrival's key": (2, lambda line: line["arrivals"][0].update(key="other"), "the arrivals come to 2 and 2"),
    "an unapplied arrival": (0, lambda line: line["arrivals"][0].update(applied=False), "the arrivals come to 0 and 0"),
    "what is stored": (5, lambda line: line.update(stored=True), "is lost, but what was seen makes it stuck"),
    "who told what is stored": (5, lambda line: line.update(stored_by=None), "beside a stored of False"),
    "whether it fired": (0, lambda line: line.update(fired=False), "is recovered, but what was seen makes it unknown"),
    "a doubt without a reason": (0, lambda line: line.update(verdict="unknown"), "is unknown without a reason"),
    "the canary": (0, lambda line: line.update(canary="another"), "what was seen makes it unknown"),
    "how it ended": (0, lambda line: line["ended"].update(exit_code=0), "who died at a line ends otherwise"),
    "the role": (0, lambda line: line.update(role="setup"), "but the line has"),
    "the place": (0, lambda line: line["fault"].update(where="worker.py:99"), "but the line has"),
    "the occurrence": (0, lambda line: line["fault"].update(occurrence=7), "but the line has"),
    "the time it took": (5, lambda line: line.update(recovered_seconds=1.0), "the verdict say otherwise"),
    "that it took no time": (0, lambda line: line.update(recovered_seconds=None), "the verdict say otherwise"),
    "more time than it took": (0, lambda line: line.update(recovered_seconds=9.0), "is 9.0, but it came after 0.6"),
    "who came when": (0, lambda line: line["arrivals"][0].update(after_restart=False), "the verdict say otherwise"),
    "who confirmed it": (0, lambda line: line.update(confirmed=True), "is recovered, which nobody confirms"),
    "the command": (0, lambda line: line.update(role="recover"), "the target has no such command"),
    "the mode": (0, lambda line: line["fault"].update(kind="point"), "is point, but the mode was lines"),
    "the job": (0, lambda line: line["effects"].pop("halt23-job-1"), "tell of no job but the canary"),
    "a member more": (0, lambda line: line.update(more=1), "a member that the contract does not have"),
    "the order of arrivals": (2, lambda line: line["arrivals"].reverse(), "not in the order of their times"),
    "a case twice": (1, lambda line: line.update(json.loads(json.dumps(CASES[0].data()))), "once more"),
    "how long it was watched": (1, lambda line: line.update(watched_seconds=60.0), "windows: is"),
}


@pytest.mark.parametrize("what", LINES)
def test_an_edited_line_is_seen(what: str, out: Path) -> None:
    number, edit, said = LINES[what]
    edit_line(out, number, edit)
    report = audited(out)
    assert report.verdict == "FAIL"
    assert report.checked == "the evidence does not agree with itself"
    assert any(said in str(each) for each in report.findings), [str(each) for each in report.findings]


DOCUMENTS: dict[str, tuple[str, Edit, str]] = {
    "a sum": ("summary.json", lambda value: value["by_verdict"].update(lost=0), "by_verdict: is"),
    "the claims that hold": ("summary.json", lambda value: value.update(holds=["at-least-once"]), "holds: is"),
    "the verdict": (
        "summary.json",
        lambda value: value.update(verdict="PASS"),
        "verdict: is 'PASS', but the lines give 'FAIL'",
    ),
    "a window's count": ("summary.json", lambda value: value["windows"][0].update(cases=2), "windows: is"),
    "a window": ("summary.json", lambda value: value["windows"].pop(0), "windows: is"),
    "the rate": ("summary.json", lambda value: value.update(cases_per_second=1e6), "cases_per_second: is"),
    "the manifest's verdict": ("manifest.json", lambda value: value.update(verdict="PASS"), "verdict: is PASS"),
    "the manifest's target": ("manifest.json", lambda value: value.update(target="other"), "but plan.json has"),
    "a source": ("manifest.json", lambda value: value["sources"].update({"run.py": "0" * 64}), "another version ran"),
    "the claim": ("plan.json", lambda value: value["target"].update(claims="at-most-once"), "but plan.json has 'at-most-once'"),
    "no claim": ("plan.json", lambda value: value["target"].update(claims=None), "but plan.json has None"),
    "a command": ("plan.json", lambda value: value["target"]["worker"].update(work=["true"]), "worker.work: is"),
}


@pytest.mark.parametrize("what", DOCUMENTS)
def test_an_edited_document_is_seen(what: str, out: Path) -> None:
    name, edit, said = DOCUMENTS[what]
    edit_document(out, name, edit)
    report = audited(out)
    assert report.verdict == "FAIL"
    assert report.checked == "the evidence does not agree with itself"
    assert any(said in str(each) for each in report.findings), [str(each) for each in report.findings]


def test_an_edited_table_is_seen(out: Path) -> None:
    path = out / "table.md"
    path.write_text(path.read_text().replace("lost", "recovered"))
    mended(out, "table.md")
    assert "table.md: is not the table that the lines give" in [str(each) for each in audited(out).findings]


def test_a_missing_line_is_seen(out: Path) -> None:
    lines = (out / "results.jsonl").read_text().splitlines(keepends=True)
    (out / "results.jsonl").write_text("".join(lines[:-1]))
    mended(out, "results.jsonl")
    assert any("cases: is 6, but the lines give 5" in str(each) for each in audited(out).findings)


def test_a_file_of_nobody_is_seen(out: Path) -> None:
    (out / "cases" / "work_nobody_1").mkdir()
    (out / "cases" / "work_nobody_1" / "x").write_text("x")
    mended(out, "cases/work_nobody_1/x")
    assert any("is an extra file" in str(each) for each in audited(out).findings)


def test_what_a_check_leaves_validates_against_the_published_schemas(whole: Path, tmp_path: Path) -> None:
    receiver = checked(tmp_path, receiver_case("replay", verdicts.VIOLATED), receiver_case("restart-after-success"))
    folder = ROOT / "evidence" / "schemas"
    for out, lines in ((whole, "check-worker-result"), (receiver, "check-receiver-result")):
        for name in ("manifest", "plan", "summary"):
            schema = json.loads((folder / f"check-{name}.schema.json").read_text())
            jsonschema.validate(json.loads((out / f"{name}.json").read_text()), schema)
        schema = json.loads((folder / f"{lines}.schema.json").read_text())
        for line in (out / "results.jsonl").read_text().splitlines():
            jsonschema.validate(json.loads(line), schema)


def test_two_checks_are_not_compared(whole: Path, out: Path) -> None:
    found = compare(str(whole), str(out))
    assert (found.verdict, len(found.problems)) == ("unreadable", 2)
    assert "none is compared" in found.problems[0]


def test_the_audit_knows_the_expectations_that_receivers_are_tried_by() -> None:
    tried = {each.name: (each.source, each.severity, each.policy) for each in battery.BATTERY}
    assert tried == check_battery.BATTERY
