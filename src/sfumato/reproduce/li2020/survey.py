"""The records of the evaluation: as many as published, over as many cells. The real ones are not at hand."""

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import Dimension
from sfumato.cube.cube import Cube
from sfumato.cube.tabulated import Chunk, tabulated
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.li2020.published import CARDINALITIES, RECORDS

_WORDS = 2.0**64
_WEIGHT = 1_000_000


def survey(seed: int, *, records: int = RECORDS) -> Cube:
    """A cube of so many records; the second category of a variable is half as frequent as the first, and so on."""
    positions = np.zeros(records, dtype=np.int64)
    for place, categories in enumerate(CARDINALITIES):
        positions = positions * categories + _codes(categories, records, Repeatable(seed, "li2020", "variable", place))
    dimensions = tuple(
        Dimension(name=f"variable {place + 1}", codes=tuple(str(code + 1) for code in range(categories)))
        for place, categories in enumerate(CARDINALITIES)
    )
    return tabulated(dimensions, [Chunk(positions=positions, weights=np.full(records, _WEIGHT))])


def _codes(categories: int, records: int, chance: Repeatable) -> NDArray[np.int64]:
    shares = 1 / np.arange(1, categories + 1)
    upto = np.cumsum(shares / shares.sum())
    uniform = chance.words(records) / _WORDS
    return np.minimum(np.searchsorted(upto, uniform, side="right"), categories - 1).astype(np.int64)
