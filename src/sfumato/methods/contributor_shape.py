"""The shape of a cell: how large its contributors are beside each other, which decides risk and loss."""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import MethodError

_WHERE = "contributors"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes of a cell's contributors, largest first, in any unit; `rest` is what all smaller ones add to the total.

    Order is by absolute value: a large loss counts like a large profit. All weights are one, and attackers know it.

    >>> Shape.read("5,90,5").sizes
    (90.0, 5.0, 5.0)
    """

    sizes: tuple[float, ...]
    rest: float = 0.0

    def __post_init__(self) -> None:
        sizes = tuple(sorted(self.sizes, key=abs, reverse=True))
        object.__setattr__(self, "sizes", sizes)
        if not sizes or not all(map(isfinite, (*sizes, self.rest, self.total))) or sizes[0] == 0 or self.total == 0:
            raise MethodError(
                _WHERE,
                expected="at least one number that is not 0, and a total that is not 0",
                found=f"{self} with a rest of {self.rest:g}",
                do="give the sizes of the largest contributors, such as 90,5,5",
            )

    @classmethod
    def read(cls, text: str, *, rest: float = 0.0) -> "Shape":
        """The shape written as numbers with commas between them."""
        return cls(sizes=read_numbers(_WHERE, text), rest=rest)

    def __str__(self) -> str:
        return ",".join(f"{size:g}" for size in self.sizes)

    @property
    def total(self) -> float:
        """The total of the cell."""
        return sum(self.sizes) + self.rest

    def to_largest(self, n: int) -> NDArray[np.float64]:
        """The sizes of the n largest contributors as multiples of the largest; 0 where there are fewer."""
        kept = np.array(self.sizes[:n])
        return np.pad(kept, (0, n - len(kept))) / self.sizes[0]


def read_numbers(where: str, text: str) -> tuple[float, ...]:
    """Numbers with commas between them, as in `.15,.1,.1`."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise MethodError(
            where, expected="numbers with commas between them, such as 90,5,5", found=repr(text), do="correct the list"
        ) from error
