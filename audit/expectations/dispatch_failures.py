"""What must come of a database that fails, and of a death at each fault point that no other scenario fires.

What was committed before the failure is there afterwards, and nothing else. A scheduler that dies leaves its claim to the
lease; a producer or an operator that dies does the same once more, and where the first one had committed nothing is left to do.
"""

from __future__ import annotations

from audit.expectations.dispatch_words import (
    CHANGED_MEANWHILE,
    MACHINE_REFUSED,
    REFUSED,
    enqueued,
    operator,
    rows,
    scan,
)
from audit.expectations.words import Expectation, Expected, receiver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from audit.expectations.words import Counts, Rows

NOTHING, WAITING, IN_HAND = rows(), rows(pending=1), rows(delivering=1, attempts=1)
ONCE, TWICE = rows(delivered=1, attempts=1), rows(delivered=1, attempts=2)
ACKED, PURGED = rows(acked=1, attempts=1), rows(attempts=1, events=1)


def _failed(name: str, point: str, counts: Counts, end: Rows, **left: Rows) -> Expectation:
    """A scan whose database fails while it is stopped at a point, and a second scan when the lease is over."""
    failing = scan(pause=f"{point}#1", code=MACHINE_REFUSED)
    return Expectation(name, counts, [receiver(), enqueued(), failing, scan(2)], exports={**left, "end": end})


ONE_SEND, TWO_SENDS = (1, 1, 3, 1), (1, 1, 4, 2)
DATABASES = (
    _failed("server_dies_in_claim", "dispatch.claim.written", ONE_SEND, ONCE, after_the_restart=WAITING),
    _failed("server_dies_after_claim", "dispatch.claim.committed", TWO_SENDS, TWICE, after_the_restart=IN_HAND),
    _failed("server_dies_in_outcome", "dispatch.outcome.written", TWO_SENDS, TWICE, after_the_restart=IN_HAND),
    Expectation(
        "disk_full_at_enqueue",
        ONE_SEND,
        [receiver(), enqueued(pause="dispatch.enqueue.before#1", code=MACHINE_REFUSED), enqueued(2), scan()],
        exports={"while_the_disk_was_full": NOTHING, "end": ONCE},
    ),
    _failed("disk_full_at_claim", "dispatch.claim.before", ONE_SEND, ONCE, while_the_disk_was_full=WAITING),
    _failed("disk_full_at_outcome", "dispatch.outcome.before", TWO_SENDS, TWICE, while_the_disk_was_full=IN_HAND),
)


def _death(point: str, counts: Counts, end: Rows, *processes: Expected) -> Expectation:
    return Expectation(f"death_at_{point.replace('.', '_')}", counts, processes, exports={"end": end})


def _scan_dies(point: str, counts: Counts, end: Rows) -> Expectation:
    return _death(point, counts, end, receiver(), enqueued(), scan(halted=f"dispatch.{point}#1"), scan(2))


def _acts(point: str, code_when_done: int) -> list[Expected]:
    """An operator who dies at a point, and the same act once more."""
    return [operator(halted=f"dispatch.{point}#1"), operator(2, code=code_when_done if point.endswith("committed") else 0)]


STAGES = ("before", "written", "committed")
POINTS = (
    _death("enqueue.before", ONE_SEND, ONCE, receiver(), enqueued(halted="dispatch.enqueue.before#1"), enqueued(2), scan()),
    _death("enqueue.looked", ONE_SEND, ONCE, receiver(), enqueued(halted="dispatch.enqueue.looked#1"), enqueued(2), scan()),
    _scan_dies("claim.before", ONE_SEND, ONCE),
    _scan_dies("claim.written", ONE_SEND, ONCE),
    _scan_dies("send.before", (1, 1, 4, 1), TWICE),
    _scan_dies("outcome.before", TWO_SENDS, TWICE),
    *[
        _death(each, (1, 1, 4, 1), ACKED, receiver(), enqueued(), scan(), *_acts(each, REFUSED), scan(2))
        for each in [f"ack.{stage}" for stage in STAGES]
    ],
    *[
        _death(each, (1, 1, 6, 1), TWICE, enqueued(), scan(), *_acts(each, REFUSED), receiver(), scan(2))
        for each in [f"retry.{stage}" for stage in STAGES]
    ],
    *[
        _death(each, (1, 1, 3, 1), PURGED, receiver(), enqueued(), scan(), *_acts(each, CHANGED_MEANWHILE))
        for each in [f"purge.{stage}" for stage in STAGES]
    ],
)
