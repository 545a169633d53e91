"""Controls of a cube without negative cells: exact ones that it cannot meet are refused, noisy ones made to fit."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.agree.least_squares import Margin, largest_gap, summed
from sfumato.agree.whole_numbers import make_a_chain, nearest_whole
from sfumato.cells import Dimension
from sfumato.errors import MethodError
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Seeded
from sfumato.statistics.cube.calibrate import least_squares
from sfumato.statistics.cube.controls import Control, agreed_margins, refuse_contradictions
from sfumato.statistics.cube.cube import MILLION

RING = tuple(Dimension(name=name, codes=("0", "1")) for name in "abc")
"""For controls that say a = b and b = c, but a ≠ c: every two of them agree, all three do not."""


def ring_of(variance: float) -> list[Control]:
    one, two = np.array([[1, 0], [0, 1]]) * MILLION, np.array([[0, 1], [1, 0]]) * MILLION
    tables = (("ab", one), ("bc", one), ("ac", two))
    return [Control(name=by, by=tuple(by), values=values, variance=variance) for by, values in tables]


def test_exact_controls_that_no_cube_without_negative_cells_has_are_refused_and_named() -> None:
    start, controls = np.zeros((2, 2, 2), dtype=np.int64), ring_of(0.0)
    assert least_squares(RING, start, controls).largest_gap == 0
    refuse_contradictions(RING, controls)
    with pytest.raises(MethodError, match="'ab', 'bc', 'ac'"):
        refuse_contradictions(RING, controls, nonnegative=True)
    missed = least_squares(RING, start, controls, nonnegative=True)
    assert missed.values.min() >= 0
    assert not missed.converged
    assert missed.largest_gap > MILLION // 3, "it says that they are missed, and by how much"


def test_noisy_controls_that_no_cube_without_negative_cells_has_are_changed_until_one_has_them() -> None:
    start, controls = np.zeros((2, 2, 2), dtype=np.int64), ring_of(float(MILLION) ** 2)
    refuse_contradictions(RING, controls, nonnegative=True)
    margins = agreed_margins(RING, controls, nonnegative=True)
    # Six cells meet two wishes each. With x in each of them a wish for 1 gets 2x and one for 0 gets x, and
    # (1 − 2x)² + x² is least at 0.4.
    for control, margin in zip(controls, margins, strict=True):
        assert margin.values / MILLION == pytest.approx(np.where(control.values > 0, 0.8, 0.4), abs=0.001)
    found = least_squares(RING, start, controls, nonnegative=True)
    assert found.values.min() >= 0
    assert found.largest_gap <= 5, "millionths, because they meet in a ring"


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 100_000), moves=st.integers(0, 3))
def test_a_ring_is_refused_where_linear_programming_finds_no_cube(seed: int, moves: int) -> None:
    chance = np.random.default_rng(seed)
    shape = tuple(chance.integers(2, 5, 3))
    dimensions = tuple(
        Dimension(name=name, codes=tuple(map(str, range(n)))) for name, n in zip("abc", shape, strict=True)
    )
    table = chance.poisson(chance.choice([0.1, 0.3, 1.0]), shape)
    axes = {"ab": (0, 1), "bc": (1, 2), "ac": (0, 2)}
    values = {by: np.asarray(summed(table, place)) for by, place in axes.items()}
    for _ in range(moves):  # other values with the same margins
        (i, j), (k, m) = (chance.choice(length, 2, replace=False) for length in values["ac"].shape)
        moved = values["ac"].copy()
        moved[[i, j], [k, m]] += 1
        moved[[i, j], [m, k]] -= 1
        values["ac"] = moved if moved.min() >= 0 else values["ac"]
    unit = np.eye(table.size).reshape(-1, *shape)
    matrix = np.array([np.concatenate([np.ravel(summed(cell, a)) for a in axes.values()]) for cell in unit]).T
    wanted = np.concatenate([np.ravel(part) for part in values.values()])
    exists = linprog(np.zeros(table.size), A_eq=matrix, b_eq=wanted, bounds=(0, None)).status == 0
    controls = [Control(name=by, by=tuple(by), values=part * MILLION) for by, part in values.items()]
    if exists:
        refuse_contradictions(dimensions, controls, nonnegative=True)
    else:
        with pytest.raises(MethodError, match="all together they do not"):
            refuse_contradictions(dimensions, controls, nonnegative=True)


@st.composite
def cubes_with_controls(draw: st.DrawFn) -> tuple[tuple[Dimension, ...], np.ndarray, list[Control]]:
    """A small perturbed cube, mostly empty, with any controls: exact ones of the true cube, or with much noise."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    dimensions = tuple(
        Dimension(name=name, codes=tuple(map(str, range(n)))) for name, n in zip("abcd", shape, strict=False)
    )
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    unit = draw(st.sampled_from([MILLION, 40 * MILLION, 10**7 * MILLION]))
    true = chance.poisson(draw(st.sampled_from([0.0, 0.2, 2.0])), shape).astype(np.int64) * unit
    everything = [axes for size in range(len(shape) + 1) for axes in combinations(range(len(shape)), size)]
    controls = []
    for axes in draw(st.lists(st.sampled_from(everything), min_size=1, max_size=5, unique=True)):
        values, variance = np.asarray(summed(true, axes)), 0.0
        epsilon = draw(st.sampled_from([None, Fraction(1, 20), Fraction(1, 2), Fraction(3)]))
        if epsilon is not None:
            noise = TruncatedGeometric(epsilon=epsilon, cap=200)
            drawn = noise.sample(values.size, Seeded(int(chance.integers(2**32)))).reshape(values.shape)
            values, variance = np.asarray(values + unit * drawn), noise.variance * float(unit) ** 2
        by = tuple("abcd"[axis] for axis in axes)
        controls.append(Control(name=" × ".join(by), by=by, values=values, variance=variance))
    drawn = TruncatedGeometric(epsilon=Fraction(1), cap=12).sample(true.size, Seeded(int(chance.integers(2**32))))
    return dimensions, true + unit * drawn.reshape(shape), controls


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(made=cubes_with_controls())
def test_whatever_noise_controls_have_there_is_a_cube_without_negative_cells_that_adds_up_to_them(
    made: tuple[tuple[Dimension, ...], np.ndarray, list[Control]],
) -> None:
    dimensions, start, controls = made
    refuse_contradictions(dimensions, controls, nonnegative=True)  # never the true tables of some cube
    margins = agreed_margins(dimensions, controls, nonnegative=True)
    # A table that has all others inside makes a chain of any; exact ones among these may still close a ring.
    exact = [margin.axes for control, margin in zip(controls, margins, strict=True) if control.exact]
    chain = make_a_chain([margin.axes for margin in margins]) and make_a_chain(exact)
    few = max(100, int(2e-6 * max(int(margin.values.max()) for margin in margins)))
    for control, margin in zip(controls, margins, strict=True):
        assert margin.values.min() >= 0
        if control.exact:
            assert np.array_equal(margin.values, control.values)
    for one, other in combinations(margins, 2):
        shared = [axis for axis in one.axes if axis in other.axes]
        ours, theirs = (summed(m.values, tuple(m.axes.index(axis) for axis in shared)) for m in (one, other))
        assert np.abs(ours - theirs).max() <= (0 if chain else few)
    found = least_squares(dimensions, start, controls, nonnegative=True)
    assert found.values.min() >= 0
    assert found.largest_gap == largest_gap(found.values, margins) <= (0 if chain else few)
    assert found.converged == (found.largest_gap == 0)


def test_negative_noisy_controls_give_back_what_taking_them_to_zero_would_add() -> None:
    dimensions = tuple(Dimension(name=name, codes=tuple(map(str, range(30)))) for name in "ab")
    noise = TruncatedGeometric(epsilon=Fraction(1, 2), cap=40)
    variance = noise.variance * float(MILLION) ** 2
    totals, one_by_one = [], []
    for seed in range(100):
        drawn = noise.sample(60, Seeded(seed)).reshape(2, 30) * MILLION
        one_way = [
            Control(name=by, by=(by,), values=values + MILLION, variance=variance)
            for by, values in zip("ab", drawn, strict=True)
        ]
        first, second = agreed_margins(dimensions, one_way, nonnegative=True)
        assert first.values.sum() == second.values.sum()
        totals.append(int(first.values.sum()) / MILLION)
        one_by_one.append(int(np.maximum(one_way[0].values, 0).sum()) / MILLION)
    # Each of the two tables knows the total, 30, with the noise of 30 cells.
    allowed = 4 * (30 * noise.variance / 2 / len(totals)) ** 0.5
    assert abs(float(np.mean(totals)) - 30) < allowed < 5
    assert float(np.mean(one_by_one)) > 30 + 3 * allowed


def test_missing_units_are_made_up_in_large_pieces_where_there_are_many() -> None:
    margins = [
        Margin(axes=(0, 1), values=np.array([[10**15, 3], [7, 0]])),
        Margin(axes=(1, 2), values=np.array([[10**15 - 5, 12], [3, 0]])),
    ]
    found = nearest_whole(np.zeros((2, 2, 2)), margins)
    assert found.min() >= 0
    assert largest_gap(found, margins) == 0
