"""The methods that ad-hoc questions may name are those that the budget of the server can pay for."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.economy.generate import Economy
from sfumato.errors import SfumatoError
from sfumato.live import FormalLive, open_formal
from sfumato.methods.registry import METHODS
from sfumato.release_file import load
from sfumato.serve.errors import RefusedError
from sfumato.serve.live.asked import LiveQuestion
from sfumato.serve.live.offered import offered

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
