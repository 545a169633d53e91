"""Totals and means of people by discrete Laplace noise: what a record costs, what is drawn, and what is told of it."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.arrays import Floats
from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.method import NOT_AVAILABLE
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Seeded
from sfumato.statistics.each_period import EachPeriod
from sfumato.statistics.people.laplace_sums import LACKING, BoundedSums, LaplaceMean, LaplaceTotal
from tests.noise.fit import ACCEPTED, REJECTED, p_value

EPSILON = Fraction(3, 2)
PAY = {"alpha": Fraction(1), "epsilon": EPSILON, "low_y": 0, "high_y": 12}
SIGNED = {**PAY, "low_y": -9, "high_y": 4}
WEIGHED = {"largest_weight": 3, "weight_steps": 6}
"""Weights up to 3 in halves."""
TRIALS = 40_000


def total(**options: Any) -> LaplaceTotal:
    return LaplaceTotal(**{**PAY, **options})


def mean(**options: Any) -> LaplaceMean:
    return LaplaceMean(**{**PAY, **options})


def cells(people: int, each: float, n: int = 1, steps: int = 1) -> Cells:
    """The same group many times over, whose people have so much each on average."""
    columns = {"count": np.full(n, people * steps), "sum_y": np.full(n, round(people * each * steps))}
    group = Dimension(name="group", codes=tuple(map(str, range(n))))
    return Cells(dimensions=(group,), positions=np.arange(n), columns=columns)


def records(method: BoundedSums) -> list[tuple[int, int]]:
    """Every value with every weight, in steps."""
    return [*product(range(method.low_y, method.high_y + 1), range(1, method.weight_steps + 1))]


def with_one_more(before: Cells, value: int, steps: int) -> Cells:
    columns = {"count": before["count"] + steps, "sum_y": before["sum_y"] + value * steps}
    return Cells(dimensions=before.dimensions, positions=before.positions, columns=columns)


def sums(method: Any, counted: Cells) -> list[int]:
    """What noise is added to."""
    found = method.halves(counted) if hasattr(method, "halves") else (method.totals(counted),)
    return [int(one[0]) for one in found]


def loss(method: Any, noise: Geometric, value: int, steps: int) -> float:
    """The greatest log ratio of anything that is published, when one record is added to any of many groups."""
    published, worst = np.arange(-600, 601), 0.0
    for halves in range(method.fraction):  # what others weigh decides how sums are rounded
        before = with_one_more(cells(0, 0), 1, halves)
        pairs = zip(sums(method, before), sums(method, with_one_more(before, value, steps)), strict=True)
        losses = [float(np.abs(noise.log_mass(published - a) - noise.log_mass(published - b)).max()) for a, b in pairs]
        worst = max(worst, sum(losses))  # the draws are independent
    return worst


# The guarantee.


@pytest.mark.parametrize("bounds", [PAY, SIGNED], ids=["pay", "signed"])
@pytest.mark.parametrize("weights", [{}, WEIGHED], ids=["alike", "weighted"])
@pytest.mark.parametrize("kind", [LaplaceTotal, LaplaceMean])
def test_no_record_costs_more_than_epsilon_some_cost_all_and_a_smaller_scale_would_not_do(
    kind: type[Any], weights: dict[str, int], bounds: dict[str, Any]
) -> None:
    method = kind(**bounds, **weights)
    found = max(loss(method, method.noise, *record) for record in records(method))
    assert 0.95 * float(EPSILON) <= found <= float(EPSILON) * (1 + 1e-9)
    smaller = Geometric(epsilon=method.noise.epsilon * Fraction(10, 9))
    assert max(loss(method, smaller, *record) for record in records(method)) > 1.05 * float(EPSILON)


def test_every_value_costs_a_mean_the_same_whatever_it_is() -> None:
    losses = [loss(mean(), mean().noise, value, 1) for value in range(13)]
    assert losses == pytest.approx([float(EPSILON)] * 13, rel=1e-9)


def test_a_value_beyond_the_bounds_or_a_heavier_record_would_cost_more() -> None:
    assert loss(total(), total().noise, 13, 1) > float(EPSILON) * 1.05
    weighed = mean(**WEIGHED)
    assert loss(weighed, weighed.noise, 5, 7) > float(EPSILON) * 1.05


def test_a_person_with_the_whole_history_costs_what_all_periods_spend_together() -> None:
    for method in (total(periods=3), mean(periods=3)):
        assert 3 * method.period_epsilon == method.guarantee().epsilon == EPSILON
        assert method.guarantee().definition == "individuals"
        assert method.of_one_period().noise == method.noise
    each = EachPeriod(period="year", methods=(("1", mean(epsilon=Fraction(1))), ("2", mean(epsilon=Fraction(1, 2)))))
    assert each.guarantee().epsilon == Fraction(3, 2)
    assert each.fewest == mean(epsilon=Fraction(1, 2)).fewest


# What is drawn.


@pytest.mark.parametrize("method", [total(high_y=40), mean(high_y=40), mean(**WEIGHED)], ids=repr)
def test_noise_is_drawn_by_its_distribution_and_a_tenth_more_or_less_would_be_noticed(method: Any) -> None:
    counted = cells(20, 3, 2 * TRIALS, method.fraction)
    answer = method.protect(counted, Seeded(7))
    drawn = [answer["value"] - sums(method, counted)[0]]
    drawn += [answer[LACKING] - sums(method, counted)[1]] if LACKING in answer.columns else []

    def survival(noise: Geometric) -> Any:
        def beyond(j: Any) -> Floats:
            far = noise.survival(np.abs(j)) / 2
            return np.where(j > 0, far, 1 - noise.survival(np.abs(j) + 1) / 2)

        return beyond

    for one in drawn:
        assert p_value(one, survival(method.noise)) > ACCEPTED
        for factor in (Fraction(11, 10), Fraction(9, 10)):
            assert p_value(one, survival(Geometric(epsilon=method.noise.epsilon * factor))) < REJECTED
    if len(drawn) > 1:
        assert abs(np.corrcoef(drawn)[0, 1]) < 4 / np.sqrt(2 * TRIALS)


def test_totals_of_weights_are_rounded_once_and_no_record_moves_them_by_more_than_is_hidden() -> None:
    method = total(**{**SIGNED, **WEIGHED})
    for steps in range(6):
        before = with_one_more(cells(0, 0), 1, steps)
        moved = [
            int(method.totals(with_one_more(before, *one))[0] - method.totals(before)[0]) for one in records(method)
        ]
        assert max(map(abs, moved)) <= method.moves == 27
    assert method.totals(with_one_more(cells(0, 0), 3, 5)).tolist() == [8]  # 7.5


# What is told.


@pytest.mark.parametrize(("people", "each"), [(20, 0), (20, 5), (20, 11), (100, 6), (1_000, 11)])
@pytest.mark.parametrize("high", [12, 250_000])
def test_intervals_of_means_hold_the_mean_in_nine_of_ten_cases(people: int, each: int, high: int) -> None:
    method = mean(high_y=high)
    true = each * high / 12
    answer = method.protect(cells(people, true, TRIALS), Seeded(3))
    figures = method.published_figures(answer, 0.9)
    some = answer["status"] == 0
    assert some.mean() > 0.995
    held = ((figures.low <= true + 1e-9) & (true - 1e-9 <= figures.high))[some].mean()
    if each == 0:  # beyond a bound no mean is missed
        assert 0.945 < held < 0.97
    else:
        assert 0.895 < held < 0.93


def exact_coverage(method: LaplaceMean, share: float) -> float:
    """How often the interval of many people holds a share, by all pairs of draws."""
    step = float(method.noise.epsilon)
    most = int(60 / step) + 5
    j = np.arange(-most, most + 1)
    mass = np.exp(method.noise.log_mass(j))
    known, reaches = method._quantiles(0.9)
    larger = max(share, 1 - share)
    reach = float(np.interp(larger, known, reaches)) / step + larger / 2
    off = np.abs((1 - share) * j[:, None] - share * j[None, :]) <= reach + 1e-9
    return float((mass[:, None] * mass[None, :] * off).sum())


@pytest.mark.parametrize("epsilon", ["0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5"])
def test_of_shares_the_interval_holds_in_at_least_nine_of_ten_cases_whatever_the_share(epsilon: str) -> None:
    method = mean(high_y=1, epsilon=Fraction(epsilon))
    found = [exact_coverage(method, share) for share in np.linspace(0, 1, 41)]
    assert min(found) >= 0.9


@pytest.mark.parametrize("weights", [{}, {"largest_weight": 3, "weight_steps": 3_000}], ids=["alike", "weighted"])
@pytest.mark.parametrize("each", [0, 3, 6, 12])
def test_errors_are_those_that_are_told_and_fall_with_the_number_of_people(each: int, weights: dict[str, int]) -> None:
    method = mean(**weights)
    counted = cells(400, each, TRIALS, method.fraction)
    answer = method.protect(counted, Seeded(5))
    off = np.abs(method.published_means(answer) - each)
    assert off.mean() == pytest.approx(method.expected_error(counted)[0], rel=0.03)
    told = method.published_figures(answer, 0.9).error.mean() / off.mean()
    # A mean beyond a bound is off by what it is beyond it, at least.
    assert told == pytest.approx(1, rel=0.03) if each in (3, 6) else 0.97 < told < 1.25
    planned = float(method.planned_errors(np.array([400]))[0])
    assert 0.74 * planned < off.mean() < 1.03 * planned
    people, totals = method.published_people(answer) - 400, method.published_totals(answer) - 400 * each
    assert np.abs(people).mean() == pytest.approx(1.5 * method.largest_weight / float(EPSILON), rel=0.03)
    assert np.abs(totals).mean() == pytest.approx(12 * method.largest_weight / float(EPSILON), rel=0.03)
    assert abs(people.mean()) < 5 * people.std() / np.sqrt(TRIALS)
    assert abs(totals.mean()) < 5 * totals.std() / np.sqrt(TRIALS)


@pytest.mark.parametrize("high", [1, 12, 250_000])
def test_a_group_of_nobody_has_a_mean_in_one_of_a_thousand_cases_at_most(high: int) -> None:
    method = mean(high_y=high)
    answer = method.protect(cells(0, 0, 10 * TRIALS), Seeded(9))
    given = (answer["status"] == 0).mean()
    assert 0.0003 < given < 0.00115
    assert set(np.unique(answer["status"])) == {0, NOT_AVAILABLE}
    assert np.isnan(method.published_figures(answer, 0.9).low[answer["status"] != 0]).all()
    larger = method.protect(cells(3 * method.fewest, high / 2, TRIALS), Seeded(9))
    assert (larger["status"] == 0).mean() > 0.99


def test_both_sums_together_err_less_than_a_sum_and_a_count_that_divide_epsilon() -> None:
    for share in (0.05, 0.16, 0.5, 0.9):
        ours = 2 * (share**2 + (1 - share) ** 2)
        # A sum about the middle, of sensitivity 1/2, with the best division for this very share, which nobody knows.
        divided = min(
            2 * (0.25 / (1 - part) ** 2 + (share - 0.5) ** 2 / part**2) for part in np.linspace(0.01, 0.99, 99)
        )
        centred = 2 * (1 / 0.5**2 + share**2 / 0.5**2)  # above the minimum, by halves
        assert ours < centred / 3
        assert ours < divided or abs(share - 0.5) < 0.1


def test_intervals_of_totals_hold_them_and_know_where_no_total_is() -> None:
    for options, each in ((PAY, 3), (SIGNED, -4), ({**PAY, "low_y": -12, "high_y": -1}, -6)):
        method = total(**options)
        answer = method.protect(cells(4, each, TRIALS), Seeded(4))
        figures = method.published_figures(answer, 0.9)
        held = ((figures.low <= 4 * each) & (4 * each <= figures.high)).mean()
        assert held > 0.9 - 4 * np.sqrt(0.09 / TRIALS)
        assert (figures.low.min() >= 0) == (method.low_y >= 0)
        assert (figures.high.max() <= 0) == (method.high_y <= 0)
        assert (figures.error >= method.noise.expected_magnitude).all()


# Refusals.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"low_y": 5, "high_y": 5}, "a minimum below the maximum"),
        ({"high_y": 2**41}, "at most 2^40"),
        ({"periods": 0}, "one period"),
        ({"largest_weight": 0}, "largest_weight from 1"),
        ({"weights_above": "cut"}, '"refuse" or "clip"'),
        ({"high_y": 2**40, "epsilon": Fraction(1, 10**6)}, "leaves room in 64 bits"),
        ({"epsilon": Fraction(0)}, "epsilon"),
    ],
)
@pytest.mark.parametrize("kind", [total, mean])
def test_parameters_that_no_noise_is_made_for_are_refused(kind: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(MethodError) as refusal:
        kind(**options)
    assert words in refusal.value.expected


def test_sums_that_leave_64_bits_are_refused_without_a_number_of_the_data() -> None:
    huge = cells(1, 1)
    huge = Cells(
        dimensions=huge.dimensions,
        positions=huge.positions,
        columns={"count": np.array([2**60]), "sum_y": np.array([2**61])},
    )
    for method in (total(), mean()):
        with pytest.raises(MethodError) as refusal:
            method.protect(huge, Seeded(1))
        assert "outside these limits" in refusal.value.found
    assert replace(mean(), high_y=10**6).most_people * 2 * 10**6 < 2**61
