"""How many neighbour steps lie between two workforces, and what a reader can learn about which of them is true.

docs/methods/employer-employee.md derives the numbers. Every figure of a privacy statement is computed here.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.steps import steps_between

ONE_JOB = 1
"""Steps between data with a job and the same data without it, under every definition."""
ANOTHER_JOB = 2
"""Steps between two things said of one job, its workplace or the worker's age, say: one job less, another one more."""

_UPWARD, _DOWNWARD = Context(prec=60, rounding=ROUND_CEILING), Context(prec=60, rounding=ROUND_FLOOR)
_LARGEST_EXPONENT = 700


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What a guarantee bounds between two states of the data that are so many steps apart.

    For every set of outputs P[output | one state] ≤ e^`epsilon`·P[output | the other] + `delta`, in both directions.
    A delta of 1 bounds nothing.
    """

    steps: int
    epsilon: Fraction
    delta: Fraction
    """Rounded up where it is no fraction."""


def loss(guarantee: EmployerEmployee, steps: int) -> Loss:
    """What several steps reveal at most: k·ε, and δ·(1 + e^ε + … + e^((k−1)ε)).

    The second is what k steps of P ≤ e^ε·P′ + δ make of each other's δ: that of the first step is multiplied by e^ε at
    every further one.

    >>> job = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1), delta=Fraction(1, 1000))
    >>> f"{float(loss(job, 2).delta):.6f}"  # 0.001·(1 + e)
    '0.003718'
    """
    return Loss(steps=steps, epsilon=steps * guarantee.epsilon, delta=_delta_of(guarantee, steps))


def workforce_steps(guarantee: EmployerEmployee, *, size: int, added: int = 0, removed: int = 0) -> int:
    """The steps that always suffice to add workers to an establishment of some size and to remove others who are there.

    Under the strong definition whoever they are, additions first, since a larger workforce takes larger steps. No path
    is shorter: its i-th addition happens at a size that i − 1 largest steps can reach, or below, and the same holds
    backwards for removals.

    >>> tenth = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1))
    >>> workforce_steps(tenth, size=100, added=10, removed=10), workforce_steps(tenth, size=100, added=11, removed=11)
    (2, 4)

    Under the others each worker may be a step: a weak step may add ten workers of a hundred, but one only of a kind
    that the establishment has few of.
    """
    if min(size, added, removed) < 0 or removed > size:
        raise ValueError("sizes are not negative, and only those who are there can be removed")
    if guarantee.definition != "strong":
        return added + removed
    most, after = size + added, size + added - removed
    return steps_between(alpha=guarantee.alpha, smaller=size, larger=most) + steps_between(
        alpha=guarantee.alpha, smaller=after, larger=most
    )


def largest_step(size: int, alpha: Fraction) -> int:
    """The largest size that is a strong neighbour of a size: one worker more, or a share alpha more.

    >>> largest_step(100, Fraction(1, 10)), largest_step(3, Fraction(1, 10))
    (110, 4)
    """
    return max(int((1 + alpha) * size), size + 1)


def _delta_of(guarantee: EmployerEmployee, steps: int) -> Fraction:
    """δ·(e^(kε) − 1)/(e^ε − 1), never below its true value and never above 1."""
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if not (delta and epsilon) or steps <= 1:
        return min(steps * delta, Fraction(1))
    if steps * epsilon > _LARGEST_EXPONENT:
        return Fraction(1)
    # `exp` rounds to the nearest decimal whatever its context says, so one more or less in the last place is safe.
    many = _UPWARD.subtract(_UPWARD.next_plus(_UPWARD.exp(_decimal(steps * epsilon, _UPWARD))), Decimal(1))
    one = _DOWNWARD.subtract(_DOWNWARD.next_minus(_DOWNWARD.exp(_decimal(epsilon, _DOWNWARD))), Decimal(1))
    return min(Fraction(1), delta * Fraction(many) / Fraction(one)) if one > 0 else Fraction(1)


def _decimal(number: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))
