"""What a release asks of its records for a cube, and what these add up to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from sfumato.cells import Dimension
from sfumato.frame.records import UnitLimit


@dataclass(frozen=True, kw_only=True)
class CubeQuestion:
    """Count records, weigh them and sum measures in every combination of the codes of some attributes."""

    by: tuple[Dimension, ...]
    measures: tuple[str, ...] = ()
    weight_unit: int | None = None
    """What every weight is rounded to a multiple of first; None leaves them as they are, in millionths."""
    limit: UnitLimit | None = None
    """None counts all records."""

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return frozenset([*(dimension.name for dimension in self.by), *self.measures])

    @property
    def cells(self) -> int:
        """The number of cells, empty ones included."""
        return prod(map(len, self.by))


@dataclass(frozen=True, kw_only=True)
class RecordTotals:
    """What a cube has to hold, all records together; confidential."""

    records: int
    weights: float
    largest_weight: float
    measures: Mapping[str, float] = field(default_factory=dict)
    """Of each measure times the weight."""
    largest: Mapping[str, float] = field(default_factory=dict)
    """The largest of these of one record."""
