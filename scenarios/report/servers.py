"""What a receiver does with a request, told again from its journals.

A request to a receiver that runs arrives, unless it was cut on its way (`ways`). Receivers write in the order of
`receivers.server`: arrival, then what their kind does (effect, key), then the answer, then the response leaves. Records are
taken from the journals in that order; what a receiver was about to write when it died is known from the fault point at which
it died.
"""

import re
from dataclasses import dataclass

from outbox.journal import JournalSpec
from receivers.arrivals import ARRIVALS
from receivers.keys import KEYS
from receivers.ledger import EFFECTS
from scenarios.report.actors import Actor, Halted, Replay, Said, capital
from scenarios.report.events import Kind, Trait
from scenarios.report.facts import Line
from scenarios.report.scene import Scene
from scenarios.report.shelf import Cursor
from scenarios.report.words import figure, label, number_of, plain, short_hashes, text_of

NOTHING: frozenset[Trait] = frozenset()
SEPARATE_KEYS = ("effect-then-key", "key-then-effect")
_PORT = re.compile(r"\{([^{}]*)\.port\}")


@dataclass(frozen=True, slots=True)
class Request:
    """One request: the operation that it is meant for, the key as sent, attempt number or sender's name, and its words."""

    operation: str
    key: str
    attempt: int | None
    sender: str | None
    words: str
    again: bool = False  # an earlier attempt of this operation went out


@dataclass(frozen=True, slots=True)
class Back:
    """What came back to the sender: the status, where one was read, and whether it is a success with a whole result."""

    status: int | None = None
    success: bool = False


SILENCE = Back()


def target(actor: Actor) -> str:
    """The name of the process that a sender (or a relay) sends to."""
    process = actor.process
    url = process.option("--upstream" if actor.lane.role == "relay" else "--receiver") or process.option("--courier")
    match = _PORT.search(url)
    return match[1] if match else ""


def opening(scene: Scene, actor: Actor) -> Replay[None]:
    """What a receiver does before its READY line. A relay only opens its journal."""
    if actor.lane.role != "receiver":
        return
    specs: list[JournalSpec] = [EFFECTS, ARRIVALS, *([KEYS] if keeps_keys(actor) else [])]
    for spec in specs:
        yield from scene.open(actor, scene.shelf.cursor(actor.folder(), spec.name), spec)


def keeps_keys(actor: Actor) -> bool:
    """Whether this receiver keeps its keys in a journal of their own."""
    return actor.process.arguments[:1] in (SEPARATE_KEYS[:1], SEPARATE_KEYS[1:])


def delivered(
    scene: Scene, sender: Actor, server: Actor, request: Request, missing: tuple[int, int] | None = None
) -> Replay[Back]:
    """The request goes to a receiver and its answer back; `missing` is (bytes that came, bytes in all) if it was cut."""
    arrivals = scene.shelf.cursor(server.folder(), ARRIVALS.name)
    send(scene, sender, server, request, missing)
    if missing and not (arrivals.next_is("arrival") and _is_of(request, arrivals.peek())):
        return SILENCE  # cut before the end of its headers it is no arrival
    try:
        answer = yield from _serve(scene, server, arrivals, request)
    except Halted as halt:
        if halt.actor is not server:
            raise
        _dies(scene, server, sender, "gets no answer and cannot know whether it was done")
        return SILENCE
    return respond(scene, server, sender, answer)


def handed_over(scene: Scene, sender: Actor, server: Actor, request: Request) -> Replay[Replay[None]]:
    """A request whose sender does not wait: it arrives. What the receiver does about it is the replay that is returned."""
    arrivals = scene.shelf.cursor(server.folder(), ARRIVALS.name)
    send(scene, sender, server, request, None)
    try:
        arrival = yield from arrive(scene, server, arrivals, request)
    except Halted as halt:
        if halt.actor is not server:
            raise
        scene.halted(server)
        return _nothing()
    return _unheard(scene, server, arrivals, arrival, request.operation)


def _nothing() -> Replay[None]:
    yield from ()


def _unheard(scene: Scene, server: Actor, arrivals: Cursor, arrival: Line, operation: str) -> Replay[None]:
    yield from answer_of(scene, server, arrivals, arrival, operation)


def _dies(scene: Scene, server: Actor, sender: Actor, consequence: str) -> None:
    """The server halts while `sender` waits for its answer."""
    scene.halted(server)
    told = f"The connection breaks: {sender.name} {consequence}."
    scene.emit(Kind.MESSAGE, "no answer", told, server, to=sender, traits=[Trait.CUT], reached=0.4)


def send(scene: Scene, sender: Actor, server: Actor, request: Request, missing: tuple[int, int] | None) -> None:
    """The request leaves, and gets as far as `missing` says."""
    if request.attempt is not None:
        scene.sent.add(request.operation)
    traits = [Trait.RESENT] if request.again else []
    words, reached = request.words, 1.0
    sentence = (
        f"{capital(sender.name)} sends the request{' again' if request.again else ''}{_attempt(request)} to {server.name}"
    )
    if missing:
        came, whole = missing
        words, reached = f"cut: {came} of {whole} bytes", part(came, whole)
        sentence += f", but only {came} of its {whole} bytes get there"
        traits.append(Trait.CUT)
    scene.emit(Kind.MESSAGE, words, f"{sentence}.", sender, to=server, traits=traits, reached=reached)


def _attempt(request: Request) -> str:
    if request.attempt is None:
        return f" under key {plain(request.key)}"
    return f" (attempt {request.attempt}, key {short_hashes(plain(request.key))})"


def part(came: int, whole: int) -> float:
    """How far an arrow goes for a message of which so many bytes came."""
    return 0.15 + 0.7 * came / whole if whole > 0 else 0.15


def _is_of(request: Request, line: Line | None) -> bool:
    if line is None:
        return False
    attempt = None if request.attempt is None else str(request.attempt)
    data = line.data
    return data.get("attempt") == attempt and data.get("sender") == request.sender and data.get("key") in (request.key, None)


def arrive(scene: Scene, server: Actor, arrivals: Cursor, request: Request) -> Replay[Line]:
    """The record of a request that reached the receiver."""

    def say(line: Line) -> Said:
        sentence = f"{capital(server.name)} logs it as {plain(line.id)}."
        return label(line.id), sentence, NOTHING

    points = ARRIVALS.types["arrival"]
    fits = lambda line: _is_of(request, line)  # noqa: E731
    return (yield from scene.append(server, arrivals, points, ("arrival", None), say, fits=fits, joined=True))


def answer_of(scene: Scene, server: Actor, arrivals: Cursor, arrival: Line, operation: str) -> Replay[Line]:
    """What the receiver does about an arrival: effect and key as its kind has them, then the record of the answer."""
    if _applies(scene, server, arrivals, arrival):
        steps = [_effect(scene, server, arrival, operation)]
        if keeps_keys(server):
            steps.insert(0 if server.process.arguments[0] == "key-then-effect" else 1, _key(scene, server, arrival))
        for step in steps:
            yield from step

    def say(line: Line) -> Said:
        outcome, reason = plain(text_of(line.data, "outcome"), 60), plain(text_of(line.data, "reason"), 60)
        sentence = (
            f"{capital(server.name)} logs its answer to {plain(arrival.id)}: {outcome}{f' ({reason})' if reason else ''}."
        )
        return "", sentence, NOTHING

    return (yield from scene.append(server, arrivals, ARRIVALS.types["answer"], ("answer", arrival.id), say))


def _serve(scene: Scene, server: Actor, arrivals: Cursor, request: Request) -> Replay[Line]:
    arrival = yield from arrive(scene, server, arrivals, request)
    return (yield from answer_of(scene, server, arrivals, arrival, request.operation))


def _applies(scene: Scene, server: Actor, arrivals: Cursor, arrival: Line) -> bool:
    """Whether the receiver performs an effect for this arrival, or was about to when it died."""
    answer = arrivals.ahead("answer", arrival.id)
    if answer is not None:
        return answer.data.get("outcome") == "applied"
    written = scene.shelf.cursor(server.folder(), EFFECTS.name).peek()
    if written is not None and written.data.get("arrival") == arrival.id:
        return True
    point = server.process.fault[0] if server.process.fault and server.halts else ""
    return point.startswith(("effect.", "key."))


def _effect(scene: Scene, server: Actor, arrival: Line, operation: str) -> Replay[None]:
    effects = scene.shelf.cursor(server.folder(), EFFECTS.name)

    def say(line: Line) -> Said:
        scene.effects[operation] += 1
        done = scene.effects[operation]
        number = figure(number_of(line.data, "number"))
        sentence = f"{capital(server.name)} performs effect {number} for {plain(arrival.id)}"
        if done == 1:
            return f"effect {number}", f"{sentence}: durable, with its result in one record.", NOTHING
        sentence += (
            f". It is the {done}{'nd' if done == 2 else 'rd' if done == 3 else 'th'} effect of the same operation: a duplicate."
        )
        return f"effect {number}: DUPLICATE", sentence, frozenset({Trait.DUPLICATE})

    fits = lambda line: line.data.get("arrival") == arrival.id  # noqa: E731
    yield from scene.append(server, effects, EFFECTS.types["effect"], ("effect", None), say, fits=fits)
    scene.say_moment(operation)


def _key(scene: Scene, server: Actor, arrival: Line) -> Replay[None]:
    keys = scene.shelf.cursor(server.folder(), KEYS.name)
    key = text_of(arrival.data, "key")
    sentence = f"{capital(server.name)} writes the key {plain(key)} into a file of its own."
    yield from scene.append(server, keys, KEYS.types["key"], ("key", key), lambda _: ("key", sentence, NOTHING))


def respond(scene: Scene, server: Actor, sender: Actor, answer: Line, *, joined: bool = True) -> Back:
    """The response leaves."""
    status, outcome = number_of(answer.data, "status"), text_of(answer.data, "outcome")
    traits: list[Trait] = []
    words = f"{figure(status)} {plain(outcome, 30)}"
    sentence = f"{capital(server.name)} answers {sender.name} {figure(status)}, {plain(outcome, 60)}"
    if outcome == "replayed":
        traits.append(Trait.REPLAYED)
        named = text_of(answer.data, "effect")
        if scene.shelf.cursor(server.folder(), EFFECTS.name).find("effect", named) is None:
            if scene.certain:
                traits.append(Trait.LOST)
                words += ", of NO effect"
            sentence += f", with the result of an effect that {'does not exist' if scene.certain else 'has no place here'}"
        else:
            sentence += ": the stored result again"
    elif outcome != "applied":
        traits.append(Trait.REFUSED)
        words = f"{figure(status)} {label(text_of(answer.data, 'reason'), 24)}"
    scene.emit(Kind.MESSAGE, words, f"{sentence}.", server, to=sender, traits=traits, joined=joined)
    return Back(status, status is not None and 200 <= status < 300)


def inquire(scene: Scene, sender: Actor, name: str, key: str) -> Replay[None]:
    """The sender asks the receiver whether the operation under `key` was applied."""
    server = scene.running(name)
    words, sentence = "GET, was it applied?", f"{capital(sender.name)} asks whether {plain(key)} was applied"
    if server is None:
        sentence += ", and nobody listens."
        scene.emit(Kind.MESSAGE, words, sentence, sender, toward=name, traits=[Trait.CUT], reached=0.6)
        return
    scene.emit(Kind.MESSAGE, words, f"{sentence}.", sender, to=server)
    if server.process.arguments[:1] != ("status-query",):
        told = f"{capital(server.name)} has no status query and cannot tell."
        scene.emit(Kind.MESSAGE, "404 not_found", told, server, to=sender, traits=[Trait.REFUSED])
        return

    def say(line: Line) -> Said:
        sentence = f"{capital(server.name)} logs the query and its answer: {plain(text_of(line.data, 'answer'), 60)}."
        return label(line.id), sentence, NOTHING

    arrivals = scene.shelf.cursor(server.folder(), ARRIVALS.name)
    try:
        line = yield from scene.append(server, arrivals, ARRIVALS.types["query"], ("query", None), say, joined=True)
    except Halted as halt:
        if halt.actor is not server:
            raise
        _dies(scene, server, sender, "was told nothing")
        return
    answer = plain(text_of(line.data, "answer"), 30)
    scene.emit(Kind.MESSAGE, f"200 {answer}", f"{capital(server.name)} answers: {answer}.", server, to=sender)
