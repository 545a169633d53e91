"""Pairs of workers who share an employer, and sums of labels times factors over pairs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.engine.chunks import positions_of
from sfumato.engine.connect import Tables
from sfumato.engine.query import Rows, text, texts
from sfumato.frame.data import Frame
from sfumato.noise.factors import ONE, Factors, chosen_employers
from sfumato.noise.keyed import Keyed, hashes
from sfumato.statistics.panel.graph import MOST_SHARING, Bipartite, pairs_within, parts, refuse_more_sharing
from sfumato.statistics.panel.question import PairQuestion, Selection
from sfumato.statistics.panel.tabulate_graph import employer_edges, links, numbered, people, several_employers

# Sums of labels times factors over the pairs of each cell.

_MOST = float(2**63 - 2**10)
"""The greatest deviation that a column can hold, in millionths; larger ones are cut to it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairSums:
    """What the labels of pairs sum to in each cell, with and without the factors of the employers they belong to.

    Sums of different employers can be added to each other; all labels of one employer must come together.
    """

    count: Integers
    whole: Integers
    rest: Integers
    """Millionths, those that would make a whole included: products are split before they are summed."""
    factors: Integers
    squares: NDArray[np.float64]
    """Σ over employers of the square of what their labels sum to."""

    @classmethod
    def of(cls, cell: Integers, employer: Integers, label: Integers, *, factors: Integers, cells: int) -> Self:
        """Sum labels by cell; each row belongs to the employer with a number, at which `factors` has its factor."""
        order = np.lexsort((employer, cell))
        cell, employer, label = cell[order], employer[order], label[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (cell[1:] != cell[:-1]) | (employer[1:] != employer[:-1])
        begins = np.flatnonzero(new)
        if len(begins):
            label = np.add.reduceat(label, begins)
        cell, employer = cell[begins], employer[begins]
        used = label != 0
        cell, employer, label = cell[used], employer[used], label[used]
        # A label is split before it is multiplied: a factor times all of it would leave 64 bits beyond some 10^12.
        millions, units = np.divmod(label, ONE)
        product = units * factors[employer]
        # In the order of cells and employers, so that the rounding is the same on every engine.
        squares = np.bincount(cell, weights=label.astype(np.float64) ** 2, minlength=cells)
        return cls(
            count=_by_cell(cell, label, cells),
            whole=_by_cell(cell, millions * factors[employer] + product // ONE, cells),
            rest=_by_cell(cell, product % ONE, cells),
            factors=_by_cell(cell, np.ones_like(label), cells),
            squares=squares.astype(np.float64),  # whole numbers when there are no rows
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(
            count=self.count + other.count,
            whole=self.whole + other.whole,
            rest=self.rest + other.rest,
            factors=self.factors + other.factors,
            squares=self.squares + other.squares,
        )

    @property
    def distorted(self) -> Integers:
        """The sums of labels times factors, in whole units."""
        whole: Integers = self.whole + self.rest // ONE
        return whole

    def columns(self, *, deviation: float, edges: Integers, available: Integers) -> dict[str, Integers]:
        """The columns that tabulation supplies; `deviation` is the standard deviation of one factor."""
        return {
            "count": self.count,
            "distorted": self.distorted,
            "remainder": self.rest % ONE,
            "factors": self.factors,
            "deviation": np.minimum(np.rint(np.sqrt(self.squares) * (deviation * ONE)), _MOST).astype(np.int64),
            "available": available,
            "edges": edges,
        }


def _by_cell(cell: Integers, values: Integers, cells: int) -> Integers:
    summed = np.zeros(cells, dtype=np.int64)
    np.add.at(summed, cell, values)
    return summed


# Pairs of workers who share an employer, by attributes of both.

_AT_A_TIME = 4_000_000
"""Pairs of classes of one employer's workers that are looked at together, and labels that wait to be summed."""
_DENSE = 1 << 25
"""Up to so many combinations of an employer and a cell, each has its place in one array."""


def refuse_too_many(frame: Frame, tables: Tables, question: PairQuestion, *, limit: int = MOST_SHARING) -> None:
    """Refuse a graph of workers, more of whom share several employers than can be looked at; nothing is answered."""
    if question.between != "workers":
        return
    with employer_edges(frame, tables, replace(question.selection, by=(), loops=False)) as edges:
        shared = edges.select(_shared="CAST(_workers AS DOUBLE)").number("sum(_shared * (_shared - 1) / 2)")
    refuse_more_sharing(shared, limit=limit)


def worker_pairs(
    frame: Frame, tables: Tables, questions: Mapping[str, PairQuestion], factors: Factors, *, selected: Selection
) -> dict[str, dict[str, Integers]]:
    """Sum pairs of workers, each with the factor of an employer that both have, into the cells of every question.

    Pairs are not listed: an employer with n workers of one class and m of another links n·m pairs. Only pairs that
    share several employers are, some thousands at a time, to take the factor of one of them and to count once as an
    edge. This is done once for all questions, whose jobs are the same: those that are selected, of the workers that may
    be ends.
    """
    one = next(iter(questions.values()))
    names = dict.fromkeys(name for question in questions.values() for name in question.attributes)
    allowed = ends_of_workers(one)
    workers = people(frame, tables, {name: name for name in dict.fromkeys([*names, *(name for name, _ in allowed)])})
    workers = workers.where(*(tables.engine.among(tables.engine.q(name), codes) for name, codes in allowed))
    with links(frame, tables, selected).kept() as jobs:
        placed = jobs.join(workers, ["_worker"])
        staff = {name: _staff(placed, question) for name, question in questions.items()}
        linked = several_employers(jobs).join(workers, ["_worker"])
        linking = linked.with_columns(**texts(linked, ["_worker", "_workplace"])).fetch()
        alone = _alone(jobs, workers).fetch() if selected.loops else None
    employers, _ = numbered(next(iter(staff.values()))["_workplace"])  # the same in all
    mended = _corrections(linking, employers, questions, factors)
    if alone is not None:
        _add_loops(alone, employers, questions, factors, mended)
    owned = factors.of(hashes(employers))
    columns = {}
    for name, question in questions.items():
        employer, n = _places(staff[name], employers), staff[name]["_workers"].to_numpy().astype(np.int64)
        sums, edges = _summed(employer, _kinds(staff[name], question), n, mended[name], factors=owned)
        available = np.ones_like(edges)
        columns[name] = sums.columns(deviation=factors.deviation, edges=edges, available=available)
    return columns


def _staff(placed: Rows, question: PairQuestion) -> pa.Table:
    """The number of workers of every employer by their attributes."""
    counted = placed.group(["_workplace", *question.attributes], _workers="count(*)")
    return counted.with_columns(_workplace=text(counted, "_workplace")).fetch()


def ends_of_workers(question: PairQuestion) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The codes of attributes that workers need to be ends of pairs."""
    asked = {name: codes for name, codes in question.where.items() if name in question.filters}
    return tuple(sorted((question.filters[name][0], tuple(sorted(codes))) for name, codes in asked.items()))


def _alone(jobs: Rows, workers: Rows) -> Rows:
    """The jobs at employers that have one worker only, which link that worker to nobody else."""
    only = jobs.group(["_workplace"], _of="count(*)").where("_of = 1")
    found = jobs.join(only, ["_workplace"], "semi").join(workers, ["_worker"])
    return found.with_columns(**texts(found, ["_worker", "_workplace"]))


def _places(jobs: pa.Table, employers: pa.Array) -> Integers:
    places: Integers = pc.index_in(jobs["_workplace"].combine_chunks(), value_set=employers).to_numpy().astype(np.int64)
    return places


def _kinds(rows: pa.Table, question: PairQuestion) -> Integers:
    """The place of every row in the product of the codelists of the attributes."""
    ends = question.by[: len(question.attributes)]
    named = rows.select(list(question.attributes)).rename_columns([end.name for end in ends])
    return positions_of(named, ends, ends)


def _summed(
    employer: Integers, kind: Integers, n: Integers, mended: "_Corrections", *, factors: Integers
) -> tuple[PairSums, Integers]:
    """The sums over all pairs and the number of distinct ones, from the number of workers of each kind at employers."""
    order = np.lexsort((kind, employer))
    employer, kind, n = employer[order], kind[order], n[order]
    sizes = np.bincount(employer, minlength=len(factors))
    rows = np.append(0, np.cumsum(sizes))
    at, cells, labels = mended.labels.sums()
    edges, nothing = -mended.repeats, np.empty(0, dtype=np.int64)
    sums = PairSums.of(nothing, nothing, nothing, factors=factors, cells=len(edges))
    for begin, end in parts(sizes * (sizes + 1) // 2, _AT_A_TIME):
        one, other = (rows[begin] + row for row in pairs_within(sizes[begin:end], itself=True))
        met = np.where(one == other, n[one] * (n[one] - 1) // 2, n[one] * n[other])
        cell = mended.cell_of(kind[one], kind[other])
        np.add.at(edges, cell, met)
        those = slice(*np.searchsorted(at, [begin, end]))
        sums += PairSums.of(
            np.concatenate([cell, cells[those]]),
            np.concatenate([employer[one], at[those]]),
            np.concatenate([met, labels[those]]),
            factors=factors,
            cells=len(edges),
        )
    return sums, edges


def _corrections(
    jobs: pa.Table, employers: pa.Array, questions: Mapping[str, PairQuestion], factors: Factors
) -> "dict[str, _Corrections]":
    """Look at every pair of workers who share several employers; its whole label goes to one of them.

    `jobs` are those of workers with several employers. The label of a pair is the number of employers it shares, or
    one where pairs count once.
    """
    workers, worker = numbered(jobs["_worker"])
    graph = Bipartite.of(worker, _places(jobs, employers), workers=len(workers), employers=len(employers))
    kinds = {name: np.zeros(len(workers), dtype=np.int64) for name in questions}
    for name, question in questions.items():
        kinds[name][worker] = _kinds(jobs, question)
    mended = {name: _Corrections.of(question, employers=len(employers)) for name, question in questions.items()}
    keyed, persons, firms = Keyed(key=factors.key), hashes(workers), hashes(employers)
    for shared in graph.sharing_several():
        pair, times = shared.pair, np.bincount(shared.pair, minlength=len(shared.first))
        chosen = chosen_employers(
            pair,
            persons[shared.first][pair],
            persons[shared.second][pair],
            firms[shared.employer],
            keyed=keyed,
        )
        for name, question in questions.items():
            whole = chosen if question.weight == "edges" else chosen * times[pair]
            cell = mended[name].cell_of(kinds[name][shared.first], kinds[name][shared.second])
            mended[name].labels.add(shared.employer, cell[pair], whole.astype(np.int64) - 1)
            np.add.at(mended[name].repeats, cell, times - 1)
    return mended


def _add_loops(
    alone: pa.Table,
    employers: pa.Array,
    questions: Mapping[str, PairQuestion],
    factors: Factors,
    mended: "dict[str, _Corrections]",
) -> None:
    """Add a pair with themselves for workers who are alone at an employer; of several, one gives its factor."""
    workers, worker = numbered(alone["_worker"])
    persons, employer = hashes(workers)[worker], _places(alone, employers)
    chosen = chosen_employers(worker, persons, persons, hashes(employers)[employer], keyed=Keyed(key=factors.key))
    times = np.bincount(worker, minlength=len(workers))
    for name, question in questions.items():
        kind, corrections = _kinds(alone, question), mended[name]
        cell = corrections.cell_of(kind, kind)
        whole = chosen if question.weight == "edges" else chosen * times[worker]
        corrections.labels.add(employer, cell, whole.astype(np.int64))
        np.add.at(corrections.repeats, cell[chosen], -1)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Corrections:
    """What pairs that share several employers add to, or take from, labels that were counted at each employer."""

    classes: int
    labels: "_Labels"
    repeats: Integers
    """By cell: how many times pairs were met beyond the first, less the loops, which were not met."""

    @classmethod
    def of(cls, question: PairQuestion, *, employers: int) -> "_Corrections":
        """None yet."""
        classes = prod(map(len, question.by[: len(question.attributes)]))
        cells = classes * (classes + 1) // 2
        labels = _Labels(employers=employers, cells=cells)
        return cls(classes=classes, labels=labels, repeats=np.zeros(cells, dtype=np.int64))

    def cell_of(self, one: Integers, other: Integers) -> Integers:
        """The cell of two kinds of workers: row by row in the upper triangle of the table of both."""
        low, high = np.minimum(one, other), np.maximum(one, other)
        cell: Integers = low * (2 * self.classes - low - 1) // 2 + high
        return cell


class _Labels:
    """Labels summed by employer and cell as they come: there are as many as pairs, which would not fit in memory."""

    def __init__(self, *, employers: int, cells: int) -> None:
        self._cells = cells
        keys = employers * cells
        self._all = np.zeros(keys, dtype=np.int64) if keys <= _DENSE else None
        self._some = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]  # sums, then what is not summed yet

    def add(self, employer: Integers, cell: Integers, label: Integers) -> None:
        """Add labels, each at an employer and in a cell."""
        key = employer * self._cells + cell
        if self._all is not None:
            np.add.at(self._all, key, label)
            return
        self._some.append((key, label))
        if sum(len(more) for more, _ in self._some[1:]) > max(_AT_A_TIME, len(self._some[0][0])):
            self._sum_up()

    def sums(self) -> tuple[Integers, Integers, Integers]:
        """The employers, in order, the cells and the sums that are not zero."""
        if self._all is not None:
            key = np.flatnonzero(self._all)
            return key // self._cells, key % self._cells, self._all[key]
        self._sum_up()
        key, label = self._some[0]
        return key // self._cells, key % self._cells, label

    def _sum_up(self) -> None:
        keys, at = np.unique(np.concatenate([key for key, _ in self._some]), return_inverse=True)
        summed = np.zeros(len(keys), dtype=np.int64)
        np.add.at(summed, at, np.concatenate([label for _, label in self._some]))
        self._some = [(keys[summed != 0], summed[summed != 0])]
