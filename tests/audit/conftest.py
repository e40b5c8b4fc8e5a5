"""What the tests of the audit share: a small checkout, a valid archive, and the audit run against them in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import audit.expectations
from audit.archive import Report, audit_archive
from audit.expectations import POSTGRES
from scenarios.engine import postgres
from tests.audit import forge, held_books
from tests.audit.catalogue import catalogue
from tests.audit.play import study
from tests.audit.real import Whole
from tests.whole import whole_run

PINS = dict(audit.expectations.PROTOCOLS)
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


@pytest.fixture(scope="session")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as they were when the tests began: whoever edits the checkout meanwhile does not disturb them."""
    return whole_run(tmp_path_factory).root


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The whole study, run once by run.py of this checkout."""
    return Whole(whole_run(tmp_path_factory).out)


@pytest.fixture(scope="session")
def booked(frozen: Path, tmp_path_factory: pytest.TempPathFactory) -> held_books.Study:
    """Some scenarios of the dispatch outbox, run once, for the tests of the audit's own books."""
    return held_books.run(frozen, tmp_path_factory.mktemp("books") / "study")


@pytest.fixture(scope="session")
def booked_on_postgres(frozen: Path, tmp_path_factory: pytest.TempPathFactory) -> held_books.Study:
    """Others of its scenarios, run once on a private PostgreSQL server."""
    if postgres.programs() is None:
        pytest.skip(postgres.MISSING)
    return held_books.run(frozen, tmp_path_factory.mktemp("books") / "study", POSTGRES)


@pytest.fixture(scope="session")
def judge_real(frozen: Path) -> Audit:
    """The audit as it is in this checkout, with its own pins."""

    def call(folder: Path) -> Report:
        with pytest.MonkeyPatch.context() as patch:
            for version, digest in PINS.items():
                patch.setitem(audit.expectations.PROTOCOLS, version, digest)
            return audit_archive(str(folder), str(frozen))

    return call
