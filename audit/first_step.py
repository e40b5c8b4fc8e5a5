"""The second opinion in a sentence: the first step of a scenario that its programs cannot have made as its records have it.

The players follow dispatchers, receivers and the wire between them, each for itself. What each of them cannot follow it notes
together with the step of the scenario that it is at; of all that, the earliest step is told first, before everything else that
there is to say of the scenario. Where several players stop at one step, the one that was asked first is told.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.findings import Finding, Findings, Note


class FirstStep:
    """The earliest illegal step of one scenario so far."""

    __slots__ = ("_findings", "_since", "finding", "name", "step", "steps")

    def __init__(self, name: str, steps: int, findings: Findings) -> None:
        self.name = name
        self.steps = steps
        self.step = 0
        self.finding: Finding | None = None
        self._findings = findings
        self._since = len(findings.items)

    def note(self, place: str, sentence: str, step: int) -> None:
        """Note what a player cannot follow at a step; behind the last one it is what nobody wrote."""
        finding = self._findings.add(self.name, place, sentence)
        if self.finding is None or step < self.step:
            self.step, self.finding = step, finding

    def at(self, step: int | None) -> Note:
        """The function through which a player that is at a step reports."""
        behind = self.steps + 1
        return lambda place, sentence: self.note(place, sentence, behind if step is None else step)

    def begin(self) -> None:
        """What is noted from now on is of this scenario."""
        self._since = len(self._findings.items)

    def lead(self, place: str, sentence: str) -> None:
        """Tell something before all that was found in the scenario so far, the first illegal step among it."""
        self._findings.lead(self._since, self._findings.add(self.name, place, sentence))

    def tell(self) -> None:
        """Put the first illegal step before everything else that was found in the scenario."""
        if self.finding is not None:
            self.finding.first_at = f"step {self.step}" if self.step <= self.steps else "behind the last step"
            self._findings.lead(self._since, self.finding)
