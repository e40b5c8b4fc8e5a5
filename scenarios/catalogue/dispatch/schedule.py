"""P4: bounded retry, expiry, dead letter."""

from scenarios.catalogue.dispatch.parts import (
    AFTER_SEND,
    BACKED_OFF,
    CLAIMED,
    ENQUEUED_AT,
    LEASE_OVER,
    NOWHERE,
    THREE,
    TWO,
    dies,
    enqueue,
    scan,
    scan_by_clock,
    scenario,
    served,
)
from scenarios.catalogue.parts import KEYED
from scenarios.model import Await, AwaitPaused, Begin, Export, Resume, Rows, Run, Step, Write

# The record's ladder: min(30 * 2 ** attempt, 1800), from the first attempt on.
LADDER_SECONDS = (60, 120, 240, 480, 960, 1800, 1800)


def _ladder() -> tuple[Step, ...]:
    """A scan a second too early and one in time, for each step of the ladder."""
    at, steps = ENQUEUED_AT, [Run(scan())]
    for delay in LADDER_SECONDS:
        at += delay
        steps += [Run(scan(at=at - 1)), Run(scan(at=at))]
    return (*steps, Run(scan(at=at + LADDER_SECONDS[-1])))


EXPIRES = ("--expires-at", str(LEASE_OVER))

SCENARIOS = (
    scenario(
        "backoff_ladder",
        "P4: eight attempts at a receiver that is not there: 60, 120, 240, 480, 960, 1800, 1800 seconds, then dead letter",
        "each scan a second too early attempts nothing; after the eighth attempt nothing is due ever again",
        (Run(enqueue()), *_ladder()),
        counts=(0, 0, 17, 0),
        rows=Rows(dead_letter=1, attempts=8),
    ),
    scenario(
        "retry_succeeds",
        "P4: the first attempt fails, the receiver comes up, the second delivers",
        "the error stays in the row as history, and the attempt beside it says that it is the first one's",
        (Run(enqueue()), Run(scan()), *served(KEYED, Run(scan(at=BACKED_OFF)))),
        counts=(1, 1, 5, 1),
        rows=Rows(delivered=1, attempts=2),
    ),
    scenario(
        "expired_before_claim",
        "P4: its time is over before anybody claims it",
        "expired from pending, with no attempt and no arrival",
        served(KEYED, Run(enqueue(*EXPIRES)), Run(scan(at=LEASE_OVER))),
        counts=(0, 0, 2, 0),
        rows=Rows(expired=1),
    ),
    scenario(
        "expired_while_delivering",
        "P4: the claimant dies before it sends, and the time is over when its lease is",
        "expired from delivering: no second attempt",
        served(KEYED, Run(enqueue(*EXPIRES)), dies(scan(), CLAIMED), Run(scan(at=LEASE_OVER))),
        counts=(0, 0, 3, 0),
        rows=Rows(expired=1, attempts=1),
    ),
    scenario(
        "expired_though_applied",
        "P4: the claimant dies after the response, and the time is over when its lease is",
        "expired is what the outbox knows; the receiver has the effect all the same",
        served(KEYED, Run(enqueue(*EXPIRES)), dies(scan(), AFTER_SEND), Run(scan(at=LEASE_OVER))),
        counts=(1, 0, 3, 1),
        rows=Rows(expired=1, attempts=1),
        counterexample=True,
    ),
    scenario(
        "poison_row",
        "P4: one row that no receiver will ever take, among good ones",
        "the good ones are delivered in the first scan; the other one ends as a dead letter after its two attempts",
        served(
            KEYED,
            Run(enqueue()),
            Run(enqueue("--max-attempts", "2", ids=(TWO,), to=NOWHERE)),
            Run(enqueue(ids=(THREE,))),
            Run(scan()),
            Export("after_the_first_scan", Rows(pending=1, delivered=2, attempts=3)),
            Run(scan(at=BACKED_OFF)),
        ),
        counts=(2, 2, 11, 4),
        rows=Rows(delivered=2, dead_letter=1, attempts=4),
    ),
    scenario(
        "late_rows_of_a_slow_scan",
        "P4: in a slow scan the first send fails late, and meanwhile the second row's time is over",
        "the first is due 60 seconds after its claim, not after its failure; the second expires when it would be claimed",
        (
            Write("clock", str(ENQUEUED_AT)),
            *served(
                KEYED,
                Run(enqueue(to=NOWHERE)),
                Run(enqueue(*EXPIRES, ids=(TWO,))),
                Begin(scan_by_clock(), pause_at=AFTER_SEND),
                AwaitPaused("scheduler"),
                Write("clock", str(LEASE_OVER + 5)),
                Resume("scheduler"),
                Await("scheduler", exit_code=0),
            ),
        ),
        counts=(0, 0, 5, 1),
        rows=Rows(pending=1, expired=1, attempts=1),
    ),
)
