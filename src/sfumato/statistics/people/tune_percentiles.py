"""Expected errors of percentiles by the size of a cell and ε, from public bins alone; docs/tune-report.md explains."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log

from sfumato.errors import MethodError, ReleaseError
from sfumato.statistic import Surroundings
from sfumato.statistics.people.percentiles import CURVES, CurveName, NoisyQuantiles, PlannedCurve, recommended
from sfumato.statistics.people.statistic import People

PEOPLE = (30, 50, 100, 300, 1_000, 3_000)
EPSILONS = tuple(map(Fraction, ("0.5", "1", "1.5", "3")))


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Every curve for cells of one size at one ε, from the least expected error to the largest."""

    people: int
    epsilon: Fraction
    """Of a cell: what a period has."""
    plans: tuple[PlannedCurve, ...]

    @property
    def best(self) -> PlannedCurve:
        """The curve with the least error."""
        return self.plans[0]

    def error(self, curve: CurveName) -> float:
        """The error of one curve."""
        return next(plan.error for plan in self.plans if plan.curve == curve)


@dataclass(frozen=True, kw_only=True)
class TunedPercentiles:
    """All sizes and ε that were asked for, and the table they are about."""

    table: str
    method: NoisyQuantiles
    options: dict[str, object]
    expected: tuple[Expected, ...]

    @property
    def period_epsilon(self) -> Fraction:
        """What the release file gives a cell."""
        return self.method.epsilon / self.method.periods

    @property
    def recommended(self) -> CurveName:
        """The curve with the least error over all sizes, in proportion, at the ε nearest to the release file's."""
        nearest = min({line.epsilon for line in self.expected}, key=lambda e: abs(log(e / self.period_epsilon)))
        lines = [line for line in self.expected if line.epsilon == nearest]
        return min(CURVES, key=lambda curve: sum(log(line.error(curve)) for line in lines))


def tune_percentiles(
    plan: Surroundings, name: str | None = None, *, people: Sequence[int] = PEOPLE, epsilons: Sequence[Fraction] = ()
) -> TunedPercentiles:
    """What every curve promises for cells of these sizes at each ε a cell; no data are read.

    Without `epsilons` they are some usual ones, and that of the release file.
    """
    planned = _planned(plan, name)
    method: NoisyQuantiles = planned.method
    asked = tuple(epsilons) or tuple(sorted({*EPSILONS, method.epsilon / method.periods}))
    if not people or min(people) < 1 or min(asked) <= 0:
        raise MethodError(
            "percentiles", expected="people and epsilons above 0", found="another number", do="correct the options"
        )
    return TunedPercentiles(
        table=planned.name,
        method=method,
        options=dict(planned.table.protect.options),
        expected=tuple(
            Expected(
                people=size,
                epsilon=epsilon,
                plans=tuple(recommended(bins=method.bins, at=method.at, epsilon=epsilon, size=size)),
            )
            for size in people
            for epsilon in asked
        ),
    )


def _planned(plan: Surroundings, name: str | None) -> People:
    found = [table for table in plan.of_kind(People) if table.table.statistic == "quantiles"]
    if not found:
        raise ReleaseError(
            "[[table]]",
            expected="a table of percentiles: one with `quantiles = { of = …, at = …, bins = … }`",
            found="a release that has no quantiles table",
            do="add one, or tune another part of the release",
        )
    chosen = [table for table in found if name in (None, table.name)]
    if len(chosen) != 1:
        raise ReleaseError(
            "table",
            expected=f"one table of percentiles: {', '.join(table.name for table in found)}",
            found=repr(name) if name else f"{len(found)} of them",
            do="name it with --table",
        )
    return chosen[0]
