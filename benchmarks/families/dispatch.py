"""Dispatch: deliveries a second against a bare client.

The outbox posts each row with full durability: a durable claim before each send and a durable outcome after it, shared by many
rows. The bare client is one `aiohttp` session that posts as many of the same bodies with the same concurrency, to the same
receiver, and keeps nothing.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import Comparison, Contender, Goal, Part
from benchmarks.peers.jobs import KIND, ORDER
from benchmarks.posting import post_all
from benchmarks.receiver import receiver
from benchmarks.servers import missing, server
from outbox.dispatch import DeliveryOptions, StateDB, deliver_due_dispatches, enqueue_dispatch

ROWS, QUICK_ROWS = 2000, 20
AT_ONCE = 64
AT_LEAST = 0.7
BARE, OUTBOX = "bare client", "outbox"


@dataclass(frozen=True, slots=True)
class _Outbox:
    """An open outbox, in an event loop that stays."""

    db: StateDB
    runner: asyncio.Runner
    url: str
    rows: int

    def rate(self, _number: int) -> float:
        """Rows a second, over one scan."""
        return self.rows / self.runner.run(self._scan())

    def bare_rate(self, _number: int) -> float:
        """Posts a second, of the client alone."""
        return self.rows / self.runner.run(post_all(self.url, self.rows, AT_ONCE))

    async def _scan(self) -> float:
        async with self.db.begin() as connection:
            for _ in range(self.rows):
                await enqueue_dispatch(connection, kind=KIND, deliver_to=self.url, body=ORDER)
        began = time.perf_counter()
        counts = await deliver_due_dispatches(self.db, options=DeliveryOptions(concurrency=AT_ONCE))
        took = time.perf_counter() - began
        assert counts["delivered"] == self.rows, counts
        return took


@contextmanager
def _opened(store: str, url: str, rows: int) -> Iterator[_Outbox]:
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        try:
            yield _Outbox(runner.run(stack.enter_async_context(StateDB(store))), runner, url, rows)
        finally:
            runner.run(stack.aclose())


def parts(quick: bool) -> Iterator[Part]:
    """A receiver that only answers, on SQLite and PostgreSQL; then one that keeps each effect."""
    rows = QUICK_ROWS if quick else ROWS
    with tempfile.TemporaryDirectory() as scratch, receiver() as url:
        with _opened(str(Path(scratch) / "bare.db"), url, rows) as outbox:
            yield _part("SQLite, a receiver that only answers", outbox)
        if (reason := missing()) is not None:
            yield _skipped("PostgreSQL, a receiver that only answers", reason)
        else:
            with server() as started, _opened(started.new_database(), url, rows) as outbox:
                yield _part("PostgreSQL, a receiver that only answers", outbox)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(receiver("-m", "receivers", "keyed", "--dir", str(folder / "receiver")))
        yield _part("SQLite, a receiver that keeps each effect", stack.enter_context(_opened(str(folder / "k.db"), url, rows)))


def _part(name: str, outbox: _Outbox) -> Comparison:
    durability = (
        f"{outbox.db.info.journal_mode.upper()} journal, synchronous FULL" if outbox.db.info.journal_mode else "fsync on"
    )
    return Comparison(
        name,
        "jobs a second",
        (
            Contender(BARE, outbox.bare_rate, f"{AT_ONCE} at once, keeps nothing"),
            Contender(OUTBOX, outbox.rate, f"{AT_ONCE} at once, {durability}"),
        ),
        (_goal(name),),
        f"{outbox.rows:,} posts a round.",
    )


def _goal(name: str) -> Goal:
    return Goal(f"dispatch: outbox over a bare client, {name}", OUTBOX, BARE, at_least=AT_LEAST)


def _skipped(name: str, missing: str) -> Comparison:
    def never(_number: int) -> float:
        raise AssertionError(missing)

    return Comparison(
        name, "jobs a second", tuple(Contender(each, never, missing=missing) for each in (BARE, OUTBOX)), (_goal(name),)
    )
