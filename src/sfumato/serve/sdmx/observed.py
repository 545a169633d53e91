"""The status of observations, in the codes of SDMX."""

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.model import Answer
from sfumato.serve.status import APART, BEYOND, NO_FIGURE, RELIABILITY, SAID, STATUSES, CellStatus

_NORMAL, _MISSING, _UNTOLD = "A", "M", "O"
_LETTERS = {
    "": _NORMAL,
    "suppressed": "Q",
    "synthesised": "E",
    "not available": _MISSING,
    "not defined": _MISSING,
    "mostly perturbation": "U",
    **dict.fromkeys(APART.values(), _NORMAL),  # of ad-hoc tables, which are not served as SDMX
    "too few records": "U",
    "too uncertain": "U",
    "below": "D",
    "above": "D",
    "error unknown": "Q",
    NO_FIGURE.text: _MISSING,
    BEYOND.text: _UNTOLD,
    **{status.text: "U" for status in RELIABILITY[1:]},
}
# An observation has one status: that of the bundle goes before what its error says.
_BY_NUMBER = np.array([_LETTERS[said.parts[0].text] if said.parts else _NORMAL for said in SAID])
NAMES = {
    _NORMAL: "Normal value",
    "D": "Definition differs",
    "E": "Estimated value",
    _MISSING: "Missing value; data cannot exist",
    _UNTOLD: "Missing value",
    "Q": "Missing value; suppressed",
    "U": "Low reliability",
}
"""The statuses that occur, under the codes and names of the SDMX list of observation statuses."""


def meaning(letter: str) -> str:
    """What a status says of a figure, in the words that every interface has for it."""

    def said(status: CellStatus) -> bool:
        return _LETTERS[status.text] == letter and bool(status.meaning) and status.text not in APART.values()

    return "; or ".join(status.meaning for status in (*STATUSES, NO_FIGURE, BEYOND, *RELIABILITY) if said(status))


def statuses(answer: Answer) -> NDArray[np.str_]:
    """The code of every figure's status, in the order of the answer's values: the metric changes fastest."""
    return _BY_NUMBER[answer.said()].ravel()
