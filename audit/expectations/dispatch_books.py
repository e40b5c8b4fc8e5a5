"""What must come of the books as recorded, each a counterexample, and of the same steps with the books as mended.

Recorded, a death between the error and the status leaves an error that no transition tells of (`stale`), one between status and
due time a row that is due too early; a slow scan's late row is claimed twice, a late failure ends a newer claim, and an attempt
more is made than was allowed.
"""

from __future__ import annotations

from audit.expectations.dispatch_words import AFTER_SEND, BEFORE_SEND, enqueued, rows, scan, zombie
from audit.expectations.words import Expectation, receiver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.expectations.words import Counts, Rows

TWICE = rows(delivered=1, attempts=2)
WAITS = rows(pending=1, attempts=1)


def _death(name: str, counts: Counts, fault: str, *held: Rows) -> Expectation:
    """A failed send, a death while it is written down, and two scans: at the end of the lease, and of the backoff.

    `held`: what is there after the death, after the first of the scans, and in the end.
    """
    return Expectation(
        name,
        counts,
        [enqueued(), scan(halted=fault), receiver(), scan(2), scan(3)],
        counterexample=name.startswith("recorded_"),
        exports=dict(zip(("after_the_death", "when_the_lease_is_over", "end"), held, strict=True)),
    )


def _late_finaliser(name: str, counts: Counts, end: Rows) -> Expectation:
    return Expectation(
        name,
        counts,
        [enqueued(), zombie(AFTER_SEND), receiver(), scan(pause=AFTER_SEND), scan(2)],
        counterexample=name.startswith("recorded_"),
        exports={"end": end},
    )


def _last_attempt(name: str, counts: Counts, end: Rows) -> Expectation:
    return Expectation(
        name,
        counts,
        [receiver(), enqueued(), scan(halted=AFTER_SEND), scan(2)],
        counterexample=name.startswith("recorded_"),
        exports={"end": end},
    )


STOPPED = receiver(pause="effect.append.before#2")
SLOW = [STOPPED, enqueued(), enqueued(2), scan(pause=AFTER_SEND)]
LEFT_STALE = rows(delivered=1, attempts=2, stale=1)
SCENARIOS = (
    _death(
        "recorded_error_then_death",
        (1, 1, 4, 1),
        "recorded.error.committed#1",
        rows(delivering=1, attempts=1, stale=1),
        LEFT_STALE,
        LEFT_STALE,
    ),
    _death("mended_error_then_death", (1, 1, 4, 1), "dispatch.outcome.written#1", rows(delivering=1, attempts=1), TWICE, TWICE),
    _death(
        "recorded_status_then_death",
        (1, 1, 5, 1),
        "recorded.status.committed#1",
        rows(pending=1, attempts=1, stale=1),
        TWICE,
        TWICE,
    ),
    _death("mended_status_then_death", (1, 1, 5, 1), "dispatch.outcome.committed#1", WAITS, WAITS, TWICE),
    Expectation(
        "recorded_slow_scan",
        (3, 2, 7, 3),
        [*SLOW, scan(name="other_scheduler", pause=BEFORE_SEND)],
        counterexample=True,
        exports={"end": rows(delivered=2, attempts=3)},
    ),
    Expectation(
        "mended_slow_scan",
        (2, 2, 6, 2),
        [*SLOW, scan(name="other_scheduler")],
        exports={"end": rows(delivered=2, attempts=2)},
    ),
    _late_finaliser("recorded_late_finaliser", (2, 1, 6, 2), rows(delivered=1, attempts=3)),
    _late_finaliser("mended_late_finaliser", (1, 1, 4, 1), TWICE),
    _last_attempt("recorded_last_attempt", (2, 1, 4, 2), TWICE),
    _last_attempt("mended_last_attempt", (1, 0, 3, 1), rows(dead_letter=1, attempts=1)),
)
