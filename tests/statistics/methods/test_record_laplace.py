"""Discrete Laplace noise for counts of people: a history costs what the table says, however many periods it has."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Seeded
from sfumato.statistics.people.small_samples import RecordLaplace


def method(periods: int) -> RecordLaplace:
    return RecordLaplace(alpha=Fraction(1), epsilon=Fraction(5, 2), periods=periods)


@pytest.mark.parametrize("periods", [1, 3, 10])
def test_all_periods_together_cost_the_epsilon_of_the_table(periods: int) -> None:
    guarantee = method(periods).guarantee()
    assert (guarantee.definition, guarantee.epsilon, guarantee.condition) == ("individuals", Fraction(5, 2), "")


def test_every_period_gets_noise_for_its_share_of_epsilon() -> None:
    assert method(10).noise.epsilon == Fraction(1, 4)
    cells = Cells(
        dimensions=(Dimension(name="year", codes=tuple(map(str, range(50_000)))),),
        positions=np.arange(50_000),
        columns={"count": np.full(50_000, 7)},
    )
    drawn = np.abs(method(10).protect(cells, Seeded(3))["value"] - 7)
    assert abs(drawn.mean() - 4) < 0.1  # 1/ε, as near as 1/sinh(ε) is
    assert abs(drawn.mean() - method(10).planned_error().floor) < 0.1


@pytest.mark.parametrize("periods", [1, 3, 10])
def test_a_history_of_all_periods_loses_just_epsilon_and_one_percent_less_noise_loses_more(periods: int) -> None:
    published = np.arange(-500, 501)

    def loss(noise: Geometric) -> float:
        """One count of every period moves by one, and the periods have independent noise."""
        return periods * float(np.abs(noise.log_mass(published) - noise.log_mass(published - 1)).max())

    noise = method(periods).noise
    assert loss(noise) == pytest.approx(2.5, rel=1e-9)
    assert loss(Geometric(epsilon=noise.epsilon * Fraction(101, 100))) > 2.51


def test_a_table_is_about_one_period_at_least() -> None:
    with pytest.raises(MethodError, match="one period or more"):
        method(0)
