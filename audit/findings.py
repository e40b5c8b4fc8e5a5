"""What the audit holds against an archive, and how it is said.

A `Finding` is a subject (a scenario, or a file of the archive), a place inside it (`file:line` or a field) and a plain
sentence that names what was expected and what is there. Checks receive a `Note`, a function bound to one subject, and
report through it; nothing stops at the first finding. Values are quoted in ASCII and cut short, so that no content of
an archive can disturb a terminal. Nothing here decides which verdict a finding leads to.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Note = Callable[[str, str], None]

PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"

FIRST_STEP = "the first illegal step"
LONGEST_QUOTE = 160
MOST_FINDINGS = 10_000


class Finding:
    """One thing that the audit holds against the evidence; `first_at` says where, if it is a scenario's first illegal step."""

    __slots__ = ("first_at", "place", "sentence", "subject")

    def __init__(self, subject: str, place: str, sentence: str) -> None:
        self.first_at = ""
        self.subject = subject
        self.place = place
        self.sentence = sentence

    def __str__(self) -> str:
        said = f"{self.place}: {self.sentence}" if self.place else self.sentence
        return f"{self.subject}: {FIRST_STEP} ({self.first_at}): {said}" if self.first_at else f"{self.subject}: {said}"


class Findings:
    """All findings of one archive, in the order in which they were met."""

    __slots__ = ("items", "left_out")

    def __init__(self) -> None:
        self.items: list[Finding] = []
        self.left_out = 0

    def add(self, subject: str, place: str, sentence: str) -> Finding:
        """Keep one finding; beyond a bound that no reader passes they are only counted."""
        finding = Finding(subject, place, sentence)
        if len(self.items) < MOST_FINDINGS:
            self.items.append(finding)
        else:
            self.left_out += 1
        return finding

    def lead(self, since: int, finding: Finding) -> None:
        """Put a finding before all others that were met since, also one that was only counted."""
        others = [each for each in self.items[since:] if each is not finding]
        self.left_out -= len(others) == len(self.items) - since
        self.items[since:] = [finding, *others]

    def about(self, subject: str) -> Note:
        """The function through which a check reports on one subject."""

        def note(place: str, sentence: str) -> None:
            self.add(subject, place, sentence)

        return note


def show(value: Any) -> str:
    """A value as ASCII text on one line, cut short."""
    try:
        text = ascii(value)
    except (RecursionError, ValueError):
        return "(a value too deep or too large to show)"
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}... ({len(text)} characters)"


def plain(text: str) -> str:
    """A path or a name with everything but printable ASCII escaped."""
    return text if text.isascii() and text.isprintable() else ascii(text)[1:-1]
