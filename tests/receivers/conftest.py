"""One spawner for all tests of the receivers, and a factory for receivers on a fresh directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.receivers.http import Receiver
from tests.support import ProcessBox

Open = Callable[..., Receiver]


@pytest.fixture(scope="session")
def box() -> Iterator[ProcessBox]:
    with ProcessBox() as opened:
        yield opened


@pytest.fixture
def receiver(box: ProcessBox, tmp_path: Path) -> Iterator[Open]:
    """Start a receiver: `receiver(kind="keyed", port=0, halt_at=None)`, always on the same directory. Killed at the end."""
    started: list[Receiver] = []

    def start(kind: str = "keyed", port: int = 0, halt_at: str | None = None) -> Receiver:
        started.append(Receiver(box, tmp_path / "receiver", kind, port, halt_at))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
