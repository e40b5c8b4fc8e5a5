"""What the section `identity` must come to: counts are effects, receipts, history records, arrivals.

Two effects where the key changes or is forgotten, a conflict where the bytes change, a receipt for nothing where the receipt is
written first; and, within the retention, one of each.
"""

from __future__ import annotations

from audit.expectations.words import Expectation, Expected, dispatcher, halted, producer, receiver


def recovered(fault: str, code: int = 0) -> list[Expected]:
    """One intention, a dispatcher that dies, and one that goes on."""
    return [receiver(), producer(), halted(1, fault), dispatcher(2, code=code)]


SENT = "send.response#1"
SCENARIOS = (
    Expectation("key_per_attempt", (2, 1, 1, 2), recovered(SENT), counterexample=True),
    Expectation("body_changed_on_retry", (1, 0, 0, 2), recovered(SENT, code=11), counterexample=True),
    Expectation("mark_before_send", (0, 1, 0, 0), recovered("send.before#1"), counterexample=True),
    Expectation("retention_too_short", (2, 1, 1, 2), recovered(SENT), counterexample=True),
    Expectation("retention_long_enough", (1, 1, 1, 2), recovered(SENT)),
    Expectation(
        "receiver_lost_journal",
        (2, 1, 1, 2),
        [receiver(), producer(), halted(1, SENT), receiver(2), dispatcher(2)],
        counterexample=True,
    ),
)
