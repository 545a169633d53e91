"""Cells with contributors, as the engine hands them to the method: from lists of values, weights and units."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.cells import Cells, Dimension
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import Keyed, hashes

PRIME = 2**61 - 1


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One contributor of a cell."""

    name: str
    value: int
    weight: float = 1.0
    asked: bool = True


def cells_of(
    cells: Sequence[Sequence[Unit]], *, contributors: int = 3, key: bytes = bytes(16), sampling: float = 0.0
) -> Cells:
    """One level of units; every cell lists all its contributors."""
    rows = [_row(units, contributors, Keyed(key=key), sampling) for units in cells]
    columns = {name: np.array([row[name] for row in rows], dtype=np.int64) for name in rows[0]}
    place = Dimension(name="place", codes=tuple(map(str, range(len(cells)))))
    return Cells(dimensions=(place,), positions=np.arange(len(cells)), columns=columns)


def _row(units: Sequence[Unit], contributors: int, keyed: Keyed, sampling: float) -> dict[str, int]:
    keys = (keyed.words(hashes([unit.name for unit in units]), purpose="unit key 0") >> np.uint64(32)).astype(np.int64)
    cell_key = int(sum(map(int, keys))) % PRIME
    asked = [i for i, unit in enumerate(units) if unit.asked]
    order = sorted(asked, key=lambda i: (-abs(units[i].value), int(keys[i])))
    total = sum(unit.value * round(unit.weight * ONE) for unit in units)
    weights = sum(round(unit.weight * ONE) for unit in units)
    row = {
        "records": len(units),
        "units_0": len(units),
        "cell_key_0": cell_key,
        "total": total // ONE,
        "total_part": total % ONE,
        "weights": weights // ONE,
        "weights_part": weights % ONE,
        "sampling_error": round(sampling * ONE),
        "count_sampling_error": 0,
        "mean_sampling_error": 0,
        "count_word_0": _word(keyed.words(np.array([cell_key], dtype=np.uint64), purpose="count")),
    }
    for rank in range(1, contributors + 1):
        unit = units[order[rank - 1]] if rank <= len(order) else None
        key = int(keys[order[rank - 1]]) if unit else 0
        weighted = unit.value * round(unit.weight * ONE) if unit else 0
        one = np.array([key], dtype=np.uint64)
        row |= {
            f"value_0_{rank}": unit.value if unit else 0,
            f"weighted_0_{rank}": weighted // ONE,
            f"weighted_part_0_{rank}": weighted % ONE,
            f"weight_0_{rank}": round(unit.weight * ONE) if unit else 0,
            f"consent_0_{rank}": int(unit.asked) if unit else 0,
            f"unit_word_0_{rank}": _word(keyed.words(one, purpose="direction")) if unit else 0,
            f"cell_word_0_{rank}": _word(
                keyed.words_of_pairs(one, np.array([cell_key], dtype=np.uint64), purpose="size")
            )
            if unit
            else 0,
        }
    return row


def _word(words: np.ndarray) -> int:
    return int(words.view(np.int64)[0])
