"""Attacks on published totals: how near a reader comes to the largest contributor of each cell."""

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.measures.attacks import AttackResult
from sfumato.method import HIDDEN
from sfumato.noise.factors import ONE
from sfumato.statistics.totals.calibration import ATTACKS, Attack

_NAMES = {1: "total (within 18 %)", 3: "second contributor (within 11 %)"}
"""The attacks that need one table only; another subtracts two, which differ by the target."""


def attack_totals(counted: Cells, answer: Cells) -> tuple[AttackResult, ...]:
    """Run the attacks that one table of totals allows, with weights known to be one where they are.

    Targets are the largest contributors of published cells that were taken for sure. The guess without perturbation is
    what the same attack gets from the true total: how much of the protection is due to the perturbation.
    """
    largest, second = (counted[f"value_0_{rank}"].astype(np.float64) for rank in (1, 2))
    sure = (counted["weight_0_1"] == ONE) & (largest != 0) & ~np.isin(answer["status"], HIDDEN)
    true = counted["total"] + counted["total_part"] / ONE
    published = answer["value"].astype(np.float64)
    results = []
    for attack in (attack for attack in ATTACKS if attack.number in _NAMES):
        known = second if attack.number == 3 else np.zeros(len(second))
        results.append(
            AttackResult(
                attack=_NAMES[attack.number],
                targets=int(sure.sum()),
                successes=_near(published - known, largest, attack, sure),
                guessed=_near(true - known, largest, attack, sure),
            )
        )
    return tuple(results)


def _near(estimate: Floats, largest: Floats, attack: Attack, sure: NDArray[np.bool_]) -> int:
    """How many estimates come near enough to their target."""
    return int((np.abs(estimate - largest)[sure] <= attack.within * np.abs(largest[sure])).sum())
