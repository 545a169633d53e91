"""PxWeb 2 itself in a browser, over this server: what it asks for, and what a reader then sees.

Its build is made from its public sources (`npm ci`, `npm run build-artifact`) and named by SFUMATO_PXWEB2: the folder
packages/pxweb2/dist. `tests.serve.test_pxweb2_contract` holds the same requests without it.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, expect
from starlette.responses import FileResponse, Response

from tests.serve.in_thread import asking
from tests.serve.page.browser import Visit, visiting
from tests.serve.running import Server

pytestmark = pytest.mark.slow
BUILD = os.environ.get("SFUMATO_PXWEB2", "")
CELLS = "table tbody td:not(:empty)"
"""Cells of figures: rows that are headings have empty ones."""
MISSING = "SFUMATO_PXWEB2 names no build of PxWeb 2 (the folder dist with its index.html)"


@pytest.fixture(scope="module")
def pxweb2(server: Server) -> Iterator[httpx.Client]:
    """The application as it was built, configured for the server: the address, and two languages as it is shipped."""
    folder = Path(BUILD)
    if not BUILD or not (folder / "index.html").is_file():
        pytest.skip(MISSING)
    app = FastAPI()
    shipped = (folder / "config/config.js").read_text(encoding="utf-8")
    configured = re.sub(r"apiUrl: '[^']*'", f"apiUrl: {json.dumps(server.v2)}", shipped)
    assert configured != shipped

    @app.get("/{path:path}")
    async def file(path: str) -> Response:
        found = (folder / path).resolve()
        if path.endswith("config/config.js"):
            return Response(configured, media_type="text/javascript")
        whole = found.is_file() and found.is_relative_to(folder.resolve())
        return FileResponse(found if whole else folder / "index.html")

    with asking(app) as client:
        yield client


Opening = Callable[[str], AbstractContextManager[Visit]]


@pytest.fixture
def opened(browser: Browser, pxweb2: httpx.Client, server: Server) -> Opening:
    """Open a page of the application, whose requests to the server are no requests to elsewhere."""
    base = str(pxweb2.base_url).rstrip("/")

    def visit(path: str) -> AbstractContextManager[Visit]:
        return visiting(browser, base, path, also=server.url, width=1600)

    return visit


def test_the_start_page_lists_the_tables_and_their_periods(opened: Opening) -> None:
    with opened("/en/") as visit:
        expect(visit.page.get_by_text("Jobs by place, 2025").first).to_be_visible()
        expect(visit.page.get_by_text("Quarter", exact=False).first).to_be_visible()


def test_a_table_has_a_title_figures_and_its_symbols_explained(opened: Opening, server: Server) -> None:
    with opened("/en/table/turnover_by_state_industry") as visit:
        title = visit.page.get_by_role("heading", level=1)
        expect(title).to_contain_text("Turnover, total by")
        cells = visit.page.locator(CELLS)
        expect(cells.first).not_to_be_empty()
        shown = [text.strip() for text in cells.all_inner_texts()]
        found = server.get("/tables/turnover_by_state_industry/data").json()
        decimals = [unit["decimals"] for unit in found["dimension"]["contents"]["category"]["unit"].values()]
        expected = [
            ("" if value is None else f"{value:,.{decimals[at % len(decimals)]}f}") + found["status"].get(str(at), "")
            for at, value in enumerate(found["value"])
        ]
        assert len(shown) > 50, "the others come when they are scrolled to"
        assert [text.replace("\n", " ") for text in shown] == expected[: len(shown)]
        visit.page.get_by_role("button", name="Information").first.click()
        expect(visit.page.get_by_text("Symbols: ").first).to_contain_text("not published")


def test_a_language_that_the_server_does_not_speak_shows_the_same_table(opened: Opening) -> None:
    with opened("/sv/table/jobs_by_place") as visit:
        expect(visit.page.locator(CELLS).first).not_to_be_empty()
        expect(visit.page.get_by_role("heading", level=1)).to_contain_text("Jobs")
