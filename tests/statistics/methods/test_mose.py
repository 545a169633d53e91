"""MOSE: χ bounds what it says, draws are independent, errors cover, and nothing is promised that is not so."""

from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.method import NOT_AVAILABLE, SUPPRESSED
from sfumato.noise.laplace import RoundedLaplace
from sfumato.noise.randomness import Seeded
from sfumato.statistics.people.mose import LEAST, STEPS, Mose, observed, rounded_up
from sfumato.statistics.people.noisy_regression import LineSums
from sfumato.statistics.people.sensitivity import mean_reach, prediction_reach
from tests.noise.fit import ACCEPTED, REJECTED, p_value
from tests.statistics.methods.groups import RANKS, drawn_ranks, sums, sums_of

SIZES = np.random.default_rng(1).geometric(1 / 60, 3_000) + 9
X, Y = drawn_ranks(SIZES, seed=2)
CLASSES = np.random.default_rng(3).integers(0, 5, len(SIZES))
CELLS = sums(SIZES, X, Y, CLASSES)
MOSE = Mose(epsilon=Fraction(8), decimals=1, **RANKS)
MEAN = Mose(epsilon=Fraction(8), decimals=1, **{**RANKS, "at": ()})


@pytest.mark.parametrize("clip", [True, False])
def test_chi_over_n_bounds_the_sensitivity_of_every_group_of_its_class(clip: bool) -> None:
    line = LineSums.of(CELLS)
    for rank, estimate in zip(MOSE.at, replace(MOSE, clip=clip).estimates(CELLS), strict=True):
        reach = prediction_reach(line, rank, low_x=0, high_x=10_000, low_y=0, high_y=10_000)
        if clip:
            reach = reach.clipped(line.prediction(rank), 0, 10_000)
        bound = np.array([float(estimate.chi[number]) for number in CLASSES]) / SIZES
        assert (reach.sensitivity() <= bound).all()
        assert (estimate.scale >= bound * MOSE.grid * (1 - 1e-12)).all()
        assert set(estimate.chi) == set(range(5))


@given(st.floats(1e-9, 1e15))
def test_chi_is_told_on_a_coarse_scale_and_never_below_what_was_observed(chi: float) -> None:
    told = rounded_up(chi)
    assert chi <= told <= Fraction(chi) * Fraction(3, 2) * Fraction("1.12")
    assert any((told / step).numerator in (1, 10 ** (len(str((told / step).numerator)) - 1)) for step in STEPS)


def test_predictions_clipped_so_far_that_nobody_moves_them_have_the_smallest_noise() -> None:
    far = [(5_000, 0), (10_000, 10_000)] * 500
    cells = sums_of(far)
    method = replace(MOSE, at=(Fraction(0),))
    (estimate,) = method.estimates(cells)
    assert estimate.sensitivity.tolist() == [0.0]
    assert estimate.scale.tolist() == [1]
    protected = method.protect(cells, Seeded(2))
    assert protected["status"].tolist() == [0]
    assert abs(int(protected["value"][0])) < 30
    assert observed(np.array([0.0]), np.array([3]), taken=np.array([True])) == {3: LEAST}


def test_a_class_whose_noise_would_leave_64_bits_is_withheld_and_the_others_are_not() -> None:
    crowded, spread = [(5_000, 0), (5_001, 10**9), (5_001, 5)], [(0, 5), (5_000, 10**8), (10_000, 7)] * 9
    cells = sums_of(crowded, spread).with_column("class", np.array([0, 1]))
    method = replace(MOSE, at=(Fraction(0),), clip=False, decimals=6, high_y=10**9)
    (estimate,) = method.estimates(cells)
    assert set(estimate.chi) == {1}
    assert method.protect(cells, Seeded(3))["status"].tolist() == [NOT_AVAILABLE, 0]


def test_classes_of_few_groups_are_withheld_where_that_is_asked_for() -> None:
    lonely = np.where(np.arange(len(SIZES)) == 0, 9, CLASSES)
    cells = CELLS.with_column("class", lonely)
    for least, withheld in ((1, 0), (2, 1)):
        for estimate in replace(MOSE, least_groups=least).estimates(cells):
            assert (9 in estimate.chi) == (not withheld)
            assert (estimate.status == NOT_AVAILABLE).sum() == withheld


def test_groups_that_are_withheld_take_no_part_in_chi() -> None:
    taken = np.array([True, True, False, True])
    found = observed(np.array([3.0, 8.0, 1e9, 0.2]), np.array([0, 0, 0, 7]), taken=taken)
    assert found == {0: Fraction(10), 7: Fraction(3, 10)}


def test_a_prediction_moves_by_whole_units_no_more_than_the_scale_of_its_noise() -> None:
    cells = sums_of([(100, 20), (4_000, 6_000), (9_000, 5_100), (7_000, 9_000)])
    method = replace(MOSE, minimum=3)
    for estimate, rank in zip(method.estimates(cells), method.at, strict=True):
        for added in [(0, 0), (0, 10_000), (10_000, 0), (10_000, 10_000), (5_000, 0), (2_000, 10_000)]:
            more = sums_of([(100, 20), (4_000, 6_000), (9_000, 5_100), (7_000, 9_000), added])
            after = method.estimates(more)[method.at.index(rank)]
            assert abs(after.rounded[0] - estimate.rounded[0]) <= estimate.scale[0]


@pytest.mark.parametrize("method", [MOSE, MEAN], ids=["predictions", "means"])
def test_noise_of_values_has_the_scale_chi_over_n_epsilon_and_none_seven_percent_off(method: Mose) -> None:
    n = 60_000
    people = [(1_000, 2_000), (5_000, 4_000), (9_000, 9_000), (3_000, 3_500), (8_000, 2_000)]
    x, y = (np.tile(np.array(column, dtype=np.int64), n) for column in zip(*people, strict=True))
    cells = sums(np.full(n, 5), x, y)
    protected = method.protect(cells, Seeded(7))
    for place, estimate in enumerate(method.estimates(cells)):
        drawn = protected["value"].reshape(n, -1)[:, place] - estimate.rounded
        chi = float(next(iter(estimate.chi.values()))) * method.grid
        scale = np.ceil(chi / 5) / float(method.epsilon_of_value)
        for off, accepted in ((1.0, True), (1.07, False), (0.93, False)):
            fit = p_value(np.abs(drawn), lambda j, s=scale * off: np.where(j <= 0, 1, np.exp(-(j - 0.5) / s)))
            assert fit > ACCEPTED if accepted else fit < REJECTED


def test_noise_of_the_number_of_people_is_geometric_and_hides_one_person() -> None:
    n = 60_000
    cells = sums(np.full(n, 3), np.tile([1, 2, 3], n), np.tile([1, 2, 3], n))
    drawn = MOSE.protect(cells, Seeded(8))["count"].reshape(n, -1)[:, 0] - 3
    for off, accepted in ((1.0, True), (1.07, False), (0.93, False)):
        ratio = np.exp(-float(MOSE.epsilon_of_count) * off)
        fit = p_value(np.abs(drawn), lambda j, r=ratio: np.where(j <= 0, 1, 2 * r**j / (1 + r)))
        assert fit > ACCEPTED if accepted else fit < REJECTED


def test_estimates_and_numbers_of_people_have_independent_draws() -> None:
    protected = MOSE.protect(CELLS, Seeded(9))
    count = protected["count"].reshape(-1, 2)[:, 0] - SIZES
    off = [v - e.rounded for v, e in zip(protected["value"].reshape(-1, 2).T, MOSE.estimates(CELLS), strict=True)]
    in_scales = [noise / estimate.scale for noise, estimate in zip(off, MOSE.estimates(CELLS), strict=True)]
    drawn = np.stack([count, *in_scales])
    limit = 4 / np.sqrt(len(SIZES))
    for measured in (drawn, np.abs(drawn)):  # neither their signs nor their sizes go together
        correlation = np.corrcoef(measured)
        assert np.abs(correlation[~np.eye(3, dtype=bool)]).max() < limit


@pytest.mark.parametrize("count_epsilon", [Fraction(0), Fraction(1, 2)])
def test_published_errors_cover_95_times_in_100_at_every_size_that_tells_one(count_epsilon: Fraction) -> None:
    sizes = np.repeat([24, 40, 100, 1_000], [4_000, 4_000, 4_000, 1_000])
    x, y = drawn_ranks(sizes, seed=4)
    method = replace(MOSE, count_epsilon=count_epsilon)
    cells = sums(sizes, x, y)
    protected = method.protect(cells, Seeded(5))
    off = np.abs(protected["value"] - method.true_value(cells)).reshape(-1, 2)
    error = protected["error"].reshape(-1, 2)
    told = error >= 0
    for size in np.unique(sizes):
        own = told & (sizes == size)[:, None]
        assert own.sum() > 0.9 * 2 * (sizes == size).sum()
        assert 0.93 <= (off <= 1.96 * error)[own].mean() <= 0.97


def test_published_errors_follow_from_the_noisy_count_and_a_coarse_chi_alone() -> None:
    other = sums(SIZES, X, 10_000 - Y, CLASSES)  # the same sensitivities, other predictions
    protected, mirrored = MOSE.protect(CELLS, Seeded(5)), MOSE.protect(other, Seeded(5))
    assert np.array_equal(protected["error"], mirrored["error"])
    seen: dict[tuple[int, int, int], int] = {}
    rows = zip(np.repeat(CLASSES, 2), protected["count"], protected["error"], strict=True)
    for place, (number, count, error) in enumerate(rows):
        assert seen.setdefault((int(number), place % 2, int(count)), int(error)) == error


def test_an_error_is_not_told_where_the_noisy_count_says_too_little() -> None:
    method = replace(MOSE, count_epsilon=Fraction(1, 10))
    protected = method.protect(CELLS, Seeded(6))
    assert ((protected["error"] < 0) == (protected["count"] < 60)).all()


def test_groups_that_are_too_small_or_have_one_rank_are_withheld_and_still_have_a_noisy_count() -> None:
    cells = sums_of([(1, 1), (2, 2)], [(7, 1), (7, 5), (7, 9)], [(1, 1), (500, 7), (9_000, 3)], [])
    protected = MOSE.protect(cells, Seeded(1))
    shown = [SUPPRESSED, NOT_AVAILABLE, 0, SUPPRESSED]
    assert protected["status"].reshape(-1, 2).tolist() == [[status] * 2 for status in shown]
    hidden = protected["status"] != 0
    assert (protected["value"][hidden] == 0).all()
    assert (protected["error"][hidden] == -1).all()
    assert np.isnan(MOSE.expected_error(cells)).tolist() == hidden.tolist()


def test_a_chi_that_is_supplied_is_used_for_all_classes_and_groups_it_does_not_bound_are_withheld() -> None:
    products = SIZES * mean_reach(CELLS, low_y=0, high_y=10_000).sensitivity()
    chi = Fraction(int(np.median(products)))
    estimate = replace(MEAN, chi=chi).estimates(CELLS)[0]
    assert np.array_equal(estimate.status == NOT_AVAILABLE, products * (1 + 1e-9) > float(chi))
    kept = estimate.status == 0
    assert np.array_equal(estimate.scale[kept], np.ceil(10 * float(chi) / SIZES[kept]))
    everything = replace(MEAN, chi=Fraction(10_000))  # the range bounds χ of every mean
    assert (everything.estimates(CELLS)[0].status == 0).all()
    people = np.array([20, 100])
    assert np.allclose(everything.planned_errors(people), 10_000 * 10 / people / 4, rtol=0.01)


def test_the_guarantee_says_that_it_is_none_and_what_it_is_conditional_on() -> None:
    for method in (MOSE, replace(MOSE, chi=Fraction(50_000))):
        guarantee = method.guarantee()
        assert guarantee.definition == "individuals"
        assert guarantee.epsilon == 8
        assert guarantee.condition.startswith("not differentially private; conditional on χ")
        assert "depends on the true number of people" in guarantee.condition
        assert ("χ = 50000, which was set beforehand" in guarantee.condition) == bool(method.chi)
    assert "predicted from" in MOSE.guarantee().condition
    assert "predicted from" not in MEAN.guarantee().condition


def test_epsilon_is_divided_over_periods_ranks_and_the_count() -> None:
    method = replace(MOSE, periods=2)
    assert method.epsilon_of_count == method.epsilon_of_value == Fraction(4, 3)
    own = replace(MOSE, periods=2, count_epsilon=Fraction(1))
    assert (own.epsilon_of_count, own.epsilon_of_value) == (1, Fraction(3, 2))
    assert own.periods * (own.epsilon_of_count + 2 * own.epsilon_of_value) == own.epsilon


def loss(n: int, epsilon: float, outcomes: np.ndarray) -> np.ndarray:
    """The log ratio of the two probabilities when one more person joins n, both bounded by the same χ of 100 n."""
    noise, scale = RoundedLaplace(unit=Fraction(1, 1000)), 1_000 / epsilon
    without = noise.log_mass(outcomes, np.array([100.0 * scale]))
    return without - noise.log_mass(outcomes - 100, np.array([100.0 * n / (n + 1) * scale]))


@pytest.mark.parametrize("n", [10, 20, 50])
def test_even_given_chi_the_loss_has_no_bound_and_exceeds_a_tenth_more_as_often_as_the_page_says(n: int) -> None:
    epsilon, share = 8 / 3, 0.1
    outcomes = np.arange(-20_000, 20_001)
    lost = loss(n, epsilon, outcomes)
    assert lost.max() > 3 * epsilon
    mass = np.exp(RoundedLaplace(unit=Fraction(1, 1000)).log_mass(outcomes, np.array([100_000 / epsilon])))
    beyond = n * share * epsilon - epsilon + n * log(1 + 1 / n)
    assert mass[lost > (1 + share) * epsilon].sum() == pytest.approx(0.5 * np.exp(-beyond), rel=0.05)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"low_y": 10_000}, "bounds of the outcome"),
        ({"high_x": 0}, "bounds of what is predicted from"),
        ({"at": (Fraction(20_000),)}, "at"),
        ({"at": (Fraction(5), Fraction(5))}, "at"),
        ({"minimum": 2}, "minimum"),
        ({"chi": Fraction(-1)}, "chi"),
        ({"chi": Fraction(10**13), "decimals": 6}, "published units"),
        ({"least_groups": 0}, "least_groups"),
        ({"count_epsilon": Fraction(1, 10**30)}, "epsilon"),
        ({"at": (Fraction(20_000),)}, r"from 0 to 10,000[\s\S]*20000"),
        ({"count_epsilon": Fraction(8)}, "count_epsilon"),
        ({"decimals": 9}, "decimals"),
        ({"periods": 0}, "periods"),
        ({"epsilon": Fraction(0)}, "epsilon"),
    ],
)
def test_parameters_without_a_meaning_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(MethodError, match=words):
        replace(MOSE, **wrong)


def test_a_confidence_that_is_no_probability_is_refused_and_a_value_alone_tells_no_error() -> None:
    with pytest.raises(ValueError, match="confidence"):
        MOSE.published_interval(np.array([1]), 95.0)
    assert np.isnan(MOSE.published_error(np.array([1, 2]))).all()
