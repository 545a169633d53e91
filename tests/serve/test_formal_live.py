"""Ad-hoc counts of jobs: charged once, before anything is counted, and never beyond the budget of the server."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from sfumato.live import open_charged
from sfumato.live.charged import LIVE
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.serve.live.advice import advise
from sfumato_lab.economy.jobs.generate import Economy
from tests.serve.live_serving import PLACE, LiveServer, live_serving, of_jobs

BUDGET = "2"


@pytest.fixture(scope="module")
def asked(economy: Economy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server over jobs whose ad-hoc questions may cost 2 in all."""
    release = of_jobs(economy.folder, tmp_path_factory.mktemp("formal") / "economy")
    with live_serving(release, "--budget-epsilon", BUDGET) as server:
        yield server


def spent(server: LiveServer) -> Fraction:
    """What ad-hoc questions were charged, from the ledger itself."""
    release = load(server.release)
    history = Ledger.open(release.ledger).history(release.account)
    return sum((e.guarantee.epsilon for e in history if e.kind == "charge" and e.release == LIVE), Fraction(0))


def test_a_new_question_is_charged_and_a_repeated_one_gets_the_stored_answer(asked: LiveServer) -> None:
    before = spent(asked)
    price = asked.ask(PLACE, "/live/prices").json()
    assert (price["epsilon"], price["answered"], price["fits"]) == (0.25, False, True)
    assert spent(asked) == before, "a price costs nothing"
    first = asked.ask(PLACE)
    assert first.status_code == 200, first.text
    assert spent(asked) == before + Fraction(1, 4)
    assert asked.ask(PLACE | {"epsilon": 0.250}).content == first.content
    assert asked.ask(PLACE, outputFormat="csv").status_code == 200
    again = asked.ask(PLACE, "/live/prices").json()
    assert (again["epsilon"], again["answered"], again["left"]) == (0, True, price["left"] - 0.25)
    assert spent(asked) == before + Fraction(1, 4)


def test_the_expected_error_is_told_before_and_more_epsilon_makes_it_smaller(asked: LiveServer) -> None:
    errors = [asked.ask(PLACE | {"epsilon": e}, "/live/prices").json()["error"] for e in (0.3, 0.6, 1.2)]
    assert errors[0]["small"] > errors[1]["small"] > errors[2]["small"] > 0
    assert errors[0]["examples"]["1000"] > errors[2]["examples"]["1000"]


@pytest.mark.parametrize("wrong", [True, "1", "0.25", [1]])
@pytest.mark.parametrize("name", ["epsilon", "alpha", "delta"])
def test_what_is_no_number_is_refused_and_costs_nothing(name: str, wrong: Any, asked: LiveServer) -> None:
    before = spent(asked)
    for path in ("/live/prices", "/live/tables"):
        assert asked.ask(PLACE | {name: wrong}, path).status_code == 400
    assert spent(asked) == before


def test_twenty_who_ask_the_same_at_once_are_charged_once(asked: LiveServer) -> None:
    before = spent(asked)
    question = {"by": ["industry", "ownership"], "epsilon": 0.1}
    turned = question | {"by": question["by"][::-1]}
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(asked.ask, [question, turned] * 10))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert spent(asked) == before + Fraction(1, 10)


def test_a_question_that_does_not_fit_is_refused_with_what_is_left(asked: LiveServer) -> None:
    left = asked.ask(PLACE, "/live/prices").json()["left"]
    before = spent(asked)
    question = {"by": ["industry"], "epsilon": 1.9}
    price = asked.ask(question, "/live/prices").json()
    assert (price["fits"], price["epsilon"]) == (False, 1.9)
    answer = asked.ask(question)
    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"
    assert f"epsilon = {left:g}" in answer.json()["detail"]
    assert "epsilon = 1.9" in answer.json()["detail"]
    assert spent(asked) == before


def test_a_narrower_alpha_costs_more(asked: LiveServer) -> None:
    price = asked.ask(PLACE | {"alpha": 0.05}, "/live/prices").json()
    assert price["epsilon"] > 0.25
    assert price["alpha"] == 0.05


MISTAKES: dict[str, tuple[dict[str, Any], int]] = {
    "no epsilon": ({"by": ["place"]}, 400),
    "too much": (PLACE | {"epsilon": 3}, 400),
    "too many digits": (PLACE | {"epsilon": 0.12345678}, 400),
    "negative": (PLACE | {"epsilon": -1}, 400),
    "an alpha far away": (PLACE | {"alpha": 50}, 400),
    "no formal method": (PLACE | {"method": "noise-infusion"}, 400),
    "unknown method": (PLACE | {"method": "secret"}, 400),
    "totals": (PLACE | {"totals": True}, 400),
    "a measure": (PLACE | {"measure": "earnings", "statistic": "total"}, 400),
    "unknown code": (PLACE | {"where": {"place": ["'; drop table jobs; --"]}}, 400),
    "a filter on nothing known": (PLACE | {"where": {"no_such_thing": ["x"]}}, 400),
    "a filter in capitals": (PLACE | {"where": {"Industry": ["11"]}}, 400),
    "a filter on a measure": (PLACE | {"where": {"earnings": ["1"]}}, 400),
    "an empty filter": (PLACE | {"where": {"industry": []}}, 400),
    "a weaker definition": (PLACE | {"method": "laplace"}, 403),
}


@pytest.mark.parametrize(("question", "status"), MISTAKES.values(), ids=list(MISTAKES))
def test_what_is_refused_is_not_charged(asked: LiveServer, question: dict[str, Any], status: int) -> None:
    before = spent(asked)
    answer = asked.ask(question)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert spent(asked) == before


def test_the_page_charges_only_at_the_second_button(asked: LiveServer) -> None:
    before = spent(asked)
    form = {"by": "ownership", "epsilon": "0.2", "method": "smooth-pareto"}
    with asked.client() as client:
        price = client.get("/live", params=form)
        assert "This would cost ε = 0.2" in price.text
        assert spent(asked) == before
        answer = client.post("/live", data=form, follow_redirects=True)
        assert "What was done to these numbers" in answer.text
        assert spent(asked) == before + Fraction(1, 5)
        assert "the stored answer costs nothing" in client.get("/live", params=form).text


def test_the_page_says_before_that_errors_beside_the_figures_will_be_upper_estimates(asked: LiveServer) -> None:
    """Figures that are likely to be usable were all marked as too uncertain in the answer that was paid for."""
    form = {"by": "place", "method": "smooth-pareto"}
    with asked.client() as client:
        uncertain, sure = (client.get("/live", params=form | {"epsilon": one}).text for one in ("0.125", "1"))
    share = re.search(
        r"all jobs of a cell: ([\d,]+) % of a figure of 1,000 jobs, which is marked \*\* therefore", uncertain
    )
    assert share
    assert float(share[1].replace(",", "")) >= 50
    assert "Error beside a figure of 1,000 jobs" in sure
    assert "all jobs of a cell" not in sure


@pytest.mark.parametrize(
    ("by", "method"),
    [
        (("place",), "smooth-pareto"),
        (("place",), "sinh-box"),
        (("place",), "node-laplace"),
        (("place", "sex"), "smooth-pareto"),
        (("place",), "sparse-laplace"),
    ],
)
def test_what_the_page_says_will_stand_beside_a_figure_stands_there(
    by: tuple[str, ...], method: str, economy: Economy, tmp_path: Path
) -> None:
    """It was the noise of the largest establishments: half of it by sex, 65 % instead of 5 and 100 % instead of 10."""
    question: dict[str, Any] = {"by": by, "epsilon": Fraction(1), "method": method}
    with open_charged(load(of_jobs(economy.folder, tmp_path / "economy")), epsilon=Fraction(2)) as live:
        planned = live.plan(**question)
        shown = advise(live, question, planned, [], epsilons=(1, 2), wish=None).chosen.shown
        rows = live.answer(planned).select([*by, "value", "error"])
    if method == "sparse-laplace":
        assert shown is None, "the largest establishments of the data tell it"
        return
    # Of kinds of workers, as many of each: the mean of a place.
    places = rows.group_by("place").aggregate([("value", "mean"), ("error", "mean")]).to_pylist()
    size, error = max((place["value_mean"], place["error_mean"]) for place in places)
    assert shown == pytest.approx(error / (1_000 if method == "node-laplace" else size), rel=0.02)


def test_readers_write_numbers_as_they_do_and_read_what_was_not_understood(asked: LiveServer) -> None:
    def page(**form: str) -> str:
        with asked.client() as client:
            return unescape(client.get("/live", params={"by": "place"} | form).text)

    assert "Das würde ε = 0,25 kosten" in page(epsilon="0,25", lang="de")
    assert "größter Betrieb der Zelle" in page(epsilon="0,25", method="smooth-pareto", lang="de")
    for text in ("much", "1,000"):
        assert f"“{text}” is no number for ε." in page(epsilon=text)
    assert "ε can be from 0.01 to 2 here," in page(epsilon="50")
    unknown = page(by="nothing", epsilon="0.25")
    assert "Found: nothing. Needed: attributes: place, industry" in unknown
    assert "data.attributes" not in unknown, "what the release file describes is not for analysts to change"


def test_what_the_release_published_costs_nothing(asked: LiveServer) -> None:
    release = load(asked.release)
    table = release.tables[0]
    question = {"by": list(table.by), "epsilon": float(table.protect.epsilon or 0)}
    assert asked.ask(question, "/live/prices").json()["answered"]


@pytest.mark.slow
def test_live_needs_a_budget(economy: Economy, tmp_path: Path) -> None:
    from tests.cli.call import call

    release = of_jobs(economy.folder, tmp_path / "economy")
    call("run", release)
    bundle = load(release).bundle
    said = call("serve", bundle, "--live", release, "--state", tmp_path / "state", "--port", "0", refused=True)
    assert "--budget-epsilon" in said.stderr
