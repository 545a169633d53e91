"""What was spent on one population over all its periods: whoever is in the data of several loses the sum."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.privacy.account import Balance
from sfumato.privacy.composition import sequential
from sfumato.privacy.guarantee import EmployerEmployee


@dataclass(frozen=True, kw_only=True)
class PeriodSpent:
    """What was charged to the account of one period."""

    period: str
    guarantee: EmployerEmployee | None
    """What all its tables with a guarantee promise together, at the alpha of its budget; None when there are none."""
    unbounded: int = 0
    """How many of its tables have no formal guarantee."""

    @classmethod
    def of(cls, period: str, balance: Balance | None, *, unbounded: int) -> "PeriodSpent":
        """What an account with this balance, None without a budget, has spent."""
        return cls(
            period=period,
            guarantee=None
            if balance is None or not balance.charged
            else EmployerEmployee(
                definition=balance.definition,
                alpha=balance.budget.alpha,
                epsilon=balance.spent_epsilon,
                delta=balance.spent_delta,
                condition=balance.condition,
            ),
            unbounded=unbounded,
        )


@dataclass(frozen=True, kw_only=True)
class OverPeriods:
    """Everything charged about one population in one ledger."""

    population: str
    periods: tuple[PeriodSpent, ...]
    """In the order of their first entries in the ledger; those without any charge are left out."""

    @property
    def formal(self) -> tuple[EmployerEmployee, ...]:
        """What each period with formal tables promises."""
        return tuple(spent.guarantee for spent in self.periods if spent.guarantee is not None)

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The periods with tables that have no formal guarantee, which no sum covers."""
        return tuple(spent.period for spent in self.periods if spent.unbounded)

    def together(self) -> EmployerEmployee | None:
        """What all formal tables of all periods promise together; None when there are none, or when they bound nothing.

        At the smallest alpha that sizes are compared at: every guarantee holds at a narrower one at no further cost. It
        holds under the weakest definition and on all conditions, and bounds nothing once the deltas add up to 1.
        """
        formal = self.formal
        if not formal or sum((each.delta for each in formal), Fraction(0)) >= 1:
            return None
        alphas = [each.alpha for each in formal if each.definition != "individuals"] or [formal[0].alpha]
        return sequential([each.at(min(alphas)) for each in formal])
