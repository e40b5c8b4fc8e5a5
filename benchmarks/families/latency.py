"""Latency: from the enqueue to the effect, one dispatch at a time.

The outbox's scheduler runs in the producer's process and is woken by it. The floor is the least that a durable path can do:
the syncs that lie before the effect (one of the enqueue's commit, one of the claim's), then one POST on a connection that is
open. Both end when the receiver has the request, by the clock that all processes share.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Comparison, Contender, Goal, Part
from benchmarks.prompt import SYNCS, Prompt
from benchmarks.receiver import receiver

TIMES, QUICK_TIMES = 100, 3
FLOOR, OUTBOX = "syncs and a POST", "outbox"


def parts(quick: bool) -> Iterator[Part]:
    """One comparison."""
    with tempfile.TemporaryDirectory() as scratch, receiver() as url, Prompt(Path(scratch), url) as prompt:
        times = QUICK_TIMES if quick else TIMES
        yield Comparison(
            "enqueue to effect",
            "microseconds",
            (
                Contender(FLOOR, lambda _number: prompt.floor(times) * 1e6, f"{SYNCS} pages written and synced"),
                Contender(OUTBOX, lambda _number: prompt.outbox(times) * 1e6, "enqueue, wake, claim, POST; synchronous FULL"),
            ),
            (Goal("latency: enqueue to effect over two syncs and a POST", OUTBOX, FLOOR, at_most=1.5),),
            f"The median of {times} in each round.",
        )
