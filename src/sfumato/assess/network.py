"""The network of workers and employers behind the tables of a graph: confidential."""

from dataclasses import dataclass

import numpy as np

from sfumato.engine.connect import Tables
from sfumato.engine.graph import bipartite
from sfumato.frame import Frame


@dataclass(frozen=True, kw_only=True)
class Network:
    """The shape of the graph of all jobs."""

    workers: int
    employers: int
    jobs: int
    single: float
    """The share of workers with one employer only."""
    edges: int
    """Pairs of employers that share a worker."""
    degrees: tuple[float, int]
    """Median and largest number of other employers that an employer shares workers with."""
    multiplicities: tuple[float, int]
    """Median and largest number of workers that such a pair shares."""
    components: int
    largest_component: float
    """The share of employers in the largest part of the graph that jobs link."""


def measure_network(frame: Frame, tables: Tables) -> Network:
    """Measure the graph of all jobs of a frame."""
    graph = bipartite(frame, tables).graph
    edges, degrees, parts = graph.employer_edges(), graph.employer_degrees(), graph.components()
    return Network(
        workers=graph.workers,
        employers=graph.employers,
        jobs=graph.jobs,
        single=float(np.mean(graph.employers_of_workers() == 1)) if graph.workers else 0.0,
        edges=len(edges),
        degrees=_middle(degrees),
        multiplicities=_middle(edges.multiplicity),
        components=parts.number,
        largest_component=float(np.bincount(parts.employers).max() / graph.employers) if graph.employers else 0.0,
    )


def _middle(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[float, int]:
    return (float(np.median(values)), int(values.max())) if len(values) else (0.0, 0)
