"""Lines through pairs of people who stand next to each other on a random circle, for many groups at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.randomness import Randomness
from sfumato.samples import Samples

_RECORDS = 1 << 16
_GROUPS = 1 << 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Circles:
    """People of some groups, each group in a random order that is read as a circle."""

    group: Integers
    """Of every person, from 0 on."""
    x: Floats
    y: Floats
    starts: Integers
    """Where every group begins, and after the last one where it ends."""

    def pairs(self, partners: int) -> Iterator[tuple[Integers, Integers]]:
        """Everybody with the one who follows 1, 2, … places further on, up to `partners`, never with themselves."""
        sizes, begins = np.diff(self.starts)[self.group], self.starts[:-1][self.group]
        place = np.arange(len(self.group)) - begins
        for step in range(1, partners + 1):
            first = np.flatnonzero(sizes > step)
            yield first, begins[first] + (place[first] + step) % sizes[first]

    def predictions(
        self, rank: Fraction, *, partners: int, low: int, high: int, grid: int
    ) -> tuple[Integers, Integers]:
        """What the line through every pair says at a rank, rounded to the grid and clipped, and the group of each.

        Pairs with one x have no line and are left out. Floating point is good enough: privacy needs no more than that
        a prediction depends on its two people alone.
        """
        groups, values = [], []
        for one, other in self.pairs(partners):
            lined = self.x[other] != self.x[one]
            first, second = one[lined], other[lined]
            run = self.x[second] - self.x[first]
            said = self.y[first] + (self.y[second] - self.y[first]) * ((float(rank) - self.x[first]) / run)
            groups.append(self.group[first])
            values.append(np.rint(np.clip(said, low, high) * grid).astype(np.int64))
        return np.concatenate(groups), np.concatenate(values)


def circles(samples: Samples, randomness: Randomness) -> Iterator[tuple[slice, Circles]]:
    """All groups, so many at a time as fit the memory, each in an order drawn from all orders alike."""
    starts = samples.starts
    begin = 0
    while begin < len(samples):
        end = int(np.searchsorted(starts, starts[begin] + _RECORDS, side="right")) - 1
        end = min(max(end, begin + 1), begin + _GROUPS, len(samples))
        records = slice(int(starts[begin]), int(starts[end]))
        local = starts[begin : end + 1] - starts[begin]
        group = np.repeat(np.arange(end - begin), np.diff(local))
        order = _shuffled(group, randomness)
        yield (
            slice(begin, end),
            Circles(
                group=group,
                x=samples.x[records][order].astype(np.float64),
                y=samples.y[records][order].astype(np.float64),
                starts=local,
            ),
        )
        begin = end


def _shuffled(group: Integers, randomness: Randomness) -> NDArray[np.intp]:
    """An order that keeps groups together and is random within each: that of random words behind the group's number.

    Two equal words would keep the order of the data; then all are drawn again, which leaves every order as likely as
    any other.
    """
    bits = np.uint64(int(group[-1]).bit_length() if len(group) else 0)
    while True:
        words = randomness.words(len(group)) >> bits
        # A shift by all 64 bits is not defined, and with one group there is nothing to put in front.
        keys = words | (group.astype(np.uint64) << (np.uint64(64) - bits)) if bits else words
        order = np.argsort(keys)
        if not bool(np.any(keys[order][1:] == keys[order][:-1])):
            return order
