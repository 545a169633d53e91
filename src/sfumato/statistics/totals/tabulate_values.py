"""Values of those who asked, perturbed once by key and then added plainly: totals of them, and how far they may be off.

The value of a record becomes y ± ⌈m·h·|y|⌉. The direction belongs to the largest unit that is protected and the noise h
to the record's own, both for ever: every unit at every level is moved in one direction, and never by less than its
least share. All is in whole numbers, so that tables add up.
"""

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.engine.factors import split, wide_sum
from sfumato.engine.query import Engine, Rows, total
from sfumato.noise.factors import ONE, directions
from sfumato.noise.keyed import Keyed
from sfumato.statistics.totals.question import ValueNoise
from sfumato.statistics.totals.tabulate_rows import Grid, added_pair
from sfumato.statistics.totals.tabulate_sampling import squares, sum_of_squares

_MOST = 2**62 - 1


def with_perturbed(rows: Rows, *, noise: ValueNoise, keyed: Keyed, top: int) -> Rows:
    """The rows with `_perturbed`, their value after perturbation; `top` is the level of the largest units.

    Who did not ask keeps the value.
    """
    own, largest = "_key_0", f"_key_{top}"
    rows = rows.join(_by_key(rows, own, "_move", keyed, noise), [own])
    rows = rows.join(_by_key(rows, largest, "_turn", keyed, None), [largest])
    move = f"_turn * CAST(sign(_value) AS BIGINT) * ({_raised(rows.engine, 'abs(_value)', '_move')})"
    return rows.with_columns(_perturbed=f"_value + CASE WHEN _consent = 1 THEN {move} ELSE 0 END")


def _by_key(rows: Rows, key: str, made: str, keyed: Keyed, noise: ValueNoise | None) -> Rows:
    """What follows from the keys of units: by how many millionths values are moved, or in which direction."""
    keys = rows.select(key).distinct().fetch()[key]
    numbers = keys.to_numpy().astype(np.uint64)
    if noise is None:
        column = directions(keyed.words(numbers, purpose="direction of values"))
    else:
        column = noise.shares(keyed.words(numbers, purpose="size of values"))
    return rows.engine.lend(pa.table({key: keys, made: column}))


def _raised(engine: Engine, size: str, share: str) -> str:
    """⌈share·size⌉ in millionths of the size; nothing on the way leaves 64 bits, as shares are below one."""
    rest = f"({size} % {ONE}) * {share} + {ONE - 1}"
    return f"{engine.quotient(size, ONE)} * {share} + {engine.quotient(f'({rest})', ONE)}"


def perturbed_columns(
    rows: Rows, grid: Grid, *, codes: Mapping[str, tuple[str, ...]], parts: int, top: int
) -> dict[str, Integers]:
    """`perturbed` and `perturbed_part`: Σ weight·value after perturbation, in whole units and millionths.

    `asked` is Σ weight·|value| of those who asked, rounded up, and `asked_root` √Σ(Σ weight·|value|)², the inner sum
    being over what a largest unit has in the cell: what they may be off by follows from both. `raised` and
    `raised_root` are the same of the weights alone: changes are rounded up to whole units, each by less than one.
    `changed` and `changed_root` are those of the values after perturbation, of which alone published errors are made.
    """
    summed = rows.group(grid.names, _sum=wide_sum(rows, "_perturbed * _weight")).fetch()
    places = grid.everywhere(grid.codes(summed, codes), summed.num_rows)
    whole, part = added_pair(grid.size, places, split(summed["_sum"], by=parts))
    sizes = rows.where("_consent = 1").with_columns(
        _x=f"{rows.engine.quotient('abs(_weighted)', parts)} + {int(parts > 1)}",
        _y=f"{rows.engine.quotient('abs(_perturbed) * _weight', parts)} + {int(parts > 1)}",
        _w=f"CASE WHEN _value = 0 THEN 0 ELSE {rows.engine.quotient('_weight', parts)} + {int(parts > 1)} END",
        _of=f"_key_{top}",
    )
    found_of = {"_x": "asked", "_y": "changed", "_w": "raised"}
    columns = {f"{name}{of}": np.zeros(grid.size, dtype=np.int64) for name in found_of.values() for of in ("", "_root")}
    for kept in grid.kept():
        units = sizes.group([*kept, "_of"], **{x: total(x) for x in found_of})
        sums = {f"_sum{x}": wide_sum(units, x) for x in found_of}
        sums |= {f"{x}{n}": s for x in found_of for n, s in squares(units, x, _MOST).items()}
        found = units.group(kept, **sums).fetch()
        at = grid.positions(grid.codes(found, codes), kept, found.num_rows)
        for x, name in found_of.items():
            columns[name][at] = split(found[f"_sum{x}"], by=1)[0]
            columns[f"{name}_root"][at] = _roots(sum_of_squares(found, x))
    return {"perturbed": whole, "perturbed_part": part, **columns}


def _roots(squared: NDArray[Any]) -> Sequence[int]:
    return [isqrt(int(one)) + 1 if one else 0 for one in squared]
