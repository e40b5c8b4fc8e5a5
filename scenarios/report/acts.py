"""Producers and operators of a dispatch outbox, told again: each makes one transaction a dispatch, and ends.

What a producer prints are the ids of its rows; so it is known where a row with its deduplication key was there already. An
operator's exit code says whether its act was done (0), came to nothing (1) or was refused (2).
"""

from dataclasses import dataclass

from outbox.dispatch import admin, enqueue, retention
from outbox.dispatch.edges import CONSUMER, ENQUEUED, RETRY_BACKOFF
from outbox.faults import HALT_EXIT_CODE
from scenarios.report.actors import Absent, Actor, Replay, capital
from scenarios.report.books import clock, moment, short
from scenarios.report.events import Kind, Trait
from scenarios.report.posting import Refused, answer, ask, database, expected, hold, of, post, write, writer
from scenarios.report.scene import Scene
from scenarios.report.words import label, plain, text_of

MAX_KEY = 20  # a longer one would be no label
_DONE, _CAME_TO_NOTHING = 0, 1


def producer(scene: Scene, actor: Actor) -> Replay[None]:
    """A row for each id, or the id of the row that is there."""
    told = [line.strip() for line in actor.process.stdout.splitlines()]
    revives = actor.process.arguments[:1] == ("revive",)
    for number, given in enumerate(_ids(actor)):
        seat, _mark, identity = given.rpartition("=") if revives else ("", "", given)
        epoch = actor.process.option("--reset-epoch")
        key = f"revival:{seat}:{epoch}" if revives else actor.process.option("--dedup-key")
        yield from scene.reach(actor, enqueue.BEFORE)
        try:
            yield from _enqueue(scene, actor, identity, key, told[number] if number < len(told) else "")
        except Refused:
            return
        yield from scene.reach(actor, enqueue.COMMITTED)


def _ids(actor: Actor) -> list[str]:
    """What stands behind the options of its command line."""
    given = list(actor.process.arguments[1:])
    while given and given[0].startswith("--"):
        given = given[2:]
    return given


def _enqueue(scene: Scene, actor: Actor, identity: str, key: str, printed: str) -> Replay[None]:
    books = of(scene)
    looked = False
    while key and key not in books.keys:
        if not looked:
            looked = True
            yield from scene.reach(actor, enqueue.LOOKED)
            continue  # whoever was stopped there may find the key taken when it goes on
        # One that prints the id of a row that is not there yet has waited for whoever had written that row.
        holder = next((each for each in scene.actors if each.holds == key and each.suspended is not None), None)
        if printed in ("", identity) or holder is None:
            break
        yield holder
    there = books.keys.get(key) if key else None
    if there is not None:
        _is_there(scene, actor, key, there, meanwhile=looked)
        return
    actor.holds = key
    yield from write(scene, actor, enqueue.WRITTEN, "row")
    actor.holds = ""
    post(scene, actor, expected(scene, actor, f"the row {short(identity)}", reason=ENQUEUED, identity=identity))
    if key:
        books.keys[key] = identity


def _is_there(scene: Scene, actor: Actor, key: str, there: str, *, meanwhile: bool) -> None:
    """The key has a row; `meanwhile`: it had none when this producer looked."""
    hold(scene, actor, "row")
    words = f"enqueue under {label(key)}" if len(key) < MAX_KEY else "enqueue under its key"
    ask(scene, actor, words, f"{capital(actor.name)} enqueues under the key {plain(key, 60)}.")
    now = " by now" if meanwhile else ""
    sentence = f"The key {plain(key, 60)} has the row {short(there)}{now}: its id is the answer, and nothing is written."
    answer(scene, actor, f"it is there: {short(there)}", sentence, Trait.REPLAYED)
    actor.remark = "it was there"


def operator(scene: Scene, actor: Actor) -> Replay[None]:
    """One act on one row."""
    given = list(actor.process.arguments)
    while given and given[0].startswith("--"):
        given = given[2:]
    act, identity = [*given, "", ""][:2]
    try:
        if act == "purge":
            yield from _purge(scene, actor, identity)
        elif act in ("ack", "retry"):
            yield from _change(scene, actor, identity, _ACK if act == "ack" else _RETRY)
        else:
            scene.doubt(f"{capital(actor.name)} does what this story does not know: {plain(act, 40)}.")
    except Refused:
        return


@dataclass(frozen=True, slots=True)
class _Act:
    """A guarded change of a row: its name, its fault points, and the transition that it makes."""

    name: str
    before: str
    written: str
    committed: str
    reason: str
    by_operator: bool


_ACK = _Act("acknowledgement", admin.ACK_BEFORE, admin.ACK_WRITTEN, admin.ACK_COMMITTED, CONSUMER, by_operator=False)
_RETRY = _Act("forced retry", admin.RETRY_BEFORE, admin.RETRY_WRITTEN, admin.RETRY_COMMITTED, RETRY_BACKOFF, by_operator=True)


def _change(scene: Scene, actor: Actor, identity: str, act: _Act) -> Replay[None]:
    """The act is refused by what it reads, overtaken between reading and writing, or committed."""
    name = f"{act.name}{of(scene).of(identity)}"
    if _code(actor) not in (_DONE, _CAME_TO_NOTHING):
        _turned_away(scene, actor, name)
        return
    yield from scene.reach(actor, act.before)
    if _code(actor) == _CAME_TO_NOTHING:
        given = of(scene).next()
        other = writer(scene, given) if given is not None and given.identity == identity else None
        if other is not None:
            yield other  # the row is locked until that one has committed, and is another then
        hold(scene, actor, name)
        sentence = f"{capital(actor.name)} would write the {name}, but the row is not as it was read: nothing is changed."
        ask(scene, actor, f"{name}: overtaken", sentence, traits=[Trait.LATE])
        actor.remark = "overtaken"
    else:
        yield from write(scene, actor, act.written, name)
        made = expected(scene, actor, f"the {name}", reason=act.reason, identity=identity, by_operator=act.by_operator)
        post(scene, actor, made)
    yield from scene.reach(actor, act.committed)


def _code(actor: Actor) -> int | None:
    """The exit code, where it says what became of the act: whoever died or lost its database was about to do it."""
    undone = actor.halts or bool(actor.cut_off) or actor.process.signal is not None
    return _DONE if undone or actor.process.exit_code == HALT_EXIT_CODE else actor.process.exit_code


def _turned_away(scene: Scene, actor: Actor, name: str) -> None:
    said = [line for line in actor.process.stderr.splitlines() if line.startswith("dispatch: ")]
    why = plain(said[-1].removeprefix("dispatch: "), 160) if said else "it does not say why"
    ask(
        scene,
        actor,
        f"{name}: refused",
        f"{capital(actor.name)} asks for the {name} and is refused: {why}.",
        traits=[Trait.REFUSED],
    )
    actor.remark = "refused"


def _purge(scene: Scene, actor: Actor, identity: str) -> Replay[None]:
    books = of(scene)
    yield from scene.reach(actor, retention.PURGE_BEFORE)
    if _code(actor) == _CAME_TO_NOTHING:
        hold(scene, actor, "purge")
        ask(
            scene,
            actor,
            "purge: no such row",
            f"{capital(actor.name)} would purge a row that is not there.",
            traits=[Trait.LATE],
        )
        actor.remark = "nothing to purge"
    else:
        yield from write(scene, actor, retention.PURGE_WRITTEN, "purge")
        line = books.events.peek()
        at = None if line is None else line.data.get("created_at")
        if line is None or text_of(line.data, "entity_id") != identity or at != moment(scene.now(actor)):
            raise Absent(actor, f"{capital(actor.name)} would now purge {short(identity)}, but no admin event says so.")
        books.events.take()
        status = books.rows[identity].status if identity in books.rows else "unknown"
        books.purge(identity)
        was = f"{plain(identity, 60)}, which is {plain(status, 20)}"
        sentence = f"{capital(actor.name)} purges {was}: the row is gone, its history stays."
        ask(scene, actor, f"purge{books.of(identity)}", sentence)
        told = f"The row is gone; an admin event of {clock(moment(scene.now(actor)))} says who and what."
        refs = [books.events.ref(line)]
        scene.emit(Kind.RECORD, "purged", told, database(scene), refs=refs, joined=True, at=scene.now(actor))
    yield from scene.reach(actor, retention.PURGE_COMMITTED)
