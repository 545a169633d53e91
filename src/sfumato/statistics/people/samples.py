"""Samples: the records of small groups, for methods that no sums are enough for."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Pairs (x, y) of people, each in one group; a group is a position in the product of the dimensions.

    `positions` has the group of every record, ascending. `groups` are those the table publishes, with or without
    records: every combination of codes unless it says otherwise.

    >>> sex = Dimension(name="sex", codes=("F", "M"))
    >>> held = Samples(dimensions=(sex,), positions=np.array([1, 1]), x=np.array([3, 9]), y=np.array([1, 2]))
    >>> held.sizes.tolist()
    [0, 2]
    """

    dimensions: tuple[Dimension, ...]
    positions: Integers
    x: Integers
    y: Integers
    groups: Integers | None = None

    def __post_init__(self) -> None:
        for name in ("positions", "x", "y"):
            column = getattr(self, name)
            if column.shape != self.positions.shape or column.dtype != np.int64:
                raise ValueError(f"{name!r} must be one 64-bit integer a record")
        domain = prod(map(len, self.dimensions))
        if self.groups is None:
            object.__setattr__(self, "groups", np.arange(domain, dtype=np.int64))
        listed = self.listed
        if len(listed) and not (listed[0] >= 0 and listed[-1] < domain and bool(np.all(np.diff(listed) > 0))):
            raise ValueError("groups must ascend within the product of the dimensions")
        if bool(np.any(np.diff(self.positions) < 0)) or not bool(np.isin(self.positions, listed).all()):
            raise ValueError("records must be in order of their groups, all of which are listed")

    @property
    def listed(self) -> Integers:
        """The positions of the groups that are published."""
        if self.groups is None:
            raise ValueError("the groups are set when samples are made")
        return self.groups

    @cached_property
    def starts(self) -> Integers:
        """Where the records of every listed group begin, and after the last one where they end."""
        begins = np.searchsorted(self.positions, self.listed, side="left")
        return np.append(begins, len(self.positions)).astype(np.int64)

    @property
    def sizes(self) -> Integers:
        """The number of records of every listed group."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.listed)

    def sums(self) -> Cells:
        """The sums of values by group."""
        place = np.searchsorted(self.listed, self.positions)
        terms = {"count": np.ones_like(self.x), "sum_x": self.x, "sum_y": self.y}
        terms |= {"sum_xx": self.x * self.x, "sum_xy": self.x * self.y}
        columns = {name: np.zeros(len(self), dtype=np.int64) for name in terms}
        for name, term in terms.items():
            np.add.at(columns[name], place, term)
        return Cells(dimensions=self.dimensions, positions=self.listed, columns=columns)
