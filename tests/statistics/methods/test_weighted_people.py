"""Noise for people with weights hides one of the largest weight, and errors that are told stay true."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Seeded
from sfumato.statistics.people.adaptive_curve import AdaptiveCurve
from sfumato.statistics.people.curves import ChosenBins
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.noisy_regression import LineSums, NoisyRegression
from sfumato.statistics.people.percentiles import CURVES, CurveName, NoisyQuantiles, bins_of_guess, curve_named
from sfumato.statistics.people.sensitivity import GlobalSensitivity, mean_reach, prediction_reach
from sfumato.statistics.people.small_samples import RecordLaplace
from tests.noise.fit import ACCEPTED, REJECTED, p_value
from tests.statistics.methods.graduates import AT, bins
from tests.statistics.methods.groups import groups

EPSILON, LARGEST = Fraction(3, 2), 20
ENDS: dict[str, Any] = {"alpha": Fraction(1), "low_x": 0, "high_x": 3, "low_y": 0, "high_y": 5}


def loss(noise: Geometric, moved: int) -> float:
    """The greatest log ratio of any number that is drawn, when what it is drawn around moves so far."""
    published = np.arange(-400, 401)
    return float(np.abs(noise.log_mass(published) - noise.log_mass(published - moved)).max())


# The guarantee.


def test_a_count_loses_just_epsilon_for_the_largest_weight_less_for_others_and_more_for_a_heavier_record() -> None:
    noise = RecordLaplace(alpha=Fraction(1), epsilon=EPSILON, largest_weight=LARGEST).noise
    found = [loss(noise, weight) for weight in (1, 7, LARGEST, LARGEST + 1)]
    assert found[2] == pytest.approx(1.5, rel=1e-9)
    assert found[0] < found[1] < found[2] < found[3]


@pytest.mark.parametrize("name", CURVES)
def test_all_that_a_curve_measures_of_a_record_of_the_largest_weight_costs_just_epsilon(name: CurveName) -> None:
    curve: Any = curve_named(name, bins=bins(12), at=AT, epsilon=EPSILON, largest=LARGEST)
    parts = {
        "adaptive": lambda: loss(curve.count_noise, LARGEST) + loss(curve.noise, LARGEST),
        "hierarchical": lambda: 2 * loss(curve.noise, LARGEST),
        # Numerator and sum of a choice move by half of its part each: twice rate times what a cost moves by.
        "exponential": lambda: (
            loss(curve.noise, LARGEST)
            + sum(2 * float(curve.choice(place).rate) * most_moved(curve, place) for place in AT)
        ),
    }
    assert parts.get(name, lambda: loss(curve.noise, LARGEST))() == pytest.approx(1.5, rel=1e-6)


def most_moved(curve: ChosenBins, place: Fraction) -> int:
    """By how much a record of the largest weight moves the cost of any bin, at most, wherever it is."""
    counts = np.array([[3, 40, 0, 17, 5, 90, 2, 0, 0, 33, 4, 61]])
    found = 0
    for at in range(counts.shape[1]):
        more = counts.copy()
        more[0, at] += LARGEST
        found = max(found, int(np.abs(curve.costs(more, place) - curve.costs(counts, place)).max()))
    return found


def test_no_record_of_any_weight_costs_a_regression_more_than_epsilon_and_some_cost_all_of_it() -> None:
    method = NoisyRegression(**ENDS, epsilon=EPSILON, at=(Fraction(1),), largest_weight=2, weight_steps=2_000)
    losses = []
    for x, y, weight in product(range(4), range(6), (1, 999, 2_000)):
        moved = [abs(int(part[0])) for part in method.whole_sums(one_record(x, y, weight))]
        noises = [method.noise.epsilon] * 3 + [method.outcome_noise.epsilon] * 2
        losses.append(sum(part * noise for part, noise in zip(moved, noises, strict=True)))
    assert max(losses) == EPSILON
    assert replace(method, weight_steps=1_999).noise.epsilon > method.noise.epsilon


def one_record(x: int, y: int, weight: int) -> Cells:
    """The sums of a group of one record, in steps of the weight."""
    sums = {"count": 1, "sum_x": x, "sum_y": y, "sum_xx": x * x, "sum_xy": x * y}
    columns = {name: np.array([weight * number]) for name, number in sums.items()}
    return Cells(dimensions=(groups(1),), positions=np.arange(1), columns=columns)


def test_no_added_record_of_any_weight_moves_a_mean_or_a_line_further_than_is_reckoned_with() -> None:
    rng = np.random.default_rng(2)
    heaviest, tight = 50, 0
    for _ in range(40):
        people = rng.integers([0, 0, 1], [4, 6, heaviest + 1], size=(rng.integers(2, 5), 3))
        if len(set(people[:, 0])) < 2:
            continue
        cells = sums_of(people)
        line, rank, ends = LineSums.of(cells), Fraction(5, 2), {"low_y": 0, "high_y": 5}
        predicted = prediction_reach(line, rank, low_x=0, high_x=3, **ends, heaviest=heaviest).sensitivity()[0]
        averaged = mean_reach(cells, **ends, heaviest=heaviest).sensitivity()[0]
        moves = []
        for x, y, weight in product(range(4), range(6), (1, 20, heaviest)):
            more = sums_of(np.vstack([people, [x, y, weight]]))
            moves.append(abs(LineSums.of(more).prediction(rank)[0] - line.prediction(rank)[0]))
            assert abs(more["sum_y"][0] / more["count"][0] - cells["sum_y"][0] / cells["count"][0]) <= averaged + 1e-12
        assert max(moves) <= predicted + 1e-9
        tight += max(moves) > predicted - 1e-9
    assert tight > 20  # reached, and so not more than is needed


def sums_of(people: Any) -> Cells:
    """The sums of one group of (x, y, weight)."""
    x, y, w = people.T
    terms = {"count": w, "sum_x": w * x, "sum_y": w * y, "sum_xx": w * x * x, "sum_xy": w * x * y}
    columns = {name: np.array([int(term.sum())]) for name, term in terms.items()}
    return Cells(dimensions=(groups(1),), positions=np.arange(1), columns=columns)


def test_a_weighted_mean_may_move_by_its_whole_range() -> None:
    plain = GlobalSensitivity(**ENDS, epsilon=EPSILON, at=())
    assert plain.sensitivity == 3
    assert replace(plain, largest_weight=2, weight_steps=2_000).sensitivity == 5


# The draws.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "noisy-quantiles", "mose"])
def test_noise_of_weighted_numbers_has_the_stated_scale_and_none_seven_percent_off(name: str) -> None:
    number = 60_000
    if name == "laplace":
        method: Any = RecordLaplace(alpha=Fraction(1), epsilon=EPSILON, largest_weight=LARGEST)
        epsilon, cells = EPSILON / LARGEST, cells_of(np.full((number, 1), 400))
        drawn = method.protect(cells, Seeded(5))["value"] - 400
    elif name == "noisy-quantiles":
        curve = curve_named("plain", bins=bins(4), at=AT, epsilon=EPSILON, largest=LARGEST)
        epsilon = EPSILON / LARGEST
        drawn = (curve.measured(np.full((number // 4, 4), 400), Seeded(6)) - 400).ravel()
    else:
        method = Mose(**ENDS, epsilon=EPSILON, at=(), chi=Fraction(5), largest_weight=1_000, weight_steps=1_000)
        epsilon = method.epsilon_of_count / 1_000
        columns = {"count": np.full(number, 40_000), "sum_y": np.full(number, 80_000), "class": np.zeros(number, int)}
        cells = Cells(dimensions=(groups(number),), positions=np.arange(number), columns=columns)
        drawn = method.protect(cells, Seeded(7))["count"] - 40_000
    for factor, accepted in ((1.0, True), (1.07, False), (0.93, False)):
        ratio = np.exp(-float(epsilon) * factor)
        fit = p_value(np.abs(drawn), lambda j, r=ratio: np.where(j <= 0, 1, 2 * r**j / (1 + r)))
        assert fit > ACCEPTED if accepted else fit < REJECTED


def cells_of(counts: Any) -> Cells:
    return Cells(dimensions=(groups(len(counts)),), positions=np.arange(len(counts)), columns={"count": counts.ravel()})


# What is made of them.


@pytest.mark.parametrize("name", CURVES)
def test_people_who_all_have_the_largest_weight_are_read_like_as_many_without_weights(name: CurveName) -> None:
    # Of so many people that the adaptive curve has the same groups, whatever the noise.
    counts = np.array(
        [[0, 4, 12, 28, 48, 120, 56, 36, 8, 4, 0, 16], [40, 90, 300, 700, 900, 800, 500, 300, 90, 60, 20, 9]]
    )
    one, many = (curve_named(name, bins=bins(12), at=AT, epsilon=EPSILON, largest=most) for most in (1, 1_000))
    plain, weighted = one.percentiles(one.expected(counts)), many.percentiles(many.expected(1_000.0 * counts))
    assert weighted.people.tolist() == (1_000 * plain.people).tolist()
    exact = not isinstance(one, AdaptiveCurve | ChosenBins)  # noise of whole people is a little less than continuous
    assert np.allclose(plain.logs, weighted.logs, atol=1e-9 if exact else 0.01)
    assert np.allclose(plain.errors, weighted.errors, rtol=0.15)


def weights_of(kind: str, rng: np.random.Generator, people: int) -> tuple[Any, int]:
    """Weights of a design, and the largest that it allows."""
    if kind == "alike":
        return rng.uniform(60, 140, people), 150
    design = rng.choice([20.0, 80.0, 200.0, 450.0], people, p=[0.4, 0.35, 0.2, 0.05]) * rng.uniform(0.9, 1.1, people)
    return (design, 500) if kind == "far apart" else (design / 100, 5)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(3, 2), Fraction(6)])
@pytest.mark.parametrize("kind", ["alike", "far apart", "normalised"])
@pytest.mark.parametrize("people", [100, 1_000, 5_000])
def test_errors_of_weighted_percentiles_cover_and_are_not_far_too_large(
    people: int, kind: str, epsilon: Fraction
) -> None:
    rng, shares = np.random.default_rng(people), [0.25, 0.5, 0.75]
    made = bins_of_guess("adaptive", median=45_000, sigma=Fraction("0.75"), number=60, minimum=0, maximum=2_000_000)
    edges, counts, true, largest = np.array(made.edges), [], [], 1
    for _ in range(150):
        weights, largest = weights_of(kind, rng, people)
        spread = 0.62 * np.exp(0.2 * rng.standard_normal())
        pay = np.exp(np.log(45_000) + 0.35 * rng.standard_normal() + spread * rng.standard_normal(people))
        place = np.clip(np.searchsorted(edges, pay, side="right") - 1, 0, len(made) - 1)
        counts.append(np.floor(np.bincount(place, weights=weights, minlength=len(made)) + 0.5))
        order = np.argsort(pay)
        middle = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
        true.append(np.interp(shares, middle, pay[order]))
    method = NoisyQuantiles(
        alpha=Fraction(1),
        epsilon=epsilon,
        at=AT,
        edges=made.edges,
        tails=made.tails,
        minimum=0,
        largest_weight=largest,
    )
    held = np.array(counts, dtype=np.int64)
    cells = Cells(
        dimensions=(groups(len(held)), Dimension(name="bin", codes=tuple(map(str, range(len(made)))))),
        positions=np.arange(held.size),
        columns={"count": held.ravel()},
    )
    found = method.protect(cells, Seeded(people))
    told = found["status"] == 0
    off = np.abs(found["value"] - np.array(true).ravel())[told]
    error = found["error"][told]
    assert told.mean() > 0.95
    assert (off <= 1.96 * error).mean() >= 0.94
    assert (off <= 1.645 * error).mean() >= 0.89
    assert np.median(off / error) > 0.2  # an error that is always far too large would say nothing


@pytest.mark.slow
def test_errors_of_weighted_predictions_cover_95_times_in_100() -> None:
    rng, number, people = np.random.default_rng(8), 1_500, 400
    x = rng.integers(0, 101, (number, people))
    y = np.clip(np.rint(30 + 0.4 * x + 25 * rng.standard_normal(x.shape)), 0, 100).astype(np.int64)
    w = np.rint(rng.choice([0.2, 0.8, 2.0, 4.5], x.shape, p=[0.4, 0.35, 0.2, 0.05]) * 1_000).astype(np.int64)
    terms = {"count": w, "sum_x": w * x, "sum_y": w * y, "sum_xx": w * x * x, "sum_xy": w * x * y}
    cells = Cells(
        dimensions=(groups(number),),
        positions=np.arange(number),
        columns={name: term.sum(axis=1) for name, term in terms.items()} | {"class": np.zeros(number, dtype=np.int64)},
    )
    ends: dict[str, Any] = {"alpha": Fraction(1), "low_x": 0, "high_x": 100, "low_y": 0, "high_y": 100, "decimals": 2}
    known: dict[str, Any] = {**ends, "largest_weight": 5, "weight_steps": 5_000, "epsilon": Fraction(8)}
    methods = (NoisyRegression(**known, at=(Fraction(25), Fraction(75))), Mose(**known, at=(), chi=Fraction(100)))
    for method in methods:
        found = method.protect(cells, Seeded(9))
        told = found["error"] >= 0
        off = np.abs(found["value"] - method.true_value(cells))[told]
        assert told.mean() > 0.9
        assert 0.93 <= (off <= 1.96 * found["error"][told] + 0.5).mean() <= 0.985
