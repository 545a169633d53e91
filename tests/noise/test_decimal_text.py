"""Integers are hashed as their decimal text is, without writing it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.noise.keyed import LIMIT, decimal_words, hashes, hashes_of_integers

edges = sorted({0, *(10**n for n in range(19)), *(10**n - 1 for n in range(1, 19)), 2**63 - 1})


@given(
    st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, LIMIT), st.sampled_from(edges)), max_size=20)
)
def test_an_integer_has_the_hash_of_its_text(numbers: list[int]) -> None:
    names = pa.array(numbers, pa.int64())
    assert hashes_of_integers(names).tolist() == hashes(list(map(str, numbers))).tolist()


def test_every_length_of_number_has_the_hash_of_its_text_in_one_array_and_alone() -> None:
    few = [number for number in edges if number < LIMIT]
    expected = hashes(list(map(str, few))).tolist()
    assert hashes_of_integers(pa.array(few)).tolist() == expected
    assert [hashes_of_integers(pa.array([number])).tolist()[0] for number in few] == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.uint64()])
def test_the_type_of_integer_does_not_matter(kind: pa.DataType) -> None:
    names = pa.chunked_array([pa.array([17, 0], kind), pa.array([], kind), pa.array([99], kind)])
    assert hashes_of_integers(names).tolist() == hashes(["17", "0", "99"]).tolist()


def test_a_unit_without_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="without a name"):
        hashes_of_integers(pa.array([1, None]))
    with pytest.raises(TypeError, match="integers"):
        hashes_of_integers(pa.array(["1"]))


def test_numbers_beyond_two_words_are_refused() -> None:
    with pytest.raises(ValueError, match="sixteen"):
        decimal_words(np.array([LIMIT], dtype=np.uint64))
