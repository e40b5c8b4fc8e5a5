"""What the section `ledger` must come to: counts are effects, receipts, history records, arrivals.

Bare clients write no receipts and no history. A keyed receiver has one effect a key whatever dies; each counterexample has
one too many, or, where the key was written first, one too few and a receipt for it.
"""

from __future__ import annotations

from audit.expectations.words import (
    CUT_OFF,
    DAMAGED,
    Expectation,
    Expected,
    client,
    dispatcher,
    producer,
    receiver,
    receiver_dies,
)

ONE, TWO = client("client_1"), client("client_2")
LOST = client("client_1", code=CUT_OFF)


def died(fault: str) -> list[Expected]:
    """The first client's request kills the receiver; the second one, after the restart, is served."""
    return [receiver_dies(1, fault), LOST, receiver(2), TWO]


SCENARIOS = (
    Expectation("replay", (1, 0, 0, 2), [receiver(), ONE, TWO]),
    Expectation("conflict", (1, 0, 0, 2), [receiver(), ONE, client("client_2", code=11)]),
    Expectation("conflict_422", (1, 0, 0, 2), [receiver(), ONE, client("client_2", code=11)]),
    Expectation("concurrent", (1, 0, 0, 12), [receiver(), *[client(f"client_{number:02}") for number in range(1, 13)]]),
    Expectation("in_flight_rejected", (1, 0, 0, 2), [receiver(), client("client_01"), client("client_02", code=10)]),
    Expectation("restart", (1, 0, 0, 2), [receiver(), ONE, receiver(2), TWO]),
    Expectation("crash_before_commit", (1, 0, 0, 2), died("effect.append.before#1")),
    Expectation("crash_torn", (1, 0, 0, 2), died("effect.append.torn#1")),
    Expectation("crash_after_commit", (1, 0, 0, 2), died("effect.append.synced#1")),
    Expectation("torn_prefixes", (2, 0, 0, 2), [receiver(), ONE, TWO, Expected("prefixes", 1, "scenarios.prefixes")]),
    Expectation(
        "append_after_torn_tail",
        (3, 0, 0, 4),
        [
            receiver_dies(1, "effect.append.torn#2"), ONE, client("client_2", code=CUT_OFF), receiver(2, killed=True),
            client("client_3"), receiver(3), client("client_4"),
        ],
    ),
    Expectation(
        "corrupt_record",
        (1, 0, 0, 2),
        [receiver(), ONE, Expected("receiver", 2, "receivers", code=DAMAGED), receiver(3), TWO],
    ),
    Expectation("registry_full", (1, 0, 0, 3), [receiver(), ONE, client("client_2", code=10), client("client_3")]),
    Expectation("volatile_registry", (2, 0, 0, 2), [receiver(), ONE, receiver(2), TWO], counterexample=True),
    Expectation("effect_then_key", (2, 0, 0, 2), died("key.append.before#1"), counterexample=True),
    Expectation(
        "key_then_effect",
        (0, 1, 1, 2),
        [receiver_dies(1, "effect.append.before#1"), producer(), dispatcher(code=CUT_OFF), receiver(2), dispatcher(2)],
        counterexample=True,
    ),
    Expectation("check_then_act", (2, 0, 0, 2), [receiver(), client("client_01"), client("client_02")], counterexample=True),
)  # fmt: skip
