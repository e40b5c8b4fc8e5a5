"""The scheduler: a scan at every tick, for as long as it runs (ADR-0059, D6).

The tick (30 seconds) is the latency of an idle row; a producer in the same process may `wake` the scheduler instead. A scan
that fails is logged, and the next tick comes all the same. `stop` ends the claiming at once; what is being sent is waited for
and recorded. Where the settings hold a retention policy it is applied after each scan.

Any number of schedulers may work on one database, on one machine with SQLite, on several with PostgreSQL.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from pathlib import Path

from outbox.dispatch.delivery import Clock, Delivery, DeliveryOptions, deliver
from outbox.dispatch.retention import apply_retention
from outbox.dispatch.router import RouterOptions
from outbox.dispatch.settings import DispatchSettings
from outbox.dispatch.settle import Jitter
from outbox.dispatch.store import StateDB
from outbox.errors import Halt23Error

log = logging.getLogger("outbox.dispatch")


class Scheduler:
    """Scans `db` by `settings`. `clock` gives seconds since the epoch; commands run in `directory`; `told` hears of each
    scan."""

    def __init__(
        self,
        db: StateDB,
        settings: DispatchSettings,
        *,
        clock: Clock = time.time,
        directory: Path | None = None,
        told: Callable[[Delivery], None] = lambda _delivery: None,
    ) -> None:
        self._db, self._settings, self._clock, self._told = db, settings, clock, told
        self._options = DeliveryOptions(
            concurrency=settings.concurrency,
            # Chance is wanted here, not secrecy.
            jitter=Jitter(settings.jitter_fraction, random.Random()) if settings.jitter_fraction else None,  # noqa: S311
            router=RouterOptions(allow_hosts=settings.allow_hosts, directory=directory),
        )
        self._stopping = False
        self._news = asyncio.Event()

    def stop(self) -> None:
        """Claim nothing more, and let `run` end when what is being sent is recorded. May be called from a signal handler."""
        self._stopping = True
        self._news.set()

    def wake(self) -> None:
        """Do not wait for the next tick: something is due."""
        self._news.set()

    async def run(self) -> None:
        """Tick until `stop`."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            self._news.clear()
            next_tick = loop.time() + self._settings.tick_seconds
            await self.tick()
            if self._stopping:
                break
            try:
                async with asyncio.timeout_at(next_tick):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def tick(self) -> Delivery | None:
        """One scan, and the retention. None if the scan failed; the reason is in the log."""
        delivery = None
        try:
            delivery = await self.scan()
        except Exception as error:
            self._log("scan", error)
        else:
            self._told(delivery)
        try:
            if self._settings.retention is not None and not self._stopping:
                await apply_retention(self._db, self._settings.retention, now=self._clock())
        except Exception as error:
            self._log("retention", error)
        return delivery

    async def scan(self) -> Delivery:
        """One scan by the settings. Raises what `deliver_due_dispatches` raises."""
        return await deliver(
            self._db,
            now=self._clock,
            notify_template=self._settings.notify_template,
            resolve_template=False,
            options=self._options,
            stopping=lambda: self._stopping,
        )

    @staticmethod
    def _log(what: str, error: Exception) -> None:
        """A failure of the world in one line, a bug of ours with its traceback."""
        log.error("the %s failed, the next tick tries again: %s", what, error, exc_info=not isinstance(error, Halt23Error))
