"""The methods that ad-hoc questions may name are those that the budget of the server can pay for."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.economy.generate import Economy
from sfumato.errors import SfumatoError
from sfumato.live import FormalLive, open_formal
from sfumato.methods.registry import METHODS
from sfumato.release_file import load
from sfumato.serve.errors import RefusedError
from sfumato.serve.live.asked import LiveQuestion, in_words
from sfumato.serve.live.offered import offered
from sfumato.serve.live.priced import priced

WORKPLACES, WORKERS = ("industry",), ("sex",)


@contextmanager
def opened(economy: Economy, folder: Path, budget: str, epsilon: int = 4) -> Iterator[FormalLive]:
    """The jobs of an economy under another budget; nothing was charged yet."""
    for file in economy.folder.iterdir():
        (folder / file.name).symlink_to(file)
    release = folder / "release.toml"
    text = release.read_text(encoding="utf-8")
    release.unlink()
    before = "budget = { alpha = 0.1, epsilon = 4.0 }"
    assert before in text
    release.write_text(text.replace(before, budget), encoding="utf-8")
    with open_formal(load(release), epsilon=Fraction(epsilon)) as live:
        yield live


def refused(live: FormalLive, method: str, by: tuple[str, ...]) -> bool:
    """Whether the largest question with a method is refused."""
    try:
        question = LiveQuestion(by=[*by], epsilon=float(live.most.epsilon), method=method)
        price = live.price(question.planned(live))
    except SfumatoError:
        return True
    return price.refusal is not None


BUDGETS = {
    "strong": "budget = { alpha = 0.1, epsilon = 4.0 }",
    "with a delta": "budget = { alpha = 0.1, epsilon = 4.0, delta = 0.001 }",
    "weak": 'budget = { alpha = 0.1, epsilon = 4.0, definition = "weak" }',
    "individuals": 'budget = { alpha = 0.1, epsilon = 4.0, definition = "individuals" }',
}


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=list(BUDGETS))
def test_what_is_offered_is_answered_and_what_is_not_is_refused(budget: str, economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, budget) as live:
        found = offered(live)
        assert {*found.methods} | {*found.others} == {*METHODS}
        for method, restriction in found.methods.items():
            assert not refused(live, method, WORKPLACES)
            assert refused(live, method, WORKERS) == bool(restriction)
        for method, reason in found.others.items():
            assert reason
            assert refused(live, method, WORKPLACES)
            assert refused(live, method, WORKERS)


def test_reasons_are_those_that_hold_at_the_whole_delta_of_the_budget(economy: Economy, tmp_path: Path) -> None:
    found = {}
    for name in ("strong", "with a delta"):
        (tmp_path / name).mkdir()
        with opened(economy, tmp_path / name, BUDGETS[name]) as live:
            found[name] = offered(live)
    strong, with_delta = found.values()
    needs_it = "smooth-laplace"
    assert needs_it in strong.others
    assert "more delta than the budget has" in strong.others[needs_it]
    assert "ln(8/delta)" in with_delta.methods[needs_it]
    assert "13.71" in with_delta.methods[needs_it], "16 ln(8/0.001) ln(1.1), at all the delta there is"
    assert with_delta.others == {name: why for name, why in strong.others.items() if name != needs_it}
    others = {name: words for name, words in with_delta.methods.items() if name != needs_it}
    assert others == strong.methods, "a delta changes nothing for methods that take none"


def test_an_unknown_method_is_told_the_methods_that_are_offered(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["strong"]) as live:
        with pytest.raises(RefusedError) as error:
            LiveQuestion(by=["industry"], epsilon=1, method="smooth-sailing").planned(live)
        assert error.value.expected == f"one of {', '.join(offered(live).methods)}"
        assert "laplace" not in error.value.expected.removeprefix("one of ").split(", ")


def test_questions_that_are_charged_apart_are_logged_apart(economy: Economy, tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {}, {"alpha": 0.2}, {"epsilon": 2}, {"method": "smooth-gamma"}, {"method": "smooth-laplace"},
        {"method": "smooth-laplace", "delta": 0.0005},
    ]  # fmt: skip
    with opened(economy, tmp_path, BUDGETS["with a delta"]) as live:
        planned = [LiveQuestion(**{"by": ["industry"], "epsilon": 4} | change).planned(live) for change in changes]
        same = LiveQuestion(by=["industry"], epsilon=4, alpha=0.1).planned(live)
    assert len({one.digest("") for one in planned}) == len(changes)
    assert len({str(in_words(one)) for one in planned}) == len(changes)
    assert in_words(same) == in_words(planned[0])


def test_no_cost_is_told_of_what_the_budget_cannot_pay_for(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["strong"]) as live:
        told = priced(live, LiveQuestion(by=["industry"], epsilon=1, method="laplace").planned(live))
    assert (told.fits, told.epsilon, told.delta) == (False, None, None)
    assert told.refusal


def test_a_weaker_budget_offers_more(economy: Economy, tmp_path: Path) -> None:
    methods = []
    for name in ("strong", "individuals"):
        (tmp_path / name).mkdir()
        with opened(economy, tmp_path / name, BUDGETS[name]) as live:
            methods.append({*offered(live).methods})
    strong, individuals = methods
    assert "laplace" in individuals - strong
    assert strong < individuals


def test_methods_for_people_are_refused_before_anything_is_charged(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["individuals"]) as live, pytest.raises(RefusedError, match="counts jobs"):
        LiveQuestion(by=["industry"], epsilon=1, method="noisy-quantiles").planned(live)


def test_a_question_is_refused_in_words_that_fit_together(economy: Economy, tmp_path: Path) -> None:
    with opened(economy, tmp_path, BUDGETS["strong"]) as live:
        for by, expected, found in (
            (["industry", "place", "industry"], "every attribute once", "'industry' twice"),
            ([], "at least one attribute to tabulate by", "none"),
        ):
            with pytest.raises(RefusedError) as error:
                LiveQuestion(by=by, epsilon=1).planned(live)
            assert (error.value.expected, error.value.found) == (expected, found)
