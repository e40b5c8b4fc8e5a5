"""A fault point that nobody has armed.

What one costs is taken from a long loop of calls, less the same loop without the call.
"""

import time
from collections.abc import Iterator

from benchmarks.measuring import Comparison, Contender, Goal, Part
from outbox import faults

CALLS = 1_000_000
QUICK_CALLS = 10_000
LIMIT_NANOSECONDS = 50.0


def parts(quick: bool) -> Iterator[Part]:
    """The idle point, beside a call of a function that does nothing and the limit."""
    calls = QUICK_CALLS if quick else CALLS
    yield Comparison(
        "an idle fault point",
        "nanoseconds",
        (
            Contender("reach, not armed", lambda _round: point(calls)),
            Contender("a call of nothing", lambda _round: nothing(calls)),
            Contender("limit", lambda _round: LIMIT_NANOSECONDS, "what it may cost"),
        ),
        (
            Goal("an idle fault point: over its limit of 50 nanoseconds", "reach, not armed", "limit", at_most=1),
            Goal("an idle fault point: over a call of nothing", "reach, not armed", "a call of nothing"),
        ),
        rounds=7,
    )


def point(calls: int) -> float:
    """Nanoseconds of one `reach`."""
    reach = faults.reach
    began = time.perf_counter_ns()
    for _ in range(calls):
        reach("send.before")
    return (time.perf_counter_ns() - began - _loop(calls)) / calls


def nothing(calls: int) -> float:
    """Nanoseconds of one call that does nothing."""
    began = time.perf_counter_ns()
    for _ in range(calls):
        _nothing("send.before")
    return (time.perf_counter_ns() - began - _loop(calls)) / calls


def _nothing(_point: str) -> None:
    pass


def _loop(calls: int) -> int:
    began = time.perf_counter_ns()
    for _ in range(calls):
        pass
    return time.perf_counter_ns() - began
