"""The audit: seconds of the processor, against sha256 and json.loads of the same bytes.

The floor reads every file of the archive, hashes it, and parses it if it is JSON (or each of its lines), in an interpreter of
its own that imports nothing else. Both are measured as the processor's time of the whole process, with byte code that is kept.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import floor
from benchmarks.measuring import Comparison, Contender, Goal, Part

ARCHIVES = ("study", "explore", "study-postgres")
FLOOR = """
import hashlib, json, os, sys
for folder, _folders, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read()
        hashlib.sha256(content)
        if name.endswith(".json"):
            json.loads(content)
        elif name.endswith(".jsonl"):
            for line in content.splitlines():
                try:
                    json.loads(line)
                except ValueError:
                    pass  # a torn one
"""


def parts(quick: bool) -> Iterator[Part]:
    """The archived evidence, each archive of its own."""
    for name in ARCHIVES[:1] if quick else ARCHIVES:
        archive = floor.ROOT / "evidence" / name
        size = megabytes(archive)
        yield Comparison(
            f"the audit of evidence/{name}",
            "MB for each second of the processor",
            (
                Contender("audit", lambda _round, archive=archive, size=size: size / audited(archive)),  # type: ignore[misc]
                Contender("sha256 and json.loads", lambda _round, archive=archive, size=size: size / bare(archive)),  # type: ignore[misc]
            ),
            (Goal(f"audit: cost of evidence/{name} over sha256 and json.loads", "sha256 and json.loads", "audit", at_most=3),),
            note=f"{size:.1f} MB.",
            rounds=7,
        )


def megabytes(folder: Path) -> float:
    """Bytes of all files, in millions."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1e6


def audited(archive: Path) -> float:
    """Seconds of the processor that the audit takes. It must pass."""
    return _processor_seconds([sys.executable, "audit/audit.py", str(archive)])


def bare(archive: Path) -> float:
    """The same of the floor."""
    return _processor_seconds([sys.executable, "-c", FLOOR, str(archive)])


def _processor_seconds(command: Sequence[str]) -> float:
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=floor.ROOT, stdout=said, stderr=said, env=floor.environment())
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            last = said.read().decode("utf-8", "replace").splitlines()[-2:]
            raise floor.Failed(f"{' '.join(command[:2])} {command[-1]} ended with {process.returncode}: {'; '.join(last)}")
    return usage.ru_utime + usage.ru_stime
