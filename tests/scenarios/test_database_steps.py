"""Steps on a scenario's database: what each does on SQLite, what it says of what it met instead, and what is left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from scenarios.catalogue.dispatch.parts import ONE, TWO, enqueue, operator
from scenarios.engine.study import StudyResult
from scenarios.model import (
    Await,
    AwaitPaused,
    Begin,
    Counts,
    Export,
    KillDatabase,
    LimitFiles,
    Resume,
    Rows,
    Run,
    Scenario,
    StartDatabase,
    Write,
)
from tests.scenarios.declared import program, result_of, scenario, study

PENDING = Rows(pending=1)
DATABASE = "state/dispatch.db"
ENQUEUED = Counts(effects=0, receipts=0, history=1, arrivals=0)

# Each with what its one sentence must hold.
BAD: Sequence[tuple[Scenario, tuple[str, ...]]] = (
    (
        scenario("not_as_declared", Run(enqueue()), Export("end", Rows(delivered=1, attempts=1))),
        ("step 2 (export): export end", "expected Rows(pending=0, ", "actual Rows(pending=1, "),
    ),
    (
        scenario(
            "one_name_twice", Run(enqueue()), Export("same", PENDING), Run(enqueue(ids=(TWO,))), Export("same", Rows(pending=2))
        ),
        ("step 4 (export): export same", "exists"),
    ),
    (
        scenario("no_database_any_more", Run(enqueue()), Write(DATABASE, "no database " * 100), Export("end", PENDING)),
        ("step 3 (export): export end", "is no database"),
    ),
    (
        scenario("limit_of_nobody", LimitFiles("producer", 0)),
        ("step 1 (limit_files)", "no process named producer is running"),
    ),
    (
        scenario("limit_of_ended", Run(program("exit", "0")), LimitFiles("program", 0)),
        ("step 2 (limit_files): program (incarnation 1)", "expected to be running", "ended with exit code 0"),
    ),
    (
        scenario(
            "limit_too_high_to_hurt",
            Begin(enqueue(), pause_at="dispatch.enqueue.before#1"),
            AwaitPaused("producer"),
            LimitFiles("producer", 1 << 30),
            Resume("producer"),
            Await("producer", exit_code=16),
        ),
        ("step 5 (await): producer (incarnation 1)", "expected exit code 16", "actual exit code 0"),
    ),
)
GOOD: Sequence[Scenario] = (
    scenario("nothing_was_written", Export("end", Rows())),
    scenario(
        "seen_at_two_moments",
        Run(enqueue()),
        Export("early", PENDING),
        Run(operator("purge", ONE, at=1001)),
        Export("end", Rows(events=1)),
        expected=ENQUEUED,
    ),
    scenario(
        "no_room_then_room",
        Begin(enqueue(), pause_at="dispatch.enqueue.before#1"),
        AwaitPaused("producer"),
        LimitFiles("producer", 0),
        Resume("producer"),
        Await("producer", exit_code=16),
        Export("meanwhile", Rows()),
        Run(enqueue()),
        Export("end", PENDING),
        expected=ENQUEUED,
    ),
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResult, Path]:
    """All of them in one study."""
    out = tmp_path_factory.mktemp("database_steps") / "run"
    return study(out, *(each for each, _words in BAD), *GOOD)[0], out


def export_of(out: Path, name: str, export: str) -> Mapping[str, Any]:
    path = out / "scenarios" / "delivery" / name / "exports" / f"{export}.json"
    value: Mapping[str, Any] = json.loads(path.read_bytes())
    return value


@pytest.mark.parametrize(("name", "words"), [(each.name, words) for each, words in BAD])
def test_what_was_not_as_declared_is_told_in_a_sentence(
    done: tuple[StudyResult, Path], name: str, words: tuple[str, ...]
) -> None:
    problems = result_of(done[0], name).problems
    assert any(all(word in problem for word in words) for problem in problems), problems


@pytest.mark.parametrize("name", [each.name for each in GOOD])
def test_the_others_are_left_alone(done: tuple[StudyResult, Path], name: str) -> None:
    assert result_of(done[0], name).problems == []


def test_no_database_is_left_in_the_evidence_whether_a_scenario_failed_or_not(done: tuple[StudyResult, Path]) -> None:
    assert [path for path in done[1].rglob("*") if "state" in path.parts or path.name.startswith("dispatch.db")] == []


def test_a_second_export_of_one_name_leaves_the_first_as_it_was(done: tuple[StudyResult, Path]) -> None:
    assert [row["id"] for row in export_of(done[1], "one_name_twice", "same")["dispatch_outbox"]] == [ONE]


def test_what_an_export_found_is_in_the_results_also_where_it_was_not_declared(done: tuple[StudyResult, Path]) -> None:
    results = {each["scenario"]: each for each in json.loads((done[1] / "results.json").read_text())["scenarios"]}
    (wrong,) = results["delivery/not_as_declared"]["exports"]
    assert (wrong["name"], wrong["expected"]["delivered"], wrong["rows"]["pending"]) == ("end", 1, 1)
    early, end = results["delivery/seen_at_two_moments"]["exports"]
    assert (early["name"], early["rows"], end["name"], end["rows"]["events"]) == ("early", early["expected"], "end", 1)
    assert results["delivery/no_database_any_more"]["exports"] == []


def test_an_export_holds_every_column_but_the_numbers_of_rows_in_the_order_of_the_keys(done: tuple[StudyResult, Path]) -> None:
    tables = export_of(done[1], "seen_at_two_moments", "early")
    assert list(tables) == ["format", "format_version", "dispatch_outbox", "status_transitions", "admin_events"]
    assert (tables["format"], tables["format_version"]) == ("halt23.dispatch", 1)
    (row,) = tables["dispatch_outbox"]
    assert (row["id"], row["status"], row["created_at"], json.loads(row["payload"])["dispatch_id"]) == (
        ONE,
        "pending",
        1000.0,
        ONE,
    )
    (move,) = tables["status_transitions"]
    assert (move["entity_id"], move["status"], "id" in move) == (ONE, "pending", False)
    after = export_of(done[1], "seen_at_two_moments", "end")
    assert (after["dispatch_outbox"], after["status_transitions"]) == ([], [move])
    (event,) = after["admin_events"]
    assert "id" not in event


def test_a_program_is_given_the_database_and_its_record_says_where_it_was(done: tuple[StudyResult, Path]) -> None:
    records = json.loads((done[1] / "processes.json").read_text())["processes"]
    first = next(each for each in records if each["scenario"] == "delivery/not_as_declared")
    assert first["command"][first["command"].index("--db") + 1] == "{db}"
    assert first["substitutions"] == {"db": DATABASE}


def test_every_step_on_a_database_reads_as_data() -> None:
    members: Mapping[str, Mapping[str, Any]] = {
        "export": {"name": "end", "rows": asdict(PENDING)},
        "limit_files": {"process": "producer", "max_bytes": 0},
        "kill_database": {},
        "start_database": {},
    }
    read = scenario("read", Export("end", PENDING), LimitFiles("producer", 0), KillDatabase(), StartDatabase()).data()
    assert read["steps"] == [{"do": do, **rest} for do, rest in members.items()]
    assert (read["store"], read["counterexample"]) == (None, False)
    assert json.loads(json.dumps(read)) == read


# What must not end the others' run.


def test_a_server_that_sqlite_has_not_is_its_scenarios_problem_and_the_others_still_run(tmp_path: Path) -> None:
    asking = [scenario(step.do, Run(enqueue()), step) for step in (KillDatabase(), StartDatabase())]
    result, _progress = study(tmp_path / "run", *asking, GOOD[0])
    for each in asking:
        (problem,) = result_of(result, each.name).problems
        assert f"step 2 ({each.name})" in problem
        assert "SQLite has no server" in problem
    assert result_of(result, "nothing_was_written").problems == []
    assert (tmp_path / "run" / "manifest.json").is_file()
