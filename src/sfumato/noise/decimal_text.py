"""The decimal text of integers as words of eight bytes, by arithmetic and not by writing it."""

import numpy as np

from sfumato.arrays import Words

LIMIT = 10**16
"""Integers from 0 to below this have at most sixteen digits: two words."""
_EIGHT = np.uint64(10**8)
_ZEROS = np.uint64(0x3030303030303030)  # the text "00000000"
_TENS = np.array([10**n for n in range(1, 16)], dtype=np.uint64)


def decimal_words(numbers: Words) -> tuple[Words, Words, Words]:
    """The length of each number's text, its first eight bytes and its next eight, zeros after its end.

    >>> lengths, first, second = decimal_words(np.array([17, 123456789], dtype=np.uint64))
    >>> lengths.tolist(), first.tobytes().replace(b"\\0", b"."), second.tobytes().replace(b"\\0", b".")
    ([2, 9], b'17......12345678', b'........9.......')
    """
    greatest = int(numbers.max(initial=0))
    if greatest >= LIMIT:
        raise ValueError("numbers of more than sixteen digits do not fit in two words")
    shortest, longest = (len(str(number)) for number in (int(numbers.min(initial=greatest)), greatest))
    lengths = np.full(len(numbers), shortest, dtype=np.uint64)
    for ten in _TENS[shortest - 1 : longest - 1]:
        lengths += numbers >= ten
    if greatest < _EIGHT:
        return lengths, _digits(numbers) >> ((np.uint64(8) - lengths) * np.uint64(8)), np.zeros_like(numbers)
    left, right = _digits(numbers // _EIGHT), _digits(numbers % _EIGHT)
    # Sixteen digits with zeros in front, from which the first bytes are dropped; a shift by 64 bits is done as two.
    dropped = (np.uint64(16) - lengths) * np.uint64(8)
    short = dropped >= 64
    within = np.where(short, dropped - np.uint64(64), dropped)
    kept = left >> within | (right << np.uint64(1)) << (np.uint64(63) - within)
    return lengths, np.where(short, right >> within, kept), np.where(short, np.uint64(0), right >> within)


def _digits(numbers: Words) -> Words:
    """The eight digits of numbers below 10⁸ as text, the first in the lowest byte: halves, quarters, then digits."""
    halves = numbers // np.uint64(10**4)
    halves |= (numbers - halves * np.uint64(10**4)) << np.uint64(32)
    pairs = (halves * np.uint64(10486)) >> np.uint64(20) & np.uint64(0x7F0000007F)  # 10486/2²⁰: a hundredth, rounded up
    pairs |= (halves - pairs * np.uint64(100)) << np.uint64(16)
    digits = (pairs * np.uint64(103)) >> np.uint64(10) & np.uint64(0x000F000F000F000F)  # 103/2¹⁰: a tenth, rounded up
    digits |= (pairs - digits * np.uint64(10)) << np.uint64(8)
    digits += _ZEROS
    return digits
