"""The graph of jobs, from the records, and the network of workers and employers behind it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.engine.connect import Tables
from sfumato.engine.query import Rows, text, texts
from sfumato.errors import ReleaseError
from sfumato.frame import Frame
from sfumato.statistics.panel.graph import Bipartite

# The graph of jobs, from the records: who works where, and which employers share workers.


@dataclass(frozen=True, kw_only=True, eq=False)
class JobGraph:
    """The bipartite graph of a frame and whom its rows and columns stand for, in the order of their ids as text."""

    graph: Bipartite
    workers: pa.Array
    employers: pa.Array


def bipartite(frame: Frame, tables: Tables) -> JobGraph:
    """Fetch the graph of all jobs: each worker at each employer once, in a panel over all its periods."""
    jobs = links(frame, tables)
    found = jobs.select(**texts(jobs, ["_worker", "_workplace"])).fetch()
    workers, worker = numbered(found["_worker"])
    employers, employer = numbered(found["_workplace"])
    graph = Bipartite.of(worker, employer, workers=len(workers), employers=len(employers))
    return JobGraph(graph=graph, workers=workers, employers=employers)


@contextmanager
def employer_edges(frame: Frame, tables: Tables) -> Iterator[Rows]:
    """The pairs of employers that share workers: `_first`, `_second` and the number of `_workers` that both have.

    The keys are as the data hold them; the text of the first comes before that of the second.
    """
    with links(frame, tables).kept() as jobs, several_employers(jobs).kept() as linking:
        yield linked_pairs(linking).group(["_first", "_second"], _workers="count(*)")


def linked_pairs(jobs: Rows) -> Rows:
    """Each worker's pairs of employers, as `_worker`, `_first` and `_second`, the smaller text first."""
    name = text(jobs, "_workplace")
    one = jobs.select("_worker", _first="_workplace", _first_name=name)
    other = jobs.select("_worker", _second="_workplace", _second_name=name)
    pairs = one.join(other, ["_worker"]).where("_first_name < _second_name")
    return pairs.select("_worker", "_first", "_second")


def links(frame: Frame, tables: Tables) -> Rows:
    """Each `_worker` at each `_workplace` once; in a panel, where there are earnings in any period."""
    if frame.jobs.worker is None:
        raise ReleaseError(
            "data, jobs",
            expected="the column that names the worker: a graph links employers by the workers they share",
            found="none",
            do='add it: jobs = { …, worker = "worker" }',
        )
    jobs, q = tables.jobs, tables.engine.q
    if frame.jobs.earnings is not None:
        jobs = jobs.where(f"{q(frame.jobs.earnings)} > 0")
    return jobs.select(_worker=q(frame.jobs.worker), _workplace=q(frame.jobs.workplace)).distinct()


def several_employers(jobs: Rows) -> Rows:
    """The jobs of the workers who have more than one, which alone link employers."""
    held = jobs.group(["_worker"], _least="min(_workplace)", _most="max(_workplace)")
    return jobs.join(held.where("_least <> _most"), ["_worker"], "semi")


def numbered(names: pa.ChunkedArray) -> tuple[pa.Array, Integers]:
    """The distinct names in order, and the place of every name among them."""
    encoded = names.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return encoded.dictionary.take(pa.array(order)), place[encoded.indices.to_numpy()]


# The network of workers and employers behind the tables of a graph: confidential.


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
