"""Table 1: the perturbation of one total, contributor by contributor."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.methods.contributor_perturbation import contributions, perturbation
from sfumato.noise.factors import ONE
from sfumato.reproduce.chipperfield2019.published import (
    SPREAD,
    TABLE_1,
    TABLE_1_PERTURBATION,
    TABLE_1_RELEASED,
    TABLE_1_TOTAL,
)


@dataclass(frozen=True, kw_only=True)
class Moved:
    """One number of the table in whole dollars, beside ours."""

    what: str
    published: int
    ours: int


def worked_example() -> Iterator[Moved]:
    """Every number that the method gives in Table 1."""
    values, weights = (np.array([[getattr(line, name) for line in TABLE_1]]) for name in ("value", "weight"))
    inputs = {
        "values": values,
        "weights": weights,
        "magnitudes": np.array([[line.magnitude for line in TABLE_1]]),
        "directions": np.array([[line.direction for line in TABLE_1]]),
        "noise": np.array([[line.noise for line in TABLE_1]]),
    }
    for number, (line, moved) in enumerate(zip(TABLE_1, contributions(**inputs)[0], strict=True), 1):
        if line.magnitude:
            yield Moved(what=f"contributor {number}", published=line.moved, ours=round(moved))
    total, added = round(float((values * weights).sum())), round(float(perturbation(**inputs)[0]))
    yield Moved(what="perturbation", published=TABLE_1_PERTURBATION, ours=added)
    yield Moved(what="total", published=TABLE_1_TOTAL, ours=total)
    # The table adds what it prints, whole dollars; unrounded it is two thirds of a dollar more.
    yield Moved(what="released total", published=TABLE_1_RELEASED, ours=total + added)


def noises_out_of_range() -> list[float]:
    """The values of h in the table that a noise on 1 ± b cannot take."""
    return [line.noise / ONE for line in TABLE_1 if abs(line.noise / ONE - 1) > SPREAD]
