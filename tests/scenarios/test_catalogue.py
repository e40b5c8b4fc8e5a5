"""Rules that the declared scenarios of a dispatch outbox keep, beside those for every scenario (test_engine.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outbox import faults
from scenarios.catalogue import SCENARIOS
from scenarios.model import (
    POSTGRES,
    SQLITE,
    STORES,
    AwaitPaused,
    Begin,
    Export,
    KillDatabase,
    LimitFiles,
    Program,
    Resume,
    Run,
    Scenario,
    Start,
    StartDatabase,
    Together,
)
from scenarios.selection import runnable

DISPATCH = [each for each in SCENARIOS if each.section == "dispatch"]
BY_NAME = {each.name: each for each in DISPATCH}
RECORDED = [each for each in DISPATCH if each.name.startswith("recorded_")]
BOOKS = ("--books", "recorded")
# Points inside a transaction.
IN_TRANSACTION = (".written", ".looked")


def programs(scenario: Scenario) -> Iterator[Program]:
    for step in scenario.steps:
        if isinstance(step, Start | Begin | Run):
            yield step.program
        elif isinstance(step, Together):
            yield from (run.program for run in step.runs)


def receivers(scenario: Scenario) -> list[tuple[str, ...]]:
    return [each.arguments for each in programs(scenario) if each.module == "receivers"]


def uses_recorded_books(scenario: Scenario) -> bool:
    return any(BOOKS[0] in program.arguments for program in programs(scenario))


def twin(scenario: Scenario) -> Scenario:
    return BY_NAME["mended_" + scenario.name.removeprefix("recorded_")]


def test_no_two_scenarios_share_a_name_in_any_section() -> None:
    # `--only NAME` and the pages name scenarios without their section.
    names = [each.name for each in SCENARIOS]
    assert len(set(names)) == len(names)


def test_each_store_runs_all_but_the_scenarios_that_need_the_other() -> None:
    assert {each.store for each in SCENARIOS} == {None, *STORES}
    for store, other, count in ((SQLITE, POSTGRES, 69), (POSTGRES, SQLITE, 72)):
        assert [each for each in SCENARIOS if each.store != other] == list(runnable(SCENARIOS, store))
        assert sum(each.section == "dispatch" for each in runnable(SCENARIOS, store)) == count


def opens_beside_another(scenario: Scenario) -> bool:
    """Whether a program reaches a point of its own while another stands in the middle of a transaction."""
    inside: set[str] = set()
    standing: dict[str, str] = {}
    for step in scenario.steps:
        if isinstance(step, Begin) and step.pause_at:
            standing[step.program.process] = step.pause_at
        if isinstance(step, Resume):
            inside.discard(step.process)
        if inside and isinstance(step, Run | AwaitPaused):
            return True
        if isinstance(step, AwaitPaused) and any(word in standing.get(step.process, "") for word in IN_TRANSACTION):
            inside.add(step.process)
    return False


@pytest.mark.parametrize("scenario", DISPATCH, ids=lambda each: each.name)
def test_a_scenario_needs_the_store_that_its_steps_need(scenario: Scenario) -> None:
    kinds = {type(step) for step in scenario.steps}
    needed = {POSTGRES for _ in kinds & {KillDatabase, StartDatabase}} | {SQLITE for _ in kinds & {LimitFiles}}
    if opens_beside_another(scenario):
        needed.add(POSTGRES)  # on SQLite nobody opens the database while another one writes
    assert needed == ({scenario.store} - {None})


@pytest.mark.parametrize("scenario", DISPATCH, ids=lambda each: each.name)
def test_the_last_step_exports_the_tables_and_no_name_is_used_twice(scenario: Scenario) -> None:
    assert isinstance(scenario.steps[-1], Export)
    assert scenario.steps[-1].name == "end"
    names = [step.name for step in scenario.steps if isinstance(step, Export)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("scenario", RECORDED, ids=lambda each: each.name)
def test_what_goes_wrong_as_recorded_goes_right_as_mended_at_the_same_receiver(scenario: Scenario) -> None:
    mended = twin(scenario)
    assert (scenario.counterexample, mended.counterexample) == (True, False)
    assert receivers(scenario) == receivers(mended) != []
    assert (uses_recorded_books(scenario), uses_recorded_books(mended)) == (True, False)
    # What comes out must differ, or the pair shows nothing.
    exports = [[step.rows for step in each.steps if isinstance(step, Export)] for each in (scenario, mended)]
    assert (scenario.expected, exports[0]) != (mended.expected, exports[1])


def test_every_twin_has_its_counterpart_and_nobody_else_uses_the_books_as_recorded() -> None:
    assert len(RECORDED) == 5
    mended = {each.name.removeprefix("mended_") for each in DISPATCH if each.name.startswith("mended_")}
    assert mended == {each.name.removeprefix("recorded_") for each in RECORDED}
    assert [each for each in DISPATCH if uses_recorded_books(each)] == RECORDED


def test_every_point_of_the_dispatch_outbox_and_of_the_books_as_recorded_is_fired_on_either_store() -> None:
    declared = {name for name in faults.declared() if name.startswith(("dispatch.", "recorded."))}
    assert len([name for name in declared if name.startswith("recorded.")]) == 2
    assert len(declared) > 20
    for store in STORES:
        steps = [step for each in runnable(SCENARIOS, store) for step in each.steps]
        halts = {faults.parse(step.halt_at).point for step in steps if isinstance(step, Run | Start | Begin) and step.halt_at}
        assert declared <= halts
