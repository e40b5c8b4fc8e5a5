"""Fixtures: a box of real processes for the whole session, and a world of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from outbox import faults
from tests.outbox.world import World
from tests.support import ProcessBox


@pytest.fixture(scope="session")
def box() -> Iterator[ProcessBox]:
    """Starts processes by forking; closed after the last test."""
    with ProcessBox() as opened:
        yield opened


@pytest.fixture
def world(box: ProcessBox, tmp_path: Path) -> Iterator[World]:
    """An empty outbox directory and a receiver that is not started yet."""
    opened = World(box, tmp_path)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def nothing_armed() -> Iterator[None]:
    """Whatever a test armed in this process is gone after it."""
    yield
    faults.disarm()
