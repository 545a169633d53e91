"""Suppression rules, as the comparison: which cells an office would hide if it did not add noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags
from sfumato.cells import Cells

Values = NDArray[Any]

LEAST_CONTRIBUTORS = 3
"""The threshold rule hides cells with fewer establishments than this."""
P_PERCENT = 10
"""The p% rule hides cells whose largest contributor the second largest could estimate within this many percent."""
DOMINANCE_PERCENT = 75
"""The dominance rule hides cells whose largest contributor has more than this many percent of the total."""


def below_threshold(*, contributors: Values, least: int = LEAST_CONTRIBUTORS) -> Flags:
    """The cells with some contributors, but fewer than the threshold."""
    flags: Flags = (contributors > 0) & (contributors < least)
    return flags


def fails_p_percent(*, total: Values, largest: Values, second: Values, percent: int = P_PERCENT) -> Flags:
    """The cells where the second largest contributor knows the largest within p%.

    What it subtracts from the total leaves the largest plus the remainder of all others; the cell is safe when that
    remainder is at least p% of the largest.

    >>> fails_p_percent(total=np.array([120, 111]), largest=np.array([100, 100]), second=np.array([10, 10]))
    array([False,  True])
    """
    flags: Flags = (largest > 0) & (100 * (total - largest - second) < percent * largest)
    return flags


def is_dominated(*, total: Values, largest: Values, percent: int = DOMINANCE_PERCENT) -> Flags:
    """The cells of which the largest contributor, or the n largest summed, have more than k%."""
    flags: Flags = (total > 0) & (100 * largest > percent * total)
    return flags


def least_second(*, total: Values, largest: Values, contributors: Values) -> Values:
    """The least the second largest contributor can be: the mean of all but the largest, in whole units."""
    others = np.maximum(contributors - 1, 1)
    least: Values = -(-(total - largest) // others)
    return least


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """How many of the cells with jobs each rule would hide, where this release publishes them all.

    Tabulation knows the largest establishment of a cell and not the second, and of a worker cell how many
    establishments may contribute and not how many do; so the figures for the threshold and the p% rule are the
    least that these rules would hide.
    """

    cells: int
    threshold: int | None
    """None where the number of establishments is not known, as in a joined table."""
    p_percent: int
    dominance: int
    any_rule: int


def suppression(counted: Cells) -> Suppression:
    """Apply the three rules to the true cells of a table."""
    total, largest = counted["count"], counted["largest"]
    known = "establishments" in counted.columns
    contributors = counted["establishments"] if known else np.zeros_like(total)
    some = total > 0
    second = least_second(total=total, largest=largest, contributors=contributors) if known else np.zeros_like(total)
    small = below_threshold(contributors=contributors) & some
    p_percent = fails_p_percent(total=total, largest=largest, second=second)
    dominated = is_dominated(total=total, largest=largest)
    return Suppression(
        cells=int(some.sum()),
        threshold=int(small.sum()) if known else None,
        p_percent=int(p_percent.sum()),
        dominance=int(dominated.sum()),
        any_rule=int((small | p_percent | dominated).sum()),
    )


def publishable(*, contributors: Values, least: int, variation: Values, most: float) -> Flags:
    """The estimates with at least so many contributors and at most so large a coefficient of variation.

    An estimate whose coefficient is NaN, being 0, is not publishable.
    """
    flags: Flags = (contributors >= least) & (variation <= most)
    return flags


@dataclass(frozen=True, kw_only=True)
class PublicationChange:
    """How many estimates protection makes publishable, makes unpublishable, or leaves as they were."""

    publishable: int
    newly_publishable: int
    newly_suppressed: int
    suppressed: int


def publication_change(*, before: Flags, after: Flags) -> PublicationChange:
    """Compare what may be published before and after protection.

    >>> publication_change(before=np.array([True, True, False]), after=np.array([True, False, True]))
    PublicationChange(publishable=1, newly_publishable=1, newly_suppressed=1, suppressed=0)
    """
    return PublicationChange(
        publishable=int((before & after).sum()),
        newly_publishable=int((~before & after).sum()),
        newly_suppressed=int((before & ~after).sum()),
        suppressed=int((~before & ~after).sum()),
    )
