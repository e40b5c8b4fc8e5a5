"""The books as recorded against the books as mended: the same steps, the same death, another outcome.

Each `recorded_…` scenario runs the variant (`scenarios.dispatch.recorded`) and is a counterexample; the `mended_…` one beside
it runs the default.
"""

from scenarios.catalogue.dispatch.parts import (
    AFTER_SEND,
    BACKED_OFF,
    BEFORE_SEND,
    ENQUEUED_AT,
    LEASE_OVER,
    RECORDED,
    TWO,
    dies,
    enqueue,
    scan,
    scan_by_clock,
    scenario,
    served,
)
from scenarios.catalogue.parts import KEYED, UNKEYED
from scenarios.dispatch import recorded as _recorded
from scenarios.model import Await, AwaitPaused, Begin, Export, Resume, Rows, Run, Start, Step, Stop, Write

PROGRAMS = (_recorded,)  # imported for its declarations
DELIVERED_BY_SECOND = Rows(delivered=1, attempts=2)
# Past the lease of a scan that began when the rows were enqueued.
SLOW = LEASE_OVER + 5
MENDED: tuple[str, ...] = ()


def _failure_then_death(books: tuple[str, ...], point: str, left: Rows, at_lease: Rows) -> tuple[Step, ...]:
    """A send fails, the scheduler dies while it writes that down, and the receiver is up when the lease is over."""
    return (
        Run(enqueue()),
        dies(scan(*books), point),
        Export("after_the_death", left),
        *served(
            KEYED,
            Run(scan(*books, at=LEASE_OVER)),
            Export("when_the_lease_is_over", at_lease),
            Run(scan(*books, at=BACKED_OFF)),
        ),
    )


def _slow_scan(books: tuple[str, ...], *meanwhile: Step) -> tuple[Step, ...]:
    """The first send lasts longer than a lease; while the second row is being sent another scan looks for work."""
    return (
        Write("clock", str(ENQUEUED_AT)),
        Start(UNKEYED, pause_at="effect.append.before#2"),
        Run(enqueue()),
        Run(enqueue(ids=(TWO,))),
        Begin(scan_by_clock(*books), pause_at=AFTER_SEND),
        AwaitPaused("scheduler"),
        Write("clock", str(SLOW)),
        Resume("scheduler"),
        AwaitPaused("receiver"),
        *meanwhile,
        Stop("receiver"),
    )


def _late_finaliser(books: tuple[str, ...]) -> tuple[Step, ...]:
    """Attempt 1 fails and its claimant is stopped; attempt 2 succeeds; the failure is written down before the success is."""
    return (
        Run(enqueue()),
        Begin(scan(*books, name="zombie"), pause_at=AFTER_SEND),
        AwaitPaused("zombie"),
        *served(
            UNKEYED,
            Begin(scan(*books, at=LEASE_OVER), pause_at=AFTER_SEND),
            AwaitPaused("scheduler"),
            Resume("zombie"),
            Await("zombie", exit_code=0),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
            Run(scan(*books, at=LEASE_OVER + 120)),
        ),
    )


def _last_attempt(books: tuple[str, ...]) -> tuple[Step, ...]:
    """One attempt is allowed; its claimant dies with the response in hand."""
    return served(
        UNKEYED,
        Run(enqueue("--max-attempts", "1")),
        dies(scan(*books), AFTER_SEND),
        Run(scan(*books, at=LEASE_OVER)),
    )


_OTHER = scan(at=SLOW, name="other_scheduler")
_OTHER_RECORDED = scan(*RECORDED, at=SLOW, name="other_scheduler")

SCENARIOS = (
    scenario(
        "recorded_error_then_death",
        "As recorded: death between the error and the status",
        "export `after_the_death`: the row is in flight and has an error that no transition tells of",
        _failure_then_death(
            RECORDED,
            "recorded.error.committed#1",
            Rows(delivering=1, attempts=1, stale=1),
            Rows(delivered=1, attempts=2, stale=1),
        ),
        counts=(1, 1, 4, 1),
        rows=Rows(delivered=1, attempts=2, stale=1),
        counterexample=True,
    ),
    scenario(
        "mended_error_then_death",
        "As mended: death in the one transaction that writes error, status and due time",
        "export `after_the_death`: nothing of the outcome is there, neither the error nor the status",
        _failure_then_death(MENDED, "dispatch.outcome.written#1", Rows(delivering=1, attempts=1), DELIVERED_BY_SECOND),
        counts=(1, 1, 4, 1),
        rows=DELIVERED_BY_SECOND,
    ),
    scenario(
        "recorded_status_then_death",
        "As recorded: death between the status and the due time",
        "the row is due after the 15 seconds of the lease, and is sent again then, instead of after its 60",
        _failure_then_death(RECORDED, "recorded.status.committed#1", Rows(pending=1, attempts=1, stale=1), DELIVERED_BY_SECOND),
        counts=(1, 1, 5, 1),
        rows=DELIVERED_BY_SECOND,
        counterexample=True,
    ),
    scenario(
        "mended_status_then_death",
        "As mended: death after the transaction that writes status and due time",
        "nothing is due when the lease is over; the second attempt comes after the 60 seconds",
        _failure_then_death(MENDED, "dispatch.outcome.committed#1", Rows(pending=1, attempts=1), Rows(pending=1, attempts=1)),
        counts=(1, 1, 5, 1),
        rows=DELIVERED_BY_SECOND,
    ),
    scenario(
        "recorded_slow_scan",
        "As recorded: the late row of a slow scan is claimed with a lease that is spent already",
        "another scan claims the second row while it is being sent: two effects of one dispatch",
        _slow_scan(
            RECORDED,
            Begin(_OTHER_RECORDED, pause_at=BEFORE_SEND),
            AwaitPaused("other_scheduler"),
            Resume("receiver"),
            Await("scheduler", exit_code=0),
            Resume("other_scheduler"),
            Await("other_scheduler", exit_code=0),
        ),
        counts=(3, 2, 7, 3),
        rows=Rows(delivered=2, attempts=3),
        counterexample=True,
    ),
    scenario(
        "mended_slow_scan",
        "As mended: each row of a slow scan has a whole lease from its own claim",
        "the other scan finds nothing due (attempted 0): one effect of each dispatch",
        _slow_scan(MENDED, Run(_OTHER), Resume("receiver"), Await("scheduler", exit_code=0)),
        counts=(2, 2, 6, 2),
        rows=Rows(delivered=2, attempts=2),
    ),
    scenario(
        "recorded_late_finaliser",
        "As recorded: a late failure ends a newer claim, whose success is then refused",
        "the success of attempt 2 is in no book, so attempt 3 is made: two effects",
        _late_finaliser(RECORDED),
        counts=(2, 1, 6, 2),
        rows=Rows(delivered=1, attempts=3),
        counterexample=True,
    ),
    scenario(
        "mended_late_finaliser",
        "As mended: the late failure belongs to attempt 1 and changes nothing of attempt 2",
        "the zombie says superseded 1; the success of attempt 2 is recorded: one effect",
        _late_finaliser(MENDED),
        counts=(1, 1, 4, 1),
        rows=DELIVERED_BY_SECOND,
    ),
    scenario(
        "recorded_last_attempt",
        "As recorded: the claimant of the last attempt dies, and the row is sent once more than was allowed",
        "attempt 2 of 1: two effects",
        _last_attempt(RECORDED),
        counts=(2, 1, 4, 2),
        rows=DELIVERED_BY_SECOND,
        counterexample=True,
    ),
    scenario(
        "mended_last_attempt",
        "As mended: the claimant of the last attempt dies; what became of it is not known",
        "a dead letter that says so: sending again would be one attempt more than was allowed",
        _last_attempt(MENDED),
        counts=(1, 0, 3, 1),
        rows=Rows(dead_letter=1, attempts=1),
    ),
)
