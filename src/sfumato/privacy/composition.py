"""What several guarantees promise together."""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from sfumato.errors import MethodError
from sfumato.privacy.guarantee import EmployerEmployee, joined, weakest


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
