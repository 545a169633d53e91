"""Count people in parts: every cell of the table is a block of its own, and a part is a range of cells.

No count depends on the people of another cell, and every combination of codes is a cell: how a table is cut follows
from its codes alone.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from sfumato.engine.cell_parts import Parted
from sfumato.engine.establishment_groups import located, place_in
from sfumato.engine.part_layout import PartLayout, number_of_parts
from sfumato.engine.question import SampleQuestion
from sfumato.engine.records import RecordTables
from sfumato.engine.samples import chosen, coded

if TYPE_CHECKING:
    import ibis.expr.types as ir


def is_plain_count(question: SampleQuestion) -> bool:
    """Whether a question about people asks for their number and nothing else."""
    return question.statistic == "count" and question.needs <= {"count"}


def people_parted(
    tables: RecordTables, questions: Mapping[str, SampleQuestion], parts: Mapping[str, int | None]
) -> dict[str, Parted]:
    """Cut the answer to every question into parts: as many as `parts` says at most, or as its cells need.

    Each table reads its own columns of the records, when its first part is asked for: what two large tables have in
    common would often be as large as the records.
    """
    return {name: _parted(tables, question, parts.get(name)) for name, question in questions.items()}


def _parted(tables: RecordTables, question: SampleQuestion, parts: int | None) -> Parted:
    size = ceil(question.cells / number_of_parts(question.cells, parts))
    layout = PartLayout(
        dimensions=tuple(replace(dimension, public=True) for dimension in question.groups),
        starts=tuple(range(0, question.cells, size)),
        columns=("count",),
        every_block=True,
    )
    return Parted(layout=layout, found=_cells(tables, question, size), tables=tables)


def _cells(tables: RecordTables, question: SampleQuestion, size: int) -> "ir.Table":
    """The cells that hold people, in parts of `size` cells."""
    import ibis

    records = chosen(coded(tables.records, question), question).select(*(d.name for d in question.groups))
    placed = located(tables, records, {dimension.name: dimension.codes for dimension in question.groups})
    placed = placed.filter(*(placed[d.name] >= 0 for d in question.groups))  # codes left out are in no cell
    people = placed.select(_block=place_in(question.groups, placed))
    found = people.group_by("_block").agg(_count=people.count())
    return found.select(
        _part=(found["_block"] // size).cast("int32"),
        _block=found["_block"],
        _inside=ibis.literal(0, "int64"),
        _count=found["_count"].cast("int64"),
    )
