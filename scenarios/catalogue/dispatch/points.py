"""Every fault point of the outbox that no other scenario of this section fires: death there, then recovery."""

from collections.abc import Callable
from dataclasses import dataclass

from outbox import faults
from outbox.dispatch import cli as _commands
from scenarios.catalogue.dispatch.parts import (
    ACK,
    BACKED_OFF,
    CHANGED_MEANWHILE,
    DEDUP,
    LEASE_OVER,
    ONE,
    REFUSED,
    TOKEN,
    dies,
    enqueue,
    operator,
    scan,
    scenario,
    served,
)
from scenarios.catalogue.parts import KEYED
from scenarios.model import Program, Rows, Run, Scenario, Step

PROGRAMS = (_commands,)  # imported for its declarations
STAGES = ("before", "written", "committed")
_ACK = operator("ack", ONE, TOKEN, at=LEASE_OVER)
_RETRY = operator("retry", ONE, at=LEASE_OVER)
_PURGE = operator("purge", ONE, at=LEASE_OVER)
_LAST = scan(at=BACKED_OFF)
DELIVERED, TWICE = Rows(delivered=1, attempts=1), Rows(delivered=1, attempts=2)
ACKED, PURGED = Rows(acked=1, attempts=1), Rows(attempts=1, events=1)


def _again(program: Program, point: str, code_when_done: int) -> tuple[Step, ...]:
    """Death at the point, then the same program: where the first one had committed, it says that there is nothing to do."""
    return dies(program, f"{point}#1"), Run(program, exit_code=code_when_done if point.endswith(".committed") else 0)


def _enqueue_dies(point: str) -> tuple[Step, ...]:
    return served(KEYED, *_again(enqueue(), point, 0), Run(scan()))


def _keyed_enqueue_dies(point: str) -> tuple[Step, ...]:
    return served(KEYED, *_again(enqueue(*DEDUP), point, 0), Run(scan()))


def _scan_dies(point: str) -> tuple[Step, ...]:
    return served(KEYED, Run(enqueue()), dies(scan(), f"{point}#1"), Run(scan(at=LEASE_OVER)))


def _ack_dies(point: str) -> tuple[Step, ...]:
    return served(KEYED, Run(enqueue(*ACK)), Run(scan()), *_again(_ACK, point, REFUSED), Run(_LAST))


def _retry_dies(point: str) -> tuple[Step, ...]:
    failed = (Run(enqueue("--max-attempts", "1")), Run(scan()))
    return (*failed, *_again(_RETRY, point, REFUSED), *served(KEYED, Run(_LAST)))


def _purge_dies(point: str) -> tuple[Step, ...]:
    return served(KEYED, Run(enqueue()), Run(scan()), *_again(_PURGE, point, CHANGED_MEANWHILE))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a point is: the steps that reach it, the counts and rows at the end, and what the scenario shows."""

    steps: Callable[[str], tuple[Step, ...]]
    counts: tuple[int, int, int, int]
    rows: Rows


_ONCE = _Place(_scan_dies, (1, 1, 3, 1), DELIVERED)
_PLACES = {
    "dispatch.enqueue.before": _Place(_enqueue_dies, (1, 1, 3, 1), DELIVERED),
    "dispatch.enqueue.looked": _Place(_keyed_enqueue_dies, (1, 1, 3, 1), DELIVERED),
    "dispatch.claim.before": _ONCE,
    "dispatch.claim.written": _ONCE,
    "dispatch.send.before": _Place(_scan_dies, (1, 1, 4, 1), TWICE),
    "dispatch.outcome.before": _Place(_scan_dies, (1, 1, 4, 2), TWICE),
    **{f"dispatch.ack.{stage}": _Place(_ack_dies, (1, 1, 4, 1), ACKED) for stage in STAGES},
    **{f"dispatch.retry.{stage}": _Place(_retry_dies, (1, 1, 6, 1), TWICE) for stage in STAGES},
    **{f"dispatch.purge.{stage}": _Place(_purge_dies, (1, 1, 3, 1), PURGED) for stage in STAGES},
}


def _scenario(point: str, place: _Place) -> Scenario:
    return scenario(
        f"death_at_{point.removeprefix('dispatch.').replace('.', '_')}",
        f"Death at {point}: {faults.declared()[point]}",
        f"the process that ended with 23 said so at {point}; what came after is recovery",
        place.steps(point),
        counts=place.counts,
        rows=place.rows,
    )


SCENARIOS = tuple(_scenario(point, place) for point, place in _PLACES.items())
