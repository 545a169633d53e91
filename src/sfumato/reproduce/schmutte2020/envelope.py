"""The envelope of MOSE: the sensitivity of every group against its people, under the line χ/n of its class."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.methods.mose import Mose
from sfumato.methods.regression import LineSums
from sfumato.reproduce.schmutte2020.atlas import RANK, Atlas

AT = Fraction(2_500)
"""Predictions are compared at the 25th percentile of parents."""
DRAWN = 4
"""Classes with the most groups that are drawn."""
SIZES = ((3, 9), (10, 19), (20, 49), (50, 99), (100, 199), (200, None))
"""Classes of groups by their people."""


def label(low: int, high: int | None) -> str:
    """The name of a class of sizes."""
    return f"{low:,}+" if high is None else f"{low:,}-{high:,}"


def inside(people: Integers, low: int, high: int | None) -> NDArray[np.bool_]:
    """Whether groups are in a class of sizes."""
    return (people >= low) & (people <= (high or people.max(initial=0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Envelope:
    """Groups that are published with their sensitivities, in ranks, and χ of their classes, in ranks × people."""

    people: Integers
    classes: Integers
    names: tuple[str, ...]
    sensitivity: Floats
    corners: Floats
    """The largest change that one of the four corners of the box makes: what the example code looks at."""
    chi: dict[int, float]
    """As it is used: the observed one, rounded up."""

    @property
    def products(self) -> Floats:
        """People times sensitivity."""
        return self.people * self.sensitivity

    @property
    def line(self) -> Floats:
        """χ/n of every group."""
        return np.array([self.chi[int(number)] for number in self.classes]) / self.people

    @property
    def largest_share(self) -> float:
        """How near to its line the nearest group comes."""
        return float((self.sensitivity / self.line).max())

    @property
    def missed_by_corners(self) -> NDArray[np.bool_]:
        """Groups in which no corner is the worst record."""
        return self.corners < self.sensitivity * (1 - 1e-9)

    def observed(self, number: int, products: Floats | None = None) -> float:
        """χ of a class before it is rounded up."""
        return float((self.products if products is None else products)[self.classes == number].max())

    def largest_classes(self) -> list[int]:
        """Those with the most groups."""
        numbers, groups = np.unique(self.classes, return_counts=True)
        return [int(number) for number in numbers[np.argsort(-groups, kind="stable")][:DRAWN]]

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


def envelope(atlas: Atlas) -> Envelope:
    """Sensitivities of all groups that the release would publish."""
    method = replace(atlas.method, at=(AT,))
    (found,) = method.estimates(atlas.cells)
    taken = found.status == 0
    return Envelope(
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
