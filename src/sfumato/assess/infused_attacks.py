"""Attacks on tables of indicators: what one permanent factor leaves open where a cell holds one employer."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Integers
from sfumato.assess.attacks import AttackResult, growth_attack, shape_attack, size_attack
from sfumato.cells import Cells
from sfumato.indicators import CODES
from sfumato.methods.infused_sums import PAYROLLS
from sfumato.methods.status import HIDDEN


def attack_indicators(counted: Cells, answer: Cells, *, period: str, rounding: int) -> tuple[AttackResult, ...]:
    """Run the attacks on ratios, size and growth on a whole table of indicators.

    They use payrolls, large numbers of which `rounding` hides the least. The ratio is that of the whole-quarter payroll
    to all payroll; the reader of the size attack knows one of the two, and so the factor, hence every other figure of
    the employer in every period; growth is from a period to the next.
    """
    published, true = _counts(answer["value"]), _counts(counted["count"])
    status = _counts(answer["status"])
    establishments = counted["establishments"][:: len(CODES)]
    whole: Flags = np.all(~np.isin(status, HIDDEN), axis=1)
    rows = np.arange(len(published))
    known = published.argmax(axis=1)
    ratio = shape_attack(
        published=published[whole], establishments=establishments[whole], true=true[whole], rounding=rounding
    )
    size = size_attack(
        published=published[whole],
        establishments=establishments[whole],
        known_column=known[whole],
        known_count=true[rows, known][whole],
        true=true[whole],
        rounding=rounding,
    )
    first, second = _following(counted, period)
    follows = whole[first] & whole[second]
    first, second, paid = first[follows], second[follows], [PAYROLLS.index("payroll")]
    growth = growth_attack(
        before=published[first][:, paid],
        after=published[second][:, paid],
        establishments=establishments[first],
        true_before=true[first][:, paid],
        true_after=true[second][:, paid],
        rounding=rounding,
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
    return column.reshape(-1, len(CODES))[:, [CODES.index(code) for code in PAYROLLS]]
