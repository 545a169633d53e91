"""What a method of protection has to say and do."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import Guarantee

LARGEST = "its largest establishment"
OF_TABLE = "of_table"
"""Marks a parameter of a method that follows from its table, in the metadata of the field."""


ADDED = "added"
"""Marks a parameter that earlier versions did not have, in the metadata of the field."""


def of_table(default: Any) -> Any:
    """A parameter that follows from the table a method protects, and that no release file can set."""
    return field(default=default, metadata={OF_TABLE: True})


def added(default: Any) -> Any:
    """A parameter that earlier versions did not have: at its default a question keeps the name it had without it."""
    return field(default=default, repr=False, metadata={ADDED: True})


@dataclass(frozen=True, kw_only=True)
class PlannedError:
    """The mean absolute error of a cell, as far as it can be known before any data are read.

    It is `floor` where the largest establishment of the cell has at most `floor_size` workers, and above that
    at most `share` times the workers of the largest establishment, or of what `of` names instead.
    """

    floor: float
    floor_size: int
    share: float | None
    """None where it is confidential."""
    of: str = LARGEST

    @property
    def in_a_small_cell(self) -> str:
        """The floor in two digits, without powers of ten.

        >>> PlannedError(floor=147.2, floor_size=0, share=0.0).in_a_small_cell
        '150'
        """
        return f"{float(f'{self.floor:.2g}'):,.10g}"

    @property
    def in_a_large_cell(self) -> str:
        """The error above the floor, in words."""
        if self.share is None:
            return "confidential"
        return f"{self.share:.1%} of {self.of}" if self.share else "the same"


class Method(Protocol):
    """A method of protection with its parameters; `sfumato.methods.registry` lists those that exist.

    A method is a frozen value: it reads no file, no clock and no randomness but what `protect` is handed.
    What `guarantee`, `planned_error`, `published_error` and `published_interval` return may be published;
    what `expected_error` returns may not.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    """The columns that tabulation must supply for every cell."""

    @property
    def description(self) -> str:
        """What is done to the counts, as a clause of the privacy statement."""
        ...

    def guarantee(self) -> Guarantee:
        """What the whole protected table reveals at most, computed from the parameters alone."""
        ...

    def planned_error(self) -> PlannedError:
        """The mean absolute error of a cell, as far as the parameters alone tell."""
        ...

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell, computed from the true columns: confidential."""
        ...

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """The same dimensions and positions with the single column `value`, which may be published."""
        ...

    def published_error(self, values: Integers) -> Floats:
        """An estimate of the mean absolute error of every cell, computed from published values only.

        NaN where nothing may be told.
        """
        ...

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """The least and the greatest true value of every cell that its published value is consistent with.

        Both hold whole numbers. The second is NaN where the published value sets no upper limit.
        """
        ...


@runtime_checkable
class Biased(Protocol):
    """A method whose published values may be off on average, and that says by how much.

    Methods that do not satisfy it are unbiased: sums of their published values are right on average.
    """

    @property
    def unbiased(self) -> bool:
        """Whether these parameters leave no bias but that of rounding."""
        ...

    def expected_bias(self, cells: Cells) -> Floats:
        """The mean of the published value less the true one, from the true columns: confidential."""
        ...


class MethodClass(Protocol):
    """A class of methods, as the registry holds it: a name, the needed columns, and a constructor."""

    @property
    def name(self) -> str:
        """The name a release file uses."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """The columns that tabulation must supply for every cell."""
        ...

    def __call__(self, *, alpha: Fraction, epsilon: Fraction, worker_cells: int = 0, **options: Any) -> Method:
        """The method at these parameters, or a MethodError that names the ones that exist."""
        ...
