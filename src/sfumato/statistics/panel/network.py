"""Path lengths and centralities: of the graph of employers, which is confidential, and of graphs between classes.

Between classes, such as states, a graph is a table of pairs: whoever has the published table can compute them, and the
factors of its edges are in every figure. docs/methods/noise-infusion.md says which of these figures stand distortion.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.measures.formulas import spearman
from sfumato.statistics.panel.graph import Edges
from sfumato.statistics.panel.question import PairQuestion

# The graph of employers: shortest paths from some of them, and which employers are in the middle.

MOST_SOURCES = 256
"""Paths are followed from so many employers at most, evenly spread over all."""
_MOST_STEPS = 2_000_000_000
"""Employers times edges that are looked at; with more edges, paths are followed from fewer employers."""
_AT_A_TIME = 1 << 22
"""Sources times employers that are held in memory together."""
_ROUNDS, _CLOSE = 200, 1e-9
_TOP = 0.01


@dataclass(frozen=True, kw_only=True)
class PathLengths:
    """How many steps apart nodes are, of those that a path links."""

    sources: int
    """From so many nodes paths were followed, to all others."""
    shares: tuple[float, ...]
    """The share of these pairs that are one step apart, two steps, and so on."""
    reached: float
    """The share of all other nodes that a path leads to."""

    @property
    def mean(self) -> float:
        """The mean number of steps; 0 where no path leads anywhere."""
        return float(sum(steps * share for steps, share in enumerate(self.shares, start=1)))


@dataclass(frozen=True, kw_only=True)
class Centrality:
    """How a centrality is spread over nodes."""

    median: float
    largest: float
    top: float
    """What the hundredth of nodes with the most has of the whole."""

    @classmethod
    def of(cls, values: Floats) -> "Centrality":
        """The spread of some values."""
        if not len(values) or not values.sum():
            return cls(median=0.0, largest=0.0, top=0.0)
        ordered = np.sort(values)[::-1]
        first = max(1, round(_TOP * len(values)))
        return cls(
            median=float(np.median(values)), largest=float(ordered[0]), top=float(ordered[:first].sum() / values.sum())
        )


def measure_paths(edges: Edges, nodes: int) -> tuple[PathLengths, dict[str, Centrality]]:
    """Path lengths of an undirected graph, and how its centralities are spread.

    Strength adds up the links of a node. Closeness is the mean of one over the steps to all other nodes, of the nodes
    that paths were followed from. Betweenness is the share of shortest paths between two others that pass a node
    (Brandes 2001), from these same nodes. A node's eigenvector centrality is proportional to that of its neighbours
    together, each as often as they are linked.
    """
    ends = (np.append(edges.first, edges.second), np.append(edges.second, edges.first))
    both = np.append(edges.multiplicity, edges.multiplicity).astype(np.float64)
    weighted = scipy.sparse.csr_array((both, ends), shape=(nodes, nodes))
    linked = scipy.sparse.csr_array((np.ones(len(both)), ends), shape=(nodes, nodes))
    most = int(np.clip(_MOST_STEPS // max(len(edges), 1), 1, MOST_SOURCES))
    sources = np.unique(np.linspace(0, max(nodes - 1, 0), min(nodes, most)).astype(np.int64))
    steps, closeness, between = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(nodes)
    some = max(1, _AT_A_TIME // max(nodes, 1))
    for begin in range(0, len(sources), some):
        distance, passed = _shortest(linked, sources[begin : begin + some])
        counted = np.bincount(distance[distance > 0])
        steps = _added(steps, counted)
        near = np.divide(1.0, distance, out=np.zeros(distance.shape), where=distance > 0).sum(axis=0)
        closeness = np.append(closeness, near / max(nodes - 1, 1))
        between += passed
    found = int(steps.sum())
    paths = PathLengths(
        sources=len(sources),
        shares=tuple((steps[1:] / found).tolist()) if found else (),
        reached=found / max(len(sources) * (nodes - 1), 1),
    )
    spread = {
        "strength": np.asarray(weighted.sum(axis=1), dtype=np.float64).ravel(),
        "closeness": closeness,
        "betweenness": between / max(len(sources) * (nodes - 2), 1),
        "eigenvector": eigenvector(weighted),
    }
    return paths, {name: Centrality.of(values) for name, values in spread.items()}


def eigenvector(weights: Any) -> Floats:
    """The centrality of every node from that of its neighbours, as shares of the whole; 0 where there are no links."""
    nodes = weights.shape[0]
    linked = np.asarray(weights @ np.ones(nodes)) > 0
    value = linked / max(int(linked.sum()), 1)
    for _ in range(_ROUNDS if linked.any() else 0):
        passed = np.asarray(weights @ value, dtype=np.float64)
        # Half of a node's own keeps a graph of two sides from swinging between them.
        after = (passed / passed.sum() + value) / 2
        change, value = float(np.abs(after - value).max()), after
        if change < _CLOSE:
            break
    return value


def _shortest(linked: Any, sources: Integers) -> tuple[Integers, Floats]:
    """The steps from some sources (columns) to all nodes, -1 where none lead; and what paths from them pass nodes."""
    nodes, columns = linked.shape[0], np.arange(len(sources))
    distance = np.full((nodes, len(sources)), -1, dtype=np.int64)
    paths, ahead = np.zeros(distance.shape), np.zeros(distance.shape)
    distance[sources, columns], ahead[sources, columns] = 0, 1.0
    steps = 0
    while ahead.any():
        paths += ahead
        steps += 1
        ahead = np.where(distance < 0, linked @ ahead, 0.0)
        distance[ahead > 0] = steps
    behind = np.zeros(distance.shape)
    for step in range(steps - 1, 0, -1):
        share = np.divide(1 + behind, paths, out=np.zeros(paths.shape), where=distance == step)
        behind += np.where(distance == step - 1, paths * (linked @ share), 0.0)
    behind[sources, columns] = 0.0
    return distance, behind.sum(axis=1)


def _added(one: Integers, other: Integers) -> Integers:
    longest = max(len(one), len(other))
    summed: Integers = np.pad(one, (0, longest - len(one))) + np.pad(other, (0, longest - len(other)))
    return summed


# Graphs between classes of employers or workers: tables of pairs, as true numbers or as published.


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassNetwork:
    """How much links each class to each other one; nothing where a cell is not published.

    >>> links = np.array([[5.0, 4.0, 0.0], [4.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> ClassNetwork(links=links, directed=False).measures()["strength"].tolist()
    [4.0, 5.0, 1.0]
    >>> ClassNetwork(links=links, directed=False).paths().mean
    1.3333333333333333
    """

    links: Floats
    """A row and a column for each class; without a direction the same both ways."""
    directed: bool

    @classmethod
    def of(cls, question: PairQuestion, cells: Cells, values: Integers) -> "ClassNetwork":
        """The graph of a table of pairs, all its periods and classes of workers together."""
        ends = len(question.attributes)
        first, second = (_place(cells, question, range(at, at + ends)) for at in (0, ends))
        return cls.between(first, second, values, classes=question.classes, directed=question.directed)

    @classmethod
    def between(cls, first: Integers, second: Integers, values: Any, *, classes: int, directed: bool) -> "ClassNetwork":
        """The graph of pairs of classes, by their places."""
        links = np.zeros((classes, classes))
        np.add.at(links, (first, second), np.maximum(values, 0))
        return cls(links=links if directed else np.maximum(links, links.T), directed=directed)

    @property
    def _apart(self) -> Floats:
        """Links with other classes only."""
        apart: Floats = np.where(np.eye(len(self.links), dtype=np.bool_), 0.0, self.links)
        return apart

    def measures(self) -> dict[str, Floats]:
        """The centralities of every class.

        Degree is the number of other classes that it is linked to, and strength what links it to them. For closeness a
        link has the length of one over its share of all links, and one over the length of the shortest way is averaged
        over the other classes, so that twice the links everywhere leave it as it is.
        """
        apart = self._apart
        total = apart.sum() or 1.0
        lengths = np.divide(total, apart, out=np.zeros(apart.shape), where=apart > 0)
        ways = scipy.sparse.csgraph.shortest_path(scipy.sparse.csr_array(lengths), directed=True)
        near = np.divide(1.0, ways, out=np.zeros(ways.shape), where=(ways > 0) & np.isfinite(ways))
        strength = (
            {"strength_out": apart.sum(axis=1), "strength_in": apart.sum(axis=0)}
            if self.directed
            else {"strength": apart.sum(axis=1)}
        )
        return {
            "degree": ((apart > 0) | (apart.T > 0)).sum(axis=1).astype(np.float64),
            **strength,
            "closeness": near.sum(axis=1) / max(len(apart) - 1, 1),
            "eigenvector": eigenvector(apart + apart.T),
        }

    def strength(self) -> tuple[float, ...]:
        """What links every class to others, both ways together."""
        apart = self._apart
        both = apart.sum(axis=1) + (apart.sum(axis=0) if self.directed else 0.0)
        return tuple(both.tolist())

    def paths(self) -> PathLengths:
        """How many steps from one class to another, whatever their links are worth."""
        ways = scipy.sparse.csgraph.shortest_path(scipy.sparse.csr_array(self._apart), unweighted=True, directed=True)
        found: Flags = np.isfinite(ways) & (ways > 0)
        counted = np.bincount(ways[found].astype(np.int64))
        classes = len(ways)
        return PathLengths(
            sources=classes,
            shares=tuple((counted[1:] / counted.sum()).tolist()) if found.any() else (),
            reached=float(found.sum() / max(classes * (classes - 1), 1)),
        )


@dataclass(frozen=True, kw_only=True)
class NetworkComparison:
    """How centralities and path lengths of a published table compare with the true ones: confidential."""

    title: str
    classes: int
    centralities: Mapping[str, tuple[float, float]]
    """The rank correlation of each, and by how much they are off, all together, as a share of the true sum."""
    paths: tuple[PathLengths, PathLengths]
    """True and published."""
    strengths: tuple[tuple[float, ...], tuple[float, ...]]
    """True and published, of every class: what links it to others, both ways together."""

    def data(self) -> dict[str, Any]:
        """The same for machines; a rank correlation is None where all classes are alike."""
        found = {
            name: {"rank_correlation": _known(order), "off_by": _known(off)}
            for name, (order, off) in self.centralities.items()
        }
        true, published = (list(paths.shares) for paths in self.paths)
        steps = {"true": true, "published": published}
        return {"title": self.title, "classes": self.classes, "centralities": found, "steps": steps}


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def compare_networks(title: str, true: ClassNetwork, published: ClassNetwork) -> NetworkComparison:
    """Compare the graph of a published table with that of its true cells."""
    found = {}
    for (name, before), after in zip(true.measures().items(), published.measures().values(), strict=True):
        total = float(before.sum())
        off = float(np.abs(after - before).sum() / total) if total else float("nan")
        found[name] = (spearman(true=before, protected=after), off)
    return NetworkComparison(
        title=title,
        classes=len(true.links),
        centralities=found,
        paths=(true.paths(), published.paths()),
        strengths=(true.strength(), published.strength()),
    )


def _place(cells: Cells, question: PairQuestion, ends: range) -> Integers:
    place = np.zeros(len(cells), dtype=np.int64)
    for end in ends:
        place = place * len(question.by[end]) + cells.codes(question.by[end].name)
    return place
