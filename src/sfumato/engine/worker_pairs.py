"""Pairs of workers who share an employer, by attributes of both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.cells import Integers
from sfumato.engine.connect import Tables
from sfumato.engine.graph import links, numbered, several_employers
from sfumato.engine.pair_sums import PairSums
from sfumato.engine.positions import positions_of
from sfumato.engine.question import PairQuestion
from sfumato.engine.text import text
from sfumato.errors import ReleaseError
from sfumato.frame import Frame
from sfumato.graph import Bipartite, pairs_within, parts
from sfumato.noise.edges import chosen_employers
from sfumato.noise.factors import Factors
from sfumato.noise.keyed import Keyed, hashes

if TYPE_CHECKING:
    import ibis.expr.types as ir

    CellOf = Callable[[Integers, Integers], Integers]

_AT_A_TIME = 4_000_000
"""Pairs of classes of one employer's workers that are looked at together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Corrections:
    """What pairs that share several employers add to, or take from, labels that were counted at each employer."""

    employer: Integers
    cell: Integers
    label: Integers
    repeats: Integers
    """By cell: how many times pairs were met beyond the first."""


def people(frame: Frame, tables: Tables, columns: Mapping[str, str]) -> "ir.Table":
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
    return register.select(
        _worker=register[frame.workers.key], **{name: text(register[of], name) for name, of in columns.items()}
    )


def worker_pairs(
    frame: Frame, tables: Tables, question: PairQuestion, factors: Factors, listed: Integers
) -> dict[str, Integers]:
    """Sum pairs of workers, each with the factor of an employer that both have, into the listed cells.

    Pairs are not listed: an employer with n workers of one class and m of another links n·m pairs. Only pairs that
    share several employers are, to take the factor of one of them and to count once as an edge.
    """
    ends = question.by[: len(question.attributes)]
    columns = {end.name: of for end, of in zip(ends, question.attributes, strict=True)}
    classes = prod(map(len, ends))

    def cell_of(one: Integers, other: Integers) -> Integers:
        return np.searchsorted(listed, np.minimum(one, other) * classes + np.maximum(one, other))

    workers = people(frame, tables, columns)
    with links(frame, tables).cache() as jobs:
        placed = jobs.inner_join(workers, "_worker")
        staff = placed.group_by("_workplace", *columns).agg(_workers=placed.count().cast("int64"))
        staff = staff.mutate(_workplace=text(staff["_workplace"], "_workplace")).to_pyarrow()
        linking = several_employers(jobs).inner_join(workers, "_worker")
        linking = linking.mutate(**{name: text(linking[name], name) for name in ("_worker", "_workplace")}).to_pyarrow()
    employers, employer = numbered(staff["_workplace"])
    kind, n = positions_of(staff, ends, ends), staff["_workers"].to_numpy().astype(np.int64)
    order = np.lexsort((kind, employer))
    employer, kind, n = employer[order], kind[order], n[order]

    kinds = positions_of(linking, ends, ends)
    once = question.weight == "edges"
    mended = _corrections(linking, kinds, employers, factors, cell_of=cell_of, cells=len(listed), once=once)

    edges, owned = -mended.repeats, factors.of(hashes(employers))
    sizes = np.bincount(employer, minlength=len(employers))
    rows = np.append(0, np.cumsum(sizes))
    nothing = np.empty(0, dtype=np.int64)
    sums = PairSums.of(nothing, nothing, nothing, factors=owned, cells=len(listed))
    for begin, end in parts(sizes * (sizes + 1) // 2, _AT_A_TIME):
        one, other = (rows[begin] + row for row in pairs_within(sizes[begin:end], itself=True))
        met = np.where(one == other, n[one] * (n[one] - 1) // 2, n[one] * n[other])
        cell = cell_of(kind[one], kind[other])
        np.add.at(edges, cell, met)
        those = slice(*np.searchsorted(mended.employer, [begin, end]))
        sums += PairSums.of(
            np.concatenate([cell, mended.cell[those]]),
            np.concatenate([employer[one], mended.employer[those]]),
            np.concatenate([met, mended.label[those]]),
            factors=owned,
            cells=len(listed),
        )
    return sums.columns(deviation=factors.deviation, edges=edges, available=np.ones_like(listed))


def _corrections(
    jobs: pa.Table,
    kinds: Integers,
    employers: pa.Array,
    factors: Factors,
    *,
    cell_of: "CellOf",
    cells: int,
    once: bool,
) -> _Corrections:
    """Look at every pair of workers who share several employers; its whole label goes to one of them.

    `jobs` are those of workers with several employers and `kinds` the classes of their workers. The label of a pair is
    the number of employers it shares, or `once` one.
    """
    workers, worker = numbered(jobs["_worker"])
    employer = pc.index_in(jobs["_workplace"].combine_chunks(), value_set=employers).to_numpy().astype(np.int64)
    kind = np.zeros(len(workers), dtype=np.int64)
    kind[worker] = kinds
    graph = Bipartite.of(worker, employer, workers=len(workers), employers=len(employers))
    keyed, persons, firms = Keyed(key=factors.key), hashes(workers), hashes(employers)
    keys, labels = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    repeats = np.zeros(cells, dtype=np.int64)
    for shared in graph.sharing_several():
        cell, pair = cell_of(kind[shared.first], kind[shared.second]), shared.pair
        times = np.bincount(pair, minlength=len(cell))
        np.add.at(repeats, cell, times - 1)
        chosen = chosen_employers(
            pair,
            persons[shared.first][pair],
            persons[shared.second][pair],
            firms[shared.employer],
            keyed=keyed,
        )
        label = np.where(chosen, 1 if once else times[pair], 0) - 1
        key, at = np.unique(shared.employer * cells + cell[pair], return_inverse=True)
        summed = np.zeros(len(key), dtype=np.int64)
        np.add.at(summed, at, label)
        keys.append(key)
        labels.append(summed)
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    employer, cell = np.divmod(key[order], max(cells, 1))
    return _Corrections(employer=employer, cell=cell, label=np.concatenate(labels)[order], repeats=repeats)
