"""Section delivery: the five scenarios that name the study.

The dispatcher dies between the response and the receipt, the one window that no local durability closes. What the receiver
then counts depends on the receiver alone.
"""

from scenarios.catalogue.parts import client, dispatcher, producer, receiver
from scenarios.model import Check, Counts, Kill, Run, Scenario, Start, Stop

INTRODUCTION = (
    "A dispatcher sends an intention, gets the response and dies before it can write the receipt. Recovery sends again, with "
    "the same key and the same bytes. Whether that applies the operation twice is decided at the receiver."
)

QUESTION = '{"question":"What does the counter say?"}'
OTHER_QUESTION = '{"question":"What did the counter say before?"}'
AFTER_THE_RESPONSE = "send.response#1"
KEYED = receiver("keyed")
UNKEYED = receiver("unkeyed")

SCENARIOS = (
    Scenario(
        section="delivery",
        name="keyed_delivery",
        shows="Keyed receiver, delivery crash and recovery",
        steps=(
            Start(KEYED),
            Run(producer("keyed_delivery-1", QUESTION)),
            Run(dispatcher(), halt_at=AFTER_THE_RESPONSE, exit_code=23),
            Run(dispatcher()),
            Stop("receiver"),
        ),
        expected=Counts(effects=1, receipts=1, history=1, arrivals=2),
    ),
    Scenario(
        section="delivery",
        name="unkeyed_delivery",
        shows="Unkeyed receiver, identical crash and recovery",
        counterexample=True,
        steps=(
            Start(UNKEYED),
            Run(producer("unkeyed_delivery-1", QUESTION)),
            Run(dispatcher(), halt_at=AFTER_THE_RESPONSE, exit_code=23),
            Run(dispatcher()),
            Stop("receiver"),
        ),
        expected=Counts(effects=2, receipts=1, history=1, arrivals=2),
    ),
    Scenario(
        section="delivery",
        name="keyed_receiver_restart",
        shows="Keyed receiver is killed and restarted as well",
        steps=(
            Start(KEYED),
            Run(producer("keyed_receiver_restart-1", QUESTION)),
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
        steps=(
            Start(KEYED),
            Stop("receiver"),
            Run(producer("receiver_unavailable-1", QUESTION)),
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
        steps=(
            Start(KEYED),
            Run(client("key_conflict-1", OTHER_QUESTION)),
            Run(producer("key_conflict-1", QUESTION)),
            Run(dispatcher(), exit_code=11),
            Stop("receiver"),
        ),
        expected=Counts(effects=1, receipts=0, history=0, arrivals=2),
    ),
)
