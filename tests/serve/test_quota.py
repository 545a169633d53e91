"""What one analyst may spend: a share of the budget, in questions that are worth their noise, and unknown to others."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from sfumato.errors import BudgetError
from sfumato.live import open_charged
from sfumato.live.charged import Quotas
from sfumato.release import load
from sfumato.serve.core.users import Role, Users
from sfumato_lab.economy.jobs.generate import Economy
from tests.serve.live_serving import LiveServer, live_serving, of_jobs, serving_again
from tests.serve.test_formal_live import spent

OWNERSHIP = {"by": ["ownership"], "epsilon": 0.5}


@pytest.fixture
def asked(economy: Economy, tmp_path: Path) -> Iterator[LiveServer]:
    """A server whose ad-hoc questions may cost 2 in all, those of one analyst 1."""
    with live_serving(of_jobs(economy.folder, tmp_path / "economy", live=""), "--budget-epsilon", "2") as server:
        yield server


def ask(server: LiveServer, token: str, question: dict[str, Any], path: str = "/live/tables") -> httpx.Response:
    with server.client(token) as client:
        return client.post(path, json=question)


@pytest.mark.slow
def test_an_analyst_spends_no_more_than_the_quota_and_leaves_the_rest_to_others(asked: LiveServer) -> None:
    bob = Users(asked.release.parent / "state").add("bob", Role.analyst)[1]
    assert ask(asked, bob, OWNERSHIP).status_code == 200

    # What others asked is not told: neither by the price, nor by what is left after asking.
    price = asked.ask(OWNERSHIP, "/live/prices").json()
    assert (price["epsilon"], price["answered"], price["left"]) == (0.5, False, 1.0)
    first = asked.ask(OWNERSHIP)
    assert first.content == ask(asked, bob, OWNERSHIP).content
    after = asked.ask(OWNERSHIP, "/live/prices").json()
    assert (after["epsilon"], after["answered"], after["left"]) == (0, True, 0.5)
    assert spent(asked) == Fraction(1, 2), "the ledger pays once"

    # Beyond the quota nothing is charged, however many questions come at a time and whatever the budget has left.
    questions = [OWNERSHIP | {"epsilon": epsilon} for epsilon in (0.3, 0.31, 0.32, 0.33)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(asked.ask, questions))
    assert sorted(answer.status_code for answer in answers) == [200, 403, 403, 403]
    assert "quota" in next(answer for answer in answers if answer.status_code == 403).json()["detail"]
    assert Fraction(3, 10) <= spent(asked) - Fraction(1, 2) <= Fraction(33, 100)
    assert asked.ask(OWNERSHIP).content == first.content, "a question that was asked before is answered"
    assert ask(asked, bob, OWNERSHIP | {"epsilon": 0.4}).status_code == 200

    before = asked.ask(OWNERSHIP, "/live/prices").json()["left"]
    with serving_again(asked, "--budget-epsilon", "2") as again:
        assert again.ask(OWNERSHIP, "/live/prices").json()["left"] == before, "a restart forgets no quota"


@pytest.mark.slow
def test_a_question_that_is_worth_nothing_is_refused_and_a_published_table_is_free(
    economy: Economy, tmp_path: Path
) -> None:
    release = of_jobs(economy.folder, tmp_path / "economy", live="least_epsilon = 0.2")
    with live_serving(release, "--budget-epsilon", "2") as asked:
        tiny = OWNERSHIP | {"epsilon": 0.15}
        assert asked.ask(tiny, "/live/prices").json()["fits"] is False
        refused = asked.ask(tiny)
        assert (refused.status_code, spent(asked)) == (403, 0)
        assert "at least 0.2" in refused.json()["detail"]
        published = asked.ask({"by": ["place"], "epsilon": 1.0}, "/live/prices").json()
        assert (published["answered"], published["epsilon"], published["left"]) == (True, 0, 1.0)


def test_a_quota_that_was_cut_off_by_a_crash_is_read_and_goes_on(tmp_path: Path) -> None:
    quotas = Quotas(folder=tmp_path / "quotas", most=Fraction(1))
    with quotas.taken("Ann", "a1", Fraction(1, 4)):
        pass
    with (tmp_path / "quotas/ann.jsonl").open("a") as file:
        file.write('{"question": "b2", "eps')
    assert quotas.left("ann") == Fraction(3, 4)
    with quotas.taken("ann", "c3", Fraction(1, 4)):
        pass
    with quotas.taken("ANN", "c3", Fraction(1, 4)):
        pass
    assert (quotas.left("ann"), quotas.has_asked("ann", "b2")) == (Fraction(1, 2), False)


def test_what_was_not_charged_does_not_count(tmp_path: Path) -> None:
    quotas = Quotas(folder=tmp_path / "quotas", most=Fraction(1))
    with pytest.raises(RuntimeError), quotas.taken("ann", "a1", Fraction(1, 4)):
        raise RuntimeError("the ledger refused")
    assert quotas.left("ann") == 1


def test_a_refusal_does_not_tell_an_analyst_what_others_spent(economy: Economy, tmp_path: Path) -> None:
    release = load(of_jobs(economy.folder, tmp_path / "economy", live=""))
    with open_charged(release, epsilon=Fraction(1)) as live:
        beyond = live.plan(by=("industry",), epsilon=Fraction(1))
        half = live.plan(by=("industry",), epsilon=Fraction(1, 2))
        before = live.price(beyond, analyst="eve")
        live.charge(live.plan(by=("ownership",), epsilon=Fraction(3, 8)), "bob")
        after = live.price(beyond, analyst="eve")
        assert str(before.refusal) == str(after.refusal), "a question beyond the quota is refused for the quota"
        live.charge(live.plan(by=("ownership",), epsilon=Fraction(1, 4)), "ann")
        price = live.price(half, analyst="eve")
        assert "0.375" not in str(price.refusal)
        with pytest.raises(BudgetError) as refused:
            live.charge(half, "eve")
        assert str(refused.value) == str(price.refusal)
        assert live.left("eve") == before.left
