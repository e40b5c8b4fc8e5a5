"""The way of a request from its sender to a receiver and of what comes back: direct, into the void, or through a relay.

What a relay did to a connection is in the record that it made of it: the fault, and how many bytes went each way.
"""

from outbox.errors import BadInput
from scenarios import wire
from scenarios.relay import EXCHANGES
from scenarios.report.actors import Absent, Actor, Replay, Said, capital
from scenarios.report.events import Kind, Trait
from scenarios.report.facts import Line
from scenarios.report.scene import Scene
from scenarios.report.servers import SILENCE, Back, Request, delivered, part, send, target
from scenarios.report.words import label, number_of, plain, text_of


def exchange(scene: Scene, sender: Actor, name: str, request: Request) -> Replay[Back]:
    """Send a request to the process `name`, and say what came back."""
    server = scene.running(name)
    if server is None:
        sentence = f"{capital(sender.name)} finds nobody listening: the connection is refused, nothing was sent."
        scene.emit(Kind.MESSAGE, "connection refused", sentence, sender, toward=name, traits=[Trait.CUT], reached=0.6)
        return SILENCE
    if server.lane.role == "relay":
        return (yield from _relayed(scene, sender, server, request))
    return (yield from delivered(scene, sender, server, request))


def _relayed(scene: Scene, sender: Actor, relay: Actor, request: Request) -> Replay[Back]:
    """The request goes through a relay, which records at the end what it did to the connection."""
    exchanges = scene.shelf.cursor(relay.folder(), EXCHANGES.name)
    line = exchanges.peek()
    if line is None or line.type != "exchange":
        raise Absent(relay, f"{capital(relay.name)} has no record of the next connection, so its way cannot be told.")
    fault = _fault(line)
    sent, forwarded, came, back = (
        number_of(line.data, f"{name}_bytes") or 0
        for name in ("request", "request_forwarded", "response", "response_forwarded")
    )
    send(scene, sender, relay, request, None)
    upstream = scene.running(target(relay))
    answer = SILENCE
    for _ in range(fault.times if forwarded and upstream else 0):
        missing = (forwarded, sent) if forwarded < sent else None
        if upstream is not None and upstream.running:
            answer = yield from delivered(scene, relay, upstream, request, missing)
    if not forwarded:
        nothing = f"{capital(relay.name)} passes nothing of it on."
        words = "nothing passed on"
        scene.emit(Kind.MESSAGE, words, nothing, relay, toward=target(relay), traits=[Trait.CUT], reached=0.15)

    def say(_line: Line) -> Said:
        name = plain(fault.name, 60)
        sentence = (
            f"{capital(relay.name)} records {plain(line.id)}: {name}; {forwarded} of {sent} bytes on, {back} of {came} back."
        )
        return f"{label(line.id)}: {label(name, 30)}", sentence, frozenset({Trait.RELAY})

    yield from scene.append(relay, exchanges, EXCHANGES.types["exchange"], ("exchange", None), say)
    return _back(scene, (relay, sender), fault, answer, (back, came))


def _fault(line: Line) -> wire.Fault:
    try:
        return wire.parse(f"1:{text_of(line.data, 'fault')}")[1]
    except BadInput:
        return wire.PLAIN


def _back(scene: Scene, ends: tuple[Actor, Actor], fault: wire.Fault, answer: Back, shares: tuple[int, int]) -> Back:
    """What the relay gives back: the response, a part of it, something in its place, or nothing."""
    (relay, sender), (back, came) = ends, shares
    traits, reached, result = [Trait.RELAY], 1.0, answer
    if fault.answer is not None:
        result = Back(int(fault.answer.split(b" ", 2)[1]), success=False)
        words = f"{result.status}, {fault.name}"
        sentence = f"{capital(relay.name)} answers {result.status} in the receiver's place ({fault.name})."
    elif back == 0:
        traits, reached, result = [Trait.CUT], 0.15, SILENCE
        how = "is kept back until the sender gives up" if fault.hold else "does not reach the sender"
        words = "kept back" if fault.hold else "reset, nothing back" if fault.reset else "ended, nothing back"
        sentence = (
            f"No answer comes: a response of {came} bytes {how}."
            if came
            else f"The connection ends: {sender.name} gets nothing."
        )
    elif back < came:
        traits, reached = [Trait.CUT], part(back, came)
        result = Back(answer.status, success=False)
        words = f"{'reset' if fault.reset else 'cut'}: {back} of {came} bytes"
        sentence = f"The response is broken off: {sender.name} gets {back} of its {came} bytes."
    else:
        traits = []
        words, sentence = f"{answer.status} passed on", f"{capital(relay.name)} passes the response on."
    scene.emit(Kind.MESSAGE, words, sentence, relay, to=sender, traits=traits, reached=reached, joined=True)
    return result
