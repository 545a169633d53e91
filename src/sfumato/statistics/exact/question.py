"""What tables of true numbers ask of the data: values, and who contributes how much to every cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from sfumato.cells import Dimension
from sfumato.frame.levels import TOTAL


@dataclass(frozen=True, kw_only=True)
class ExactQuestion:
    """Count jobs or records, or add up a measure of them, `by` some attributes, with the largest contributions.

    With `margins` every dimension but the period ends with the code "total". The columns of the answer are in
    `sfumato.statistics.exact.contributions`.
    """

    by: tuple[Dimension, ...]
    measure: str | None = None
    """None counts."""
    margins: bool = False
    period: str | None = None
    """The attribute that no total is made over: a unit has a record in each of its codes."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    units: tuple[str, ...] = ()
    """The names of the levels of units that rules look at, the smallest first."""
    holdings: tuple[str, ...] = ()
    """Of jobs, the attributes of workplaces that name the larger ones."""
    top: int = 2
    """How many of the largest contributions are added up."""
    codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """All codes of every attribute in `by` and `where`, those that are left out too."""
    merged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of attributes whose codes may be merged, the levels above them, the finest first; their codes are in `by` too."""
    filters: tuple[Dimension, ...] = ()
    """Where codes may be merged, the attributes in `where` with all their codes."""
    above: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    """The code of the next level that each code lies in, by pairs of an attribute or level and the next."""
    lists_establishments: bool = True
    """Whether the number of establishments is told, of jobs."""
    of_workplaces: bool = True
    """Of jobs, whether all filters are public: the establishments that are told then have their jobs in the cells."""
    contributors: bool = True
    """Whether rules look at contributions at all."""

    @property
    def inner(self) -> tuple[Dimension, ...]:
        """The dimensions without the codes of totals."""
        if self.merged:
            return tuple(replace(one, codes=self.codes[one.name]) for one in self.by)
        return tuple(
            replace(one, codes=one.codes[:-1]) if self.margins and one.name != self.period else one for one in self.by
        )

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that decides in which cell something is, each once."""
        return tuple(dict.fromkeys([*(dimension.name for dimension in self.by), *self.where]))

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return frozenset((*self.attributes, *self.holdings, *filter(None, [self.measure])))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return prod(map(len, self.by))


def with_total(dimension: Dimension) -> Dimension:
    """A dimension with the code of its total behind the others."""
    return replace(dimension, codes=(*dimension.codes, TOTAL))
