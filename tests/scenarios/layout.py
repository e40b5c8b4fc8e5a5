"""The files that a run of the whole catalogue leaves on SQLite: worked out from its steps, as evidence/README.md has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scenarios.catalogue import SCENARIOS
from scenarios.model import SQLITE, Begin, Check, Export, Move, Program, Run, Start, Step, Together, Write
from scenarios.selection import runnable

LEFT_BY: Mapping[str, set[str]] = {
    "outbox.producer": {"intentions.jsonl"},
    "outbox.dispatcher": {"attempts.jsonl", "receipts.jsonl", "history.jsonl", "dispatcher.lock"},
    "receivers": {"effects.jsonl", "arrivals.jsonl"},
    "scenarios.client": {"requests.jsonl"},
    "scenarios.relay": {"exchanges.jsonl"},
    "scenarios.prefixes": {"prefixes.jsonl"},
}
# These work on a database, which is gone at the end; an export says what it held.
ON_A_DATABASE = ("scenarios.dispatch", "outbox.dispatch")


def files_below(directory: Path) -> set[str]:
    """All files; no folder may be empty, and nothing may be a link."""
    assert [path for path in directory.rglob("*") if path.is_dir() and not any(path.iterdir())] == []
    assert [path for path in directory.rglob("*") if path.is_symlink()] == []
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}


def _programs(steps: Sequence[Step]) -> Iterator[Program]:
    for step in steps:
        match step:
            case Start(program=program) | Begin(program=program) | Run(program=program):
                yield program
            case Together(runs=runs):
                yield from _programs(runs)


def _left_by(program: Program, *, keeps_keys: bool) -> set[str]:
    if program.module in ON_A_DATABASE:
        return set()
    directory = program.arguments[program.arguments.index("--dir") + 1]
    names = LEFT_BY[program.module] | ({"keys.jsonl"} if keeps_keys and program.module == "receivers" else set())
    return {f"{directory}/{name}" for name in names}


def _left_by_steps(steps: Sequence[Step]) -> set[str]:
    left: set[str] = set()
    for program in _programs(steps):
        left |= _left_by(program, keeps_keys=bool({"effect-then-key", "key-then-effect"} & set(program.arguments)))
    for number, step in enumerate(steps):
        if isinstance(step, Check):
            before: set[str] = set()
            for program in _programs(steps[:number]):
                before |= {name for name in _left_by(program, keeps_keys=False) if name.endswith(".jsonl")}
            left |= {f"checkpoints/{step.name}/{name}" for name in before}
        elif isinstance(step, Export):
            left.add(f"exports/{step.name}.json")
        elif isinstance(step, Write):
            left.add(step.path)
        elif isinstance(step, Move):
            left |= {f"{step.to}/{name.removeprefix(step.path + '/')}" for name in left if name.startswith(f"{step.path}/")}
    return left


def layout() -> set[str]:
    """The files of a whole run."""
    expected = {"manifest.json", "processes.json", "results.json", "tables.md", "report.html"}
    for scenario in runnable(SCENARIOS, SQLITE):
        expected |= {f"scenarios/{scenario.path}/{name}" for name in _left_by_steps(scenario.steps)}
    return expected
