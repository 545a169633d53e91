"""One server for all tests of a session, over bundles of every kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.economy.generate import Economy
from sfumato.serve.catalogue import BundleSource, Catalogue, open_catalogue
from tests.serve.bundles import KINDS, publish
from tests.serve.running import Server, serving


@pytest.fixture(scope="session")
def bundles(economy: Economy, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bundle of jobs, of businesses, of a federal workforce and of a survey with a cube."""
    folder = tmp_path_factory.mktemp("bundles")
    return {kind: publish(kind, folder / kind, economy.folder) for kind in KINDS}


@pytest.fixture(scope="session")
def catalogue(bundles: dict[str, Path]) -> Catalogue:
    """The tables of all bundles."""
    return open_catalogue([BundleSource(folder=folder) for folder in bundles.values()])


@pytest.fixture(scope="session")
def server(bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`sfumato serve` with all bundles, in a process of its own."""
    state = tmp_path_factory.mktemp("serving") / "state"
    said = ("--source", "Office", "--licence", "CC-BY-4.0", "--rate", "1000000/10")  # all tests are one client to it
    with serving(*bundles.values(), "--state", state, *said) as running:
        yield running
