"""P6: operators act straight on the database, with no scheduler alive; and what happens when one is."""

from scenarios.catalogue.dispatch.parts import (
    AFTER_SEND,
    BACKED_OFF,
    BEFORE_SEND,
    CHANGED_MEANWHILE,
    DEDUP,
    ENQUEUED_AT,
    LEASE_OVER,
    ONE,
    REFUSED,
    TWO,
    enqueue,
    operator,
    scan,
    scenario,
    served,
)
from scenarios.catalogue.parts import KEYED, UNKEYED
from scenarios.model import Await, AwaitPaused, Begin, Export, Resume, Rows, Run, Step

ONCE = ("--max-attempts", "1")
DEAD = Rows(dead_letter=1, attempts=1)
LATER = BACKED_OFF
_RETRY = operator("retry", ONE, at=LATER)
_PURGE = operator("purge", ONE, at=LATER)


def _dead_letter(*options: str) -> tuple[Step, ...]:
    """One attempt, at a receiver that is not there."""
    return (Run(enqueue(*ONCE, *options)), Run(scan()))


SCENARIOS = (
    scenario(
        "forced_retry",
        "P6: an operator sends a dead letter again; no scheduler is alive then",
        "pending by the operator, attempt 0 again; the next scan delivers as attempt 1, claim 2",
        (
            *_dead_letter(),
            Run(_RETRY),
            Export("after_the_act", Rows(pending=1, attempts=1)),
            *served(KEYED, Run(scan(at=LATER))),
        ),
        counts=(1, 1, 6, 1),
        rows=Rows(delivered=1, attempts=2),
    ),
    scenario(
        "forced_retry_of_an_expired",
        "P6: an operator sends again what had expired",
        "the expiry that has passed is taken away, and the history says so; the next scan delivers",
        (
            Run(enqueue("--expires-at", str(LEASE_OVER))),
            Run(scan(at=LEASE_OVER)),
            Run(_RETRY),
            *served(KEYED, Run(scan(at=LATER))),
        ),
        counts=(1, 1, 5, 1),
        rows=Rows(delivered=1, attempts=1),
    ),
    scenario(
        "forced_retry_refused",
        "P6: an operator's retry of a dispatch that is delivered",
        "refused (exit code 2): delivered has no way out",
        served(KEYED, Run(enqueue()), Run(scan()), Run(_RETRY, exit_code=REFUSED)),
        counts=(1, 1, 3, 1),
        rows=Rows(delivered=1, attempts=1),
    ),
    scenario(
        "forced_retry_is_fenced",
        "P6: the first claimant comes back after a forced retry, with the same attempt number as the new one",
        "both are attempt 1; the claim number tells them apart, and the old outcome changes nothing",
        served(
            UNKEYED,
            Run(enqueue(*ONCE)),
            Begin(scan(name="zombie"), pause_at=AFTER_SEND),
            AwaitPaused("zombie"),
            Run(scan(at=LEASE_OVER)),
            Run(_RETRY),
            Begin(scan(at=LATER), pause_at=BEFORE_SEND),
            AwaitPaused("scheduler"),
            Resume("zombie"),
            Await("zombie", exit_code=0),
            Export("after_the_late_outcome", Rows(delivering=1, attempts=2)),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
        ),
        counts=(2, 1, 6, 2),
        rows=Rows(delivered=1, attempts=2),
        counterexample=True,
    ),
    scenario(
        "purge_is_audited",
        "P6: an operator purges a dead letter",
        "the row is gone, its history stays, and an event says who, when and what it was; the second purge finds nothing",
        (*_dead_letter(), Run(_PURGE), Run(_PURGE, exit_code=CHANGED_MEANWHILE)),
        counts=(0, 0, 3, 0),
        rows=Rows(attempts=1, events=1),
    ),
    scenario(
        "purge_races_claim",
        "P6: an operator purges a dispatch that is just being sent",
        "it is sent all the same, and its outcome finds nothing to change: an effect without a row, with history and event",
        served(
            KEYED,
            Run(enqueue()),
            Begin(scan(), pause_at=BEFORE_SEND),
            AwaitPaused("scheduler"),
            Run(operator("purge", ONE, at=ENQUEUED_AT + 1)),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
        ),
        counts=(1, 0, 2, 1),
        rows=Rows(attempts=1, events=1),
    ),
    scenario(
        "purge_frees_the_key",
        "P6: after a purge the deduplication key is free, and the same thing can be produced again",
        "two dispatches with one deduplication key, one after the other: two effects at a keyed receiver",
        served(
            KEYED,
            Run(enqueue(*DEDUP)),
            Run(scan()),
            Run(_PURGE),
            Run(enqueue(*DEDUP, ids=(TWO,), at=LATER)),
            Run(scan(at=LATER)),
        ),
        counts=(2, 2, 6, 2),
        rows=Rows(delivered=1, attempts=2, events=1),
        counterexample=True,
    ),
)
