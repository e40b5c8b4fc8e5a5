"""How long a dispatch waits for its next attempt: 30 seconds doubled for each attempt, at most 1,800 (ADR-0059, D4).

The first failure belongs to attempt 1 and so waits 60 seconds. Many rows that fail together come back together; whoever minds
sets `jitter_fraction`, which spreads each delay over the range from `(1 - fraction)` of it to the whole. It is off by default:
a study wants exact times.
"""

import random

from outbox.dispatch.errors import BadValue

BASE_BACKOFF_SECONDS = 30
MAX_BACKOFF_SECONDS = 1800
# Doubling further changes nothing, and a shift by a million would build a number that fills the memory.
_ENOUGH_DOUBLINGS = MAX_BACKOFF_SECONDS.bit_length()


def backoff_seconds(attempt: int) -> float:
    """The delay after `attempt` (0, 1, 2 …). Raises BadValue for a negative one."""
    if attempt < 0:
        raise BadValue(f"attempt {attempt} is negative")
    return min(BASE_BACKOFF_SECONDS << min(attempt, _ENOUGH_DOUBLINGS), MAX_BACKOFF_SECONDS)


def jittered(delay_seconds: float, fraction: float, chance: random.Random) -> float:
    """`delay_seconds`, shortened by up to `fraction` (0 to 1) of it."""
    return delay_seconds * (1 - fraction * chance.random()) if fraction else delay_seconds
