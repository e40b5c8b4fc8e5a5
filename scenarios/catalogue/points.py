"""Section points: a scenario for every declared fault point. Whoever dies there, recovery ends with one effect, one receipt and
one history record; the counterexample receiver that keeps its keys apart is here because its points are declared too.

The scenarios are made from the registry of points and from `_SETTINGS`, which says how each is reached; a test holds the two
together.
"""

from collections.abc import Callable

from outbox import dispatcher as _dispatcher
from outbox import faults
from receivers import __main__ as _receivers
from scenarios.catalogue.parts import KEYED, STATUS_QUERY, dispatcher, producer, receiver
from scenarios.model import Await, Counts, Program, Run, Scenario, Start, Step, Stop

INTRODUCTION = (
    "Each fault point is fired once, in the simplest run that reaches it; then the same programs are started again until "
    "nothing is left to do. Arrivals tell whether the death came before or after the request."
)

PROGRAMS = (_dispatcher, _receivers)  # imported for their declarations
RECONCILE = ("--policy", "reconcile")
EFFECT_THEN_KEY = receiver("effect-then-key")
HALTED, UNKNOWN, UNAVAILABLE = 23, 12, 10

# Makes the steps for a key and for what is to halt, `POINT#1`.
Build = Callable[[str, str], tuple[Step, ...]]


def _producer_dies(key: str, point: str) -> tuple[Step, ...]:
    torn = (Run(producer(key), halt_at="intention.append.torn#1", exit_code=HALTED),) if ".repair." in point else ()
    return (
        Start(KEYED),
        *torn,
        Run(producer(key), halt_at=point, exit_code=HALTED),
        Run(producer(key)),
        Run(dispatcher()),
        Stop("receiver"),
    )


def _dispatcher_dies(key: str, point: str) -> tuple[Step, ...]:
    return (
        Start(KEYED),
        Run(producer(key)),
        *_tear(point),
        Run(dispatcher(), halt_at=point, exit_code=HALTED),
        Run(dispatcher()),
        Stop("receiver"),
    )


def _tear(point: str) -> tuple[Step, ...]:
    """What leaves a torn tail for the point's repair to cut."""
    records = {"attempts.repair": "attempt", "receipts.repair": "receipt", "history.repair": "history"}
    record = records.get(point.rpartition(".")[0])
    return (Run(dispatcher(), halt_at=f"{record}.append.torn#1", exit_code=HALTED),) if record else ()


def _dispatcher_dies_unanswered(key: str, point: str) -> tuple[Step, ...]:
    return (
        Start(KEYED),
        Stop("receiver"),
        Run(producer(key)),
        Run(dispatcher(), halt_at=point, exit_code=HALTED),
        Start(KEYED),
        Run(dispatcher()),
        Stop("receiver"),
    )


def _dispatcher_dies_asking(key: str, point: str) -> tuple[Step, ...]:
    return (
        Start(STATUS_QUERY),
        Run(producer(key)),
        Run(dispatcher(*RECONCILE), halt_at="send.response#1", exit_code=HALTED),
        Run(dispatcher(*RECONCILE), halt_at=point, exit_code=HALTED),
        Run(dispatcher(*RECONCILE)),
        Stop("receiver"),
    )


def _receiver_dies_answering(key: str, point: str) -> tuple[Step, ...]:
    return (
        Start(STATUS_QUERY, halt_at=point),
        Run(producer(key)),
        Run(dispatcher(*RECONCILE), halt_at="send.response#1", exit_code=HALTED),
        Run(dispatcher(*RECONCILE), exit_code=UNKNOWN),
        Await("receiver", exit_code=HALTED),
        Start(STATUS_QUERY),
        Run(dispatcher(*RECONCILE)),
        Stop("receiver"),
    )


def _receiver_dies_serving(kind: Program) -> Build:
    def build(key: str, point: str) -> tuple[Step, ...]:
        return (
            Start(kind, halt_at=point),
            Run(producer(key)),
            Run(dispatcher(), exit_code=UNKNOWN),
            Await("receiver", exit_code=HALTED),
            Start(kind),
            Run(dispatcher()),
            Stop("receiver"),
        )

    return build


def _receiver_dies_opening(kind: Program) -> Build:
    def build(key: str, point: str) -> tuple[Step, ...]:
        return (
            Run(kind, halt_at=point, exit_code=HALTED),
            Start(kind),
            Run(producer(key)),
            Run(dispatcher()),
            Stop("receiver"),
        )

    return build


def _receiver_dies_repairing(kind: Program, torn: str) -> Build:
    def build(key: str, point: str) -> tuple[Step, ...]:
        return (
            Start(kind, halt_at=torn),
            Run(producer(key)),
            Run(dispatcher(), exit_code=UNKNOWN),
            Await("receiver", exit_code=HALTED),
            Run(kind, halt_at=point, exit_code=HALTED),
            Start(kind),
            Run(dispatcher()),
            Stop("receiver"),
        )

    return build


# For each write or place (a point's name without its last word): the run that reaches it, and the arrivals by the stage.
_FIRST, _RESENT = 1, 2
_BEFORE_SENDING = dict.fromkeys(("before", "torn", "written", "synced"), _FIRST)
_AFTER_SENDING = dict.fromkeys(("before", "torn", "written", "synced"), _RESENT)
_KEEPS_RECEIPT = {"before": _RESENT, "torn": _RESENT, "written": _FIRST, "synced": _FIRST}
_SETTINGS: dict[str, tuple[Build, dict[str, int]]] = {
    "intention.append": (_producer_dies, _BEFORE_SENDING),
    "intentions.create": (_producer_dies, _BEFORE_SENDING),
    "intentions.repair": (_producer_dies, _BEFORE_SENDING),
    "attempt.append": (_dispatcher_dies, _BEFORE_SENDING),
    "attempts.create": (_dispatcher_dies, _BEFORE_SENDING),
    "attempts.repair": (_dispatcher_dies, _BEFORE_SENDING),
    "outcome.append": (_dispatcher_dies_unanswered, _BEFORE_SENDING),
    "inquiry.append": (_dispatcher_dies_asking, _BEFORE_SENDING),
    "inquiry": (_dispatcher_dies_asking, _BEFORE_SENDING),
    "receipt.append": (_dispatcher_dies, _KEEPS_RECEIPT),
    "receipts.create": (_dispatcher_dies, _BEFORE_SENDING),
    "receipts.repair": (_dispatcher_dies, _AFTER_SENDING),
    "history.append": (_dispatcher_dies, _BEFORE_SENDING),
    "history.create": (_dispatcher_dies, _BEFORE_SENDING),
    "history.repair": (_dispatcher_dies, _BEFORE_SENDING),
    "send": (_dispatcher_dies, {"before": _FIRST, "response": _RESENT}),
    "arrival.append": (_receiver_dies_serving(KEYED), {"before": _FIRST, "torn": _FIRST, "written": _RESENT}),
    "answer.append": (_receiver_dies_serving(KEYED), _AFTER_SENDING),
    "query.append": (_receiver_dies_answering, _BEFORE_SENDING),
    "arrivals.create": (_receiver_dies_opening(KEYED), _BEFORE_SENDING),
    "arrivals.repair": (_receiver_dies_repairing(KEYED, "answer.append.torn#1"), _AFTER_SENDING),
    "effect.append": (_receiver_dies_serving(KEYED), _AFTER_SENDING),
    "effects.create": (_receiver_dies_opening(KEYED), _BEFORE_SENDING),
    "effects.repair": (_receiver_dies_repairing(KEYED, "effect.append.torn#1"), _AFTER_SENDING),
    "key.append": (_receiver_dies_serving(EFFECT_THEN_KEY), _AFTER_SENDING),
    "keys.create": (_receiver_dies_opening(EFFECT_THEN_KEY), _BEFORE_SENDING),
    "keys.repair": (_receiver_dies_repairing(EFFECT_THEN_KEY, "key.append.torn#1"), _AFTER_SENDING),
}
# Where the effect is durable and its key is not, the retry is applied again: the mistake of that receiver.
_TWO_EFFECTS = frozenset(
    {"key.append.before", "key.append.torn", "keys.repair.before", "keys.repair.written", "keys.repair.synced"}
)


def _scenario(point: str, build: Build, arrivals: int) -> Scenario:
    name = point.replace(".", "_")
    twice = point in _TWO_EFFECTS
    return Scenario(
        section="points",
        name=name,
        shows=f"Death at {point}: {faults.declared()[point]}",
        look_at=f"the process that ended with 23 said so at {point}; what came after is recovery",
        steps=build(f"{name}-1", f"{point}#1"),
        expected=Counts(effects=2 if twice else 1, receipts=1, history=1, arrivals=arrivals),
        counterexample=twice,
    )


SCENARIOS = tuple(
    _scenario(f"{place}.{stage}", build, count)
    for place, (build, arrivals) in _SETTINGS.items()
    for stage, count in arrivals.items()
    if f"{place}.{stage}" in faults.declared()
)
