"""The revival heartbeat over restarts: one row a seat and reset."""

from scenarios.catalogue.dispatch.parts import (
    BACKED_OFF,
    ENQUEUED_AT,
    ONE,
    THREE,
    TWO,
    dies,
    identity,
    revive,
    scan,
    scenario,
    served,
)
from scenarios.catalogue.parts import KEYED
from scenarios.model import Export, Rows, Run

# Seats are routes: a seat is whom the dispatch is delivered to.
SEATS = {"http://receiver.localhost/operations": ONE, "http://receiver.localhost/operations?seat=2": TWO}
AGAIN = dict(zip(SEATS, (THREE, identity(4)), strict=True))
EPOCH = ENQUEUED_AT
_FIRST = revive(SEATS, epoch=EPOCH, at=ENQUEUED_AT)

SCENARIOS = (
    scenario(
        "revival_over_restart",
        "A heartbeat to two seats dies after the first, is asked for again, and once more after the delivery",
        "one row a seat: each run prints the ids that the seats have already",
        served(
            KEYED,
            dies(_FIRST, "dispatch.enqueue.committed#1"),
            Export("after_the_death", Rows(pending=1)),
            Run(_FIRST),
            Run(scan()),
            Run(revive(AGAIN, epoch=EPOCH, at=ENQUEUED_AT + 1)),
            Run(scan(at=BACKED_OFF)),
        ),
        counts=(2, 2, 6, 2),
        rows=Rows(delivered=2, attempts=2),
    ),
    scenario(
        "revival_of_another_reset",
        "Heartbeats of two resets are two things",
        "a row for each seat and reset",
        served(KEYED, Run(_FIRST), Run(scan()), Run(revive(AGAIN, epoch=EPOCH + 60, at=BACKED_OFF)), Run(scan(at=BACKED_OFF))),
        counts=(4, 4, 12, 4),
        rows=Rows(delivered=4, attempts=4),
    ),
)
