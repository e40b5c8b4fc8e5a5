"""Small scenarios for tests of the engine: what they are made of, how they are run, and how a result is found again."""

from __future__ import annotations

import io
from pathlib import Path

from scenarios.engine.runner import ScenarioResult
from scenarios.engine.stage import Bounds
from scenarios.engine.study import StudyOptions, StudyResult, run_study
from scenarios.model import Counts, Program, Scenario, Step

NOTHING = Counts(effects=0, receipts=0, history=0, arrivals=0)
SHORT = Bounds(ready_seconds=3.0, run_seconds=1.0, stop_seconds=1.0)


def program(*arguments: str, process: str = "program") -> Program:
    """One of `tests.scenarios.programs`, under this name in its scenario."""
    return Program(process, "tests.scenarios.programs", arguments)


SERVER = program("on_term", "0", process="server")


def scenario(name: str, *steps: Step, expected: Counts = NOTHING) -> Scenario:
    """A scenario of these steps, in section delivery."""
    return Scenario("delivery", name, f"Shows {name}", "nowhere", steps, expected)


def study(out: Path, *scenarios: Scenario, bounds: Bounds | None = None) -> tuple[StudyResult, str]:
    """Run them into `out`; the result, and what was told on the way."""
    stream = io.StringIO()
    result = run_study(scenarios, StudyOptions(out, jobs=4, bounds=bounds or Bounds()), stream)
    return result, stream.getvalue()


def result_of(result: StudyResult, name: str) -> ScenarioResult:
    """The result of the scenario of that name."""
    return next(each for each in result.results if each.scenario.name == name)
