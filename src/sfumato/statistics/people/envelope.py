"""The envelope of MOSE: the sensitivity of every group against its people, under the line χ/n of its class."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.privacy.guarantee import plain

if TYPE_CHECKING:
    from sfumato.statistics.people.statistic import People

DRAWN = 4
"""Classes with the most groups that are drawn."""
_MOST_POINTS = 1_500


@dataclass(frozen=True, kw_only=True, eq=False)
class Envelope:
    """Groups that are published with their sensitivities, and χ of their classes: confidential.

    Sensitivities are in the unit of the measure, χ in that times people.
    """

    people: Integers
    classes: Integers
    names: tuple[str, ...]
    """The classes by their number; a class −1, of a χ that was set, has none."""
    sensitivity: Floats
    chi: dict[int, float]
    """As it is used: the observed one, rounded up, or the one that was set."""
    heaviest: int = 1
    """With weights, `people` is what they weigh in steps, and the largest weight has so many."""

    @property
    def products(self) -> Floats:
        """People times sensitivity."""
        return self.people / self.heaviest * self.sensitivity

    @property
    def line(self) -> Floats:
        """χ/n of every group."""
        return np.array([self.chi[int(number)] for number in self.classes]) * self.heaviest / self.people

    @property
    def largest_share(self) -> float:
        """How near to its line the nearest group comes."""
        return float((self.sensitivity / self.line).max(initial=0.0))

    def observed(self, number: int, products: Floats | None = None) -> float:
        """χ of a class before it is rounded up."""
        return float((self.products if products is None else products)[self.classes == number].max())

    def largest_classes(self) -> list[int]:
        """Those with the most groups."""
        numbers, groups = np.unique(self.classes, return_counts=True)
        return [int(number) for number in numbers[np.argsort(-groups, kind="stable")][:DRAWN]]

    def name(self, number: int) -> str:
        """The name of a class."""
        return self.names[number] if number >= 0 and self.names[number] else "all groups"

    def data(self) -> dict[str, Any]:
        """What is found of every class, for machines."""
        return {
            "largest_share": self.largest_share,
            "classes": [
                {
                    "class": self.name(number),
                    "groups": int((self.classes == number).sum()),
                    "observed": self.observed(number),
                    "used": self.chi[number],
                }
                for number in self.chi
                if (self.classes == number).any()
            ],
        }


def class_names(question: Any) -> tuple[str, ...]:
    """The calibration classes by their number, such as `GA, F, black`."""
    codes = [dimension.codes for dimension in question.classes]
    shape = tuple(map(len, codes))
    places = (np.unravel_index(number, shape) if shape else () for number in range(prod(shape)))
    return tuple(", ".join(of[at] for of, at in zip(codes, place, strict=True)) for place in places)


def envelopes(planned: "People", counted: Any) -> Iterator[tuple[str, Envelope]]:
    """The envelope of every statistic of a table whose noise is scaled to what is observed; none of other tables."""
    method = planned.method
    if not getattr(method, "observes", False):
        return
    places = [plain(rank) for rank in method.at] or ["mean"]
    for period, of_period, part in method.parts(counted):
        for place, found in zip(places, of_period.estimates(part), strict=True):
            taken = found.status == 0
            if taken.any():
                yield (
                    ", ".join(filter(None, (place, period))),
                    Envelope(
                        people=part["count"][taken],
                        heaviest=of_period.heaviest,
                        classes=np.full(int(taken.sum()), -1) if method.chi else part["class"][taken],
                        names=class_names(planned.question),
                        sensitivity=found.sensitivity[taken],
                        chi={number: float(chi) for number, chi in found.chi.items()},
                    ),
                )


def envelope_chart(edge: Envelope, *, of: str, unit: str, title: str = "") -> str:
    """Sensitivity against people, and χ/n, one panel for each of the classes with the most groups."""
    x, y = Axis(title=of, kind="log"), Axis(title=unit, kind="log")
    panels = []
    for number in edge.largest_classes():
        own = np.flatnonzero(edge.classes == number)[:_MOST_POINTS]
        order = own[np.argsort(edge.people[own], kind="stable")]
        marks = [
            Mark(kind="points", x=edge.people[own], y=edge.sensitivity[own], series=0),
            Mark(kind="line", x=edge.people[order], y=edge.line[order], series=1, dash=""),
        ]
        panels.append(Panel(x, y, marks, edge.name(number)))
    title = title or "Local sensitivity of every group, and χ/n of its class"
    return draw_panels(panels, title=title, series=("a group", "χ/n of the class"), columns=2, size=(300, 210))
