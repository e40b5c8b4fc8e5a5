"""What the section `delivery` must come to: counts are effects, receipts, history records, arrivals."""

from __future__ import annotations

from audit.expectations.words import Expectation, client, dispatcher, halted, producer, receiver

RESPONSE_IN_HAND = "send.response#1"

SCENARIOS = (
    Expectation("keyed_delivery", (1, 1, 1, 2), [receiver(), producer(), halted(1, RESPONSE_IN_HAND), dispatcher(2)]),
    Expectation(
        "unkeyed_delivery",
        (2, 1, 1, 2),
        [receiver(), producer(), halted(1, RESPONSE_IN_HAND), dispatcher(2)],
        counterexample=True,
    ),
    Expectation(
        "keyed_receiver_restart",
        (1, 1, 1, 2),
        [receiver(killed=True), producer(), halted(1, RESPONSE_IN_HAND), receiver(2), dispatcher(2)],
    ),
    Expectation(
        "receiver_unavailable",
        (1, 1, 1, 1),
        [receiver(), producer(), dispatcher(code=10), receiver(2), dispatcher(2)],
        checks={"after_refusal": (0, 0, 0, 0)},
    ),
    Expectation("key_conflict", (1, 0, 0, 2), [receiver(), client(), producer(), dispatcher(code=11)]),
)
