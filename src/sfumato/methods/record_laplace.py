"""Discrete Laplace noise for counts of people: differential privacy for one person with the whole history."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from sfumato.errors import MethodError
from sfumato.methods.laplace import Laplace
from sfumato.methods.method import of_table
from sfumato.noise.geometric import Geometric
from sfumato.privacy.composition import sequential
from sfumato.privacy.guarantee import EmployerEmployee


@dataclass(frozen=True, kw_only=True)
class RecordLaplace(Laplace):
    """ε privacy for one person by discrete Laplace noise of ε/periods in every cell.

    A person is in one cell of each period: inside a period one count changes, by one, and the periods add up.

    >>> RecordLaplace(alpha=Fraction(1), epsilon=Fraction(2), periods=4).noise.epsilon
    Fraction(1, 2)
    """

    name: ClassVar[str] = "laplace-records"
    description: ClassVar[str] = (
        "random whole numbers from the discrete Laplace distribution (two-sided geometric), enough to hide one "
        "person's whole history, were added to every count"
    )

    periods: int = of_table(1)
    """The number of periods in which the table counts a person."""

    def __post_init__(self) -> None:
        if self.periods < 1:
            raise MethodError(
                self.name, expected="one period or more", found=f"{self.periods}", do="choose at least one period"
            )
        super().__post_init__()

    @cached_property
    def noise(self) -> Geometric:
        """The same noise for every cell."""
        return Geometric(epsilon=self.epsilon / self.periods)

    def guarantee(self) -> EmployerEmployee:
        """For one person: parallel over the cells of a period, sequential over the periods."""
        period = EmployerEmployee(definition="individuals", alpha=self.alpha, epsilon=self.epsilon / self.periods)
        return sequential([period] * self.periods)
