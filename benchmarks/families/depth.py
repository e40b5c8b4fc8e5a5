"""Depth: what finished rows cost an enqueue, an idle scan and a scan of ten due rows.

The finished rows lie in the outbox's own tables, with their history, and ids spread over all that an id can be.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import FLAT, Growth, Part, Series, Slope
from benchmarks.receiver import receiver
from benchmarks.servers import missing, server
from benchmarks.stores import DUE_ROWS, Stores, due_scan_seconds, enqueue_seconds, filled, idle_scan_seconds

# A sixth of a gigabyte of history for each hundred thousand rows: PostgreSQL, which fills more slowly, is spared the million.
SIZES = {"SQLite": (0, 10_000, 1_000_000), "PostgreSQL": (0, 10_000, 100_000)}
QUICK_SIZES = (0, 100, 1000)
MEASURED = {
    "enqueue": enqueue_seconds,
    "scan, nothing due": idle_scan_seconds,
    f"scan, {DUE_ROWS} rows due and delivered": due_scan_seconds,
}
AT_MOST = 1.5
ROUNDS = 30


def parts(quick: bool) -> Iterator[Part]:
    """SQLite, then PostgreSQL."""
    with tempfile.TemporaryDirectory() as scratch, receiver() as url:
        sizes = QUICK_SIZES if quick else SIZES["SQLite"]
        with filled({each: str(Path(scratch) / f"{each}.db") for each in sizes}, url) as stores:
            yield _growth("SQLite", sizes, stores)
        sizes = QUICK_SIZES if quick else SIZES["PostgreSQL"]
        if missing() is not None:
            yield _growth("PostgreSQL", sizes, None)
            return
        with server() as started, filled({each: started.new_database() for each in sizes}, url) as stores:
            yield _growth("PostgreSQL", sizes, stores)


def _growth(engine: str, sizes: tuple[int, ...], stores: Stores | None) -> Growth:
    return Growth(
        f"beside finished rows, {engine}",
        "finished rows",
        "milliseconds",
        sizes,
        tuple(_series(name, stores) for name in MEASURED),
        tuple(
            Slope(f"depth: {name}, beside {sizes[-1]:,} finished rows over beside none, {engine}", name, FLAT, AT_MOST)
            for name in MEASURED
        ),
        "The receiver only answers; the stores stay open.",
        ROUNDS,
    )


def _series(name: str, stores: Stores | None) -> Series:
    def run(size: int) -> float:
        assert stores is not None
        return stores.seconds(MEASURED[name], size) * 1000

    return Series(name, run, missing=missing() if stores is None else None)
