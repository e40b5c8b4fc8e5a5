"""One run of the whole study for all tests of a session, whoever asks first and however many workers share it.

It is made by a copy of the sources, so that whoever edits the checkout while the tests run does not disturb it. Nobody may
change what is in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.audit.real import freeze

SECONDS = 300


@dataclass(frozen=True, slots=True)
class WholeRun:
    """The archive, the checkout that made it, and what `run.py` said."""

    out: Path
    root: Path
    stdout: str
    stderr: str


def whole_run(factory: pytest.TempPathFactory) -> WholeRun:
    """The session's run of the whole study, made now if nobody has asked yet."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / "whole.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = shared / "whole"
        told = place / "told.json"
        if not told.exists():
            place.mkdir()
            (place / "checkout").mkdir()
            said = _make(freeze(place / "checkout"), place / "study")
            told.write_text(json.dumps(said), encoding="utf-8")
        stdout, stderr = json.loads(told.read_text("utf-8"))
    return WholeRun(place / "study", place / "checkout", stdout, stderr)


def _make(root: Path, out: Path) -> tuple[str, str]:
    command = [sys.executable, str(root / "run.py"), "--out", str(out)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr
