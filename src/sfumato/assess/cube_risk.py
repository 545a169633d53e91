"""What the tables of a published cube reveal about numbers of records, beside what rules of suppression would hide."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.assess.measures import mean
from sfumato.assess.risk import SizeOdds, Uniques, ZeroChanges, size_odds, uniques, zero_changes
from sfumato.assess.suppression import Suppression, below_threshold, fails_p_percent, is_dominated
from sfumato.privacy.guarantee import Guarantee

NEAR_ZERO = 0.5
"""Records; a cell with at most so many is near zero."""
SAME = 0.001
"""Records; a count that is published within this is the true one."""
MORE_RECORDS = (1, 2, 3, 5, 10)
"""By how many records two possible contents of the data differ, whose odds are bounded."""
SEEN = (0, 1, 2, 3)
"""Published numbers of records, rounded, of which it is told what they mean."""


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a cell published as so many records truly is: the belief of a reader who knows how common cells are."""

    published: int
    cells: int
    holding: float
    """The share of them that hold a record at all."""
    right: float
    """The share of them that hold just so many."""


@dataclass(frozen=True, kw_only=True)
class CellRisk:
    """What the published counts of some cells reveal."""

    cells: int
    empty: int
    zero_changes: ZeroChanges
    """Cells that went from near zero to non-zero, and back."""
    exact: float
    """The share of cells published with their true count."""
    exact_with_records: float
    uniques: Uniques
    """Cells with a single record: how many truly have one, seem to after rounding, and both."""
    suppression: Suppression
    """What rules would hide where every record counts as one contributor of 1; weights are not looked at."""
    meanings: tuple[Meaning, ...]


def cell_risk(true: Integers, published: Floats) -> CellRisk:
    """Compare true and published numbers of records."""
    same, some = np.abs(published - true) < SAME, true > 0
    rounded = np.rint(published)
    return CellRisk(
        cells=true.size,
        empty=int((~some).sum()),
        zero_changes=zero_changes(true=true, protected=published, near=NEAR_ZERO),
        exact=mean(same),
        exact_with_records=mean(same[some]),
        uniques=uniques(true=true, protected=rounded),
        suppression=_suppressed(true),
        meanings=tuple(_meaning(true, rounded == seen, seen) for seen in SEEN),
    )


def odds_of_records(guarantee: Guarantee) -> tuple[SizeOdds, ...]:
    """How far the whole cube can move the odds between data that differ by some records."""
    return tuple(size_odds(guarantee, smaller=0, larger=more) for more in MORE_RECORDS)


def table_risk(tables: Sequence[tuple[Integers, Floats]]) -> CellRisk:
    """The same for the cells of several tables together."""
    true, published = (np.concatenate([np.ravel(pair[at]) for pair in tables]) for at in (0, 1))
    return cell_risk(true.astype(np.int64), published.astype(np.float64))


def _meaning(true: Integers, cells: NDArray[np.bool_], seen: int) -> Meaning:
    inside = true[cells]
    return Meaning(published=seen, cells=len(inside), holding=mean(inside > 0), right=mean(inside == seen))


def _suppressed(true: Integers) -> Suppression:
    """Every record adds 1, so the largest contributor of a cell has 1, and the second as well if there is one."""
    largest, second = np.minimum(true, 1), np.clip(true - 1, 0, 1)
    few = below_threshold(contributors=true)
    near = fails_p_percent(total=true, largest=largest, second=second)
    dominated = is_dominated(total=true, largest=largest)
    return Suppression(
        cells=int((true > 0).sum()),
        threshold=int(few.sum()),
        p_percent=int(near.sum()),
        dominance=int(dominated.sum()),
        any_rule=int((few | near | dominated).sum()),
    )
