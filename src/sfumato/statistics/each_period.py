"""An ε of its own for every period of a table about people, or about jobs of a panel: ε = Σ_t ε_t."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, joined
from sfumato.errors import ReleaseError
from sfumato.measures.attacks import AttackResult, pooled
from sfumato.method import PlannedError, PublishedFigures, method_words, published_figures
from sfumato.noise.randomness import Randomness
from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import EmployerEmployee, plain

_SAME = frozenset(
    {
        *("name", "named", "description", "needs", "alpha", "worker_cells", "unbiased", "observes", "leaks"),
        *("at", "statistics", "decimals", "grid", "minimum", "chi", "clip", "tells_errors", "most_people", "bounds"),
        *("curve", "bins", "count_epsilon", "heaviest", "withheld_below", "weighed"),
        *("largest_weight", "weights_above", "weight_steps", "done"),
    }
)
"""What does not depend on ε, and is the same in all periods."""


@dataclass(frozen=True, kw_only=True, repr=False)
class EachPeriod:
    """One method in every period, each time with another ε; whoever is protected may be in all, so that ε adds up.

    A period is protected as a table of its own. χ of `mose`, where it is observed, is that of the groups of the period.
    """

    period: str
    """The dimension of periods."""
    methods: tuple[tuple[str, Any], ...]
    """By the code of the period, in the order of codes."""

    def __post_init__(self) -> None:
        if not self.methods or list(self.methods) != sorted(self.methods, key=lambda pair: pair[0]):
            raise ValueError("one period or more, in the order of their codes")

    def __repr__(self) -> str:
        listed = ", ".join(f"{code!r}: {method_words(method)}" for code, method in self.methods)
        return f"EachPeriod(period={self.period!r}, {{{listed}}})"

    def __getattr__(self, name: str) -> Any:
        if name in _SAME:
            return getattr(self.methods[0][1], name)
        raise AttributeError(name)

    @property
    def epsilon(self) -> Fraction:
        """What all periods spend together."""
        return sum((method.epsilon for _, method in self.methods), Fraction(0))

    @property
    def periods(self) -> int:
        """How many there are."""
        return len(self.methods)

    @property
    def epsilons(self) -> dict[str, Fraction]:
        """What each of them spends."""
        return {code: method.epsilon for code, method in self.methods}

    def spending(self, factor: Fraction) -> "EachPeriod":
        """The same with so many times its ε in every period."""
        return replace(self, methods=tuple((code, method.spending(factor)) for code, method in self.methods))

    def in_order(self) -> "EachPeriod":
        """The same with the places of predictions in one order."""
        return replace(self, methods=tuple((code, method.in_order()) for code, method in self.methods))

    def of_one_period(self) -> Any:
        """The method that a period has, as if there were no other: the first one's."""
        return self.methods[0][1]

    def guarantee(self) -> EmployerEmployee:
        """For one person, or one job, with the whole history: sequential over the periods."""
        return sequential([method.guarantee() for _, method in self.methods])

    def parts(self, counted: Any) -> Iterator[tuple[str, Any, Any]]:
        """Every period with its method and what was counted of it."""
        for code, method in self.methods:
            yield code, method, counted.only(self.period, code)

    def protect(self, counted: Any, randomness: Randomness) -> Cells:
        """Every period with its own noise."""
        return joined([method.protect(part, randomness) for _, method, part in self.parts(counted)])

    # Errors: of every period its own.

    @property
    def _loudest(self) -> Any:
        """The method of the period that spends least."""
        return min((method for _, method in self.methods), key=lambda method: method.epsilon)

    @property
    def _quietest(self) -> Any:
        return max((method for _, method in self.methods), key=lambda method: method.epsilon)

    @property
    def fewest(self) -> int:
        """The least published number of people that has a mean in every period."""
        found: int = self._loudest.fewest
        return found

    def planned_error(self) -> PlannedError:
        """Of the period that spends least: no other is less accurate."""
        found: PlannedError = self._loudest.planned_error()
        return found

    def typical_error(self) -> str:
        """How far a value is typically off: in the period that spends least, and in the one that spends most."""
        ends = sorted(self.methods, key=lambda pair: pair[1].epsilon)
        (least, loud), (most, quiet) = ends[0], ends[-1]
        told: tuple[str, str] = loud.typical_error(), quiet.typical_error()
        if told[0] == told[1]:
            return told[0]
        small, large = (words[0].lower() + words[1:] for words in told)
        return f"Least accurate is {self.period} {least}: {small} Most accurate is {self.period} {most}: {large}"

    def typical_by_size(self) -> tuple[str, str]:
        """The same in short, for small and for large groups: of the least accurate period, and of the most."""
        few, many = zip(self._loudest.typical_by_size(), self._quietest.typical_by_size(), strict=True)
        small, large = (" to ".join(dict.fromkeys(some)) for some in (few, many))
        return small, large

    def expected_error(self, counted: Any) -> Floats:
        """The mean absolute error of every published value: confidential."""
        return self._spread(counted, lambda method, part: method.expected_error(part))

    def published_error(self, values: Integers) -> Floats:
        """A value alone does not tell its period, and so not its error; `published_figures` has it."""
        return np.full(len(values), np.nan)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """That of the period that spends least, which covers in all others too."""
        low, high = self._loudest.published_interval(values, confidence)
        return low, high

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The error and the interval of every value, by its period."""
        found = [
            (
                answer.codes(self.period) == _place(answer, self.period, code),
                published_figures(method, part, confidence),
            )
            for code, method, part in self.parts(answer)
        ]
        columns = {name: np.full(len(answer), np.nan) for name in ("error", "low", "high")}
        for own, figures in found:
            for name, column in columns.items():
                column[own] = getattr(figures, name)
        return PublishedFigures(**columns)

    # What the confidential report asks.

    def people(self, counted: Any) -> Integers:
        """The true number of people of every group: confidential."""
        found: Integers = self.methods[0][1].people(counted)
        return found

    def true_estimates(self, counted: Any) -> Floats:
        """What would be published without protection, in the unit of the measure: confidential."""
        return self._spread(counted, lambda method, part: method.true_estimates(part))

    def true_value(self, counted: Any) -> Floats:
        """The same in published units."""
        return self._spread(counted, lambda method, part: method.true_value(part))

    def attacks(self, counted: Any, answer: Cells) -> tuple[AttackResult, ...]:
        """What a reader gets out of every period, added up: confidential."""
        tried = [method.attacks(part, answer.only(self.period, code)) for code, method, part in self.parts(counted)]
        return tuple(map(pooled, zip(*tried, strict=True)))

    def _spread(self, counted: Any, asked: Callable[[Any, Any], Floats]) -> Floats:
        """What each period says of its groups, in the order of all groups."""
        groups = len(self.people(counted))
        place = counted.codes(self.period).reshape(groups, -1)[:, 0]  # bins of a group follow each other
        whole: Floats | None = None
        for code, method, part in self.parts(counted):
            found, own = asked(method, part), place == _place(counted, self.period, code)
            each = len(found) // max(int(own.sum()), 1)
            whole = np.full(groups * each, np.nan) if whole is None else whole
            whole[np.repeat(own, each)] = found
        return np.empty(0) if whole is None else whole


@dataclass(frozen=True, kw_only=True, repr=False)
class JobsEachPeriod(EachPeriod):
    """The same for counts and totals of jobs at periods of a panel."""

    def people(self, counted: Any) -> Integers:
        """A value for every cell."""
        found: Integers = counted["count"]
        return found


def each_period(
    table: str,
    period: str | None,
    codes: tuple[str, ...],
    epsilons: Mapping[str, Fraction],
    build: Callable[..., Any],
    *,
    kind: type[EachPeriod] = EachPeriod,
) -> Any:
    """The method of a table whose periods spend an ε of their own; `build` makes it for one of them, or for all.

    Where all spend the same it is the method that divides ε evenly: the same question, with the same name.
    """
    if period is None or set(epsilons) != set(codes):
        listed = ", ".join(codes) if period else "none: the table is not by its period"
        raise ReleaseError(
            f"table '{table}', epsilon",
            expected=f"one number, or an epsilon for each of its periods: {listed}",
            found=", ".join(f"{code} = {plain(epsilon)}" for code, epsilon in epsilons.items()),
            do="write epsilon = { "
            + ", ".join(f'"{code}" = …' for code in codes[:3])
            + (", …" if len(codes) > 3 else "")
            + " }"
            if period
            else "write one number, or add the period to `by`",
        )
    if len(set(epsilons.values())) == 1:
        return build(epsilon=sum(epsilons.values(), Fraction(0)), periods=len(epsilons))
    methods = tuple((code, build(epsilon=epsilons[code], periods=1)) for code in sorted(epsilons))
    return kind(period=period, methods=methods)


def _place(counted: Any, period: str, code: str) -> int:
    found: int = next(d for d in counted.dimensions if d.name == period).places[code]
    return found
