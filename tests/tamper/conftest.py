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
)  # fmt: skip


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a few scenarios."""
    root = freeze(tmp_path_factory.mktemp("checkout"))
    out = tmp_path_factory.mktemp("small") / "study"
    command = [sys.executable, str(root / "run.py"), "--out", str(out), "--only", *SCENARIOS]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture
def ground_of(small: Path) -> Iterator[Field]:
    with Field(small) as field:
        yield field
