"""Attacks on tables of indicators: what one permanent factor leaves open where a cell holds one employer."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks import AttackResult, growth_attack, shape_attack, size_attack
from sfumato.cells import Cells
from sfumato.indicators import CODES
from sfumato.methods.infused_sums import NOT_AVAILABLE, SUPPRESSED

COMPARED = ("employment", "beginning", "end", "full_quarter", "accessions", "separations")
"""The indicators that count jobs and need no long history, which readers compare with each other."""
ROUNDING = 2.0
"""Counts of a cell are rounded together, each by less than this."""

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def attack_indicators(counted: Cells, answer: Cells, *, period: str) -> tuple[AttackResult, ...]:
    """Run the attacks on ratios, size and growth on a whole table of indicators.

    The reader of the size attack knows the true value of the largest published count of the cell.
    """
    published, true = _counts(answer["value"]), _counts(counted["count"])
    status = _counts(answer["status"])
    establishments = counted["establishments"][:: len(CODES)]
    whole: Flags = np.all((status != SUPPRESSED) & (status != NOT_AVAILABLE), axis=1)
    rows = np.arange(len(published))
    known = published.argmax(axis=1)
    ratio = shape_attack(
        published=published[whole], establishments=establishments[whole], true=true[whole], rounding=ROUNDING
    )
    size = size_attack(
        published=published[whole],
        establishments=establishments[whole],
        known_column=known[whole],
        known_count=true[rows, known][whole],
        true=true[whole],
        rounding=ROUNDING,
    )
    first, second = _following(counted, period)
    follows = whole[first] & whole[second]
    first, second, employed = first[follows], second[follows], [COMPARED.index("employment")]
    growth = growth_attack(
        before=published[first][:, employed],
        after=published[second][:, employed],
        establishments=establishments[first],
        true_before=true[first][:, employed],
        true_after=true[second][:, employed],
        rounding=ROUNDING,
    )
    return replace(ratio, attack="ratio"), size, growth


def _following(counted: Cells, period: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows of every cell in a period and in the next one."""
    shape = tuple(map(len, counted.dimensions[:-1]))
    places = np.unravel_index(counted.positions[:: len(CODES)] // len(CODES), shape)
    at = [dimension.name for dimension in counted.dimensions].index(period)
    periods = places[at]
    others = np.zeros_like(periods)
    for dimension, (place, codes) in enumerate(zip(places, shape, strict=True)):
        others = others if dimension == at else others * codes + place
    order = np.lexsort((periods, others))
    first, second = order[:-1], order[1:]
    follows = (others[first] == others[second]) & (periods[first] + 1 == periods[second])
    return first[follows], second[follows]


def _counts(column: Integers) -> Integers:
    return column.reshape(-1, len(CODES))[:, [CODES.index(code) for code in COMPARED]]
