"""Who is protected, what all guarantees cost together, and what is left of a budget."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from sfumato.errors import BudgetError, MethodError
from sfumato.frame.measured import population_of
from sfumato.privacy.blocks import EVERYTHING, Block, most_spent
from sfumato.privacy.guarantee import (
    Caps,
    Definition,
    EmployerEmployee,
    Guarantee,
    at_least,
    at_most,
    capped,
    caps_together,
    joined,
    name_of,
    plain,
    weakest,
)

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
        caps=caps_together(part.caps for part in parts),
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
        caps=caps_together(part.caps for part in parts),
    )


def in_blocks(guarantees: Iterable[tuple[Block, EmployerEmployee]]) -> EmployerEmployee:
    """The guarantee of all outputs together, each about a block of establishments: what adds up where most meet.

    It is sequential where all blocks have an establishment in common, and parallel where no two have.
    """
    found = tuple(guarantees)
    parts = _at_one_alpha(part for _, part in found)
    return replace(
        parts[0],
        definition=weakest(part.definition for part in parts),
        epsilon=most_spent((block, part.epsilon) for block, part in found).amount,
        delta=most_spent((block, part.delta) for block, part in found).amount,
        condition=joined(part.condition for part in parts),
        caps=caps_together(part.caps for part in parts),
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


class Charged(Protocol):
    """What costs a budget: a charge, the entry of one in the ledger, a statistic of a plan."""

    @property
    def guarantee(self) -> Guarantee | None:
        """What it reveals at most; None where it reveals nothing."""
        ...

    @property
    def block(self) -> Block:
        """The establishments that it is about."""
        ...


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The least of what costs a budget."""

    guarantee: Guarantee
    block: Block = EVERYTHING


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
    block: Block = EVERYTHING
    """The establishments that the table is about."""
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
    """Of the establishments that most was spent on: charges about others are not added to it."""
    spent_delta: Fraction
    definition: Definition
    """Under which definition everything spent so far holds together: that of its weakest table."""
    condition: str = ""
    """What has to be granted for that; empty when every table has differential privacy."""
    caps: Caps = ()
    """The totals among what is spent."""
    charged: int = 0
    """How many tables with a guarantee were charged."""
    added_epsilon: Fraction = Fraction(0)
    """What all charges come to when they are just added up."""
    exact: bool = True
    """Whether what is spent is known exactly, or only bounded: charges about too many kinds of blocks take too long."""
    most_spent_on: Block = EVERYTHING
    """The establishments that most epsilon was spent on, or most delta where that is overdrawn; all where this is only
    bounded."""

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
    """A release that costs more than its account has left; carries both, and nothing was charged.

    Charges about different establishments are not added up, so that some may have more left than others: `about` are
    those that would be overdrawn by most, and both figures are theirs.
    """

    def __init__(
        self, balance: Balance, *, epsilon: Fraction, delta: Fraction, exact: bool = True, about: Block = EVERYTHING
    ) -> None:
        self.remaining, self.requested = balance.remaining_epsilon, epsilon
        self.remaining_delta, self.requested_delta = balance.remaining_delta, delta
        self.about = about
        left = f"epsilon = {at_least(self.remaining)}, delta = {at_least(self.remaining_delta)}"
        whose, spent, them = "", "", ""
        if about != EVERYTHING:
            whose, them = f" for establishments with {about.short}", " about them"
            spent = f", after {in_words(balance.spent_epsilon, balance.spent_delta)} that was spent on them"
        bound = "" if exact else ", which is only a bound: charges are about too many different blocks of codes"
        super().__init__(
            f"budget of {balance.account} at alpha = {plain(balance.budget.alpha)}",
            expected=f"at most what remains{whose}: {left}{spent}",
            found=f"tables{them} that cost {in_words(epsilon, delta)}{bound}",
            do=f"leave out tables{them}, lower their epsilon, or let the officer raise the budget with `sfumato budget "
            "set`",
        )


def balance(account: Account, budget: EmployerEmployee, charged: Iterable[Charged]) -> Balance:
    """What a budget has left after what was charged to it; it may be negative."""
    bounds = [(one.block, one.guarantee.bound) for one in charged if one.guarantee is not None]
    formal = [(block, bound) for block, bound in bounds if bound is not None]  # others promise nothing
    costs = [(block, _at_budget(account, budget, bound)) for block, bound in formal]
    epsilon = most_spent((block, cost.epsilon) for block, cost in costs)
    delta = most_spent((block, cost.delta) for block, cost in costs)
    overdrawn = delta if delta.amount > budget.delta and epsilon.amount <= budget.epsilon else epsilon
    return Balance(
        account=account,
        budget=budget,
        spent_epsilon=epsilon.amount,
        spent_delta=delta.amount,
        definition=weakest(bound.definition for _, bound in formal),
        condition=joined(bound.condition for _, bound in formal),
        caps=caps_together(cost.caps for _, cost in costs),
        charged=len(formal),
        added_epsilon=sum((cost.epsilon for _, cost in costs), Fraction(0)),
        exact=epsilon.exact and delta.exact,
        most_spent_on=overdrawn.block or EVERYTHING,
    )


def further(account: Account, budget: EmployerEmployee, charged: Iterable[Charged], new: Iterable[Charged]) -> Fraction:
    """The epsilon that new charges add to what is spent: nothing where more was spent on other establishments."""
    before = tuple(charged)
    after = balance(account, budget, [*before, *new]).spent_epsilon
    return max(after - balance(account, budget, before).spent_epsilon, Fraction(0))


def refuse_overdraft(
    account: Account, budget: EmployerEmployee, charged: Iterable[Charged], new: Iterable[Charged]
) -> None:
    """Raise Overdraft when new charges cost more than a budget has left after what was charged to it."""
    known, asked = tuple(charged), tuple(new)
    after = balance(account, budget, [*known, *asked])
    if after.remaining_epsilon >= 0 and after.remaining_delta >= 0:
        return
    about = after.most_spent_on
    # What is about some of these establishments is about all of them: otherwise more would be spent on some.
    before, then = (
        balance(account, budget, [one for one in some if not one.block.is_disjoint_from(about)])
        for some in (known, [*known, *asked])
    )
    epsilon, delta = then.spent_epsilon - before.spent_epsilon, then.spent_delta - before.spent_delta
    raise Overdraft(before, epsilon=epsilon, delta=delta, exact=after.exact, about=about)


def _at_budget(account: Account, budget: EmployerEmployee, guarantee: EmployerEmployee) -> EmployerEmployee:
    if (guarantee.definition == "units") != (budget.definition == "units"):
        raise BudgetError(
            f"budget of {account}",
            expected=f"tables protected under the {budget.definition} definition, which the budget promises",
            found=f"a table protected under another one ({guarantee})",
            do='charge totals of records with a guarantee, and nothing else, to a budget with definition = "units"',
        )
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
    further = tuple(cap for cap in guarantee.caps if cap not in budget.caps)
    if further and budget.definition != "individuals":
        raise BudgetError(
            f"budget of {account}",
            expected="tables whose guarantee holds for all neighbours that the budget promises: "
            + (f"totals of {capped(budget.caps, budget.definition)}" if budget.caps else "counts"),
            found=f"a total of {capped(further, budget.definition)}"
            + (
                ""
                if budget.definition == "units"
                else ", beside which neighbours are those whose pay, or whatever is added up, grows alike"
            ),
            do=_allowed(budget, further),
        )
    try:
        return guarantee.within(budget)
    except MethodError as error:
        raise BudgetError(f"budget of {account}", expected=error.expected, found=error.found, do=error.do) from error


def _allowed(budget: EmployerEmployee, further: Caps) -> str:
    """What to do about totals, or populations of a panel, that a budget does not have."""
    known = {population_of(measure) for measure, _ in budget.caps}
    if lacking := {words for measure, _ in further if (words := population_of(measure)) and words not in known}:
        jobs = " and ".join(sorted(lacking))
        return f"let the officer allow tables of {jobs} in the budget: populations = […] in the release file"
    names = sorted({name_of(measure) for measure, _ in further})
    named = {name_of(measure) for measure, _ in budget.caps}
    again = [name for name in names if name in named]
    if again:
        parts = "floor, column, factor and protected unit" if budget.definition == "units" else "cap, column and factor"
        return (
            f"write {' and '.join(again)} under [data.measures] as the budget has it, its {parts} too; "
            "or give the other measure another name, and let the officer allow its totals in the budget: totals = […] "
            "in the release file"
        )
    listed = ", ".join(f'"{name}"' for name in names)
    return f"let the officer allow such totals in the budget: totals = [{listed}] in the release file"


def refuse_several_caps(account: Account, budget: EmployerEmployee) -> None:
    """Refuse a budget of a period with several caps or meanings of one measure: no release file can state it."""
    names = Counter((name_of(measure), population_of(measure)) for measure, _ in budget.caps)
    several = [name for (name, _), times in names.items() if times > 1]
    if several:
        raise BudgetError(
            f"budget of {account}, totals of {several[0]}",
            expected="each measure once: in one period it has one cap and is made in one way",
            found=capped(tuple(cap for cap in budget.caps if name_of(cap[0]) == several[0]), budget.definition),
            do="leave one of them, the one of the release files; a window over several periods may have more, and a "
            "second measure has another name",
        )


def in_words(epsilon: Fraction, delta: Fraction) -> str:
    """A cost as messages write it, rounded up where it is long."""
    return f"epsilon = {at_most(epsilon)}, delta = {at_most(delta)}"
