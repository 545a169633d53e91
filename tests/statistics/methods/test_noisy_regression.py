"""Regression from noisy sums: the loss never exceeds ε, errors cover, and all follows from the noisy sums."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.method import NOT_AVAILABLE, SUPPRESSED
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Seeded
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.people.noisy_regression import NoisyRegression
from tests.noise.fit import ACCEPTED, REJECTED, p_value
from tests.statistics.methods.groups import RANKS, drawn_ranks, sums, sums_of

METHOD = NoisyRegression(epsilon=Fraction(8), decimals=1, **RANKS)
SMALL = NoisyRegression(
    alpha=Fraction(1), epsilon=Fraction(2), at=(Fraction(1),), low_x=-2, high_x=5, low_y=1, high_y=4
)
BOX = list(product(range(-2, 6), range(1, 5)))


def contribution(method: NoisyRegression, person: tuple[int, int]) -> list[int]:
    """What one person adds to the five sums."""
    with_, without = (method.whole_sums(sums_of(group)) for group in ([(0, 2), person], [(0, 2)]))
    return [int(a[0] - b[0]) for a, b in zip(with_, without, strict=True)]


def loss(method: NoisyRegression, person: tuple[int, int], less: Fraction = Fraction(1)) -> float:
    """The greatest log ratio of the probabilities of five noisy sums with and without a person, over a grid."""
    noises = [method.noise] * 3 + [method.outcome_noise] * 2
    published = np.concatenate([np.arange(-300, 301), [-(10**6), 10**6]])
    lost = 0.0
    for noise, moved in zip(noises, contribution(method, person), strict=True):
        own = Geometric(epsilon=noise.epsilon / less)
        lost += float(np.abs(own.log_mass(published) - own.log_mass(published - moved)).max())
    return lost


def test_no_person_costs_more_than_epsilon_some_cost_all_of_it_and_ten_percent_less_noise_costs_more() -> None:
    losses = [loss(SMALL, person) for person in BOX]
    assert max(losses) <= 2 + 1e-9
    assert max(losses) == pytest.approx(2)
    assert max(loss(SMALL, person, Fraction(9, 10)) for person in BOX) > 2.2


def test_the_guarantee_is_formal_and_divided_over_periods() -> None:
    expected = EmployerEmployee(definition="individuals", alpha=Fraction(1), epsilon=Fraction(8))
    assert METHOD.guarantee() == expected
    yearly = replace(METHOD, periods=4)
    assert yearly.guarantee() == expected
    assert yearly.noise.epsilon == METHOD.noise.epsilon / 4
    assert METHOD.noise.epsilon * 10_000**2 + METHOD.outcome_noise.epsilon * 10_000**2 == 8


people = st.lists(st.sampled_from(BOX), max_size=8)


@given(group=people)
def test_the_five_sums_are_those_of_shares_of_the_way_exactly(group: list[tuple[int, int]]) -> None:
    found = [int(part[0]) for part in SMALL.whole_sums(sums_of(group))]
    p, q, w = ([f(x, y) for x, y in group] for f in (lambda x, _: x + 2, lambda x, _: 5 - x, lambda _, y: 2 * y - 5))
    pairs = ((p, p, 1), (p, q, 2), (q, q, 1), (p, w, 1), (q, w, 1))
    assert found == [times * sum(a * b for a, b in zip(one, other, strict=True)) for one, other, times in pairs]


def test_noise_of_the_sums_has_the_stated_scale_and_none_seven_percent_off() -> None:
    n = 60_000
    cells = sums(np.full(n, 1), np.full(n, 1), np.full(n, 2))
    noisy, exact = SMALL.noisy_sums(cells, Seeded(3)), SMALL.whole_sums(cells)
    for drawn, true, noise, unit in (
        (noisy.pp, exact[0], SMALL.noise, 49),
        (2 * noisy.pq, exact[1], SMALL.noise, 49),
        (noisy.qw, exact[4], SMALL.outcome_noise, 21),
    ):
        off = np.abs(np.rint(drawn * unit).astype(np.int64) - true)
        for factor, accepted in ((1.0, True), (1.07, False), (0.93, False)):
            ratio = np.exp(-float(noise.epsilon) * factor)
            fit = p_value(off, lambda j, r=ratio: np.where(j <= 0, 1, 2 * r**j / (1 + r)))
            assert fit > ACCEPTED if accepted else fit < REJECTED


def test_noises_of_the_sums_are_independent() -> None:
    n = 40_000
    noisy = SMALL.noisy_sums(sums(np.full(n, 1), np.full(n, 1), np.full(n, 2)), Seeded(4))
    drawn = np.stack([noisy.pp, noisy.pq, noisy.qq, noisy.pw, noisy.qw])
    assert np.abs(np.corrcoef(drawn)[~np.eye(5, dtype=bool)]).max() < 4.5 / np.sqrt(n)


def test_published_errors_cover_95_times_in_100() -> None:
    sizes = np.repeat([32, 50, 200, 1_000], [6_000, 4_000, 2_000, 1_000])
    cells = sums(sizes, *drawn_ranks(sizes, seed=5))
    protected = METHOD.protect(cells, Seeded(6))
    off, error = np.abs(protected["value"] - METHOD.true_value(cells)), protected["error"]
    for size in np.unique(sizes):
        told = (error >= 0) & np.repeat(sizes == size, 2)
        assert told.sum() > 0.5 * (sizes == size).sum()
        assert 0.93 <= (off <= 1.96 * error)[told].mean() <= 0.975
    assert 0.93 <= (off <= 1.96 * error)[error >= 0].mean() <= 0.97


def test_groups_too_small_to_know_their_error_tell_none() -> None:
    sizes = np.full(40_000, 12)
    protected = METHOD.protect(sums(sizes, *drawn_ranks(sizes, seed=12)), Seeded(13))
    assert (protected["status"] == 0).mean() > 0.3
    assert (protected["error"] >= 0).mean() < 1e-4


def test_errors_that_are_told_cover_where_groups_have_all_sizes_and_x_is_crowded() -> None:
    sizes = np.random.default_rng(14).integers(100, 700, 5_000)
    cells = sums(sizes, *drawn_ranks(sizes, seed=15, crowded=True))
    protected = METHOD.protect(cells, Seeded(16))
    told = protected["error"] >= 0
    off = np.abs(protected["value"] - METHOD.true_value(cells))
    assert 0.2 < told.mean() < 0.9
    assert 0.93 <= (off <= 1.96 * protected["error"])[told].mean() <= 0.97


def test_bounds_whose_noise_leaves_64_bits_are_refused_when_the_method_is_built() -> None:
    with pytest.raises(MethodError, match=r"from 0 to 1,000,000,000.*epsilon = 0.1") as refusal:
        replace(METHOD, high_x=10**9, epsilon=Fraction(1, 10), at=(Fraction(5),))
    assert "64 bits" in str(refusal.value)
    assert replace(METHOD, high_x=10**8).noise.epsilon > 0


def test_the_expected_error_is_what_is_observed_where_groups_are_not_tiny() -> None:
    sizes = np.repeat([100, 1_000], [3_000, 1_000])
    cells = sums(sizes, *drawn_ranks(sizes, seed=7))
    off = np.abs(METHOD.protect(cells, Seeded(8))["value"] - METHOD.true_value(cells))
    for size in np.unique(sizes):
        own = np.repeat(sizes == size, 2)
        assert off[own].mean() == pytest.approx(np.nanmean(METHOD.expected_error(cells)[own]), rel=0.12)


def test_predictions_stay_within_the_bounds_of_the_outcome() -> None:
    sizes = np.full(2_000, 15)
    protected = replace(METHOD, minimum=0).protect(sums(sizes, *drawn_ranks(sizes, seed=9)), Seeded(10))
    assert protected["value"].min() >= 0
    assert protected["value"].max() <= 100_000


def test_empty_groups_and_groups_with_one_rank_are_withheld_by_what_is_published_and_not_by_what_is_true() -> None:
    one_rank = [[(5_000, 4_000)] * 500] * 300
    protected = METHOD.protect(sums_of(*one_rank, *[[]] * 300), Seeded(11))
    status = protected["status"].reshape(-1, 2)[:, 0]
    assert (status[:300] == NOT_AVAILABLE).mean() > 0.9
    assert (status[300:] == SUPPRESSED).mean() > 0.9
    assert (protected["value"][protected["status"] != 0] == 0).all()
    assert (protected["count"].reshape(-1, 2)[:300, 0] > 450).all()


def test_ten_million_people_fit_and_more_than_fit_are_refused_without_naming_a_number() -> None:
    n = 10_000_000
    values = {"count": n, "sum_x": n * 10_000, "sum_y": 0, "sum_xx": n * 10_000**2, "sum_xy": 0}
    cells = sums_of([])
    for name, column in values.items():
        cells = cells.with_column(name, np.array([column], dtype=np.int64))
    assert [int(part[0]) for part in METHOD.whole_sums(cells)] == [n * 10_000**2, 0, 0, -n * 10_000**2, 0]
    with pytest.raises(MethodError, match="people in a group") as refusal:
        METHOD.whole_sums(cells.with_column("count", np.array([10**12])))
    assert str(10**12) not in str(refusal.value)


def test_means_are_not_its_business_and_parameters_without_a_meaning_are_refused() -> None:
    with pytest.raises(MethodError, match="one value at least"):
        replace(METHOD, at=())
    with pytest.raises(MethodError, match="minimum"):
        replace(METHOD, minimum=-1)
