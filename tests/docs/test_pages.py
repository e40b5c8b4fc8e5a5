"""The pages against the archive, the catalogue and the checkout: tables, names, paths, links, words."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from scenarios.catalogue import SCENARIOS, SECTIONS
from scenarios.model import SQLITE, Check, Export, Scenario
from scenarios.report.chapters import sections, tables, update
from scenarios.selection import runnable
from tests.docs.documents import DOCS, PAGES, ROOT, boxes, code_words, prose

README = ROOT / "README.md"
EVIDENCE_README = ROOT / "evidence" / "README.md"
NUMBERS = {7: "seven", 8: "eight", 9: "nine", 10: "ten"}
MOTTO = "local durability is not remote exactly-once"
# `dispatch.md` is the page of whoever uses the outbox.
CHAPTER_OF = {section: DOCS / f"{section}.md" for section in SECTIONS} | {"dispatch": DOCS / "crashing-dispatch.md"}
CHAPTERS = list(CHAPTER_OF.values())
NAMES = {scenario.name for scenario in SCENARIOS} | {
    step.name for scenario in SCENARIOS for step in scenario.steps if isinstance(step, Check | Export)
}
ENDINGS = (".jsonl", ".json", ".md", ".py", ".toml", ".lock", "/")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_every_section_has_a_chapter_with_its_table() -> None:
    for section, chapter in CHAPTER_OF.items():
        assert sections(text_of(chapter)) == [section]


@pytest.mark.parametrize("page", [*CHAPTERS, README], ids=lambda page: page.name)
def test_tables_are_those_of_the_archive(page: Path, archive: Path) -> None:
    text = text_of(page)
    assert update(text, tables(archive)) == text, "run: python -m scenarios.report.chapters evidence/study docs README.md"


def test_the_readme_tells_how_many_scenarios_each_other_section_has() -> None:
    told = re.findall(r"^\| \[(\w+)\]\(docs/([\w-]+\.md)\) \| (\d+) \|", text_of(README), re.MULTILINE)
    run = Counter(each.section for each in runnable(SCENARIOS, SQLITE))
    assert {section: (page, int(count)) for section, page, count in told} == {
        section: (chapter.name, run[section]) for section, chapter in CHAPTER_OF.items() if section != "delivery"
    }
    assert f"each of the {NUMBERS[len(SECTIONS)]} sections: {', '.join(SECTIONS)}." in text_of(README)


def test_rows_are_those_of_the_archive_s_own_tables(archive: Path) -> None:
    rows = set(text_of(archive / "tables.md").splitlines())
    found = tables(archive)
    assert list(found) == list(SECTIONS)
    for section, table in found.items():
        if section != "points":
            assert set(table.splitlines()) <= rows


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.section != "points"], ids=lambda each: each.path)
def test_a_chapter_speaks_of_each_of_its_scenarios(scenario: Scenario) -> None:
    table = re.compile(r"<!-- table: .*?<!-- end of table -->", re.DOTALL)
    assert f"`{scenario.name}`" in table.sub("", text_of(CHAPTER_OF[scenario.section]))


def test_the_chapter_of_points_names_each_scenario() -> None:
    words = set(code_words(text_of(DOCS / "points.md")))
    assert {scenario.name for scenario in SCENARIOS if scenario.section == "points"} <= words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_word_in_backquotes_is_known(page: Path, archive: Path) -> None:
    """A word with an underscore is a scenario or stands in the contract of the evidence or in the code; a path exists."""
    files = [path.relative_to(archive).as_posix() for path in archive.rglob("*")]
    contract = text_of(EVIDENCE_README) + "".join(
        text_of(path) for path in [*ROOT.glob("*/*.py"), *ROOT.glob("*/dispatch/*.py"), *ROOT.glob("*/targets/*.py")]
    )
    for word in code_words(text_of(page)):
        if re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", word):
            assert word in NAMES or word in contract, f"{page.name}: `{word}` is neither a scenario nor a word of the evidence"
        elif re.fullmatch(r"[\w./-]+", word) and word.endswith(ENDINGS):
            assert is_path(word, files), f"{page.name}: `{word}` is neither in the checkout nor in the archive"


def is_path(word: str, files: list[str]) -> bool:
    name = word.rstrip("/")
    return (ROOT / name).exists() or any(f"/{file}".endswith(f"/{name}") for file in files)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_resolves(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text_of(page))):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.is_file(), f"{page.name}: {target} leads nowhere"
        if anchor:
            assert anchor in anchors(linked), f"{page.name}: {target}: the page has no such heading"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_claimed_to_happen_exactly_once(page: Path) -> None:
    text = " ".join(text_of(page).lower().replace("*", "").split()).replace(MOTTO, "")
    if page.name == "track-record.md":
        text = re.sub('"[^"]*"', "", text)  # what others say of their packages stands there in their own words
    assert not re.search(r"exactly[- ]once", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_box_is_closed(page: Path) -> None:
    text = text_of(page)
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(boxes(text))
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda page: page.name)
def test_every_chapter_has_a_picture_with_a_boundary(chapter: Path) -> None:
    pictures = [box.content for box in boxes(text_of(chapter)) if box.kind == "mermaid"]
    assert pictures
    for picture in pictures:
        assert picture.startswith("sequenceDiagram\n")
        assert re.search(r"BOUNDARY|CUT:|CHECKPOINT|PAUSED", picture)
        assert ";" not in picture, "Mermaid takes a semicolon for the end of a line"


def test_every_page_is_in_the_index() -> None:
    index = text_of(DOCS / "README.md")
    assert all(f"({page.name})" in index for page in PAGES if page.name != "README.md")
