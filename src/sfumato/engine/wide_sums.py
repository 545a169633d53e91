"""Sums that leave 64 bits: exact on every engine, and split into 64-bit numbers afterwards."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.engine.unit_keys import PRIME
from sfumato.noise.factors import ONE

if TYPE_CHECKING:
    import ibis.expr.types as ir

_WIDE = "decimal(38, 0)"
_LOW = np.uint64(PRIME)


def wide_sum(column: "ir.Column") -> "ir.DecimalScalar":
    """The exact sum of whole numbers of 64 bits, as a decimal of 38 digits."""
    if column.type().is_decimal() or column.get_backend().name == "duckdb":  # which sums integers in 128 bits
        return column.sum().cast(_WIDE)
    return column.cast("decimal(19, 0)").sum().cast(_WIDE)


def wide_product(one: "ir.IntegerColumn", other: "ir.IntegerColumn") -> "ir.DecimalScalar":
    """The exact sum of products of whole numbers of 64 bits, as a decimal of 38 digits."""
    return (one.cast("decimal(19, 0)") * other.cast("decimal(19, 0)")).sum().cast(_WIDE)


def narrow_sum(column: "ir.IntegerColumn") -> "ir.IntegerScalar":
    """The sum of whole numbers where it is known to fit 64 bits, as such a number.

    DuckDB sums in 128 bits, which Ibis does not know; left like that, every further step would be slower.
    """
    return _sum()(column).cast("int64")


@cache
def _sum() -> Any:
    """An engine's own sum, said to be wide so that a cast to 64 bits is not left out."""
    import ibis

    def sum_(x):  # type: ignore[no-untyped-def]
        ...

    return ibis.udf.agg.builtin(sum_, name="sum", signature=((ibis.dtype("int64"),), ibis.dtype(_WIDE)))


def split(column: pa.ChunkedArray, *, by: int = ONE) -> tuple[Integers, Integers]:
    """Whole units and the parts left over, of decimals in parts of which `by` make a unit; wholes must fit 64 bits.

    >>> [part.tolist() for part in split(pa.chunked_array([pa.array([-1], pa.decimal128(38, 0))]))]
    [[-1], [999999]]
    """
    if by == 1:
        return integers(column), np.zeros(len(column), dtype=np.int64)
    high, low = _limbs(column)
    # 2⁶⁴ = whole·by + left, so that nothing here leaves 64 bits where the result does not.
    whole, left = divmod(2**64, by)
    parts = high * left + (low % np.uint64(by)).astype(np.int64)
    return high * whole + (low // np.uint64(by)).astype(np.int64) + parts // by, parts % by


def integers(column: pa.ChunkedArray) -> Integers:
    """Decimals that fit 64 bits."""
    return _limbs(column)[1].view(np.int64)


def modulo_prime(column: pa.ChunkedArray) -> Integers:
    """Decimals that are not negative modulo 2⁶¹ − 1."""
    high, low = _limbs(column)
    # 2⁶¹ is 1 there, and 2⁶⁴ is 8.
    return ((low & _LOW).astype(np.int64) + (low >> np.uint64(61)).astype(np.int64) + 8 * high) % PRIME


def unbounded(column: pa.ChunkedArray) -> NDArray[Any]:
    """Decimals as Python's integers, which have no limit."""
    high, low = _limbs(column)
    whole: NDArray[Any] = high.astype(object) * 2**64 + low.astype(object)
    return whole


def _limbs(column: pa.ChunkedArray) -> tuple[Integers, NDArray[np.uint64]]:
    """The upper and the lower 64 bits of decimals in two's complement; an empty sum is 0."""
    limbs = [np.empty((0, 2), dtype=np.int64)]
    for chunk in pc.fill_null(column.cast(pa.decimal128(38, 0)), 0).chunks:
        words = np.frombuffer(chunk.buffers()[1], dtype=np.int64).reshape(-1, 2)
        limbs.append(words[chunk.offset : chunk.offset + len(chunk)])
    both = np.concatenate(limbs)
    return np.ascontiguousarray(both[:, 1]), np.ascontiguousarray(both[:, 0]).view(np.uint64)
