"""What the tests of the tampering share: a small real archive, made once by run.py of this checkout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.audit.real import freeze
from tests.tamper.ground import Field

SCENARIOS = (
    "delivery/keyed_delivery", "identity/mark_before_send", "unknown/unknown_not_applied", "wire/retry_after_seconds",
    "dispatch/purge_frees_the_key",
)  # fmt: skip


def study(scratch: pytest.TempPathFactory, *scenarios: str) -> Path:
    """An archive of these scenarios, made by a checkout of its own."""
    root = freeze(scratch.mktemp("checkout"))
    out = scratch.mktemp("archive") / "study"
    command = [sys.executable, str(root / "run.py"), "--out", str(out), "--only", *scenarios]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a few scenarios."""
    return study(tmp_path_factory, *SCENARIOS)


@pytest.fixture
def ground_of(small: Path) -> Iterator[Field]:
    with Field(small) as field:
        yield field
