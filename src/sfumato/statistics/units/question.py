"""What totals and means of the values of units ask of records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from sfumato.cells import Dimension

HEAVIEST, RECORDS = "heaviest", "records"
"""The columns with the largest weight of a cell in whole numbers, and with its records or what they weigh."""
SUM = "sum_"
"""What the names of columns begin with that keep what noise is added to, where `count` has what is made of it."""
NEGATIVE = "negative_"
"""What the names of columns begin with that are about what is below 0, without its sign."""


@dataclass(frozen=True, kw_only=True)
class UnitQuestion:
    """Sum a measure of records `by` public attributes, and say how much the largest unit has of every cell."""

    by: tuple[Dimension, ...]
    measure: str
    measured: str
    """The measure with what makes its values and whose they are, by which floors are kept apart."""
    floor: int
    """Up to which a unit is hidden whole, in the smallest unit."""
    money: str
    """What one is of what is added up, in words."""
    unit: str
    """The column that names the units whose values are hidden."""
    unit_name: str
    """Their permanent name."""
    several: bool
    """Whether a unit may have several records in a cell: larger units, and not those of the records."""
    apart: bool
    """Whether a unit may have records in several cells."""
    signed: bool
    """Whether values may be below 0."""
    weight: str | None = None
    public: bool = False
    """Whether everyone may know which units have a record."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return frozenset([*(dimension.name for dimension in self.by), *self.where, self.measure])

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of cells and of filters, each once."""
        return tuple(dict.fromkeys([*(dimension.name for dimension in self.by), *self.where]))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return prod(map(len, self.by))
