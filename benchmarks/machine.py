"""On what was measured: processor, kernel, versions, load, and what one sync of the disk costs here.

Read when a family begins; a number without it cannot be compared with anything. It measures nothing but the sync.
"""

import os
import platform
import statistics
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

from outbox import sqlite_choice

PACKAGES = (
    "aiohttp",
    "aiosqlite",
    "sqlalchemy",
    "pysqlite3",
    "psycopg",
    "huey",
    "litequeue",
    "persist-queue",
    "dbos",
    "procrastinate",
    "pgqueuer",
)
SYNCS = 50


def machine() -> dict[str, str]:
    """What a reader needs, by name."""
    chosen = sqlite_choice.choose()
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "SQLite": f"{chosen.version} ({chosen.package}, journal mode {chosen.journal_mode})",
        "packages": ", ".join(_versions()),
        "load average at the beginning": f"{os.getloadavg()[0]:.1f}",
        "one fdatasync": f"{sync_seconds() * 1e6:.0f} microseconds ({_file_system(tempfile.gettempdir())})",
    }


def sync_seconds() -> float:
    """The median of SYNCS writes of a page, each with its fdatasync, where temporary files are."""
    taken = []
    with tempfile.TemporaryFile() as file:
        for _ in range(SYNCS):
            began = time.perf_counter()
            os.write(file.fileno(), bytes(4096))
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or sys.platform


def _file_system(folder: str) -> str:
    """The kind of the file system that `folder` is on."""
    path, kind, longest = os.path.realpath(folder), "unknown file system", ""
    for line in _lines("/proc/mounts"):
        mount, found = line.split()[1:3]
        if path.startswith(mount.rstrip("/") + "/") and len(mount) >= len(longest):
            longest, kind = mount, found
    return kind


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def _versions() -> list[str]:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return found
