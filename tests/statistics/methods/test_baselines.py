"""The baselines: what they protect, what they leave open, and what is refused."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.noise.factors import ONE, Factors
from sfumato.noise.geometric import Geometric
from sfumato.noise.keyed import hashes
from sfumato.noise.laplace import RoundedLaplace
from sfumato.noise.randomness import Seeded
from sfumato.privacy.guarantee import EmployerEmployee, NoFormalGuarantee
from sfumato.statistics.jobs.laplace import Laplace, NodeLaplace
from sfumato.statistics.jobs.noise_infusion import NoiseInfusion
from tests.noise.fit import ACCEPTED, REJECTED
from tests.statistics.methods.cells import cells_of

ALPHA = Fraction("0.1")
Workforce = tuple[int, ...]


def laplace(epsilon: str = "2", worker_cells: int = 0) -> Laplace:
    return Laplace(alpha=ALPHA, epsilon=Fraction(epsilon), worker_cells=worker_cells)


def node(epsilon: str = "2", threshold: int = 100, worker_cells: int = 0) -> NodeLaplace:
    return NodeLaplace(alpha=ALPHA, epsilon=Fraction(epsilon), threshold=threshold, worker_cells=worker_cells)


def loss(noise: Geometric, shift: int) -> float:
    """The greatest |log probability ratio| when a count moves by a shift."""
    published = np.concatenate([np.arange(-3_000, 3_001), [10**5, 10**6]])
    before, after = (noise.log_mass(published - moved) for moved in (0, shift))
    return float(np.abs(before - after).max())


@pytest.mark.parametrize("epsilon", ["0.25", "0.5", "1", "2", "4"])
def test_one_job_costs_just_epsilon_under_laplace_and_one_percent_less_noise_costs_more(epsilon: str) -> None:
    noise, limit = laplace(epsilon).noise, float(Fraction(epsilon))
    assert loss(noise, 1) == pytest.approx(limit, rel=1e-9)
    assert loss(Geometric(epsilon=noise.epsilon * Fraction(101, 100)), 1) > 1.005 * limit


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4"])
def test_laplace_errs_less_than_continuous_noise_that_is_rounded_and_promises_the_same(epsilon: str) -> None:
    step = float(Fraction(epsilon))
    rounded = float(RoundedLaplace(unit=1 / Fraction(epsilon)).expected_magnitude(np.ones(1))[0])
    assert laplace(epsilon).planned_error().floor == pytest.approx(rounded / np.cosh(step / 2))


@pytest.mark.parametrize("method", [laplace("1"), laplace("2"), node("2", 20)], ids=["1", "2", "node"])
def test_drawn_errors_are_the_planned_ones_and_values_are_right_on_average(method: Laplace | NodeLaplace) -> None:
    cells = cells_of(count=[40] * 200_000, count_below_threshold=[40] * 200_000)
    off = method.protect(cells, Seeded(6))["value"] - 40
    error = method.planned_error().floor
    assert np.abs(off).mean() == pytest.approx(error, rel=0.02)
    assert abs(off.mean()) < 5 * off.std() / np.sqrt(len(off))
    assert method.published_error(cells["count"])[0] == method.expected_error(cells)[0] == error


def test_laplace_promises_nothing_about_employers_and_costs_epsilon_once_with_worker_attributes_too() -> None:
    for worker_cells in (0, 8):
        method = laplace(worker_cells=worker_cells)
        assert method.guarantee() == EmployerEmployee(definition="individuals", alpha=ALPHA, epsilon=Fraction(2))
        assert method.noise == Geometric(epsilon=Fraction(2))


def test_laplace_interval_is_as_wide_as_the_quantile_of_its_noise() -> None:
    low, high = laplace("1").published_interval(np.array([100, 0, -9]), 0.9)
    # With r = 1/e, 2r²/(1 + r) = 0.20 of the noise is beyond 1, 2r³/(1 + r) = 0.07 beyond 2.
    assert (low[0], high[0]) == (98, 102)
    assert (low[1], high[1]) == (0, 2)
    assert (low[2], high[2]) == (0, 2)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4"])
def test_laplace_intervals_hold_the_count_as_often_as_they_say_and_would_not_one_job_narrower(
    epsilon: str, confidence: float
) -> None:
    method, count, published = laplace(epsilon), 1_000, np.arange(-2_000, 4_001)
    low, high = method.published_interval(published, confidence)
    mass = np.exp(method.noise.log_mass(published - count))
    assert mass[(low <= count) & (count <= high)].sum() >= confidence
    assert mass[(low < count) & (count < high)].sum() < confidence


def kept(workforce: Workforce, threshold: int) -> Workforce:
    """What an establishment adds to the worker cells when large ones are left out."""
    return workforce if sum(workforce) < threshold else (0,) * len(workforce)


@pytest.mark.parametrize("threshold", [2, 3, 5])
def test_workers_added_to_an_establishment_move_all_worker_cells_together_by_less_than_the_threshold(
    threshold: int,
) -> None:
    sizes = range(threshold + 3)
    for before in product(sizes, repeat=2):
        for more in product(sizes, repeat=2):
            after = tuple(a + b for a, b in zip(before, more, strict=True))
            pairs = zip(kept(before, threshold), kept(after, threshold), strict=True)
            assert sum(abs(a - b) for a, b in pairs) <= threshold - 1


@pytest.mark.parametrize(("epsilon", "threshold"), [("0.5", 100), ("2", 100), ("2", 20), ("2", 2)])
def test_the_largest_establishment_that_is_kept_costs_just_epsilon_and_one_percent_less_noise_costs_more(
    epsilon: str, threshold: int
) -> None:
    noise, limit = node(epsilon, threshold).noise, float(Fraction(epsilon))
    assert loss(noise, threshold - 1) == pytest.approx(limit, rel=1e-9)
    assert loss(Geometric(epsilon=noise.epsilon * Fraction(101, 100)), threshold - 1) > 1.005 * limit


@pytest.mark.parametrize(("epsilon", "threshold"), [("0.5", 4), ("2", 3)])
def test_workers_of_one_establishment_in_several_worker_cells_cost_at_most_epsilon_together(
    epsilon: str, threshold: int
) -> None:
    noise = node(epsilon, threshold).noise
    workforces = list(product(range(threshold + 2), repeat=2))
    # Cells have independent noise, so that the greatest losses add up.
    losses = [
        sum(loss(noise, b - a) for a, b in zip(kept(before, threshold), kept(after, threshold), strict=True))
        for before, after in product(workforces, workforces)
        if all(a <= b for a, b in zip(before, after, strict=True))
    ]
    assert max(losses) == pytest.approx(float(Fraction(epsilon)), rel=1e-9)


def test_node_laplace_is_strong_and_costs_epsilon_once_with_worker_attributes_too() -> None:
    for worker_cells in (0, 8):
        expected = EmployerEmployee(definition="strong", alpha=ALPHA, epsilon=Fraction(2))
        assert node(worker_cells=worker_cells).guarantee() == expected
        assert node(worker_cells=worker_cells).noise == Geometric(epsilon=Fraction(2, 99))


def test_node_laplace_sees_only_the_establishments_that_are_kept() -> None:
    cells = [cells_of(count=[count], count_below_threshold=[40]) for count in (40, 9_000)]
    assert node().protect(cells[0], Seeded(1)).equals(node().protect(cells[1], Seeded(1)))
    assert node().expected_bias(cells[1])[0] == 40 - 9_000
    assert np.isclose(node().expected_error(cells[1])[0], 9_000 - 40)


def test_node_laplace_knows_no_upper_limit_of_what_was_left_out() -> None:
    low, high = node().published_interval(np.array([5_000]), 0.9)
    assert 4_800 < low[0] < 5_000
    assert np.isnan(high[0])


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9, 0.99])
def test_the_least_count_node_laplace_tells_is_right_as_often_as_it_says_and_no_lower_than_that_needs(
    confidence: float,
) -> None:
    method, count, published = node("2", 5), 500, np.arange(1_001)
    low, _ = method.published_interval(published, confidence)
    mass = np.exp(method.noise.log_mass(published - count))
    assert mass[low <= count].sum() >= confidence
    assert mass[low < count].sum() < confidence or confidence < 0.5


@pytest.mark.parametrize("threshold", [-1, 0, 1, 10**10])
def test_a_threshold_that_keeps_nothing_or_everything_is_refused(threshold: int) -> None:
    with pytest.raises(MethodError, match="2 ≤ threshold"):
        node(threshold=threshold)


def test_columns_that_contradict_each_other_are_refused_without_naming_a_number() -> None:
    with pytest.raises(MethodError, match="a cell where it is greater") as refusal:
        node().protect(cells_of(count=[40], count_below_threshold=[77]), Seeded(1))
    assert "77" not in str(refusal.value)


INFUSION = NoiseInfusion()


def distorted_cells(*, count: list[int], sums: list[int]) -> Cells:
    return cells_of(count=count).with_sums(np.array(sums, dtype=np.int64))


def test_infused_cells_are_the_sums_of_distorted_establishments_rounded_to_be_right_on_average() -> None:
    n = 20_000
    cells = distorted_cells(count=[10] * n + [7] * n, sums=[11_300_000] * n + [8_500_000] * n)
    ten, seven = INFUSION.protect(cells, Seeded(1))["value"].reshape(2, n)
    assert set(ten.tolist()) == {11, 12}
    assert ten.mean() == pytest.approx(11.3, abs=0.02)
    assert seven.mean() == pytest.approx(8.5, abs=0.02)


def test_zeros_stay_zero_and_one_and_two_become_one_or_two_at_random() -> None:
    n = 10_000
    cells = distorted_cells(count=[0] * n + [1] * n + [2] * n, sums=[0] * n + [1_200_000] * n + [2_400_000] * n)
    values = INFUSION.protect(cells, Seeded(2))["value"].reshape(3, n)
    assert (values[0] == 0).all()
    for drawn in values[1:]:
        assert set(drawn) == {1, 2}
        assert abs((drawn == 1).mean() - 0.5) < 0.02


POSTERIOR = NoiseInfusion(small_cells="posterior")


def small_cells(ones: int, twos: int, *, women_ones: int, women_twos: int) -> Cells:
    """Places with a cell of men and one of women each, which have one job or two."""
    places = Dimension(name="place", codes=tuple(map(str, range(max(ones + twos, women_ones + women_twos)))))
    sex = Dimension(name="sex", codes=("M", "F"), public=False)
    count = np.zeros((len(places), 2), dtype=np.int64)
    for at, (one, two) in enumerate(((ones, twos), (women_ones, women_twos))):
        count[: one + two, at] = np.repeat([1, 2], [one, two])
    count = count.reshape(-1)
    cells = Cells(dimensions=(places, sex), positions=np.arange(len(count)), columns={"count": count})
    return cells.with_sums(count * 1_200_000)


def test_small_cells_are_drawn_as_often_as_the_posterior_of_their_kind_of_workers_says() -> None:
    """Men: 30,000 of 40,000 are ones. Women: 10,000 of 40,000. One probability for all, or a coin, would be seen."""
    n = 40_000
    cells = small_cells(30_000, 10_000, women_ones=10_000, women_twos=30_000)
    drawn = POSTERIOR.protect(cells, Seeded(3))["value"].reshape(n, 2)
    found = (drawn == 1).sum(axis=0)
    for at, share in enumerate((0.75, 0.25)):
        assert binomtest(int(found[at]), n, share).pvalue > ACCEPTED
        assert binomtest(int(found[at]), n, 0.5).pvalue < REJECTED
        assert binomtest(int(found[at]), n, share + 0.02).pvalue < REJECTED
    # The draw does not look at the count that it replaces.
    first, last = drawn[:30_000, 0], drawn[30_000:, 0]
    assert abs((first == 1).mean() - (last == 1).mean()) < 0.02


@pytest.mark.parametrize(("ones", "twos"), [(0, 0), (1, 0), (3, 0), (0, 5), (7, 2)])
def test_the_posterior_is_that_of_two_priors_worth_two_cells_each(ones: int, twos: int) -> None:
    cells = small_cells(ones, twos, women_ones=4, women_twos=6)
    of_table = Fraction(ones + 4 + 1, ones + twos + 10 + 2)
    men, women = POSTERIOR.chance_of_one(cells)[:2]
    assert men == float((ones + 2 * of_table) / (ones + twos + 2))
    assert women == float((4 + 2 * of_table) / (10 + 2))
    assert 0 < men < 1


def test_sums_of_small_cells_from_the_posterior_are_right_on_average_and_a_coin_is_not() -> None:
    cells = small_cells(3_000, 500, women_ones=200, women_twos=100)
    small = cells["count"] > 0
    assert abs(POSTERIOR.expected_bias(cells)[small].mean()) < 0.002
    assert INFUSION.expected_bias(cells)[small].mean() == pytest.approx(0.5 - 600 / 3_800)
    drawn = np.mean([POSTERIOR.protect(cells, Seeded(seed))["value"] for seed in range(200)], axis=0)
    off = np.abs(drawn - cells["count"])[small]
    assert drawn[small].mean() - cells["count"][small].mean() == pytest.approx(0, abs=0.01)
    assert np.abs(off - POSTERIOR.expected_error(cells)[small]).max() < 0.2


def test_other_cells_are_what_they_are_with_a_coin() -> None:
    cells = distorted_cells(count=[0, 50, 3, 7], sums=[0, 59_300_000, 2_600_000, 8_500_000])
    assert POSTERIOR.protect(cells, Seeded(1)).equals(INFUSION.protect(cells, Seeded(1)))


def test_a_draw_of_small_cells_is_refused_where_no_count_is_replaced() -> None:
    with pytest.raises(MethodError, match="rounding = 1"):
        NoiseInfusion(small_cells="posterior", rounding=5)
    with pytest.raises(MethodError, match="posterior"):
        NoiseInfusion(small_cells="prior")


def test_the_factor_is_permanent_so_that_nothing_but_small_cells_is_ever_drawn_again() -> None:
    cells = distorted_cells(count=[50, 3], sums=[59_000_000, 2_600_000])
    assert INFUSION.protect(cells, Seeded(1)).equals(INFUSION.protect(cells, Seeded(2)))


def test_infusion_says_plainly_that_it_has_no_formal_guarantee() -> None:
    guarantee = INFUSION.guarantee()
    assert isinstance(guarantee, NoFormalGuarantee)
    assert "bounds nothing" in guarantee.statement


def test_published_figures_do_not_betray_how_far_factors_are_from_one() -> None:
    assert np.isnan(INFUSION.published_error(np.array([0, 1, 500]))).all()
    assert INFUSION.planned_error().share is None


def infused(counts: NDArray[np.int64], units: list[str]) -> NDArray[np.int64]:
    """The published worker cells of establishments, one row each."""
    factors = Factors(key=bytes(16), least=Fraction("0.05"), most=Fraction("0.9")).of(hashes(units))
    cells = distorted_cells(count=counts.ravel().tolist(), sums=(factors[:, None] * counts).ravel().tolist())
    return INFUSION.protect(cells, Seeded(4))["value"].reshape(counts.shape)


def test_the_interval_holds_the_true_count_whatever_the_factor() -> None:
    counts = np.random.default_rng(5).integers(0, 400, (2_000, 3))
    low, _ = INFUSION.published_interval(infused(counts, list(map(str, range(2_000)))).ravel(), 0.9)
    assert (low <= counts.ravel()).all()


def test_shares_within_one_establishment_are_published_as_they_are() -> None:
    counts = np.array([[40_000, 10_000, 50_000]])
    published = infused(counts, ["the only employer in town"])
    assert np.allclose(published / published.sum(), counts / counts.sum(), atol=1e-4)
    assert not np.allclose(published, counts, rtol=0.04)


@pytest.mark.parametrize(
    ("count", "distorted"), [(5, 0), (0, 5), (5, 11 * ONE), (-1, ONE), (5, -5 * ONE), (2**60, 2**60)]
)
def test_columns_no_factor_could_have_made_are_refused(count: int, distorted: int) -> None:
    with pytest.raises(MethodError, match="a cell outside these limits"):
        INFUSION.protect(distorted_cells(count=[count], sums=[distorted]), Seeded(1))


@pytest.mark.parametrize("method", [laplace(), node(), INFUSION], ids=lambda m: m.name)
def test_a_confidence_that_is_no_probability_is_refused(method: Laplace | NodeLaplace | NoiseInfusion) -> None:
    with pytest.raises(ValueError, match="confidence"):
        method.published_interval(np.array([1]), 95.0)
