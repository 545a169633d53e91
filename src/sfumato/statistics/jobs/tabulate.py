"""Tabulate counts of jobs, whole or in chunks: establishments to the cells of every table."""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
from sfumato.engine.data import OpenJobs
from sfumato.engine.headcounts import all_workers, establishments_with_heads, workers_by_place
from sfumato.engine.lacking import need
from sfumato.engine.panel_jobs import jobs_at, register_at
from sfumato.engine.query import Rows, texts, total
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.measures.views import Strata
from sfumato.noise.factors import Factors
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.sparse_laplace import Workforces
from sfumato.statistics.jobs.tabulate_establishments import EstablishmentGroups, establishment_groups, needed_factors

Name = TypeVar("Name", bound=Hashable)
"""Of questions, whatever their caller calls them."""

# Tabulate a table in parts: one table of the engine holds all that the parts need, and is never held as a whole.


@contextmanager
def parted(
    frame: Frame,
    tables: Tables,
    questions: Mapping[Name, Question],
    parts: Mapping[Name, int | None],
    factors: Factors | None = None,
    *,
    in_one_piece: bool = False,
) -> Iterator[dict[Name, Chunked]]:
    """Cut the answer to every question into parts: as many as `parts` says, or as its listed cells need.

    A large answer has as many as it needs even if `parts` says fewer; `in_one_piece` leaves every answer uncut.
    The jobs are scanned once for all questions, when the first of them is read. Codes are replaced by their places
    right where they are read: numbers are grouped several times as quickly as texts.
    """
    with ExitStack() as kept:
        frame, tables = kept.enter_context(as_jobs(frame, tables, questions))
        if frame.jobs.employees is None:
            count = partial(_of_jobs, kept.enter_context(establishment_groups(frame, tables, questions, factors)))
        else:
            count = partial(_of_register, frame, tables, needed_factors(frame, tables, questions, factors))
        found = {}
        for name, asked in questions.items():
            question = as_in(frame, asked)
            layout = _layout(frame, tables, question, parts.get(name), in_one_piece=in_one_piece)
            found[name] = Chunked(layout=layout, found=count(question, layout))
        yield found


def as_jobs(
    frame: Frame, tables: Tables, questions: Mapping[Any, Question]
) -> AbstractContextManager[tuple[Frame, Tables]]:
    """The data as jobs: of a panel, those at the periods that questions are about."""
    return jobs_at(frame, tables, tuple(dict.fromkeys(code for one in questions.values() for code in one.periods)))


def as_in(frame: Frame, question: Question) -> Question:
    """The question with dimensions that are public where the data say so."""
    return replace(question, by=tuple(replace(d, public=frame.is_known(d.name)) for d in question.by))


def _layout(frame: Frame, tables: Tables, question: Question, parts: int | None, *, in_one_piece: bool) -> ChunkLayout:
    """How the answer to a question is cut."""
    layout = _uncut(frame, question)
    if in_one_piece or (parts == 1 and question.cells <= IN_ONE_PIECE):
        return layout
    return replace(layout, starts=_starts(layout, blocks_of(frame, tables, question), parts))


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
    """The establishments a question is about, of a panel in each period, with the workplace cell of each."""
    frame, tables = register_at(frame, tables, question.periods)
    attributes, engine = question.workplace_attributes(frame), tables.engine
    if tables.workplaces is not None and frame.workplaces is not None:
        table, key = tables.workplaces, frame.workplaces.key
        kept = table.select(_workplace=engine.q(key), **texts(table, attributes))
    else:
        # The attributes of an establishment are the same in all its rows (validated).
        table, key = tables.jobs, frame.jobs.workplace
        kept = table.select(_workplace=engine.q(key), **texts(table, attributes)).distinct()
    public = tuple(dimension for dimension in question.by if dimension.public)
    return _placed(kept.where(*_of_these(frame, tables, question)), public).select("_workplace", "_block")


def establishments_of(frame: Frame, tables: Tables, question: Question) -> Cells:
    """How many establishments each workplace cell has that has any, by the register alone: no job is looked at."""
    for name in (one for one in question.attributes if one != frame.panel_period):
        need(tables.jobs if tables.workplaces is None else tables.workplaces, "workplaces", name)
    found = blocks_of(frame, tables, question).group(["_block"], _establishments="count(*)").fetch()
    positions = found["_block"].to_numpy().astype(np.int64)
    order = np.argsort(positions)
    number = found["_establishments"].to_numpy().astype(np.int64)[order]
    return Cells(dimensions=question.by, positions=positions[order], columns={"establishments": number})


def _of_these(frame: Frame, tables: Tables, question: Question) -> list[str]:
    """The conditions for an establishment that a question is about."""
    q, among = tables.engine.q, tables.engine.among
    return [among(q(name), codes) for name, codes in question.where.items() if frame.is_known(name)]


def _placed(rows: Rows, public: tuple[Dimension, ...]) -> Rows:
    """Rows with the workplace cell of their texts; those with codes that the question leaves out are in none."""
    found = located(rows, {dimension.name: dimension.codes for dimension in public})
    found = found.where(*(f"{rows.engine.q(dimension.name)} >= 0" for dimension in public))
    return found.with_columns(_block=place_in(public, found))


def _with_chunks(blocks: Rows, layout: ChunkLayout) -> Rows:
    """The establishments with the part that their workplace cell belongs to."""
    if layout.parts == 1:
        return blocks.with_columns(_part="0")
    width = bucket_width(layout.blocks)
    buckets = np.arange(ceil(layout.blocks / width), dtype=np.int64)
    part = np.searchsorted(np.array(layout.starts), buckets * width, side="right") - 1
    lent = blocks.engine.lend(pa.table({"_bucket": buckets, "_part": part.astype(np.int32)}))
    return blocks.with_columns(_bucket=_bucket(blocks, width)).join(lent, ["_bucket"]).without("_bucket")


# The cells of jobs: establishments with their jobs beside the workplace cells that they belong to.


def _of_jobs(counted: EstablishmentGroups, question: Question, layout: ChunkLayout) -> Rows:
    places = _with_chunks(blocks_of(counted.frame, counted.tables, question), layout)
    if layout.inside:
        return _cells(counted, question, places, layout).union(_of_blocks(counted, question, places, layout))
    return _workplace_cells(counted, question, places, layout)


def _cells(counted: EstablishmentGroups, question: Question, places: Rows, layout: ChunkLayout) -> Rows:
    """Sum establishments to the cells that hold a job."""
    groups = chosen(counted, question)
    found = groups.select("_workplace", "_jobs", _inside=place_in(layout.inside, groups))
    if len(layout.inside) < len(question.worker_attributes(counted.frame)):
        found = found.group(["_workplace", "_inside"], _jobs=total("_jobs"))
    placed = _with_employers(counted, question, found.join(places, ["_workplace"]), layout)
    return _shaped(placed.group(["_part", "_block", "_inside"], **_sums(question, layout)), layout)


def _workplace_cells(counted: EstablishmentGroups, question: Question, places: Rows, layout: ChunkLayout) -> Rows:
    """Sum establishments to workplace cells: every one that has an establishment, with jobs or without."""
    groups = chosen(counted, question)
    if question.worker_attributes(counted.frame):
        groups = groups.group(["_workplace"], _jobs=total("_jobs"))
    placed = _with_employers(counted, question, places.join(groups, ["_workplace"], "left"), layout)
    sums = {"_establishments": "count(*)", **_sums(question, layout)}
    if "largest_employer" in layout.columns:
        sums["_largest_employer"] = "max(_total)"
    return _shaped(placed.group(["_part", "_block"], **sums).with_columns(_inside="0"), layout)


def _with_employers(counted: EstablishmentGroups, question: Question, placed: Rows, layout: ChunkLayout) -> Rows:
    """Rows of establishments with what the columns need to know of each: its whole workforce, its factor."""
    needs_total = "count_below_threshold" in layout.columns or (
        "largest_employer" in layout.columns and not layout.inside
    )
    if needs_total:
        placed = placed.join(employers(counted, question), ["_workplace"], "left")
    if "distorted" in layout.columns and counted.factors is not None:
        placed = placed.join(counted.factors, ["_workplace"], "left")
    return placed


def _sums(question: Question, layout: ChunkLayout, jobs: str = "_jobs") -> dict[str, str]:
    """What is added up of the establishments of a cell; one without jobs counts for nothing."""
    sums = {"_count": total(jobs), "_largest": f"max({jobs})"}
    if "count_below_threshold" in layout.columns:
        sums["_count_below_threshold"] = total(f"CASE WHEN _total < {question.threshold} THEN {jobs} ELSE 0 END")
    if "distorted" in layout.columns:
        sums["_distorted"] = total(f"{jobs} * _factor")
    return sums


def chosen(counted: EstablishmentGroups, question: Question) -> Rows:
    """The groups of workers that a question is about, with their places in its own dimensions."""
    groups = counted.by(question.worker_attributes(counted.frame), question.measure)
    known, engine = counted.codes, counted.tables.engine
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


def employers(counted: EstablishmentGroups, question: Question) -> Rows:
    """The whole workforce of every establishment, or all that it adds to a total."""
    return counted.by((), question.measure).select("_workplace", _total="_jobs")


def _of_blocks(counted: EstablishmentGroups, question: Question, places: Rows, layout: ChunkLayout) -> Rows:
    """A row for every workplace cell that has an establishment, with what is the same in all its cells."""
    sums = {"_establishments": "count(*)"}
    if "largest_employer" in layout.columns:
        places = places.join(employers(counted, question), ["_workplace"], "left")
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


# The cells of a register: a row has an establishment with all its workers, so that nothing is counted before.


def _of_register(frame: Frame, tables: Tables, factors: Rows | None, question: Question, layout: ChunkLayout) -> Rows:
    """Sum a register to workplace cells, with columns for every worker cell, which then become rows of their own.

    Texts are grouped as they are: looking up the place of each takes longer, and there are far fewer groups.
    """
    rows = establishments_with_heads(frame, tables, question.workplace_attributes(frame))
    rows = rows.where(*_of_these(frame, tables, question))
    if "distorted" in layout.columns and factors is not None:
        rows = rows.join(factors, ["_workplace"], "left")
    workers = workers_by_place(frame, layout.inside, question.where)
    rows = rows.with_columns(_total=all_workers(frame), **{f"_jobs{place}": heads for place, heads in workers.items()})
    sums = {"_establishments": "count(*)", "_largest_employer": "max(_total)"}
    for place in workers:
        sums |= {f"{name}{place}": made for name, made in _sums(question, layout, f"_jobs{place}").items()}
    found = rows.group([dimension.name for dimension in layout.public], **sums).where("_establishments > 0")
    blocks = _with_chunks(_placed(found, layout.public), layout)
    places = [*workers, *([THE_BLOCK] if layout.inside else [])]
    each = blocks.join(tables.engine.lend(pa.table({"_inside": pa.array(places, pa.int64())})), [], "cross")
    made = {
        name: " ".join(["CASE _inside", *(f"WHEN {place} THEN {name}{place}" for place in workers), "END"])
        for name in _sums(question, layout)
    }
    if not layout.inside:  # a cell is a block
        return _shaped(each.with_columns(**made), layout)
    of_blocks = ("_establishments", "_largest_employer")
    made |= {name: f"CASE WHEN _inside = {THE_BLOCK} THEN {name} END" for name in of_blocks}
    return _shaped(each.with_columns(**made), layout).where(f"_inside = {THE_BLOCK} OR _count > 0")


# Tabulate: jobs to establishments once, establishments to the cells of every table.


def tabulate(
    frame: Frame,
    tables: Tables,
    questions: Mapping[Name, Question],
    factors: Factors | None = None,
) -> dict[Name, Cells]:
    """Answer every question with its cells: `count` of jobs, `largest` establishment, number of `establishments`.

    The jobs are scanned once for all questions: they are counted by establishment and by the worker attributes that
    any question uses. Every cell that has an establishment is listed, also when it has no jobs. In a joined table
    nothing tells where establishments without jobs are, so there every combination is listed and the number of
    establishments, which would count only those with jobs, is not given; the same where a question asks for every cell.
    Questions that need `distorted` get the sum of jobs times the factor of their establishment. A question with a
    measure has what jobs have of it in the place of their number, each cut at its cap.
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
    public = tuple(dimension for dimension in question.by if frame.is_known(dimension.name))
    where = {name: codes for name, codes in question.where.items() if frame.is_known(name)}
    asked = Question(by=(*public, attribute), where=where, population=question.population, periods=question.periods)
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


def strata_by(data: OpenJobs, question: Question, attribute: str, codelist: Codelist, cells: Cells) -> Strata:
    """The class of a public attribute that every cell belongs to, whether it is a dimension of the table or not."""
    own = next((found for found in question.by if found.name == attribute), None)
    dimension = own or Dimension(name=attribute, codes=codelist.codes)
    labels = dict(zip(codelist.codes, codelist.labels, strict=True))
    return Strata(
        attribute=attribute,
        labels=(*(labels.get(code, code) for code in dimension.codes), *FURTHER_STRATA),
        classes=strata(data.frame, data.tables, question, dimension, cells),
    )


# Workforces of every establishment by worker cells, for methods that look at each of them.


def workforces(frame: Frame, tables: Tables, questions: Mapping[str, Question]) -> Iterator[tuple[str, Workforces]]:
    """The workforces that every question is about; the jobs are scanned once for all questions.

    Cells without any job have no row: their number may be far beyond what could be listed.
    """
    with (
        as_jobs(frame, tables, questions) as (seen, at),
        establishment_groups(seen, at, questions, None) as counted,
    ):
        for name, question in questions.items():
            yield name, _workforces(counted, as_in(seen, question))


def _workforces(counted: EstablishmentGroups, question: Question) -> Workforces:
    places = blocks_of(counted.frame, counted.tables, question)
    with places.join(employers(counted, question), ["_workplace"], "left").kept() as placed:
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
