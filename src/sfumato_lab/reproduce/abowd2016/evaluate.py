"""Both tables of the paper, protected with one key after the other, beside its Table 1."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.engine.connect import connect
from sfumato.errors import DataError
from sfumato.measures.formulas import (
    Spread,
    by_class,
    jensen_shannon_distance,
    proportional_difference,
    root_integrated_squared_error,
    spread,
)
from sfumato.noise.factors import Factors, Rule, takes_first
from sfumato.noise.keyed import Keyed, hashes
from sfumato.noise.randomness import Repeatable
from sfumato.release import Release
from sfumato.statistics.panel.question import Selection
from sfumato.statistics.panel.tabulate_graph import employer_edges, links

# The two tables of the paper: edges between employers by the states of both ends, and the workers on these edges.

ATTRIBUTE = "state"
LOOPED = " with loops"
"""Ends the names of tables in which the workers of one employer alone are its edge with itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Edges:
    """Every pair of employers that share a worker: confidential if the workforce were real."""

    employers: pa.Array
    """The identifiers of all employers."""
    first: Integers
    second: Integers
    """Positions of the two employers of each edge."""
    workers: Integers
    """How many workers each edge has."""
    cell: Integers
    """The pair of states of each edge, whichever comes first."""
    cells: int
    """The number of such pairs, a state with itself included."""
    states: Integers
    """The state of each employer."""
    persons: int
    jobs: int

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def filled(self) -> int:
        """The number of cells with an edge."""
        return len(np.unique(self.cell))

    def without_loops(self) -> "Edges":
        """The edges between two employers; a loop has the workers whom one employer alone has."""
        two = self.first != self.second
        columns = {name: getattr(self, name)[two] for name in ("first", "second", "workers", "cell")}
        return replace(self, **columns)

    def sums(self, weights: Integers) -> Integers:
        """The sum of a whole number of every edge in every cell, exact below 2^53."""
        return np.bincount(self.cell, weights=weights, minlength=self.cells).astype(np.int64)


def read_edges(release: Release) -> Edges:
    """Project the jobs of a workforce onto its employers, loops included."""
    frame = release.frame
    if frame.joined or frame.jobs.worker is None or not frame.is_public(ATTRIBUTE):
        raise DataError(
            f"data {frame.folder}",
            expected="a workforce as `sfumato economy federal` writes it, with workers and the states of employers",
            found="another kind of data",
            do="name such a folder with --data, or leave --data out",
        )
    with connect(frame) as tables:
        assert frame.workplaces is not None
        assert tables.workplaces is not None
        q = tables.engine.q
        employers = tables.workplaces.select(employer=q(frame.workplaces.key), state=q(ATTRIBUTE)).fetch()
        with employer_edges(frame, tables, Selection(loops=True)) as linked:
            edges = linked.fetch()
        held = links(frame, tables)
        jobs, persons = held.number(), held.group(["_worker"]).number()
    employers = employers.sort_by("employer")
    names = employers["employer"].combine_chunks()
    state = employers[ATTRIBUTE].cast(pa.string()).combine_chunks().dictionary_encode()
    first, second = (_positions(edges[end], names) for end in ("_first", "_second"))
    of_state = state.indices.to_numpy().astype(np.int64)
    cell, cells = _pairs(of_state[first], of_state[second], states=len(state.dictionary))
    # Sorted, so that nothing depends on the order in which the engine hands out its answer.
    order = np.lexsort((second, first))
    return Edges(
        employers=names,
        first=first[order],
        second=second[order],
        workers=edges["_workers"].to_numpy().astype(np.int64)[order],
        cell=cell[order],
        cells=cells,
        states=of_state,
        persons=persons,
        jobs=jobs,
    )


def _positions(names: pa.ChunkedArray, among: pa.Array) -> Integers:
    found: Integers = pc.index_in(names.cast(among.type), value_set=among).to_numpy().astype(np.int64)
    return found


def _pairs(one: Integers, other: Integers, *, states: int) -> tuple[Integers, int]:
    """The number of every unordered pair of states, and how many pairs there are."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    return low * states - low * (low - 1) // 2 + high - low, states * (states + 1) // 2


# Protect both tables with one key after the other, and measure how far they are from the truth.

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
    """Every figure of the paper's table, under so many keys; of edges with loops, in tables named so."""
    looped = bool(np.any(edges.first == edges.second))
    names = (f"edge{LOOPED}", f"worker{LOOPED}") if looped else ("edge", "worker")
    labels = dict(zip(names, (np.ones(len(edges), dtype=np.int64), edges.workers), strict=True))
    size = edges.sums(labels[names[0]])
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
    return factors[edge_givers(edges, key=key, rule=rule)]


def edge_givers(edges: Edges, *, key: bytes, rule: Rule) -> Integers:
    """Which employer gives its factor to every edge."""
    first, second = (edges.employers.take(end) for end in (edges.first, edges.second))
    taken = takes_first(first, second, rule=rule, keyed=Keyed(key=key))
    return np.where(taken, edges.first, edges.second)


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
