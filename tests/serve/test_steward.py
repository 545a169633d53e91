"""The steward's page: budgets, history, expected errors and questions; for stewards, and without charging anything."""

from collections.abc import Iterator

import httpx
import pytest

from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato_lab.economy.jobs.generate import Economy
from tests.serve import patient
from tests.serve.live_serving import PLACE, LiveServer, live_serving, of_businesses, of_jobs

PATHS = ("/steward/budget", "/steward/history", "/steward/what-if", "/steward/queries")


@pytest.fixture(scope="module")
def asked(economy: Economy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server over jobs of which the analyst asked one question, three times."""
    release = of_jobs(economy.folder, tmp_path_factory.mktemp("steward") / "economy")
    with live_serving(release, "--budget-epsilon", "1") as server:
        for _ in range(3):
            assert server.ask(PLACE).status_code == 200
        yield server


@pytest.fixture
def steward(asked: LiveServer) -> Iterator[httpx.Client]:
    with asked.client(asked.steward) as client:
        yield client


@pytest.mark.slow
def test_only_stewards_see_it(asked: LiveServer) -> None:
    with asked.client() as analyst:
        assert {analyst.get(path).status_code for path in (*PATHS, "/steward")} == {403}
    assert patient.get(f"{asked.server.url}/steward").status_code == 303
    assert {patient.get(f"{asked.server.url}{path}").status_code for path in PATHS} == {401}


@pytest.mark.slow
def test_budgets_are_those_of_the_ledger(asked: LiveServer, steward: httpx.Client) -> None:
    found = steward.get("/steward/budget").json()
    release = load(asked.release)
    balance = Ledger.open(release.ledger).balance(release.account)
    (account,) = found["accounts"]
    assert (account["epsilon"], account["left"]) == (8.0, float(balance.remaining_epsilon))
    assert (account["spent"], account["added"]) == (float(balance.spent_epsilon), float(balance.added_epsilon))
    assert (found["live"]["epsilon"], found["live"]["spent"]) == (1.0, 0.25)


def test_the_history_has_the_charge_once_and_its_answer(steward: httpx.Client) -> None:
    history = steward.get("/steward/history").json()
    live = [(entry["kind"], entry["table"]) for entry in history if entry["release"] == "live tables"]
    assert live == [("answer", "live-place"), ("charge", "live-place")]
    assert steward.get("/steward/history", params={"most": 1}).json() == history[:1]
    assert steward.get("/steward/history", params={"most": 0}).status_code == 400


def test_more_epsilon_and_less_alpha_make_smaller_errors(asked: LiveServer, steward: httpx.Client) -> None:
    before = steward.get("/steward/budget").json()
    found = steward.get("/steward/what-if", params={"alpha": 0.1, "epsilon": 1, "size": 1000}).json()
    errors = {(point["alpha"], point["epsilon"]): point["error"] for point in found["points"]}
    assert errors[0.1, 0.5] > errors[0.1, 1.0] > errors[0.1, 2.0]
    assert errors[0.2, 1.0] > errors[0.1, 1.0] > errors[0.05, 1.0]
    price = asked.ask(PLACE | {"epsilon": 0.5}, "/live/prices").json()
    assert errors[0.1, 0.5] == pytest.approx(price["error"]["examples"]["1000"])
    assert steward.get("/steward/budget").json() == before
    missing = steward.get("/steward/what-if", params={"method": "smooth-gamma", "epsilon": 0.5}).json()["points"]
    assert None in [point["error"] for point in missing], "the method does not exist everywhere"


@pytest.mark.parametrize("wrong", [{"method": "secret"}, {"alpha": "-1"}, {"epsilon": "nan"}, {"size": "0"}])
def test_parameters_that_make_no_sense_are_refused(steward: httpx.Client, wrong: dict[str, str]) -> None:
    assert steward.get("/steward/what-if", params=wrong).status_code == 400
    page = steward.get("/steward", params=wrong)
    assert (page.status_code, 'class="fault"' in page.text) == (400, True)


def test_who_asked_what_is_counted(steward: httpx.Client) -> None:
    found = steward.get("/steward/queries").json()
    top = next(one for one in found["top"] if one["table"] == "live-place")
    assert top["times"] >= 3
    assert top["users"] == ["ann"]
    assert top["asked"] == {"by": ["place"], "method": "smooth-pareto", "alpha": 0.1, "epsilon": 0.25}
    assert {one["user"] for one in found["latest"]} >= {"ann", "stella"}


def test_the_page_has_it_all_without_scripts(steward: httpx.Client) -> None:
    page = steward.get("/steward", params={"epsilon": "2", "alpha": "0.1"})
    assert page.status_code == 200
    for text in ("Ad-hoc questions", "<meter", "<svg", "α = 0.2", "live-place", "smooth-gamma", "no-store"):
        assert text in page.text + page.headers["cache-control"]
    assert "<script>" not in page.text
    assert 'style="' not in page.text


@pytest.mark.slow
def test_records_have_a_steward_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        live_serving(of_businesses(tmp_path_factory.mktemp("steward") / "business")) as server,
        server.client(server.steward) as client,
    ):
        assert client.get("/steward/budget").json() == {"accounts": [], "live": None, "windows": []}
        assert client.get("/steward/history").json()
        assert client.get("/steward").status_code == 200
