"""Theil-Sen: one more person changes few pairs, the loss never exceeds ε, and the median finds the line."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from sfumato.errors import MethodError
from sfumato.method import SUPPRESSED
from sfumato.noise.randomness import OperatingSystem, Seeded
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.people.theil_sen import Circles, TheilSen, circles
from tests.noise.fit import ACCEPTED, p_value
from tests.statistics.methods.groups import RANKS, drawn_ranks, samples, sums

METHOD = TheilSen(epsilon=Fraction(8), **RANKS)
Person = tuple[int, int]


def standing(order: tuple[Person, ...]) -> Circles:
    """One group, in an order."""
    x, y = (np.array(column, dtype=np.float64) for column in (zip(*order, strict=True) if order else ((), ())))
    return Circles(group=np.zeros(len(order), dtype=np.int64), x=x, y=y, starts=np.array([0, len(order)]))


def paired(order: tuple[Person, ...], partners: int) -> Counter[tuple[Person, Person]]:
    pairs = standing(order).pairs(partners)
    return Counter((order[a], order[b]) for first, second in pairs for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("partners", [1, 2, 3, 4])
@pytest.mark.parametrize("people", range(9))
def test_one_more_person_on_the_circle_parts_at_most_so_many_pairs_and_makes_twice_as_many(
    people: int, partners: int
) -> None:
    order = tuple((x, 0) for x in range(people))
    for place in range(people + 1):
        before, after = paired(order, partners), paired((*order[:place], (99, 0), *order[place:]), partners)
        assert (before - after).total() <= partners
        assert (after - before).total() <= 2 * partners
        assert (before - after).total() + (after - before).total() <= 3 * partners


def probabilities(method: TheilSen, people: tuple[Person, ...]) -> np.ndarray:
    """Of every published value, by counting through all orders of the people on the circle."""
    rank = method.at[0]
    found = []
    for order in permutations(people):
        _, said = standing(order).predictions(
            rank, partners=method.partners, low=method.low_y, high=method.high_y, grid=method.grid
        )
        found.append(method.median.probabilities(said))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("partners", [1, 2])
def test_whoever_joins_the_loss_is_at_most_epsilon(partners: int) -> None:
    method = TheilSen(
        alpha=Fraction(1),
        epsilon=Fraction(4),
        at=(Fraction(2),),
        low_x=0,
        high_x=3,
        low_y=0,
        high_y=3,
        partners=partners,
    )
    box = list(product((0, 1, 3), (0, 3)))
    worst = 0.0
    for people in [(), ((0, 0),), ((0, 3), (3, 3)), ((0, 0), (1, 3), (3, 3)), ((0, 3), (1, 3), (3, 3), (3, 0))]:
        before = np.log(probabilities(method, people))
        for person in box:
            after = np.log(probabilities(method, (*people, person)))
            worst = max(worst, float(np.abs(after - before).max()))
    assert 0.1 < worst <= float(method.epsilon_of_value)


@pytest.mark.parametrize("partners", [1, 4])
def test_the_worst_change_of_pairs_costs_epsilon_and_ten_percent_less_noise_costs_more(partners: int) -> None:
    """`partners` lines at the top are parted, twice as many at the bottom are made, the others lie just below the top.

    Nearly all of the grid is below these, and gains what the points above them lose.
    """
    method = replace(METHOD, partners=partners, width=Fraction(0))
    others, top = [9_998] * 2 * partners, [10_000] * partners
    for less, costs in ((Fraction(1), (0.99, 1.0)), (Fraction(9, 10), (1.09, 1.12))):
        median = replace(method.median, decay=method.decay / less)
        before = np.log(median.probabilities(np.array(others + top)))
        after = np.log(median.probabilities(np.array(others + [0] * 2 * partners)))
        low, high = (share * float(method.epsilon_of_value) for share in costs)
        assert low < np.abs(after - before).max() <= high


def test_every_order_of_a_group_is_as_likely_as_any_other() -> None:
    n = 24_000
    people = samples(np.full(n, 4), np.tile(np.arange(4), n), np.zeros(4 * n, dtype=np.int64))
    orders = [part.x.reshape(-1, 4) for _, part in circles(people, Seeded(3))]
    codes = (np.concatenate(orders) @ [64, 16, 4, 1]).astype(np.int64)
    values, seen = np.unique(codes, return_counts=True)
    assert len(values) == 24
    assert (np.abs(seen - n / 24) < 4.5 * np.sqrt(n / 24)).all()


def test_groups_are_put_back_where_they_belong_whatever_their_sizes() -> None:
    sizes = np.array([0, 70_000, 3, 0, 1, 90_000, 5])
    positions = np.repeat(np.arange(7), sizes)
    held = samples(sizes, positions * 10, positions)
    seen = np.zeros(7, dtype=np.int64)
    for part, circle in circles(held, OperatingSystem()):
        seen[part] = np.diff(circle.starts)
        assert np.array_equal(circle.y, circle.group + part.start)
    assert np.array_equal(seen, sizes)


def test_people_on_a_line_are_predicted_by_it() -> None:
    sizes = np.full(50, 400)
    x = np.random.default_rng(4).integers(0, 10_001, sizes.sum())
    held = samples(sizes, x, 2_000 + x // 2)
    value = METHOD.protect(held, Seeded(5))["value"].reshape(-1, 2)
    assert np.abs(value - [3_250, 5_750]).max() < 100


def test_medians_are_near_least_squares_in_large_groups() -> None:
    sizes = np.full(200, 1_000)
    x, y = drawn_ranks(sizes, seed=6)
    value = METHOD.protect(samples(sizes, x, y), Seeded(7))["value"].reshape(-1, 2)
    cells = sums(sizes, x, y)
    slope = (1_000 * cells["sum_xy"] - cells["sum_x"] * cells["sum_y"]) / (
        1_000 * cells["sum_xx"] - cells["sum_x"].astype(float) ** 2
    )
    line = (cells["sum_y"] / 1_000)[:, None] + slope[:, None] * ([2_500, 7_500] - (cells["sum_x"] / 1_000)[:, None])
    assert np.abs(value - line).mean() < 150


def test_the_number_of_people_has_geometric_noise_and_small_groups_are_withheld_by_it() -> None:
    n = 20_000
    held = samples(np.full(n, 20), *drawn_ranks(np.full(n, 20), seed=8))
    protected = replace(METHOD, count_epsilon=Fraction(1, 2)).protect(held, Seeded(9))
    count = protected["count"].reshape(n, 2)
    drawn, ratio = np.abs(count[:, 0] - 20), np.exp(-0.5)
    assert p_value(drawn, lambda j: np.where(j <= 0, 1, 2 * ratio**j / (1 + ratio))) > ACCEPTED
    assert np.array_equal(protected["status"] == SUPPRESSED, protected["count"] < 20)
    assert (protected["error"] == -1).all()


def test_empty_groups_get_a_value_like_any_other() -> None:
    nobody = np.zeros(0, dtype=np.int64)
    held = samples(np.zeros(2_000, dtype=np.int64), nobody, nobody)
    protected = replace(METHOD, minimum=0).protect(held, Seeded(10))
    value = protected["value"][protected["status"] == 0]
    assert len(value) > 2_000
    assert abs(value.mean() - 5_000) < 4 * 10_000 / np.sqrt(12 * len(value))


def test_the_guarantee_is_formal_and_divided_over_periods_ranks_and_the_count() -> None:
    assert METHOD.guarantee() == EmployerEmployee(definition="individuals", alpha=Fraction(1), epsilon=Fraction(8))
    assert METHOD.decay == Fraction(8, 3) / 24
    assert replace(METHOD, periods=2, partners=1).decay == Fraction(4, 3) / 6


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"partners": 0}, "partners"),
        ({"width": Fraction(1, 2)}, "width"),
        ({"minimum": -1}, "minimum"),
        ({"at": ()}, "one value at least"),
        ({"high_y": 2**40, "decimals": 6}, "decimals"),
    ],
)
def test_parameters_without_a_meaning_are_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(MethodError, match=words):
        replace(METHOD, **wrong)
