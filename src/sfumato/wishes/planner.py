"""The search for a plan: the least total that meets all wishes, or the least worst error at a fixed total."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property
from math import exp, log

import numpy as np
from scipy.optimize import minimize

from sfumato.agree.expected_errors import AgreementModel, Level
from sfumato.agree.published import USUAL_SIZE
from sfumato.arrays import Floats
from sfumato.errors import SfumatoError
from sfumato.method import PlannedError
from sfumato.release import Release
from sfumato.statistics.published import PublishedTable
from sfumato.wishes.allocation import Allocation, Allotment
from sfumato.wishes.known import MOST_EPSILON, Known, WishedTable, known_tables

_STEP = 1e-3
"""By how much the logarithm of an epsilon is moved to see how errors change."""
_CLOSE = 0.002
_WORTH = 0.99
"""A table is left out if that takes the worst error, or the total, to this share at most: readers lose a table."""
_SURE = 0.9
"""One table of which all others are sums is taken unless more of them take the figure below this share of it."""
_HOPELESS = 1e3
"""An error so far beyond its wish is that of a table which nothing measured tells."""


@dataclass(frozen=True, kw_only=True)
class Planner:
    """The tables of a release as public numbers describe them, ready to be planned for any total.

    >>> planner = Planner.of(sfumato.load("release.toml"), {"jobs_by_place": "10%"})  # doctest: +SKIP
    >>> planner.least().total, planner.at(Fraction(4)).worst  # doctest: +SKIP
    """

    known: Known
    workers: float

    @classmethod
    def of(cls, release: Release, wishes: Mapping[str, str] | None = None, workers: float = USUAL_SIZE) -> "Planner":
        """Look at a release file and its register; `wishes` come before those of the file.

        `workers` is what an establishment has on average: it turns establishments into jobs, for wishes in percent.
        """
        return cls(known=known_tables(release, wishes or {}, workers), workers=workers)

    @cached_property
    def tables(self) -> tuple[WishedTable, ...]:
        """All tables that take part."""
        return tuple(one for _, tables in self.known.families for one in tables)

    @cached_property
    def movable(self) -> tuple[int, ...]:
        """The tables whose epsilon is looked for."""
        return tuple(at for at, one in enumerate(self.tables) if one.wish is not None)

    def least(self) -> Allocation:
        """The least total that meets every wish."""
        return self._allocation(self._searched(None), None)

    def at(self, total: Fraction) -> Allocation:
        """The least worst error over its wish, at a total that all tables of the release may cost."""
        if total <= self.known.kept:
            raise SfumatoError(
                "epsilon",
                expected=f"more than the {float(self.known.kept):g} that tables without a wish cost",
                found=f"{float(total):g}",
                do="give more, or wish something of these tables",
            )
        return self._allocation(self._searched(float(total) - self.known.kept), total)

    def curve(self, totals: Sequence[Fraction]) -> list[Allocation]:
        """The plans at some totals; those that are too small for any table are left out."""
        found = []
        for total in totals:
            try:
                found.append(self.at(total))
            except SfumatoError:
                continue
        return found

    def errors(self, epsilons: Floats) -> Floats:
        """The errors of all tables after they agree, each as its wish is stated."""
        found: list[Floats] = []
        left = iter(epsilons)
        for seen, tables in self.known.families:
            planned = [one.at(next(left)) for one in tables]
            units = np.array([one.unit for one in tables])
            known = any(planned)
            found.append(seen.errors(planned, [one.meant for one in tables]) / units if known else np.inf / units)
        return np.concatenate(found)

    def worst(self, epsilons: Floats) -> float:
        """The largest error over its wish."""
        return float(np.exp(self._beyond(epsilons).max()))

    def _beyond(self, epsilons: Floats) -> Floats:
        """By how much each error is beyond its wish, in logarithms."""
        errors: Floats = np.log(self.errors(epsilons)[list(self.movable)])
        return errors - np.log([self._limit(at) for at in self.movable])

    def _limit(self, at: int) -> float:
        wish = self.tables[at].wish
        assert wish is not None
        return wish.limit

    def _costs(self, chosen: Sequence[int]) -> Floats:
        return np.array([self.tables[at].cost for at in chosen])

    def _scales(self, chosen: Iterable[int]) -> Fraction:
        """What it costs to buy the scales of the chosen tables, of those that buy it."""
        some = [self.tables[at] for at in chosen]
        return sum((Fraction(one.cost) * one.scale for one in some if one.scale), Fraction(0))

    def _with(self, chosen: Sequence[int], values: Floats) -> Floats:
        """The epsilon of all tables: those found of the chosen ones, what the file says of those without a wish."""
        found = np.array([0.0 if at in self.movable else one.written for at, one in enumerate(self.tables)])
        found[list(chosen)] = values
        return found

    # The search: convex in the logarithms but for tables that are not measured at all, which are tried one by one.

    def _searched(self, available: float | None) -> Floats:
        nothing = self._with((), np.empty(0))
        enough = self.worst(nothing)  # by tables without a wish, of which others may be sums
        if available is None and enough <= 1:
            return nothing
        chosen = self._affordable(available)
        best, figure = self._solved(chosen, available)
        left_out = True
        while left_out and len(chosen) > 1:
            left_out = False
            for at in sorted(chosen, key=lambda at: best[at] * self.tables[at].cost):
                others = [other for other in chosen if other != at]
                tried, reached = self._solved(others, available, np.log(np.maximum(best[others], 1e-9)))
                if reached <= _WORTH * figure:
                    chosen, best, figure, left_out = others, tried, reached, True
                    break
        alone = min((self._solved([at], available) for at in self.movable), key=lambda one: one[1])
        if _SURE * alone[1] <= figure:
            best, figure = alone
        if available is not None and np.isfinite(enough) and _SURE * enough <= figure:
            return nothing
        if not np.isfinite(figure):
            raise self._out_of_reach(available)
        return best

    def _affordable(self, available: float | None) -> list[int]:
        """As many tables as the total is enough for, those with many cells first."""
        chosen = sorted(self.movable, key=lambda at: -self.tables[at].cells)
        while available is not None and len(chosen) > 1 and not self._fits(chosen, available):
            chosen.pop()
        return sorted(chosen)

    def _fits(self, chosen: Sequence[int], available: float) -> bool:
        least = sum(self.tables[at].cost * self.tables[at].least for at in chosen)
        return least < 0.9 * (available - float(self._scales(chosen)))

    def _solved(
        self, chosen: Sequence[int], available: float | None, near: Floats | None = None
    ) -> tuple[Floats, float]:
        """The best epsilons of the chosen tables, with the worst error over its wish, or the total that was needed.

        It is looked for from what was found before, where that is given, and from the best starts. What their scales
        cost is taken off what is available, or is in the total.
        """
        nothing = self._with(chosen, np.zeros(len(chosen)))
        scales = float(self._scales(chosen))
        if available is not None and available <= scales:
            return nothing, np.inf
        available = None if available is None else available - scales
        starts = self._starts(chosen, available, near)
        found = [self._improved(chosen, logs, available) for logs in starts[: 4 if near is None else 2]]
        best, figure = min(found, key=lambda one: one[1], default=(nothing, np.inf))
        return best, figure + (scales if available is None else 0.0)

    def _starts(self, chosen: Sequence[int], available: float | None, near: Floats | None) -> list[Floats]:
        """Where to begin, in logarithms: an even split and splits in which one table has most, the best first.

        Agreement goes by weights that are not quite those of the errors, so that there may be several best plans.
        """
        number = len(chosen)
        costs = np.array([self.tables[at].cost for at in chosen])
        least = np.log([self.tables[at].least for at in chosen])
        shares = [np.full(number, 1 / number)]
        for most in np.eye(number) if number > 1 else ():
            shares += [most * (1 - share) + (1 - most) * share / (number - 1) for share in (0.1, 0.2, 0.4)]
        splits = [*np.log(np.array(shares) / costs), *([] if near is None else [near - log(costs @ np.exp(near))])]
        tried = []
        for split in splits:
            if available is not None:
                logs = self._scaled(chosen, split, log(available))
                logs += log(available) - log(float(costs @ np.exp(logs)))
                tried.append((self._worst(chosen, logs), logs))
            elif (met := self._met(chosen, split)) is not None:
                tried.append((float(costs @ np.exp(met)), met))
        tried = [one for one in tried if one[0] < _HOPELESS and (one[1] >= least).all()]
        return [logs for _, logs in sorted(tried, key=lambda one: one[0])]

    def _improved(self, chosen: Sequence[int], begin: Floats, available: float | None) -> tuple[Floats, float]:
        """Epsilons of the chosen tables that no small change makes better."""
        costs = np.array([self.tables[at].cost for at in chosen])
        least = np.log([self.tables[at].least for at in chosen])

        def spent(logs: Floats) -> float:
            return log(float(costs @ np.exp(logs)))

        # The last variable is the worst error over its wish: made least at a fixed total, or held at 1.
        constraints = [{"type": "ineq", "fun": lambda z: z[-1] - self._beyond(self._with(chosen, np.exp(z[:-1])))}]
        if available is not None:
            constraints.append({"type": "ineq", "fun": lambda z: log(available) - spent(z[:-1])})
        found = minimize(
            (lambda z: spent(z[:-1])) if available is None else (lambda z: z[-1]),
            np.append(begin, 0.0 if available is None else log(self._worst(chosen, begin))),
            method="SLSQP",
            constraints=constraints,
            bounds=[*((low, log(MOST_EPSILON)) for low in least), (0.0, 0.0) if available is None else (-20.0, 20.0)],
            options={"ftol": 1e-5, "maxiter": 40, "eps": _STEP},
        )
        logs = np.maximum(found.x[:-1], least)
        if available is not None:
            logs = logs + log(available) - spent(logs)
            figures = {self._worst(chosen, one): one for one in (begin, logs) if (one >= least - _CLOSE).all()}
            return self._with(chosen, np.exp(figures[min(figures)])), min(figures)
        met = self._met(chosen, logs - spent(logs))
        logs = begin if met is None or spent(met) > spent(begin) else met
        return self._with(chosen, np.exp(logs)), exp(spent(logs))

    def _worst(self, chosen: Sequence[int], logs: Floats) -> float:
        return self.worst(self._with(chosen, np.exp(logs)))

    def _scaled(self, chosen: Sequence[int], split: Floats, total: float) -> Floats:
        """A split of 1 as one of a total, all in logarithms: no table has less than its method can do with."""
        least = np.log([self.tables[at].least for at in chosen])
        logs: Floats = np.maximum(split + total, least + _CLOSE)
        return logs

    def _met(self, chosen: Sequence[int], split: Floats) -> Floats | None:
        """The least epsilons in the ratio of a split that meet all wishes; None where none do."""
        low = high = log(min(self.tables[at].least for at in chosen))
        while self._worst(chosen, self._scaled(chosen, split, high)) > 1:
            low, high = high, high + 1
            if high > log(MOST_EPSILON):
                return None
        while high - low > _CLOSE:
            middle = (low + high) / 2
            met = self._worst(chosen, self._scaled(chosen, split, middle)) <= 1
            low, high = (low, middle) if met else (middle, high)
        return self._scaled(chosen, split, high)

    def _out_of_reach(self, available: float | None) -> SfumatoError:
        if available is None:
            errors = self.errors(self._with(self.movable, np.full(len(self.movable), float(MOST_EPSILON))))
            hardest = max(self.movable, key=lambda at: errors[at] / self._limit(at))
            return SfumatoError(
                f"table '{self.tables[hardest].name}', wish",
                expected=f"an error that epsilons up to {MOST_EPSILON:,} can give",
                found=str(self.tables[hardest].wish),
                do="wish for less, or choose a method with less noise",
            )
        return SfumatoError(
            "epsilon",
            expected="enough for a table from which all others can be added up",
            found=f"{available:g} for all tables with a wish",
            do="give more, or choose a method that exists at a smaller epsilon",
        )

    # What is said of what was found.

    def _allocation(self, epsilons: Floats, total: Fraction | None) -> Allocation:
        exact = self._rounded(epsilons, total)
        values = np.array([float(epsilon) for epsilon in exact])
        errors = self.errors(values)
        bought = self._scales(at for at in self.movable if exact[at])
        measured = [one.statistic for one, epsilon in zip(self.tables, exact, strict=True) if epsilon]
        costs = (Fraction(one.cost) * epsilon for one, epsilon in zip(self.tables, exact, strict=True) if one.wish)
        found = []
        for at, (one, epsilon) in enumerate(zip(self.tables, exact, strict=True)):
            seen, span = self._place(at)
            planned = one.at(float(epsilon))
            level = seen.levels[span]
            alone = None if planned is None else _alone(level, one, planned, self.workers)
            found.append(
                Allotment(
                    name=one.name,
                    wish=one.wish,
                    cells=one.cells,
                    epsilon=epsilon,
                    alone=alone,
                    agreed=float(errors[at]),
                    sum_of="" if epsilon else _finer(one.statistic, measured),
                    scale=one.scale if epsilon else Fraction(0),
                )
            )
        spent = (sum(costs, Fraction(0)) + bought + Fraction(self.known.kept)).limit_denominator(10**6)
        return Allocation(
            tables=tuple(found),
            total=spent,
            budget=self.known.budget,
            others=dict(self._others(float(spent) - self.known.kept)),
            register=self.known.register,
            workers=self.workers,
        )

    def _place(self, at: int) -> tuple[AgreementModel, int]:
        for seen, tables in self.known.families:
            if at < len(tables):
                return seen, at
            at -= len(tables)
        raise IndexError(at)

    def _others(self, available: float) -> Iterator[tuple[str, float]]:
        """Other ways to spend as much on the tables with a wish: each by the worst error over its wish."""
        costs = self._costs(self.movable)
        shared = available - float(self._scales(self.movable))
        written = np.array([self.tables[at].written for at in self.movable])
        splits = {
            "as in the file, scaled": written * shared / float((costs * written).sum()),
            "an even split": shared / len(self.movable) / costs,
        }
        for words, split in splits.items():
            if all(self.tables[at].at(value) is not None for at, value in zip(self.movable, split, strict=True)):
                yield words, self.worst(self._with(self.movable, split))
        finest = max(self.movable, key=lambda at: self.tables[at].cells)
        alone = available - float(self._scales([finest]))
        if len(self.movable) > 1 and self.tables[finest].at(alone) is not None:
            worst = self.worst(self._with([finest], np.array([alone / self.tables[finest].cost])))
            if worst < _HOPELESS:
                yield f"only {self.tables[finest].name}", worst

    def _rounded(self, epsilons: Floats, total: Fraction | None) -> list[Fraction]:
        """Epsilons of three digits: no more than the total in all, which the largest fills; or no less than found."""
        exact = [
            _digits(value, ROUND_CEILING if total is None else ROUND_FLOOR)
            if at in self.movable
            else Fraction(self.tables[at].statistic.table.protect.epsilon or 0)
            for at, value in enumerate(epsilons)
        ]
        if total is not None and any(exact[at] for at in self.movable):
            largest = max(self.movable, key=lambda at: exact[at])
            rest = sum(Fraction(self.tables[at].cost) * exact[at] for at in self.movable if at != largest)
            rest += self._scales(at for at in self.movable if exact[at])
            left = (total - Fraction(self.known.kept) - rest) / Fraction(self.tables[largest].cost)
            exact[largest] = _digits(float(left), ROUND_FLOOR, 6)
        return exact


def _alone(level: Level, table: WishedTable, planned: PlannedError, workers: float) -> float:
    """The mean error of a table before it is made to agree."""
    squares, _ = level.squares(planned, workers)
    return float(level.shares(table.meant) @ np.sqrt(squares)) / table.unit


def _digits(value: float, rounding: str, digits: int = 3) -> Fraction:
    return Fraction(Context(prec=digits, rounding=rounding).create_decimal(Decimal(f"{value:.9g}")))


def _finer(table: PublishedTable, measured: Sequence[PublishedTable]) -> str:
    """The measured table with the fewest cells that has all dimensions of a table, and counts the same jobs."""
    names = {dimension.name for dimension in table.by}
    able = [one for one in measured if names <= {d.name for d in one.by} and one.where == table.where]
    return min(able, key=lambda one: one.cells).name if able else ""
