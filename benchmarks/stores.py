"""What finished rows cost those who come after them: stores with none and with many, and three things that are done there.

The stores stay open, so that what is measured finds them as a dispatcher does that has been running for a while.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager

from benchmarks.filling import fill
from benchmarks.peers.jobs import KIND, ORDER
from outbox.dispatch import StateDB, deliver_due_dispatches, enqueue_dispatch

DUE_ROWS = 10
Measured = Callable[[StateDB, str], Coroutine[None, None, float]]


async def enqueue_seconds(db: StateDB, url: str) -> float:
    """One enqueue. What it wrote is delivered afterwards."""
    began = time.perf_counter()
    await enqueue_dispatch(db, kind=KIND, deliver_to=url, body=ORDER)
    took = time.perf_counter() - began
    await deliver_due_dispatches(db)
    return took


async def idle_scan_seconds(db: StateDB, url: str) -> float:
    """A scan that finds nothing due."""
    began = time.perf_counter()
    counts = await deliver_due_dispatches(db)
    assert not counts["attempted"], counts
    return time.perf_counter() - began


async def due_scan_seconds(db: StateDB, url: str) -> float:
    """A scan that finds ten due rows, and delivers them."""
    async with db.begin() as connection:
        for _ in range(DUE_ROWS):
            await enqueue_dispatch(connection, kind=KIND, deliver_to=url, body=ORDER)
    began = time.perf_counter()
    counts = await deliver_due_dispatches(db)
    assert counts["delivered"] == DUE_ROWS, counts
    return time.perf_counter() - began


class Stores:
    """Open stores with so many finished rows each; all of them live in one event loop."""

    def __init__(self, runner: asyncio.Runner, url: str, stores: dict[int, StateDB]) -> None:
        self._runner, self._url, self._stores = runner, url, stores

    def seconds(self, measured: Measured, finished: int) -> float:
        """Measure in the store with so many finished rows."""
        return self._runner.run(measured(self._stores[finished], self._url))


async def _opened(stack: AsyncExitStack, store: str, finished: int, url: str) -> StateDB:
    db = await stack.enter_async_context(StateDB(store))
    await fill(db, finished, url)
    return db


@contextmanager
def filled(places: dict[int, str], url: str) -> Iterator[Stores]:
    """Fill a store at each of `places`, by its number of finished rows, and open all of them."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield Stores(
                runner, url, {number: runner.run(_opened(stack, store, number, url)) for number, store in places.items()}
            )
        finally:
            runner.run(stack.aclose())
