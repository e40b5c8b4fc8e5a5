"""What the section `unknown` must come to: counts are effects, receipts, history records, arrivals.

Whoever asks has one effect; what nobody can say stays without a receipt; whoever sends blindly has two.
"""

from __future__ import annotations

from audit.expectations.words import CUT_OFF, Expectation, Expected, dispatcher, halted, producer, receiver


def recovered(fault: str, code: int = 0) -> list[Expected]:
    """One intention, a dispatcher that dies, and one that goes on."""
    return [receiver(), producer(), halted(1, fault), dispatcher(2, code=code)]


SENT = "send.response#1"
SCENARIOS = (
    Expectation("unknown_applied", (1, 1, 1, 1), recovered(SENT)),
    Expectation("unknown_not_applied", (1, 1, 1, 1), recovered("send.before#1")),
    Expectation("unknown_unanswerable", (1, 0, 0, 1), recovered(SENT, code=CUT_OFF)),
    Expectation("unknown_resent_blindly", (2, 1, 1, 2), recovered(SENT), counterexample=True),
)
