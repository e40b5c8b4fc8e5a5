"""The archive that the pages speak of. It is made by `run.py` and belongs to the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.documents import ARCHIVE


@pytest.fixture(scope="session")
def archive() -> Path:
    if not (ARCHIVE / "manifest.json").is_file():
        pytest.fail(f"{ARCHIVE} is missing: archive a run with: python run.py --out evidence/study", pytrace=False)
    return ARCHIVE
