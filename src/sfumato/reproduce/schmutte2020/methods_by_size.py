"""MOSE beside two methods with a formal guarantee, by the size of the group, at the same nominal ε."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.methods.mose import Mose
from sfumato.methods.noisy_regression import NoisyRegression
from sfumato.methods.status import HIDDEN
from sfumato.methods.theil_sen import TheilSen
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.schmutte2020.atlas import RANK, Atlas
from sfumato.reproduce.schmutte2020.envelope import SIZES, inside, label
from sfumato.reproduce.schmutte2020.published import EPSILON

METHODS = (Mose.name, NoisyRegression.name, TheilSen.name)
LEAST_SHOWN = 10
"""Theil-Sen withholds groups below this noisy number of people, as noisy regression does."""
MOST_WITHHELD = 0.5
"""A method that withholds more is not recommended."""


@dataclass(frozen=True, kw_only=True)
class ErrorOfMethod:
    """What one method does to groups of one class of sizes."""

    method: str
    size_class: str
    error: float | None
    """The mean absolute error in ranks of what is published; None where nothing is."""
    withheld: float


@dataclass(frozen=True, kw_only=True)
class MethodsBySize:
    """All methods and sizes, means over several draws of their noise."""

    draws: int
    lines: tuple[ErrorOfMethod, ...]
    guesses: Mapping[str, float]
    """By class of sizes, how far off a reader is who takes the mean of all groups for every one."""

    @property
    def size_classes(self) -> list[str]:
        """In the order of their sizes."""
        return list(dict.fromkeys(line.size_class for line in self.lines))

    def of(self, method: str, size_class: str) -> ErrorOfMethod:
        """One of them."""
        return next(line for line in self.lines if (line.method, line.size_class) == (method, size_class))

    def recommended(self, size_class: str) -> str:
        """Of those that publish half of the groups the one with the least error, if it beats the mean of all groups."""
        lines = [self.of(method, size_class) for method in METHODS]
        usable = {x.method: x.error for x in lines if x.error is not None and x.withheld <= MOST_WITHHELD}
        best = min(usable, key=lambda method: usable[method], default="")
        return best if best and usable[best] < self.guesses[size_class] else ""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every figure, with nothing published beside it."""
        for line in self.lines:
            about = {"method": line.method, "size_class": line.size_class, "epsilon": float(EPSILON)}
            yield {
                "quantity": "mean_error",
                **about,
                "published": None,
                "ours": line.error,
                "withheld": line.withheld,
                "keys": self.draws,
            }
        for size_class in self.size_classes:
            yield {
                "quantity": "error_of_the_overall_mean",
                "size_class": size_class,
                "published": None,
                "ours": self.guesses[size_class],
            }
            about = {"size_class": size_class, "epsilon": float(EPSILON)}
            yield {
                "quantity": "recommended_method",
                **about,
                "published": None,
                "ours": self.recommended(size_class) or None,
            }


def compare_methods(atlas: Atlas, *, draws: int, seed: int) -> MethodsBySize:
    """Predict at the 25th and the 75th percentile, everything that is published of a group within ε = 8."""
    own = ("alpha", "at", "low_x", "high_x", "low_y", "high_y", "decimals")
    shared: dict[str, Any] = {name: getattr(atlas.method, name) for name in own} | {"epsilon": EPSILON}
    formal = NoisyRegression(**shared)
    true = formal.true_value(atlas.cells)
    protectors: dict[str, Any] = {
        Mose.name: replace(atlas.method, epsilon=EPSILON, count_epsilon=EPSILON / (len(atlas.method.at) + 1)),
        NoisyRegression.name: formal,
        TheilSen.name: TheilSen(**shared, minimum=LEAST_SHOWN),
    }
    people = np.repeat(atlas.people, len(formal.at))
    usual = float(np.nanmean(true))
    guesses = {
        label(low, high): float(np.nanmean(np.abs(true - usual)[inside(people, low, high)])) / RANK
        for low, high in SIZES
        if inside(people, low, high).any()
    }
    lines = []
    for name, method in protectors.items():
        held: Any = atlas.samples if name == TheilSen.name else atlas.cells
        off, shown = np.zeros(len(true)), np.zeros(len(true))
        for draw in range(draws):
            table = method.protect(held, Repeatable(seed, "schmutte2020", "sizes", name, draw))
            seen = ~np.isin(table["status"], HIDDEN) & ~np.isnan(true)
            off += np.where(seen, np.abs(table["value"] - true), 0.0)
            shown += seen
        for low, high in SIZES:
            group = inside(people, low, high)
            values = float(shown[group].sum())
            if group.any():
                lines.append(
                    ErrorOfMethod(
                        method=name,
                        size_class=label(low, high),
                        error=float(off[group].sum()) / values / RANK if values else None,
                        withheld=1 - values / (draws * int(group.sum())),
                    )
                )
    return MethodsBySize(draws=draws, lines=tuple(lines), guesses=guesses)
