"""What a reader of the output provably cannot learn, in steps between neighbours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, nextafter
from numbers import Rational
from typing import Any, Literal, get_args

from sfumato.errors import MethodError
from sfumato.frame.measured import JOBS, population_of
from sfumato.privacy.steps import neighbour_steps, steps_between

MOST = 10**9
"""Parameters beyond this protect nothing, and are surely a slip."""

NO_ALPHA = Fraction(1)
"""The α that a budget for individuals states when it is left out: it plays no part there."""
CONDITIONAL = "its tables may be protected on conditions, which they state"
"""What a budget says that allows tables without differential privacy."""

_SHORT, _DIGITS = 12, 4
"""The longest text of a number that people read as it is, and the digits that it is rounded to otherwise."""

Definition = Literal["strong", "weak", "individuals", "units"]
"""Who is protected, from the strongest to the weakest; each implies those after it, but for the last.

"units" is about the values of units, such as the turnover of businesses, and neither implies another nor follows from
one: docs/methods/formal-records.md."""
Caps = tuple[tuple[str, int], ...]
"""Measures of which totals are told, each with the most that one job adds to them, in the order of their names.

A measure is its name, and what makes its values where it is no column as it is: earnings[column=pay2, factor=100]. One
step for a column is many for another, so that two meanings of one name are two measures."""


def caps_together(some: Iterable[Caps]) -> Caps:
    """All limits that neighbours keep to when several guarantees are to hold together.

    >>> caps_together([(("earnings", 100),), (), (("earnings", 100), ("hours", 60))])
    (('earnings', 100), ('hours', 60))
    """
    return tuple(sorted({cap for caps in some for cap in caps}))


def capped(caps: Caps, definition: "Definition" = "strong") -> str:
    """The measures of totals, with the most that one job adds, or up to which a unit is hidden whole, in words.

    >>> capped((("earnings", 120_000), ("hours", 3_000)))
    'earnings (at most 120,000 a job) and hours (at most 3,000 a job)'
    >>> capped((("turnover", 5_000),), "units")
    'turnover (hidden whole up to 5,000)'
    """
    if definition == "units":
        texts = [f"{measure} (hidden whole up to {cap:,})" for measure, cap in caps]
    else:
        texts = [f"{one} (at most {cap:,} a job)" if cap > 1 else f"{one} (each counts once)" for one, cap in caps]
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def name_of(measure: str) -> str:
    """The name that a measure has in release files.

    >>> name_of("earnings[column=pay2]")
    'earnings'
    """
    return measure.partition("[")[0]


def spoken(caps: Caps) -> Caps:
    """Caps for people: with the names of measures alone, unless one name has several meanings, and of which jobs.

    >>> spoken((("earnings[factor=100]", 900),)), spoken((("a", 9), ("a[factor=100]", 900)))
    ((('earnings', 900),), (('a', 9), ('a[factor=100]', 900)))
    >>> spoken((("hours[population=end]", 60), ("jobs[population=end]", 1)))
    (('hours of jobs at the end of a period', 60), ('jobs at the end of a period', 1))
    """
    words = {measure: _in_words(measure) for measure, _ in caps}
    alone = len(set(words.values())) == len(words)
    return tuple((words[measure], cap) for measure, cap in caps) if alone else caps


def _in_words(measure: str) -> str:
    name, jobs = name_of(measure), population_of(measure)
    return name if jobs is None else jobs if name == JOBS else f"{name} of {jobs}"


def totals_in(caps: Caps) -> Caps:
    """Those caps that are about what jobs have; others are about how many there are at a period of a panel."""
    return tuple((measure, cap) for measure, cap in caps if name_of(measure) != JOBS or not population_of(measure))


def limited(caps: Caps, definition: "Definition" = "strong") -> str:
    """What limits steps beside the number of workers, as it follows the parameters of a guarantee.

    >>> limited((("earnings", 900), ("jobs[population=end]", 1)))
    '; with totals of earnings (at most 900 a job); with numbers of jobs at the end of a period'
    """
    totals = totals_in(caps)
    numbers = [words for words, _ in spoken(tuple(cap for cap in caps if cap not in totals))]
    of_totals = f"; with totals of {capped(totals, definition)}" if totals else ""
    return of_totals + (f"; with numbers of {' and of '.join(numbers)}" if numbers else "")


def weakest(definitions: Iterable[Definition]) -> Definition:
    """The definition under which all hold together.

    Every weak neighbour is a strong one (take the property "is a worker"), and one worker more is a weak neighbour: a
    strong guarantee is also a weak one, and a weak one also holds for individuals. The reverse does not hold.

    >>> weakest(["strong", "individuals", "weak"])
    'individuals'

    That of units has nothing in common with the others, and is refused beside them.
    """
    order, some = get_args(Definition), set(definitions)
    if "units" in some and len(some) > 1:
        raise MethodError(
            "composition of guarantees",
            expected="guarantees about the values of units, or about jobs and people",
            found="both, under which nothing holds together",
            do="charge them to budgets of different populations",
        )
    return max(some, key=order.index, default="strong")


def joined(conditions: Iterable[str]) -> str:
    """All that has to be granted when several guarantees are to hold together.

    >>> joined(["", "given a", "given b", "given a"])
    'given a; given b'
    """
    return "; ".join(dict.fromkeys(filter(None, conditions)))


def plain(number: Fraction) -> str:
    """The number as people write it: in decimals where they are exact and short, as a fraction otherwise.

    >>> plain(Fraction(1, 10)), plain(Fraction(1, 3))
    ('0.1', '1/3')
    """
    decimals = f"{float(number):.15g}"
    return decimals if Fraction(decimals) == number else str(number)


def at_most(number: Fraction) -> str:
    """The number for people, never below what it is: as it is where that is short, otherwise in four digits rounded up.

    >>> at_most(Fraction(1, 3)), at_most(Fraction(1011340694082123, 10**18))
    ('1/3', '0.001012')
    """
    return _shortened(number, ROUND_CEILING)


def at_least(number: Fraction) -> str:
    """The number for people, never above what it is: what is left of a budget, say.

    >>> at_least(Fraction(1011340694082123, 10**18))
    '0.001011'
    """
    return _shortened(number, ROUND_FLOOR)


def _shortened(number: Fraction, rounding: str) -> str:
    text = plain(number)
    if len(text) <= _SHORT:
        return text
    rounded = Context(prec=_DIGITS, rounding=rounding).divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{rounded:f}"


@dataclass(frozen=True, kw_only=True)
class EmployerEmployee:
    """(α, ε, δ) privacy for employers and their employees; docs/methods/employer-employee.md defines it.

    For individuals only, α plays no part: it is the one the guarantee is compared at.

    Parameters are exact fractions, so that a budget never drifts by rounding.

    >>> a = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(2))
    >>> a.at(Fraction(1, 2)).epsilon          # 14 → 21 workers takes seven steps of a tenth
    Fraction(14, 1)
    """

    definition: Definition
    alpha: Fraction
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    condition: str = ""
    """What has to be granted before any of this holds, in words; empty for a formal guarantee. Of a budget, any text
    allows tables whose protection has such a condition."""
    caps: "Caps" = ()
    """The measures of which totals are told, each with the most that one job adds to them.

    They narrow who are neighbours: what a workforce adds to such a total also grows by at most a share α, or by one
    cap. docs/methods/formal-totals.md defines it. Of a budget, they are the totals that may be charged to it. Under
    "units" they are the amounts up to which a unit is hidden whole: docs/methods/formal-records.md."""

    def __post_init__(self) -> None:
        if not all(isinstance(number, Rational) for number in (self.alpha, self.epsilon, self.delta)):
            raise TypeError("privacy parameters are exact: pass Fraction('0.1'), not 0.1")
        if not (0 < self.alpha <= MOST and 0 <= self.epsilon <= MOST and 0 <= self.delta < 1):
            raise MethodError(
                "privacy parameters",
                expected=f"0 < alpha ≤ {MOST:,}, 0 ≤ epsilon ≤ {MOST:,} and 0 ≤ delta < 1",
                found=str(self),
                do="choose parameters inside these ranges",
            )
        if self.caps != caps_together([self.caps]) or any(cap < 1 for _, cap in self.caps):
            raise ValueError("caps are whole numbers above 0, in the order of their measures and each once")

    @property
    def bound(self) -> "EmployerEmployee":
        """What it bounds: itself; a method without a formal guarantee has none."""
        return self

    def described(self) -> dict[str, Any]:
        """The guarantee as plain numbers and words."""
        parameters = {name: rounded_up(getattr(self, name)) for name in ("alpha", "epsilon", "delta")}
        condition = {"condition": self.condition} if self.condition else {}
        caps = {"caps": [{"measure": measure, "cap": cap} for measure, cap in self.caps]} if self.caps else {}
        return {"definition": self.definition, **parameters, **condition, **caps}

    def __str__(self) -> str:
        delta = f", delta = {at_most(self.delta)}" if self.delta else ""
        # For individuals alpha plays no part, but a budget states it, and budgets are compared as they are written.
        words = "individuals only" if self.definition == "individuals" else self.definition
        condition = f"; {self.condition}" if self.condition else ""
        amounts = f"alpha = {plain(self.alpha)}, epsilon = {at_most(self.epsilon)}{delta}"
        return f"{words}, {amounts}{condition}{limited(self.caps, self.definition)}"

    def at(self, alpha: Fraction) -> "EmployerEmployee":
        """The guarantee this one implies when establishments are compared within another factor 1+α.

        A narrower α is protected at no more than the same ε: its neighbours are neighbours here too. A wider
        one is reached in k steps and costs k·ε, but only under the strong definition: a weak neighbour at a
        wider α may change many small groups of workers at once, and no fixed number of weak steps reaches it.
        With δ, k steps cost δ·(1 + e^ε + … + e^((k−1)ε)), which is no fraction and is seldom still small, so
        it is refused. For individuals α changes nothing: one worker more is a neighbour at every α. With totals a wider
        α is not reached in a known number of steps either: they have to keep to two limits at once.
        """
        if alpha <= self.alpha or self.definition == "individuals":
            return replace(self, alpha=alpha)
        if self.caps:
            raise MethodError(
                "privacy budget",
                expected=f"a {'total' if totals_in(self.caps) else 'table'} protected at alpha ≥ {plain(alpha)}",
                found=f"alpha = {plain(self.alpha)}, which implies no guarantee at {plain(alpha)}",
                do=f"protect the table with alpha = {plain(alpha)}",
            )
        if self.definition == "weak":
            raise MethodError(
                "privacy budget",
                expected=f"a table protected at alpha ≥ {plain(alpha)} under the weak definition",
                found=f"alpha = {plain(self.alpha)}, which implies no guarantee at {plain(alpha)}",
                do=f"protect the table with alpha = {plain(alpha)}",
            )
        if self.delta:
            raise MethodError(
                "privacy budget",
                expected=f"a table with delta = 0, or protected at alpha ≥ {plain(alpha)}",
                found=f"delta = {at_most(self.delta)} at alpha = {plain(self.alpha)}",
                do=f"protect the table with alpha = {plain(alpha)}",
            )
        return replace(self, alpha=alpha, epsilon=neighbour_steps(self.alpha, alpha) * self.epsilon)

    def within(self, budget: "EmployerEmployee") -> "EmployerEmployee":
        """What this guarantee costs a budget: at its α, and for individuals only if it promises no more.

        >>> table = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(2))
        >>> table.within(EmployerEmployee(definition="individuals", alpha=Fraction(1, 2), epsilon=Fraction(9))).epsilon
        Fraction(2, 1)
        """
        if budget.definition == "individuals":  # one job more adds at most the cap: with totals that is one step too
            return replace(self, definition="individuals", alpha=budget.alpha, caps=())
        return self.at(budget.alpha)


@dataclass(frozen=True, kw_only=True)
class NoFormalGuarantee:
    """The method bounds nothing an attacker may learn; the statement says in words what it does instead."""

    statement: str

    @property
    def bound(self) -> None:
        """Nothing is bounded."""
        return None

    def described(self) -> dict[str, Any]:
        """The statement as a field."""
        return {"definition": "none", "statement": self.statement}


def rounded_up(number: Fraction) -> int | float:
    """A number as JSON writes it, never below what it is."""
    if number.denominator == 1:
        return int(number)
    nearest = float(number)
    if nearest >= number or plain(number) == f"{nearest:.15g}":  # a short decimal is meant as it is written
        return nearest
    return nextafter(nearest, inf)


def read_described(described: Mapping[str, Any]) -> EmployerEmployee | None:
    """The guarantee that a bundle describes, no stronger than the one it was written from; None where there is none.

    >>> read_described({"definition": "strong", "alpha": 0.1, "epsilon": 2, "delta": 0}).epsilon
    Fraction(2, 1)
    """
    if described["definition"] == "none":
        return None
    numbers = {name: Fraction(str(described[name])) for name in ("alpha", "epsilon", "delta")}
    return EmployerEmployee(
        definition=described["definition"],
        condition=described.get("condition", ""),
        caps=described_caps(described),
        **numbers,
    )


def described_caps(described: Mapping[str, Any]) -> Caps:
    """The caps of a guarantee as a bundle describes it."""
    return tuple((one["measure"], one["cap"]) for one in described.get("caps", ()))


Guarantee = EmployerEmployee | NoFormalGuarantee


# How many neighbour steps lie between two workforces, and what a reader can learn about which of them is true.
#
# docs/methods/employer-employee.md derives the numbers; the figures of a privacy statement are computed from these.

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
    that the establishment has few of. The same with totals, where ten workers may earn more than a step can add.
    """
    if min(size, added, removed) < 0 or removed > size:
        raise ValueError("sizes are not negative, and only those who are there can be removed")
    if guarantee.definition != "strong" or guarantee.caps:
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


def largest_value(value: int, alpha: Fraction, floor: int) -> int:
    """The largest value of a unit that is one step from a value: a share alpha more, or the floor.

    >>> largest_value(100_000, Fraction(1, 10), 5_000), largest_value(3, Fraction(1, 10), 5_000)
    (110000, 5003)
    """
    return max(int((1 + alpha) * value), value + floor)


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
