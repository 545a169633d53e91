"""Percentiles of values that people round: declared, their intervals hold; the step is part of the question."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.noise.randomness import Seeded
from sfumato.statistics.people.percentiles import NoisyQuantiles, bins_of_guess

AT = tuple(map(Fraction, (10, 25, 50, 75, 90)))
GROUPS = 200


def coverage(step: int, people: int) -> tuple[np.ndarray, float]:
    """The share of groups whose interval of 95 % holds the true percentile of values in cents, and the mean error."""
    bins = bins_of_guess("adaptive", median=250_000, sigma=Fraction("0.6"), number=40, minimum=0)
    bins = bins if step == 1 else bins.between_multiples(step)
    method = NoisyQuantiles(
        alpha=Fraction(1, 10), epsilon=Fraction(3), at=AT, edges=bins.edges, tails=bins.tails, step=step
    )
    drawn = np.random.default_rng(step + people)
    centres = np.log(250_000) + drawn.normal(0, 0.2, (GROUPS, 1))
    values = np.sort(np.rint(np.exp(centres + drawn.normal(0, 0.45, (GROUPS, people))) / step) * step, axis=1)
    counts = np.stack([np.histogram(row, bins=np.array(bins.edges, dtype=np.float64))[0] for row in values])
    true = np.stack([values[:, int(np.ceil(float(at) / 100 * people)) - 1] for at in AT], axis=1)
    curve = method.percentile_curve
    found = method._published(curve.percentiles(curve.measured(counts, Seeded(step + people))))
    value, error, status = (found[name].reshape(true.shape) for name in ("value", "error", "status"))
    told = status == 0
    held = np.abs(value - true) <= 1.96 * error
    return np.array([held[told[:, at], at].mean() for at in range(len(AT))]), float(
        np.abs(value / true - 1)[told].mean()
    )


@pytest.mark.slow
@pytest.mark.parametrize("people", [100, 500, 3_000])
@pytest.mark.parametrize("step", [10_000, 25_000])
def test_intervals_hold_for_earnings_in_hundreds_and_in_quarters_of_a_thousand(step: int, people: int) -> None:
    held, off = coverage(step, people)
    assert held.min() >= 0.93
    assert off < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("people", [100, 500, 3_000])
def test_intervals_hold_for_earnings_that_are_not_rounded(people: int) -> None:
    assert coverage(1, people)[0].mean() >= 0.93


def test_a_step_keeps_the_name_of_questions_without_one() -> None:
    assert "step" not in repr(NoisyQuantiles(alpha=Fraction(1, 10), epsilon=Fraction(1)))
