"""What a server says when it starts: where everything is, and what is left of its budget."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.live import ChargedSession, open_charged
from sfumato.release import load
from sfumato.serve.app import addresses
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.users import Role, Users
from sfumato.serve.live.queue import LiveQueue
from sfumato.serve.run import warnings
from sfumato_lab.economy.jobs.generate import Economy
from tests.serve.live_serving import of_jobs


@pytest.fixture
def live(economy: Economy, tmp_path: Path) -> Iterator[ChargedSession]:
    """Jobs whose ad-hoc questions may cost 2, of a whole budget of 4."""
    release = load(of_jobs(economy.folder, tmp_path / "economy", budget=4.0))
    with open_charged(release, epsilon=Fraction(2)) as opened:
        yield opened


def said(live: ChargedSession, state: Path, budget: str = "2") -> list[str]:
    return list(warnings(Settings(state=state), LiveQueue(live=live), budget=budget))


def ask(live: ChargedSession, epsilon: str) -> None:
    live.answer(live.plan(by=("ownership",), epsilon=Fraction(epsilon)))


def test_the_budget_is_told_when_little_or_nothing_is_left(live: ChargedSession, tmp_path: Path) -> None:
    Users(tmp_path / "state").add("ann", Role.analyst)
    assert said(live, tmp_path / "state") == []
    ask(live, "1.9")
    assert said(live, tmp_path / "state") == ["The budget for ad-hoc questions is nearly spent: ε = 0.1 of 2 is left."]
    ask(live, "0.1")
    (spent,) = said(live, tmp_path / "state")
    assert "is spent (ε = 0 of 2 is left)" in spent


def test_a_whole_budget_that_is_smaller_is_told(economy: Economy, tmp_path: Path) -> None:
    Users(tmp_path / "state").add("ann", Role.analyst)
    release = load(of_jobs(economy.folder, tmp_path / "economy", budget=4.0))
    with open_charged(release, epsilon=Fraction(4)) as live:
        ask(live, "1")
        (words,) = said(live, tmp_path / "state")
    assert "has ε = 3 left, which is less than the 4 that ad-hoc questions may cost" in words


def test_a_server_that_nobody_can_ask_says_how_to_add_somebody(live: ChargedSession, tmp_path: Path) -> None:
    (words,) = said(live, tmp_path / "state")
    assert words.startswith("Nobody can ask yet: sfumato users add")


def test_a_budget_without_anything_to_ask_is_told(tmp_path: Path) -> None:
    (words,) = warnings(Settings(state=tmp_path), None, budget="1")
    assert "--budget-epsilon has no effect" in words


def test_every_interface_is_named_and_only_what_is_on(catalogue: Catalogue, live: ChargedSession) -> None:
    address = "http://localhost:8000"
    first, *public = addresses(catalogue, address, None)
    assert address in first
    for path in ("/", "/api/v2", "/api/v1", "/sdmx/2.1"):
        assert any(f"{address}{path}" in line for line in public)
    assert not any(path in line for line in public for path in ("/live", "/steward"))
    both = list(addresses(catalogue, address, LiveQueue(live=live)))
    assert [line for line in both if f"{address}/live" in line or f"{address}/steward" in line] == both[-2:]
