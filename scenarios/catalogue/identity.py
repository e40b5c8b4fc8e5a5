"""Section identity: what happens to deduplication when the key, the body or the memory of them does not last."""

from scenarios.catalogue.parts import AFTER_THE_RESPONSE, KEYED, crash_and_recovery, dispatcher, producer, receiver
from scenarios.model import Counts, Move, Run, Scenario, Start, Step, Stop, Write

INTRODUCTION = (
    "Identity must cross the network unchanged: the same key, the same bytes, and a receiver that still remembers them. "
    "Each scenario breaks one of these. Retention is part of the agreement: a key that is forgotten before the sender gives "
    "up is no key."
)

TWO_MEMBERS = '{"question":"What does the counter say?","asked_by":"a student"}'
FORGETFUL = receiver("forgetful", "--retention-seconds", "60", "--clock", "clock")


def _retried_after(key: str, seconds: int) -> tuple[Step, ...]:
    return (
        Write("clock", "0"),
        Start(FORGETFUL),
        Run(producer(key)),
        Run(dispatcher(), halt_at=AFTER_THE_RESPONSE, exit_code=23),
        Write("clock", str(seconds)),
        Run(dispatcher()),
        Stop("receiver"),
    )


SCENARIOS = (
    Scenario(
        section="identity",
        name="key_per_attempt",
        shows="A fresh key for every attempt",
        look_at="the two arrivals carry two keys; the keyed receiver rightly applies both",
        counterexample=True,
        steps=crash_and_recovery("key_per_attempt-1", KEYED, options=("--policy", "key-per-attempt")),
        expected=Counts(effects=2, receipts=1, history=1, arrivals=2),
    ),
    Scenario(
        section="identity",
        name="body_changed_on_retry",
        shows="The body is serialised again for the retry, its members in another order",
        look_at="attempt 2 has another fingerprint under the same key and ends as a conflict: its result stays unknown",
        counterexample=True,
        steps=(
            Start(KEYED),
            Run(producer("body_changed_on_retry-1", TWO_MEMBERS)),
            Run(dispatcher("--policy", "rebuild-body-per-attempt"), halt_at=AFTER_THE_RESPONSE, exit_code=23),
            Run(dispatcher("--policy", "rebuild-body-per-attempt"), exit_code=11),
            Stop("receiver"),
        ),
        expected=Counts(effects=1, receipts=0, history=0, arrivals=2),
    ),
    Scenario(
        section="identity",
        name="mark_before_send",
        shows="The receipt is written before the send, and the dispatcher dies in between",
        look_at="receipts.jsonl says sent, arrivals.jsonl is empty, and recovery finds nothing to do: silent loss",
        counterexample=True,
        steps=crash_and_recovery(
            "mark_before_send-1", KEYED, halt_at="send.before#1", options=("--policy", "mark-before-send")
        ),
        expected=Counts(effects=0, receipts=1, history=0, arrivals=0),
    ),
    Scenario(
        section="identity",
        name="retention_too_short",
        shows="The receiver forgets the key after a minute, the retry comes after two hours",
        look_at="both effects have the same key; the second is 7200 seconds younger",
        counterexample=True,
        steps=_retried_after("retention_too_short-1", 7200),
        expected=Counts(effects=2, receipts=1, history=1, arrivals=2),
    ),
    Scenario(
        section="identity",
        name="retention_long_enough",
        shows="The retry comes within the receiver's retention",
        look_at="the same receiver, 59 seconds later: a replay",
        steps=_retried_after("retention_long_enough-1", 59),
        expected=Counts(effects=1, receipts=1, history=1, arrivals=2),
    ),
    Scenario(
        section="identity",
        name="receiver_lost_journal",
        shows="The receiver loses its journal between the attempts",
        look_at="lost_receiver/ and receiver/ hold one effect each, under the same key",
        counterexample=True,
        steps=(
            Start(KEYED),
            Run(producer("receiver_lost_journal-1")),
            Run(dispatcher(), halt_at=AFTER_THE_RESPONSE, exit_code=23),
            Stop("receiver"),
            Move("receiver", "lost_receiver"),
            Start(KEYED),
            Run(dispatcher()),
            Stop("receiver"),
        ),
        expected=Counts(effects=2, receipts=1, history=1, arrivals=2),
    ),
)
