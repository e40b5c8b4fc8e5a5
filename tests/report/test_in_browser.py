"""The page in a real headless Chromium, from `file://`: by mouse, by keyboard, without script; and it does nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from scenarios.report import archive as archives
from scenarios.report import page as pages
from scenarios.report.facts import Archive
from tests.audit.real import Whole
from tests.report import hostile
from tests.report.browser import Watched, visit

PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
UNKEYED = "delivery/unkeyed_delivery"

OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory: pytest.TempPathFactory, whole: Whole) -> Path:
    folder = hostile.write(whole, tmp_path_factory.mktemp("hostile") / "run")
    path = folder / "report.html"
    path.write_bytes(pages.render(archives.read(folder), path))
    return path


def shown(watched: Watched) -> int:
    return watched.page.locator("tr[data-for]:visible").count()


# Evidence that wants to be more than text.


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without"])
def test_hostile_evidence_is_inert(browser: Browser, hostile_file: Path, script: bool) -> None:
    watched = visit(browser, hostile_file, java_script_enabled=script)
    page = watched.page
    if script:
        page.evaluate(OPEN_ALL)
        assert page.evaluate("typeof hacked") == "undefined"
    assert page.locator("img").count() == 0
    assert page.locator("h1").is_visible(), "a style of the evidence's own would hide everything"
    assert "<img src=x onerror=hacked()>" in page.locator("body").inner_text()
    assert page.locator("a[href^=javascript]").count() == 0
    assert watched.deeds == []
    page.context.close()


def test_the_policy_stops_a_script_even_if_it_got_into_the_page(browser: Browser, file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    planted = b"<main><img src=x onerror=hacked()><script>var hacked = 1</script>"
    bad.write_bytes(file.read_bytes().replace(b"<main>", planted, 1))
    watched = visit(browser, bad)
    assert watched.page.evaluate("typeof hacked") == "undefined"
    assert sum("Content Security Policy" in deed for deed in watched.deeds) >= 2, "the image, and the script"
    watched.page.context.close()


def test_hostile_evidence_does_not_make_a_phone_scroll(browser: Browser, hostile_file: Path) -> None:
    watched = visit(browser, hostile_file, **PHONE)
    watched.page.evaluate(OPEN_ALL)
    assert watched.page.evaluate("document.scrollingElement.scrollWidth") <= 360
    watched.page.context.close()


# At a desk.


def test_it_opens_and_shows_everything(desktop: Watched, study: Archive) -> None:
    count = len(study.scenarios)
    assert desktop.page.title() == f"halt23: PASS, {count} scenarios"
    assert desktop.page.locator("#shown").inner_text() == f"{count} of {count} scenarios shown"
    assert shown(desktop) == count


def test_it_filters_by_section_receiver_verdict_and_words(desktop: Watched, study: Archive) -> None:
    page = desktop.page
    page.select_option("select[name=section]", "delivery")
    assert shown(desktop) == 5
    assert page.locator(".part:visible").count() == 1
    page.select_option("select[name=kind]", "unkeyed")
    assert shown(desktop) == 1
    assert page.locator("#shown").inner_text() == f"1 of {len(study.scenarios)} scenarios shown"
    page.select_option("select[name=section]", "")
    page.select_option("select[name=kind]", "")
    page.select_option("select[name=verdict]", "counterexample")
    counterexamples = shown(desktop)
    assert counterexamples == page.locator("tr[data-counter]").count() > 10
    page.select_option("select[name=verdict]", "PASS")
    page.fill("input[name=words]", "TORN receipt")
    assert 0 < shown(desktop) == page.locator("details.panel:visible").count() < 10
    assert all("torn" in text.lower() and "receipt" in text for text in page.locator("tr[data-for]:visible").all_inner_texts())
    page.fill("input[name=words]", "no such word")
    assert shown(desktop) == 0


def test_a_link_opens_its_panel_even_if_that_was_filtered_out(desktop: Watched) -> None:
    page = desktop.page
    page.click(f'tr[data-for="{UNKEYED}"] a')
    panel = page.locator(f'details[id="{UNKEYED}"]')
    assert panel.get_attribute("open") is not None
    assert panel.locator("svg").is_visible()
    assert "DUPLICATE" in panel.inner_text()
    assert page.evaluate("document.activeElement.parentElement.id") == UNKEYED
    page.fill("input[name=words]", "ledger")
    page.goto(page.url.split("#")[0] + "#wire/request_reset")
    assert page.locator('details[id="wire/request_reset"] svg').is_visible()


def test_raw_records_and_processes_are_one_click_away(desktop: Watched) -> None:
    page = desktop.page
    page.click(f'tr[data-for="{UNKEYED}"] a')
    panel = page.locator(f'details[id="{UNKEYED}"]')
    panel.get_by_text("Raw records").click()
    assert panel.get_by_text('effect effect-2 {"arrival":"arrival-2"').is_visible()
    panel.get_by_text("Processes and exit codes").click()
    assert panel.get_by_text("HALT_AT=send.response#1 python -m outbox.dispatcher").is_visible()
    assert panel.get_by_text("exit 23", exact=True).is_visible()
    panel.get_by_text("The same story in sentences").click()
    assert panel.locator("ol li").count() > 10


def test_it_opens_and_closes_what_is_shown(desktop: Watched) -> None:
    page = desktop.page
    page.select_option("select[name=section]", "unknown")
    page.click("#open")
    assert page.locator("details.panel[open]").count() == page.locator("details.panel:visible").count() == 4
    page.click("#close")
    assert page.locator("details.panel[open]").count() == 0


def test_the_keyboard_alone_is_enough(desktop: Watched) -> None:
    page = desktop.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "tables"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('tr[data-for]') !== null"):
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    first = page.evaluate("document.activeElement.closest('tr').dataset.for")
    page.keyboard.press("Enter")
    panel = page.locator(f'details[id="{first}"]')
    page.wait_for_function("document.activeElement.tagName === 'SUMMARY'")
    assert panel.get_attribute("open") is not None
    page.keyboard.press("Enter")
    assert panel.get_attribute("open") is None


def test_it_prints(desktop: Watched) -> None:
    page = desktop.page
    page.click(f'tr[data-for="{UNKEYED}"] a')
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF-")
    assert len(printed) > 20_000
    page.emulate_media(media="print")
    assert not page.locator("#filter").is_visible()
    assert page.locator(f'details[id="{UNKEYED}"] svg').is_visible()
    assert not page.locator('details[id="delivery/keyed_delivery"]').is_visible(), "only what is open is printed"


def test_without_script_the_tables_and_panels_are_there(browser: Browser, file: Path, study: Archive) -> None:
    watched = visit(browser, file, java_script_enabled=False)
    page = watched.page
    assert not page.locator("#filter").is_visible()
    assert shown(watched) == len(study.scenarios)
    page.click(f'details[id="{UNKEYED}"] > summary')
    assert page.locator(f'details[id="{UNKEYED}"] svg').is_visible()
    assert watched.deeds == []
    page.context.close()
