"""A word of 64 bits for every value of a column, by what it is and not by how it is stored.

The words decide by which name data are known for years, so nothing here may ever change: tests hold frozen values. A
whole number has the same word whether it is stored in 8 or 64 bits, as a decimal or a floating-point number; text has
the same word plain, large or in a dictionary. Whole numbers, other numbers, text, and true or false never share one but
by chance, which is some 2⁻⁶⁴. They are no defence against somebody who looks for two values with one word, and need
be none: whoever can write the data can make them look changed, and made to look unchanged they get an old answer.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Words
from sfumato.errors import DataError

U = np.uint64

_FIRST, _SECOND = U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)
"""The multipliers of the finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
_TEXT, _BITS, _TRUTH, _DECIMAL, _LARGE = (
    U(word)
    for word in (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89, 0x452821E638D01377)
)
"""Digits of pi, which tell kinds of values apart."""
_EMPTY = U(0xBE5466CF34E90C6C)
"""The word of no value."""
ONE_MORE = U(0x9E3779B97F4A7C15)
"""What a word is multiplied with before another is added to it."""
_WHOLE = 2.0**63


def mixed(words: Words) -> Words:
    """The same words stirred, in place: a bijection after which every bit depends on every bit before."""
    shifted = np.empty_like(words)
    for shift, factor in ((U(30), _FIRST), (U(27), _SECOND), (U(31), None)):
        np.right_shift(words, shift, out=shifted)
        np.bitwise_xor(words, shifted, out=words)
        if factor is not None:
            np.multiply(words, factor, out=words)
    return words


def column_words(column: pa.Array) -> Words:
    """The word of every value."""
    if isinstance(column, pa.DictionaryArray):
        return words_of_rows(column)(0, len(column))
    if column.null_count == len(column):
        return np.full(len(column), _EMPTY, dtype=np.uint64)
    if column.type == pa.string_view():
        column = column.cast(pa.string())
    words = _of_values(column if column.null_count == 0 else column.drop_null())
    if column.null_count == 0:
        return words
    laid = np.full(len(column), _EMPTY, dtype=np.uint64)
    laid[pc.is_valid(column).to_numpy(zero_copy_only=False)] = words
    return laid


def words_of_rows(column: pa.Array) -> Callable[[int, int], Words]:
    """What tells the words of some rows, from one to before another: the words of a dictionary are made once."""
    if not isinstance(column, pa.DictionaryArray):
        return lambda begin, end: column_words(column.slice(begin, end - begin))
    known = np.append(column_words(column.dictionary), _EMPTY)
    places = column.indices
    if places.null_count:
        places = pc.fill_null(places.cast(pa.int64()), len(known) - 1)
    places = places.to_numpy(zero_copy_only=False)
    return lambda begin, end: known.take(places[begin:end], mode="clip")


def _of_values(column: pa.Array) -> Words:
    kind = column.type
    if pa.types.is_boolean(kind):
        return mixed(column.cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.uint64) + _TRUTH)
    if pa.types.is_integer(kind):
        return _of_integers(column)
    if pa.types.is_floating(kind):
        return _of_floats(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(kind):
        return _of_decimals(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return text_words(column)
    raise DataError(
        "data files",
        expected="keys, codes and numbers that are stored as numbers, text, or true and false",
        found=f"a column of type {kind}",
        do="store it as one of these",
    )


def _of_integers(column: pa.Array) -> Words:
    numbers: Words = column.to_numpy(zero_copy_only=False)
    if numbers.dtype == np.uint64:
        return mixed(numbers + (numbers >> U(63)) * _LARGE)
    return mixed(numbers.astype(np.int64).view(np.uint64))


def _of_floats(numbers: NDArray[np.float64]) -> Words:
    whole = (np.floor(numbers) == numbers) & (np.abs(numbers) < _WHOLE)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    integers = np.where(whole, numbers, 0.0).astype(np.int64).view(np.uint64)
    found: Words = np.where(whole, mixed(integers.copy()), mixed(bits + _BITS))
    return found


def _of_decimals(column: pa.Array) -> Words:
    """Decimals by their digits, without zeros at the end; whole ones as whole numbers."""
    # With digits after the point there is always one to end the zeros at; without, zeros at the end count.
    wide = column.cast(pa.decimal256(76, max(column.type.scale, 0) + 1))
    text = pc.utf8_rtrim(pc.utf8_rtrim(wide.cast(pa.string()), "0"), ".")
    whole = pc.match_substring_regex(text, r"^-?\d{1,19}$").to_numpy(zero_copy_only=False)
    whole &= np.abs(wide.cast(pa.float64()).to_numpy(zero_copy_only=False)) < _WHOLE
    words = mixed(text_words(text) + _DECIMAL)
    if whole.any():
        words[whole] = _of_integers(text.filter(pa.array(whole)).cast(pa.int64()))
    return words


def text_words(column: pa.Array) -> Words:
    """The words of texts without empty rows: eight bytes of UTF-8 at a time, and their number."""
    texts = column.cast(pa.large_string())
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    begin, length = ends[:-1], np.diff(ends)
    read = np.frombuffer(content or b"", dtype=np.uint8)[: int(ends[-1]) if len(texts) else 0]
    padded = np.concatenate([read, np.zeros(8, dtype=np.uint8)])
    eights = np.lib.stride_tricks.as_strided(padded[:1].view(), shape=(len(padded) - 7, 8), strides=(1, 1))
    words = mixed(length.astype(np.uint64) + _TEXT)
    rows = np.arange(len(texts)) if len(texts) and int(length.min()) != int(length.max()) else slice(None)
    for at in range(0, int(length.max(initial=0)), 8):
        if not isinstance(rows, slice):
            rows = rows[length[rows] > at]
        left = np.minimum(length[rows] - at, 8).astype(np.uint64)
        piece = np.ascontiguousarray(eights[begin[rows] + at]).view("<u8").reshape(-1)
        piece &= ~U(0) >> (U(64) - U(8) * left)
        words[rows] = mixed((words[rows] + piece) * ONE_MORE)
    return words


def key_words(parts: Sequence[Words]) -> tuple[Words, Words]:
    """Two words for every row, made of the words of its keys, in this order."""
    first = parts[0] * _FACTORS[0]
    for part, factor in zip(parts[1:], _FACTORS[1:], strict=False):
        first += part * factor
    mixed(first)
    second = first >> U(32)
    np.bitwise_xor(second, first, out=second)
    np.multiply(second, ONE_MORE, out=second)
    return first, second


_FACTORS = tuple(map(U, (0xD1B54A32D192ED03, 0xAEF17502108EF2D9, 0xF1357AEA2E62A9C5, 0x9FB21C651E98DF25)))
"""Odd numbers without a pattern, one for each key of a row."""
