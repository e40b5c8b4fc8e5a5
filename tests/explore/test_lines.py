"""Lines in the place of points: every line that a run comes to is a case, and what was found is told in ranges of lines."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import run
from scenarios.engine import lines
from scenarios.explore import windows
from scenarios.explore.levels import LINES
from scenarios.explore.model import Death, Role, deaths
from scenarios.explore.verdicts import DUPLICATE, HELD, LOST, UNKNOWN, VIOLATED
from tests.explore.ground import KEYED, MARK_FIRST, Ground, named, only, plan, program, told_by

WORKFLOW = "outbox.workflow"
KEYED_RECEIVER = "receivers.keyed"


def line_of(code: str, module: str = WORKFLOW) -> int:
    """The only line of a module with this code."""
    text = lines.source(module).read_text("utf-8").splitlines()
    (number,) = [number for number, each in enumerate(text, 1) if code in each]
    return number


SEND, RESPONSE = line_of("outcome = await wire.send("), line_of("faults.reach(RESPONSE)")


def test_a_line_is_died_at_the_first_eight_times_and_the_last() -> None:
    found = [*deaths({"dispatcher": {f"{WORKFLOW}:9": 1, f"{WORKFLOW}:7": 2, f"{WORKFLOW}:8": 99, "send.before": 4}})]
    assert [str(each.setting) for each in found if each.point == "send.before"] == [f"send.before#{n}" for n in range(1, 5)]
    assert [each.setting for each in found if each.point != "send.before"] == [
        f"{WORKFLOW}:9#1", f"{WORKFLOW}:7#1", f"{WORKFLOW}:7#2",
        *(f"{WORKFLOW}:8#{n}" for n in (*range(1, 9), 99)),
    ]  # fmt: skip


def test_two_runs_list_the_same_lines_of_every_process(ground: Ground, tmp_path: Path) -> None:
    derived = ground.derive(KEYED, tmp_path / "base", by_line=True)
    assert derived.doubts == ()
    (reached,) = derived.reached
    assert list(reached) == ["producer", "receiver", "dispatcher"]
    modules = {point.partition(":")[0] for points in reached.values() for point in points}
    assert modules >= {WORKFLOW, "outbox.journal", "outbox.transport", "receivers.server", "receivers.keyed"}
    assert all(module.partition(".")[0] in ("outbox", "receivers") for module in modules)
    assert reached["dispatcher"][f"{WORKFLOW}:{RESPONSE}"] == 1


def test_runs_that_list_other_lines_give_no_cases(ground: Ground, tmp_path: Path) -> None:
    which = only(KEYED, "doubtful/fickle", Role(program("other", "fickle")))
    (doubt,) = ground.derive(which, tmp_path / "base", by_line=True).doubts
    assert "two runs without faults reached other points: for instance other at outbox.faults:" in doubt


def test_a_process_that_lists_no_line_gives_no_cases(ground: Ground, tmp_path: Path) -> None:
    which = only(KEYED, "doubtful/unwatched", Role(program("other", "exit", "0")))
    (doubt,) = ground.derive(which, tmp_path / "base", by_line=True).doubts
    assert "other listed no line in round 1, so it was not watched" in doubt


@pytest.mark.parametrize(
    ("process", "module", "number"),
    [("dispatcher", WORKFLOW, RESPONSE), ("receiver", KEYED_RECEIVER, line_of("self.ledger.apply", KEYED_RECEIVER))],
)
def test_whoever_dies_at_a_line_is_a_process_of_its_own_and_is_recovered_from(
    ground: Ground, tmp_path: Path, process: str, module: str, number: int
) -> None:
    played = ground.play(named(KEYED, f"{process}:{module}:{number}#1"), tmp_path / "case")
    assert (played.verdict.outcome, played.verdict.doubts) == (HELD, ())
    assert [left.death for left in played.left] == [Death(process, f"{module}:{number}", 1)]
    told = json.loads((tmp_path / "case" / "processes.json").read_text())["processes"]
    (dead,) = [each for each in told if each["exit_code"] == 23]
    assert dead["environment"] == {"HALT_AT_LINE": f"{module}:{number}#1"}
    assert dead["fault"] == {"point": f"{module}:{number}", "occurrence": 1}
    assert dead["stderr"].splitlines()[-1].startswith(f"halt(23) at {module}:{number}#1 in ")
    assert [each["process"] for each in told].count("receiver") == (2 if process == "receiver" else 0)


def test_a_line_that_is_not_reached_is_unknown(ground: Ground, tmp_path: Path) -> None:
    verdict = ground.play(named(KEYED, f"dispatcher:{WORKFLOW}:{RESPONSE}#2"), tmp_path / "case").verdict
    assert verdict.outcome == UNKNOWN
    assert f"dispatcher was armed at {WORKFLOW}:{RESPONSE}#2 and did not halt there" in verdict.doubts[0]


def test_a_campaign_of_lines_goes_through_the_lines(ground: Ground, tmp_path: Path) -> None:
    campaign = ground.campaign(plan(KEYED, mode=LINES, budget=4), tmp_path)
    assert (campaign.totals.cases, campaign.totals.held) == (4, 4)
    listed = (tmp_path / "baseline" / KEYED.name / "run-1" / "points" / "1.producer").read_text().split()
    assert next(iter(told_by(tmp_path))) == f"{KEYED.name}/producer:{listed[0]}#1"
    assert campaign.totals.fired <= set(listed)


def test_a_mistake_is_told_as_the_lines_between_which_it_lies(ground: Ground, tmp_path: Path) -> None:
    found = windows.Windows()
    for number in (SEND, RESPONSE):
        played = ground.play(named(MARK_FIRST, f"dispatcher:{WORKFLOW}:{number}#1"), tmp_path / str(number))
        found.add(result(f"dispatcher:{WORKFLOW}:{number}", played.verdict.outcome, *played.verdict.kinds))
    before, behind = found.ranges()
    assert str(before) == f"outbox/workflow.py:{SEND} Workflow._attempt()  dispatcher: VIOLATED (lost), 1 case"
    assert behind.outcome == "HELD"


def result(at: str, verdict: str, *kinds: str) -> dict[str, Any]:
    """As much of a result as ranges are made of."""
    process, _, point = at.partition(":")
    return {"verdict": verdict, "kinds": list(kinds), "deaths": [{"process": process, "point": point}]}


def test_lines_of_one_function_with_one_outcome_are_one_range() -> None:
    attempt = [number for number in sorted(lines.executable(WORKFLOW)) if SEND <= number <= RESPONSE]
    results = [result(f"dispatcher:{WORKFLOW}:{number}", VIOLATED, LOST) for number in attempt]
    results += [result(f"dispatcher:{WORKFLOW}:{SEND - 1}", VIOLATED, DUPLICATE)]
    results += [result(f"dispatcher:{WORKFLOW}:{SEND - 1}", HELD), result(f"second:{WORKFLOW}:{SEND}", HELD)]
    results += [result(f"dispatcher:{WORKFLOW}:{line_of('asked += 1')}", HELD), result("dispatcher:send.before", HELD)]
    assert [*windows.told(results, everything=True)] == [
        f"outbox/workflow.py:{SEND - 1} Workflow._attempt()  dispatcher: VIOLATED (duplicate), 1 of 2 cases",
        f"outbox/workflow.py:{SEND}-{RESPONSE} Workflow._attempt()  dispatcher: VIOLATED (lost), {len(attempt)} cases",
        f"outbox/workflow.py:{line_of('asked += 1')} Workflow._times_asked()  dispatcher: HELD, 1 case",
        f"outbox/workflow.py:{SEND} Workflow._attempt()  second: HELD, 1 case",
        f"{len(attempt) + 2} lines of 2 functions were executed, and each was died at",
    ]
    assert len([*windows.told(results, everything=False)]) == 3


def test_a_line_of_no_known_module_is_told_as_it_is() -> None:
    (told, _sum) = windows.told([result("other:outbox.gone:7", UNKNOWN)], everything=False)
    assert told == "outbox.gone:7 ?()  other: UNKNOWN, 1 case"


def test_what_is_listed_of_lines_is_not_listed_of_points(ground: Ground, tmp_path: Path) -> None:
    """A write is done in two halves, by other lines, while somebody lists points."""
    case = named(KEYED, f"dispatcher:{WORKFLOW}:{RESPONSE}#1")
    assert case.by_line
    assert not replace(case, rounds=()).by_line
    ground.play(case, tmp_path / "case", observe=True, by_line=True)
    (first, second) = sorted((tmp_path / "case" / "points").glob("*.dispatcher"))
    assert first.read_text().split()[-1] == f"{WORKFLOW}:{RESPONSE}"
    assert f"{WORKFLOW}:{RESPONSE}" in second.read_text().split()


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["journal/keyed", "dispatch/keyed"])
def test_nothing_is_violated_whatever_line_is_died_at(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["explore", "--mode", "lines", "--subject", name, "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^PASS .*: 1\d{3} cases, 0 violated, 0 unknown", told, re.MULTILINE)
    assert re.search(r"^\d{3} lines of \d{3} functions were executed, and each was died at$", told, re.MULTILINE)
