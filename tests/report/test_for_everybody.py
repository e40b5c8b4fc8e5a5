"""The page for whoever reads it: contrast, headings, keyboard, a phone's width; in a real headless Chromium."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from scenarios.report import page as pages
from scenarios.report.facts import Archive
from tests.report.browser import Watched, visit
from tests.report.test_in_browser import OPEN_ALL, PHONE, UNKEYED, shown

# Of every text that can be seen: its contrast with what is behind it, by the formula of WCAG 2.
CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, part, i) => sum + part * linear(colour[i] / 255), 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = new Map();
  const closed = "details.panel:not([open]),tbody tr:nth-child(n+9)";
  const filter = (node) => node.matches && node.matches(closed) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ALL, filter);
  while (walker.nextNode()) {
    if (walker.currentNode.nodeType !== 3) continue;
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script,style") || !element.getClientRects().length) continue;
    const style = getComputedStyle(element), drawn = element.closest("svg");
    let back = behind(element);
    if (drawn && !element.closest("title")) {
      const at = element.getStartPositionOfChar(0);
      const boxes = [...drawn.querySelectorAll("path.b")].filter((box) => box.isPointInFill(new DOMPoint(at.x + 1, at.y - 4)));
      if (boxes.length) back = parse(getComputedStyle(boxes.pop()).fill);
    }
    const pair = [light(parse(drawn ? style.fill : style.color)), light(back)].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const look = element.getAttribute("class") || (drawn && element.parentElement.getAttribute("class"));
    const key = (drawn ? "svg " : "") + element.tagName + "." + look;
    found.set(key, Math.min(ratio, found.get(key) || 99));
  }
  return [...found];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_enough(browser: Browser, file: Path, scheme: str) -> None:
    watched = visit(browser, file, f"#{UNKEYED}", color_scheme=scheme)
    for path in ("wire/response_cut_in_body", "history/head_of_line", "identity/receiver_lost_journal"):
        watched.page.evaluate("(id) => { document.getElementById(id).open = true; }", path)
    opened = "details[open] details, section > details"
    watched.page.evaluate("(which) => document.querySelectorAll(which).forEach((each) => { each.open = true; })", opened)
    found = dict(watched.page.evaluate(CONTRAST))
    assert {key: ratio for key, ratio in found.items() if ratio < 4.5} == {}
    assert {"svg text.bad", "svg text.badbold", "svg text.cut m", "svg text.replay m", "svg text.new"} <= found.keys()
    back = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]
    watched.page.context.close()


def test_a_hint_in_a_field_has_contrast_enough(browser: Browser, file: Path) -> None:
    watched = visit(browser, file, color_scheme="dark")
    colours = watched.page.evaluate("""() => {
      const field = document.querySelector("input[name=words]"), hint = getComputedStyle(field, "::placeholder");
      return [hint.color, hint.opacity, getComputedStyle(field).backgroundColor];
    }""")
    assert colours == ["rgb(169, 176, 183)", "1", "rgb(20, 23, 26)"]
    watched.page.context.close()


@pytest.mark.parametrize("path", [UNKEYED, "wire/request_reset"])
def test_a_link_into_the_page_brings_the_keyboard_there(browser: Browser, file: Path, path: str) -> None:
    watched = visit(browser, file, f"#{path}")
    page = watched.page
    page.wait_for_timeout(200)
    assert page.evaluate("document.activeElement.tagName + ' ' + document.activeElement.parentElement.id") == f"SUMMARY {path}"
    page.context.close()


def test_the_edge_of_a_picture_that_scrolls_is_shaded(browser: Browser, file: Path) -> None:
    watched = visit(browser, file, f"#{UNKEYED}", **PHONE)
    frame = watched.page.locator(f'details[id="{UNKEYED}"] > .scroll')
    assert frame.evaluate("(box) => box.scrollWidth > box.clientWidth")
    attachments = frame.evaluate("(box) => getComputedStyle(box).backgroundAttachment")
    assert attachments == "local, local, scroll, scroll", "two shades stay at the edges, two covers scroll with the picture"
    watched.page.context.close()


def test_on_a_phone_names_break_at_their_underscores(browser: Browser, file: Path) -> None:
    watched = visit(browser, file, **PHONE)
    inside = watched.page.evaluate("""() => [...document.querySelectorAll("tbody th a, summary h4")].flatMap((name) =>
      [...name.childNodes].filter((node) => node.nodeType === 3).filter((node) => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return new Set([...range.getClientRects()].map((rect) => Math.round(rect.top))).size > 1;
      }).map((node) => node.data))""")
    assert inside == []
    watched.page.context.close()


def test_what_is_in_doubt_can_be_filtered(browser: Browser, study: Archive, tmp_path: Path) -> None:
    first, second, *rest = study.scenarios
    path = tmp_path / "report.html"
    path.write_bytes(pages.render(replace(study, scenarios=(replace(first, counts=None), second, *rest[:5])), path))
    watched = visit(browser, path)
    watched.page.select_option("select[name=verdict]", "caution")
    assert shown(watched) == 1
    assert "4 counts are missing or differ" in watched.page.locator("tr[data-for]:visible").inner_text()
    assert watched.deeds == []
    watched.page.context.close()


def test_on_a_phone_the_pictures_scroll_and_the_page_does_not(browser: Browser, file: Path) -> None:
    watched = visit(browser, file, **PHONE)
    page = watched.page
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
    wide = page.evaluate("[...document.querySelectorAll('.scroll')].filter((box) => box.clientWidth > 360).length")
    assert wide == 0
    assert watched.deeds == []
    page.context.close()


def test_headings_tables_and_pictures_tell_what_they_are(desktop: Watched) -> None:
    page = desktop.page
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map((each) => Number(each.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.evaluate("[...document.querySelectorAll('th')].every((each) => each.scope)")
    assert page.evaluate(
        "[...document.querySelectorAll('svg.dg:not([aria-hidden])')].every((each) => each.ariaLabel && each.role)"
    )
    assert page.evaluate("[...document.querySelectorAll('.panel')].every((each) => each.querySelector('ol li'))")
    assert page.evaluate("[...document.querySelectorAll('select,input')].every((each) => each.labels.length === 1)")
    assert page.evaluate("document.documentElement.lang") == "en"
