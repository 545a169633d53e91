"""What the paper says beside its Table 1: example, factors, sample, convergence, small cells, centralities."""

from collections.abc import Callable, Iterator
from math import isnan
from typing import Final

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.measures.formulas import jensen_shannon_distance
from sfumato.noise.factors import ONE, Factors, Rule
from sfumato.noise.keyed import hashes
from sfumato.noise.randomness import Repeatable
from sfumato.statistics.panel.graph import Bipartite
from sfumato.statistics.panel.network import ClassNetwork, compare_networks
from sfumato.statistics.panel.synthesise import PairLayout, synthesised
from sfumato_lab.reproduce.abowd2016.evaluate import (
    LEAST,
    MOST,
    Classes,
    Edges,
    Measured,
    edge_factors,
    edge_givers,
)

Figure = tuple[str, str, str, float]
"""Quantity, table, size class or what else it is about, and our figure."""

# Section 2: five employees, three employers, and what the paper prints of their graphs (Figures 1 to 4).

_B: Final = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1]])
PRINTED: Final = {
    "P^F": [[2, 0, 2], [0, 2, 1], [2, 1, 4]],
    "P^W": [[2, 0, 1, 1, 2], [0, 1, 1, 0, 0], [1, 1, 2, 1, 1], [1, 0, 1, 1, 1], [2, 0, 1, 1, 2]],
    "A^F": [[0, 0, 1], [0, 0, 1], [1, 1, 0]],
    "A^W": [[0, 0, 1, 1, 1], [0, 0, 1, 0, 0], [1, 1, 0, 1, 1], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]],
}
EQUAL, OF_EIGHT = "entries as printed", "edges made by employer eight"


def example() -> Iterator[Figure]:
    """The graphs of the example: entries of each matrix that are as printed, edges, loops and degrees."""
    graph = Bipartite.of(*np.nonzero(_B), workers=5, employers=3)
    employers, workers = graph.employer_projection().toarray(), graph.worker_projection().toarray()
    ours = {"P^F": employers, "P^W": workers}
    ours |= {f"A^{end}": (ours[f"P^{end}"] > 0) & ~np.eye(len(ours[f"P^{end}"]), dtype=bool) for end in "FW"}
    for name, printed in PRINTED.items():
        yield "example", name, EQUAL, float(np.count_nonzero(ours[name] == np.array(printed)))
    edges = graph.employer_edges()
    yield "example", "A^F", "edges", float(len(edges))
    yield "example", "P^F", "workers on edges", float(edges.multiplicity.sum())
    yield "example", "P^F", "loops", float(graph.employer_loops().sum())
    yield "example", "A^F", "largest degree", float(graph.employer_degrees().max())
    yield "example", "A^W", "edges", float(len(graph.worker_edges()))
    eight = graph.workers_of_employers()[2]
    yield "example", "A^W", OF_EIGHT, float(eight * (eight - 1) / 2)


# Section 5 and Figure 5: the factors.

_FACTORS: Final = 100_000
_BINS: Final = 20


def factor_figures(key: bytes) -> Iterator[Figure]:
    """How far factors are from one, their mean, and their greatest distance from the distribution of Figure 5."""
    drawn = np.sort(_drawn(key))
    distortion = np.abs(drawn - 1)
    yield "factor", "ramp", "least distortion", float(distortion.min())
    yield "factor", "ramp", "greatest distortion", float(distortion.max())
    yield "factor", "ramp", "mean", float(drawn.mean())
    steps = np.arange(1, len(drawn) + 1) / len(drawn)
    yield "factor", "ramp", "distance from the distribution", float(np.abs(steps - ramp_share(drawn)).max())


def ramp_share(factor: Floats) -> Floats:
    """The share of factors up to this one, from the density that the paper gives."""
    least, most = float(LEAST), float(MOST)
    width = (most - least) ** 2
    below = np.clip(factor - (1 - most), 0, most - least) ** 2 / (2 * width)
    above = 0.5 - np.clip(1 + most - factor, 0, most - least) ** 2 / (2 * width)
    share: Floats = np.where(factor < 1, below, 0.5 + above)
    return share


def factor_density(key: bytes) -> tuple[Floats, Floats, Floats]:
    """Places between the ends of factors, the density of Figure 5 there, and ours in bins around them."""
    least, most = float(LEAST), float(MOST)
    ends = [np.linspace(1 - most, 1 - least, _BINS + 1), np.linspace(1 + least, 1 + most, _BINS + 1)]
    places = np.concatenate([(side[1:] + side[:-1]) / 2 for side in ends])
    density = (most - np.abs(places - 1)) / (most - least) ** 2
    drawn = _drawn(key)
    ours = np.concatenate([np.histogram(drawn, side)[0] / (side[1] - side[0]) / len(drawn) for side in ends])
    return places, density, ours


def _drawn(key: bytes) -> Floats:
    units = hashes([f"{number}" for number in range(_FACTORS)])
    drawn: Floats = Factors(key=key, least=LEAST, most=MOST).of(units) / ONE
    return drawn


# Section 6.1: the sample.


def workforce(edges: Edges) -> Iterator[Figure]:
    """How many there are of everything."""
    loops = edges.first == edges.second
    for what, number in (
        ("persons", edges.persons),
        ("employers", len(edges.employers)),
        ("jobs", edges.jobs),
        ("share with one employer", edges.workers[loops].sum() / edges.persons),
        ("edges", (~loops).sum()),
        ("edges and loops", len(edges)),
        ("workers on edges and loops", edges.workers.sum()),
        ("pairs of states", edges.cells),
    ):
        yield "workforce", "all", what, float(number)


# Section 5: observations for each distinct factor. Section 7: cells below a minimum, and figures of the whole graph.

MINIMUM: Final = 10


def convergence(edges: Edges, givers: Integers, classes: Classes) -> Iterator[Figure]:
    """Observations for each distinct factor: in cells by their size, and in the employer-employee graph."""
    size = edges.sums(np.ones(len(edges), dtype=np.int64))
    pairs = np.unique(edges.cell * len(edges.employers) + givers)
    factors = np.bincount(pairs // len(edges.employers), minlength=edges.cells)
    some = size > 0
    places = classes.of(size[some])
    for table, counted in (("edge", size), ("worker", edges.sums(edges.workers))):
        ratio = counted[some] / factors[some]
        for place in np.unique(places):
            yield "convergence_ratio", table, classes.names[place], float(ratio[places == place].mean())
        yield "convergence_ratio", table, classes.whole, float(counted.sum() / len(np.unique(givers)))
    yield "convergence_ratio", "job", classes.whole, edges.jobs / len(edges.employers)


def small_cells(edges: Edges, factors: Integers, words: Integers) -> Iterator[Figure]:
    """The distance of shares where protected cells below a minimum are left out, and where they are synthesised."""
    true = edges.sums(np.ones(len(edges), dtype=np.int64))
    value = np.rint(edges.sums(factors) / ONE).astype(np.int64)
    below = value < MINIMUM
    first, second = np.triu_indices(int(edges.states.max()) + 1)
    states = int(edges.states.max()) + 1
    layout = PairLayout.of(first * states + second, classes=states, others=1, directed=False)
    drawn = synthesised(value, keep=~below, below=below, layout=layout, minimum=MINIMUM, words=words.astype(np.uint64))
    limit = f"below {MINIMUM}"
    yield "cells", "edge", limit, float(below.sum())
    yield "jsd", "edge, suppressed", limit, jensen_shannon_distance(true=true, protected=np.where(below, 0, value))
    yield "jsd", "edge, synthesised", limit, jensen_shannon_distance(true=true, protected=drawn)
    yield "cells", "edge, synthesised", "sum over the true one", float(drawn[below].sum() / max(true[below].sum(), 1))


def centralities(edges: Edges, factors: Integers) -> Iterator[Figure]:
    """How the centralities of states stand distortion."""
    states = int(edges.states.max()) + 1
    one, other = (edges.states[end] for end in (edges.first, edges.second))
    low, high = np.minimum(one, other), np.maximum(one, other)
    for table, label in (("edge", np.ones(len(edges))), ("worker", edges.workers.astype(np.float64))):
        networks = [
            ClassNetwork.between(low, high, label * factor, classes=states, directed=False)
            for factor in (1.0, factors / ONE)
        ]
        found = compare_networks(table, networks[0], networks[1])
        for name, (order, off) in found.centralities.items():
            if not isnan(order):  # where every state has the same
                yield "rank_correlation", table, name, order
            yield "off_by", table, name, off
        true, protected = found.paths
        yield "steps", table, "true", true.mean
        yield "steps", table, "protected", protected.mean


def further_figures(
    edges: Edges,
    *,
    classes: Classes,
    keys: int,
    seed: int,
    rule: Rule,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Measured]:
    """Every figure beside those of Table 1; under so many keys, where they depend on one."""
    drawn: dict[tuple[str, str, str], list[float]] = {}
    once, two = [*example(), *workforce(edges)], edges.without_loops()
    for key in range(keys):
        progress("measuring graphs with a key", key, keys)
        chance = Repeatable(seed, "abowd2016", key)
        factors, givers = (of(two, key=chance.key, rule=rule) for of in (edge_factors, edge_givers))
        words = (chance.words(edges.cells) >> np.uint64(1)).astype(np.int64)
        found = [
            *(once if key == 0 else ()),
            *factor_figures(chance.key),
            *convergence(two, givers, classes),
            *small_cells(two, factors, words),
            *centralities(two, factors),
        ]
        for quantity, table, about, value in found:
            drawn.setdefault((quantity, table, about), []).append(value)
    return [
        Measured(quantity=quantity, table=table, size_class=about, by_key=tuple(values))
        for (quantity, table, about), values in drawn.items()
    ]
