"""Exposure of a table: what it reveals by proof, what chance revealed, and which attacks it withstands."""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks import BY_CHANCE, AttackResult, pooled, reidentification_attack, shape_attack, size_attack
from sfumato.assess.measures import mean
from sfumato.assess.risk import SizeOdds, Uniques, ZeroChanges, share_exact, size_odds, uniques, zero_changes
from sfumato.assess.suppression import Suppression, suppression
from sfumato.assess.utility import defined
from sfumato.assess.views import View
from sfumato.cells import Cells
from sfumato.privacy.guarantee import Guarantee

SIZE_PAIRS = ((10, 11), (10, 12), (10, 20), (100, 110), (100, 121), (100, 200), (1_000, 1_100), (1_000, 2_000))
"""Pairs of establishment sizes whose odds the report bounds."""


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What one table reveals; computed from true values and confidential."""

    name: str
    exact: float | None
    """The share of cells published as they are."""
    exact_with_jobs: float | None
    """The same among cells that are not 0."""
    uniques: Uniques
    zero_changes: ZeroChanges
    suppression: Suppression | None
    """None where the largest establishment of a cell is not known."""
    odds: tuple[SizeOdds, ...]
    """Empty for tables of records, which are about no establishment's workers."""
    attacks: tuple[AttackResult, ...]
    """Empty for tables without worker attributes, and where the number of establishments is not public."""


def measure_exposure(view: View) -> Exposure:
    """Compare what was published with the true cells, as an attacker would like to."""
    planned, counted, protected = view.planned, view.counted, view.shown
    true = counted["count"]
    some = true != 0
    return Exposure(
        name=view.name,
        exact=defined(share_exact(true=true, protected=protected)),
        exact_with_jobs=defined(mean((true == protected)[some])),
        uniques=uniques(true=true, protected=protected),
        zero_changes=zero_changes(true=true, protected=protected),
        suppression=suppression(counted) if "largest" in counted.columns else None,
        odds=() if planned.table.of_records else odds_of_sizes(planned.guarantee),
        attacks=attack(counted, protected, rounding=max(planned.roundings or (0,))) if view.indicator is None else (),
    )


def odds_of_sizes(guarantee: Guarantee) -> tuple[SizeOdds, ...]:
    """The bounds on the odds of all `SIZE_PAIRS`."""
    return tuple(size_odds(guarantee, smaller=smaller, larger=larger) for smaller, larger in SIZE_PAIRS)


def attack(counted: Cells, protected: NDArray[np.int64], *, rounding: float = 0) -> tuple[AttackResult, ...]:
    """Run the attacks that one period of a table allows, with side knowledge taken from the true cells.

    Values were rounded to multiples of `rounding`, or to whole numbers.

    The reader of the size attack knows the true number of workers in the largest published group; the reader of the
    re-identification knows of everyone who is alone in one attribute, such as the only college graduate.
    """
    if counted.worker_cells == 1 or "establishments" not in counted.columns or not len(counted):
        return ()
    blocks = counted.blocks()
    published, true = protected[blocks], counted["count"][blocks]
    establishments = counted["establishments"][blocks[:, 0]]
    known, rounding = published.argmax(axis=1), max(rounding, BY_CHANCE)
    results = [
        shape_attack(published=published, establishments=establishments, true=true, rounding=rounding),
        size_attack(
            published=published,
            establishments=establishments,
            known_column=known,
            known_count=true[np.arange(len(true)), known],
            true=true,
            rounding=rounding,
        ),
    ]
    kinds = _kinds(counted)
    if kinds:
        results.append(
            pooled(
                reidentification_attack(
                    published=published,
                    establishments=establishments,
                    candidates=candidates,
                    alone=true[:, candidates].sum(axis=1) == 1,
                    true=true,
                )
                for candidates in kinds
            )
        )
    return tuple(results)


def _kinds(counted: Cells) -> list[NDArray[np.intp]]:
    """The columns of each code of each worker attribute, where at least one other attribute is left to learn."""
    shape = tuple(len(dimension) for dimension in counted.dimensions if not dimension.public)
    places = np.unravel_index(np.arange(prod(shape)), shape)
    kinds = [
        np.flatnonzero(place == code) for place, length in zip(places, shape, strict=True) for code in range(length)
    ]
    return [columns for columns in kinds if len(columns) > 1] if len(shape) > 1 else []
