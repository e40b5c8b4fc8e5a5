"""The time of a scan: seconds since the epoch, from the machine or from whoever decides it, and never backwards.

A clock that is set back in the middle of a scan would make the scan's own leases look spent, and its rows would be claimed
again while they are being sent. So within one scan time stands still until the clock has caught up.
"""

import math
import time
from collections.abc import Callable

from outbox.dispatch import checks

Clock = Callable[[], float]


def clock_from(now: float | Clock | None) -> Clock:
    """The clock of one scan: the machine's (None), a function's, or one that begins at a number and passes in whole seconds.

    Whole seconds, so that a short scan happens at the very number, and the leases of a long one are right all the same.
    Raises BadValue for anything else; the clock does so for a time that is no finite number.
    """
    if now is None:
        return _never_back(time.time)
    if callable(now):
        return _never_back(now)
    start, began = _moment(now), time.monotonic()
    return lambda: start + math.floor(time.monotonic() - began)


def _never_back(clock: Clock) -> Clock:
    latest = -math.inf

    def read() -> float:
        nonlocal latest
        latest = max(latest, _moment(clock()))
        return latest

    return read


def _moment(value: object) -> float:
    return checks.seconds("the time", value, "seconds since the epoch")
