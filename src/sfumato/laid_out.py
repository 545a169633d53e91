"""A stored answer in the order in which a release asks for it: one question has one answer, in any order."""

import numpy as np

from sfumato.cells import Cells
from sfumato.plan import PlannedTable
from sfumato.statistics.panel.question import PairQuestion


def as_asked(answer: Cells, planned: PlannedTable) -> Cells:
    """The cells of an answer in the order of the dimensions and codes of a table."""
    asked = planned.question
    laid_out = answer.laid_out(asked.by)
    if laid_out is answer or not isinstance(asked, PairQuestion) or asked.directed:
        return laid_out
    # Pairs that are not directed are listed once, and which end comes first depends on the order.
    ends = len(asked.attributes)
    classes, others = (
        int(np.prod(list(map(len, part)), initial=1)) for part in (asked.by[:ends], asked.by[2 * ends :])
    )
    pairs, other = np.divmod(laid_out.positions, others)
    first, second = np.divmod(pairs, classes)
    positions = (np.minimum(first, second) * classes + np.maximum(first, second)) * others + other
    order = np.argsort(positions, kind="stable")
    columns = {name: column[order] for name, column in laid_out.columns.items()}
    return Cells(dimensions=laid_out.dimensions, positions=positions[order], columns=columns)
