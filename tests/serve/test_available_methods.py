"""The methods that ad-hoc questions may name are those that the budget of the server can pay for."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import BudgetError, SfumatoError
from sfumato.live import ChargedSession, open_charged
from sfumato.release import load
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.live.available_methods import available_methods
from sfumato.serve.live.question import LiveQuestion, in_words, price_of
from sfumato.statistics.registry import METHODS, options_of
from sfumato_lab.economy.jobs.generate import Economy

WORKPLACES, FILTER = ("industry",), {"sex": ["F"]}


@contextmanager
def opened(economy: Economy, folder: Path, budget: str, epsilon: int = 4) -> Iterator[ChargedSession]:
    """The jobs of an economy under another budget; nothing was charged yet."""
    for file in economy.folder.iterdir():
        (folder / file.name).symlink_to(file)
    release = folder / "release.toml"
    text = release.read_text(encoding="utf-8")
    release.unlink()
    before = "budget = { alpha = 0.1, epsilon = 4.0 }"
    assert before in text
    release.write_text(text.replace(before, budget), encoding="utf-8")
    with open_charged(load(release), epsilon=Fraction(epsilon)) as live:
        yield live


def refusal(live: ChargedSession, method: str, by: tuple[str, ...], **question: Any) -> SfumatoError | None:
    """Why the largest question with a method is refused, with any delta that there is."""
    found: SfumatoError | None = None
    for delta in {None, float(live.most.delta) or None} if "delta" in options_of(method) else [None]:
        asked = {"by": [*by], "epsilon": float(live.most.epsilon), "delta": delta, "method": method, **question}
        try:
            found = live.price(LiveQuestion.model_validate(asked).plan(live)).refusal
        except SfumatoError as error:
            found = error
        if found is None:
            return None
    return found


def refused(live: ChargedSession, method: str, by: tuple[str, ...], **question: Any) -> bool:
    """Whether the largest question with a method is refused."""
    return refusal(live, method, by, **question) is not None


def by_workers(live: ChargedSession) -> list[tuple[str, ...]]:
    """Attributes of workers, alone and together: for every number of cells that fits into a table the first such."""
    names = [name for name in live.codelists if not live.release.data.is_public(name)]
    found: dict[int, tuple[str, ...]] = {}
    for some in (some for size in range(len(names)) for some in combinations(names, size + 1)):
        found.setdefault(cells(live, some), some)
    return [some for number, some in found.items() if number <= live.release.live.most_cells]


def cells(live: ChargedSession, by: tuple[str, ...]) -> int:
    return prod(len(live.codelists[name].codes) for name in by)


BUDGETS = {
    "strong": "budget = { alpha = 0.1, epsilon = 4.0 }",
    "with a delta": "budget = { alpha = 0.1, epsilon = 4.0, delta = 0.001 }",
    "weak": 'budget = { alpha = 0.1, epsilon = 4.0, definition = "weak" }',
    "individuals": 'budget = { alpha = 0.1, epsilon = 4.0, definition = "individuals" }',
}


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=list(BUDGETS))
def test_what_is_offered_is_answered_and_what_is_not_is_refused(budget: str, economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, budget) as live:
        found = available_methods(live)
        assert {*found.methods} | {*found.others} == {*METHODS}
        for method, restriction in found.methods.items():
            assert not refused(live, method, WORKPLACES)
            by = [some for some in by_workers(live) if refused(live, method, some)]
            among = refused(live, method, WORKPLACES, where=FILTER)
            both = [
                some for some in by_workers(live) if "sex" not in some and refused(live, method, some, where=FILTER)
            ]
            assert bool(restriction) == bool(by or among or both), restriction
            assert (method in found.for_some_workers) == (not among)
            assert ("with a filter on attributes of workers" in restriction) == bool(among or both), restriction
            assert ("by attributes of workers" in restriction) == bool(by), restriction
        for method, reason in found.others.items():
            assert reason
            assert refused(live, method, WORKPLACES)
            assert all(refused(live, method, some) for some in by_workers(live))
            assert refused(live, method, WORKPLACES, where=FILTER)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_the_number_of_combinations_of_codes_that_is_told_is_the_largest(
    epsilon: int, economy: Economy, tmp_path: Path
) -> None:
    with opened(economy, tmp_path, BUDGETS["weak"], epsilon) as live:
        found = available_methods(live)
        told = {
            method: int(match[1])
            for method, words in found.methods.items()
            if (match := re.search(r"(?:^|; )by attributes of workers up to (\d+) combinations", words))
        }
        assert told, "some methods share epsilon among the cells of workers"
        for method, most in told.items():
            for by in by_workers(live):
                assert refused(live, method, by) == (cells(live, by) > most), (method, by)


def test_a_budget_of_which_two_sexes_have_enough_offers_a_method_by_sex(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["weak"], 1) as live:
        words = available_methods(live).methods["smooth-gamma"]
        assert not refused(live, "smooth-gamma", ("sex",))
        assert refused(live, "smooth-gamma", ("age",))
    assert words.startswith("by attributes of workers up to 2 combinations of their codes (Sex); with 4 combinations")


REFUSED: list[tuple[str, dict[str, Any]]] = [
    (method, question)
    for method in ("smooth-pareto", "vector-pareto", "auto", "smooth-gamma", "laplace", "noise-infusion")
    for question in ({"by": ("place_size",), "where": {"sex": ["F"]}}, {"by": ("age",)}, {"by": ("age", "education")})
]


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["strong", "weak"])
def test_a_refusal_names_the_methods_that_would_answer_and_no_others(
    budget: str, economy: Economy, tmp_path: Path
) -> None:
    named = 0
    with opened(economy, tmp_path, BUDGETS[budget], 2) as live:
        for method, question in REFUSED:
            error = refusal(live, method, **question)
            if error is None:
                continue
            *_, methods = error.do.rpartition("can be answered by ")
            works = [name for name in available_methods(live).methods if not refused(live, name, **question)]
            assert methods.split(", ") == works, (method, question, error.do)
            named += 1
    assert named > 5


def test_an_answer_is_refused_in_the_words_of_its_price(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["strong"]) as live:
        statistic = LiveQuestion(by=["place_size"], where={"sex": ["F"]}, epsilon=2.5).plan(live)
        price = live.price(statistic)
        with pytest.raises(BudgetError) as error:
            live.answer(statistic)
    assert price.refusal is not None
    assert error.value.do == price.refusal.do
    assert error.value.do.endswith("can be answered by node-laplace, sparse-laplace")


def test_reasons_are_those_that_hold_at_the_whole_delta_of_the_budget(economy: Economy, tmp_path: Path) -> None:
    found = {}
    for name in ("strong", "with a delta"):
        (tmp_path / name).mkdir()
        with opened(economy, tmp_path / name, BUDGETS[name]) as live:
            found[name] = available_methods(live)
    strong, with_delta = found.values()
    needs_it = "smooth-laplace"
    assert needs_it in strong.others
    assert "more delta than the budget has" in strong.others[needs_it]
    assert with_delta.others == {name: why for name, why in strong.others.items() if name != needs_it}
    others = {name: words for name, words in with_delta.methods.items() if name != needs_it}
    assert others == strong.methods, "a delta changes nothing for methods that take none"


def test_the_attribute_of_workers_with_fewest_codes_says_what_is_possible(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["with a delta"], 2) as live:
        words = available_methods(live).methods["smooth-laplace"]
    assert "ln(2/delta)" in words
    assert "2.898" in words, "4 ln(2/0.001) ln(1.1), at all the delta there is"


def test_an_unknown_method_is_told_the_methods_that_are_offered(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["strong"]) as live:
        with pytest.raises(RefusedError) as error:
            LiveQuestion(by=["industry"], epsilon=1, method="smooth-sailing").plan(live)
        assert error.value.expected == f"one of {', '.join(available_methods(live).methods)}"
        assert "laplace" not in error.value.expected.removeprefix("one of ").split(", ")


def test_questions_that_are_charged_apart_are_logged_apart(economy: Economy, tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {}, {"alpha": 0.2}, {"epsilon": 2}, {"method": "smooth-gamma"}, {"method": "smooth-laplace"},
        {"method": "smooth-laplace", "delta": 0.0005},
    ]  # fmt: skip
    with opened(economy, tmp_path, BUDGETS["with a delta"]) as live:
        statistic = [LiveQuestion(**{"by": ["industry"], "epsilon": 4} | change).plan(live) for change in changes]
        same = LiveQuestion(by=["industry"], epsilon=4, alpha=0.1).plan(live)
    assert len({one.digest("") for one in statistic}) == len(changes)
    assert len({str(in_words(one)) for one in statistic}) == len(changes)
    assert in_words(same) == in_words(statistic[0])


def test_no_cost_is_told_of_what_the_budget_cannot_pay_for(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["strong"]) as live:
        told = price_of(live, LiveQuestion(by=["industry"], epsilon=1, method="laplace").plan(live), analyst=None)
    assert (told.fits, told.epsilon, told.delta) == (False, None, None)
    assert told.refusal


def test_a_weaker_budget_offers_more(economy: Economy, tmp_path: Path) -> None:
    methods = []
    for name in ("strong", "individuals"):
        (tmp_path / name).mkdir()
        with opened(economy, tmp_path / name, BUDGETS[name]) as live:
            methods.append({*available_methods(live).methods})
    strong, individuals = methods
    assert "laplace" in individuals - strong
    assert strong < individuals


def test_methods_for_people_are_refused_before_anything_is_charged(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["individuals"]) as live, pytest.raises(RefusedError, match="counts jobs"):
        LiveQuestion(by=["industry"], epsilon=1, method="noisy-quantiles").plan(live)


def test_a_question_is_refused_in_words_that_fit_together(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["strong"]) as live:
        for by, expected, found in (
            (["industry", "place", "industry"], "every attribute once", "'industry' twice"),
            ([], "at least one attribute to tabulate by", "none"),
        ):
            with pytest.raises(RefusedError) as error:
                LiveQuestion(by=by, epsilon=1).plan(live)
            assert (error.value.expected, error.value.found) == (expected, found)


def test_an_epsilon_below_the_least_of_its_method_is_refused_with_that_one(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, "budget = { alpha = 0.1, epsilon = 4.0 }") as live:
        asked = LiveQuestion.model_validate({"by": ["place", "sex"], "epsilon": 0.05, "method": "sparse-laplace"})
        assert live.release.live.least_epsilon < Fraction("0.05")
        with pytest.raises(SfumatoError, match=r"epsilon ≥ 0\.0602"):
            asked.plan(live)
