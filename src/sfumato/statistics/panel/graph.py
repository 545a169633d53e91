"""The bipartite graph of jobs and its projections, as sparse matrices."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from sfumato.arrays import Integers
from sfumato.errors import MethodError

if TYPE_CHECKING:
    from typing import Any


MOST_PAIRS = 50_000_000
"""A projection with more pairs than this is refused: it would not fit in the memory of an ordinary machine."""
MOST_SHARING = 5_000_000_000
"""More pairs of workers that share several employers than this are refused: looking at each takes an hour or so."""
_AT_A_TIME = 1 << 15
"""Pairs of workers that are looked at together, where not all are listed: few enough for the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Pairs that are linked, each once with the smaller index first, and how often they are."""

    first: Integers
    second: Integers
    multiplicity: Integers

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, kw_only=True)
class SharedEmployers:
    """Pairs of workers, by the indices of both, and a row for every employer that a pair shares."""

    first: Integers
    second: Integers
    pair: Integers
    """The place of the row's pair in `first` and `second`."""
    employer: Integers


@dataclass(frozen=True, kw_only=True)
class Components:
    """The parts of a graph that no job links, numbered from 0, and the part of every worker and employer."""

    number: int
    workers: Integers
    employers: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class Bipartite:
    """Who works where: a sparse matrix of ones with a row for each worker and a column for each employer.

    >>> graph = Bipartite.of([0, 0, 1], [0, 1, 1], workers=2, employers=2)
    >>> graph.employer_projection().toarray()
    array([[1, 1],
           [1, 2]])
    """

    incidence: "Any"

    @classmethod
    def of(cls, worker: "Any", employer: "Any", *, workers: int, employers: int) -> "Bipartite":
        """Make the graph of jobs given as indices of worker and employer; a job listed twice counts once."""
        rows, columns = np.asarray(worker, dtype=np.int64), np.asarray(employer, dtype=np.int64)
        if rows.shape != columns.shape or rows.ndim != 1:
            raise ValueError("every job needs a worker and an employer")
        for indices, end in ((rows, workers), (columns, employers)):
            if len(indices) and not (indices.min() >= 0 and indices.max() < end):
                raise ValueError("indices must be from 0 to below the number of workers, or of employers")
        incidence = scipy.sparse.csr_array(
            scipy.sparse.coo_array((np.ones(len(rows), np.int64), (rows, columns)), shape=(workers, employers))
        )
        incidence.data[:] = 1  # repeated jobs were added up
        return cls(incidence=incidence)

    @property
    def workers(self) -> int:
        """The number of workers."""
        return int(self.incidence.shape[0])

    @property
    def employers(self) -> int:
        """The number of employers."""
        return int(self.incidence.shape[1])

    @property
    def jobs(self) -> int:
        """The number of jobs, each worker at each employer once."""
        return int(self.incidence.nnz)

    def employers_of_workers(self) -> Integers:
        """How many employers each worker has."""
        counted: Integers = np.diff(self.incidence.indptr).astype(np.int64)
        return counted

    def workers_of_employers(self) -> Integers:
        """How many workers each employer has."""
        counted: Integers = np.bincount(self.incidence.indices, minlength=self.employers).astype(np.int64)
        return counted

    def employer_projection(self, *, limit: int = MOST_PAIRS) -> "Any":
        """BᵀB: the workers that two employers share; on the diagonal, the workers of one."""
        _refuse_more(self.employers_of_workers(), limit, onto="employers", through="workers with many employers")
        return scipy.sparse.csr_array(self.incidence.T @ self.incidence)

    def worker_projection(self, *, limit: int = MOST_PAIRS) -> "Any":
        """BBᵀ: the employers that two workers share; on the diagonal, the employers of one."""
        _refuse_more(self.workers_of_employers(), limit, onto="workers", through="employers with many workers")
        return scipy.sparse.csr_array(self.incidence @ self.incidence.T)

    def employer_degrees(self) -> Integers:
        """With how many other employers each employer shares a worker."""
        edges = self.employer_edges()
        ends = np.concatenate([edges.first, edges.second])
        degrees: Integers = np.bincount(ends, minlength=self.employers).astype(np.int64)
        return degrees

    def employer_edges(self) -> Edges:
        """The pairs of employers that share workers, and how many they share."""
        # A worker with one employer links no two, and most have one.
        several = self.incidence[np.flatnonzero(self.employers_of_workers() > 1)]
        return _edges(Bipartite(incidence=several).employer_projection())

    def worker_edges(self) -> Edges:
        """The pairs of workers that share employers, and how many they share."""
        return _edges(self.worker_projection())

    def employer_loops(self) -> Integers:
        """The workers who have that one employer only: the multiplicity of each employer's loop."""
        alone = self.incidence[np.flatnonzero(self.employers_of_workers() == 1)]
        loops: Integers = np.bincount(alone.indices, minlength=self.employers).astype(np.int64)
        return loops

    def sharing_several(self, *, limit: int = MOST_SHARING) -> Iterator[SharedEmployers]:
        """The pairs of workers who share more than one employer, each once, some thousands at a time.

        Such a pair shares the edge between two employers. Edges have far fewer workers than employers have, so that
        these pairs are few where all pairs of colleagues are beyond counting. A pair that shares several edges is met
        at each, but always in one part: parts are made of the pairs of some workers with all those after them.
        """
        by_worker, employers = self.employers_of_workers(), self.incidence.indices.astype(np.int64)
        one, other = pairs_within(by_worker, itself=False)
        worker = np.repeat(np.arange(self.workers), by_worker * (by_worker - 1) // 2)
        low, high = np.minimum(employers[one], employers[other]), np.maximum(employers[one], employers[other])
        _, edge, sizes = np.unique(low * self.employers + high, return_inverse=True, return_counts=True)
        refuse_more_sharing(int((sizes * (sizes - 1) // 2).sum()), limit=limit)
        by_edge = np.argsort(edge, kind="stable")  # the workers of every edge, in their order
        place = np.empty(len(edge), dtype=np.int64)
        place[by_edge] = np.arange(len(edge))
        following, fellow = np.cumsum(sizes)[edge] - place - 1, worker[by_edge]
        rows = np.append(0, np.cumsum(np.bincount(worker, minlength=self.workers)))
        met = np.append(0, np.cumsum(following))
        for begin, end in parts(np.diff(met[rows]), _AT_A_TIME):
            some = slice(rows[begin], rows[end])
            row = np.repeat(np.arange(some.start, some.stop), following[some])
            second = fellow[place[row] + 1 + np.arange(len(row)) - (met[row] - met[some.start])]
            yield _each_once(worker[row], second, low[row], high[row], by_worker)

    def components(self) -> Components:
        """The parts of the graph between which there are no jobs."""
        jobs = self.incidence.tocoo()
        size = self.workers + self.employers
        links = scipy.sparse.coo_array(
            (jobs.data, (jobs.row, jobs.col.astype(np.int64) + self.workers)), shape=(size, size)
        )
        number, part = scipy.sparse.csgraph.connected_components(links, directed=False)
        part = part.astype(np.int64)
        return Components(number=int(number), workers=part[: self.workers], employers=part[self.workers :])


def pairs_within(sizes: Integers, *, itself: bool) -> tuple[Integers, Integers]:
    """The pairs of rows of every group, when groups of these sizes follow each other, each once and in order.

    >>> pairs_within(np.array([2, 1, 3]), itself=False)
    (array([0, 3, 3, 4]), array([1, 4, 5, 5]))
    """
    rows = np.arange(int(sizes.sum()))
    following = np.repeat(np.cumsum(sizes), sizes) - rows - (0 if itself else 1)
    one = np.repeat(rows, following)
    place = np.arange(len(one)) - np.repeat(np.cumsum(following) - following, following)
    return one, one + place + (0 if itself else 1)


def parts(costs: Integers, most: int) -> list[tuple[int, int]]:
    """Cut rows into ranges that follow each other, each costing about `most`: beyond it by its last row at most.

    >>> parts(np.array([1, 1, 5, 0, 1]), 3)
    [(0, 3), (3, 5)]
    """
    share = (np.cumsum(costs) - costs) // most
    begins = np.flatnonzero(np.diff(share, prepend=-1)).tolist()
    return list(zip(begins, [*begins[1:], len(costs)], strict=True)) if begins else []


def refuse_more_sharing(pairs: int, *, limit: int = MOST_SHARING) -> None:
    """Refuse to look at more pairs of workers who share several employers than the limit."""
    # The error names no number of the data: these are confidential.
    if pairs > limit:
        raise MethodError(
            "pairs of workers who share several employers",
            expected=f"at most {limit:,} of them, as each is looked at",
            found="more pairs, made by employers that share many workers",
            do="describe the jobs of fewer employers or of a shorter time, or ask for a graph between employers",
        )


def _each_once(
    first: Integers, second: Integers, low: Integers, high: Integers, by_worker: Integers
) -> SharedEmployers:
    """Pairs that were met at the edges between two employers, with all employers of all edges at which they were."""
    # Who has two employers shares no third one, so that most pairs are met once.
    again = (by_worker[first] > 2) & (by_worker[second] > 2)
    workers, once = len(by_worker), ~again
    pairs, pair = np.unique(first[again] * workers + second[again], return_inverse=True)
    most = max(int(high.max(initial=0)), 0) + 1
    shared = np.unique(np.append(pair * most + low[again], pair * most + high[again]))
    alone = int(once.sum())
    return SharedEmployers(
        first=np.append(first[once], pairs // workers),
        second=np.append(second[once], pairs % workers),
        pair=np.append(np.repeat(np.arange(alone), 2), alone + shared // most),
        employer=np.append(np.stack([low[once], high[once]], axis=1).ravel(), shared % most),
    )


def _edges(projection: "Any") -> Edges:
    upper = scipy.sparse.triu(projection, k=1, format="csr")
    upper.sort_indices()
    pairs = upper.tocoo()
    return Edges(
        first=pairs.row.astype(np.int64), second=pairs.col.astype(np.int64), multiplicity=pairs.data.astype(np.int64)
    )


def _refuse_more(sizes: Integers, limit: int, *, onto: str, through: str) -> None:
    # The error names no number of the data: these are confidential.
    if int((sizes * sizes).sum()) > limit:
        raise MethodError(
            f"projection of the jobs onto {onto}",
            expected=f"at most {limit:,} pairs of {onto}",
            found=f"more pairs, made by {through}",
            do="project a part of the jobs, or ask for a table of pairs, which needs no projection in memory",
        )
