"""Section delivery: the five scenarios that name the study.

The dispatcher dies between the response and the receipt, the one window that no local durability closes. What the receiver
then counts depends on the receiver alone.
"""

from scenarios.catalogue.parts import (
    AFTER_THE_RESPONSE,
    KEYED,
    OTHER_QUESTION,
    UNKEYED,
    client,
    crash_and_recovery,
    dispatcher,
    producer,
)
from scenarios.model import Check, Counts, Kill, Run, Scenario, Start, Stop

INTRODUCTION = (
    "A dispatcher sends an intention, gets the response and dies before it can write the receipt. Recovery sends again, with "
    "the same key and the same bytes. Whether that applies the operation twice is decided at the receiver."
)

SCENARIOS = (
    Scenario(
        section="delivery",
        name="keyed_delivery",
        shows="Keyed receiver, delivery crash and recovery",
        look_at="arrival-2 is answered as a replay: one effect, the same result twice",
        steps=crash_and_recovery("keyed_delivery-1", KEYED),
        expected=Counts(effects=1, receipts=1, history=1, arrivals=2),
    ),
    Scenario(
        section="delivery",
        name="unkeyed_delivery",
        shows="Unkeyed receiver, identical crash and recovery",
        look_at="effects.jsonl has two records, receipts.jsonl one: local history says one turn, the receiver did two",
        counterexample=True,
        steps=crash_and_recovery("unkeyed_delivery-1", UNKEYED),
        expected=Counts(effects=2, receipts=1, history=1, arrivals=2),
    ),
    Scenario(
        section="delivery",
        name="keyed_receiver_restart",
        shows="Keyed receiver is killed and restarted as well",
        look_at="the second incarnation of the receiver replays what the first one applied",
        steps=(
            Start(KEYED),
            Run(producer("keyed_receiver_restart-1")),
            Run(dispatcher(), halt_at=AFTER_THE_RESPONSE, exit_code=23),
            Kill("receiver"),
            Start(KEYED),
            Run(dispatcher()),
            Stop("receiver"),
        ),
        expected=Counts(effects=1, receipts=1, history=1, arrivals=2),
    ),
    Scenario(
        section="delivery",
        name="receiver_unavailable",
        shows="Receiver unavailable, then restored",
        look_at="attempt 1 ends with connection_refused and no arrival; the checkpoint holds neither receipt nor history",
        steps=(
            Start(KEYED),
            Stop("receiver"),
            Run(producer("receiver_unavailable-1")),
            Run(dispatcher(), exit_code=10),
            Check("after_refusal", Counts(effects=0, receipts=0, history=0, arrivals=0)),
            Start(KEYED),
            Run(dispatcher()),
            Stop("receiver"),
        ),
        expected=Counts(effects=1, receipts=1, history=1, arrivals=1),
    ),
    Scenario(
        section="delivery",
        name="key_conflict",
        shows="Receiver already holds the key with another body",
        look_at="the outcome of attempt 1 is a conflict, 409: no receipt, and no answer is made up",
        steps=(
            Start(KEYED),
            Run(client("key_conflict-1", OTHER_QUESTION)),
            Run(producer("key_conflict-1")),
            Run(dispatcher(), exit_code=11),
            Stop("receiver"),
        ),
        expected=Counts(effects=1, receipts=0, history=0, arrivals=2),
    ),
)
