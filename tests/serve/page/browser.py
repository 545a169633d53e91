"""A visit to the server with a browser: what was loaded, and what went wrong."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120_000
"""Milliseconds after which a page that does not show what is expected has failed, however busy the machine is."""
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
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
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


@contextmanager
def signed_in(browser: Browser, url: str, token: str, path: str, **options: Any) -> Iterator[Visit]:
    """Open a page after signing in with a token, as a person does."""
    with visiting(browser, url, "/sign-in", **options) as visit:
        visit.page.get_by_label("Token").fill(token)
        visit.page.get_by_role("main").get_by_role("button", name="Sign in").click()
        visit.page.wait_for_url(f"{url}/")
        visit.open(path)
        yield visit


def serious(visit: Visit) -> list[str]:
    """What an automatic check of accessibility finds on a page, everything on it unfolded."""
    visit.page.wait_for_load_state()
    visit.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    found = Axe().run(visit.page).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"][:3]]


def press_until(page: Page, key: str, reached: str) -> None:
    """Press a key until an element has the focus; what the scripts of a page bring is there when it has loaded."""
    page.wait_for_load_state()
    for _ in range(150):
        if page.evaluate("selector => document.activeElement?.matches(selector) ?? false", reached):
            return
        page.keyboard.press(key)
    raise AssertionError(f"the keyboard does not reach {reached}")


def sideways(visit: Visit) -> int:
    """How far a page can be scrolled sideways, in pixels."""
    found: int = visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found
