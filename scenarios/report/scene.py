"""The state of a scenario while its story is told: who runs, what has been written, and the events so far.

Journals hold no clocks, so the order across processes is told again by cause: each program is replayed as a generator that
passes the fault points of its writes in the order in which the program does, takes the next record of the journal that it
writes to, halts where its process halted, and yields where it paused. Nothing is made up: a record that is not where the
replay needs it ends the replay of that process (`Absent`), and whatever was not taken is told as not placed.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from outbox.dispatch.edges import ACK_TIMEOUT, TRANSPORT_OK
from outbox.faults import HALT_EXIT_CODE, WritePoints
from outbox.journal import JournalSpec
from scenarios.report.actors import (
    ONE_ACT,
    Absent,
    Actor,
    Doubts,
    Halted,
    Replay,
    Said,
    article,
    capital,
    lost_place,
    lower,
    title_of,
)
from scenarios.report.books import Books
from scenarios.report.events import Event, Kind, Lane, Ref, Trait
from scenarios.report.exports import TRANSITION
from scenarios.report.facts import Line, Process, ScenarioEvidence, Tally
from scenarios.report.shelf import Cursor, Shelf
from scenarios.report.words import counted, label, plain

MAX_TITLE = 32
ROLES = {
    "outbox.producer": "producer",
    "outbox.dispatcher": "dispatcher",
    "scenarios.client": "client",
    "scenarios.relay": "relay",
    "receivers": "receiver",
    "outbox.dispatch": "operator",
    "database": "database",
}
_DISPATCH = {"enqueue": "producer", "revive": "producer", "scan": "scheduler"}
_COUNTED = {"effect": "effects", "receipt": "receipts", "history": "history", "arrival": "arrivals", TRANSITION: "history"}


def role_of(process: Process) -> str:
    """What a process is for, in a word."""
    if process.module == "scenarios.dispatch" and process.arguments:
        return _DISPATCH.get(process.arguments[0], "program")
    return ROLES.get(process.module, "program")


class Scene:
    """See the module."""

    def __init__(self, scenario: ScenarioEvidence, doubts: Doubts) -> None:
        self.scenario = scenario
        self.certain = doubts.certain
        self.shelf = Shelf(scenario.journals, scenario.steps)
        self.actors: list[Actor] = []
        self.events: list[Event] = []
        self.counts = Tally()
        self.books = Books(scenario) if scenario.has_tables else None
        self.clocks: dict[str, str] = {}  # files that hold a time
        self.later: list[tuple[Actor, Replay[object]]] = []  # what receivers do with requests that nobody waits for
        self.effects: Counter[str] = Counter()  # by operation: the key of an intention or of a bare client's request
        self.settled: dict[str, str] = {}  # operation to what the sender's side says of it: receipt, then history
        self.sent: set[str] = set()  # operations of which an attempt has left its sender
        self.denied: set[str] = set()  # operations whose last attempt was refused, though an earlier request went out
        self._told: set[tuple[str, int]] = set()
        self._missing: set[str] = set()  # journals that must be there and are not
        self._astray = doubts.astray
        for cursor in self.books.cursors if self.books else ():
            self.shelf.add(cursor)

    # Who runs.

    def enter(self, process: Process, *, joined: bool = False) -> Actor:
        """Begin the lane of a process."""
        lane = Lane(process, role_of(process), label(title_of(process, role_of(process)), MAX_TITLE))
        actor = Actor(len(self.actors), process, lane)
        actor.astray = actor.number in self._astray
        self.actors.append(actor)
        armed = "".join(
            f", armed to {word} at {point}#{occurrence}"
            for word, fault in (("halt", process.fault), ("pause", process.pause))
            if fault
            for point, occurrence in [fault]
        )
        again = "starts again" if process.incarnation > 1 and lane.role not in ONE_ACT else "starts"
        now = self.now(actor)
        moment = f" at {plain(now, 20)}" if now else ""
        sentence = f"{capital(actor.name)} {again}{moment}{plain(armed)}."
        self.emit(Kind.START, lane.title, sentence, actor, joined=joined, at=now)
        return actor

    def now(self, actor: Actor) -> str:
        """The time that a program around a dispatch outbox goes by: given to it, or from a file."""
        if self.books is None or actor.process.module not in ("scenarios.dispatch", "outbox.dispatch"):
            return ""
        return actor.process.option("--now") or self.clocks.get(actor.process.option("--clock"), "")

    def latest(self, name: str) -> Actor | None:
        """The newest incarnation of the process `name`."""
        return next((actor for actor in reversed(self.actors) if actor.process.name == name), None)

    def running(self, name: str) -> Actor | None:
        """The incarnation of `name` that runs now."""
        actor = self.latest(name)
        return actor if actor and actor.running else None

    def halted(self, actor: Actor) -> None:
        """The lane of `actor` is cut at its fault point."""
        point, occurrence = actor.process.fault or ("?", 0)
        place = f"{point}#{occurrence}"
        actor.running = False
        sentence = f"{capital(actor.name)} dies at {plain(place)}: halt({HALT_EXIT_CODE}), exit code {HALT_EXIT_CODE}."
        self.emit(Kind.HALT, f"halt({HALT_EXIT_CODE}) at {label(place)}", sentence, actor)

    # What happens.

    def emit(
        self,
        kind: Kind,
        words: str,
        sentence: str,
        actor: Actor | None = None,
        *,
        to: Actor | None = None,
        toward: str | None = None,
        refs: Iterable[Ref] = (),
        traits: Iterable[Trait] = (),
        reached: float = 1.0,
        joined: bool = False,
        at: str = "",
    ) -> None:
        """Append an event, with the counts behind it."""
        placed = tuple(refs)
        for ref in placed:
            self._count(ref)
        lane, target = (None if each is None else each.number for each in (actor, to))
        event = Event(
            kind,
            self.shelf.step,
            words,
            sentence,
            lane,
            target,
            toward,
            placed,
            frozenset(traits),
            reached,
            joined,
            self.counts,
            plain(at, 12),
        )
        self.events.append(event)

    def _count(self, ref: Ref) -> None:
        name = _COUNTED.get(ref.type)
        if name is None:
            return
        values = dict(zip(("effects", "receipts", "history", "arrivals"), self.counts.values(), strict=True))
        if ref.type == TRANSITION:
            values["receipts"] += ref.id in (TRANSPORT_OK, ACK_TIMEOUT)
        elif name == "history" and self.settled.get(ref.id) is None:
            return  # a history record counts where its receipt is
        values[name] += 1
        self.counts = Tally(**values)
        if ref.type == TRANSITION:
            return
        if name in ("receipts", "history"):
            self.settled[ref.id] = name

    def say_moment(self, operation: str) -> None:
        """Say it where local history calls an operation done once and the receiver did something else."""
        done = self.effects[operation]
        if done == 1 or self.settled.get(operation) != "history" or (operation, done) in self._told:
            return
        if done == 0 and (not self.certain or any(cursor.next_is("effect") for cursor in self.shelf.all())):
            return  # one that has no place, or is still to come, may be this operation's
        self._told.add((operation, done))
        trait = Trait.DUPLICATE if done else Trait.LOST
        did = {0: "never did it", 2: "did it twice"}.get(done, f"did it {done} times")
        words = f"{'The outbox says' if self.books else 'Local history says'} once, the receiver {did}"
        self.emit(Kind.MOMENT, words, f"From here on {lower(words)}.", traits=[trait])

    def doubt(self, sentence: str, refs: Iterable[Ref] = (), words: str = "cannot be told, see below") -> None:
        """Say in the open what cannot be placed or explained."""
        self.emit(Kind.DOUBT, words, sentence, refs=refs)

    # What every program does.

    def reach(self, actor: Actor, point: str | None) -> Replay[None]:
        """Pass a fault point: pause or halt there if the process did. None, a point that there is not, does nothing."""
        if point is None:
            return
        actor.passed[point] += 1
        here = (point, actor.passed[point])
        if here == actor.process.pause:
            place = f"{here[0]}#{here[1]}"
            short = place.removeprefix("dispatch.")
            self.emit(Kind.PAUSE, f"paused: {short}", f"{capital(actor.name)} stops itself at {place} (SIGSTOP).", actor)
            yield actor
        if here == actor.process.fault and actor.halts:
            raise Halted(actor)

    def stops_at(self, actor: Actor, point: str) -> bool:
        """Whether `actor` pauses or halts when it passes the point now."""
        here = (point, actor.passed[point] + 1)
        return here == actor.process.pause or (here == actor.process.fault and actor.halts)

    def open(self, actor: Actor, cursor: Cursor, spec: JournalSpec) -> Replay[None]:
        """Open a journal for appending: create it, cut its torn tail. One that the archive lacks is told as missing."""
        if not cursor.exists:
            yield from self.reach(actor, spec.create.before)
            cursor.exists = True
            yield from self.reach(actor, spec.create.written)
        if cursor.torn:
            yield from self.reach(actor, spec.repair.before)
            cursor.torn = False
            sentence = f"{capital(actor.name)} cuts the torn tail of {plain(cursor.path)} away."
            self.emit(Kind.TEAR, f"{spec.name}: torn tail cut", sentence, actor)
            yield from self.reach(actor, spec.repair.written)
            yield from self.reach(actor, spec.repair.synced)
        if len(cursor) == 0:
            yield from self.reach(actor, spec.create.synced)
        self.look_for(actor, cursor)

    def look_for(self, actor: Actor, cursor: Cursor) -> None:
        """Say it, once, where a journal that `actor` must have made is not in the archive."""
        if cursor.path not in self.scenario.journals and cursor.path not in self._missing:
            self._missing.add(cursor.path)
            self.doubt(f"The file {plain(cursor.path)} is missing: what {actor.name} wrote there cannot be told.")

    def append(
        self,
        actor: Actor,
        cursor: Cursor,
        points: WritePoints,
        wanted: tuple[str, str | None],
        say: Callable[[Line], Said],
        *,
        fits: Callable[[Line], bool] = lambda _line: True,
        joined: bool = False,
    ) -> Replay[Line]:
        """Write the record `wanted` (type, and id or None for any): the next of its journal, if that `fits`.

        Raises Halted at its points, and Absent where the journal has something else next.
        """
        if actor.astray and wanted[0] in _COUNTED:
            raise Absent(actor, f"{lost_place(actor)}. Whether it wrote {article(wanted[0])} record cannot be told.")
        yield from self.reach(actor, points.before)
        if points.torn is not None and actor.halts and actor.process.fault == (points.torn, actor.passed[points.torn] + 1):
            cursor.torn = True
            sentence = f"Half of the bytes of {article(wanted[0])} record are in {plain(cursor.path)} when"
            self.emit(Kind.TEAR, f"half of {article(wanted[0])} record", f"{sentence} {actor.name} dies.", actor)
        yield from self.reach(actor, points.torn)
        line = cursor.peek()
        if line is None or line.type != wanted[0] or wanted[1] not in (None, line.id) or not fits(line):
            raise Absent(actor, self._absence(actor, cursor, wanted, line))
        cursor.take()
        words, sentence, traits = say(line)
        self.emit(Kind.RECORD, words, sentence, actor, refs=[cursor.ref(line)], traits=traits, joined=joined)
        yield from self.reach(actor, points.written)
        yield from self.reach(actor, points.synced)
        return line

    def _absence(self, actor: Actor, cursor: Cursor, wanted: tuple[str, str | None], line: Line | None) -> str:
        record = f"{article(wanted[0])} record" + (f" {plain(wanted[1])}" if wanted[1] else "")
        found = "has no more records" if line is None else f"has {plain(line.type) or 'no record'} {plain(line.id)} next"
        return (
            f"{capital(actor.name)} would now write {record}, but {plain(cursor.path)} {found}. What else this process did "
            "cannot be told."
        )

    def leftovers(self) -> None:
        """Tell of every record that no process was seen to write."""
        for cursor in self.shelf.all():
            left = cursor.rest()
            if left:
                names = ", ".join(f"{label(line.type) or 'a line'} {label(line.id)}".strip() for line in left[:3])
                more = f" and {len(left) - 3} more" if len(left) > 3 else ""
                count = counted(len(left), "record")
                sentence = f"Not placed: {count} of {plain(cursor.path)} ({names}{more}), which no process was seen to write."
                self.doubt(sentence, [cursor.ref(line) for line in left], f"not placed: {count} of {label(cursor.path)}")
