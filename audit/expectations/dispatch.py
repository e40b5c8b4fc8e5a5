"""What the section `dispatch` must come to: counts are effects, receipts, transitions, arrivals; and what each export holds.

Receipts are the successes that are in the books. A keyed receiver has one effect a dispatch, however often it is sent; an
unkeyed one has an effect an arrival. A row has a transition for its enqueueing, one for each claim and one for each outcome or
act that was written down. The scenarios of what fails, of the two ways to keep books, and of what people do are in modules of
their own.
"""

from __future__ import annotations

from audit.expectations import dispatch_acts, dispatch_books, dispatch_failures
from audit.expectations.dispatch_words import AFTER_SEND, BEFORE_SEND, CLAIMED, ENQUEUED, enqueued, rows, scan, zombie
from audit.expectations.words import Expectation, Expected, receiver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.expectations.words import Rows

ONCE, TWICE = rows(delivered=1, attempts=1), rows(delivered=1, attempts=2)
IN_HAND, WAITING = rows(delivering=1, attempts=1), rows(pending=1)
NOTHING = rows()


def _produced(name: str, *processes: Expected, **exports: Rows) -> Expectation:
    """One row in the end, sent once, with one effect."""
    return Expectation(name, (1, 1, 3, 1), [receiver(), *processes], exports={**exports, "end": ONCE})


PRODUCED = (
    _produced(
        "producer_dies_before_commit",
        enqueued(halted="dispatch.enqueue.written#1"), scan(), enqueued(2), scan(2),
        after_the_death=NOTHING,
    ),
    _produced("producer_dies_after_commit", enqueued(halted=ENQUEUED), scan(), after_the_death=WAITING),
    _produced("producer_repeats_after_commit", enqueued(halted=ENQUEUED), enqueued(2), scan()),
    _produced("repeated_with_key", enqueued(), enqueued(2), scan()),
    Expectation(
        "repeated_without_key",
        (2, 2, 6, 2),
        [receiver(), enqueued(), enqueued(2), scan()],
        counterexample=True,
        exports={"end": rows(delivered=2, attempts=2)},
    ),
    _produced(
        "key_is_taken_meanwhile",
        enqueued(pause="dispatch.enqueue.looked#1"), enqueued(name="other_producer"), scan(),
    ),
    _produced(
        "producers_race_for_a_key",
        enqueued(name="other_producer", pause="dispatch.enqueue.before#1"),
        enqueued(pause="dispatch.enqueue.written#1"), scan(),
    ),
)  # fmt: skip


def _twice(name: str, effects: int, *scans: Expected, **exports: Rows) -> Expectation:
    """One row that two claims sent, of which one is in the books."""
    return Expectation(
        name,
        (effects, 1, 4, 2),
        [receiver(), enqueued(), *scans],
        counterexample=effects > 1,
        exports={**exports, "end": TWICE},
    )


CLAIMS = (
    Expectation(
        "overlapping_scans",
        (1, 1, 3, 1),
        [receiver(), enqueued(), scan(pause="dispatch.claim.before#1"), scan(name="other_scheduler", pause=CLAIMED)],
        exports={"end": ONCE},
    ),
    Expectation(
        "scan_meets_an_open_claim",
        (1, 1, 3, 1),
        [receiver(), enqueued(), scan(pause="dispatch.claim.written#1"), scan(name="other_scheduler")],
        exports={"end": ONCE},
    ),
    Expectation(
        "recovered_first",
        (2, 2, 7, 2),
        [receiver(), enqueued(), scan(halted=CLAIMED), enqueued(2), scan(2)],
        exports={"end": rows(delivered=2, attempts=3)},
    ),
    Expectation(
        "claim_then_death",
        (1, 1, 4, 1),
        [receiver(), enqueued(), scan(halted=CLAIMED), scan(2), scan(3)],
        exports={"after_the_death": IN_HAND, "end": TWICE},
    ),
    _twice("death_after_response_keyed", 1, scan(halted=AFTER_SEND), scan(2), after_the_death=IN_HAND),
    _twice("death_after_response_unkeyed", 2, scan(halted=AFTER_SEND), scan(2), after_the_death=IN_HAND),
    _twice("command_keyed", 1, scan(halted=AFTER_SEND), scan(2), after_the_death=IN_HAND),
    _twice("command_unkeyed", 2, scan(halted=AFTER_SEND), scan(2), after_the_death=IN_HAND),
    _twice("zombie_keyed", 1, zombie(BEFORE_SEND), scan()),
    _twice("zombie_unkeyed", 2, zombie(BEFORE_SEND), scan()),
    _twice(
        "late_outcome_is_fenced",
        1,
        zombie(AFTER_SEND),
        scan(pause=BEFORE_SEND),
        after_the_late_outcome=rows(delivering=1, attempts=2),
    ),
)

EXPIRED = rows(expired=1, attempts=1)
SCHEDULE = (
    Expectation(
        "backoff_ladder",
        (0, 0, 17, 0),
        [enqueued(), *[scan(number) for number in range(1, 17)]],
        exports={"end": rows(dead_letter=1, attempts=8)},
    ),
    Expectation("retry_succeeds", (1, 1, 5, 1), [enqueued(), scan(), receiver(), scan(2)], exports={"end": TWICE}),
    Expectation("expired_before_claim", (0, 0, 2, 0), [receiver(), enqueued(), scan()], exports={"end": rows(expired=1)}),
    Expectation(
        "expired_while_delivering",
        (0, 0, 3, 0),
        [receiver(), enqueued(), scan(halted=CLAIMED), scan(2)],
        exports={"end": EXPIRED},
    ),
    Expectation(
        "expired_though_applied",
        (1, 0, 3, 1),
        [receiver(), enqueued(), scan(halted=AFTER_SEND), scan(2)],
        counterexample=True,
        exports={"end": EXPIRED},
    ),
    Expectation(
        "poison_row",
        (2, 2, 11, 4),
        [receiver(), enqueued(), enqueued(2), enqueued(3), scan(), scan(2)],
        exports={
            "after_the_first_scan": rows(pending=1, delivered=2, attempts=3),
            "end": rows(delivered=2, dead_letter=1, attempts=4),
        },
    ),
    Expectation(
        "late_rows_of_a_slow_scan",
        (0, 0, 5, 1),
        [receiver(), enqueued(), enqueued(2), scan(pause=AFTER_SEND)],
        exports={"end": rows(pending=1, expired=1, attempts=1)},
    ),
)
REVIVAL = (
    Expectation(
        "revival_over_restart",
        (2, 2, 6, 2),
        [receiver(), enqueued(halted=ENQUEUED), enqueued(2), scan(), enqueued(3), scan(2)],
        exports={"after_the_death": WAITING, "end": rows(delivered=2, attempts=2)},
    ),
    Expectation(
        "revival_of_another_reset",
        (4, 4, 12, 4),
        [receiver(), enqueued(), scan(), enqueued(2), scan(2)],
        exports={"end": rows(delivered=4, attempts=4)},
    ),
)

SCENARIOS = (
    *PRODUCED,
    *CLAIMS,
    *SCHEDULE,
    *dispatch_books.SCENARIOS,
    *dispatch_acts.SCENARIOS,
    *dispatch_failures.DATABASES,
    *REVIVAL,
    *dispatch_failures.POINTS,
)
