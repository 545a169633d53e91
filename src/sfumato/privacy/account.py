"""Who is protected, what all guarantees cost together, and what is left of a budget."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.errors import BudgetError, MethodError
from sfumato.privacy.guarantee import Definition, EmployerEmployee, Guarantee, at_least, at_most, joined, plain, weakest

# What several guarantees promise together.


def sequential(guarantees: Iterable[EmployerEmployee]) -> EmployerEmployee:
    """The guarantee of all outputs together when each may depend on every establishment: ε and δ add.

    >>> table = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1, 2))
    >>> sequential([table, table]).epsilon
    Fraction(1, 1)
    """
    parts = _at_one_alpha(guarantees)
    return replace(
        parts[0],
        definition=weakest(part.definition for part in parts),
        epsilon=sum((part.epsilon for part in parts), Fraction(0)),
        delta=sum((part.delta for part in parts), Fraction(0)),
        condition=joined(part.condition for part in parts),
    )


def parallel(guarantees: Iterable[EmployerEmployee]) -> EmployerEmployee:
    """The guarantee of all outputs together over disjoint sets of establishments: the largest ε and δ.

    Neighbours differ in one establishment, so only one of the outputs can differ. This needs a public
    attribute that tells the sets apart; groups of *workers* of one establishment are never disjoint in this
    sense.
    """
    parts = _at_one_alpha(guarantees)
    return replace(
        parts[0],
        definition=weakest(part.definition for part in parts),
        epsilon=max(part.epsilon for part in parts),
        delta=max(part.delta for part in parts),
        condition=joined(part.condition for part in parts),
    )


def _at_one_alpha(guarantees: Iterable[EmployerEmployee]) -> tuple[EmployerEmployee, ...]:
    parts = tuple(guarantees)
    alphas = sorted({part.alpha for part in parts})
    if len(alphas) != 1:
        raise MethodError(
            "composition of guarantees",
            expected="one or more guarantees at one alpha",
            found=f"alpha = {' and '.join(map(str, alphas))}" if alphas else "no guarantee",
            do="bring them to one alpha first with `.at(alpha)`" if alphas else "compose at least one",
        )
    return parts


# Who is protected, what is asked about them, and what is left of their budget.


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


# What guarantees cost a budget, in exact fractions.

_WEAKER: Mapping[Definition, tuple[str, str]] = {
    "weak": (
        "under the weak one, which hides an employer's size only from attackers without prior knowledge of the workers",
        "weak ones",
    ),
    "individuals": (
        "for individuals only, which hides neither the size nor the shape of any employer's workforce",
        "tables that leave employers open",
    ),
}
"""What a table says that promises less than its budget, and what the officer would have to allow."""


class Overdraft(BudgetError):  # noqa: N818  (what a bank calls it)
    """A release that costs more than its account has left; carries both, and nothing was charged."""

    def __init__(self, balance: Balance, *, epsilon: Fraction, delta: Fraction) -> None:
        self.remaining, self.requested = balance.remaining_epsilon, epsilon
        self.remaining_delta, self.requested_delta = balance.remaining_delta, delta
        left = f"epsilon = {at_least(self.remaining)}, delta = {at_least(self.remaining_delta)}"
        super().__init__(
            f"budget of {balance.account} at alpha = {plain(balance.budget.alpha)}",
            expected=f"at most what remains: {left}",
            found=f"tables that cost {in_words(epsilon, delta)}",
            do="leave out tables, lower their epsilon, or let the officer raise the budget with `sfumato budget set`",
        )


def balance(account: Account, budget: EmployerEmployee, charged: Iterable[Guarantee]) -> Balance:
    """What a budget has left after the guarantees charged to it; it may be negative."""
    formal = [guarantee.bound for guarantee in charged if guarantee.bound is not None]  # others promise nothing
    costs = [_at_budget(account, budget, guarantee) for guarantee in formal]
    return Balance(
        account=account,
        budget=budget,
        spent_epsilon=sum((cost.epsilon for cost in costs), Fraction(0)),
        spent_delta=sum((cost.delta for cost in costs), Fraction(0)),
        definition=weakest(guarantee.definition for guarantee in formal),
        condition=joined(guarantee.condition for guarantee in formal),
        charged=len(formal),
    )


def refuse_overdraft(before: Balance, asked: Iterable[Guarantee]) -> None:
    """Raise Overdraft when the guarantees cost more than is left."""
    more = balance(before.account, before.budget, asked)
    if more.spent_epsilon > before.remaining_epsilon or more.spent_delta > before.remaining_delta:
        raise Overdraft(before, epsilon=more.spent_epsilon, delta=more.spent_delta)


def _at_budget(account: Account, budget: EmployerEmployee, guarantee: EmployerEmployee) -> EmployerEmployee:
    together = weakest([guarantee.definition, budget.definition])
    if together != budget.definition:
        found, allowed = _WEAKER[together]
        raise BudgetError(
            f"budget of {account}",
            expected=f"tables protected under the {budget.definition} definition, which the budget promises",
            found=f"a table protected {found} ({guarantee})",
            do=f"choose a {budget.definition} method, or let the officer allow {allowed}: "
            f'budget definition = "{together}"',
        )
    if guarantee.condition and not budget.condition:
        raise BudgetError(
            f"budget of {account}",
            expected="tables with differential privacy, which the budget promises",
            found=f"a table protected on a condition: {guarantee.condition}",
            do="choose a method with differential privacy, or let the officer allow such tables: budget conditional = "
            "true",
        )
    try:
        return guarantee.within(budget)
    except MethodError as error:
        raise BudgetError(f"budget of {account}", expected=error.expected, found=error.found, do=error.do) from error


def in_words(epsilon: Fraction, delta: Fraction) -> str:
    """A cost as messages write it, rounded up where it is long."""
    return f"epsilon = {at_most(epsilon)}, delta = {at_most(delta)}"
