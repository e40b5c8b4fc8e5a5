"""What the tests of the report share: the archived study, read and told once, and parts of it that may be edited."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from scenarios.report import archive as archives
from scenarios.report.events import Story
from scenarios.report.facts import Archive
from scenarios.report.story import tell
from tests.audit.real import Whole
from tests.support import ROOT

STUDY = ROOT / "evidence" / "study"


@pytest.fixture(scope="session")
def study() -> Archive:
    if not (STUDY / "manifest.json").is_file():
        pytest.fail(f"{STUDY} is missing: archive a run with: python run.py --out evidence/study", pytrace=False)
    return archives.read(STUDY)


@pytest.fixture(scope="session")
def stories(study: Archive) -> Mapping[str, Story]:
    return {scenario.path: tell(scenario) for scenario in study.scenarios}


@pytest.fixture(scope="session")
def whole() -> Whole:
    return Whole(STUDY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"
