"""What a guarantee protects: the three requirements of employer-employee data, as a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from sfumato.privacy.guarantee import Definition, EmployerEmployee, Guarantee

Answer = Literal["yes", "no", "weak attackers"]


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """Whether individuals, the size of an employer and the shape of its workforce are protected."""

    individuals: Answer
    employer_size: Answer
    employer_shape: Answer

    def __str__(self) -> str:
        if self.individuals == "no":
            return "nothing provably"
        size = {"yes": "size", "no": "", "weak attackers": "size (weak attackers only)"}[self.employer_size]
        parts = [word for word in (size, "shape" if self.employer_shape == "yes" else "") if word]
        return ", ".join(["persons", *parts]) if parts else "persons only"


REQUIREMENTS: Mapping[Definition | None, Requirements] = MappingProxyType(
    {
        "strong": Requirements(individuals="yes", employer_size="yes", employer_shape="yes"),
        "weak": Requirements(individuals="yes", employer_size="weak attackers", employer_shape="no"),
        "individuals": Requirements(individuals="yes", employer_size="no", employer_shape="no"),
        None: Requirements(individuals="no", employer_size="no", employer_shape="no"),
    }
)
"""What each definition protects; None is no formal guarantee. docs/methods/employer-employee.md prints it.

Shares under the weak definition are bounded by single workers only, which is no protection of a shape."""


def requirements(guarantee: Guarantee) -> Requirements:
    """What a table with this guarantee protects.

    >>> from fractions import Fraction
    >>> table = EmployerEmployee(definition="weak", alpha=Fraction(1, 10), epsilon=Fraction(2))
    >>> print(requirements(table))
    persons, size (weak attackers only)
    """
    if not isinstance(guarantee, EmployerEmployee) or guarantee.condition:
        return REQUIREMENTS[None]
    return REQUIREMENTS[guarantee.definition]
