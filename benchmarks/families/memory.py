"""Memory: the peak of a process that delivers all that is due, by how much is due.

Each scan is a process of its own on a store that another process has filled.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.filling import fill
from benchmarks.measuring import FLAT, Growth, Part, Series, Slope
from benchmarks.receiver import receiver
from benchmarks.scanning import scan_peak_kib
from outbox.dispatch import StateDB

SIZES, QUICK_SIZES = (1_000, 10_000, 100_000), (10, 100)
AT_MOST = 1.2
DISPATCHER = "dispatcher"


def parts(quick: bool) -> Iterator[Part]:
    """One growth."""
    with receiver() as url:
        sizes = QUICK_SIZES if quick else SIZES
        yield Growth(
            "Dispatcher",
            "due rows",
            "MiB",
            sizes,
            (Series(DISPATCHER, lambda size: _peak_mib(size, url), "one scan on SQLite, 64 at once; VmHWM"),),
            (Slope(f"Memory of the dispatcher: over {sizes[-1]:,} due rows to {sizes[0]:,}", DISPATCHER, FLAT, AT_MOST),),
        )


def _peak_mib(rows: int, url: str) -> float:
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch) / "dispatch.db"
        asyncio.run(_fill(store, rows, url))
        return scan_peak_kib(store, rows) / 1024


async def _fill(store: Path, rows: int, url: str) -> None:
    async with StateDB(store) as db:
        await fill(db, rows, url, "pending")
