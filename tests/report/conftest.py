"""What the tests of the report share: the archived study, read and told once, and parts of it that may be edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from scenarios.report import archive as archives
from scenarios.report import page as pages
from scenarios.report.events import Story
from scenarios.report.facts import Archive
from scenarios.report.story import tell
from tests.audit.real import Whole
from tests.report.browser import Watched, chromium, visit
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def file(study: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the whole archived study, drawn now."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_bytes(pages.render(study, path))
    return path


@pytest.fixture
def desktop(browser: Browser, file: Path) -> Iterator[Watched]:
    """The page at a desk. Whatever a test does there, the page asks for nothing and complains of nothing."""
    watched = visit(browser, file)
    yield watched
    assert watched.deeds == []
    watched.page.context.close()
