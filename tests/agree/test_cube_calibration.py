"""Calibration of a cube: controls hold exactly, the change is the smallest, and no table gets noisier."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from sfumato.agree.least_squares import Margin, is_product, residuals, smallest_change, summed
from sfumato.agree.whole_numbers import in_a_chain, met_in_reference_cells, nearest_whole
from sfumato.arrays import Integers
from sfumato.cells import Dimension
from sfumato.errors import MethodError
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Seeded
from sfumato.statistics.cube.calibrate import least_squares, rake
from sfumato.statistics.cube.controls import Control, agreed_margins
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.levels import (
    MeasuredMargin,
    effect_variances,
    query_variance,
    remaining_share,
    table_variance,
)

SHAPE = (4, 3, 2, 3)
DIMENSIONS = tuple(
    Dimension(name=name, codes=tuple(map(str, range(length)))) for name, length in zip("abcd", SHAPE, strict=True)
)
SETS = {
    "all one-way tables": ["a", "b", "c", "d"],
    "tables of unequal dimension": ["abc", "d", "b"],
    "tables that cross": ["ab", "bc", "cd"],
    "a ring of two-way tables": ["ab", "bc", "ac", "d"],
    "the grand total": [""],
}


def cube_of(counts: Integers) -> Cube:
    return Cube(dimensions=DIMENSIONS, columns={"count": counts})


def true_counts(seed: int, mean: float = 2.0) -> Integers:
    return np.random.default_rng(seed).poisson(mean, SHAPE).astype(np.int64) * MILLION


def perturbed(counts: Integers, seed: int) -> Integers:
    drawn = TruncatedGeometric(epsilon=Fraction(1), cap=8).sample(counts.size, Seeded(seed))
    return counts + MILLION * drawn.reshape(counts.shape)


def exact_controls(counts: Integers, tables: list[str]) -> list[Control]:
    cube = cube_of(counts)
    return [Control(name=" × ".join(by) or "total", by=tuple(by), values=cube.project(*by)["count"]) for by in tables]


def all_sums(start: Integers, controls: list[Control]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The matrix that is never written down elsewhere: every sum of every control, and what each of them lacks."""
    axes = [tuple("abcd".index(name) for name in control.by) for control in controls]
    unit = np.eye(start.size).reshape(start.size, *SHAPE)
    matrix = np.array([np.concatenate([np.ravel(summed(cell, a)) for a in axes]) for cell in unit]).T
    lacking = [np.ravel(control.values - summed(start, a)) for control, a in zip(controls, axes, strict=True)]
    return matrix, np.concatenate(lacking)


def met(values: Integers, controls: list[Control]) -> bool:
    cube = cube_of(values)
    return all(np.array_equal(cube.project(*control.by)["count"], control.values) for control in controls)


@pytest.mark.parametrize("tables", SETS.values(), ids=SETS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_every_control_is_met_to_the_last_unit(tables: list[str], weighted: bool, nonnegative: bool) -> None:
    for seed in range(5):
        counts = true_counts(seed)
        controls = exact_controls(counts, tables)
        variances = np.random.default_rng(seed).gamma(2, size=SHAPE) if weighted else None
        found = least_squares(
            DIMENSIONS, perturbed(counts, seed), controls, variances=variances, nonnegative=nonnegative
        )
        if nonnegative:
            assert found.values.min() >= 0
            free = least_squares(DIMENSIONS, perturbed(counts, seed), controls, variances=variances)
            assert found.change >= free.change
            assert found.largest_gap <= 5, "millionths, where tables meet in a ring"
            assert found.converged == (found.largest_gap == 0)
            if tables != SETS["a ring of two-way tables"]:
                assert met(found.values, controls)
        else:
            assert found.converged
            assert met(found.values, controls)


@pytest.mark.parametrize("tables", SETS.values(), ids=SETS)
@pytest.mark.parametrize("kind", ["equal", "product", "any"])
def test_the_change_is_the_smallest_that_meets_the_controls(tables: list[str], kind: str) -> None:
    counts = true_counts(1)
    start, controls = perturbed(counts, 2), exact_controls(counts, tables)
    chance = np.random.default_rng(4)
    factors = [chance.uniform(0.2, 3, length) for length in SHAPE]
    product = np.einsum("a,b,c,d->abcd", *factors)
    variances = {"equal": None, "product": product, "any": chance.gamma(1, size=SHAPE)}[kind]
    assert kind == "equal" or is_product(variances) == (kind == "product")
    found = least_squares(DIMENSIONS, start, controls, variances=variances)
    matrix, lacking = all_sums(start, controls)
    v = np.ones(start.size) if variances is None else variances.ravel()
    best = v * (matrix.T @ np.linalg.pinv(matrix * v @ matrix.T) @ lacking)
    assert (found.values - start).ravel() == pytest.approx(best, abs=start.size)  # millionths: rounding in few cells
    assert found.change == pytest.approx(float((best**2 / v).sum()), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_without_negative_cells_it_is_still_the_smallest_change(weighted: bool) -> None:
    counts = true_counts(3, mean=0.7)
    start, controls = perturbed(counts, 5), exact_controls(counts, ["a", "b", "cd"])
    v = np.random.default_rng(1).gamma(2, size=SHAPE) if weighted else np.ones(SHAPE)
    found = least_squares(DIMENSIONS, start, controls, variances=v, nonnegative=True)
    # The same as one bounded least-squares problem in which missing a control costs very much.
    matrix, lacking = all_sums(start, controls)
    weight, scale = 1e5, np.sqrt(v.ravel())
    above, below = np.diag(1 / scale), weight * matrix
    y = start.ravel() / MILLION
    target = np.concatenate([y / scale, weight * (lacking / MILLION + matrix @ y)])
    best = lsq_linear(np.vstack([above, below]), target, bounds=(0, np.inf), method="bvls").x
    assert found.values.ravel() / MILLION == pytest.approx(best, abs=1e-4)
    assert found.change / MILLION**2 == pytest.approx(float(((best - y) ** 2 / v.ravel()).sum()), rel=1e-5)


@pytest.mark.parametrize("tables", SETS.values(), ids=SETS)
def test_no_table_of_any_run_gets_noisier(tables: list[str]) -> None:
    for seed in range(20):
        counts = true_counts(seed)
        start = perturbed(counts, seed)
        found = least_squares(DIMENSIONS, start, exact_controls(counts, tables))
        for size in range(5):
            for axes in combinations(range(4), size):
                before = np.square(summed(start - counts, axes) / MILLION).sum()
                after = np.square(summed(found.values - counts, axes) / MILLION).sum()
                assert after <= before + 1e-6


def test_the_share_of_variance_that_remains_is_the_one_of_theory() -> None:
    noise = np.random.default_rng(8).normal(size=(4_000, *SHAPE))
    one_way = [(axis,) for axis in range(4)]
    lacking = [Margin(axes=(0, a + 1), values=-summed(noise, (0, a + 1))) for (a,) in one_way]
    left = noise + smallest_change(noise.shape, lacking).cells
    for size in range(1, 5):
        for table in combinations(range(4), size):
            axes = (0, *(axis + 1 for axis in table))
            found = summed(left, axes).var() / summed(noise, axes).var()
            k = [SHAPE[axis] for axis in table]
            formula = 1 - (1 + sum(length - 1 for length in k)) / np.prod(k)
            assert remaining_share(SHAPE, table, one_way) == pytest.approx(formula, abs=1e-12)
            assert found == pytest.approx(formula, rel=0.05, abs=1e-9)
    assert remaining_share(SHAPE, (0, 1, 3), [(0, 1), (3,)]) == pytest.approx(1 - (12 + 2) / 36)


def test_noise_of_controls_ends_up_in_tables_as_theory_says() -> None:
    counts = np.full(SHAPE, 20, dtype=np.int64) * MILLION
    fine, coarse = TruncatedGeometric(epsilon=Fraction(1), cap=12), TruncatedGeometric(epsilon=Fraction(1, 2), cap=24)
    runs = 400
    cells = fine.sample(runs * counts.size, Seeded(1)).reshape(runs, *SHAPE)
    noisy = {
        by: coarse.sample(runs * 50, Seeded(place)).reshape(runs, 50) for place, by in enumerate(("ab", "b", "cd"))
    }
    squares: dict[tuple[int, ...], float] = {}
    for run in range(runs):
        controls = []
        for by, noise in noisy.items():
            true = cube_of(counts).project(*by)["count"]
            values = true + MILLION * noise[run, : true.size].reshape(true.shape)
            controls.append(Control(name=by, by=tuple(by), values=values, variance=coarse.variance * MILLION**2))
        found = least_squares(DIMENSIONS, counts + MILLION * cells[run], controls)
        for table in [(), (0,), (1,), (0, 1), (2, 3), (0, 3), (0, 1, 2, 3)]:
            error = summed(found.values - counts, table) / MILLION
            squares[table] = squares.get(table, 0.0) + float(np.square(error).mean()) / runs
    measured = [MeasuredMargin(axes=tuple("abcd".index(name) for name in by), variance=coarse.variance) for by in noisy]
    effects = effect_variances(SHAPE, measured)
    for table, square in squares.items():
        assert square == pytest.approx(table_variance(SHAPE, table, effects, otherwise=fine.variance), rel=0.2)


def test_the_variance_of_a_sum_with_filters_is_the_one_of_its_projection() -> None:
    controls = [(0, 1), (1,), (3,)]
    effects = effect_variances(SHAPE, [MeasuredMargin(axes=axes, variance=0.0) for axes in controls])
    for filters in [([0, 2], [1], [0, 1], [0]), ([0, 1, 2, 3], [0, 1], [1], [0, 1, 2]), ([3], [2], [0], [1, 2])]:
        query = np.zeros(SHAPE)
        query[np.ix_(*filters)] = 1.0
        lacking = [Margin(axes=axes, values=-summed(query, axes)) for axes in controls]
        left = query + smallest_change(SHAPE, lacking).cells
        found = query_variance(SHAPE, [len(codes) for codes in filters], effects, otherwise=0.7)
        assert found == pytest.approx(0.7 * float(np.square(left).sum()), abs=1e-9)
    noisy = effect_variances(
        SHAPE, [MeasuredMargin(axes=(0, 1), variance=3.0), MeasuredMargin(axes=(1, 2), variance=2.0)]
    )
    for table in [(), (1,), (0, 2), (0, 1, 2, 3)]:
        one_cell = [1 if axis in table else length for axis, length in enumerate(SHAPE)]
        expected = table_variance(SHAPE, table, noisy, otherwise=0.7)
        assert query_variance(SHAPE, one_cell, noisy, otherwise=0.7) == pytest.approx(expected)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10_000), tables=st.sampled_from(list(SETS.values())), data=st.data())
def test_noisy_controls_agree_exactly_afterwards_and_exact_ones_stay(
    seed: int, tables: list[str], data: st.DataObject
) -> None:
    chance = np.random.default_rng(seed)
    controls = []
    for control in exact_controls(true_counts(seed, mean=6), tables):
        exact = data.draw(st.booleans())
        noise = 0 if exact else chance.integers(-3 * MILLION, 3 * MILLION, control.values.shape)
        variance = 0.0 if exact else float(chance.uniform(0.5, 5)) * MILLION**2
        controls.append(
            Control(name=control.name, by=control.by, values=np.asarray(control.values + noise), variance=variance)
        )
    margins = agreed_margins(DIMENSIONS, controls)
    for control, margin in zip(controls, margins, strict=True):
        if control.exact:
            assert np.array_equal(margin.values, control.values)
    for one, other in combinations(margins, 2):
        shared = [axis for axis in one.axes if axis in other.axes]
        ours, theirs = (summed(m.values, tuple(m.axes.index(axis) for axis in shared)) for m in (one, other))
        assert np.array_equal(ours, theirs)
    found = least_squares(DIMENSIONS, perturbed(true_counts(seed), seed), controls)
    assert found.largest_gap == 0


def test_the_order_in_which_a_control_names_its_dimensions_does_not_matter() -> None:
    counts = true_counts(2)
    start = perturbed(counts, 3)
    straight = least_squares(DIMENSIONS, start, exact_controls(counts, ["abc", "d"]))
    turned = least_squares(DIMENSIONS, start, exact_controls(counts, ["cab", "d"]))
    assert np.array_equal(straight.values, turned.values)


def test_contradictory_exact_controls_are_refused_and_named() -> None:
    counts = true_counts(0)
    controls = exact_controls(counts, ["ab", "bc"])
    moved = controls[1].values.copy()
    moved[0, 0] += 1
    moved[1, 0] -= 1
    wrong = [controls[0], Control(name="bc", by=("b", "c"), values=moved)]
    with pytest.raises(MethodError, match=r"'a × b' and 'bc'(.|\n)*sums by b(.|\n)*2 of 3"):
        least_squares(DIMENSIONS, counts, wrong)
    with pytest.raises(MethodError, match="'a × b' and 'bc'"):
        rake(DIMENSIONS, counts, wrong)
    total = Control(name="total", by=(), values=np.asarray(counts.sum() + 1))
    with pytest.raises(MethodError, match="grand total"):
        least_squares(DIMENSIONS, counts, [controls[0], total])


@pytest.mark.parametrize(
    ("control", "words"),
    [
        (Control(name="x", by=("height",), values=np.zeros(3, dtype=np.int64)), "'height'"),
        (Control(name="x", by=("a", "a"), values=np.zeros((4, 4), dtype=np.int64)), "each once"),
        (Control(name="x", by=("a",), values=np.zeros(3, dtype=np.int64)), "shape"),
        (Control(name="x", by=("a",), values=np.zeros(4, dtype=np.int64), variance=-1.0), "variance"),
    ],
)
def test_controls_that_do_not_fit_the_cube_are_refused(control: Control, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        least_squares(DIMENSIONS, true_counts(0), [control])
    with pytest.raises(MethodError, match="name of its own"):
        agreed_margins(DIMENSIONS, [control, control])


def test_negative_exact_controls_cannot_be_met_without_negative_cells() -> None:
    values = np.array([5, -1, 2, 2], dtype=np.int64) * MILLION
    with pytest.raises(MethodError, match="no negative sums"):
        least_squares(DIMENSIONS, true_counts(0), [Control(name="a", by=("a",), values=values)], nonnegative=True)


@given(seed=st.integers(0, 1_000), tables=st.sampled_from(list(SETS.values())))
def test_whatever_integer_margins_agree_can_be_met_in_reference_cells(seed: int, tables: list[str]) -> None:
    chance = np.random.default_rng(seed)
    wanted = chance.integers(-50, 50, SHAPE)
    margins = []
    for by in tables:
        axes = tuple("abcd".index(name) for name in by)
        margins.append(Margin(axes=axes, values=np.asarray(summed(wanted, axes))))
    base = tuple(int(chance.integers(length)) for length in SHAPE)
    found = met_in_reference_cells(chance.integers(-50, 50, SHAPE), margins, base=base)
    assert all(np.array_equal(summed(found, margin.axes), margin.values) for margin in margins)


@settings(deadline=None)
@given(seed=st.integers(0, 1_000), tables=st.sampled_from(list(SETS.values())), careful=st.booleans())
def test_whole_numbers_near_fractions_have_the_margins_of_their_chain(
    seed: int, tables: list[str], careful: bool
) -> None:
    chance = np.random.default_rng(seed)
    true = chance.poisson(0.8, SHAPE).astype(np.int64)
    margins = []
    for by in tables:
        axes = tuple("abcd".index(name) for name in by)
        margins.append(Margin(axes=axes, values=np.asarray(summed(true, axes))))
    found = nearest_whole(np.maximum(true + chance.normal(0, 0.6, SHAPE), 0), margins, careful=careful)
    assert found.min() >= 0
    chain = in_a_chain(margins)
    assert all(np.array_equal(summed(found, margin.axes), margin.values) for margin in chain)
    left_out = [m for m in margins if not any(set(m.axes) <= set(kept.axes) for kept in chain)]
    assert len(left_out) == (1 if tables == SETS["a ring of two-way tables"] else 0)


def test_raking_fits_positive_cells_and_says_when_it_does_not() -> None:
    counts = true_counts(1, mean=8) + MILLION
    start = counts + np.random.default_rng(1).integers(0, MILLION, SHAPE)
    controls = exact_controls(counts, ["a", "b", "cd"])
    found = rake(DIMENSIONS, start, controls, most_cycles=60)
    assert found.converged
    assert found.largest_gap <= start.size
    # The odds ratios of the start stay, which is what proportional fitting is.
    ratio = found.values / start
    assert ratio[0, 0, 0, 0] * ratio[1, 1, 0, 0] == pytest.approx(ratio[0, 1, 0, 0] * ratio[1, 0, 0, 0], rel=1e-5)
    assert not rake(DIMENSIONS, start, controls, most_cycles=1, tolerance=0).converged
    signed = start.copy()
    signed[0] = 0
    assert not rake(DIMENSIONS, signed, controls).converged, "a sum of 0 cannot be multiplied"


def test_raking_leaves_large_cells_as_large_as_they_are() -> None:
    counts = (true_counts(1, mean=8) + MILLION) * 3_000_000  # such as weights of a population
    counts[0, 0, 0, 0] = 2**60  # most of all of them in one cell
    start = counts + counts // 7
    found = rake(DIMENSIONS, start, exact_controls(counts, ["a", "b"]))
    assert found.converged
    assert found.values == pytest.approx(counts, rel=1e-12)


@pytest.mark.slow
def test_raking_that_runs_away_is_reported_and_comes_back_no_farther_from_its_controls() -> None:
    counts = true_counts(2)
    controls = exact_controls(counts, ["a", "b", "c", "d"])
    lost = 0
    for seed in range(40):
        signed = np.random.default_rng(seed).integers(-2, 3, SHAPE) * MILLION
        found = rake(DIMENSIONS, signed, controls, most_cycles=400)
        assert np.abs(found.values.astype(float)).sum() <= 1_001 * max(np.abs(signed).sum(), counts.sum())
        assert found.converged == (found.largest_gap <= found.values.size)
        before = max(np.abs(gap.values).max() for gap in residuals(signed, agreed_margins(DIMENSIONS, controls)))
        assert found.largest_gap <= before + found.values.size
        lost += not found.converged
    assert lost > 0
    assert least_squares(DIMENSIONS, signed, controls).converged


def test_without_controls_nothing_changes() -> None:
    start = perturbed(true_counts(1), 1)
    for nonnegative in (False, True):
        found = least_squares(DIMENSIONS, start, [], nonnegative=nonnegative)
        assert np.array_equal(found.values, np.maximum(start, 0) if nonnegative else start)
