"""Who is in the tails: which groups with the lowest and the highest values are found in what is published."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats, Integers
from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.errors import MethodError
from sfumato.measures.formulas import Bounds, size_classes, size_label
from sfumato.method import HIDDEN
from sfumato.noise.randomness import Repeatable
from sfumato.privacy.guarantee import plain

if TYPE_CHECKING:
    from sfumato.statistics.people.statistic import People

TAIL = 0.1
"""The bottom and the top tenth."""
LEAST = 10
"""Groups of fewer people have no value worth naming, and would fill the tails with chance."""
SIZES: Bounds = ((0, 9), (10, 19), (20, 49), (50, 99), (100, 299), (300, None))
"""Classes of groups by their people."""
THRESHOLDS = (20, 50, 100)
"""Rules of suppression hide all groups with fewer people, and publish the others as they are."""
FACTORS = tuple(Fraction(2) ** power for power in range(-3, 4))
"""Times the ε of the release, at which tails are looked at besides."""
_ENOUGH = 20
"""With fewer groups a tenth of them says nothing."""


@dataclass(frozen=True, kw_only=True)
class Classified:
    """How well one way to publish tells who is in a tail."""

    protection: str
    found: float
    """The share of the groups in a tail that are published beyond its limit."""
    right: float
    """The share of the groups published beyond a limit that are in that tail."""
    published: float
    """The share of all groups of which a value is published."""
    by_size: tuple[float | None, ...] = ()
    """`found` by the people of the group, in the classes of `SIZES`; None where no group of the size is in a tail."""

    @classmethod
    def mean(cls, lines: Sequence["Classified"]) -> "Classified":
        """The mean of several draws."""
        sizes = zip(*(line.by_size for line in lines), strict=True)
        return cls(
            protection=lines[0].protection,
            by_size=tuple(None if some[0] is None else float(np.mean(some)) for some in sizes),
            **{name: float(np.mean([getattr(line, name) for line in lines])) for name in _SHARES},
        )


_SHARES = ("found", "right", "published")


@dataclass(frozen=True, kw_only=True, eq=False)
class Tails:
    """True values of groups, a column for each statistic, and where the two tails of each begin: confidential.

    Limits are those of the true values of all groups that take part, and readers are taken to know them.

    >>> tails = Tails(true=np.arange(100.0)[:, None], people=np.full(100, 30))
    >>> tails.classified("exactly", tails.true, np.ones((100, 1), dtype=bool)).found
    1.0
    """

    true: Floats
    """NaN where a group has none."""
    people: Integers
    share: float = TAIL
    least: int = LEAST

    @classmethod
    def of(cls, planned: "People", counted: Any, *, share: float = TAIL, least: int = LEAST) -> "Tails | None":
        """The tails of a table of predictions or means; None where there are too few groups."""
        method = planned.method
        true = method.true_estimates(counted).reshape(-1, method.statistics)
        found = cls(true=true, people=method.people(counted), share=share, least=least)
        return found if found.groups >= _ENOUGH else None

    @cached_property
    def taken(self) -> Flags:
        """Which values take part."""
        return ~np.isnan(self.true) & (self.people >= self.least)[:, None]

    @property
    def groups(self) -> int:
        """How many groups take part."""
        return int(self.taken.any(axis=1).sum())

    @cached_property
    def limits(self) -> Floats:
        """Where the bottom tail ends and the top one begins, of every statistic."""
        part = np.where(self.taken, self.true, np.nan)
        found: Floats = np.nanquantile(part, [self.share, 1 - self.share], axis=0)
        return found

    def _beyond(self, value: NDArray[Any], seen: Flags) -> Flags:
        """Which values are in each of the two tails."""
        low, high = self.limits
        with np.errstate(invalid="ignore"):
            beyond: Flags = np.stack([value <= low, value >= high]) & (seen & self.taken)
        return beyond

    def classified(self, protection: str, value: NDArray[Any], seen: Flags) -> Classified:
        """What readers find who take published values, in the unit of the measure, for the true ones."""
        inside, named = self._beyond(self.true, self.taken), self._beyond(value, seen)
        both = inside & named
        places = size_classes(self.people, SIZES)
        sizes = [(both[:, places == at].sum(), inside[:, places == at].sum()) for at in range(len(SIZES))]
        return Classified(
            protection=protection,
            found=float(both.sum()) / max(float(inside.sum()), 1.0),
            right=float(both.sum()) / max(float(named.sum()), 1.0),
            published=float((seen & self.taken).sum()) / max(float(self.taken.sum()), 1.0),
            by_size=tuple(float(some / whole) if whole else None for some, whole in sizes),
        )

    def suppressed(self, least: int) -> Classified:
        """What is left of the tails where groups of fewer people are hidden, and the others published exactly."""
        seen = np.broadcast_to((self.people >= least)[:, None], self.true.shape)
        return self.classified(suppressed(least), self.true, seen)

    def answered(self, planned: "People", answer: Any, protection: str) -> Classified:
        """What is found in a protected table, without the values that are withheld."""
        shown = planned.shown_estimates(answer)
        value = shown["value"].reshape(self.true.shape) / 10**planned.table.decimals
        return self.classified(protection, value, ~np.isin(shown["status"], HIDDEN).reshape(self.true.shape))

    def drawn(self, planned: "People", counted: Any, method: Any, *, draws: int = 1) -> Classified:
        """What would be found if the table had this method, by drawing its noise anew."""
        name = f"epsilon = {plain(method.epsilon)}"
        lines = [
            self.answered(planned, method.protect(counted, Repeatable(1, "tails", draw)), name) for draw in range(draws)
        ]
        return Classified.mean(lines)


def suppressed(least: int) -> str:
    """The name of a rule of suppression."""
    return f"suppress below {least}"


@dataclass(frozen=True, kw_only=True)
class TailsFound:
    """The tails of one table: as it is published, with other ε, and where small groups are hidden instead."""

    groups: int
    share: float
    least: int
    published: Classified
    suppression: tuple[Classified, ...]
    by_epsilon: tuple[tuple[Fraction, Classified], ...]

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        lines = [*(("published", line) for line in (self.published,)), *(("rule", line) for line in self.suppression)]
        return {
            "groups": self.groups,
            "tail": self.share,
            "least": self.least,
            "classified": [{"by": by, **_data(line)} for by, line in lines],
            "by_epsilon": [{"epsilon": float(epsilon), **_data(line)} for epsilon, line in self.by_epsilon],
        }


def _data(line: Classified) -> dict[str, Any]:
    sizes = {size_label(at, SIZES): found for at, found in enumerate(line.by_size) if found is not None}
    return {"protection": line.protection, **{name: getattr(line, name) for name in _SHARES}, "found_by_size": sizes}


def assess_tails(planned: "People", counted: Any, answer: Any) -> TailsFound | None:
    """The tails of a table of predictions or means; None for other tables, and where there are too few groups."""
    if planned.table.statistic not in ("predict", "mean"):
        return None
    tails = Tails.of(planned, counted)
    if tails is None:
        return None
    return TailsFound(
        groups=tails.groups,
        share=tails.share,
        least=tails.least,
        published=tails.answered(planned, answer, f"{planned.method.name}, as published"),
        suppression=tuple(map(tails.suppressed, THRESHOLDS)),
        by_epsilon=tuple(_by_epsilon(tails, planned, counted)),
    )


def _by_epsilon(tails: Tails, planned: "People", counted: Any) -> Iterable[tuple[Fraction, Classified]]:
    for factor in FACTORS:
        try:
            line = tails.drawn(planned, counted, planned.method.spending(factor))
        except MethodError:  # at some ε the method does not exist
            continue
        yield planned.method.epsilon * factor, line


def tails_chart(found: TailsFound) -> str:
    """The share of the groups in a tail that are found, against ε, by the people of the group."""
    epsilons = [float(epsilon) for epsilon, _ in found.by_epsilon]
    sizes = [at for at in range(len(SIZES)) if any(line.by_size[at] is not None for _, line in found.by_epsilon)]
    marks = [
        Mark(kind="line", x=epsilons, y=[_percent(line.by_size[at]) for _, line in found.by_epsilon], series=series)
        for series, at in enumerate(sizes)
    ]
    panel = Panel(
        Axis(title="epsilon of the table", kind="log", ticks=epsilons, text=lambda value: f"{value:g}"),
        Axis(title="found, % of the groups in a tail", holds=(0, 100)),
        marks,
    )
    names = [f"{size_label(at, SIZES)} people" for at in sizes]
    title = f"Groups in the bottom and the top {found.share:.0%} that are found"
    return draw_panels([panel], title=title, series=names, size=(460, 260))


def _percent(share: float | None) -> float:
    return float("nan") if share is None else 100 * share
