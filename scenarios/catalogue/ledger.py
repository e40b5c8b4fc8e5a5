"""Section ledger: the receiver's side of the agreement, and four ways of getting it wrong.

Bare clients send under one key; receivers die at the points of their one durable write.
"""

from scenarios.catalogue.parts import KEYED, OTHER_QUESTION, client, dispatcher, producer, receiver
from scenarios.model import Await, Counts, Flip, Kill, Program, Run, Scenario, Start, Step, Stop, Together

INTRODUCTION = (
    "The ledger is the receiver's memory of keys. Look-up entry, effect and result are one durable record, so a crash finds "
    "all of them or none; keep them apart, in memory, or without holding them together, and the counts go wrong."
)

EFFECT_RECORD = "effect.append"
CLIENTS = 12


def _twice(
    key: str, to: Program, between: tuple[Step, ...] = (), second_body: str | None = None, second_exit: int = 0
) -> tuple[Step, ...]:
    second = client(key, name="client_2") if second_body is None else client(key, second_body, name="client_2")
    return (Start(to), Run(client(key, name="client_1")), *between, Run(second, exit_code=second_exit), Stop("receiver"))


def _dies_at(name: str, to: Program, halt_at: str) -> tuple[Step, ...]:
    """A client's request kills the receiver; the client tries again after the restart."""
    key = f"{name}-1"
    return (
        Start(to, halt_at=halt_at),
        Run(client(key, name="client_1"), exit_code=12),
        Await("receiver", exit_code=23),
        Start(to),
        Run(client(key, name="client_2")),
        Stop("receiver"),
    )


def _all_at_once(key: str, to: Program, exits: tuple[int, ...]) -> tuple[Step, ...]:
    runs = tuple(Run(client(key, name=f"client_{number:02}"), exit_code=code) for number, code in enumerate(exits, 1))
    return (Start(to), Together(runs), Stop("receiver"))


def _crowd(count: int, kind: str = "keyed", *options: str) -> Program:
    return receiver(kind, "--gate", str(count), "--work-until", str(count), *options)


def _ledger(name: str, shows: str, look_at: str, steps: tuple[Step, ...], *, effects: int, arrivals: int) -> Scenario:
    return Scenario("ledger", name, shows, look_at, steps, Counts(effects, 0, 0, arrivals))


SCENARIOS = (
    _ledger(
        "replay",
        "Same key and body again: the stored result is replayed",
        "client_2's response is marked replayed and has the bytes of client_1's",
        _twice("replay-1", KEYED),
        effects=1,
        arrivals=2,
    ),
    _ledger(
        "conflict",
        "Same key, other body: 409",
        "arrival-2 is answered conflict with status 409; the effect is still that of arrival-1",
        _twice("conflict-1", KEYED, second_body=OTHER_QUESTION, second_exit=11),
        effects=1,
        arrivals=2,
    ),
    _ledger(
        "conflict_422",
        "Same key, other body, at a receiver that follows the IETF draft: 422",
        "as in conflict, with status 422",
        _twice("conflict_422-1", receiver("keyed", "--conflict-status", "422"), second_body=OTHER_QUESTION, second_exit=11),
        effects=1,
        arrivals=2,
    ),
    _ledger(
        "concurrent",
        "Twelve client processes at once under one key: one effect, eleven replays",
        "one arrival is applied, eleven are replayed, all with the same result",
        _all_at_once("concurrent-1", _crowd(CLIENTS), (0,) * CLIENTS),
        effects=1,
        arrivals=CLIENTS,
    ),
    _ledger(
        "in_flight_rejected",
        "A duplicate that comes while its key is being worked on is told to come again",
        "client_02 gets 409 key_in_flight while client_01's request is being worked on",
        _all_at_once("in_flight_rejected-1", _crowd(2, "keyed", "--in-flight", "reject"), (0, 10)),
        effects=1,
        arrivals=2,
    ),
    _ledger(
        "restart",
        "The receiver is stopped and started between two requests",
        "the second incarnation replays from the journal",
        _twice("restart-1", KEYED, between=(Stop("receiver"), Start(KEYED))),
        effects=1,
        arrivals=2,
    ),
    _ledger(
        "crash_before_commit",
        "The receiver dies before the record is written",
        "arrival-1 has no answer and no effect; arrival-2 is applied",
        _dies_at("crash_before_commit", KEYED, f"{EFFECT_RECORD}.before#1"),
        effects=1,
        arrivals=2,
    ),
    _ledger(
        "crash_torn",
        "The receiver dies with half of the record in the file",
        "the restart cuts the torn line; arrival-2 is applied",
        _dies_at("crash_torn", KEYED, f"{EFFECT_RECORD}.torn#1"),
        effects=1,
        arrivals=2,
    ),
    _ledger(
        "crash_after_commit",
        "The receiver dies after the record is durable and before it answers",
        "the effect is arrival-1's; arrival-2 is a replay of an answer that nobody had got",
        _dies_at("crash_after_commit", KEYED, f"{EFFECT_RECORD}.synced#1"),
        effects=1,
        arrivals=2,
    ),
    _ledger(
        "torn_prefixes",
        "Every byte prefix of the last record is recovered from",
        "prefixes.jsonl: all earlier records kept each time, and the last one exactly when all its bytes are there",
        (
            Start(KEYED),
            Run(client("torn_prefixes-1", name="client_1")),
            Run(client("torn_prefixes-2", name="client_2")),
            Stop("receiver"),
            Run(Program("prefixes", "scenarios.prefixes", ("--dir", "prefixes", "--source", "receiver/effects.jsonl"))),
        ),
        effects=2,
        arrivals=2,
    ),
    _ledger(
        "append_after_torn_tail",
        "A torn record, then appends over two restarts: nothing good is lost",
        "effects -1, -3 and -4 are there; -2 was never acknowledged, and its sender knows that it does not know",
        (
            Start(KEYED, halt_at=f"{EFFECT_RECORD}.torn#2"),
            Run(client("append_after_torn_tail-1", name="client_1")),
            Run(client("append_after_torn_tail-2", name="client_2"), exit_code=12),
            Await("receiver", exit_code=23),
            Start(KEYED),
            Run(client("append_after_torn_tail-3", name="client_3")),
            Kill("receiver"),
            Start(KEYED),
            Run(client("append_after_torn_tail-4", name="client_4")),
            Stop("receiver"),
        ),
        effects=3,
        arrivals=4,
    ),
    _ledger(
        "corrupt_record",
        "One bit of a complete record is changed: the receiver refuses to start and touches nothing",
        "incarnation 2 ends with exit code 14; the bit is flipped back and everything reads as before",
        (
            Start(KEYED),
            Run(client("corrupt_record-1", name="client_1")),
            Stop("receiver"),
            Flip("receiver/effects.jsonl", 200),
            Run(KEYED, exit_code=14),
            Flip("receiver/effects.jsonl", 200),
            Start(KEYED),
            Run(client("corrupt_record-1", name="client_2")),
            Stop("receiver"),
        ),
        effects=1,
        arrivals=2,
    ),
    _ledger(
        "registry_full",
        "A registry with one place refuses a new key and still replays the old one",
        "arrival-2 is refused with 429; arrival-3 is a replay",
        (
            Start(receiver("capacity", "--capacity", "1")),
            Run(client("registry_full-1", name="client_1")),
            Run(client("registry_full-2", name="client_2"), exit_code=10),
            Run(client("registry_full-1", name="client_3")),
            Stop("receiver"),
        ),
        effects=1,
        arrivals=3,
    ),
    Scenario(
        section="ledger",
        name="volatile_registry",
        shows="Keys in memory only, and a restart",
        look_at="arrival-2 has the key of arrival-1 and is applied again by the second incarnation",
        counterexample=True,
        steps=_twice(
            "volatile_registry-1",
            receiver("volatile-registry"),
            between=(Stop("receiver"), Start(receiver("volatile-registry"))),
        ),
        expected=Counts(effects=2, receipts=0, history=0, arrivals=2),
    ),
    Scenario(
        section="ledger",
        name="effect_then_key",
        shows="Effect first, key afterwards, and a death between the two",
        look_at="effects.jsonl has two records, keys.jsonl knows only the second",
        counterexample=True,
        steps=_dies_at("effect_then_key", receiver("effect-then-key"), "key.append.before#1"),
        expected=Counts(effects=2, receipts=0, history=0, arrivals=2),
    ),
    Scenario(
        section="ledger",
        name="key_then_effect",
        shows="Key first, effect afterwards, and a death between the two: silent loss",
        look_at="arrival-2 is answered as a replay of an effect that is not in effects.jsonl, and the sender holds a receipt",
        counterexample=True,
        steps=(
            Start(receiver("key-then-effect"), halt_at=f"{EFFECT_RECORD}.before#1"),
            Run(producer("key_then_effect-1")),
            Run(dispatcher(), exit_code=12),
            Await("receiver", exit_code=23),
            Start(receiver("key-then-effect")),
            Run(dispatcher()),
            Stop("receiver"),
        ),
        expected=Counts(effects=0, receipts=1, history=1, arrivals=2),
    ),
    Scenario(
        section="ledger",
        name="check_then_act",
        shows="Look-up and effect not held together, and two clients that both look first",
        look_at="both arrivals are logged before either answer, and both are applied",
        counterexample=True,
        steps=_all_at_once("check_then_act-1", _crowd(2, "check-then-act"), (0, 0)),
        expected=Counts(effects=2, receipts=0, history=0, arrivals=2),
    ),
)
