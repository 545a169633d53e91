"""Tabulate: jobs to establishments once, establishments to the cells of every table."""

from collections.abc import Mapping

from sfumato.cells import Cells
from sfumato.engine.cell_parts import parted
from sfumato.engine.connect import Tables
from sfumato.engine.question import Question
from sfumato.frame import Frame
from sfumato.noise.factors import Factors


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
