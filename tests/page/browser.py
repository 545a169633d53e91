"""A visit to the server with a browser: what was loaded, and what went wrong."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = (
    "The page is tested with Chromium, and none was found. Install it (Debian: apt-get install chromium), "
    "or run `make test` as root, which does."
)


def chromium() -> tuple[str, list[str]]:
    """The program and how to start it; without it tests are skipped, except under CI, where they fail."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(MISSING)
    # Chromium refuses to sandbox what root starts.
    return program, ["--no-sandbox"] if os.geteuid() == 0 else []


@dataclass(kw_only=True)
class Visit:
    """An open page, and everything the browser complained of."""

    page: Page
    url: str
    refused: bool
    """Whether pages are expected to be refused, which browsers mention."""
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to a path of the server, or to a whole address."""
        self.page.goto(path if path.startswith("http") else f"{self.url}{path}")

    def figures(self) -> list[list[str]]:
        """The table as it is read: every row with its heads, marks included."""
        read = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
        found: list[list[str]] = self.page.locator("table.figures tbody tr").evaluate_all(read)
        return found

    def said(self, message: ConsoleMessage) -> None:
        """Note an error or warning; a refused page is not a fault of the page."""
        expected = self.refused and message.text.startswith("Failed to load resource")
        if message.type in ("error", "warning") and not expected:
            self.complaints.append(message.text)

    def asked(self, request: Request) -> None:
        """Note a request to any other host."""
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc and not request.url.startswith("blob:"):
            self.complaints.append(f"asked {request.url}")


@contextmanager
def visiting(
    browser: Browser, url: str, path: str, *, refused: bool = False, width: int = 1280, **options: Any
) -> Iterator[Visit]:
    """Open a page in a fresh context; options are those of a browser context."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    context.set_default_timeout(15_000)
    visit = Visit(page=context.new_page(), url=url, refused=refused)
    context.on("console", visit.said)
    context.on("weberror", lambda error: visit.complaints.append(str(error.error)))
    context.on("request", visit.asked)
    try:
        visit.open(path)
        yield visit
        assert visit.complaints == []
    finally:
        context.close()
