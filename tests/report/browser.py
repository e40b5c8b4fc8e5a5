"""A real headless Chromium for tests, which tells everything that a page does behind its back.

Debian's package is driven by Playwright; nothing is downloaded. One browser serves a module: Playwright's event loop must not
outlive it, or tests that run loops of their own would meet it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# As root, and without a single connection of the browser's own.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium, and the page is tried in it")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page and what it did: words on the console, errors, dialogs, requests beyond its own file."""

    def __init__(self, page: Page, own: str) -> None:
        self.page = page
        self.deeds: list[str] = []
        page.on("console", lambda message: self.deeds.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.deeds.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: None if request.url.split("#")[0] == own else self.deeds.append(request.url))

    def _dialog(self, dialog: Dialog) -> None:
        self.deeds.append(f"dialog: {dialog.message}")
        dialog.dismiss()


def visit(browser: Browser, file: Path, fragment: str = "", **context: Any) -> Watched:
    """Open `file` in a context of its own."""
    page = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context}).new_page()
    page.set_default_timeout(10_000)
    watched = Watched(page, file.as_uri())
    page.goto(f"{file.as_uri()}{fragment}")
    return watched
