"""The database itself fails: its server is killed, or its disk takes no more."""

from scenarios.catalogue.dispatch.parts import (
    LEASE_OVER,
    MACHINE_REFUSED,
    enqueue,
    scan,
    scenario,
    served,
)
from scenarios.catalogue.parts import KEYED
from scenarios.model import (
    POSTGRES,
    SQLITE,
    Await,
    AwaitPaused,
    Begin,
    Export,
    KillDatabase,
    LimitFiles,
    Program,
    Resume,
    Rows,
    Run,
    Scenario,
    StartDatabase,
    Step,
)

DELIVERED = Rows(delivered=1, attempts=1)
TWICE = Rows(delivered=1, attempts=2)
PENDING = Rows(pending=1)
IN_HAND = Rows(delivering=1, attempts=1)


def _interrupted(program: Program, pause_at: str, *failure: Step) -> tuple[Step, ...]:
    """The program is stopped at the point, its database fails, and it goes on."""
    return (
        Begin(program, pause_at=pause_at),
        AwaitPaused(program.process),
        *failure,
        Resume(program.process),
        Await(program.process, exit_code=MACHINE_REFUSED),
    )


def _server_dies(name: str, point: str, shows: str, left: Rows, attempts: int) -> Scenario:
    return scenario(
        name,
        f"The database server is killed {shows}",
        "what was committed before the kill is there after the restart, and nothing else; the scheduler ended with 16",
        served(
            KEYED,
            Run(enqueue()),
            *_interrupted(scan(), point, KillDatabase()),
            StartDatabase(),
            Export("after_the_restart", left),
            Run(scan(at=LEASE_OVER)),
        ),
        counts=(1, 1, 2 + attempts, attempts),
        rows=Rows(delivered=1, attempts=attempts),
        store=POSTGRES,
    )


def _disk_full(
    name: str, program: Program, point: str, shows: str, left: Rows, *, before: tuple[Step, ...], ending: Rows
) -> Scenario:
    sent = point.startswith("dispatch.outcome")
    return scenario(
        name,
        f"The disk takes no more {shows}",
        "the process says so and ends with 16; with room again the same work goes on",
        served(
            KEYED,
            *before,
            *_interrupted(program, point, LimitFiles(program.process, 0)),
            Export("while_the_disk_was_full", left),
            *(() if before else (Run(program),)),
            Run(scan(at=LEASE_OVER)),
        ),
        counts=(1, 1, 2 + ending.attempts, 2 if sent else 1),
        rows=ending,
        store=SQLITE,
    )


SCENARIOS = (
    _server_dies("server_dies_in_claim", "dispatch.claim.written#1", "before the claim commits", PENDING, 1),
    _server_dies("server_dies_after_claim", "dispatch.claim.committed#1", "when the claim is committed", IN_HAND, 2),
    _server_dies("server_dies_in_outcome", "dispatch.outcome.written#1", "before the outcome commits", IN_HAND, 2),
    _disk_full(
        "disk_full_at_enqueue",
        enqueue(),
        "dispatch.enqueue.before#1",
        "when the producer enqueues",
        Rows(),
        before=(),
        ending=DELIVERED,
    ),
    _disk_full(
        "disk_full_at_claim",
        scan(),
        "dispatch.claim.before#1",
        "when the scheduler claims: nothing is sent that is not claimed",
        PENDING,
        before=(Run(enqueue()),),
        ending=DELIVERED,
    ),
    _disk_full(
        "disk_full_at_outcome",
        scan(),
        "dispatch.outcome.before#1",
        "when the outcome is to be recorded: it was sent, and will be sent again",
        IN_HAND,
        before=(Run(enqueue()),),
        ending=TWICE,
    ),
)
