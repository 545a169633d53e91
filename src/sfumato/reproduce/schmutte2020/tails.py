"""Who is in the tails: how many groups with the lowest and highest predictions are found in what is published."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats
from sfumato.cells import Cells
from sfumato.methods.noisy_regression import NoisyRegression
from sfumato.methods.status import HIDDEN
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.schmutte2020.atlas import Atlas
from sfumato.reproduce.schmutte2020.envelope import AT
from sfumato.reproduce.schmutte2020.published import EPSILON

LEAST = 10
"""Groups of fewer children have no line worth naming."""
TAIL = 0.1
"""The bottom and the top tenth."""
THRESHOLDS = (20, 50, 100)
"""Rules of suppression hide all groups with fewer children."""
COUNT_EPSILON = Fraction(1)
"""What MOSE spends besides on the number of children of a group."""
MOSE, REGRESSION = "mose", "noisy-regression"


@dataclass(frozen=True, kw_only=True)
class Classified:
    """How well one way to publish tells who is in a tail, over several draws of its noise."""

    protection: str
    found: float
    """The share of the groups in a tail that are published beyond its limit."""
    right: float
    """The share of the groups published beyond a limit that are in the tail."""
    published: float
    """The share of all groups of which a value is published."""


@dataclass(frozen=True, kw_only=True)
class Tails:
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


def suppressed(threshold: int) -> str:
    """The name of a rule of suppression."""
    return f"suppress below {threshold}"


def classify_tails(atlas: Atlas, *, draws: int, seed: int) -> Tails:
    """Publish predictions at the 25th percentile at ε = 8, and compare with hiding small groups and adding no noise.

    Limits of the tails are those of the true predictions of all groups, and readers are taken to know them.
    """
    cells = atlas.chosen(atlas.people >= LEAST)
    shared: dict[str, Any] = {"at": (AT,), "minimum": LEAST}
    mose = replace(atlas.method, epsilon=EPSILON + COUNT_EPSILON, count_epsilon=COUNT_EPSILON, **shared)
    bounds = {name: getattr(mose, name) for name in ("low_x", "high_x", "low_y", "high_y", "decimals")}
    formal = NoisyRegression(alpha=mose.alpha, epsilon=EPSILON, **shared, **bounds)
    true = mose.true_value(cells)
    defined = ~np.isnan(true)
    cells, true = _kept(cells, defined), true[defined]
    limits = np.quantile(true, [TAIL, 1 - TAIL])
    lines = []
    for name, method in ((MOSE, mose), (REGRESSION, formal)):
        drawn = [method.protect(cells, Repeatable(seed, "schmutte2020", name, draw)) for draw in range(draws)]
        seen = [_classified(name, true, limits, t["value"], ~np.isin(t["status"], HIDDEN)) for t in drawn]
        lines.append(_mean(seen))
    people = cells["count"]
    lines += [_classified(suppressed(least), true, limits, true, people >= least) for least in THRESHOLDS]
    return Tails(groups=len(true), draws=draws, classified=tuple(lines))


def _kept(cells: Cells, groups: Flags) -> Cells:
    columns = {name: column[groups] for name, column in cells.columns.items()}
    return replace(cells, positions=cells.positions[groups], columns=columns)


def _classified(name: str, true: Floats, limits: Floats, value: NDArray[Any], seen: Flags) -> Classified:
    low, high = limits
    inside = np.stack([true <= low, true >= high])
    named = np.stack([seen & (value <= low), seen & (value >= high)])
    both = float((inside & named).sum())
    return Classified(
        protection=name,
        found=both / float(inside.sum()),
        right=both / max(float(named.sum()), 1.0),
        published=float(seen.mean()),
    )


def _mean(lines: list[Classified]) -> Classified:
    means = {name: float(np.mean([getattr(x, name) for x in lines])) for name in ("found", "right", "published")}
    return Classified(protection=lines[0].protection, **means)
