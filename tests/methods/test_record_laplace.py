"""Laplace noise for counts of people: a whole history costs what the table says, however many periods it has."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.methods.record_laplace import RecordLaplace
from sfumato.noise.randomness import Seeded


def method(periods: int) -> RecordLaplace:
    return RecordLaplace(alpha=Fraction(1), epsilon=Fraction(5, 2), periods=periods)


@pytest.mark.parametrize("periods", [1, 3, 10])
def test_all_periods_together_cost_the_epsilon_of_the_table(periods: int) -> None:
    guarantee = method(periods).guarantee()
    assert (guarantee.definition, guarantee.epsilon, guarantee.condition) == ("individuals", Fraction(5, 2), "")


def test_every_period_gets_noise_for_its_share_of_epsilon() -> None:
    assert method(10).noise.unit == 4  # 1 / (2.5 / 10)
    cells = Cells(
        dimensions=(Dimension(name="year", codes=tuple(map(str, range(50_000)))),),
        positions=np.arange(50_000),
        columns={"count": np.full(50_000, 7)},
    )
    drawn = np.abs(method(10).protect(cells, Seeded(3))["value"] - 7)
    assert abs(drawn.mean() - 4) < 0.1
    assert abs(drawn.mean() - method(10).planned_error().floor) < 0.1


def test_a_table_is_about_one_period_at_least() -> None:
    with pytest.raises(MethodError, match="one period or more"):
        method(0)
