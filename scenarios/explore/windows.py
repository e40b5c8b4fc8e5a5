"""What a campaign of lines found, told in ranges of source lines with the function's name.

A bad window is seldom one line: whoever dies anywhere between two steps leaves the same. So the lines of one function at which
the same process died with the same outcome are one range, as long as no line between them came to another one. Lines that are
never executed (comments, branches not taken) do not end a range.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any

from outbox.errors import BadInput
from scenarios.engine import lines
from scenarios.explore.verdicts import HELD, KINDS, UNKNOWN, VIOLATED

NOWHERE = "?"


@dataclass(slots=True)
class Died:
    """What came of the cases in which a process died first at one line, at any of its occurrences."""

    cases: int = 0
    bad: int = 0
    verdicts: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)

    @property
    def outcome(self) -> str:
        """The gravest of the verdicts, and the kinds of what was broken."""
        verdict = next(each for each in (UNKNOWN, VIOLATED, HELD) if each in self.verdicts)
        kinds = ", ".join(kind for kind in KINDS if kind in self.kinds)
        return f"{verdict.upper()} ({kinds})" if kinds else verdict.upper()


@dataclass(frozen=True, slots=True)
class Window:
    """A range of lines of one function; deaths of `process` in it came to the same, at the worst of their occurrences. Of its
    `cases` so many are `bad`: who dies in a function that many call often dies in between two others' steps."""

    process: str
    path: str
    function: str
    first: int
    last: int
    outcome: str
    cases: int
    bad: int

    @property
    def held(self) -> bool:
        """Whether everything held, whoever died in it."""
        return self.bad == 0

    def __str__(self) -> str:
        numbers = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        cases = f"{f'{self.bad} of ' if 0 < self.bad < self.cases else ''}{self.cases} case{'s' if self.cases != 1 else ''}"
        return f"{self.path}:{numbers} {self.function}()  {self.process}: {self.outcome}, {cases}"


Place = tuple[str, str, int]


class Windows:
    """Collects the results of a campaign, one by one."""

    def __init__(self) -> None:
        self._died: dict[Place, Died] = {}

    def add(self, result: Mapping[str, Any]) -> None:
        """Note where the first death of a case was, if that was at a line, and what came of the case."""
        first = next((death for death in result["deaths"] if lines.is_line(death["point"])), None)
        if first is None:
            return
        module, _, number = first["point"].rpartition(":")
        died = self._died.setdefault((first["process"], module, int(number)), Died())
        died.cases += 1
        died.bad += result["verdict"] != HELD
        died.verdicts.add(result["verdict"])
        died.kinds.update(result["kinds"])

    def ranges(self) -> Iterator[Window]:
        """Process by process, module by module, from the first line to the last."""
        for (process, module, function), places in groupby(sorted(self._died, key=_in_order), key=_function_of):
            for outcome, run in groupby(places, key=lambda place: self._died[place].outcome):
                found = list(run)
                cases, bad = (sum(getattr(self._died[place], name) for place in found) for name in ("cases", "bad"))
                yield Window(process, _path(module), function, found[0][2], found[-1][2], outcome, cases, bad)

    @property
    def executed(self) -> tuple[int, int]:
        """How many lines of how many functions somebody died at."""
        places = {(module, number) for _process, module, number in self._died}
        return len(places), len({(module, function(module, number)) for module, number in places})


def _in_order(place: Place) -> tuple[str, str, int, int]:
    """A function's own lines stand together, though another function may be defined between them."""
    process, module, number = place
    return process, module, begins(module, number), number


def _function_of(place: Place) -> tuple[str, str, str]:
    process, module, number = place
    return process, module, function(module, number)


def _path(module: str) -> str:
    try:
        return lines.source(module).relative_to(lines.ROOT).as_posix()
    except BadInput:
        return module


def function(module: str, number: int) -> str:
    """The innermost function whose body has this line, as `Workflow.deliver`."""
    return next((name for first, last, name in _functions(module) if first <= number <= last), NOWHERE)


def begins(module: str, number: int) -> int:
    """The first line of that function's body."""
    return next((first for first, last, _name in _functions(module) if first <= number <= last), 0)


@cache
def _functions(module: str) -> tuple[tuple[int, int, str], ...]:
    """First line, last line and name of the body of every function, the inner ones first; behind them what may stand in no
    body: a function that has only its docstring, which runs on the line that it begins with, and a lambda."""
    try:
        tree = ast.parse(lines.source(module).read_bytes())
    except (BadInput, SyntaxError):
        return ()
    found = sorted(_below(tree, ()), key=lambda each: (each[0], each[2] - each[1]))
    return tuple((first, last, name) for _rank, first, last, name in found)


def _below(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[int, int, int, str]]:
    """The same with a number before: whether it is a body (0) or what may stand in none (1)."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name, last = ".".join((*names, child.name)), child.end_lineno or child.lineno
            yield 0, child.body[0].lineno, last, name
            yield 1, min(each.lineno for each in (child, *child.decorator_list)), last, name
        if isinstance(child, ast.Lambda):
            yield 1, child.lineno, child.end_lineno or child.lineno, ".".join((*names, "<lambda>"))
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from _below(child, (*names, child.name) if named else names)  # type: ignore[attr-defined]


def collected(results: Iterable[Mapping[str, Any]]) -> Windows:
    """All results of a campaign."""
    windows = Windows()
    for result in results:
        windows.add(result)
    return windows


def told(results: Iterable[Mapping[str, Any]], *, everything: bool) -> Iterator[str]:
    """The ranges in which something did not hold, or with `everything` all of them, and what was executed in all."""
    windows = collected(results)
    for window in windows.ranges():
        if everything or not window.held:
            yield str(window)
    count, functions = windows.executed
    yield f"{count} lines of {functions} functions were executed, and each was died at"
