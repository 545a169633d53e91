"""The status of observations, in the codes of SDMX."""

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.model import Answer, Column, Metric
from sfumato.serve.status import NO_FIGURE, STATUSES, CellStatus

_NORMAL, _MISSING = "A", "M"
_LETTERS = {
    "": _NORMAL,
    "suppressed": "Q",
    "synthesised": "E",
    "not available": _MISSING,
    "not defined": _MISSING,
    "mostly perturbation": "U",
    "too few records": "U",
    "too uncertain": "U",
    NO_FIGURE.text: _MISSING,
}
_BY_NUMBER = np.array([_LETTERS[status.text] for status in STATUSES])
_HIDING = np.array([status.hides for status in STATUSES])
NAMES = {
    _NORMAL: "Normal value",
    "E": "Estimated value",
    _MISSING: "Missing value",
    "Q": "Missing value; suppressed",
    "U": "Low reliability",
}
"""The statuses that occur, under the codes and names of the SDMX list of observation statuses."""


def meaning(letter: str) -> str:
    """What a status says of a figure, in the words that every interface has for it."""

    def said(status: CellStatus) -> bool:
        return _LETTERS[status.text] == letter and bool(status.meaning)

    return "; or ".join(status.meaning for status in (*STATUSES, NO_FIGURE) if said(status))


def statuses(answer: Answer) -> NDArray[np.str_]:
    """The code of every figure's status, in the order of the answer's values: the metric changes fastest."""
    columns = [_of_column(m, column) for m, column in zip(answer.metrics, answer.columns, strict=True)]
    return np.stack(columns, axis=-1).ravel()


def _of_column(metric: Metric, column: Column) -> NDArray[np.str_]:
    shape = column.values.shape
    numbers = np.zeros(shape, dtype=np.int8) if column.status is None else column.status
    # An error or bound is marked only where there is none: its value has the mark.
    letters = _BY_NUMBER[numbers] if metric.kind == "value" else np.full(shape, _NORMAL)
    if column.missing is None:
        return letters
    return np.where(column.missing, np.where(_HIDING[numbers], _BY_NUMBER[numbers], _MISSING), letters)
