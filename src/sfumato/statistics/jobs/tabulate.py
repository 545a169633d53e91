"""Tabulate counts of jobs, whole or in chunks: establishments to the cells of every table."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import ceil

import numpy as np
import pyarrow as pa

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
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
from sfumato.engine.connect import Tables
from sfumato.engine.query import Rows, texts, total
from sfumato.frame import Frame
from sfumato.noise.factors import Factors
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate_establishments import EstablishmentGroups, establishment_groups

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
            name: _parted(counted, as_in(frame, asked), parts.get(name), in_one_piece=in_one_piece)
            for name, asked in questions.items()
        }


def as_in(frame: Frame, question: Question) -> Question:
    """The question with dimensions that are public where the data say so."""
    return replace(question, by=tuple(replace(d, public=frame.is_public(d.name)) for d in question.by))


def _parted(counted: EstablishmentGroups, question: Question, parts: int | None, *, in_one_piece: bool) -> Chunked:
    blocks = blocks_of(counted.frame, counted.tables, question)
    layout = _uncut(counted.frame, question)
    if not (in_one_piece or (parts == 1 and question.cells <= IN_ONE_PIECE)):
        layout = replace(layout, starts=_starts(layout, blocks, parts))
    places = _with_chunks(blocks, layout)
    if layout.inside:
        found = _cells(counted, question, places, layout).union(_of_blocks(counted, places, layout))
    else:
        found = _workplace_cells(counted, question, places, layout)
    return Chunked(layout=layout, found=found)


def _uncut(frame: Frame, question: Question) -> ChunkLayout:
    """The whole table as a single part."""
    needed = sorted(question.needs - {"count", "largest", "establishments", "remainder"})
    every_block = frame.joined or question.every_cell
    known = () if every_block else ("establishments",)
    return ChunkLayout(
        dimensions=question.by,
        starts=(0,),
        columns=("count", "largest", *known, *needed),
        every_block=every_block,
    )


def _starts(whole: ChunkLayout, blocks: Rows, parts: int | None) -> tuple[int, ...]:
    """Cut the table into parts by the number of listed blocks, which is public, in ranges of neighbouring ones."""
    width = bucket_width(whole.blocks)
    counted = np.full(ceil(whole.blocks / width), width, dtype=np.int64)
    if whole.every_block:
        counted[-1] = whole.blocks - width * (len(counted) - 1)
    else:
        listed = blocks.select("_block", _bucket=_bucket(blocks, width)).distinct()
        found = listed.group(["_bucket"], _blocks="count(*)").fetch()
        counted[:] = 0
        counted[found["_bucket"].to_numpy()] = found["_blocks"].to_numpy()
    return cut(counted.tolist(), width=width, cells_of_a_block=whole.width, parts=parts)


def _bucket(blocks: Rows, width: int) -> str:
    return f"CAST({blocks.engine.quotient('_block', width)} AS BIGINT)"


def blocks_of(frame: Frame, tables: Tables, question: Question) -> Rows:
    """The establishments a question is about, each with the workplace cell it belongs to."""
    attributes, engine = question.workplace_attributes(frame), tables.engine
    if tables.workplaces is not None and frame.workplaces is not None:
        table, key = tables.workplaces, frame.workplaces.key
        kept = table.select(_workplace=engine.q(key), **texts(table, attributes))
    else:
        # The attributes of an establishment are the same in all its rows (validated).
        table, key = tables.jobs, frame.jobs.workplace
        kept = table.select(_workplace=engine.q(key), **texts(table, attributes)).distinct()
    where = {name: codes for name, codes in question.where.items() if frame.is_public(name)}
    kept = kept.where(*(engine.among(engine.q(name), codes) for name, codes in where.items()))
    public = tuple(dimension for dimension in question.by if dimension.public)
    placed = located(kept, {dimension.name: dimension.codes for dimension in public})
    # Codes that the question leaves out are in no cell.
    placed = placed.where(*(f"{engine.q(dimension.name)} >= 0" for dimension in public))
    return placed.select("_workplace", _block=place_in(public, placed))


def _with_chunks(blocks: Rows, layout: ChunkLayout) -> Rows:
    """The establishments with the part that their workplace cell belongs to."""
    if layout.parts == 1:
        return blocks.with_columns(_part="0")
    width = bucket_width(layout.blocks)
    buckets = np.arange(ceil(layout.blocks / width), dtype=np.int64)
    part = np.searchsorted(np.array(layout.starts), buckets * width, side="right") - 1
    lent = blocks.engine.lend(pa.table({"_bucket": buckets, "_part": part.astype(np.int32)}))
    return blocks.with_columns(_bucket=_bucket(blocks, width)).join(lent, ["_bucket"]).without("_bucket")


def _cells(counted: EstablishmentGroups, question: Question, places: Rows, layout: ChunkLayout) -> Rows:
    """Sum establishments to the cells that hold a job."""
    groups = chosen(counted, question)
    found = groups.select("_workplace", "_jobs", _inside=place_in(layout.inside, groups))
    if len(layout.inside) < len(question.worker_attributes(counted.frame)):
        found = found.group(["_workplace", "_inside"], _jobs=total("_jobs"))
    placed = _with_employers(counted, found.join(places, ["_workplace"]), layout)
    return _shaped(placed.group(["_part", "_block", "_inside"], **_sums(question, layout)), layout)


def _workplace_cells(counted: EstablishmentGroups, question: Question, places: Rows, layout: ChunkLayout) -> Rows:
    """Sum establishments to workplace cells: every one that has an establishment, with jobs or without."""
    groups = chosen(counted, question)
    if question.worker_attributes(counted.frame):
        groups = groups.group(["_workplace"], _jobs=total("_jobs"))
    placed = _with_employers(counted, places.join(groups, ["_workplace"], "left"), layout)
    sums = {"_establishments": "count(*)", **_sums(question, layout)}
    if "largest_employer" in layout.columns:
        sums["_largest_employer"] = "max(_total)"
    return _shaped(placed.group(["_part", "_block"], **sums).with_columns(_inside="0"), layout)


def _with_employers(counted: EstablishmentGroups, placed: Rows, layout: ChunkLayout) -> Rows:
    """Rows of establishments with what the columns need to know of each: its whole workforce, its factor."""
    needs_total = "count_below_threshold" in layout.columns or (
        "largest_employer" in layout.columns and not layout.inside
    )
    if needs_total:
        placed = placed.join(employers(counted), ["_workplace"], "left")
    if "distorted" in layout.columns and counted.factors is not None:
        placed = placed.join(counted.factors, ["_workplace"], "left")
    return placed


def _sums(question: Question, layout: ChunkLayout) -> dict[str, str]:
    """What is added up of the establishments of a cell; one without jobs counts for nothing."""
    sums = {"_count": total("_jobs"), "_largest": "max(_jobs)"}
    if "count_below_threshold" in layout.columns:
        sums["_count_below_threshold"] = total(f"CASE WHEN _total < {question.threshold} THEN _jobs ELSE 0 END")
    if "distorted" in layout.columns:
        sums["_distorted"] = total("_jobs * _factor")
    return sums


def chosen(counted: EstablishmentGroups, question: Question) -> Rows:
    """The groups of workers that a question is about, with their places in its own dimensions."""
    groups, known, engine = counted.by(question.worker_attributes(counted.frame)), counted.codes, counted.tables.engine
    for name, codes in question.where.items():
        if name in known:
            groups = groups.where(engine.among(engine.q(name), [known[name].index(code) for code in codes]))
    for dimension in question.by:
        name = dimension.name
        if dimension.public:
            continue
        if dimension.codes == known[name]:
            groups = groups.where(f"{engine.q(name)} >= 0")
            continue
        before = pa.array([known[name].index(code) for code in dimension.codes], pa.int32())
        lent = engine.lend(pa.table({name: before, "_at": np.arange(len(dimension), dtype=np.int32)}))
        others = [other for other in groups.columns if other != name]
        groups = groups.join(lent, [name]).select(*others, **{name: "_at"})
    return groups


def employers(counted: EstablishmentGroups) -> Rows:
    """The whole workforce of every establishment."""
    return counted.by(()).select("_workplace", _total="_jobs")


def _of_blocks(counted: EstablishmentGroups, places: Rows, layout: ChunkLayout) -> Rows:
    """A row for every workplace cell that has an establishment, with what is the same in all its cells."""
    sums = {"_establishments": "count(*)"}
    if "largest_employer" in layout.columns:
        places = places.join(employers(counted), ["_workplace"], "left")
        sums["_largest_employer"] = "max(_total)"
    return _shaped(places.group(["_part", "_block"], **sums).with_columns(_inside=str(THE_BLOCK)), layout)


def _shaped(found: Rows, layout: ChunkLayout) -> Rows:
    """The columns that every row has, all of them whole numbers; 0 where a row is not about one."""
    named = [f"_{name}" for name in layout.columns]
    return found.select(
        _part="CAST(_part AS INT)",
        _block="CAST(_block AS BIGINT)",
        _inside="CAST(_inside AS BIGINT)",
        **{name: f"CAST({f'coalesce({name}, 0)' if name in found.columns else 0} AS BIGINT)" for name in named},
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
    establishments, which would count only those with jobs, is not given; the same where a question asks for every cell.
    Questions that need `distorted` get the sum of jobs times the factor of their establishment.
    """
    with parted(frame, tables, questions, {}, factors, in_one_piece=True) as found:
        return {name: part.layout.cells(part.found.fetch()) for name, part in found.items()}


# Strata: which code of a public attribute the establishments of a cell have.

FURTHER_STRATA = ("in several of these", "no establishment")
"""Cells whose establishments have different codes, and cells without any: they come after the codes."""


def strata(frame: Frame, tables: Tables, question: Question, attribute: Dimension, cells: Cells) -> Integers:
    """For every cell the place of the code that all its establishments have, or of one of `FURTHER_STRATA`."""
    if attribute.name in (dimension.name for dimension in question.by):
        return cells.codes(attribute.name).astype(np.int64)
    public = tuple(dimension for dimension in question.by if frame.is_public(dimension.name))
    where = {name: codes for name, codes in question.where.items() if frame.is_public(name)}
    asked = Question(by=(*public, attribute), where=where)
    found = tabulate(frame, tables, {"": asked})[""]
    block, code = np.divmod(found.positions, len(attribute))
    there = found["establishments" if "establishments" in found.columns else "count"] > 0
    blocks, first, codes = np.unique(block[there], return_index=True, return_counts=True)
    own = np.zeros(len(cells), dtype=np.int64)
    for dimension in public:
        own = own * len(dimension) + cells.codes(dimension.name)
    several, none = len(attribute), len(attribute) + 1
    stratum = np.where(codes == 1, code[there][first], several)
    at = np.minimum(np.searchsorted(blocks, own), max(len(blocks) - 1, 0))
    return np.where(blocks[at] == own, stratum[at], none) if len(blocks) else np.full(len(cells), none)
