"""Noise for totals of units: its loss over neighbouring values, its distribution in money, and its figures."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, log

import numpy as np
import pytest

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.method import method_words, public_parameters
from sfumato.noise.randomness import Seeded
from sfumato.statistics.registry import built_again
from sfumato.statistics.units.attacks import within
from sfumato.statistics.units.pareto import NEGATIVES, POSITIVE, SignedPareto, UnitPareto
from tests.noise.fit import ACCEPTED, REJECTED, p_value
from tests.statistics.methods.audit import money_loss
from tests.statistics.methods.cells import cells_of

FLOOR = 5_000_00
"""In cents."""
TENTH, TWO = Fraction("0.1"), Fraction(2)
GRID = [(Fraction(a), Fraction(e)) for a in ("0.01", "0.1", "0.2") for e in ("0.25", "1", "2", "4")]
GRID = [(a, e) for a, e in GRID if float(e) > log(1 + a)]
on_grid = pytest.mark.parametrize(("alpha", "epsilon"), GRID)

Record = tuple[float, int]
"""A weight and a value."""
Unit = tuple[Record, ...]
"""The records of a unit in a cell."""


def method(alpha: Fraction = TENTH, epsilon: Fraction = TWO, **more: object) -> UnitPareto:
    return UnitPareto(alpha=alpha, epsilon=epsilon, floor=FLOOR, **more)


def a_tenth_smaller(of: UnitPareto) -> UnitPareto:
    """The same with a scale that is ten per cent too small."""
    smaller = replace(of)
    noise = replace(of.noise, unit=of.noise.unit * Fraction(9, 10))
    smaller.__dict__["noise"] = noise
    return smaller


# The loss of one cell, over whole cents.


@on_grid
def test_the_loss_over_neighbouring_values_is_epsilon_and_no_more(alpha: Fraction, epsilon: Fraction) -> None:
    loss = money_loss(method(alpha, epsilon).noise, alpha, FLOOR)
    assert 0.95 * float(epsilon) < loss <= float(epsilon) + 1e-9


@on_grid
def test_a_scale_that_is_a_tenth_smaller_loses_more(alpha: Fraction, epsilon: Fraction) -> None:
    assert money_loss(a_tenth_smaller(method(alpha, epsilon)).noise, alpha, FLOOR) > 1.001 * float(epsilon)


# The loss of all cells of one unit, from its records: what is added up, the scale and the noise as they are used.


def counted(of: UnitPareto, units: list[Unit]) -> Cells:
    """A cell with these units, as tabulation has it."""
    sums = [sum(Fraction(str(weight)) * value for weight, value in unit) for unit in units]
    weights = [weight for unit in units for weight, _ in unit]
    found = {"count": floor(sum(sums)), "largest": ceil(max(sums, default=0))}
    if of.weighted:
        found["heaviest"] = ceil(max(weights, default=1))
    return cells_of(**{name: [number] for name, number in found.items()})


def cell_loss(of: UnitPareto, before: list[Unit], after: list[Unit]) -> tuple[float, float]:
    """The greatest log ratio of probabilities of any published number, in both directions."""
    one, other = counted(of, before), counted(of, after)
    shift = int(other["count"][0] - one["count"][0])
    scale = max(int(one["count"][0]), FLOOR)
    near = np.linspace(-6, 6, 241) * scale
    tail = np.geomspace(scale, 2**60, 200)
    outcomes = np.concatenate([-tail, near, near + shift, [0, shift], tail]).astype(np.int64)
    ratios = of.noise.log_mass(outcomes, of.multiples(one)) - of.noise.log_mass(outcomes - shift, of.multiples(other))
    return float(ratios.max()), float(-ratios.min())


def joint_loss(of: UnitPareto, before: list[list[Unit]], after: list[list[Unit]]) -> float:
    """The greatest loss of all cells together: their noises are independent, so that those of each add up."""
    losses = [cell_loss(of, one, other) for one, other in zip(before, after, strict=True)]
    return max(sum(up for up, _ in losses), sum(down for _, down in losses))


def grown(unit: Unit, by: Fraction) -> Unit:
    return tuple((weight, value + int(value * by)) for weight, value in unit)


MEET = 10 * FLOOR
"""The value whose tenth is the floor."""


def enterprises(cells: int) -> list[tuple[list[list[Unit]], list[list[Unit]]]]:
    """Neighbours in which one enterprise grows in all its cells, or by the floor in one of them."""
    large: list[list[Unit]] = [[((1, (place + 1) * MEET),), ((1, FLOOR),)] for place in range(cells)]
    twice = [[((1, MEET // 2), (1, MEET // 2))] for _ in range(cells)]
    small: list[list[Unit]] = [[((1, 0),), ((1, 3),)] for _ in range(cells)]
    added: list[list[Unit]] = [[((1, FLOOR if place == 0 else 0),), ((1, 3),)] for place in range(cells)]
    return [
        (large, [[grown(units[0], TENTH), *units[1:]] for units in large]),
        (twice, [[grown(units[0], TENTH)] for units in twice]),
        (small, added),
    ]


@pytest.mark.parametrize("cells", [1, 2, 5])
def test_all_cells_of_an_enterprise_together_lose_epsilon_and_a_smaller_scale_loses_more(cells: int) -> None:
    of = method(most_cells=cells)
    assert 0.95 * 2 < max(joint_loss(of, *pair) for pair in enterprises(cells)) <= 2 + 1e-9
    smaller = a_tenth_smaller(of)
    assert max(joint_loss(smaller, *pair) for pair in enterprises(cells)) > 1.001 * 2


def test_an_enterprise_in_more_cells_than_declared_would_lose_more() -> None:
    assert max(joint_loss(method(most_cells=2), *pair) for pair in enterprises(3)) > 1.4 * 2


WEIGHTS = (1.0, 1.25, 17.333333)


def weighted_units(of: UnitPareto) -> list[tuple[list[list[Unit]], list[list[Unit]]]]:
    """Neighbours of weighted records: one grows by a tenth, or by the floor; of several, each as far as it may."""
    found: list[tuple[list[Unit], list[Unit]]] = []
    other: Unit = ((2.5, FLOOR),)
    for weight in WEIGHTS:
        for value in (0, 1, FLOOR // 7, MEET - 1, MEET, 40 * MEET + 3):
            most = max(value + value // 10, value + FLOOR)
            found += [
                ([((weight, value),), *more], [((weight, most),), *more])
                for more in ([], [other], [((1.0, 9 * MEET),)])
            ]
    if of.several:
        light, heavy = (1.0, 1000 * FLOOR), (100.0, 0)
        # The heavy record grows by the floor, and the light one by a tenth of both less that.
        found.append(([(light, heavy)], [((1.0, 1000 * FLOOR + 99 * FLOOR), (100.0, FLOOR))]))
        found.append(([(light, (7.5, MEET))], [(*grown((light, (7.5, MEET)), TENTH),)]))
    return [([before], [after]) for before, after in found]


@pytest.mark.parametrize("several", [False, True], ids=["one record", "several records"])
def test_weighted_values_lose_no_more_than_epsilon(several: bool) -> None:
    of = method(weighted=True, several=several)
    worst = max(joint_loss(of, *pair) for pair in weighted_units(of))
    assert 0.95 * 2 < worst <= 2 + 1e-9
    assert max(joint_loss(a_tenth_smaller(of), *pair) for pair in weighted_units(of)) > 1.001 * 2


def test_records_of_different_weights_would_lose_more_on_the_scale_of_single_ones() -> None:
    single, several = method(weighted=True), method(weighted=True, several=True)
    assert max(joint_loss(single, *pair) for pair in weighted_units(several)) > 1.3 * 2


# Values above 0 and below: which sums one step moves.


def signed_loss(of: UnitPareto, before: list[tuple[int, ...]], after: list[tuple[int, ...]]) -> float:
    """The loss of both sums of a cell, units given by the values of their records."""

    def sums(units: list[tuple[int, ...]], sign: int) -> list[Unit]:
        return [tuple((1, max(sign * value, 0)) for value in unit) for unit in units]

    return joint_loss(of, [sums(before, 1), sums(before, -1)], [sums(after, 1), sums(after, -1)])


def test_one_record_moves_one_of_the_two_sums_and_a_larger_unit_both() -> None:
    of, rest = method(), (30 * MEET,)
    steps = [(0, FLOOR), (0, -FLOOR), (MEET, MEET + FLOOR), (-MEET, -MEET - FLOOR), (-70 * MEET, -77 * MEET)]
    losses = [signed_loss(of, [(one,), rest], [(other,), rest]) for one, other in steps]
    assert 0.95 * 2 < max(losses) <= 2 + 1e-9
    both = ([(50 * MEET, -MEET)], [(55 * MEET, -MEET - FLOOR)])
    assert signed_loss(of, *both) > 1.9 * 2
    halved = method(sums=2)
    assert 0.95 * 2 < signed_loss(halved, *both) <= 2 + 1e-9
    assert signed_loss(a_tenth_smaller(halved), *both) > 1.001 * 2


def test_from_a_profit_to_a_loss_is_two_steps() -> None:
    of, two = method(), 2 * 2 + 1e-9
    assert 2 + 1e-9 < signed_loss(of, [(FLOOR,)], [(-FLOOR,)]) <= two


# What is drawn.


def drawn(of: UnitPareto, draws: int = 100_000, **columns: int) -> Integers:
    cell = cells_of(**{name: [number] * draws for name, number in columns.items()})
    value: Integers = of.protect(cell, Seeded(5))["value"] - columns["count"]
    return value


@pytest.mark.parametrize(
    ("more", "columns", "scale"),
    [
        ({}, {"count": 0, "largest": 0}, FLOOR),
        ({}, {"count": 90 * MEET, "largest": 30 * MEET}, 3 * MEET),
        ({"most_cells": 3}, {"count": 90 * MEET, "largest": 30 * MEET}, 3 * MEET),
        ({"weighted": True}, {"count": 7, "largest": 7, "heaviest": 12}, 12 * FLOOR + 1),
        ({"weighted": True, "several": True}, {"count": MEET, "largest": MEET, "heaviest": 12}, 13 * FLOOR + 1),
    ],
    ids=["nobody", "a large unit", "in three cells", "weighted", "weighted, several records"],
)
def test_totals_get_the_stated_noise_in_money_and_one_that_is_a_tenth_off_is_noticed(
    more: dict[str, object], columns: dict[str, int], scale: int
) -> None:
    of = method(**more)
    errors, tail, size = drawn(of, **columns), float(of.calibration.tail), float(of.calibration.scale) * scale

    def survival(off: float):
        return lambda j: (1 + np.maximum(j - 0.5, 0) / (off * size)) ** -tail

    assert p_value(np.abs(errors), survival(1)) > ACCEPTED
    assert p_value(np.abs(errors), survival(1.1)) < REJECTED
    assert p_value(np.abs(errors), survival(0.9)) < REJECTED
    assert abs((errors > 0).mean() - (errors < 0).mean()) < 0.01
    assert np.isclose(
        within(of, np.array([-size]), np.array([size]), of.multiples(cells_of(**{n: [c] for n, c in columns.items()})))[
            0
        ],
        (np.abs(errors) <= size).mean(),
        atol=0.01,
    )


# The figures beside the values.


def covered(of: UnitPareto | SignedPareto, cell: dict[str, int], truth: int, draws: int = 40_000) -> tuple[float, bool]:
    """How often the interval holds the total, and whether the error is no less than the true one."""
    answer = of.protect(cells_of(**{name: [number] * draws for name, number in cell.items()}), Seeded(7))
    figures = of.published_figures(answer, 0.9)
    held = ~(figures.low > truth) & ~(figures.high < truth)
    off = np.abs(answer["value"] - truth)
    return float(held.mean()), bool(figures.error.mean() > off.mean() - 4 * off.std() / np.sqrt(draws))


@pytest.mark.parametrize("share", [0, 1, 70, 4000], ids=lambda share: f"{share} tenths of the floor")
@pytest.mark.parametrize("kind", ["plain", "weighted", "several"])
def test_intervals_hold_the_total_and_errors_are_no_less_than_the_true_ones(share: int, kind: str) -> None:
    total = share * FLOOR // 10
    of = method(weighted=kind != "plain", several=kind == "several")
    cell = {"count": total, "largest": total} | ({} if kind == "plain" else {"heaviest": 2})
    held, enough = covered(of, cell, total)
    assert held > 0.9 - 4 * np.sqrt(0.09 / 40_000)
    assert held < (0.93 if share == 4000 else 1)
    assert enough


@pytest.mark.parametrize("sums", [(0, 0), (MEET, 0), (300 * MEET, 20 * MEET), (50 * MEET, 50 * MEET)])
def test_intervals_of_profits_hold_them_and_their_errors_are_no_less(sums: tuple[int, int]) -> None:
    above, below = sums
    cell = {"count": above, "largest": above, "negative_count": below, "negative_largest": below}
    held, enough = covered(SignedPareto(of=method()), cell, above - below)
    assert held > 0.9 - 4 * np.sqrt(0.09 / 40_000)
    assert enough
    cells = cells_of(**{name: [number] * 20_000 for name, number in cell.items()})
    answer = SignedPareto(of=method()).protect(cells, Seeded(3))
    assert np.array_equal(answer["value"], answer[POSITIVE] - answer[NEGATIVES])
    off = np.abs(answer["value"] - (above - below))
    expected = SignedPareto(of=method()).expected_error(cells)[0]
    assert np.isclose(off.mean(), expected, rtol=0.05)


def test_the_planned_error_is_what_a_cell_of_small_units_has() -> None:
    planned = method().planned_error()
    assert planned.floor_size == MEET
    assert np.isclose(planned.floor, 0.525 * FLOOR, rtol=1e-3)


# What attacks find.


@pytest.mark.parametrize("epsilon", ["0.25", "0.65", "1", "2", "4"])
def test_whoever_knows_all_others_finds_no_more_than_the_guarantee_allows(epsilon: str) -> None:
    """A guess that is near one value is not near another a few steps on, and may be little likelier at the first.

    Values whose tenths of nearness do not touch are three steps apart at alpha = 0.1, on both sides without end: if the
    guess is near with probability s at each, s·(1 + 2·(e^−3ε + e^−6ε + …)) is at most 1.
    """
    of, near = method(epsilon=Fraction(epsilon)), 0.11
    assert (1 + near) / (1 - near) < 1.1**3
    others = 2 / (np.exp(3 * float(epsilon)) - 1)
    value = np.array([400 * MEET])
    cell = cells_of(count=[400 * MEET], largest=[400 * MEET])
    found = within(of, -near * value, near * value, of.multiples(cell))[0]
    assert 0.05 < found <= 1 / (1 + others)


# Parameters.


def test_a_method_is_built_again_of_its_public_parameters() -> None:
    of = method(most_cells=3, sums=2, weighted=True)
    assert built_again("unit-pareto", public_parameters(of)) == of
    assert method_words(of) != method_words(method(most_cells=3, sums=2))
    assert method().guarantee().definition == "units"


@pytest.mark.parametrize("most", [0, 10_001])
def test_a_unit_is_in_one_cell_at_least_and_not_in_any_number(most: int) -> None:
    with pytest.raises(MethodError, match="most_cells"):
        method(most_cells=most)


def test_an_epsilon_that_is_too_small_for_so_many_cells_is_refused_with_what_helps() -> None:
    with pytest.raises(MethodError, match="at most 20 cells of one unit"):
        method(most_cells=30)


def test_how_many_records_there_are_is_no_part_of_an_answer() -> None:
    place = Dimension(name="place", codes=("A", "B"))
    columns = {"count": np.array([5, 0]), "largest": np.array([5, 0]), "records": np.array([2, 0])}
    answer = method().protect(Cells(dimensions=(place,), positions=np.arange(2), columns=columns), Seeded(1))
    assert set(answer.columns) == {"value"}
