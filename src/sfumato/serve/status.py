"""What can be said of a cell beside its value, with the symbol that stands for it in every format."""

from dataclasses import dataclass

from sfumato.cube.answer import STATUSES as OF_CUBES
from sfumato.methods.status import STATUSES as OF_TABLES


@dataclass(frozen=True, kw_only=True)
class CellStatus:
    """A status: the word of the bundle, a symbol, and an explanation for readers."""

    text: str
    symbol: str
    meaning: str
    hides: bool = False
    """Whether there is no value."""


STATUSES = (
    CellStatus(text="", symbol="", meaning=""),
    CellStatus(text="suppressed", symbol="..", meaning="not published: the figure would reveal too much", hides=True),
    CellStatus(text="synthesised", symbol="s", meaning="drawn from a model of the other cells"),
    CellStatus(text="not available", symbol="...", meaning="not available: the data do not reach so far", hides=True),
    CellStatus(
        text="mostly perturbation",
        symbol="p",
        meaning="use with care: most of the error comes from the protection",
    ),
    CellStatus(text="too few records", symbol="f", meaning="use with care: too few records are behind this figure"),
    CellStatus(text="not defined", symbol="-", meaning="no such figure: nothing to divide by", hides=True),
    CellStatus(text="too uncertain", symbol="u", meaning="use with care: the error is large beside the figure"),
)
"""By its number; the first says nothing."""
NO_FIGURE = CellStatus(text="no figure", symbol=".", meaning="no such figure for this cell")
"""Of an error or bound that a cell does not have: no limit, or beyond the scale."""
NUMBERS = {status.text: number for number, status in enumerate(STATUSES)}

if not {*OF_TABLES, *OF_CUBES} <= NUMBERS.keys():
    raise AssertionError("every status of a bundle needs a symbol")
