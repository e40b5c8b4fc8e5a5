"""What a process does at the tables of a dispatch outbox: an arrow to the database, and what is in the books then.

A transition is placed where it is committed. What a process had written and not committed when it stopped is an arrow that does
not arrive; so is a commit that the database refused.
"""

from collections.abc import Sequence

from outbox.dispatch.edges import (
    ACK_TIMEOUT,
    ACKED,
    ATTEMPT,
    DEAD_LETTER,
    DEADLINE,
    DELIVERED,
    DELIVERING,
    ENQUEUED,
    MAX_ATTEMPTS,
    PENDING,
    TRANSPORT_OK,
)
from scenarios.report.actors import Absent, Actor, Replay, capital
from scenarios.report.books import Books, Entry, Row, clock, moment, short, worded
from scenarios.report.events import Kind, Trait
from scenarios.report.facts import Process
from scenarios.report.scene import Scene
from scenarios.report.words import figure, label, plain

DATABASE = "database"
NO_ROOM, NOT_THERE = "the disk is full", "the server is gone"


class Refused(Exception):
    """The database takes nothing from this process any more."""


def of(scene: Scene) -> Books:
    """The books of a scenario that has some."""
    if scene.books is None:
        raise LookupError("a program of a dispatch outbox in a scenario without one")
    return scene.books


def database(scene: Scene) -> Actor | None:
    """The lane of the database, if its server runs."""
    found = next((actor for actor in reversed(scene.actors) if actor.lane.role == DATABASE), None)
    return found if found and found.running else None


def open_database(scene: Scene) -> None:
    """Begin a lane of the database: at the beginning, and where its server is started again."""
    before = sum(actor.lane.role == DATABASE for actor in scene.actors)
    scene.enter(
        Process(
            name=DATABASE,
            incarnation=before + 1,
            step=scene.shelf.step,
            module=DATABASE,
            arguments=(),
            command="",
            environment={},
            fault=None,
            pause=None,
            exit_code=None,
            signal=None,
            ended_by="",
            stdout="",
            stderr="",
        )
    )
    if before == 0 and not of(scene).there:
        scene.doubt(f"The file {of(scene).path} is missing or is no export: what was in the tables cannot be told.")


def ask(
    scene: Scene,
    actor: Actor,
    words: str,
    sentence: str,
    *,
    traits: Sequence[Trait] = (),
    reached: float = 1.0,
    joined: bool = False,
) -> None:
    """An arrow from a process to the database."""
    tables = database(scene)
    if tables is None:
        traits, reached = [Trait.CUT], 0.6
    toward = DATABASE if tables is None else None
    now = "" if Trait.LATE in traits else scene.now(actor)  # what is not written is not dated
    scene.emit(
        Kind.MESSAGE, words, sentence, actor, to=tables, toward=toward, traits=traits, reached=reached, joined=joined, at=now
    )


def answer(scene: Scene, actor: Actor, words: str, sentence: str, trait: Trait) -> None:
    """What the database says to a process that changed nothing."""
    tables = database(scene)
    if tables is not None:
        scene.emit(Kind.MESSAGE, words, sentence, tables, to=actor, traits=[trait], at=scene.now(actor))


def write(scene: Scene, actor: Actor, point: str, what: str) -> Replay[None]:
    """Pass the point between writing and committing. Raises Refused where the database takes no commit."""
    if scene.stops_at(actor, point):
        sentence = f"{capital(actor.name)} has written the {what}, and not committed it."
        ask(scene, actor, f"{what}, not committed", sentence, traits=[Trait.CUT], reached=0.7)
        actor.written = of(scene).transitions.peek()  # numbered when it was written, so it stands before what comes meanwhile
    yield from scene.reach(actor, point)
    actor.written = None
    hold(scene, actor, what)


def writer(scene: Scene, given: Entry) -> Actor | None:
    """The process that has written this transition and is stopped before its commit; one that never goes on commits none."""
    held = (each for each in scene.actors if each.suspended is not None and each.written is given.line)
    return next((each for each in held if each.process.signal is None and not each.cut_off), None)


def hold(scene: Scene, actor: Actor, what: str) -> None:
    """Raises Refused where the database takes no commit from `actor`."""
    if not actor.cut_off and database(scene) is not None:
        return
    why = actor.cut_off or NOT_THERE
    sentence = f"{capital(actor.name)} cannot commit the {what}: {why}."
    ask(scene, actor, f"{what}: {why}", sentence, traits=[Trait.CUT], reached=0.7)
    raise Refused


def post(scene: Scene, actor: Actor, given: Entry, *, due_later: bool = False) -> Row:
    """A transition is committed: the arrow, and the record on the database's lane."""
    books = of(scene)
    before = books.rows.get(given.identity)
    row = books.post(given, due_later=due_later)
    words, told = _words(given, row, books.name(given.identity))
    sentence = f"{capital(actor.name)} commits {told}{books.of(given.identity)}."
    # Only books without a fence let an outcome end the claim of another attempt.
    other = before is not None and given.reason != ATTEMPT and given.attempt not in (None, before.attempt)
    ask(scene, actor, words, sentence)
    leaves = "" if not given.previous else f" from {worded(given.previous)}"
    now_is = worded(given.status) if due_later else f"{worded(given.status)}{_due(row, given)}"
    if before and other:
        now_is = f"{now_is}: ends attempt {figure(before.attempt)}"
    elif row.status != DELIVERING and not same_time(scene, actor, given):
        now_is = f"{now_is}, dated {clock(given.at)}"
    record = f"The row goes{leaves} to {now_is} (transition {given.line.number})."
    refs, where = [books.transitions.ref(given.line)], database(scene)
    scene.emit(Kind.RECORD, now_is, record, where, refs=refs, joined=True, at=clock(given.at))
    if given.status in (DELIVERED, ACKED):
        scene.settled[given.identity] = "history"
        scene.say_moment(given.identity)
    return row


def _due(row: Row, given: Entry) -> str:
    if row.status == PENDING and row.due != given.at:
        return f", due {clock(row.due)}"
    return f" until {clock(row.due)}" if row.status == DELIVERING else ""


def _words(given: Entry, row: Row, name: str) -> tuple[str, str]:
    """What a transition is to whoever makes it, in a few words (with the row's `name`, if it needs one) and in a clause."""
    number = figure(row.attempt if given.attempt is None else given.attempt)
    which, row_name = (f"{name} ", f" {name}") if name else ("", "")
    if given.reason == ATTEMPT:
        again = f", claim {figure(row.claim)}" if row.claim != row.attempt and row.claim else ""
        fence = f", claim {figure(row.claim)}" if row.claim else ""
        taken = ", after one that was not finished" if given.previous == DELIVERING else ""
        return (
            f"claim{row_name}: attempt {number}{again}",
            f"the claim of attempt {number}{fence}{taken}, lease until {clock(row.due)}",
        )
    if given.by_operator:
        return f"forced retry{row_name}", "a forced retry by the operator"
    if given.reason == MAX_ATTEMPTS and given.attempt is None:
        return f"{which}attempt {number} never finished", f"attempt {number} was the last and was never finished"
    fixed = {
        ENQUEUED: (f"enqueue{row_name}", "a new row"),
        DEADLINE: (f"{which}its time is over", "its time is over"),
        TRANSPORT_OK: (f"{which}attempt {number}: success", f"the success of attempt {number}"),
        ACK_TIMEOUT: (
            f"{which}attempt {number}: success, the last",
            f"the success of attempt {number}, the last, without acknowledgement",
        ),
        MAX_ATTEMPTS: (f"{which}attempt {number}: failed, the last", f"the failure of attempt {number}, the last"),
    }
    if given.status == ACKED:
        return f"acknowledgement{row_name}", "the consumer's acknowledgement"
    if given.status not in (PENDING, DELIVERED, DEAD_LETTER) and given.reason not in fixed:
        return f"{which}{label(given.reason)}", f"reason {plain(given.reason, 60)}"
    return fixed.get(given.reason, (f"{which}attempt {number}: failed", f"the failure of attempt {number}"))


def expected(scene: Scene, actor: Actor, what: str, *, reason: str, identity: str, by_operator: bool = False) -> Entry:
    """The next transition, which must be this one, at the time of `actor`. Raises Absent where it is another."""
    books = of(scene)
    given = books.next()
    fits = given is not None and (given.reason, given.identity, given.by_operator) == (reason, identity, by_operator)
    if given is None or not fits or not same_time(scene, actor, given):
        found = (
            "there is no further one" if given is None else f"the next is {plain(given.reason, 60)} of {short(given.identity)}"
        )
        would = f"{capital(actor.name)} would now commit {what}, but among the transitions of {plain(books.path)} {found}."
        raise Absent(actor, f"{would} What else this process did cannot be told.")
    return given


def same_time(scene: Scene, actor: Actor, given: Entry) -> bool:
    """Whether a transition bears the time by which `actor` goes."""
    now = moment(scene.now(actor))
    return now is not None and given.at == now
