"""The engine against scenarios that do not come out as declared: each is told in a sentence, and the others still run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import run as command_line
from outbox import faults
from scenarios.catalogue import SCENARIOS
from scenarios.catalogue.parts import client, dispatcher, producer, receiver
from scenarios.engine.study import StudyResult
from scenarios.errors import EvidenceIncomplete
from scenarios.model import (
    Await,
    AwaitPaused,
    Begin,
    Check,
    Counts,
    Kill,
    Resume,
    Run,
    Scenario,
    Start,
    Step,
    Stop,
    Together,
)
from tests.scenarios.declared import SERVER, SHORT, program, result_of, scenario, study

KEYED = receiver("keyed")


# Each with what the sentence must hold: scenario, process, expected and actual.
BAD: Sequence[tuple[Scenario, tuple[str, ...]]] = (
    (
        scenario("wrong_exit_code", Run(program("exit", "3"))),
        ("step 1 (run): program", "expected exit code 0", "actual exit code 3"),
    ),
    (
        scenario("a_bug_is_not_a_halt", Run(program("fail"), exit_code=23)),
        ("program (incarnation 1)", "expected exit code 23", "actual exit code 1", "it said: RuntimeError: a bug of its own"),
    ),
    (
        scenario("a_signal_is_not_a_code", Run(program("raise_signal", "SIGTERM"), exit_code=15)),
        ("step 1 (run): program", "expected exit code 15", "actual signal SIGTERM"),
    ),
    (
        scenario("unreached_point", Run(producer("k", "{}"), halt_at="receipt.append.before#1", exit_code=23)),
        ("producer", "armed to halt at receipt.append.before#1", "expected exit code 23", "actual exit code 0", "not reached"),
    ),
    (
        scenario("unreached_occurrence", Run(producer("k", "{}"), halt_at="intention.append.synced#2", exit_code=23)),
        ("producer", "intention.append.synced#2", "expected exit code 23", "actual exit code 0", "not reached"),
    ),
    (
        scenario("unreached_in_a_server", Start(KEYED, halt_at="effect.append.before#1"), Stop("receiver")),
        ("receiver (incarnation 1)", "effect.append.before#1", "not reached"),
    ),
    (
        scenario("unreached_though_the_code_is_right", Run(producer("k", "{}"), halt_at="receipt.append.before#1")),
        ("producer (incarnation 1)", "receipt.append.before#1", "not reached"),
    ),
    (
        scenario("wrong_count", Run(producer("k", "{}")), expected=Counts(1, 0, 0, 0)),
        ("expected Counts(effects=1,", "actual Counts(effects=0,"),
    ),
    (scenario("stop_without_start", Stop("server")), ("step 1 (stop)", "no process named server is running")),
    (scenario("kill_without_start", Kill("server")), ("step 1 (kill)", "no process named server is running")),
    (scenario("await_without_start", Await("server", 0)), ("step 1 (await)", "no process named server is running")),
    (scenario("left_running", Start(SERVER)), ("server (incarnation 1) was left running at the end",)),
    (scenario("started_twice", Start(SERVER), Start(SERVER)), ("step 2 (start)", "server is running already")),
    (
        scenario("ended_before_ready", Start(program("exit", "3", process="server"))),
        ("step 1 (start): server", "expected its READY line", "it ended with exit code 3"),
    ),
    (
        scenario("stops_with_a_code", Start(program("on_term", "4", process="server")), Stop("server")),
        ("step 2 (stop): server", "expected exit code 0", "actual exit code 4"),
    ),
    (
        scenario("stops_by_the_signal", Start(program("wait", process="server")), Stop("server")),
        ("step 2 (stop): server", "expected exit code 0", "actual signal SIGTERM"),
    ),
    (
        scenario(
            "awaited_with_another_code",
            Start(program("fail_when_told", process="server")),
            Run(program("end_other")),
            Await("server", 23),
        ),
        ("step 3 (await): server (incarnation 1)", "expected exit code 23", "actual exit code 5"),
    ),
    (
        scenario("ended_unasked", Start(program("fail_when_told", process="server")), Run(program("end_other"))),
        ("server (incarnation 1)", "exit code 5"),
    ),
    (
        scenario(
            "failing_check", Run(producer("k", "{}")), Check("middle", Counts(0, 1, 0, 0)), Run(dispatcher(), exit_code=10)
        ),
        ("step 2 (check): checkpoint middle", "receipts=1", "actual Counts(effects=0, receipts=0", "steps 3 to 3 were not run"),
    ),
    (
        scenario(
            "damaged_at_check",
            Start(KEYED),
            Run(client("k", "{}")),
            Stop("receiver"),
            Run(program("damage", "receiver/effects.jsonl")),
            Check("middle", Counts(1, 0, 0, 1)),
        ),
        ("step 5 (check): checkpoint middle cannot be counted", "effects.jsonl, line 1: its checksum is"),
    ),
    (
        scenario("damaged_at_the_end", Run(producer("k", "{}")), Run(program("damage", "outbox/intentions.jsonl"))),
        ("cannot be counted", "intentions.jsonl, line 1: its checksum is"),
    ),
)
# The same with processes that go on for ever, run with short bounds.
ENDLESS: Sequence[tuple[Scenario, tuple[str, ...]]] = (
    (
        scenario("never_ready", Start(program("silent", process="server"))),
        ("step 1 (start): server", "expected its READY line within 3 s", "none came"),
    ),
    (scenario("never_ends", Run(program("silent"))), ("step 1 (run): program", "expected its end within 1 s", "was killed")),
    (
        scenario("ignores_the_stop", Start(program("stubborn", process="server")), Stop("server")),
        ("step 2 (stop): server", "expected its end within 1 s", "was killed"),
    ),
    (
        scenario("awaited_for_ever", Start(program("wait", process="server")), Await("server", 23)),
        ("step 2 (await): server", "expected its end within 1 s", "was killed"),
    ),
)
GOOD = scenario(
    "still_fine",
    Start(KEYED),
    Run(client("k", "{}")),
    Kill("receiver"),
    Start(KEYED),
    Run(producer("k", "{}")),
    Run(dispatcher()),
    Stop("receiver"),
    expected=Counts(effects=1, receipts=1, history=1, arrivals=2),
)


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResult, str, Path]:
    """All bad scenarios and a good one last, in one study."""
    out = tmp_path_factory.mktemp("engine") / "run"
    result, progress = study(out, *(each for each, _words in BAD), GOOD)
    return result, progress, out


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResult, Path]:
    """All scenarios whose processes never end, with short bounds."""
    out = tmp_path_factory.mktemp("engine") / "run"
    result, _progress = study(out, *(each for each, _words in ENDLESS), bounds=SHORT)
    return result, out


def assert_told(result: StudyResult, name: str, words: tuple[str, ...]) -> None:
    problems = result_of(result, name).problems
    assert problems
    assert all(each.startswith(f"delivery/{name}: ") for each in problems)
    text = "\n".join(problems)
    assert [word for word in words if word not in text] == [], text


@pytest.mark.parametrize(("name", "words"), [(each.name, words) for each, words in BAD])
def test_a_scenario_that_goes_wrong_is_told_in_a_sentence(
    bad: tuple[StudyResult, str, Path], name: str, words: tuple[str, ...]
) -> None:
    assert_told(bad[0], name, words)


@pytest.mark.parametrize(("name", "words"), [(each.name, words) for each, words in ENDLESS])
def test_a_process_that_goes_on_for_ever_is_ended_at_its_bound_and_told(
    endless: tuple[StudyResult, Path], name: str, words: tuple[str, ...]
) -> None:
    assert_told(endless[0], name, words)


def test_a_process_ended_at_its_bound_is_recorded_as_ended_by_the_harness(endless: tuple[StudyResult, Path]) -> None:
    records = json.loads((endless[1] / "processes.json").read_text())["processes"]
    assert [(each["signal"], each["exit_code"], each["ended_by"]) for each in records] == [("SIGKILL", None, "harness")] * 4


def test_a_server_that_has_ended_before_it_is_awaited_is_found_all_the_same(tmp_path: Path) -> None:
    # An armed server halts while a client waits for it, so its end comes before the step that awaits it.
    ended = scenario(
        "ended_before",
        Start(program("fail_when_told", process="server")),
        Run(program("end_other")),
        Await("server", 5),
        Start(KEYED, halt_at="effect.append.before#1"),
        Run(client("k", "{}"), exit_code=12),
        Await("receiver", 23),
        expected=Counts(effects=0, receipts=0, history=0, arrivals=1),
    )
    result, _progress = study(tmp_path / "run", ended)
    assert result.problems == []


def test_the_others_still_run_and_pass(bad: tuple[StudyResult, str, Path]) -> None:
    result, progress, _out = bad
    assert result_of(result, "still_fine").problems == []
    assert result_of(result, "still_fine").counts == GOOD.expected
    assert "PASS delivery/still_fine  5 processes" in progress
    assert [each.scenario.name for each in result.results] == [*(each.name for each, _words in BAD), "still_fine"]


def test_progress_tells_each_scenario_in_a_line(bad: tuple[StudyResult, str, Path]) -> None:
    lines = bad[1].splitlines()
    assert sorted(line.split()[1] for line in lines) == sorted(["delivery/still_fine", *(each.path for each, _words in BAD)])


def test_one_problem_is_told_once(bad: tuple[StudyResult, str, Path]) -> None:
    # A failed step ends the scenario, and neither the counts nor the leftovers are held against it as well.
    assert len(result_of(bad[0], "started_twice").problems) == 1
    assert len(result_of(bad[0], "ended_before_ready").problems) == 1
    assert len(result_of(bad[0], "wrong_exit_code").problems) == 1


def test_the_evidence_of_a_failed_study_is_complete_and_says_fail(bad: tuple[StudyResult, str, Path]) -> None:
    result, _progress, out = bad
    assert (out / "manifest.json").is_file()
    archived = json.loads((out / "results.json").read_text())
    assert archived["verdict"] == "FAIL"
    assert [each["problems"] for each in archived["scenarios"]] == [each.problems for each in result.results]
    verdicts = {each["scenario"]: each["verdict"] for each in archived["scenarios"]}
    assert verdicts == {each.scenario.path: "FAIL" if each.problems else "PASS" for each in result.results}


def test_the_records_say_how_each_process_really_ended_and_who_ended_it(bad: tuple[StudyResult, str, Path]) -> None:
    records = json.loads((bad[2] / "processes.json").read_text())["processes"]

    def ends(name: str) -> list[tuple[str, int | None, str | None, str]]:
        mine = [each for each in records if each["scenario"] == f"delivery/{name}"]
        return [(each["process"], each["exit_code"], each["signal"], each["ended_by"]) for each in mine]

    assert ends("wrong_exit_code") == [("program", 3, None, "itself")]
    assert ends("a_bug_is_not_a_halt") == [("program", 1, None, "itself")]
    assert ends("left_running") == [("server", None, "SIGKILL", "harness")]
    assert ends("stops_with_a_code") == [("server", 4, None, "stop")]
    assert ends("stop_without_start") == []
    assert ends("still_fine")[0] == ("receiver", None, "SIGKILL", "kill")


def test_an_unknown_fault_point_is_a_problem_of_its_scenario_only(tmp_path: Path) -> None:
    misspelled = scenario("misspelled", Run(producer("k", "{}"), halt_at="intention.append.befor#1", exit_code=23))
    result, _progress = study(tmp_path / "run", misspelled, GOOD)
    assert result_of(result, "still_fine").problems == []
    assert "intention.append.befor" in " ".join(result_of(result, "misspelled").problems)
    assert (tmp_path / "run" / "manifest.json").is_file()


def test_a_process_that_leaves_its_output_open_does_not_end_the_run(tmp_path: Path) -> None:
    # Whether what it left behind is ended with it or told as its problem: the others' evidence is written.
    leaving = scenario("leaves_output_open", Run(program("hold_output")))
    result, _progress = study(tmp_path / "run", leaving, bounds=SHORT)
    assert [each for each in result.problems if "program (incarnation 1)" not in each] == []
    record = json.loads((tmp_path / "run" / "processes.json").read_text())["processes"][0]
    assert (record["exit_code"], record["signal"]) == (0, None)
    assert (tmp_path / "run" / "manifest.json").is_file()


def test_a_machine_that_refuses_while_scenarios_run_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    twice = scenario("twice", Run(program("exit", "0")))  # the second finds the directory of the first: FileExistsError
    with pytest.raises(EvidenceIncomplete, match="the run is incomplete"):
        study(tmp_path / "run", twice, twice)
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_main_exits_1_prints_the_problems_and_fails_where_a_scenario_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "SCENARIOS", (BAD[0][0], GOOD))
    out = tmp_path / "run"
    assert command_line.main(["--out", str(out), "--spawn", "exec", "--jobs", "2"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith(f"FAIL {out}: 2 scenarios, 6 child processes, ")
    assert (
        "delivery/wrong_exit_code: step 1 (run): program (incarnation 1): expected exit code 0, actual exit code 3" in said.err
    )
    assert (out / "tables.md").read_text().count("**not as declared**") == 1


# Rules that hold for the whole catalogue.


def test_every_kind_of_step_is_used_by_a_declared_scenario() -> None:
    kinds = set(Step.__args__)
    done = {type(step) for each in SCENARIOS for step in each.steps}
    assert done == kinds  # each is run by the study, and a kind without a handler would end it
    assert len({kind.do for kind in kinds}) == len(kinds)


def test_scenario_names_are_unique() -> None:
    paths = [each.path for each in SCENARIOS]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("declared", SCENARIOS, ids=lambda each: each.path)
def test_a_declared_scenario_ends_every_process_that_it_starts(declared: Scenario) -> None:
    alive: set[str] = set()
    for step in declared.steps:
        match step:
            case Start(program=started) | Begin(program=started):
                assert started.process not in alive
                alive.add(started.process)
            case Run(program=started):
                assert started.process not in alive
            case Together(runs=runs):
                names = [each.program.process for each in runs]
                assert len(set(names)) == len(names)
                assert not alive & set(names)
            case AwaitPaused(process=name) | Resume(process=name):
                assert name in alive
            case Stop(process=name) | Kill(process=name) | Await(process=name):
                alive.remove(name)
    assert alive == set()


@pytest.mark.parametrize("declared", SCENARIOS, ids=lambda each: each.path)
def test_a_declared_fault_is_a_declared_point_and_its_step_expects_the_halt(declared: Scenario) -> None:
    for number, step in enumerate(declared.steps):
        halt_at = getattr(step, "halt_at", None)
        if halt_at is None:
            continue
        fault = faults.parse(halt_at)
        assert str(fault) == halt_at
        ends = [step, *declared.steps[number + 1 :]]
        assert any(getattr(each, "exit_code", None) == 23 for each in ends)
