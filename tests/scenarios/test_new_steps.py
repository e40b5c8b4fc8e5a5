"""Steps that pause, run side by side, and touch files: what each does, and the sentence that tells what it met instead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scenarios.catalogue.parts import client, dispatcher, producer, receiver
from scenarios.engine.study import StudyResult
from scenarios.model import (
    Await,
    AwaitPaused,
    Begin,
    Check,
    Counts,
    Flip,
    Kill,
    Move,
    Resume,
    Run,
    Scenario,
    Start,
    Stop,
    Together,
    Write,
)
from tests.scenarios.declared import SERVER, SHORT, program, result_of, scenario, study

KEYED = receiver("keyed")


PAUSING = producer("k", "{}")
PAUSE_AT = "intention.append.before#1"


def records(out: Path, name: str) -> list[dict[str, Any]]:
    processes = json.loads((out / "processes.json").read_text())["processes"]
    return [each for each in processes if each["scenario"] == f"delivery/{name}"]


def holds(result: StudyResult, name: str, words: Sequence[str]) -> None:
    """One sentence of this scenario's problems holds all the words."""
    problems = result_of(result, name).problems
    assert any(all(word in problem for word in words) for problem in problems), problems


# Each with what one sentence must hold.
BAD: Sequence[tuple[Scenario, tuple[str, ...]]] = (
    (
        scenario("ended_instead", Begin(PAUSING, pause_at="receipt.append.before#1"), AwaitPaused("producer")),
        ("step 2 (await_paused): producer (incarnation 1)", "ended with exit code 0"),
    ),
    (
        scenario(
            "ended_instead_a_server",
            Start(program("fail_when_told", process="server"), pause_at=PAUSE_AT),
            Run(program("end_other")),
            AwaitPaused("server"),
        ),
        ("step 3 (await_paused): server (incarnation 1)", "ended with exit code 5"),
    ),
    (
        scenario("unknown_pause", Begin(PAUSING, pause_at="intention.append.befor#1"), Await("producer", 0)),
        ("step 1 (begin)", "intention.append.befor"),
    ),
    (
        scenario("pause_where_it_halts", Begin(PAUSING, halt_at=PAUSE_AT, pause_at=PAUSE_AT), Await("producer", 23)),
        ("step 2 (await): producer (incarnation 1)", "expected exit code 23", "actual exit code 2"),
    ),
    (scenario("pause_of_nobody", AwaitPaused("producer")), ("step 1 (await_paused)", "no process named producer is running")),
    (scenario("resume_of_nobody", Resume("producer")), ("step 1 (resume)", "no process named producer is running")),
    (
        scenario("resume_of_running", Start(SERVER), Resume("server"), Stop("server")),
        ("step 2 (resume)", "server (incarnation 1)", "paused"),
    ),
    (
        scenario("resume_of_ended", Run(program("exit", "0")), Resume("program")),
        ("step 2 (resume): program (incarnation 1)", "expected to be running", "ended with exit code 0"),
    ),
    (
        scenario(
            "resumed_twice",
            Begin(PAUSING, pause_at=PAUSE_AT),
            AwaitPaused("producer"),
            Resume("producer"),
            Await("producer", 0),
            Resume("producer"),
        ),
        ("step 5 (resume): producer (incarnation 1)", "ended with exit code 0"),
    ),
    (
        scenario("paused_to_the_end", Begin(PAUSING, pause_at=PAUSE_AT), AwaitPaused("producer")),
        ("producer (incarnation 1) was left running at the end",),
    ),
    (
        scenario("pause_in_vain", Start(SERVER, pause_at=PAUSE_AT), Stop("server")),
        ("server (incarnation 1)", PAUSE_AT, "not reached"),
    ),
    (
        scenario("begun_and_forgotten", Start(program("wait", process="server")), Begin(program("silent")), Kill("server")),
        ("program (incarnation 1) was left running at the end",),
    ),
    (
        scenario("begun_twice", Begin(SERVER), Begin(SERVER)),
        ("step 2 (begin)", "server is running already"),
    ),
    (
        scenario("begun_with_another_code", Begin(program("exit", "3")), Await("program", 0)),
        ("step 2 (await): program (incarnation 1)", "expected exit code 0", "actual exit code 3"),
    ),
    (
        scenario("awaited_too_late_with_another_code", Run(program("exit", "3"), exit_code=3), Await("program", 4)),
        ("step 2 (await): program (incarnation 1)", "expected exit code 4", "actual exit code 3"),
    ),
    (
        scenario(
            "together_both_fail",
            Together((Run(program("exit", "3", process="one")), Run(program("fail", process="two")))),
        ),
        ("step 1 (together)", "one (incarnation 1): expected exit code 0, actual exit code 3"),
    ),
    (
        scenario("together_second_fails", Together((Run(program("exit", "0", process="one")), Run(program("exit", "4"))))),
        ("step 1 (together): program (incarnation 1)", "expected exit code 0, actual exit code 4"),
    ),
    (
        scenario("together_with_one_name", Together((Run(program("silent")), Run(program("silent"))))),
        ("step 1 (together)", "program is running already"),
    ),
    (
        scenario(
            "together_with_an_unknown_point",
            Together((Run(program("silent", process="one")), Run(program("exit", "0"), halt_at="no.such_point"))),
        ),
        ("step 1 (together)", "no.such_point"),
    ),
    (
        scenario(
            "together_unreached",
            Together((Run(PAUSING, halt_at="receipt.append.before#1", exit_code=23), Run(program("exit", "0")))),
        ),
        ("step 1 (together): producer (incarnation 1)", "receipt.append.before#1", "not reached"),
    ),
    (scenario("flip_of_nothing", Flip("receiver/effects.jsonl", 0)), ("step 1 (flip)", "receiver/effects.jsonl has 0 bytes")),
    (
        scenario("flip_at_the_end", Write("clock", "abc"), Flip("clock", 3)),
        ("step 2 (flip)", "clock has 3 bytes, none at offset 3"),
    ),
    (scenario("flip_of_a_folder", Write("folder/clock", "0"), Flip("folder", 0)), ("step 2 (flip)", "folder has 0 bytes")),
    (scenario("flip_of_an_empty_file", Write("clock", ""), Flip("clock", 0)), ("step 2 (flip)", "clock has 0 bytes")),
    (scenario("move_of_nothing", Move("receiver", "lost")), ("step 1 (move)", "there is no receiver that could be moved")),
    (
        scenario("move_onto_a_file", Write("clock", "1"), Write("lost", "2"), Move("clock", "lost")),
        ("step 3 (move)", "clock", "lost"),
    ),
    (
        scenario("move_onto_an_empty_file", Write("clock", "1"), Write("lost", ""), Move("clock", "lost")),
        ("step 3 (move)", "clock", "lost"),
    ),
)
GOOD: Sequence[Scenario] = (
    scenario(
        "paused_and_resumed",
        Begin(PAUSING, pause_at=PAUSE_AT),
        AwaitPaused("producer"),
        Resume("producer"),
        Await("producer", 0),
    ),
    scenario(
        "server_paused",
        Start(KEYED, pause_at="effect.append.synced#2"),
        Run(client("a", "{}", name="client_1")),
        Begin(client("b", "{}", name="client_2")),
        AwaitPaused("receiver"),
        Check("while_paused", Counts(effects=2, receipts=0, history=0, arrivals=2)),
        Resume("receiver"),
        Await("client_2", 0),
        Stop("receiver"),
        expected=Counts(effects=2, receipts=0, history=0, arrivals=2),
    ),
    scenario(
        "killed_while_paused",
        Begin(PAUSING, pause_at="intention.append.synced#1"),
        AwaitPaused("producer"),
        Kill("producer"),
        Run(PAUSING),
    ),
    scenario(
        "paused_then_halted",
        Begin(PAUSING, halt_at="intention.append.synced#1", pause_at=PAUSE_AT),
        AwaitPaused("producer"),
        Resume("producer"),
        Await("producer", 23),
    ),
    scenario("awaited_late", Begin(program("exit", "7")), Await("program", 7)),
    scenario("awaited_after_its_end", Run(program("exit", "7"), exit_code=7), Await("program", 7)),
    scenario(
        "side_by_side",
        Start(receiver("keyed", "--gate", "3", "--work-until", "3")),
        Together(tuple(Run(client("k", "{}", name=f"client_{number}")) for number in (1, 2, 3))),
        Stop("receiver"),
        expected=Counts(effects=1, receipts=0, history=0, arrivals=3),
    ),
    scenario(
        "side_by_side_with_codes",
        Together(
            (
                Run(program("exit", "3", process="one"), exit_code=3),
                Run(PAUSING, halt_at="intention.append.torn#1", exit_code=23),
                Run(program("exit", "0", process="two")),
            )
        ),
    ),
    scenario("together_nobody", Together(())),
    scenario("flipped", Write("clock", "abc"), Flip("clock", 1)),
    scenario("flipped_twice", Write("clock", "abc"), Flip("clock", 1), Flip("clock", 1)),
    scenario("flipped_at_both_ends", Write("clock", "abc"), Flip("clock", 0), Flip("clock", 2)),
    scenario("written_twice", Write("clock", "1"), Write("clock", "22")),
    scenario("written_deep", Write("a/b/clock", "1")),
    scenario("moved_file", Write("clock", "1"), Move("clock", "lost_clock")),
    scenario(
        "moved_folder",
        Start(KEYED),
        Run(client("k", "{}", name="client_1")),
        Stop("receiver"),
        Move("receiver", "lost_receiver"),
        Start(KEYED),
        Run(client("k", "{}", name="client_2")),
        Stop("receiver"),
        expected=Counts(effects=2, receipts=0, history=0, arrivals=2),
    ),
    scenario("moved_and_back", Write("clock", "1"), Move("clock", "lost"), Move("lost", "clock")),
    scenario(
        "corrupt_and_restored",
        Run(PAUSING),
        Flip("outbox/intentions.jsonl", 100),
        Run(dispatcher(), exit_code=14),
        Flip("outbox/intentions.jsonl", 100),
        Run(dispatcher(), exit_code=10),
    ),
)


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResult, Path]:
    """All scenarios that meet something else than they declare, in one study."""
    out = tmp_path_factory.mktemp("steps") / "bad"
    return study(out, *(each for each, _words in BAD))[0], out


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResult, Path]:
    """All scenarios that come out as declared, in one study."""
    out = tmp_path_factory.mktemp("steps") / "good"
    return study(out, *GOOD)[0], out


@pytest.mark.parametrize(("name", "words"), [(each.name, words) for each, words in BAD])
def test_what_was_not_as_declared_is_told_in_a_sentence(
    bad: tuple[StudyResult, Path], name: str, words: tuple[str, ...]
) -> None:
    holds(bad[0], name, words)


def test_nothing_is_left_running_by_a_scenario_that_failed(bad: tuple[StudyResult, Path]) -> None:
    for each, _words in BAD:
        for record in records(bad[1], each.name):
            assert record["exit_code"] is not None or record["signal"] is not None
    (one,) = records(bad[1], "together_with_an_unknown_point")
    assert (one["process"], one["signal"], one["ended_by"]) == ("one", "SIGKILL", "harness")
    (paused,) = records(bad[1], "paused_to_the_end")
    assert (paused["signal"], paused["ended_by"]) == ("SIGKILL", "harness")


def test_two_that_fail_side_by_side_both_end_and_are_both_told(bad: tuple[StudyResult, Path]) -> None:
    ends = [(each["process"], each["exit_code"], each["ended_by"]) for each in records(bad[1], "together_both_fail")]
    assert ends == [("one", 3, "itself"), ("two", 1, "itself")]
    holds(bad[0], "together_both_fail", ("one (incarnation 1)", "actual exit code 3"))
    holds(bad[0], "together_both_fail", ("two (incarnation 1)", "actual exit code 1"))


def test_what_stood_under_the_other_name_is_not_lost(bad: tuple[StudyResult, Path]) -> None:
    folder = bad[1] / "scenarios" / "delivery" / "move_onto_a_file"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"clock": "1", "lost": "2"}


@pytest.mark.parametrize("name", [each.name for each in GOOD])
def test_what_is_as_declared_is_no_problem(good: tuple[StudyResult, Path], name: str) -> None:
    assert result_of(good[0], name).problems == []


def test_processes_tell_where_they_were_to_pause_and_to_halt(good: tuple[StudyResult, Path]) -> None:
    (one,) = records(good[1], "paused_and_resumed")
    assert one["pause"] == {"point": "intention.append.before", "occurrence": 1}
    assert one["environment"] == {"PAUSE_AT": PAUSE_AT}
    assert (one["fault"], one["exit_code"], one["ended_by"]) == (None, 0, "itself")
    assert one["stderr"] == f"paused at {PAUSE_AT}\n"
    server, first, second = records(good[1], "server_paused")
    assert server["pause"] == {"point": "effect.append.synced", "occurrence": 2}
    assert (first["pause"], second["pause"]) == (None, None)
    (both,) = records(good[1], "paused_then_halted")
    assert (both["pause"]["point"], both["fault"]["point"]) == ("intention.append.before", "intention.append.synced")
    assert both["stderr"] == f"paused at {PAUSE_AT}\nhalt(23) at intention.append.synced#1\n"
    assert both["expected_exit"] == {"code": 23, "signal": None}
    killed, again = records(good[1], "killed_while_paused")
    assert (killed["signal"], killed["ended_by"], killed["expected_exit"]["signal"]) == ("SIGKILL", "kill", "SIGKILL")
    assert (again["incarnation"], again["pause"]) == (2, None)
    assert json.loads(again["stdout"])["created"] is False  # it had been durable when it was killed


def test_programs_side_by_side_are_recorded_in_the_order_of_their_declaration(good: tuple[StudyResult, Path]) -> None:
    three = [(each["process"], each["step"]) for each in records(good[1], "side_by_side")]
    assert three == [("receiver", 1), ("client_1", 2), ("client_2", 2), ("client_3", 2)]
    codes = [
        (each["process"], each["exit_code"], each["fault"] is None) for each in records(good[1], "side_by_side_with_codes")
    ]
    assert codes == [("one", 3, True), ("producer", 23, False), ("two", 0, True)]


@pytest.mark.parametrize(
    ("name", "path", "content"),
    [
        ("flipped", "clock", "acc"),
        ("flipped_twice", "clock", "abc"),
        ("flipped_at_both_ends", "clock", "`bb"),
        ("written_twice", "clock", "22"),
        ("written_deep", "a/b/clock", "1"),
        ("moved_file", "lost_clock", "1"),
        ("moved_and_back", "clock", "1"),
    ],
)
def test_a_file_holds_afterwards_what_the_steps_say(good: tuple[StudyResult, Path], name: str, path: str, content: str) -> None:
    folder = good[1] / "scenarios" / "delivery" / name
    assert [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()] == [path]
    assert (folder / path).read_bytes() == content.encode()


def test_a_folder_that_was_moved_away_is_lost_to_its_owner_and_kept(good: tuple[StudyResult, Path]) -> None:
    folder = good[1] / "scenarios" / "delivery" / "moved_folder"
    for name, client_name in (("lost_receiver", "client_1"), ("receiver", "client_2")):
        (line,) = (folder / name / "effects.jsonl").read_text().splitlines()
        assert json.loads(line)["id"] == "k"
        response = json.loads((folder / client_name / "requests.jsonl").read_text().splitlines()[1])
        assert (response["type"], response["data"]["replayed"]) == ("response", False)


def test_every_step_reads_as_data(good: tuple[StudyResult, Path]) -> None:
    members = {
        "start": {"process", "module", "arguments", "halt_at", "pause_at"},
        "begin": {"process", "module", "arguments", "halt_at", "pause_at"},
        "run": {"process", "module", "arguments", "halt_at", "exit_code"},
        "together": {"runs"},
        "stop": {"process"},
        "kill": {"process"},
        "await": {"process", "exit_code"},
        "await_paused": {"process"},
        "resume": {"process"},
        "write": {"path", "content"},
        "flip": {"path", "offset"},
        "move": {"path", "to"},
        "check": {"name", "counts"},
    }
    seen = [step for each in GOOD for step in each.data()["steps"]]
    seen += [run for step in seen if step["do"] == "together" for run in step["runs"]]
    assert {step["do"] for step in seen} == set(members)
    for step in seen:
        assert set(step) == {"do", *members[step["do"]]}
    assert json.loads(json.dumps(seen)) == seen


# What would otherwise end the whole run.

REFUSED: Sequence[tuple[Scenario, tuple[str, ...]]] = (
    (
        scenario("move_onto_a_folder", Write("a/clock", "1"), Write("lost/clock", "2"), Move("a", "lost")),
        ("step 3 (move)", "lost"),
    ),
    (scenario("move_into_no_folder", Write("clock", "1"), Move("clock", "nowhere/clock")), ("step 2 (move)", "nowhere/clock")),
    (scenario("write_onto_a_folder", Write("a/clock", "1"), Write("a", "2")), ("step 2 (write)", "a")),
    (scenario("write_below_a_file", Write("clock", "1"), Write("clock/below", "2")), ("step 2 (write)", "clock")),
    (scenario("flip_before_the_beginning", Write("clock", "abc"), Flip("clock", -1000)), ("step 2 (flip)", "clock", "-1000")),
    (scenario("flip_from_the_end", Write("clock", "abc"), Flip("clock", -1)), ("step 2 (flip)", "clock", "-1")),
    (scenario("write_what_is_not_ascii", Write("clock", "\u00fc")), ("step 1 (write)", "clock")),
)


@pytest.mark.parametrize(("bad_one", "words"), REFUSED, ids=[each.name for each, _words in REFUSED])
def test_a_file_that_a_step_cannot_touch_is_its_scenarios_problem_and_the_others_still_run(
    tmp_path: Path, bad_one: Scenario, words: tuple[str, ...]
) -> None:
    result, _progress = study(tmp_path / "run", bad_one, scenario("still_fine", Run(program("exit", "0"))))
    holds(result, bad_one.name, words)
    assert result_of(result, "still_fine").problems == []
    assert (tmp_path / "run" / "manifest.json").is_file()


# Waits with a bound.

ENDLESS: Sequence[tuple[Scenario, tuple[str, ...]]] = (
    (
        scenario("never_pauses", Begin(program("silent"), pause_at=PAUSE_AT), AwaitPaused("program")),
        ("step 2 (await_paused): program (incarnation 1)", "expected it to pause within 3 s, but it did not"),
    ),
    (
        scenario("never_pauses_again", Begin(PAUSING, pause_at=PAUSE_AT), AwaitPaused("producer"), Await("producer", 0)),
        ("step 3 (await): producer (incarnation 1)", "expected its end within 1 s", "was killed"),
    ),
    (
        scenario("stopped_while_paused", Begin(PAUSING, pause_at=PAUSE_AT), AwaitPaused("producer"), Stop("producer")),
        ("step 3 (stop): producer (incarnation 1)", "expected its end within 1 s", "was killed"),
    ),
    (
        scenario("together_for_ever", Together((Run(program("silent", process="one")), Run(program("silent", process="two"))))),
        ("step 1 (together)", "one (incarnation 1): expected its end within 1 s", "was killed"),
    ),
)


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResult, Path]:
    """All scenarios whose processes never do what is waited for, with short bounds."""
    out = tmp_path_factory.mktemp("steps") / "endless"
    return study(out, *(each for each, _words in ENDLESS), bounds=SHORT)[0], out


@pytest.mark.parametrize(("name", "words"), [(each.name, words) for each, words in ENDLESS])
def test_what_never_comes_is_given_up_at_its_bound(
    endless: tuple[StudyResult, Path], name: str, words: tuple[str, ...]
) -> None:
    holds(endless[0], name, words)
    for record in records(endless[1], name):
        assert (record["signal"], record["ended_by"]) == ("SIGKILL", "harness")


def test_two_that_go_on_for_ever_side_by_side_are_both_ended_and_told(endless: tuple[StudyResult, Path]) -> None:
    for name in ("one", "two"):
        holds(endless[0], "together_for_ever", (f"{name} (incarnation 1): expected its end within 1 s", "was killed"))
