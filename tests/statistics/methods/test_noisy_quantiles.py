"""Percentiles from noisy bins: what is published, what is withheld, and what is refused."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.method import ABOVE, BELOW, SUPPRESSED
from sfumato.noise.randomness import OperatingSystem, Seeded
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.people.bins import PublicBins
from sfumato.statistics.people.curves import Crossings, nonnegative_bins
from sfumato.statistics.people.percentiles import CURVES, CurveName, NoisyQuantiles, curve_named
from tests.statistics.methods.graduates import AT, bins, cells_of_bins, counted, earnings

MUCH = Fraction(50)
"""An ε at which there is hardly any noise."""


def method(**changes: Any) -> NoisyQuantiles:
    told: dict[str, Any] = {"alpha": Fraction(1), "epsilon": Fraction(3, 2), "edges": bins(20).edges}
    return NoisyQuantiles(**(told | changes))


def graduates(cells: int = 40, size: int = 200) -> Cells:
    return cells_of_bins(counted(earnings(cells, size, seed=1), bins(20)))


@pytest.mark.parametrize("curve", CURVES)
def test_groups_keep_their_places_and_get_one_row_a_percentile(curve: CurveName) -> None:
    whole = graduates()
    some = Cells(
        dimensions=whole.dimensions,
        positions=whole.positions.reshape(40, 20)[::2].ravel(),
        columns={"count": whole["count"].reshape(40, 20)[::2].ravel()},
    )
    protected = method(curve=curve).protect(some, OperatingSystem())
    assert [d.name for d in protected.dimensions] == ["field", "at"]
    assert protected.dimensions[-1].codes == ("p25", "p50", "p75")
    assert np.array_equal(protected.codes("field"), np.repeat(np.arange(0, 40, 2), 3))
    assert set(protected.columns) == {"value", "count", "error", "status"}


@pytest.mark.parametrize("curve", CURVES)
def test_percentiles_never_fall_and_stay_within_the_bounds(curve: CurveName) -> None:
    sparse = cells_of_bins(np.random.default_rng(2).poisson(0.7, (2_000, 20)))
    places = tuple(map(Fraction, (1, 10, 25, 49, 50, 51, 90, 99)))
    protected = method(curve=curve, at=places, minimum=0).protect(sparse, Seeded(2))
    values, status, error = (protected[name].reshape(-1, len(places)) for name in ("value", "status", "error"))
    shown = status[:, 0] != SUPPRESSED
    assert shown.sum() > 100
    told = np.where(status == 0, values, np.nan)
    for cell in told[shown]:
        assert (np.diff(cell[~np.isnan(cell)]) >= 0).all()
    assert values[shown].min() >= bins(20).edges[0]
    assert values[shown].max() <= bins(20).edges[-1]
    assert np.array_equal(error[shown] > 0, status[shown] == 0)


@pytest.mark.parametrize("curve", CURVES)
def test_a_percentile_in_the_first_or_the_last_bin_is_a_bound_without_an_error(curve: CurveName) -> None:
    counts = np.zeros((400, 20), dtype=np.int64)
    counts[:200, 0], counts[200:, -1] = 60, 60
    counts[:, 9:11] += 30
    protected = method(curve=curve, at=(Fraction(20), Fraction(50), Fraction(80))).protect(
        cells_of_bins(counts), Seeded(6)
    )
    low, _, high = (protected["status"].reshape(-1, 3)[:, place] for place in range(3))
    assert (low[:200] == BELOW).mean() > 0.95
    assert (high[200:] == ABOVE).mean() > 0.95
    value, error = (protected[name].reshape(-1, 3) for name in ("value", "error"))
    below, above = value[low == BELOW, 0], value[high == ABOVE, 2]
    assert (below >= bins(20).edges[1]).all()
    assert (above <= bins(20).edges[-2]).all()
    assert np.isin([*below, *above], bins(20).edges).all()
    assert (error[low == BELOW, 0] == -1).all()
    assert (error[high == ABOVE, 2] == -1).all()


def test_a_question_of_an_earlier_version_is_told_as_that_version_told_it() -> None:
    # Its text is part of the name under which answers are kept: another one would charge the table again.
    assert repr(NoisyQuantiles(alpha=Fraction(1), epsilon=Fraction(2), bounds=False)) == (
        "NoisyQuantiles(alpha=Fraction(1, 1), epsilon=Fraction(2, 1), worker_cells=0, curve='adaptive', minimum=30, "
        "at=(Fraction(25, 1), Fraction(50, 1), Fraction(75, 1)), edges=(0, 1, 2), periods=1, decimals=0)"
    )
    assert "tails=(1, 1), bounds=True" in repr(method())


@pytest.mark.parametrize("curve", CURVES)
def test_cells_with_a_noisy_count_below_the_minimum_are_withheld_and_only_those(curve: CurveName) -> None:
    counts = np.random.default_rng(3).multinomial(30, np.full(20, 0.05), 1_000)
    protected = method(curve=curve).protect(cells_of_bins(counts), Seeded(3))
    withheld = protected["count"] < 30
    assert 0.2 < withheld.mean() < 0.8, "the count has noise"
    assert np.array_equal(protected["status"] == SUPPRESSED, withheld)
    assert np.array_equal(protected["value"] == 0, withheld)
    assert np.array_equal(protected["error"] == -1, protected["status"] != 0)
    assert (protected["count"].reshape(-1, 3) == protected["count"].reshape(-1, 3)[:, :1]).all()


@pytest.mark.parametrize("curve", CURVES)
def test_the_published_count_is_right_on_average(curve: CurveName) -> None:
    counts = np.tile(np.random.default_rng(4).multinomial(60, np.full(20, 0.05)), (4_000, 1))
    people = method(curve=curve).protect(cells_of_bins(counts), Seeded(4))["count"][::3]
    assert abs(people.mean() - 60) < 4 * people.std() / np.sqrt(4_000)


@pytest.mark.parametrize("curve", ["plain", "isotonic", "hierarchical"])
def test_without_noise_a_percentile_is_interpolated_on_the_logarithmic_scale(curve: CurveName) -> None:
    edges = (100, 1_000, 10_000, 100_000)
    cells = cells_of_bins(np.array([[100, 200, 100]]))
    found = method(curve=curve, edges=edges, epsilon=MUCH, at=(Fraction("37.5"), Fraction(50))).protect(
        cells, Seeded(1)
    )
    assert found["value"].tolist() == [round(1_000 * 10**0.25), round(1_000 * 10**0.5)]
    assert found["count"].tolist() == [400, 400]


def test_decimals_are_digits_of_the_published_value_and_its_error() -> None:
    cells = graduates(cells=5)
    whole, fine = (method(decimals=digits).protect(cells, Seeded(1)) for digits in (0, 2))
    told = whole["status"] == 0
    for column in ("value", "error"):
        assert fine[column][told] / 100 == pytest.approx(whole[column][told], abs=0.6)
    assert np.array_equal(fine["value"][~told], 100 * whole["value"][~told])
    assert not told.all()


def test_every_period_has_an_even_part_of_epsilon_and_the_table_costs_all_of_it() -> None:
    one, three = method(epsilon=Fraction(1, 2)), method(periods=3)
    assert three.guarantee() == EmployerEmployee(definition="individuals", alpha=Fraction(1), epsilon=Fraction(3, 2))
    assert one.percentile_curve == three.percentile_curve
    assert one.protect(graduates(), Seeded(1)).equals(three.protect(graduates(), Seeded(1)))


def test_large_tables_are_worked_through_in_parts() -> None:
    counts = np.random.default_rng(5).poisson(3, (10_000, 20))
    protected = method(curve="plain").protect(cells_of_bins(counts), Seeded(1))
    assert len(protected) == 30_000
    assert np.abs(protected["count"][::3] - counts.sum(axis=1)).max() < 40


def test_no_cells_stay_no_cells() -> None:
    protected = method().protect(cells_of_bins(np.empty((0, 20), dtype=np.int64)), Seeded(1))
    assert len(protected) == 0
    assert set(protected.columns) == {"value", "count", "error", "status"}


@given(noisy=st.lists(st.integers(-20, 40), min_size=2, max_size=12))
def test_nonnegative_bins_are_the_nearest_ones_with_the_same_total(noisy: list[int]) -> None:
    given_ = np.array([noisy], dtype=np.float64)
    found = nonnegative_bins(given_)[0]
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(max(sum(noisy), 0))
    # Nearest: what is taken off is the same in every bin that is left, and no more than that elsewhere.
    taken = given_[0] - found
    if found.sum() > 0:
        assert taken[found > 0] == pytest.approx(taken.max())


@settings(max_examples=50)
@given(steps=st.lists(st.integers(0, 9), min_size=2, max_size=9), share=st.floats(0.01, 0.99))
def test_a_curve_reaches_its_target_where_the_crossing_says(steps: list[int], share: float) -> None:
    curve = np.array([[0, *np.cumsum(steps)]], dtype=np.float64)
    target = share * curve[:, -1:]
    found = Crossings.of(curve, target)
    bin_, inside = int(found.bin[0, 0]), float(found.share[0, 0])
    reached = curve[0, bin_] + inside * (curve[0, bin_ + 1] - curve[0, bin_])
    assert reached == pytest.approx(target[0, 0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edges": (0, 10, 10, 30)}, "increase strictly"),
        ({"edges": (0, 10)}, "at least two bins"),
        ({"at": (Fraction(101),)}, "between 0 and 100"),
        ({"at": (Fraction(0),)}, "between 0 and 100"),
        ({"at": (Fraction(-5), Fraction(50))}, "between 0 and 100"),
        ({"at": ()}, "between 0 and 100"),
        ({"at": (Fraction(50), Fraction(25))}, "increase"),
        ({"at": (Fraction("0.00001"),)}, "four digits"),
        ({"curve": "bayes"}, "adaptive, isotonic"),
        ({"minimum": -1}, "from 0 on"),
        ({"periods": 0}, "at least one"),
        ({"decimals": 7}, "0 to 6"),
        ({"epsilon": Fraction(0)}, "epsilon"),
    ],
)
def test_parameters_that_cannot_be_are_refused_before_anything_is_charged(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(MethodError, match=words):
        method(**changes)


def test_counts_that_cannot_be_are_refused_without_naming_one() -> None:
    counts = np.full((3, 20), 5)
    counts[1, 3] = -77
    with pytest.raises(MethodError, match="no negative count") as refusal:
        method().protect(cells_of_bins(counts), Seeded(1))
    assert "77" not in str(refusal.value)


def test_cells_that_leave_bins_out_are_refused_because_empty_bins_get_noise_too() -> None:
    whole = graduates(cells=2)
    some = Cells(
        dimensions=whole.dimensions, positions=whole.positions[1:], columns={"count": whole["count"][1:].copy()}
    )
    with pytest.raises(ValueError, match="all its bins"):
        method().protect(some, Seeded(1))
    place = Dimension(name="place", codes=("a",))
    with pytest.raises(ValueError, match="last dimension"):
        method().protect(
            Cells(dimensions=(place,), positions=np.arange(1), columns={"count": np.ones(1, int)}), Seeded(1)
        )


def test_an_unknown_curve_is_refused_by_name() -> None:
    with pytest.raises(MethodError, match="one of adaptive"):
        curve_named("linear", bins=PublicBins(edges=(0, 1, 2)), at=AT, epsilon=MUCH)  # type: ignore[arg-type]
