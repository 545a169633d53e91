"""Tabulate the workforce of every establishment by worker cells, for methods that look at each of them."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.engine.chunks import place_in
from sfumato.engine.connect import Tables
from sfumato.engine.query import total
from sfumato.frame import Frame
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.sparse_laplace import Workforces
from sfumato.statistics.jobs.tabulate import as_in, blocks_of, chosen, employers
from sfumato.statistics.jobs.tabulate_establishments import EstablishmentGroups, establishment_groups


def workforces(frame: Frame, tables: Tables, questions: Mapping[str, Question]) -> Iterator[tuple[str, Workforces]]:
    """The workforces that every question is about; the jobs are scanned once for all questions.

    Cells without any job have no row: their number may be far beyond what could be listed.
    """
    with establishment_groups(frame, tables, questions, None) as counted:
        for name, question in questions.items():
            yield name, _workforces(counted, as_in(frame, question))


def _workforces(counted: EstablishmentGroups, question: Question) -> Workforces:
    places = blocks_of(counted.frame, counted.tables, question)
    with places.join(employers(counted), ["_workplace"], "left").kept() as placed:
        sums = {"_establishments": "count(*)", "_largest": "coalesce(max(_total), 0)"}
        listed = placed.group(["_block"], **sums).fetch()
        groups = chosen(counted, question)
        inside = tuple(dimension for dimension in question.by if not dimension.public)
        found = groups.select("_workplace", "_jobs", _inside=place_in(inside, groups))
        found = found.group(["_workplace", "_inside"], _jobs=total("_jobs"))
        rows = found.join(placed, ["_workplace"]).fetch()
    blocks, establishments, largest = (_numbers(listed, name) for name in ("_block", "_establishments", "_largest"))
    order = np.argsort(blocks)
    silent = counted.frame.joined or question.every_cell
    if silent:  # nothing tells where there are establishments: every workplace cell may have one
        product = int(np.prod([len(dimension) for dimension in question.by if dimension.public], dtype=np.int64))
        everywhere = np.arange(product, dtype=np.int64)
        known = np.zeros(product, dtype=np.int64)
        known[blocks] = largest
        blocks, largest = everywhere, known
    else:
        blocks, largest = blocks[order], largest[order]
    return Workforces(
        dimensions=question.by,
        blocks=blocks,
        establishments=None if silent else establishments[order],
        largest=largest,
        block=np.searchsorted(blocks, _numbers(rows, "_block")),
        inside=_numbers(rows, "_inside"),
        unit=_numbered(rows["_workplace"]),
        size=_numbers(rows, "_total"),
        jobs=_numbers(rows, "_jobs"),
    )


def _numbered(names: pa.ChunkedArray) -> Integers:
    """Numbers of establishments in the order of their names: the engine gives rows in any order."""
    coded = names.combine_chunks().dictionary_encode()
    ranks = np.empty(len(coded.dictionary), dtype=np.int64)
    ranks[pc.array_sort_indices(coded.dictionary).to_numpy()] = np.arange(len(ranks))
    found: Integers = ranks[coded.indices.to_numpy()]
    return found


def _numbers(rows: pa.Table, name: str) -> Integers:
    found: Integers = rows[name].to_numpy().astype(np.int64, copy=False)
    return found
