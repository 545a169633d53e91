"""A uniform number falls on the part whose ends it is between, and what cannot be told is said to be uncertain."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.noise.choice import EndToEnd, rounded_up, turn

LENGTHS = st.integers(1, 40).flatmap(
    lambda parts: st.lists(
        st.lists(st.integers(0, 50), min_size=parts, max_size=parts).filter(any), min_size=1, max_size=5
    )
)


def laid(rows: list[list[int]]) -> EndToEnd:
    parts = len(rows[0])
    lengths = np.full((rounded_up(parts), len(rows)), np.nan)
    lengths[:parts] = np.array(rows).T
    return EndToEnd.of(lengths, parts=parts)


@given(rows=LENGTHS, bits=st.integers(1, 53), data=st.data())
def test_a_part_that_is_certain_holds_all_that_the_number_may_still_be(
    rows: list[list[int]], bits: int, data: st.DataObject
) -> None:
    heads = [data.draw(st.integers(0, 2**bits - 1)) for _ in rows]
    error = 2.0**-40
    found, certain = laid(rows).fallen_on(np.array(heads), bits=bits, error=error)
    for row, head, part, sure in zip(rows, heads, found.tolist(), certain.tolist(), strict=True):
        ends = [0, *accumulate(row)]
        low, high = (Fraction(head + more, 2**bits) * ends[-1] for more in (0, 1))
        margin = 2 * Fraction(error) * ends[-1]
        holds = [k for k in range(len(row)) if ends[k] + margin <= low and high + margin <= ends[k + 1]]
        # Sums of small whole numbers are exact, products with U nearly.
        assert (holds == [part]) if sure else not holds or holds_by_a_hair(ends, low, high, margin)


def holds_by_a_hair(ends: list[int], low: Fraction, high: Fraction, margin: Fraction) -> bool:
    return min(abs(end + side - edge) for end in ends for side, edge in ((margin, low), (-margin, high))) < 2**-40


def test_numbers_spread_over_the_parts_as_their_lengths_say() -> None:
    row = [3, 0, 0, 5, 1, 0, 7]
    heads = np.arange(16 * 64) * 2**43
    found, certain = laid([row] * len(heads)).fallen_on(heads, bits=53, error=0)
    assert certain.all()
    assert (np.bincount(found, minlength=7) / 64).tolist() == row


def test_rows_are_turned_whatever_their_number() -> None:
    for rows in (1, 255, 256, 257, 700):
        numbers = np.arange(3 * rows).reshape(rows, 3)
        columns = np.empty((3, rows), dtype=np.int64)
        turn(numbers, columns)
        assert np.array_equal(columns, numbers.T)
