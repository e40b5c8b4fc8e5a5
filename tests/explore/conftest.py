"""One ground for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.explore.ground import Ground


@pytest.fixture(scope="session")
def ground() -> Iterator[Ground]:
    opened = Ground()
    yield opened
    opened.close()
