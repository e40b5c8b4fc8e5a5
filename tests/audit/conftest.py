"""What the tests of the audit share: a small checkout, a valid archive, and the audit run against them in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import audit.expectations
from audit.archive import Report, audit_archive
from tests.audit import forge
from tests.audit.catalogue import catalogue
from tests.audit.play import study

Audit = Callable[[Path], Report]


@pytest.fixture(scope="session")
def pin() -> str:
    return forge.protocol_hash(catalogue())


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory, pin: str) -> Path:
    return forge.checkout(tmp_path_factory.mktemp("checkout"), pin)


@pytest.fixture(autouse=True, scope="session")
def _pinned(pin: str) -> None:
    """In this process the protocol of the forger's catalogue is the pinned one."""
    audit.expectations.PROTOCOLS.clear()
    audit.expectations.PROTOCOLS[1] = pin


@pytest.fixture(scope="session")
def judge(checkout: Path) -> Audit:
    return lambda folder: audit_archive(str(folder), str(checkout))


@pytest.fixture
def archive() -> forge.Archive:
    return study()


@pytest.fixture
def run(tmp_path: Path, archive: forge.Archive) -> Path:
    """A valid archive on the disk."""
    return archive.write(tmp_path / "run")
