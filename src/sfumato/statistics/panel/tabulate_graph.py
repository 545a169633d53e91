"""The graph of jobs, from the records, and the network of workers and employers behind it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.engine.connect import Tables
from sfumato.engine.query import Rows, text, texts, total
from sfumato.errors import DataError, ReleaseError
from sfumato.frame.data import Frame
from sfumato.statistics.panel.graph import Bipartite
from sfumato.statistics.panel.network import Centrality, PathLengths, measure_paths
from sfumato.statistics.panel.question import EVERY_JOB, Selection

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
def employer_edges(frame: Frame, tables: Tables, selected: Selection = EVERY_JOB) -> Iterator[Rows]:
    """The pairs of employers that share workers: `_first`, `_second` and the number of `_workers` that both have.

    The keys are as the data hold them. The text of the first comes before that of the second; directed, workers were at
    the first before the second. An employer with itself is listed where loops are asked for: its workers have no other
    employer. Earnings, where they are asked for, are in `_first_earnings` and `_second_earnings`, the same in both of a
    loop, and links are kept apart by what is selected.
    """
    apart = links_apart(frame, selected)
    earned = ("_first_earnings", "_second_earnings") if selected.earnings else ()
    sums = {name: total(name) for name in earned}
    by = ["_first", "_second", *selected.by]
    with links(frame, tables, selected).kept() as jobs, several_employers(jobs, apart).kept() as linking:
        found = linked_pairs(linking, apart, selected).group(by, _workers="count(*)", **sums)
        if selected.loops:
            alone = several_employers(jobs, apart, alone=True)
            pay = dict.fromkeys(earned, "_earnings")
            alone = alone.select(*selected.by, _first="_workplace", _second="_workplace", **pay)
            found = found.union(alone.group(by, _workers="count(*)", **sums))
        yield found


def links_apart(frame: Frame, selected: Selection) -> tuple[str, ...]:
    """What links must have in common to link two employers: the worker, and the period where they are kept apart."""
    return ("_worker", *(name for name in selected.by if name == frame.jobs.period))


def linked_pairs(jobs: Rows, apart: Sequence[str] = ("_worker",), selected: Selection = EVERY_JOB) -> Rows:
    """Each worker's pairs of employers, as `_worker`, `_first` and `_second`, the smaller text or the earlier first."""
    name = "_since" if selected.directed else text(jobs, "_workplace")
    pay = {f"_{end}_earnings": "_earnings" for end in ("first", "second")} if selected.earnings else {}
    first, second = ({made: of for made, of in pay.items() if made.startswith(end)} for end in ("_first", "_second"))
    of_worker = [by for by in selected.by if by not in apart]
    one = jobs.select(*apart, *of_worker, _first="_workplace", _first_name=name, **first)
    other = jobs.select(*apart, _second="_workplace", _second_name=name, **second)
    pairs = one.join(other, apart).where("_first_name < _second_name")
    return pairs.select(*dict.fromkeys([*apart, *selected.by]), "_first", "_second", *pay)


def links(frame: Frame, tables: Tables, selected: Selection = EVERY_JOB) -> Rows:
    """Each `_worker` at each `_workplace` once; in a panel, where there are earnings in any period.

    Of the jobs that are selected, kept apart as asked for. Where it is asked for, `_earnings` is what was earned there,
    and `_since` the first period.
    """
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
    where, period = dict(selected.where), frame.jobs.period
    if period in where:
        jobs = jobs.where(tables.engine.among(text(jobs, period), where.pop(period)))
    made = {period: text(jobs, period)} if period in selected.by else {}
    if selected.earnings:
        made["_pay"] = f"CAST({q(str(frame.jobs.earnings))} AS BIGINT)"
    if selected.directed:
        made["_begun"] = text(jobs, str(period))
    rows = jobs.select(_worker=q(frame.jobs.worker), _workplace=q(frame.jobs.workplace), **made)
    rows = _chosen(frame, tables, rows, [*(name for name in selected.by if name != period), *where])
    rows = rows.where(*(tables.engine.among(q(name), codes) for name, codes in where.items()))
    sums = {"_earnings": total("_pay")} if selected.earnings else {}
    sums |= {"_since": "min(_begun)"} if selected.directed else {}
    kept = ("_worker", "_workplace", *selected.by)
    return rows.group(kept, **sums) if sums else rows.select(*kept).distinct()


def _chosen(frame: Frame, tables: Tables, rows: Rows, names: Sequence[str]) -> Rows:
    """Jobs with some attributes of their worker or workplace beside them, as text."""
    of_workplaces = [name for name in dict.fromkeys(names) if frame.is_public(name)]
    of_workers = [name for name in dict.fromkeys(names) if name not in of_workplaces]
    if of_workers:
        rows = rows.join(people(frame, tables, {name: name for name in of_workers}), ["_worker"])
    if of_workplaces and tables.workplaces is not None and frame.workplaces is not None:
        register = tables.workplaces
        key = tables.engine.q(frame.workplaces.key)
        rows = rows.join(register.select(_workplace=key, **texts(register, of_workplaces)), ["_workplace"])
    return rows


def people(frame: Frame, tables: Tables, columns: Mapping[str, str]) -> Rows:
    """Every `_worker` with some attributes as text, under the names that are given."""
    if tables.workers is None or frame.workers is None or not set(columns.values()) <= set(tables.workers.columns):
        missing = [name for name in columns.values() if tables.workers is None or name not in tables.workers.columns]
        raise ReleaseError(
            f"attribute '{missing[0]}'" if missing else "data, workers",
            expected="a column of the table of workers: pairs and moves are of workers, not of single jobs",
            found="no table of workers" if tables.workers is None else "an attribute of jobs",
            do="describe the workers under [data], with this attribute",
        )
    register = tables.workers
    made = {name: text(register, of) for name, of in columns.items()}
    return register.select(_worker=tables.engine.q(frame.workers.key), **made)


_MOST_EARNINGS = 2**60
"""Sums of earnings over all edges must stay below this, to fit 64 bits."""


def refuse_large_earnings(frame: Frame, tables: Tables, selected: Selection) -> None:
    """Refuse earnings that are too large to be added up over edges, at each of which a worker counts again."""
    jobs = links(frame, tables, replace(selected, by=(), directed=False))
    of_workers = jobs.group(["_worker"], _held="count(*)", _paid="sum(CAST(_earnings AS DOUBLE))")
    if of_workers.number("sum(_held * _paid)") >= _MOST_EARNINGS:
        raise DataError(
            f"jobs, earnings '{frame.jobs.earnings}'",
            expected=f"earnings that add up to less than {_MOST_EARNINGS:.2g} over all pairs of employers of workers",
            found="more",
            do="store them in a larger unit, or weight by workers",
        )


def several_employers(jobs: Rows, apart: Sequence[str] = ("_worker",), *, alone: bool = False) -> Rows:
    """The jobs of the workers who have more than one, which alone link employers; or of those who are in one alone."""
    held = jobs.group(apart, _least="min(_workplace)", _most="max(_workplace)")
    return jobs.join(held.where("_least = _most" if alone else "_least <> _most"), apart, "semi")


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
    paths: PathLengths
    """How many steps apart employers are, from one to the next that it shares workers with."""
    centralities: Mapping[str, Centrality]


def measure_network(frame: Frame, tables: Tables) -> Network:
    """Measure the graph of all jobs of a frame."""
    graph = bipartite(frame, tables).graph
    edges, degrees, parts = graph.employer_edges(), graph.employer_degrees(), graph.components()
    paths, centralities = measure_paths(edges, graph.employers)
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
        paths=paths,
        centralities=centralities,
    )


def _middle(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[float, int]:
    return (float(np.median(values)), int(values.max())) if len(values) else (0.0, 0)
