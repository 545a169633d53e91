"""What one person more does to all that is measured: never more than ε, and hardly less."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.noise.randomness import Seeded
from sfumato.statistics.people.adaptive_curve import COUNT_SHARE, AdaptiveCurve
from sfumato.statistics.people.bins import PublicBins
from sfumato.statistics.people.curves import ChosenBins
from sfumato.statistics.people.percentiles import CurveName, curve_named
from tests.statistics.methods.graduates import AT, bins

EPSILON = Fraction(3, 2)
DRAWS = 400_000
COUNTS = np.array([0, 1, 3, 7, 12, 30, 14, 9, 2, 1, 0, 4])
PLACE = 4
"""The bin that one person more is in."""


def measured(name: CurveName, epsilon: Fraction, more: int) -> np.ndarray:
    """All that is measured of the same cell, many times over."""
    counts = COUNTS.copy()
    counts[PLACE] += more
    curve = curve_named(name, bins=bins(len(COUNTS)), at=AT, epsilon=epsilon)
    return curve.measured(np.tile(counts, (DRAWS, 1)), Seeded(90 + more))


def loss(name: CurveName, epsilon: Fraction = EPSILON) -> float:
    """The greatest log ratio of the chances, with and without the person, that all the numbers touched are so large."""
    without, with_ = (measured(name, epsilon, more) for more in (0, 1))
    found = []
    for one, other in by_number(name, epsilon, without, with_):
        touched = np.flatnonzero(other.mean(axis=0) - one.mean(axis=0) > 0.5)
        touched = np.union1d(touched, [0]) if name == "adaptive" else touched  # the first count always is
        typical = np.median(one[:, touched], axis=0)
        for steps in product((0, 1, 2), repeat=len(touched)):
            times = [int(np.all(drawn[:, touched] >= typical + steps, axis=1).sum()) for drawn in (one, other)]
            if min(times) > 400:
                found.append(abs(np.log(times[1] / times[0])))
    return max(found)


def by_number(
    name: CurveName, epsilon: Fraction, without: np.ndarray, with_: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The draws of each number of groups that the first count may decide on, which is part of what is seen."""
    curve = curve_named(name, bins=bins(len(COUNTS)), at=AT, epsilon=epsilon)
    if not isinstance(curve, AdaptiveCurve):
        return [(without, with_)]
    numbers = [curve.number_for(drawn[:, 0]) for drawn in (without, with_)]
    return [(without[numbers[0] == number], with_[numbers[1] == number]) for number in curve.numbers]


@pytest.mark.parametrize("name", ["plain", "isotonic", "hierarchical", "adaptive"])
def test_no_event_tells_more_of_a_person_than_epsilon_and_with_less_noise_some_would(name: CurveName) -> None:
    # Of 400 events and more, a log ratio is known to a twentieth or so.
    assert 0.85 * float(EPSILON) < loss(name) < float(EPSILON) + 0.2
    assert loss(name, EPSILON * Fraction("1.3")) > float(EPSILON) + 0.2


@pytest.mark.parametrize(("name", "touched"), [("plain", 1), ("isotonic", 1), ("hierarchical", 2), ("adaptive", 2)])
def test_with_the_same_draws_one_person_moves_by_one_just_the_numbers_that_epsilon_is_divided_over(
    name: CurveName, touched: int
) -> None:
    curve = curve_named(name, bins=bins(20), at=AT, epsilon=EPSILON)
    rng = np.random.default_rng(1)
    counts = rng.poisson(900, (300, 20)).astype(np.int64)  # so many that every cell has all its bins
    more = counts.copy()
    more[np.arange(300), rng.integers(0, 20, 300)] += 1
    before, after = (curve.measured(cells, Seeded(7)) for cells in (counts, more))
    assert np.array_equal(np.abs(after - before).sum(axis=1), np.full(300, touched))
    assert np.abs(after - before).max() == 1


def test_the_parts_of_epsilon_add_up_exactly() -> None:
    adaptive = AdaptiveCurve(bins=bins(20), at=AT, epsilon=EPSILON)
    assert adaptive.count_noise.epsilon + adaptive.noise.epsilon == EPSILON
    assert adaptive.count_noise.epsilon == EPSILON * COUNT_SHARE
    chosen = ChosenBins(bins=bins(20), at=AT, epsilon=EPSILON)
    assert chosen.noise.epsilon == EPSILON / 4


@pytest.mark.parametrize("place", [Fraction(25), Fraction(50), Fraction(90), Fraction("2.5")])
def test_no_choice_of_a_bin_tells_more_of_a_person_than_its_part_of_epsilon(place: Fraction) -> None:
    three = PublicBins(edges=(0, 10, 20, 30))
    chosen = ChosenBins(bins=three, at=(place,), epsilon=2 * EPSILON)  # half of it for the count
    choice, worst = chosen.choice(place), 0.0
    cells = np.array(list(product(range(5), repeat=3)))
    before = np.log(choice.probabilities(chosen.costs(cells, place)))
    for bin_ in range(3):
        after = np.log(choice.probabilities(chosen.costs(cells + np.eye(3, dtype=np.int64)[bin_], place)))
        worst = max(worst, float(np.abs(after - before).max()))
    assert 0.4 * float(EPSILON) < worst <= float(EPSILON) + 1e-9


@pytest.mark.parametrize("place", [Fraction(25), Fraction(50), Fraction("99.9")])
def test_costs_count_the_people_a_bin_misses_its_percentile_by(place: Fraction) -> None:
    chosen = ChosenBins(bins=bins(12), at=(place,), epsilon=EPSILON)
    costs = chosen.costs(COUNTS[None], place)[0]
    share, ends = place / 100, np.cumsum(COUNTS)
    for bin_, cost in enumerate(costs.tolist()):
        below, upto = int(ends[bin_] - COUNTS[bin_]), int(ends[bin_])
        wanted = share * int(COUNTS.sum())
        assert Fraction(cost, share.denominator) == max(below - wanted, wanted - upto, 0)
