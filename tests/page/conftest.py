"""A real browser and a real server; every visit notes what a browser complains of."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.page.browser import Visit, chromium, visiting
from tests.serve.conftest import bundles, catalogue, server  # noqa: F401 — fixtures, used by name
from tests.serve.running import Server

Visitor = Callable[..., AbstractContextManager[Visit]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window.

    One for each file of tests: while Playwright runs, nothing else in the process can have an event loop.
    """
    program, arguments = chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Browser, server: Server) -> Visitor:  # noqa: F811
    """Open a page of the server; leaving it asserts that the browser had nothing to complain of."""
    return lambda path="/", **options: visiting(browser, server.url, path, **options)
