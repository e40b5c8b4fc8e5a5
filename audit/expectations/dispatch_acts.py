"""What must come of what people do: consumers that acknowledge, operators that send again and purge.

An acknowledgement ends a row that is pending or in flight; whoever sends it then changes nothing. An operator's retry begins at
attempt 0 again; a purge leaves the history and an event, and whoever is just sending the row sends it.
"""

from __future__ import annotations

from audit.expectations.dispatch_words import (
    AFTER_SEND,
    BEFORE_SEND,
    CHANGED_MEANWHILE,
    CLAIMED,
    REFUSED,
    consumer,
    enqueued,
    operator,
    rows,
    scan,
    zombie,
)
from audit.expectations.words import Expectation, Expected, receiver, receiver_dies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.expectations.words import Counts, Rows

WAITING = rows(pending=1, attempts=1)
DEAD, PURGED = rows(dead_letter=1, attempts=1), rows(attempts=1, events=1)
ACKED, ACKED_LATE = rows(acked=1, attempts=1), rows(acked=1, attempts=2)
BEFORE_STORING = receiver_dies(1, "effect.append.before#1")


def _sent_once(name: str, counts: Counts, end: Rows, *later: Expected) -> Expectation:
    """A send that succeeds and waits for its acknowledgement, and what follows."""
    return Expectation(name, counts, [receiver(), enqueued(), scan(), *later], exports={"after_the_send": WAITING, "end": end})


ACKNOWLEDGED = (
    _sent_once("acknowledged", (1, 1, 4, 1), ACKED, consumer(), scan(2)),
    Expectation(
        "never_acknowledged",
        (1, 3, 7, 3),
        [receiver(), enqueued(), scan(), scan(2), scan(3)],
        exports={"end": rows(dead_letter=1, attempts=3)},
    ),
    _sent_once("ack_races_resend", (1, 1, 5, 2), ACKED_LATE, scan(2, pause=BEFORE_SEND), consumer()),
    _sent_once(
        "ack_loses_to_claim",
        (1, 1, 5, 2),
        ACKED_LATE,
        consumer(code=CHANGED_MEANWHILE, pause="dispatch.ack.before#1"),
        scan(2, pause=CLAIMED),
        consumer(2),
    ),
    Expectation(
        "ack_meets_an_open_outcome",
        (1, 1, 4, 1),
        [
            receiver(),
            enqueued(),
            scan(pause="dispatch.outcome.written#1"),
            consumer(code=CHANGED_MEANWHILE, pause="dispatch.ack.before#1"),
            consumer(2),
        ],
        exports={"end": ACKED},
    ),
    Expectation(
        "ack_before_dead_letter",
        (1, 0, 3, 1),
        [receiver(), enqueued(), scan(pause=AFTER_SEND), consumer()],
        exports={"end": ACKED},
    ),
    Expectation(
        "ack_after_dead_letter",
        (1, 1, 3, 1),
        [receiver(), enqueued(), scan(), consumer(code=REFUSED)],
        exports={"end": DEAD},
    ),
    _sent_once("wrong_token", (1, 1, 3, 1), WAITING, consumer(code=REFUSED)),
    Expectation(
        "success_is_not_storage",
        (0, 1, 3, 1),
        [BEFORE_STORING, enqueued(), scan(), receiver(2), scan(2)],
        counterexample=True,
        exports={"end": rows(delivered=1, attempts=1)},
    ),
    Expectation(
        "storage_is_acknowledged",
        (1, 2, 6, 2),
        [BEFORE_STORING, enqueued(), scan(), receiver(2), scan(2), consumer()],
        exports={"end": ACKED_LATE},
    ),
)
OPERATED = (
    Expectation(
        "forced_retry",
        (1, 1, 6, 1),
        [enqueued(), scan(), operator(), receiver(), scan(2)],
        exports={"after_the_act": WAITING, "end": rows(delivered=1, attempts=2)},
    ),
    Expectation(
        "forced_retry_of_an_expired",
        (1, 1, 5, 1),
        [enqueued(), scan(), operator(), receiver(), scan(2)],
        exports={"end": rows(delivered=1, attempts=1)},
    ),
    Expectation(
        "forced_retry_refused",
        (1, 1, 3, 1),
        [receiver(), enqueued(), scan(), operator(code=REFUSED)],
        exports={"end": rows(delivered=1, attempts=1)},
    ),
    Expectation(
        "forced_retry_is_fenced",
        (2, 1, 6, 2),
        [receiver(), enqueued(), zombie(AFTER_SEND), scan(), operator(), scan(2, pause=BEFORE_SEND)],
        counterexample=True,
        exports={"after_the_late_outcome": rows(delivering=1, attempts=2), "end": rows(delivered=1, attempts=2)},
    ),
    Expectation(
        "purge_is_audited",
        (0, 0, 3, 0),
        [enqueued(), scan(), operator(), operator(2, code=CHANGED_MEANWHILE)],
        exports={"end": PURGED},
    ),
    Expectation(
        "purge_races_claim",
        (1, 0, 2, 1),
        [receiver(), enqueued(), scan(pause=BEFORE_SEND), operator()],
        exports={"end": PURGED},
    ),
    Expectation(
        "purge_frees_the_key",
        (2, 2, 6, 2),
        [receiver(), enqueued(), scan(), operator(), enqueued(2), scan(2)],
        counterexample=True,
        exports={"end": rows(delivered=1, attempts=2, events=1)},
    ),
)
SCENARIOS = (*ACKNOWLEDGED, *OPERATED)
