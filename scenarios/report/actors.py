"""Who acts in a story while it is told: a process incarnation, what ends its replay, and what its replay is."""

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from outbox.faults import HALT_EXIT_CODE
from scenarios.report.events import Lane, Trait
from scenarios.report.facts import Line, Process
from scenarios.report.words import figure, ordinal, plain

T = TypeVar("T")
# It yields the process for which it waits: one that paused.
Replay = Generator["Actor", None, T]
# What a record is in a few words and in a sentence, and what is particular about it.
Said = tuple[str, str, frozenset[Trait]]


# Roles that do one thing and end: a second one of the same name goes on with nothing.
ONE_ACT = ("producer", "operator")


class Halted(Exception):
    """The process of `actor` halts here."""

    def __init__(self, actor: "Actor") -> None:
        super().__init__(str(actor.number))
        self.actor = actor


class Absent(Exception):
    """The record that `actor` must have written now is not what its journal has next; the text says which."""

    def __init__(self, actor: "Actor", sentence: str) -> None:
        super().__init__(sentence)
        self.actor = actor


@dataclass(frozen=True, slots=True)
class Doubts:
    """What an earlier telling of the same scenario found out: which lanes died at an unknown place, whether all was told."""

    astray: frozenset[int] = frozenset()
    certain: bool = True


class Actor:
    """A process incarnation during the replay."""

    def __init__(self, number: int, process: Process, lane: Lane) -> None:
        self.number, self.process, self.lane = number, process, lane
        self.running = True
        self.passed: Counter[str] = Counter()
        self.suspended: Replay[object] | None = None
        self.waits_for: Actor | None = None  # the paused process that holds this replay up
        self.cut_off = ""  # why its database takes nothing from it any more
        self.holds = ""  # the deduplication key of a row that it has written and not committed
        self.written: Line | None = None  # the transition of which it has stopped before its commit
        self.remark = ""  # why it did nothing
        self.astray = False  # it halted, and an earlier telling did not pass the place where

    @property
    def name(self) -> str:
        """As the sentences call it."""
        if self.lane.role == "client":
            return self.lane.title
        if self.lane.role == "database":
            return "the database"
        which = f"{ordinal(self.process.incarnation)} " if self.process.incarnation > 1 else ""
        return f"the {which}{title_of(self.process, self.lane.role, numbered=False)}"

    @property
    def halts(self) -> bool:
        """Whether it ended by the injected halt."""
        return self.process.fault is not None and self.process.exit_code == HALT_EXIT_CODE

    def folder(self) -> str:
        """Where it keeps its files."""
        return self.process.option("--dir", self.process.name)


def lost_place(actor: Actor) -> str:
    """A half sentence: the process halted where this story did not come by."""
    point, occurrence = actor.process.fault or ("?", 0)
    ended = f"{capital(actor.name)} ended with exit code {HALT_EXIT_CODE}"
    return f"{ended}, but this story did not pass {plain(point)}#{figure(occurrence)}"


def title_of(process: Process, role: str, *, numbered: bool = True) -> str:
    name = plain(process.name, 60)
    if role == "receiver" and process.arguments:
        name = f"{plain(process.arguments[0], 40)} {name}"
    return name if process.incarnation <= 1 or not numbered else f"{name}, {ordinal(process.incarnation)}"


def article(noun: str) -> str:
    """The noun with `a` or `an`."""
    return f"an {noun}" if noun[:1] in "aeiou" else f"a {noun}"


def capital(sentence: str) -> str:
    """With a capital letter in front."""
    return sentence[:1].upper() + sentence[1:]


def lower(sentence: str) -> str:
    """With a small letter in front."""
    return sentence[:1].lower() + sentence[1:]
