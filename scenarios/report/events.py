"""What a story is made of: lanes, events in their order, and the counts behind each. Frozen values, and nothing that draws.

A lane is one incarnation of one process. An event happens on a lane, or between two, or to all; it names the records that it
places, carries a few words for a picture and a sentence for whoever reads, and holds the counts as they are behind it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from scenarios.report.facts import Process, Tally

NO_COUNTS = Tally()
# Effects, receipts, arrivals; and complete history records, or of a dispatch outbox the transitions.
JOURNAL_LETTERS, TABLE_LETTERS = "ERHA", "ERTA"


class Kind(StrEnum):
    """Kinds of event."""

    START = "start"
    RECORD = "record"  # a durable record, on the lane of whoever wrote it
    MESSAGE = "message"  # from `lane` to `to`, or into the void
    HALT = "halt"  # the injected halt, exit code 23
    END = "end"  # an end by itself, by SIGTERM or SIGKILL
    PAUSE = "pause"
    RESUME = "resume"
    TEAR = "tear"  # half of a record is in the file, or is cut away
    FILE = "file"  # a step of the scenario changes a file
    CHECK = "check"  # a step of the scenario counts
    MOMENT = "moment"  # local history and receiver say different things from here on
    DOUBT = "doubt"  # what the story cannot place or explain


class Trait(StrEnum):
    """What is particular about an event."""

    RESENT = "resent"
    REPLAYED = "replayed"
    DUPLICATE = "duplicate"
    LOST = "lost"
    DENIED = "denied"  # done, and refused as far as the sender's side knows
    CUT = "cut"
    REFUSED = "refused"
    RELAY = "relay"  # the relay's own doing
    KILLED = "killed"
    LATE = "late"  # an outcome that came too late to change anything


@dataclass(frozen=True, slots=True)
class Ref:
    """A line of a journal: the file's path below the scenario, the line (from 1), type and id of the record there.

    Of an export it is a row of the table that the path names behind a colon.
    """

    journal: str
    number: int
    type: str
    id: str


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in step `step`.

    `lane` and `to` are places in `Story.lanes`. A message without `to` goes towards the process named `toward`. `reached` is
    how much of its way a message went, 1.0 for all of it. `joined` events belong to the row of the event before. `at` is the
    time on the scenario's own clock, where it has one.
    """

    kind: Kind
    step: int
    label: str
    sentence: str
    lane: int | None = None
    to: int | None = None
    toward: str | None = None
    refs: tuple[Ref, ...] = ()
    traits: frozenset[Trait] = frozenset()
    reached: float = 1.0
    joined: bool = False
    counts: Tally = NO_COUNTS
    at: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """One incarnation of a process, with the title that it bears in pictures and sentences."""

    process: Process
    role: str
    title: str


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario as an ordered tale; `closing` says what it comes to, a sentence each, `letters` what its counts are called."""

    scenario: str
    lanes: tuple[Lane, ...]
    events: tuple[Event, ...]
    closing: tuple[str, ...]
    letters: str = JOURNAL_LETTERS

    @property
    def counts(self) -> Tally:
        """The counts at the end."""
        return self.events[-1].counts if self.events else Tally()

    @property
    def doubts(self) -> tuple[Event, ...]:
        """What could not be placed or explained."""
        return tuple(event for event in self.events if event.kind is Kind.DOUBT)

    def rows(self) -> Iterator[tuple[Event, ...]]:
        """The events, those that belong together in one row."""
        row: list[Event] = []
        for event in self.events:
            if row and not event.joined:
                yield tuple(row)
                row = []
            row.append(event)
        if row:
            yield tuple(row)
