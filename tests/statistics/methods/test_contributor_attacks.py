"""Attacks on totals: the probability that is told of a cell is how often the attack succeeds over keys."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from sfumato.noise.randomness import OperatingSystem
from sfumato.statistics.totals.attacks import Attacked, attack_differences, attack_rest, attack_totals, cell_risks
from sfumato.statistics.totals.top_contributors import TopContributors
from tests.statistics.methods.contributors import Unit, cells_of

KEYS = 3_000
DOMINATED = [Unit(name="a", value=70), Unit(name="b", value=20), Unit(name="c", value=10)]
EVEN = [Unit(name=name, value=2_500 + place) for place, name in enumerate("klmn")]


def attacked(
    cells: Sequence[Sequence[Unit]], *, key: int = 0, sampling: float = 0.0, contributors: int = 3, **options: object
) -> Attacked:
    method = TopContributors(**options)  # type: ignore[arg-type]
    counted = cells_of(cells, key=key.to_bytes(16, "big"), sampling=sampling, contributors=contributors)
    return Attacked(name="t", counted=counted, answer=method.protect(counted, OperatingSystem()), method=method)


def scaled(units: Sequence[Unit], by: int) -> list[Unit]:
    return [Unit(name=unit.name, value=unit.value * by, weight=unit.weight) for unit in units]


@pytest.mark.slow
def test_the_probability_of_attacks_on_a_cell_is_how_often_they_succeed_over_keys() -> None:
    cells = [scaled(DOMINATED, 1_000), EVEN]
    options = {"magnitudes": (Fraction("0.15"), Fraction("0.1"), Fraction("0.1"))}
    told = cell_risks(attacked(cells, **options), ["unit"])
    hits = {name: np.zeros(2) for name in told}
    for key in range(KEYS):
        table = attacked(cells, key=key, **options)
        for name, known in (("risk_1_unit", 0.0), ("risk_3_unit", table.weighted(0, 2))):
            within = 0.18 if name == "risk_1_unit" else 0.11
            target = table.weighted(0, 1)
            hits[name] += np.abs(table.published - known - target) <= within * target
    for name, risk in told.items():
        assert hits[name] / KEYS == pytest.approx(risk, abs=0.03), name
    # The figure that is known of the published optimum: attack 3 succeeds every second time.
    assert told["risk_3_unit"][0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.slow
def test_cells_that_differ_by_their_largest_unit_are_found_and_their_risk_is_how_often_it_is_disclosed() -> None:
    cells = [scaled(DOMINATED, 1_000) + EVEN, scaled(DOMINATED, 1_000)[1:] + EVEN, EVEN]
    options = {"magnitudes": (Fraction("0.15"), Fraction("0.1"), Fraction("0.1"))}
    (told,) = attack_differences([attacked(cells, **options)], ["unit"])
    assert told.targets == 1  # the first less the second; the third lacks two
    hits = 0
    for key in range(KEYS):
        table = attacked(cells[:2], key=key, **options)
        (found,) = attack_differences([table], ["unit"])
        hits += found.successes
        assert found.targets == 1
    (one,) = attack_differences([attacked(cells[:2], **options)], ["unit"])
    assert hits / KEYS == pytest.approx(one.risk, abs=0.03)


def test_cells_of_two_tables_are_subtracted_too() -> None:
    units = scaled(DOMINATED, 1_000) + EVEN
    one, other = attacked([units]), attacked([units[1:]])
    (found,) = attack_differences([one, other], ["unit"])
    assert found.targets == 1
    assert found.guessed == 1


def test_what_a_weight_relieves_is_told_as_risk_of_readers_who_know_the_weight() -> None:
    sampled = [[Unit(name="a", value=90_000, weight=16.0), *(Unit(name=n, value=500, weight=16.0) for n in "bcde")]]
    risks = [
        next(r for r in attack_totals(attacked(sampled, weight_relief=relief), ["unit"]) if "sampled" in r.attack).risk
        for relief in (False, True)
    ]
    assert risks[0] < 0.01
    assert risks[1] > 0.9  # a quarter of 40 % is within 18 %


def test_what_sampling_error_relieves_is_told_as_risk_too() -> None:
    cell = [[Unit(name="a", value=90_000), *(Unit(name=n, value=500) for n in "bcde")]]
    risks = [
        cell_risks(attacked(cell, sampling=80_000.0, sampling_relief=relief), ["unit"])["risk_1_unit"][0]
        for relief in (False, True)
    ]
    assert risks[0] < 0.01
    assert risks[1] > 0.2


def test_magnitudes_by_shape_have_the_risk_of_the_shape_and_not_that_of_the_compromise() -> None:
    cell = [scaled(DOMINATED, 1_000)]
    compromise, by_shape = (
        cell_risks(attacked(cell, by_shape=flag), ["unit"])["risk_3_unit"][0] for flag in (False, True)
    )
    assert compromise != pytest.approx(by_shape, abs=0.05)


def test_the_cell_left_over_from_a_total_is_attacked() -> None:
    from sfumato.cells import Cells, Dimension

    inner = [scaled(DOMINATED, 1_000), [Unit(name="z", value=40_000)], EVEN]
    made = attacked([*inner, [unit for units in inner for unit in units]])
    codes = Dimension(name="place", codes=("x", "y", "w", "total"))
    turned = [
        Cells(dimensions=(codes,), positions=cells.positions, columns=dict(cells.columns))
        for cells in (made.counted, made.answer)
    ]
    table = Attacked(name="t", counted=turned[0], answer=turned[1], method=made.method)
    (found,) = attack_rest(table)
    assert (found.targets, found.guessed) == (1, 1)  # the one unit that is not published
