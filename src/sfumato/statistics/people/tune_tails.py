"""The least ε at which groups in the tails of predictions or means are found, from the true groups."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any

from sfumato.errors import DataError, MethodError
from sfumato.privacy.guarantee import plain
from sfumato.statistics.jobs.tune import LADDER
from sfumato.statistics.people.statistic import People
from sfumato.statistics.people.tails import THRESHOLDS, Classified, Tails
from sfumato.statistics.people.tune import chosen_table
from sfumato.surroundings import Surroundings

_TAIL_VALUES = 5_000
"""Noise is drawn so often that as many values take part, and once at least: shares are then right to a point or two."""
_AROUND = tuple(Fraction(2) ** power for power in range(-3, 3))


@dataclass(frozen=True, kw_only=True)
class TunedTails:
    """The least ε that finds a share of the groups in the tails: confidential, as it is found from the true groups."""

    table: str
    wanted: Fraction
    groups: int
    tail: float
    least: int
    method: Any
    options: dict[str, object]
    """Of the method, as the release file is to state them."""
    at: Classified
    curve: tuple[tuple[Fraction, Classified], ...]
    """Other ε around it."""
    suppression: tuple[Classified, ...]

    @property
    def epsilon(self) -> Fraction:
        """What the table spends."""
        found: Fraction = self.method.epsilon
        return found


def tailed(plan: Surroundings, name: str | None) -> People:
    """The table of predictions or means whose tails are asked about."""
    return chosen_table(plan, name, ("predict", "mean"), "a table of predictions or means")


def tune_tails(planned: People, counted: Any, *, wanted: Fraction, tail: Fraction, least: int) -> TunedTails:
    """The smallest ε of three digits, by drawing the noise of the table over its true groups; nothing is charged."""
    if not (0 < wanted < 1 and 0 < tail < Fraction(1, 2) and least >= 1):
        raise MethodError(
            "tails",
            expected="a share to find above 0 and below 1, a tail above 0 and below 0.5, and one person or more",
            found=f"{plain(wanted)}, {plain(tail)} and {least}",
            do="correct the options: 0.1 is a tenth",
        )
    tails = Tails.of(planned, counted, share=float(tail), least=least)
    if tails is None:
        raise DataError(
            f"table '{planned.name}'",
            expected=f"20 groups or more with a value and at least {least} people",
            found="fewer",
            do="lower --least, or tune another table",
        )

    draws = ceil(_TAIL_VALUES / tails.true.size)

    @cache
    def at(epsilon: Fraction) -> Classified:
        return tails.drawn(planned, counted, _spending(planned.method, epsilon), draws=draws)

    place = bisect_left(LADDER, float(wanted), key=lambda epsilon: _found(at, epsilon))
    if place == len(LADDER):
        raise MethodError(
            f"table '{planned.name}'",
            expected=f"a share that epsilon up to {plain(LADDER[-1])} finds",
            found=plain(wanted),
            do="ask for less, or make larger groups: some are withheld whatever is spent",
        )
    best = LADDER[place]
    method = _spending(planned.method, best)
    around = sorted({*(best * step for step in _AROUND)})
    options = dict(planned.table.protect.options)
    if getattr(method, "count_epsilon", 0):
        options["count_epsilon"] = method.count_epsilon
    return TunedTails(
        table=planned.name,
        wanted=wanted,
        groups=tails.groups,
        tail=float(tail),
        least=least,
        method=method,
        options=options,
        at=at(best),
        curve=tuple((epsilon, at(epsilon)) for epsilon in around if _found(at, epsilon) >= 0),
        suppression=tuple(map(tails.suppressed, THRESHOLDS)),
    )


def _spending(method: Any, epsilon: Fraction) -> Any:
    """The method at another ε, with a share for the number of people that can be written down in three digits."""
    found = method.spending(epsilon / method.epsilon)
    count = getattr(found, "count_epsilon", Fraction(0))
    return replace(found, count_epsilon=Fraction(f"{float(count):.3g}")) if count else found


def _found(at: Callable[[Fraction], Classified], epsilon: Fraction) -> float:
    """The share that is found; below every share where the method does not exist."""
    try:
        return at(epsilon).found
    except MethodError:
        return -1.0
