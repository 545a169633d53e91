"""Protect both tables with one key after the other, and measure how far they are from the truth."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.arrays import Integers
from sfumato.assess.classes import by_class
from sfumato.assess.measures import (
    Spread,
    jensen_shannon_distance,
    proportional_difference,
    root_integrated_squared_error,
    spread,
)
from sfumato.noise.edges import Rule, takes_first
from sfumato.noise.factors import Factors
from sfumato.noise.keyed import Keyed, hashes
from sfumato.reproduce.abowd2016.tables import Edges
from sfumato.reproduce.chance import Repeatable

LEAST, MOST = Fraction("0.15"), Fraction("0.25")
"""Factors are this far from one: a = 1.15 and b = 1.25 in the paper."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One figure under every key: a mean over keys is less a matter of luck than a single draw."""

    quantity: str
    table: str
    size_class: str
    by_key: tuple[float, ...]

    @property
    def ours(self) -> float:
        """The mean over the keys."""
        return float(np.mean(self.by_key))

    @property
    def low(self) -> float:
        """The least over the keys."""
        return min(self.by_key)

    @property
    def high(self) -> float:
        """The greatest over the keys."""
        return max(self.by_key)


@dataclass(frozen=True, kw_only=True)
class Classes:
    """Classes of cells by the number of their edges: names, and the greatest number of each class but the last."""

    names: tuple[str, ...]
    ends: tuple[int, ...]
    whole: str
    """What all cells together are called."""

    def of(self, edges: Integers) -> Integers:
        """The place of every cell among the classes."""
        return np.searchsorted(self.ends, edges, side="left").astype(np.int64)


def evaluate(
    edges: Edges,
    *,
    classes: Classes,
    keys: int,
    seed: int,
    rule: Rule = "twelve-characters",
    progress: Progress = lambda *_: None,
) -> list[Measured]:
    """Every figure of the paper's table, under so many keys."""
    labels = {"edge": np.ones(len(edges), dtype=np.int64), "worker": edges.workers}
    size = edges.sums(labels["edge"])
    drawn: dict[tuple[str, str, str], list[float]] = {}
    for key in range(keys):
        progress("protecting with a key", key, keys)
        factors = edge_factors(edges, key=Repeatable(seed, "abowd2016", key).key, rule=rule)
        for table, label in labels.items():
            true, protected = edges.sums(label)[size > 0], edges.sums(factors * label)[size > 0]
            for quantity, size_class, value in _figures(true, protected, classes.of(size[size > 0]), classes):
                drawn.setdefault((quantity, table, size_class), []).append(value)
    return [
        Measured(quantity=quantity, table=table, size_class=size_class, by_key=tuple(values))
        for (quantity, table, size_class), values in drawn.items()
    ]


def edge_factors(edges: Edges, *, key: bytes, rule: Rule) -> Integers:
    """The factor of every edge in millionths: that of one of its two employers."""
    factors = Factors(key=key, least=LEAST, most=MOST).of(hashes(edges.employers))
    first, second = (edges.employers.take(end) for end in (edges.first, edges.second))
    taken = takes_first(first, second, rule=rule, keyed=Keyed(key=key))
    return np.where(taken, factors[edges.first], factors[edges.second])


def _figures(
    true: Integers, protected: Integers, places: Integers, classes: Classes
) -> Iterator[tuple[str, str, float]]:
    differences = proportional_difference(true=true, protected=protected)
    found: dict[int | str, Spread] = by_class(spread, classes=places, values=differences)
    for place, figures in found.items():
        yield "c_mean", classes.names[int(place)], figures.mean
        yield "c_sd", classes.names[int(place)], figures.deviation
    yield "jsd", classes.whole, jensen_shannon_distance(true=true, protected=protected)
    yield "rimse", classes.whole, root_integrated_squared_error(true=true, protected=protected)


def figure(measured: Sequence[Measured], quantity: str, table: str, size_class: str) -> Measured | None:
    """The figure about this, if any cell is of the class."""
    for row in measured:
        if (row.quantity, row.table, row.size_class) == (quantity, table, size_class):
            return row
    return None
