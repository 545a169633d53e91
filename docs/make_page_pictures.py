"""Take the pictures of docs/page.md from a server over synthetic tables: python docs/make_page_pictures.py."""

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from playwright.sync_api import Page, sync_playwright

from sfumato.keys import new_key
from sfumato.release import load
from sfumato.running import run
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import BundleSource, Catalogue, open_catalogue
from sfumato.serve.run import listening
from sfumato_lab.economy.business.generate import generate_business
from sfumato_lab.economy.federal.generate import generate_federal
from sfumato_lab.economy.jobs.generate import generate

PICTURES = Path(__file__).parent / "images"
_WIDE, _TALL = 1280, 900


def main() -> None:
    """Publish tables of three kinds, serve them, and picture the page as readers see it."""
    PICTURES.mkdir(exist_ok=True)
    with (
        TemporaryDirectory() as folder,
        _served(_catalogue(Path(folder)), Path(folder) / "state") as url,
        sync_playwright() as playwright,
    ):
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for name, path, light, width, prepare in _SHOTS:
            page = browser.new_page(
                viewport={"width": width, "height": _TALL}, color_scheme=light, reduced_motion="reduce"
            )
            page.goto(url + path)
            prepare(page)
            page.screenshot(path=PICTURES / f"page-{name}.png")
            sys.stdout.write(f"page-{name}.png: written\n")
            page.close()
        browser.close()


def _catalogue(folder: Path) -> Catalogue:
    generate(folder / "jobs", jobs=100_000)
    generate_business(folder / "business", businesses=20_000)
    generate_federal(folder / "federal", persons=100_000, quarters=8)
    for keyed in ("business", "federal"):
        new_key(folder / keyed / "sfumato.key")
    bundles = [run(load(folder / kind / "release.toml")).bundle for kind in ("jobs", "business", "federal")]
    return open_catalogue([BundleSource(folder=bundle) for bundle in bundles])


@contextmanager
def _served(catalogue: Catalogue, state: Path) -> Iterator[str]:
    """A server in this process, on a free port of this machine."""
    bound = listening("127.0.0.1", 0)
    settings = Settings(state=state, source="Office of Statistics", license="CC-BY-4.0")
    server = uvicorn.Server(uvicorn.Config(make_app(catalogue, settings), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield f"http://localhost:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


def _as_it_is(_page: Page) -> None:
    pass


def _choosing(page: Page) -> None:
    """With a list of codes opened and searched."""
    page.locator("#v1-codes summary").click()
    page.get_by_label("Search codes").first.fill("trade")


def _at_the_table(page: Page) -> None:
    page.locator("table.figures").evaluate("table => table.closest('.scroll').scrollIntoView()")


def _at_the_map(page: Page) -> None:
    """With an area or a flow lit up, together with its row."""
    page.locator("figure.drawn").evaluate("figure => figure.scrollIntoView()")
    page.locator("svg.map a").nth(7).evaluate("link => link.focus({ preventScroll: true })")


def _explained(page: Page) -> None:
    page.locator("#how-pxwebpy summary").click()
    page.locator("#how-title").evaluate("heading => heading.scrollIntoView()")


_SHOTS = (
    ("start", "/", "light", _WIDE, _as_it_is),
    ("table", "/tables/jobs_by_place?chart=ranking", "light", _WIDE, _as_it_is),
    ("choose", "/tables/turnover_by_state_industry", "light", _WIDE, _choosing),
    ("errors", "/tables/turnover_by_state_industry?totals=1", "light", _WIDE, _at_the_table),
    ("dark", "/tables/indicators", "dark", _WIDE, _as_it_is),
    ("flows", "/tables/flows_between_states?chart=matrix", "light", _WIDE, _as_it_is),
    ("map", "/tables/jobs_by_place", "light", _WIDE, _at_the_map),
    ("map-flows", "/tables/flows_between_states", "light", _WIDE, _at_the_map),
    ("explained", "/tables/profit_by_industry_size", "light", _WIDE, _explained),
    ("narrow", "/tables/profit_by_industry_size", "light", 360, _as_it_is),
)
"""Name, address, light or dark, width, and what to do first."""


if __name__ == "__main__":
    main()
