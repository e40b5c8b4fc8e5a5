"""The memory of a process that delivers all that is due in a store, by how much that is.

    python -m benchmarks.scanning STORE

is such a process. It prints how many rows it has delivered and the most memory that it has had, as JSON. Each scan is measured
in one of its own, on a store that another process has filled.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.filling import fill
from benchmarks.floor import ROOT
from benchmarks.measuring import FLAT, Growth, Part, Series, Slope
from benchmarks.receiver import receiver
from outbox.dispatch import StateDB, deliver_due_dispatches

SIZES, QUICK_SIZES = (1_000, 10_000, 100_000), (10, 100)
AT_MOST = 1.25
DISPATCHER = "dispatcher"


def parts(quick: bool) -> Iterator[Part]:
    """One growth."""
    with receiver() as url:
        yield Growth(
            "memory of the dispatcher",
            "due rows",
            "MiB at the peak",
            QUICK_SIZES if quick else SIZES,
            (Series(DISPATCHER, lambda size: _peak_mib(size, url), "one scan on SQLite, 64 at once"),),
            (Slope("memory: the dispatcher over the most due rows over the fewest", DISPATCHER, FLAT, AT_MOST),),
        )


def _peak_mib(rows: int, url: str) -> float:
    """Fill a store and have it delivered. Every row must have been."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Path(scratch) / "dispatch.db"
        asyncio.run(_fill(store, rows, url))
        command = [sys.executable, "-m", "benchmarks.scanning", str(store)]
        told = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    assert told["delivered"] == rows, told
    return float(told["peak_kib"]) / 1024


async def _fill(store: Path, rows: int, url: str) -> None:
    async with StateDB(store) as db:
        await fill(db, rows, url, "pending")


async def _scan(store: str) -> None:
    async with StateDB(store) as db:
        counts = await deliver_due_dispatches(db)
    print(json.dumps({"delivered": counts["delivered"], "peak_kib": _own_peak_kib()}))


def _own_peak_kib() -> int:
    """Of this program alone. (`ru_maxrss` would count what the parent had when it started us.)"""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    return int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    asyncio.run(_scan(sys.argv[1]))
