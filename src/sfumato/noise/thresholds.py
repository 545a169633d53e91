"""Rounding to multiples of a base by secret thresholds, one between every multiple and the next."""

import numpy as np

from sfumato.arrays import Integers, Words
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import KEY_BYTES, Keyed

_SPREAD = Keyed(key=bytes(KEY_BYTES))
"""A function that everybody knows: what is secret is the word that it spreads over the intervals of a cell."""


def rounded_by_thresholds(whole: Integers, part: Integers, words: Words, *, base: int) -> Integers:
    """The multiple of the base below or above each number, so that it is right on average over thresholds.

    A number is given in whole units and millionths, and comes with the secret word of its cell. Between two multiples
    lies one threshold, uniform and a function of the word and the interval: numbers from there on go up. So the same
    number is always rounded alike, a larger one never below a smaller one, 0 to 0, and numbers in different intervals
    by chances that have nothing to do with each other.

    >>> rounded_by_thresholds(np.array([0, 10, 20]), np.zeros(3, np.int64), np.zeros(3, np.uint64), base=10).tolist()
    [0, 10, 20]
    """
    below = whole // base
    beyond = (whole - below * base) * ONE + part
    drawn = _SPREAD.words_of_pairs(words, below.astype(np.uint64), purpose="threshold")
    threshold = (drawn % np.uint64(base * ONE)).astype(np.int64)
    rounded: Integers = (below + (threshold < beyond)) * base
    return rounded
