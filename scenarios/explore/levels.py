"""Which cases there are, level by level: the first from runs without faults, a deeper one from the results of the level before.

A deeper level adds a death to the recovery of each case, or in mode `wire` to the round of its cut. A case is not gone deeper
into whose last death left what another one's had left: what comes after it is then known.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.explore import results
from scenarios.explore.derive import Derived, pause_cases, point_cases, wire_cases
from scenarios.explore.model import Case, Subject, deaths, parse

POINTS, WIRE, PAUSES = "points", "wire", "pauses"
FIRST: Mapping[str, Callable[[Derived], Iterator[Case]]] = {POINTS: point_cases, WIRE: wire_cases, PAUSES: pause_cases}
MODES = tuple(FIRST)


class Deeper:
    """The cases that go on from those numbered `first` to before `end`; read from the disk, each time that it is iterated."""

    def __init__(self, subject: Subject, mode: str, directory: Path, first: int, end: int) -> None:
        self._subject, self._same_round = subject, mode == WIRE
        self._results = (directory, first, end)
        self.pruned = 0

    def __iter__(self) -> Iterator[Case]:
        met: set[str] = set()
        self.pruned = 0
        for result in results.read(*self._results):
            case = parse(result["case"], [self._subject])
            at = 0 if self._same_round else len(case.rounds)
            if at >= len(result["reached"]) or not (self._same_round or self._is_new(result, met)):
                continue
            for death in deaths(result["reached"][at]):
                if self._same_round:
                    yield Case(self._subject, ((*case.rounds[0], death),))
                else:
                    yield Case(self._subject, (*case.rounds, (death,)))

    def _is_new(self, result: Mapping[str, Any], met: set[str]) -> bool:
        """Whether the case's last death left what no other had left. Who died matters: its work may be unfinished."""
        if not result["deaths"]:
            return False
        last = result["deaths"][-1]
        state = f"{last['process']} {last['digest']}"
        if state in met:
            self.pruned += 1
            return False
        met.add(state)
        return True
