"""What a check found, told in windows: a bad place is seldom one line, so neighbours with the same verdict are one.

Of a worker these are lines of one function (`huey/api.py:410-418`), or calls of one name (`fsync#3-5`), at which the same role
died. Neighbours are those that follow each other among the ones that were tried. A line that was tried several times has the
worst of its verdicts, and says in how many of its cases. Of a receiver each expectation that was not met is a window.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from scenarios.targets import verdicts
from scenarios.targets.outcomes import LINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Neighbouring places with the same verdict. `depth` is 2 where it was the recovery that died there. `cases` of `tried`
    came to the verdict; `seconds` is the longest recovery, or watching, among them; `example` is the first of them."""

    role: str
    kind: str
    where: str
    function: str | None
    depth: int
    verdict: str
    cases: int
    tried: int
    seconds: float | None
    example: str

    def data(self) -> dict[str, Any]:
        """As a JSON value."""
        return asdict(self)

    @property
    def path(self) -> str:
        """The file of a window of lines."""
        return self.where.rpartition(":")[0]

    @property
    def lines(self) -> tuple[int, int]:
        """Its first and last line."""
        first, _, last = self.where.rpartition(":")[2].partition("-")
        return int(first), int(last or first)

    def __str__(self) -> str:
        function = f" {self.function}()" if self.function else ""
        again = ", in the recovery" if self.depth > 1 else ""
        of = f"{self.cases} of {self.tried}" if self.cases != self.tried else f"{self.cases}"
        seconds = "" if self.seconds is None else f", {self.seconds:.1f} s"
        return f"{self.role}{again}: {self.where}{function}: {self.verdict}, {of} case{'s' if self.tried != 1 else ''}{seconds}"


@dataclass(slots=True)
class _Place:
    """What came of all cases at one place."""

    tried: int = 0
    function: str | None = None
    found: dict[str, list[tuple[str, float | None]]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return next(each for each in verdicts.WORKER_VERDICTS if each in self.found)


Key = tuple[int, str, str, str, str, int]


class Windows:
    """Collects the lines of a worker's check, one by one."""

    def __init__(self) -> None:
        self._places: dict[Key, _Place] = {}

    def add(self, case: Mapping[str, Any]) -> None:
        """Note where somebody died last, and what came of it."""
        then = case["then"]
        fault, role = (case["fault"], case["role"]) if then is None else (then, then["role"])
        place = self._places.setdefault(_key(fault, role, 1 if then is None else 2), _Place(function=fault["function"]))
        place.tried += 1
        recovered = case["recovered_seconds"]
        seconds = case["watched_seconds"] if recovered is None else recovered
        place.found.setdefault(case["verdict"], []).append((case["case"], seconds))

    def all(self) -> list[Window]:
        """Every window, the worst first, then by place."""
        return [window for _, window in sorted(self._windows(), key=lambda each: each[0])]

    def _windows(self) -> Iterator[tuple[tuple[Any, ...], Window]]:
        for group, keys in groupby(sorted(self._places), key=lambda key: key[:5]):
            for verdict, run in groupby(keys, key=lambda key: self._places[key].verdict):
                found = list(run)
                # A function's windows stand where it stands in its file.
                at = (verdicts.WORKER_VERDICTS.index(verdict), *group[:4], found[0][5], group[4])
                yield at, self._window(group, verdict, found)

    def _window(self, group: tuple[int, str, str, str, str], verdict: str, keys: list[Key]) -> Window:
        depth, role, kind, name, _function = group
        places = [self._places[key] for key in keys]
        cases = [each for place in places for each in place.found[verdict]]
        sign = ":" if kind == LINE else "#"
        first, last = keys[0][5], keys[-1][5]
        return Window(
            role=role,
            kind=kind,
            where=f"{name}{sign}{first}" if first == last else f"{name}{sign}{first}-{last}",
            function=places[0].function,
            depth=depth,
            verdict=verdict,
            cases=len(cases),
            tried=sum(place.tried for place in places),
            seconds=max((seconds for _, seconds in cases if seconds is not None), default=None),
            example=cases[0][0],
        )


def _key(fault: Mapping[str, Any], role: str, depth: int) -> Key:
    """Where a fault belongs: of lines the number of the line counts, of all else the occurrence."""
    if fault["kind"] == LINE:
        path, _, number = fault["where"].rpartition(":")
        return depth, role, LINE, path, fault["function"] or "", int(number)
    return depth, role, fault["kind"], fault["where"], "", fault["occurrence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """An expectation of a receiver that was not met, or was unclear."""

    where: str
    severity: str
    source: str
    verdict: str
    fails: bool

    def data(self) -> dict[str, Any]:
        """As a JSON value."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.where}: {self.verdict} ({self.severity}; {self.source})"


def unmet(cases: Iterable[Mapping[str, Any]]) -> list[Unmet]:
    """The expectations that were not met, the gravest first, then in their order."""
    found = [
        Unmet(
            where=case["expectation"],
            severity=case["severity"],
            source=case["source"],
            verdict=case["verdict"],
            fails=verdicts.fails(case),
        )
        for case in cases
        if case["verdict"] in (verdicts.VIOLATED, verdicts.UNCLEAR)
    ]
    return sorted(
        found, key=lambda each: (verdicts.RECEIVER_VERDICTS.index(each.verdict), verdicts.SEVERITIES.index(each.severity))
    )
