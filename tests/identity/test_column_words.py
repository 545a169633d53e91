"""The word of a value depends on what it is, not on how it is stored, and is the same for ever."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.engine.content import column_words, key_words, text_words

FROZEN = [
    [0, 6238072747940578789, 18279323766572949],
    [13964968356031902648],
    [2840230438448871980, 14709760860637372091],
    [16903225604116078773],
    [13714699805381954668, 6238072747940578789],
    [8330039580688154309],
]
FROZEN_KEYS = [[3761842212346754349, 11364278592344506426], [8699003399895652170, 14108124768616779877]]
"""Of the values that the test below names: data are known by such words for years."""

STORED_ALIKE: list[list[pa.Array]] = [
    [
        pa.array([1, -2, None], kind)
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2))
    ],
    [pa.array([3, 200, 7], kind) for kind in (pa.uint8(), pa.uint16(), pa.uint64(), pa.int64(), pa.decimal256(40, 0))],
    [
        pa.array(["a", "müller & söhne gmbh", None, ""], kind)
        for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))
    ],
    [pa.array([0.5, float("nan"), 0.0], pa.float64()), pa.array([0.5, -float("nan"), -0.0], pa.float32())],
    [pa.array([Decimal("1.5"), Decimal("10")], pa.decimal128(*digits)) for digits in ((3, 1), (20, 8), (38, 18))],
    [pa.array([10**18, 2**62, -(2**62)], kind) for kind in (pa.int64(), pa.decimal128(19, 0), pa.decimal256(30, 3))],
    [pa.array([True, False, None]), pa.array([True, False, None]).dictionary_encode()],
]


@pytest.mark.parametrize("arrays", STORED_ALIKE, ids=lambda arrays: str(arrays[0].type))
def test_values_have_the_same_words_however_they_are_stored(arrays: list[pa.Array]) -> None:
    for other in arrays[1:]:
        assert column_words(other).tolist() == column_words(arrays[0]).tolist(), other.type


def test_values_that_differ_have_different_words() -> None:
    values: list[Any] = [
        0,
        1,
        -1,
        2**53 + 1,
        0.5,
        -0.5,
        float("inf"),
        float("nan"),
        1e300,
        "",
        "0",
        "1",
        "a",
        "a\0",
        "b",
    ]
    values += ["12345678", "123456789", "1234567890123456", True, False, None, Decimal("0.25"), Decimal("0.026")]
    words = [int(column_words(pa.array([value]))[0]) for value in values]
    assert len(set(words)) == len(values)
    large = pa.array([2**63 + 5], pa.uint64())
    assert column_words(large)[0] != column_words(pa.array([2**63 + 5 - 2**64]))[0]


def test_texts_have_the_same_words_alone_in_a_slice_and_among_longer_ones() -> None:
    texts = pa.array(["x" * length for length in range(40)])
    alone = [int(text_words(texts.slice(at, 1))[0]) for at in range(40)]
    assert text_words(texts).tolist() == alone
    assert text_words(texts.slice(7, 9)).tolist() == alone[7:16]


def test_words_are_those_of_the_first_version() -> None:
    values = [
        pa.array([0, 1, 2025]),
        pa.array([1.25]),
        pa.array(["F", "Région 12"]),
        pa.array([True]),
        pa.array([None, 1]),
    ]
    values.append(pa.array([Decimal("0.10")]))
    assert [column_words(array).tolist() for array in values] == FROZEN
    assert [
        lane.tolist() for lane in key_words([column_words(pa.array([7, 8])), column_words(pa.array(["a", "b"]))])
    ] == FROZEN_KEYS


def test_every_bit_of_a_key_changes_about_half_of_both_words() -> None:
    keys = np.arange(1_000, dtype=np.int64)
    before = key_words([column_words(pa.array(keys))])
    for bit in range(0, 63, 7):
        after = key_words([column_words(pa.array(keys ^ (1 << bit)))])
        for one, other in zip(before, after, strict=True):
            changed = np.unpackbits((one ^ other).view(np.uint8)).mean()
            assert 0.48 < changed < 0.52
