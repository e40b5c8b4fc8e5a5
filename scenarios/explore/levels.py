"""Which cases there are, level by level: the first from runs without faults, a deeper one from the results of the level before.

A deeper level adds a death to the recovery of each case, or in mode `wire` to the round of its cut. What others come to in
the round of the first death, and only because of it, is struck in that round: whoever finds the receiver dead, or a torn
tail. A case is not gone deeper into whose last death left what another one's had left: what comes after it is then known.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.explore import results
from scenarios.explore.derive import Derived, call_cases, pause_cases, point_cases, wire_cases
from scenarios.explore.model import RANDOM, Case, Death, Reached, deaths, parse
from scenarios.explore.power import power_cases

POINTS, WIRE, PAUSES, LINES, SYSCALLS, POWER = "points", "wire", "pauses", "lines", "syscalls", "power"
FIRST: Mapping[str, Callable[[Derived], Iterator[Case]]] = {
    POINTS: point_cases,
    WIRE: wire_cases,
    PAUSES: pause_cases,
    LINES: point_cases,  # of the lines that the runs without faults have listed in the place of points
    SYSCALLS: call_cases,
    POWER: power_cases,
}
# The histories of mode random are no level: they come from seeds (scenarios.explore.randoms).
MODES = (*FIRST, RANDOM)


class Deeper:
    """The cases that go on from those numbered `first` to before `end`; read from the disk, each time that it is iterated."""

    def __init__(self, derived: Derived, mode: str, directory: Path, first: int, end: int) -> None:
        self._subject, self._usual, self._same_round = derived.subject, derived.reached, mode == WIRE
        self._results = (directory, first, end)
        self.pruned = 0

    def __iter__(self) -> Iterator[Case]:
        met: set[str] = set()
        order = [role.process for role in self._subject.roles]
        self.pruned = 0
        for result in results.read(*self._results):
            case = parse(result["case"], [self._subject])
            at = 0 if self._same_round else len(case.rounds)
            if at >= len(result["reached"]) or not (self._same_round or self._is_new(result, met)):
                continue
            for death in deaths(result["reached"][at]):
                if self._same_round:
                    # Nobody dies twice in one round, and who dies beside whom has one order.
                    if order.index(death.process) > max(map(order.index, case.struck), default=-1):
                        yield Case(self._subject, ((*case.rounds[0], death),))
                else:
                    yield Case(self._subject, (*case.rounds, (death,)))
            if not self._same_round and len(case.faults) == 1:
                for death in self._brought_about(case, result["reached"][at - 1], at - 1):
                    yield Case(self._subject, (*case.rounds[:-1], (*case.rounds[-1], death)))

    def _brought_about(self, case: Case, reached: Reached, at: int) -> Iterator[Death]:
        """Deaths where somebody else comes in round `at` (from 0), and does not come without the death of the case: so they
        cannot come before it."""
        usual = self._usual[at] if at < len(self._usual) else {}
        for death in deaths(reached):
            if death.process not in case.struck and death.occurrence > usual.get(death.process, {}).get(death.point, 0):
                yield death

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
