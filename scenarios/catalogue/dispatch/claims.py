"""P3: one claimant for each attempt, the lease, and the windows around a send."""

from scenarios.catalogue.dispatch.parts import (
    AFTER_SEND,
    BEFORE_SEND,
    BY_COMMAND,
    CLAIMED,
    LEASE_OVER,
    TWO,
    dies,
    enqueue,
    scan,
    scan_by_command,
    scenario,
    served,
)
from scenarios.catalogue.parts import KEYED, UNKEYED
from scenarios.model import POSTGRES, Await, AwaitPaused, Begin, Export, Program, Resume, Rows, Run, Scenario, Step

IN_HAND = Rows(delivering=1, attempts=1)
DELIVERED = Rows(delivered=1, attempts=1)
TWICE = Rows(delivered=1, attempts=2)


def _died_after_response(receiver: Program, effects: int, *, by_command: bool = False) -> Scenario:
    word = "keyed" if effects == 1 else "unkeyed"
    produced = enqueue(to=BY_COMMAND) if by_command else enqueue()
    scans = scan_by_command if by_command else scan
    return scenario(
        f"{'command' if by_command else 'death_after_response'}_{word}",
        f"P3: death between the response and its outcome, {word} receiver" + (", by a notify command" if by_command else ""),
        "two arrivals of one id, as attempt 1 and 2; what they come to is the receiver's affair",
        served(
            receiver,
            Run(produced),
            dies(scans(), AFTER_SEND),
            Export("after_the_death", IN_HAND),
            Run(scans(at=LEASE_OVER)),
        ),
        counts=(effects, 1, 4, 2),
        rows=TWICE,
        counterexample=effects > 1,
    )


def _zombie(name: str, receiver: Program, effects: int, shows: str, look_at: str) -> Scenario:
    """A claimant that is stopped past its lease, and goes on after another has delivered."""
    return scenario(
        name,
        f"P3: {shows}",
        look_at,
        served(
            receiver,
            Run(enqueue()),
            Begin(scan(name="zombie"), pause_at=BEFORE_SEND),
            AwaitPaused("zombie"),
            Run(scan(at=LEASE_OVER)),
            Resume("zombie"),
            Await("zombie", exit_code=0),
        ),
        counts=(effects, 1, 4, 2),
        rows=TWICE,
        counterexample=effects > 1,
    )


def _overlapping(*steps: Step) -> tuple[Step, ...]:
    return served(KEYED, Run(enqueue()), *steps)


SCENARIOS = (
    scenario(
        "overlapping_scans",
        "P3: two scans overlap; the row is claimed by one of them",
        "the scan that was there first finds nothing to do, and says so: it attempted 0",
        _overlapping(
            Begin(scan(), pause_at="dispatch.claim.before#1"),
            AwaitPaused("scheduler"),
            Begin(scan(name="other_scheduler"), pause_at=CLAIMED),
            AwaitPaused("other_scheduler"),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
            Resume("other_scheduler"),
            Await("other_scheduler", exit_code=0),
        ),
        counts=(1, 1, 3, 1),
        rows=DELIVERED,
    ),
    scenario(
        "scan_meets_an_open_claim",
        "P3: a scan comes while another one's claim is written and not committed",
        "it passes over the row that is locked, and says so: it attempted 0",
        _overlapping(
            Begin(scan(), pause_at="dispatch.claim.written#1"),
            AwaitPaused("scheduler"),
            Run(scan(name="other_scheduler")),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
        ),
        counts=(1, 1, 3, 1),
        rows=DELIVERED,
        store=POSTGRES,
    ),
    scenario(
        "recovered_first",
        "P3: what a dead claimant left is claimed before what is pending, though it is due later",
        "the first effect is that of the dispatch that was in flight",
        _overlapping(
            dies(scan(), CLAIMED),
            Run(enqueue(ids=(TWO,), at=LEASE_OVER - 5)),
            Run(scan(at=LEASE_OVER)),
        ),
        counts=(2, 2, 7, 2),
        rows=Rows(delivered=2, attempts=3),
    ),
    scenario(
        "claim_then_death",
        "P3: the claimant dies before it sends; the row is recovered when the lease is over",
        "one second before the end of the lease nothing is due; at its end attempt 2 delivers",
        _overlapping(
            dies(scan(), CLAIMED),
            Export("after_the_death", IN_HAND),
            Run(scan(at=LEASE_OVER - 1)),
            Run(scan(at=LEASE_OVER)),
        ),
        counts=(1, 1, 4, 1),
        rows=TWICE,
    ),
    _died_after_response(KEYED, 1),
    _died_after_response(UNKEYED, 2),
    _died_after_response(KEYED, 1, by_command=True),
    _died_after_response(UNKEYED, 2, by_command=True),
    _zombie(
        "zombie_keyed",
        KEYED,
        1,
        "a claimant is stopped past its lease, another delivers, and the first goes on; keyed receiver",
        "the zombie sends too (it cannot know), is answered with a replay, and its outcome changes nothing: superseded 1",
    ),
    _zombie(
        "zombie_unkeyed",
        UNKEYED,
        2,
        "the same with an unkeyed receiver: a fence guards the outbox's books, not the receiver's",
        "two effects of one id, though only one outcome is in the books",
    ),
    scenario(
        "late_outcome_is_fenced",
        "P3: a late outcome comes while a newer claim is being sent",
        "the zombie's outcome of attempt 1 changes nothing (superseded 1); attempt 2 ends its own claim",
        _overlapping(
            Begin(scan(name="zombie"), pause_at=AFTER_SEND),
            AwaitPaused("zombie"),
            Begin(scan(at=LEASE_OVER), pause_at=BEFORE_SEND),
            AwaitPaused("scheduler"),
            Resume("zombie"),
            Await("zombie", exit_code=0),
            Export("after_the_late_outcome", Rows(delivering=1, attempts=2)),
            Resume("scheduler"),
            Await("scheduler", exit_code=0),
        ),
        counts=(1, 1, 4, 2),
        rows=TWICE,
    ),
)
