"""A process that delivers all that is due in a store, and tells the most memory that it has had.

python -m benchmarks.scanning STORE
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.receiver import ROOT
from outbox.dispatch import StateDB, deliver_due_dispatches


def peak_kib() -> int:
    """The most memory that this program has had. (`ru_maxrss` would count what the parent had when it started us.)"""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    return int(status.partition("VmHWM:")[2].split()[0])


async def _scan(store: str) -> None:
    async with StateDB(store) as db:
        counts = await deliver_due_dispatches(db)
    print(json.dumps({"delivered": counts["delivered"], "peak_kib": peak_kib()}))


def scan_peak_kib(store: Path, number: int) -> int:
    """The peak of such a process, which must have delivered `number` rows."""
    command = [sys.executable, "-m", "benchmarks.scanning", str(store)]
    told = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    assert told["delivered"] == number, told
    return int(told["peak_kib"])


if __name__ == "__main__":
    asyncio.run(_scan(sys.argv[1]))
