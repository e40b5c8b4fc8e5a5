"""The cases that a campaign must have, derived anew from the points of its runs without faults.

Level by level, in one order. The first level has a case for each process, point and occurrence (mode `points`; in mode `lines`
a line stands for a point, and of its occurrences the first eight and the last), for each that can be stopped and overtaken
(`pauses`; twice where it has a lease), for each cut of each connection (`wire`), or for each call that changes something and
each way in which it can end (`syscalls`). A deeper level adds one death to each case of the level before: in the round behind
it, or in its last round where others come to points only because of its single death. Not so if the last death of that case
left a state that was met before: of the same process, with the same digest.
"""

from __future__ import annotations

from audit.campaign_calls import strikes
from audit.campaign_plan import Case, Fault, Subject, parse
from audit.campaign_words import (
    CUT,
    CUTS,
    DEATH,
    ERROR,
    FIRST_OF_LINE,
    LINES,
    PAUSE,
    PAUSES,
    POINTS,
    RELAY,
    WIRE,
    is_line,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from audit.campaign_calls import Call

    Reached = dict[str, dict[str, int]]


def of_calls(subject: Subject, listed: list[dict[str, list[Call]]]) -> Iterator[Case]:
    """The cases of mode syscalls, from the calls of each round."""
    for before, each in enumerate(listed):
        for process, calls in each.items():
            for name, number, error in strikes(calls):
                struck = Fault(ERROR, process, f"sys:{name}={error}", number)
                if not error:
                    struck = Fault(DEATH, process, f"sys:{name}", number)
                yield Case(subject, [*[[] for _ in range(before)], [struck]])


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
            if mode in (POINTS, LINES):
                yield Case(subject, [*[[] for _ in range(before)], [Fault(DEATH, process, point, occurrence)]])
            elif mode == PAUSES and role is not None and role["stoppable"] and not role["server"]:
                for in_lease in (False,) if role["lease_seconds"] is None else (False, True):
                    stopped = Fault(PAUSE, process, point, occurrence, in_lease)
                    yield Case(subject, [*[[] for _ in range(before)], [stopped]])


def _each(points: Reached) -> Iterator[tuple[str, str, int]]:
    for process, found in points.items():
        for point, count in found.items():
            for occurrence in range(1, count + 1):
                if occurrence <= FIRST_OF_LINE or occurrence == count or not is_line(point):
                    yield process, point, occurrence


class Deeper:
    """The cases of the next level, from the results of this one; `pruned` counts those that were not gone deeper into."""

    def __init__(self, subject: Subject, mode: str, usual: list[Reached]) -> None:
        self.pruned = 0
        self._subject, self._mode, self._usual = subject, mode, usual
        self._met: set[tuple[str, str]] = set()

    def cases(self, results: Iterable[dict[str, Any]]) -> Iterator[Case]:
        """One by one, as they are asked for."""
        for result in results:
            case = parse(result["case"], self._subject)
            if case is None:
                continue
            if self._mode == WIRE:
                yield from self._beside(case, result["reached"])
            elif len(result["reached"]) > len(case.rounds) and self._new(result):
                yield from self._behind(case, result["reached"])

    def _beside(self, case: Case, reached: list[Reached]) -> Iterator[Case]:
        """A death in the round of the cut: of a process behind all that die there already, so that each set comes once."""
        order = [role["process"] for role in self._subject.roles]
        last = max([order.index(process) for process in case.struck], default=-1)
        for process, point, occurrence in _each(reached[0]) if reached else ():
            if order.index(process) > last:
                yield Case(self._subject, [[*case.rounds[0], Fault(DEATH, process, point, occurrence)]])

    def _behind(self, case: Case, reached: list[Reached]) -> Iterator[Case]:
        """A death in the round behind; and, beside a single death, of others where they come only because of it."""
        at = len(case.rounds)
        for process, point, occurrence in _each(reached[at]):
            yield Case(self._subject, [*case.rounds, [Fault(DEATH, process, point, occurrence)]])
        if len(case.faults()) != 1:
            return
        usual = self._usual[at - 1] if at <= len(self._usual) else {}
        for process, point, occurrence in _each(reached[at - 1]):
            if process not in case.struck and occurrence > usual.get(process, {}).get(point, 0):
                yield Case(self._subject, [*case.rounds[:-1], [*case.rounds[-1], Fault(DEATH, process, point, occurrence)]])

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
