"""Noise for moves: its distribution, and the loss of a job over whatever histories, found by search."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.method import NOT_AVAILABLE
from sfumato.noise.randomness import Seeded
from sfumato.statistics.panel.formal_moves import MOVES, MoveLaplace, most_changed
from tests.noise.fit import ACCEPTED, REJECTED, p_value

PANEL = ("1", "2", "3", "4", "5")


def method(*epsilons: str, period: str = "quarter") -> MoveLaplace:
    spends = tuple(zip(PANEL[1:], map(Fraction, epsilons), strict=False))
    return MoveLaplace(alpha=Fraction(1), periods=spends, panel=PANEL, period=period)


def cells(count: list[int], periods: int = 5) -> Cells:
    by = (
        Dimension(name="origin", codes=tuple(map(str, range(len(count) // periods)))),
        Dimension(name="quarter", codes=PANEL[:periods]),
    )
    seen = np.tile([int(0 < place < 4) for place in range(periods)], len(count) // periods)
    columns = {"count": np.array(count), "available": seen}
    return Cells(dimensions=by, positions=np.arange(len(count)), columns=columns)


def by_hand(panel: tuple[str, ...], weights: dict[str, Fraction]) -> Fraction:
    """The greatest sum over all histories, one by one."""
    best = Fraction(0)
    for bits in product((0, 1), repeat=len(panel)):
        around = (0, *bits, 0)
        changed = [code for at, code in enumerate(panel) if bits[at] and not (around[at] and around[at + 2])]
        best = max(best, sum((weights.get(code, Fraction(0)) for code in changed), Fraction(0)))
    return best


@pytest.mark.parametrize("length", [3, 5, 8])
def test_a_job_changes_no_more_periods_than_any_history_does(length: int) -> None:
    rng, panel = np.random.default_rng(length), tuple(map(str, range(length)))
    for weights in ([1] * length, *rng.integers(1, 9, (5, length)).tolist()):
        known = {code: Fraction(weight) for code, weight in zip(panel[1:-1], weights, strict=False)}
        assert most_changed(panel, known) == by_hand(panel, known)


def loss(of: MoveLaplace, moved: dict[str, int]) -> float:
    """The greatest loss of all cells where the moves of each period differ by so much, by the masses of the noise."""
    found = 0.0
    for code, cells_moved in moved.items():
        noise = of.noises[code if of.period else ""]
        j = np.arange(-50, 51)
        one = np.log(noise.survival(np.abs(j)) - noise.survival(np.abs(j) + 1)) - np.where(j == 0, 0, np.log(2))
        found += cells_moved * float(np.abs(one[1:] - one[:-1]).max())
    return found


def histories(of: MoveLaplace) -> float:
    """The loss of the worst history: in each period in which it begins or ends, one move goes and one comes."""
    worst, seen = 0.0, [code for code, _ in of.periods]
    for bits in product((0, 1), repeat=len(PANEL)):
        around = (0, *bits, 0)
        changed = [code for at, code in enumerate(PANEL) if bits[at] and not (around[at] and around[at + 2])]
        worst = max(worst, loss(of, {code: MOVES for code in changed if code in seen}))
    return worst


@pytest.mark.parametrize(
    "of", [method("1"), method("1", "1", "1"), method("0.5", "2", "1"), method("1", "1", period="")]
)
def test_the_loss_is_epsilon_and_a_smaller_scale_loses_more(of: MoveLaplace) -> None:
    stated = float(of.guarantee().epsilon)
    assert 0.95 * stated < histories(of) <= stated + 1e-9
    smaller = replace(of)
    smaller.__dict__["noises"] = {
        code: replace(noise, epsilon=noise.epsilon / Fraction(9, 10)) for code, noise in of.noises.items()
    }
    assert histories(smaller) > 1.05 * stated


def test_moves_get_the_stated_noise_and_one_that_is_a_tenth_off_is_noticed() -> None:
    of, draws = method("0.5", "1", "2"), 40_000
    answer = of.protect(cells([7] * (5 * draws)), Seeded(4))
    for place, epsilon in ((1, 0.5), (2, 1.0), (3, 2.0)):
        off = np.abs(answer["value"][place::5] - 7)

        def survival(j: np.ndarray, scale: float, epsilon: float = epsilon) -> np.ndarray:
            q = np.exp(-epsilon / 2 / scale)
            return np.where(j <= 0, 1.0, 2 * q ** np.maximum(j, 1) / (1 + q))

        assert p_value(off, lambda j, s=survival: s(j, 1.0)) > ACCEPTED
        assert p_value(off, lambda j, s=survival: s(j, 1.1)) < REJECTED
        assert p_value(off, lambda j, s=survival: s(j, 0.9)) < REJECTED
    assert (answer["status"][0::5] == NOT_AVAILABLE).all()
    assert not answer["value"][4::5].any()


def test_intervals_hold_the_moves_and_errors_are_those_of_the_noise() -> None:
    of, draws = method("0.5", "1", "2"), 20_000
    answer = of.protect(cells([5] * (5 * draws)), Seeded(6))
    figures = of.published_figures(answer, 0.9)
    for place in (1, 2, 3):
        low, high, error = (column[place::5] for column in (figures.low, figures.high, figures.error))
        assert 0.89 < ((low <= 5) & (high >= 5)).mean() < 0.98
        assert error[0] == pytest.approx(np.abs(answer["value"][place::5] - 5).mean(), rel=0.03)
    assert np.isnan(figures.error[0])
