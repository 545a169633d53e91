"""A real browser and a real server; every visit notes what a browser complains of."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import Browser, sync_playwright

from sfumato_lab.economy.jobs.generate import Economy
from tests.serve.live_serving import LiveServer, live_serving, of_jobs
from tests.serve.page.browser import PATIENCE, Visit, chromium, signed_in, visiting
from tests.serve.running import Server

Visitor = Callable[..., AbstractContextManager[Visit]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window.

    One for each file of tests: while Playwright runs, nothing else in the process can have an event loop.
    """
    program, arguments = chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=arguments, timeout=PATIENCE)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Browser, server: Server) -> Visitor:
    """Open a page of the server; leaving it asserts that the browser had nothing to complain of."""
    return lambda path="/", **options: visiting(browser, server.url, path, **options)


@pytest.fixture(scope="module")
def asked(economy: Economy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server over jobs whose ad-hoc questions may cost 2 in all."""
    release = of_jobs(economy.folder, tmp_path_factory.mktemp("asked") / "economy")
    with live_serving(release, "--budget-epsilon", "2") as live:
        yield live


@pytest.fixture
def analyst(browser: Browser, asked: LiveServer) -> Visitor:
    """Open a page of the server with ad-hoc tables, signed in as an analyst."""
    return lambda path="/live", **options: signed_in(browser, asked.server.url, asked.analyst, path, **options)


@pytest.fixture
def steward(browser: Browser, asked: LiveServer) -> Visitor:
    """The same for a steward."""
    return lambda path="/steward", **options: signed_in(browser, asked.server.url, asked.steward, path, **options)
