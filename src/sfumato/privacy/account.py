"""Who is protected, what is asked about them, and what is left of their budget."""

import re
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import BudgetError
from sfumato.privacy.guarantee import Definition, EmployerEmployee, Guarantee


@dataclass(frozen=True, kw_only=True)
class Account:
    """A population in a period, such as the jobs of a state in 2025: one budget protects its units."""

    population: str
    period: str

    def __post_init__(self) -> None:
        if not (self.population.strip() and self.period.strip()):
            raise BudgetError(
                "budget account",
                expected="a population and a period, such as 'jobs in Illinois' and '2025'",
                found=f"population {self.population!r}, period {self.period!r}",
                do="name both in the release file",
            )

    def __str__(self) -> str:
        return f"{self.population!r} in {self.period!r}"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One table's claim on a budget, named by digests so that the ledger itself reveals nothing.

    `question` digests everything that decides the distribution of the answer: the table, its method and
    parameters, and the data. `data` is the fingerprint of the confidential data.
    """

    question: str
    table: str
    guarantee: Guarantee
    data: str
    note: str = ""
    """What the history keeps beside it, such as the fingerprint of a key."""
    charged_as: tuple[Guarantee, ...] = ()
    """With which other guarantees the same question was charged, where an earlier version worked it out otherwise."""

    def __post_init__(self) -> None:
        for name, digest in (("question", self.question), ("data", self.data)):
            if not re.fullmatch(r"[0-9a-f]+", digest):
                raise ValueError(f"{name} must be a digest in lower-case hexadecimal digits, not {digest!r}")


@dataclass(frozen=True, kw_only=True)
class Balance:
    """What an account may spend, has spent and has left, at the α of its budget."""

    account: Account
    budget: EmployerEmployee
    spent_epsilon: Fraction
    spent_delta: Fraction
    definition: Definition
    """Under which definition everything spent so far holds together: that of its weakest table."""
    condition: str = ""
    """What has to be granted for that; empty when every table has differential privacy."""
    charged: int = 0
    """How many tables with a guarantee were charged."""

    @property
    def remaining_epsilon(self) -> Fraction:
        """The ε that further tables may cost."""
        return self.budget.epsilon - self.spent_epsilon

    @property
    def remaining_delta(self) -> Fraction:
        """The δ that further tables may cost."""
        return self.budget.delta - self.spent_delta
