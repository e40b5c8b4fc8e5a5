"""What the section `history` must come to: counts are effects, receipts, history records, arrivals.

With a receipt on disk nothing is sent again: one arrival an intention, wherever the dispatcher died behind it.
"""

from __future__ import annotations

from audit.expectations.words import LOCKED_OUT, Expectation, Expected, client, dispatcher, halted, producer, receiver


def recovered(fault: str) -> list[Expected]:
    """One intention, a dispatcher that dies, and one that recovers."""
    return [receiver(), producer(), halted(1, fault), dispatcher(2)]


ONCE = (1, 1, 1, 1)
SCENARIOS = (
    Expectation("crash_after_receipt", ONCE, recovered("receipt.append.synced#1")),
    Expectation("torn_history", ONCE, recovered("history.append.torn#1")),
    Expectation("crash_after_history", ONCE, recovered("history.append.synced#1")),
    Expectation(
        "recovery_is_idempotent",
        ONCE,
        [*recovered("receipt.append.synced#1"), dispatcher(3), dispatcher(4)],
        checks={"after_first_recovery": ONCE},
    ),
    Expectation(
        "two_dispatchers",
        ONCE,
        [
            receiver(),
            producer(),
            Expected("dispatcher_1", 1, "outbox.dispatcher", pause="send.before#1"),
            Expected("dispatcher_2", 1, "outbox.dispatcher", code=LOCKED_OUT),
        ],
    ),
    Expectation("lock_after_crash", ONCE, recovered("send.before#1")),
    Expectation(
        "head_of_line",
        (2, 2, 2, 2),
        [receiver(pause="effect.append.before#1"), producer(), producer(2), dispatcher()],
        checks={"while_the_first_is_slow": (0, 0, 0, 1)},
    ),
    Expectation(
        "shared_receiver",
        (2, 1, 1, 3),
        [receiver(), producer(), halted(1, "send.response#1"), client(), dispatcher(2)],
    ),
)
