"""The columns of cells and of their largest units, from an engine's sums and the secret key."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Integers, Words
from sfumato.engine.contributor_grid import ranked
from sfumato.engine.wide_sums import split
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import Keyed


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Units that are among the largest of some cell, with what they have there."""

    columns: dict[str, Integers]
    """The unit's number, its value, weighted value, weight and consent."""

    @classmethod
    def of(cls, found: pa.Table, *, parts: int) -> Self:
        """The units an engine picked; `parts` make a unit of its weighted sums."""
        weighted = split(found["_weighted"].cast(pa.decimal128(38, 0)), by=parts)
        return cls(
            columns={
                "number": found["_unit"].to_numpy().astype(np.int64),
                "value": found["_value"].to_numpy().astype(np.int64),
                "weighted": weighted[0],
                "weighted_part": weighted[1],
                "weight": found["_weight"].to_numpy().astype(np.int64) * (ONE // parts),
                "consent": found["_consent"].to_numpy().astype(np.int64),
            },
        )


def level_columns(
    level: int,
    placed: Sequence[tuple[Integers, Units]],
    *,
    units: Integers,
    key: Integers,
    guard: Integers,
    records: Integers,
    most: int,
    keys_of: Callable[[Integers], Integers],
    keyed: Keyed,
) -> dict[str, Integers]:
    """The columns of one level: of all units of a cell together, and of its largest.

    `units`, `key` and `guard` are every cell's number of units and the sums of their keys and guard words; `placed`
    says in which cells units are, `most` how many of them to keep, and `keys_of` gives the keys of units by number.
    `records` is the sum of the keys of the records' own units: the noise of a larger unit depends on it too, so that
    one record more draws it anew even when its larger unit was there before.
    """
    word = keyed.words(key.astype(np.uint64), purpose="count").view(np.int64)
    columns = {"units": units, "cell_key": key, "guard": guard, "count_word": word}
    ranks = _of_ranks(placed, (len(key), most))
    number = ranks.pop("number")
    there = number >= 0
    unit = keys_of(number[there]).astype(np.uint64)
    cell = np.broadcast_to(records[:, None], number.shape)[there].astype(np.uint64)
    ranks["unit_word"] = _laid(there, keyed.words(unit, purpose="direction"))
    ranks["cell_word"] = _laid(there, keyed.words_of_pairs(unit, cell, purpose="size"))
    return {f"{name}_{level}": column for name, column in columns.items()} | {
        f"{name}_{level}_{rank + 1}": column[:, rank].copy() for name, column in ranks.items() for rank in range(most)
    }


def _of_ranks(placed: Sequence[tuple[Integers, Units]], shape: tuple[int, int]) -> dict[str, Integers]:
    """What the largest units of every cell have, by rank; their number is −1 where there are fewer."""
    positions = np.concatenate([at for at, _ in placed])
    columns = {name: np.concatenate([units.columns[name] for _, units in placed]) for name in placed[0][1].columns}
    rows, ranks = ranked(positions, np.abs(columns["value"]), columns["number"], most=shape[1])
    filled = {name: np.full(shape, -1 if name == "number" else 0, dtype=np.int64) for name in columns}
    for name, column in filled.items():
        column[positions[rows], ranks] = columns[name][rows]
    return filled


def _laid(there: NDArray[np.bool_], words: Words) -> Integers:
    """Words where there are units, and zeros elsewhere."""
    laid = np.zeros(there.shape, dtype=np.int64)
    laid[there] = words.view(np.int64)
    return laid
