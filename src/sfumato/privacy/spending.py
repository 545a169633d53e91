"""What guarantees cost a budget, in exact fractions."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from sfumato.errors import BudgetError, MethodError
from sfumato.privacy.account import Account, Balance
from sfumato.privacy.guarantee import Definition, EmployerEmployee, Guarantee, at_least, at_most, joined, plain, weakest

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
    formal = [guarantee for guarantee in charged if isinstance(guarantee, EmployerEmployee)]  # others promise nothing
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
