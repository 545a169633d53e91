"""A synthetic Opportunity Atlas: its groups, the envelope of MOSE, and who is in the tails."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.checking import checked
from sfumato.errors import DataError
from sfumato.method import HIDDEN
from sfumato.noise.randomness import Repeatable
from sfumato.release import load
from sfumato.statistics.people.envelope import Envelope, class_names
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.noisy_regression import LineSums, NoisyRegression
from sfumato.statistics.people.sensitivity import GlobalSensitivity, LocalSensitivity
from sfumato.statistics.people.small_samples import Samples
from sfumato.statistics.people.tails import TAIL, Classified, Tails
from sfumato.statistics.people.theil_sen import TheilSen
from sfumato.statistics.registry import needs
from sfumato_lab.economy.files import RELEASE

# What was published about statistics from small samples: figures to print beside ours, never results.
#
# Source: I. M. Schmutte, "Formal Privacy in Census Data", NBER Methods Lecture, 17 July 2020. It prints few numbers:
# its figures are formulas and statements, and what it cites of Chetty and Friedman (2019) and of the earnings of
# graduates.

EPSILON = Fraction(8)
"""Of every estimate in the Opportunity Atlas."""
SECTORS, MOST_YEARS, CHI_VALUES = 3, 10, 9
"""Of employee reports: sectors of employment, years since leaving, and values of χ, one for each title and sector."""

LEAST_IMPROVEMENT = 0.15
"""Aims, not of the paper: how much better than the plain cumulative sum the improved curve is to be, on average."""
MOST_MEDIAN_ERROR = 0.05
"""And how far a median of a hundred graduates or more may be off."""
EPSILON_OF_A_CELL = Fraction(3, 2)
"""At which percentiles are compared."""


# The groups of a synthetic Opportunity Atlas, tabulated once: children by tract, race and gender.

RANK = 100.0
"""Ranks are stored in hundredths."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Atlas:
    """Sums and values of every group: confidential if the children were real."""

    method: Mose
    """As the release file describes it."""
    cells: Cells
    samples: Samples
    classes: tuple[str, ...]
    """The calibration classes by their number, such as `GA, F, black`."""

    @property
    def people(self) -> Integers:
        """The children of every group."""
        return self.cells["count"]

    @property
    def children(self) -> int:
        """All of them."""
        return int(self.people.sum())

    def chosen(self, groups: NDArray[np.bool_]) -> Cells:
        """The cells of some groups."""
        columns = {name: column[groups] for name, column in self.cells.columns.items()}
        return replace(self.cells, positions=self.cells.positions[groups], columns=columns)


def read_atlas(folder: Path) -> Atlas:
    """Tabulate the children of a folder that `sfumato economy opportunity` wrote."""
    with checked(load(folder / RELEASE)) as ready:
        table: Any = ready.plan.tables[0]
        question, method = table.question, table.method
        if method.name != Mose.name or not method.at:
            raise DataError(
                f"data {folder}",
                expected="children as `sfumato economy opportunity` writes them",
                found="another kind of data",
                do="name another folder with --data, or leave --data out",
            )
        by_value = replace(table, question=replace(question, needs=needs(TheilSen.name)))
        cells, samples = (ready.count({table.name: asked})[table.name] for asked in (table, by_value))
    return Atlas(method=method, cells=cells, samples=samples, classes=class_names(question))


# The envelope of MOSE: the sensitivity of every group against its people, under the line χ/n of its class.

AT = Fraction(2_500)
"""Predictions are compared at the 25th percentile of parents."""
SIZES = ((3, 9), (10, 19), (20, 49), (50, 99), (100, 199), (200, None))
"""Classes of groups by their people."""


def label(low: int, high: int | None) -> str:
    """The name of a class of sizes."""
    return f"{low:,}+" if high is None else f"{low:,}-{high:,}"


def inside(people: Integers, low: int, high: int | None) -> NDArray[np.bool_]:
    """Whether groups are in a class of sizes."""
    return (people >= low) & (people <= (high or people.max(initial=0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class AtlasEnvelope(Envelope):
    """The envelope in ranks, beside what the example code of MOSE looks at."""

    corners: Floats
    """The largest change that one of the four corners of the box makes."""

    @property
    def missed_by_corners(self) -> NDArray[np.bool_]:
        """Groups in which no corner is the worst record."""
        return self.corners < self.sensitivity * (1 - 1e-9)

    def shortfall(self) -> float:
        """By how much χ would be too small in the worst class if only corners were looked at, as a share."""
        of_corners = self.people * self.corners
        return max(1 - self.observed(number, of_corners) / self.observed(number) for number in self.chi)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every figure, with nothing published beside it."""
        for number, chi in self.chi.items():
            about = {"class": self.names[number], "groups": int((self.classes == number).sum()), "published": None}
            yield {"quantity": "chi", **about, "ours": self.observed(number), "rounded": chi}
        for number in self.largest_classes():
            for low, high in SIZES:
                own = np.flatnonzero((self.classes == number) & inside(self.people, low, high))
                if len(own):
                    worst = own[self.products[own].argmax()]
                    yield {
                        "quantity": "sensitivity",
                        "class": self.names[number],
                        "size_class": label(low, high),
                        "people": int(self.people[worst]),
                        "published": None,
                        "ours": float(self.sensitivity[worst]),
                        "line": float(self.line[worst]),
                    }
        yield {"quantity": "largest_share_of_envelope", "published": None, "ours": self.largest_share}
        for low, high in SIZES:
            group = inside(self.people, low, high)
            if group.any():
                about = {"size_class": label(low, high), "groups": int(group.sum()), "published": None}
                yield {"quantity": "missed_by_corners", **about, "ours": float(self.missed_by_corners[group].mean())}
        yield {"quantity": "chi_missed_by_corners", "published": None, "ours": self.shortfall()}


def envelope(atlas: Atlas) -> AtlasEnvelope:
    """Sensitivities of all groups that the release would publish."""
    method = replace(atlas.method, at=(AT,))
    (found,) = method.estimates(atlas.cells)
    taken = found.status == 0
    return AtlasEnvelope(
        people=atlas.people[taken],
        classes=atlas.cells["class"][taken],
        names=atlas.classes,
        sensitivity=found.sensitivity[taken] / RANK,
        corners=corner_sensitivity(method, atlas.chosen(taken)) / RANK,
        chi={number: float(chi) / RANK for number, chi in found.chi.items()},
    )


def corner_sensitivity(method: Mose, cells: Cells) -> Floats:
    """The largest change of the prediction by one more record at a corner of the box, by fitting the line again."""
    rank = method.at[0]
    before = np.clip(LineSums.of(cells).prediction(rank), method.low_y, method.high_y)
    worst = np.zeros(len(cells))
    for x in (method.low_x, method.high_x):
        for y in (method.low_y, method.high_y):
            added = {"count": 1, "sum_x": x, "sum_y": y, "sum_xx": x * x, "sum_xy": x * y}
            more = replace(cells, columns={name: cells[name] + amount for name, amount in added.items()})
            after = np.clip(LineSums.of(more).prediction(rank), method.low_y, method.high_y)
            worst = np.maximum(worst, np.abs(after - before))
    return worst


def chance_beyond(people: int, *, epsilon: float, excess: float) -> float:
    """How often the noise betrays more than (1 + excess)·ε about one more person, given χ and a person at its bound.

    One more person makes the scale smaller by n/(n+1), which grows without limit in the tails;
    docs/methods/small-samples.md derives it.
    """
    away = people * (excess * epsilon + np.log1p(1 / people)) - epsilon
    return float(np.exp(-max(away, 0.0)) / 2)


# Who is in the tails: how many groups with the lowest and highest predictions are found in what is published.

LEAST = 10
"""Groups of fewer children have no line worth naming."""
THRESHOLDS = (20, 50, 100)
"""Rules of suppression hide all groups with fewer children."""
COUNT_EPSILON = Fraction(1)
"""What MOSE spends besides on the number of children of a group."""
MOSE, REGRESSION = Mose.name, NoisyRegression.name
GLOBAL, LOCAL = GlobalSensitivity.name, LocalSensitivity.name


@dataclass(frozen=True, kw_only=True)
class AtlasTails:
    """Every way to publish, on the same groups."""

    groups: int
    draws: int
    classified: tuple[Classified, ...]

    def of(self, protection: str) -> Classified:
        """One of them by its name."""
        return next(line for line in self.classified if line.protection == protection)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every figure; the paper calls suppression far worse, and prints none."""
        for line in self.classified:
            for quantity in ("tail_found", "tail_right", "groups_published"):
                name = quantity.removeprefix("tail_").removeprefix("groups_")
                about = {"protection": line.protection, "epsilon": float(EPSILON), "keys": self.draws}
                yield {"quantity": quantity, **about, "published": None, "ours": getattr(line, name)}


def classify_tails(atlas: Atlas, *, draws: int, seed: int) -> AtlasTails:
    """Publish predictions at the 25th percentile at ε = 8, and compare with hiding small groups and adding no noise.

    Limits of the tails are those of the true predictions of all groups, and readers are taken to know them.
    """
    cells = atlas.chosen(atlas.people >= LEAST)
    shared: dict[str, Any] = {"at": (AT,), "minimum": LEAST}
    mose = replace(atlas.method, epsilon=EPSILON + COUNT_EPSILON, count_epsilon=COUNT_EPSILON, **shared)
    bounds = {name: getattr(mose, name) for name in ("low_x", "high_x", "low_y", "high_y", "decimals")}
    own: dict[str, Any] = {"alpha": mose.alpha, **shared, **bounds}
    counted: dict[str, Any] = {**own, "epsilon": mose.epsilon, "count_epsilon": COUNT_EPSILON}
    methods: dict[str, Any] = {
        MOSE: mose,
        REGRESSION: NoisyRegression(**own, epsilon=EPSILON),
        GLOBAL: GlobalSensitivity(**counted),
        LOCAL: LocalSensitivity(**counted, accept_leak=True),
    }
    true = mose.true_value(cells)
    defined = ~np.isnan(true)
    cells, true = _kept(cells, defined), true[defined]
    tails = Tails(true=true[:, None], people=cells["count"], share=TAIL, least=LEAST)
    lines = []
    for name, method in methods.items():
        drawn = [method.protect(cells, Repeatable(seed, "schmutte2020", name, draw)) for draw in range(draws)]
        seen = [tails.classified(name, t["value"][:, None], ~np.isin(t["status"], HIDDEN)[:, None]) for t in drawn]
        lines.append(Classified.mean(seen))
    lines += map(tails.suppressed, THRESHOLDS)
    return AtlasTails(groups=len(true), draws=draws, classified=tuple(lines))


def _kept(cells: Cells, groups: Flags) -> Cells:
    columns = {name: column[groups] for name, column in cells.columns.items()}
    return replace(cells, positions=cells.positions[groups], columns=columns)
