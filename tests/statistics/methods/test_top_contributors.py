"""Totals move by what their largest contributors and the key say, and sums, means and counts of a cell agree."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import CONFIDENCE, MOSTLY_PERTURBATION, STEPS, SUPPRESSED, rounded_up
from sfumato.noise.randomness import OperatingSystem
from sfumato.statistics.totals.perturbation import half_widths
from sfumato.statistics.totals.quality import blur
from sfumato.statistics.totals.top_contributors import TopContributors
from tests.statistics.methods.contributors import Unit, cells_of

MANY = [f"unit {n}" for n in range(40)]


def protected(cells: Cells, **options: Any) -> Cells:
    return TopContributors(**options).protect(cells, OperatingSystem())


def dominated(value: int = 9_000, *, others: int = 6, name: str = "large", weight: float = 1.0) -> list[Unit]:
    return [Unit(name=name, value=value, weight=weight), *(Unit(name=MANY[n], value=500 + n) for n in range(others))]


def many_keys(units: list[Unit], keys: int = 4_000) -> Cells:
    """The same cell under many keys: each unit gets another name in every one."""
    return cells_of(
        [
            [Unit(name=f"{unit.name}/{key}", value=unit.value, weight=unit.weight, asked=unit.asked) for unit in units]
            for key in range(keys)
        ]
    )


def test_a_total_moves_by_the_magnitudes_of_its_largest_contributors() -> None:
    cells = many_keys([Unit(name=n, value=v) for n, v in (("a", 9_000), ("b", 600), ("c", 300), ("d", 100))])
    moved = protected(cells)["value"] - 10_000
    # ±.4·9,000 ± .3·600 ± .2·300, each times noise between .7 and 1.3.
    assert np.all(np.abs(moved) <= 1.3 * (3_600 + 180 + 60) + 1)
    assert np.all(np.abs(moved) >= 0.7 * 3_600 - 1.3 * (180 + 60) - 1)
    assert abs(np.mean(moved > 0) - 0.5) < 0.04
    deviation = np.sqrt((1 + 0.3**2 / 6) * (3_600**2 + 180**2 + 60**2))
    assert moved.std() == pytest.approx(deviation, rel=0.03)


def test_observed_error_is_the_expected_error() -> None:
    cells = many_keys(dominated())
    method = TopContributors()
    error = np.abs(method.protect(cells, OperatingSystem())["value"] - method.true_value(cells))
    assert error.mean() == pytest.approx(method.expected_error(cells)[0], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [1.0, 33.0])
def test_observed_error_of_a_weighted_count_is_the_expected_error(weight: float) -> None:
    cells = many_keys([Unit(name=str(n), value=n, weight=weight) for n in range(20)])
    method = TopContributors(statistic="count")
    error = np.abs(method.protect(cells, OperatingSystem())["value"] - method.true_value(cells))
    # The mean deviation of the table is .82 of its standard deviation, and .8 is told.
    assert error.mean() == pytest.approx(method.expected_error(cells)[0], rel=0.08)


def test_a_key_decides_everything_and_randomness_nothing() -> None:
    cells = cells_of([dominated()])
    assert protected(cells).equals(protected(cells))


def test_another_unit_redraws_the_size_and_keeps_the_direction() -> None:
    with_one_more = [*dominated(), Unit(name="new", value=1)]
    before, after = (cells_of([units]) for units in (dominated(), with_one_more))
    for rank in (1, 2, 3):
        assert before[f"unit_word_0_{rank}"] == after[f"unit_word_0_{rank}"]
        assert before[f"cell_word_0_{rank}"] != after[f"cell_word_0_{rank}"]
    moved = [int(protected(cells)["value"][0] - TopContributors().true_value(cells)[0]) for cells in (before, after)]
    assert moved[0] != moved[1]
    assert np.sign(moved[0]) == np.sign(moved[1])


@pytest.mark.parametrize(("n", "hidden"), [(0, True), (1, True), (2, True), (3, False)])
def test_cells_with_at_most_two_contributors_are_suppressed(n: int, hidden: bool) -> None:
    cells = cells_of([[Unit(name=MANY[i], value=100 + i) for i in range(n)], dominated()])
    found = protected(cells)
    assert (found["status"][0] == SUPPRESSED) == hidden
    if hidden:
        assert found["value"][0] == 0
        assert found["rse"][0] == -1


def test_negative_values_are_ordered_by_size_and_the_perturbation_keeps_their_sign() -> None:
    loss = [Unit(name="loss", value=-9_000), *(Unit(name=MANY[n], value=50) for n in range(5))]
    gain = [Unit(name="loss", value=9_000), *(Unit(name=MANY[n], value=-50) for n in range(5))]
    down, up = (protected(cells_of([units]))["value"][0] for units in (loss, gain))
    assert down == -up


def test_only_units_that_asked_are_perturbed() -> None:
    nobody = [Unit(name=MANY[n], value=1_000 * (n + 1), asked=False) for n in range(6)]
    cells = cells_of([nobody])
    assert protected(cells)["value"][0] == 21_000
    one = [*nobody[:-1], Unit(name=MANY[5], value=6_000)]
    assert 0.7 * 2_400 - 1 <= abs(protected(cells_of([one]))["value"][0] - 21_000) <= 1.3 * 2_400 + 1


def test_a_mean_is_the_total_by_the_count_of_the_same_cell() -> None:
    cells = many_keys(dominated(weight=3.5), keys=200)
    total, count, mean = (
        protected(cells, statistic=statistic, decimals=2 if statistic == "mean" else 0)
        for statistic in ("total", "count", "mean")
    )
    seen = (mean["status"] != SUPPRESSED) & (count["value"] > 0)
    ratio, found = total["value"][seen] / count["value"][seen], mean["value"][seen] / 100
    # The count is published in whole units, the mean divides before rounding.
    assert np.all(np.abs(found - ratio) <= found * 0.5 / count["value"][seen] + 1)


def test_counts_move_by_their_table_and_stay_zero_or_at_least_three() -> None:
    cells = many_keys([Unit(name=MANY[n], value=1) for n in range(5)])
    counts = protected(cells, statistic="count")["value"]
    assert counts.std() == pytest.approx(np.sqrt(3), rel=0.1)
    assert not np.isin(counts, (1, 2)).any()


def test_units_with_a_large_weight_are_moved_less_when_asked() -> None:
    cells = many_keys(dominated(weight=400.0), keys=400)
    full, relieved = (
        np.abs(protected(cells, weight_relief=relief)["value"] - TopContributors().true_value(cells)).mean()
        for relief in (False, True)
    )
    assert relieved == pytest.approx(full / 20, rel=0.1)


def test_sampling_error_takes_the_place_of_perturbation_when_asked() -> None:
    units = dominated()
    enough = cells_of([units], sampling=10_000.0)
    true = TopContributors().true_value(enough)[0]
    full, relieved = (protected(enough, sampling_relief=relief)["value"][0] - true for relief in (False, True))
    assert relieved == pytest.approx(full / 2, abs=1), "never by less than half"
    none = cells_of([units], sampling=0.0)
    assert protected(none, sampling_relief=True)["value"][0] == protected(none)["value"][0]


def test_magnitudes_by_shape_move_a_dominated_cell_less_than_the_compromise() -> None:
    cells = many_keys([Unit(name=n, value=v) for n, v in (("a", 9_000), ("b", 500), ("c", 500))], keys=300)
    fixed, shaped = (np.abs(protected(cells, by_shape=shape)["value"] - 10_000).mean() for shape in (False, True))
    assert shaped == pytest.approx(0.15 * 9_000, rel=0.05)
    assert shaped < 0.5 * fixed


def test_parity_turns_the_direction_with_the_number_of_units() -> None:
    odd, even = dominated(others=6), dominated(others=7)
    for units, sign in ((odd, 1), (even, -1)):
        cells = cells_of([units])
        true = TopContributors().true_value(cells)[0]
        plain, turned = (protected(cells, parity=p)["value"][0] - true for p in (False, True))
        assert turned == sign * plain


def test_a_cell_that_owes_its_error_to_perturbation_is_marked() -> None:
    units = dominated()
    assert protected(cells_of([units], sampling=0.0))["status"][0] == MOSTLY_PERTURBATION
    assert protected(cells_of([units], sampling=50_000.0))["status"][0] == 0


@pytest.mark.slow
def test_the_published_error_of_a_mean_counts_the_perturbation_of_its_count() -> None:
    cells = many_keys([Unit(name=MANY[n], value=1_000 + n) for n in range(6)], keys=3_000)
    method = TopContributors(statistic="mean", decimals=2)
    found = method.protect(cells, OperatingSystem())
    seen = found["status"] != SUPPRESSED
    true = method.true_value(cells)
    shown = seen & (found["low"] != np.iinfo(np.int64).min)
    covered = (found["low"] <= true) & (true <= found["high"])
    assert covered[shown].mean() >= 0.85


def test_published_errors_are_raised_by_a_secret_of_the_leader_that_never_changes() -> None:
    blurs = []
    for others in (5, 9, 20):
        cells = cells_of([dominated(others=others)])
        blurs.append(float(blur(cells)[0]))
    assert len(set(blurs)) == 1
    assert 1 <= blurs[0] <= 1.5
    assert len({float(blur(cells_of([dominated(name=name)]))[0]) for name in "abcd"}) == 4


def test_published_relative_errors_are_on_a_coarse_scale_and_never_too_small() -> None:
    exact = np.array([0.0001, 0.011, 0.26, 1.0, 2.0])
    assert np.all(rounded_up(exact) >= exact)
    cells = many_keys(dominated(), keys=50)
    rse = protected(cells)["rse"]
    assert set(rse[rse >= 0].tolist()) <= set(np.rint(1000 * STEPS).astype(int).tolist())


def test_the_interval_comes_from_the_distribution_of_the_perturbation() -> None:
    cells = many_keys(dominated(), keys=4_000)
    found = protected(cells)
    shown = (found["low"] != np.iinfo(np.int64).min) & (found["status"] != SUPPRESSED)
    true = TopContributors().true_value(cells)
    covered = (found["low"] <= true) & (true <= found["high"])
    assert covered[shown].mean() >= CONFIDENCE - 0.02


@pytest.mark.parametrize("scales", [(0.4, 0.0, 0.0), (0.3, 0.3, 0.3), (0.36, 0.015, 0.01), (0.1, 0.09, 0.02)])
@pytest.mark.parametrize("sampling", [0.0, 0.05, 0.3])
def test_half_widths_hold_the_stated_share_of_draws(scales: tuple[float, ...], sampling: float) -> None:
    rng = np.random.default_rng(3)
    draws = 200_000
    noise = 1 + 0.3 * (rng.uniform(0, 1, (draws, 3)) - rng.uniform(0, 1, (draws, 3)))
    moved = (np.array(scales) * noise * rng.choice([-1, 1], (draws, 3))).sum(axis=1) + sampling * rng.normal(size=draws)
    width = half_widths(np.array([scales]), np.array([sampling]), spread=0.3, confidence=0.9)[0]
    assert np.mean(np.abs(moved) <= width) == pytest.approx(0.9, abs=0.02)


sizes = st.one_of(st.just(0.0), st.floats(1e-3, 1e12), st.floats(-1e12, -1e-3))


@given(
    scales=st.lists(sizes, min_size=1, max_size=4),
    sampling=st.one_of(st.just(0.0), st.floats(1e-3, 1e12)),
    spread=st.floats(0.01, 0.99),
    confidence=st.floats(0.5, 0.99),
)
def test_half_widths_are_the_least_that_hold_the_stated_share(
    scales: list[float], sampling: float, spread: float, confidence: float
) -> None:
    (width,) = half_widths(np.array([scales]), np.array([sampling]), spread=spread, confidence=confidence)
    deviation = np.sqrt(sampling**2 + spread**2 / 6 * np.square(scales).sum())
    if not deviation:
        assert width == 0
        return
    centres = np.array([np.dot(scales, signs) for signs in product((1, -1), repeat=len(scales))])

    def share(within: float) -> float:
        return float(np.mean(norm.cdf(within, centres, deviation) - norm.cdf(-within, centres, deviation)))

    reach = np.abs(scales).sum() + 6 * deviation
    assert share(width) >= confidence - 1e-12
    assert share(width - 2e-12 * reach) <= confidence + 1e-12


def test_a_half_width_does_not_depend_on_its_company() -> None:
    rng = np.random.default_rng(5)
    scales, sampling = rng.pareto(1.0, (20_000, 3)), rng.exponential(0.1, 20_000)
    scales[::7], sampling[::3] = 0.0, 0.0
    together = half_widths(scales, sampling, spread=0.3, confidence=0.9)
    for row in (0, 1, 2, 8_191, 8_192, 19_999):
        alone = half_widths(scales[row : row + 1], sampling[row : row + 1], spread=0.3, confidence=0.9)
        assert together[row] == pytest.approx(alone[0], rel=1e-11)


@pytest.mark.parametrize(
    "options",
    [
        {"magnitudes": ()},
        {"magnitudes": (Fraction(0),)},
        {"count_variance": Fraction(90)},
        {"spread": Fraction(1)},
        {"suppress": -1},
        {"decimals": 9},
    ],
)
def test_options_out_of_range_are_refused_without_quoting_them(options: dict[str, Any]) -> None:
    with pytest.raises(MethodError) as refusal:
        TopContributors(**options)
    assert refusal.value.found == "another value"


def test_the_text_of_the_method_holds_no_secret() -> None:
    method = TopContributors(magnitudes=(Fraction("0.3713"),), spread=Fraction("0.271"))
    assert "371" not in repr(method)
    assert "271" not in repr(method)


def test_cells_whose_variance_is_mostly_perturbation_are_withheld_beyond_the_stated_share() -> None:
    cells = [dominated(others=5)] * 2
    sampled = [cells_of(cells[:1], sampling=sampling) for sampling in (10.0, 10_000.0)]
    plain, strict = TopContributors(), TopContributors(most_perturbation=Fraction("0.8"))
    assert [int(plain.protect(one, OperatingSystem())["status"][0]) for one in sampled] == [MOSTLY_PERTURBATION, 0]
    assert [int(strict.protect(one, OperatingSystem())["status"][0]) for one in sampled] == [SUPPRESSED, 0]
    assert "beyond a limit" in strict.description
    assert "beyond a limit" not in plain.description
    assert strict.noise_options == plain.noise_options, "it moves nothing: tables may differ in it"
    with pytest.raises(MethodError, match="a share above 0"):
        TopContributors(most_perturbation=Fraction(0))
