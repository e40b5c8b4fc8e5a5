"""The cases that a campaign must have, derived anew from the points of its runs without faults.

Level by level, in one order. The first level has a case for each process, point and occurrence (mode `points`), for each that
can be stopped and overtaken (`pauses`), or for each cut of each connection (`wire`). A deeper level adds one death to each case
of the level before, unless the last death of that case left a state that was met before: of the same process, with the same
digest.
"""

from __future__ import annotations

from audit.campaign_plan import Case, Fault, Subject, parse
from audit.campaign_words import CUT, CUTS, DEATH, PAUSE, PAUSES, POINTS, RELAY, WIRE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Reached = dict[str, dict[str, int]]


def first_level(subject: Subject, mode: str, reached: list[Reached]) -> Iterator[Case]:
    """The cases of the first level."""
    if mode == WIRE:
        connections = (reached[0] if reached else {}).get("receiver", {}).get("arrival.append.before", 0)
        for what in CUTS:
            for number in range(1, connections + 1):
                yield Case(subject, [[Fault(CUT, RELAY, what, number)]])
        return
    for before, points in enumerate(reached):
        for process, point, occurrence in _each(points):
            role = subject.role(process)
            if mode == POINTS:
                yield Case(subject, [*[[] for _ in range(before)], [Fault(DEATH, process, point, occurrence)]])
            elif mode == PAUSES and role is not None and role["stoppable"] and not role["server"]:
                yield Case(subject, [*[[] for _ in range(before)], [Fault(PAUSE, process, point, occurrence)]])


def _each(points: Reached) -> Iterator[tuple[str, str, int]]:
    for process, found in points.items():
        for point, count in found.items():
            for occurrence in range(1, count + 1):
                yield process, point, occurrence


class Deeper:
    """The cases of the next level, from the results of this one; `pruned` counts those that were not gone deeper into."""

    def __init__(self, subject: Subject, mode: str) -> None:
        self.pruned = 0
        self._subject, self._mode = subject, mode
        self._met: set[tuple[str, str]] = set()

    def cases(self, results: Iterable[dict[str, Any]]) -> Iterator[Case]:
        """One by one, so that a budget ends the reading as well."""
        for result in results:
            case = parse(result["case"], self._subject)
            if case is None:
                continue
            same = self._mode == WIRE
            at = 0 if same else len(case.rounds)
            reached = result["reached"][at : at + 1]
            if not reached or (not same and not self._new(result)):
                continue
            for process, point, occurrence in _each(reached[0]):
                fault = Fault(DEATH, process, point, occurrence)
                if not same:
                    yield Case(self._subject, [*case.rounds, [fault]])
                elif process not in case.struck:  # nobody dies twice in one round
                    yield Case(self._subject, [[*case.rounds[0], fault]])

    def _new(self, result: dict[str, Any]) -> bool:
        if not result["deaths"]:
            return False
        last = result["deaths"][-1]
        state = (last["process"], last["digest"])
        if state in self._met:
            self.pruned += 1
            return False
        self._met.add(state)
        return True
