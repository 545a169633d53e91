"""Tabulate counts of jobs, whole or in chunks: establishments to the cells of every table."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sfumato.cells import Cells
from sfumato.engine.chunks import (
    IN_ONE_PIECE,
    THE_BLOCK,
    Chunked,
    ChunkLayout,
    bucket_width,
    cut,
    located,
    place_in,
)
from sfumato.engine.connect import Tables, text
from sfumato.frame import Frame
from sfumato.noise.factors import Factors
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate_establishments import EstablishmentGroups, establishment_groups

if TYPE_CHECKING:  # only names for types
    import ibis.expr.types as ir


# Tabulate a table in parts: one table of the engine holds all that the parts need, and is never held as a whole.


@contextmanager
def parted(
    frame: Frame,
    tables: Tables,
    questions: Mapping[str, Question],
    parts: Mapping[str, int | None],
    factors: Factors | None = None,
    *,
    in_one_piece: bool = False,
) -> Iterator[dict[str, Chunked]]:
    """Cut the answer to every question into parts: as many as `parts` says, or as its listed cells need.

    A large answer has as many as it needs even if `parts` says fewer; `in_one_piece` leaves every answer uncut.
    The jobs are scanned once for all questions, when the first of them is read. Codes are replaced by their places
    right where they are read: numbers are grouped several times as quickly as texts.
    """
    with establishment_groups(frame, tables, questions, factors) as counted:
        yield {
            name: _parted(counted, _as_in(frame, asked), parts.get(name), in_one_piece=in_one_piece)
            for name, asked in questions.items()
        }


def _as_in(frame: Frame, question: Question) -> Question:
    """The question with dimensions that are public where the data say so."""
    return replace(question, by=tuple(replace(d, public=frame.is_public(d.name)) for d in question.by))


def _parted(counted: EstablishmentGroups, question: Question, parts: int | None, *, in_one_piece: bool) -> Chunked:
    blocks = _blocks(counted.frame, counted.tables, question)
    layout = _uncut(counted.frame, question)
    if not (in_one_piece or (parts == 1 and question.cells <= IN_ONE_PIECE)):
        layout = replace(layout, starts=_starts(layout, blocks, parts))
    places = _with_chunks(counted.tables, blocks, layout)
    if layout.inside:
        found = _cells(counted, question, places, layout).union(_of_blocks(counted, places, layout))
    else:
        found = _workplace_cells(counted, question, places, layout)
    return Chunked(layout=layout, found=found, tables=counted.tables)


def _uncut(frame: Frame, question: Question) -> ChunkLayout:
    """The whole table as a single part."""
    needed = sorted(question.needs - {"count", "largest", "establishments", "remainder"})
    known = () if frame.joined else ("establishments",)
    return ChunkLayout(
        dimensions=question.by,
        starts=(0,),
        columns=("count", "largest", *known, *needed),
        every_block=frame.joined,
    )


def _starts(whole: ChunkLayout, blocks: "ir.Table", parts: int | None) -> tuple[int, ...]:
    """Cut the table into parts by the number of listed blocks, which is public, in ranges of neighbouring ones."""
    width = bucket_width(whole.blocks)
    counted = np.full(ceil(whole.blocks / width), width, dtype=np.int64)
    if whole.every_block:
        counted[-1] = whole.blocks - width * (len(counted) - 1)
    else:
        listed = blocks.select(_bucket=(blocks["_block"] // width).cast("int64"), _block=blocks["_block"]).distinct()
        found = listed.group_by("_bucket").agg(_blocks=listed.count()).to_pyarrow()
        counted[:] = 0
        counted[found["_bucket"].to_numpy()] = found["_blocks"].to_numpy()
    return cut(counted.tolist(), width=width, cells_of_a_block=whole.width, parts=parts)


def _blocks(frame: Frame, tables: Tables, question: Question) -> "ir.Table":
    """The establishments a question is about, each with the workplace cell it belongs to."""
    attributes = question.workplace_attributes(frame)
    if tables.workplaces is not None and frame.workplaces is not None:
        table, key = tables.workplaces, frame.workplaces.key
        kept = table.select(
            _workplace=table[key],
            **{name: text(table[name], name) for name in attributes},
        )
    else:
        # The attributes of an establishment are the same in all its rows (validated).
        table, key = tables.jobs, frame.jobs.workplace
        kept = table.select(_workplace=table[key], **{n: text(table[n], n) for n in attributes}).distinct()
    wanted = [kept[name].isin(codes) for name, codes in question.where.items() if frame.is_public(name)]
    kept = kept.filter(*wanted) if wanted else kept
    public = tuple(dimension for dimension in question.by if dimension.public)
    placed = located(tables, kept, {dimension.name: dimension.codes for dimension in public})
    listed = [placed[dimension.name] >= 0 for dimension in public]  # codes that the question leaves out are in no cell
    placed = placed.filter(*listed) if listed else placed
    return placed.select("_workplace", _block=place_in(public, placed))


def _with_chunks(tables: Tables, blocks: "ir.Table", layout: ChunkLayout) -> "ir.Table":
    """The establishments with the part that their workplace cell belongs to."""
    if layout.parts == 1:
        return blocks.mutate(_part=0)
    width = bucket_width(layout.blocks)
    buckets = np.arange(ceil(layout.blocks / width), dtype=np.int64)
    part = np.searchsorted(np.array(layout.starts), buckets * width, side="right") - 1
    lent = tables.lend(pa.table({"_bucket": buckets, "_part": part.astype(np.int32)}))
    bucketed = blocks.mutate(_bucket=(blocks["_block"] // width).cast("int64"))
    return bucketed.inner_join(lent, "_bucket").select("_workplace", "_block", "_part")


def _cells(counted: EstablishmentGroups, question: Question, places: "ir.Table", layout: ChunkLayout) -> "ir.Table":
    """Sum establishments to the cells that hold a job."""
    groups = _chosen(counted, question)
    chosen = groups.select("_workplace", "_jobs", _inside=place_in(layout.inside, groups))
    if len(layout.inside) < len(question.worker_attributes(counted.frame)):
        chosen = chosen.group_by(["_workplace", "_inside"]).agg(_jobs=chosen["_jobs"].sum())
    placed = _with_employers(counted, chosen.inner_join(places, "_workplace"), layout)
    sums = _sums(placed, question, layout)
    return _shaped(placed.group_by(["_part", "_block", "_inside"]).agg(**sums), layout)


def _workplace_cells(
    counted: EstablishmentGroups, question: Question, places: "ir.Table", layout: ChunkLayout
) -> "ir.Table":
    """Sum establishments to workplace cells: every one that has an establishment, with jobs or without."""
    groups = _chosen(counted, question)
    if question.worker_attributes(counted.frame):
        groups = groups.group_by("_workplace").agg(_jobs=groups["_jobs"].sum())
    placed = places.left_join(groups, "_workplace").drop("_workplace_right")
    placed = _with_employers(counted, placed, layout)
    sums = {"_establishments": placed.count(), **_sums(placed, question, layout)}
    if "largest_employer" in layout.columns:
        sums["_largest_employer"] = placed["_total"].max()
    return _shaped(placed.group_by(["_part", "_block"]).agg(**sums).mutate(_inside=0), layout)


def _with_employers(counted: EstablishmentGroups, placed: "ir.Table", layout: ChunkLayout) -> "ir.Table":
    """Rows of establishments with what the columns need to know of each: its whole workforce, its factor."""
    needs_total = "count_below_threshold" in layout.columns or (
        "largest_employer" in layout.columns and not layout.inside
    )
    if needs_total:
        placed = placed.left_join(_employers(counted), "_workplace").drop("_workplace_right")
    if "distorted" in layout.columns and counted.factors is not None:
        placed = placed.left_join(counted.factors, "_workplace").drop("_workplace_right")
    return placed


def _sums(placed: "ir.Table", question: Question, layout: ChunkLayout) -> "dict[str, ir.Scalar]":
    """What is added up of the establishments of a cell; one without jobs counts for nothing."""
    jobs = placed["_jobs"]
    sums = {"_count": jobs.sum(), "_largest": jobs.max()}
    if "count_below_threshold" in layout.columns:
        sums["_count_below_threshold"] = (placed["_total"] < question.threshold).ifelse(jobs, 0).sum()
    if "distorted" in layout.columns:
        sums["_distorted"] = (jobs * placed["_factor"]).sum()
    return sums


def _chosen(counted: EstablishmentGroups, question: Question) -> "ir.Table":
    """The groups of workers that a question is about, with their places in its own dimensions."""
    groups, known = counted.by(question.worker_attributes(counted.frame)), counted.codes
    for name, codes in question.where.items():
        if name in known:
            groups = groups.filter(groups[name].isin([known[name].index(code) for code in codes]))
    for dimension in question.by:
        name = dimension.name
        if dimension.public:
            continue
        if dimension.codes == known[name]:
            groups = groups.filter(groups[name] >= 0)
            continue
        before = pa.array([known[name].index(code) for code in dimension.codes], pa.int32())
        lent = counted.tables.lend(pa.table({name: before, "_at": np.arange(len(dimension), dtype=np.int32)}))
        groups = groups.inner_join(lent, name).drop(name).rename({name: "_at"})
    return groups


def _employers(counted: EstablishmentGroups) -> "ir.Table":
    """The whole workforce of every establishment."""
    return counted.by(()).rename(_total="_jobs")


def _of_blocks(counted: EstablishmentGroups, places: "ir.Table", layout: ChunkLayout) -> "ir.Table":
    """A row for every workplace cell that has an establishment, with what is the same in all its cells."""
    if "largest_employer" not in layout.columns:
        found = places.group_by(["_part", "_block"]).agg(_establishments=places.count())
    else:
        placed = places.left_join(_employers(counted), "_workplace")
        found = placed.group_by(["_part", "_block"]).agg(
            _establishments=placed.count(),
            _largest_employer=placed["_total"].max(),
        )
    return _shaped(found.mutate(_inside=THE_BLOCK), layout)


def _shaped(found: "ir.Table", layout: ChunkLayout) -> "ir.Table":
    """The columns that every row has, all of them whole numbers; 0 where a row is not about one."""
    import ibis

    named = {
        f"_{name}": found[f"_{name}"] if f"_{name}" in found.columns else ibis.literal(0) for name in layout.columns
    }
    return found.select(
        _part=found["_part"].cast("int32"),
        _block=found["_block"].cast("int64"),
        _inside=found["_inside"].cast("int64"),
        **{name: column.fill_null(0).cast("int64") for name, column in named.items()},
    )


# Tabulate: jobs to establishments once, establishments to the cells of every table.


def tabulate(
    frame: Frame,
    tables: Tables,
    questions: Mapping[str, Question],
    factors: Factors | None = None,
) -> dict[str, Cells]:
    """Answer every question with its cells: `count` of jobs, `largest` establishment, number of `establishments`.

    The jobs are scanned once for all questions: they are counted by establishment and by the worker attributes that
    any question uses. Every cell that has an establishment is listed, also when it has no jobs. In a joined table
    nothing tells where establishments without jobs are, so there every combination is listed and the number of
    establishments, which would count only those with jobs, is not given. Questions that need `distorted` get the sum of
    jobs times the factor of their establishment.
    """
    with parted(frame, tables, questions, {}, factors, in_one_piece=True) as found:
        return {name: part.layout.cells(part.found.to_pyarrow()) for name, part in found.items()}
