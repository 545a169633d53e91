"""Servers with ad-hoc tables: data, users with tokens, and short ways to ask."""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.users import Role, Users
from sfumato_lab.economy.business.generate import generate_business
from tests.conftest import same_key
from tests.serve.patient import PATIENCE
from tests.serve.running import Server, serving

PLACE = {"by": ["place"], "epsilon": 0.25}


@dataclass(frozen=True, kw_only=True)
class LiveServer:
    """A server with ad-hoc tables, and the tokens of an analyst and a steward."""

    server: Server
    release: Path
    analyst: str
    steward: str

    def client(self, token: str | None = None) -> httpx.Client:
        """A program of the analyst, or of whoever has this token."""
        headers = {"Authorization": f"Bearer {self.analyst if token is None else token}"}
        return httpx.Client(base_url=self.server.url, headers=headers, timeout=PATIENCE)

    def ask(self, question: dict[str, Any], path: str = "/live/tables", **parameters: str) -> httpx.Response:
        """Ask as the analyst."""
        with self.client() as client:
            return client.post(path, json=question, params=parameters)


def of_businesses(folder: Path, *, guard: str = "refuse") -> Path:
    """A release of records protected by top-contributors."""
    generate_business(folder, businesses=2_000)
    same_key(folder / "sfumato.key")
    release = folder / "release.toml"
    release.write_text(release.read_text(encoding="utf-8") + f'\n[live]\nguard = "{guard}"\n', encoding="utf-8")
    return release


def of_jobs(economy: Path, folder: Path, *, budget: float = 8.0, live: str = "quota = 100") -> Path:
    """A release that counts jobs; its budget has room for ad-hoc questions, and one analyst may spend it all."""
    shutil.copytree(economy, folder)
    release = folder / "release.toml"
    text = release.read_text(encoding="utf-8").replace("epsilon = 4.0 }", f"epsilon = {budget} }}")
    release.write_text(f"{text}\n[live]\n{live}\n", encoding="utf-8")
    return release


def users(state: Path) -> tuple[str, str]:
    """An analyst and a steward; their tokens."""
    kept = Users(state)
    return kept.add("ann", Role.analyst)[1], kept.add("stella", Role.steward)[1]


@contextmanager
def live_serving(release: Path, *arguments: str) -> Iterator[LiveServer]:
    """`sfumato serve --live` over a release and its bundle, published first."""
    run(load(release))
    analyst, steward = users(release.parent / "state")
    with _served(release, *arguments) as server:
        yield LiveServer(server=server, release=release, analyst=analyst, steward=steward)


@contextmanager
def serving_again(stopped: LiveServer, *arguments: str) -> Iterator[LiveServer]:
    """The server of a release, started anew: it knows what is on the disk."""
    with _served(stopped.release, *arguments) as server:
        yield replace(stopped, server=server)


def _served(release: Path, *arguments: str) -> AbstractContextManager[Server]:
    state = release.parent / "state"
    return serving(load(release).bundle, "--state", state, "--live", release, "--rate", "0", *arguments)
