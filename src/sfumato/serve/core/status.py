"""What can be said of a cell beside its value, with the symbol that stands for it in every format."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.method import STATUSES as OF_TABLES
from sfumato.statistics.cube.cube_query import STATUSES as OF_CUBES

CAUTION, UNRELIABLE = 25, 50
"""Percent of a figure from which on its error is marked, once and twice."""


@dataclass(frozen=True, kw_only=True)
class CellStatus:
    """A status: the word of the bundle, a symbol, and an explanation for readers."""

    text: str
    symbol: str
    meaning: str
    hides: bool = False
    """Whether there is no value."""
    bounds: bool = False
    """Whether the value is a bound, which has no error."""


_PERTURBED = CellStatus(
    text="mostly perturbation", symbol="p", meaning="use with care: most of the error comes from the protection"
)
_FEW_UNITS = CellStatus(
    text="few units apart",
    symbol="d",
    meaning="differs by few units, or by none, from a cell of this answer or one given before: the difference may tell "
    "of them",
)
_BOTH = CellStatus(
    text=f"{_PERTURBED.text}, {_FEW_UNITS.text}",
    symbol=f"{_PERTURBED.symbol} {_FEW_UNITS.symbol}",
    meaning=f"{_PERTURBED.meaning}; {_FEW_UNITS.meaning}",
)
STATUSES = (
    CellStatus(text="", symbol="", meaning=""),
    CellStatus(text="suppressed", symbol="..", meaning="not published: the figure would reveal too much", hides=True),
    CellStatus(text="synthesised", symbol="s", meaning="drawn from a model of the other cells"),
    CellStatus(
        text="not available",
        symbol="...",
        meaning="not available: the data do not reach so far, or the code is merged into another",
        hides=True,
    ),
    _PERTURBED,
    CellStatus(text="too few records", symbol="f", meaning="use with care: too few records are behind this figure"),
    CellStatus(text="not defined", symbol="-", meaning="no such figure: nothing to divide by", hides=True),
    CellStatus(text="too uncertain", symbol="u", meaning="use with care: the error is large beside the figure"),
    _FEW_UNITS,
    _BOTH,
    CellStatus(
        text="below", symbol="<", meaning="less than this value, by how much nothing published tells", bounds=True
    ),
    CellStatus(
        text="above", symbol=">=", meaning="this value or more, by how much nothing published tells", bounds=True
    ),
    CellStatus(
        text="error unknown",
        symbol="?",
        meaning="not published: nothing published tells how far the figure is off",
        hides=True,
    ),
    CellStatus(text="too small", symbol="w", meaning="use with care: the weighted count behind this figure is small"),
)
"""By its number; the first says nothing."""
BOUNDING = np.array([status.bounds for status in STATUSES])
"""By the number of a status, whether the value is a bound."""
RELIABILITY = (
    CellStatus(text="", symbol="", meaning=""),
    CellStatus(
        text=f"error {CAUTION} % or more",
        symbol="*",
        meaning=f"use with caution: the error is {CAUTION} % or more of the figure",
    ),
    CellStatus(
        text=f"error {UNRELIABLE} % or more or beyond the scale",
        symbol="**",
        meaning=f"too uncertain for most uses: the error is {UNRELIABLE} % or more of the figure, or beyond the scale",
    ),
)
"""What the error of a value says of it, by how many of the bounds it reaches."""
NO_FIGURE = CellStatus(text="no figure", symbol=".", meaning="no such figure for this cell", hides=True)
"""Of a figure that a cell does not have."""
BEYOND = CellStatus(
    text="beyond the scale",
    symbol=">",
    meaning="beyond the scale: too large to tell, without an upper limit, or not known",
    hides=True,
)
"""Of an error or an end of an interval that a value has, and that cannot be put into a figure."""
NUMBERS = {status.text: number for number, status in enumerate(STATUSES)}
APART = {"": _FEW_UNITS.text, _PERTURBED.text: _BOTH.text}
"""By its status otherwise, what an ad-hoc cell has that differs by few units from another."""

if not {*OF_TABLES, *OF_CUBES} <= NUMBERS.keys():
    raise AssertionError("every status of a bundle needs a symbol")


@dataclass(frozen=True, kw_only=True)
class Remark:
    """Everything that is said of one figure: its status, and what its error says of it."""

    parts: tuple[CellStatus, ...]
    mark: int = 0
    """Its place in `RELIABILITY`."""

    @property
    def symbol(self) -> str:
        """The symbols, side by side."""
        return " ".join(part.symbol for part in self.parts)

    @property
    def text(self) -> str:
        """The words, one after the other."""
        return ", ".join(part.text for part in self.parts)

    @property
    def meaning(self) -> str:
        """The explanations, one after the other."""
        return "; ".join(part.meaning for part in self.parts)

    @property
    def hides(self) -> bool:
        """Whether there is no figure."""
        return any(part.hides for part in self.parts)


def _remarks() -> Iterator[Remark]:
    for mark, reliability in enumerate(RELIABILITY):
        for status in STATUSES:
            own = (_PERTURBED, _FEW_UNITS) if status is _BOTH else (status,)
            yield Remark(parts=tuple(part for part in (*own, reliability) if part.symbol), mark=mark)
    yield Remark(parts=(NO_FIGURE,))
    yield Remark(parts=(BEYOND,))


REMARKS = tuple(_remarks())
"""By the number of a figure: that of its status, and `len(STATUSES)` more for every mark; then what is not there."""
HAS_NONE, IS_BEYOND = len(REMARKS) - 2, len(REMARKS) - 1
SYMBOLS = tuple(remark.symbol for remark in REMARKS)
"""By the number of a figure."""
