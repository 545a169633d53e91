"""What is made of permanent words: factors, directions, triangular noise, thresholds of rounding, edges."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from math import sqrt
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Flags, Integers, Words
from sfumato.errors import DataError, MethodError
from sfumato.noise.keyed import KEY_BYTES, Hashes, Keyed, hashes

# Directions from keyed words: up or down, each for half of all words.


def directions(words: NDArray[np.uint64]) -> Integers:
    """+1 or −1 for every word, by its lowest bit.

    >>> directions(np.array([0, 1, 2], dtype=np.uint64)).tolist()
    [1, -1, 1]
    """
    return 1 - ((words & np.uint64(1)).astype(np.int64) << 1)


# Permanent factors: one secret multiplier for every unit, the same in every release, on every machine.

ONE = 1_000_000
"""Factors are whole millionths, so that sums of factors times counts are exact on every engine."""


@dataclass(frozen=True, kw_only=True)
class Factors:
    """Factors from the ramp distribution on [1 − most, 1 − least] ∪ [1 + least, 1 + most], by a secret key.

    The density is greatest at the inner ends and falls evenly to nothing at the outer ones; both sides have half of it,
    so the mean is one. A factor is a function of key, unit and purpose alone: it need not be stored and can always be
    computed again. The key and both ends are secrets, kept out of the text of the object and of every error.

    >>> from sfumato.noise.keyed import hashes
    >>> factors = Factors(key=bytes(16), least=Fraction("0.15"), most=Fraction("0.25"))
    >>> factors
    Factors()
    >>> bool(factors.of(hashes(["17"]))[0] == factors.of(hashes(["17"]))[0])
    True
    """

    key: bytes = field(repr=False)
    least: Fraction = field(repr=False)
    most: Fraction = field(repr=False)

    def __post_init__(self) -> None:
        Keyed(key=self.key)  # refuses a key of another length
        if not 0 < self.least < self.most < 1 or any((end * ONE).denominator != 1 for end in (self.least, self.most)):
            raise ValueError("0 < least < most < 1 is needed, both in whole millionths")

    def of(self, units: Hashes, *, purpose: str = "factor") -> Integers:
        """The factor of every unit in millionths; another purpose gives factors that have nothing to do with these.

        With w uniform the distortion is most − (most − least)·√w, rounded outward to millionths. Square root and
        product of floats are correctly rounded everywhere, so that every machine gets the same.
        """
        words = Keyed(key=self.key).words(units, purpose=purpose)
        least, most = int(self.least * ONE), int(self.most * ONE)
        uniform = (words >> np.uint64(11)) * 2.0**-53
        distortion = most - (np.sqrt(uniform) * (most - least)).astype(np.int64)
        signs = 1 - ((words & np.uint64(1)).view(np.int64) << 1)
        factors: Integers = ONE + signs * distortion
        return factors

    @property
    def mean_distortion(self) -> float:
        """How far a factor is from one on average, before rounding to millionths: confidential, as the ends are."""
        return float(self.least + (self.most - self.least) / 3)

    @property
    def deviation(self) -> float:
        """The standard deviation of a factor before rounding to millionths: confidential, as the ends are."""
        # The mean is one, so the variance is the mean square of most − (most − least)·√w, with w uniform.
        width = self.most - self.least
        return sqrt(self.most**2 - self.most * width * Fraction(4, 3) + width**2 / 2)


# Triangular noise from keyed words: one number around one for every word, the same on every machine.

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MIDDLE = 2**32 - 1


def triangular(words: NDArray[np.uint64], *, spread: int) -> Integers:
    """Noise on [1 − b, 1 + b] with mode 1 in millionths, b being the spread in millionths; its variance is b²/6.

    The two halves of a word are independent and uniform, so their sum is triangular. All arithmetic is on integers, and
    rounding treats both sides alike: the mean is one exactly.

    >>> triangular(np.array([0, 2**64 - 1, 2**32 - 1], dtype=np.uint64), spread=300_000).tolist()
    [700000, 1300000, 1000000]
    """
    if not 0 < spread < ONE:
        raise ValueError("the spread must be above 0 and below 1, in whole millionths")
    from_middle = ((words >> _HALF) + (words & _LOW)).astype(np.int64) - _MIDDLE
    # Products stay below 2³² · 10⁶, far inside 64 bits; they are rounded to the nearest millionth.
    distance = (np.abs(from_middle) * spread + _MIDDLE // 2) // _MIDDLE
    noise: Integers = ONE + np.sign(from_middle) * distance
    return noise


# Rounding to multiples of a base by secret thresholds, one between every multiple and the next.

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


# Which employer's factor an edge of a graph takes: the same one in every release, whoever is named first.

Names: TypeAlias = Any  # an Arrow array (pyarrow ships no types), a NumPy array or a sequence of text
Rule = Literal["keyed", "twelve-characters"]

CHARACTERS = 12
"""The length of the ids that the rule for state employer ids is written for."""


def takes_first(first: Names, second: Names, *, rule: Rule, keyed: Keyed) -> Flags:
    """Whether the edge between two employers takes the factor of the one listed first.

    The employer that is chosen depends on the two ids alone, never on which of them is listed first. Both rules end in
    "the smaller id" or "the greater id", in the order of their characters' codes.

    >>> keyed = Keyed(key=bytes(16))
    >>> takes_first(["480000017000"], ["480000023000"], rule="twelve-characters", keyed=keyed).tolist()
    [True]
    >>> takes_first(["480000023000"], ["480000017000"], rule="twelve-characters", keyed=keyed).tolist()
    [False]
    """
    one, other = _names(first), _names(second)
    if len(one) != len(other):
        raise ValueError("edges need as many first employers as second ones")
    ascending = _flags(pc.less_equal(one, other))
    if rule == "keyed":
        smaller = _keyed_takes_smaller(one, other, ascending, keyed)
    elif rule == "twelve-characters":
        smaller = _characters_take_smaller(one, other, ascending)
    else:
        raise ValueError("the rule is 'keyed' or 'twelve-characters'")
    takes: Flags = smaller == ascending
    return takes


def chosen_employers(pairs: Integers, first: Hashes, second: Hashes, employers: Hashes, *, keyed: Keyed) -> Flags:
    """Which row of every pair of workers names the shared employer whose factor their edge takes.

    A row is a pair of workers, numbered by `pairs`, and an employer that both have. Each employer of a pair is drawn a
    pseudo-random word from the key, and the least word wins: every shared employer is as likely, and the choice stays
    when rows, or the two workers, come in another order.
    """
    workers = keyed.words_of_pairs(np.minimum(first, second), np.maximum(first, second), purpose="pair of workers")
    words = keyed.words_of_pairs(workers, employers, purpose="shared employer")
    order = np.lexsort((employers, words, pairs))
    chosen = np.zeros(len(pairs), dtype=np.bool_)
    ordered = pairs[order]
    chosen[order[np.append(True, ordered[1:] != ordered[:-1])[: len(order)]]] = True
    return chosen


def _keyed_takes_smaller(one: pa.Array, other: pa.Array, ascending: Flags, keyed: Keyed) -> Flags:
    """A pseudo-random bit of the unordered pair."""
    listed, following = hashes(one), hashes(other)
    smaller, greater = np.where(ascending, listed, following), np.where(ascending, following, listed)
    bits: Flags = (keyed.words_of_pairs(smaller, greater, purpose="edge") & np.uint64(1)) == 0
    return bits


def _characters_take_smaller(one: pa.Array, other: pa.Array, ascending: Flags) -> Flags:
    """The rule for state employer ids: the smaller eighth and ninth characters win; ties go by the eighth."""
    wrong = len(pc.unique(pa.concat_arrays([names.filter(_of_another_length(names)) for names in (one, other)])))
    if wrong:
        raise DataError(
            "rule 'twelve-characters' for the factors of edges",
            expected=f"employer ids of {CHARACTERS} characters",
            found=f"{wrong:,} employers whose id has another length",
            do="use the rule 'keyed', which is meant for any other ids",
        )
    listed, following = (pc.utf8_slice_codeunits(names, start=7, stop=9) for names in (one, other))
    first_has_smaller, tied = _flags(pc.less(listed, following)), _flags(pc.equal(listed, following))
    eighth = pc.utf8_slice_codeunits(listed, start=0, stop=1)
    # How many of the digits 1 to 9 are not above the character: none for '0' and below, nine for '9' and above.
    digit = np.zeros(len(one), dtype=np.int64)
    for value in "123456789":
        digit += _flags(pc.greater_equal(eighth, value))
    smaller: Flags = np.where(tied, digit % 2 == 0, first_has_smaller == ascending)
    return smaller


def _of_another_length(names: pa.Array) -> pa.Array:
    return pc.not_equal(pc.utf8_length(names), CHARACTERS)


def _names(units: Names) -> pa.Array:
    names = units if isinstance(units, pa.Array | pa.ChunkedArray) else pa.array(list(units), type=pa.string())
    whole = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    # Arrow compares text of the same width only, and engines differ in which they hand out.
    return whole.cast(pa.large_string())


def _flags(answers: pa.Array) -> Flags:
    if answers.null_count:
        raise ValueError("an employer without an id has no edges")
    flags: Flags = answers.to_numpy(zero_copy_only=False).astype(np.bool_)
    return flags


# How coarsely distorted sums are rounded: the base follows from how many values of one employer are published.
#
# A factor δ times whole numbers lies on a lattice, and values rounded to whole numbers show it: some never occur.
# docs/methods/noise-infusion.md derives what values that are rounded to multiples of a base tell about δ.

LIFE = 100
"""The periods that a key is taken to serve: 25 years of quarters. A longer panel counts as it is."""


EARNINGS = 100
"""The base of earnings is so many times that of counts: payrolls may be multiples of wages in round sums."""


LARGEST_FACTOR = 2
"""Every factor is below this."""


LARGEST = 1_000_000
"""No base is above this."""


WHOLE_NUMBERS = 1
"""The base of earlier versions: whole numbers, which show the lattice."""


LEAK = (
    "Published to the last whole number, some tens of values of one employer give its factor exactly, and so all its "
    "figures"
)
"""What must be said of values that are rounded to whole numbers."""


def least_base(values: int) -> int:
    """The least of 3, 5, 10, 20, 50, 100, … at which so many published values tell at most one nat about a factor.

    A value rounded by a threshold of its own tells at most δ⁴/(45·base⁴) nats.

    >>> [least_base(values) for values in (1, 200, 800, 12_800, 1_000_000)]
    [3, 3, 5, 10, 50]
    """
    return next(base for base in _bases() if information(values, base) <= 1)


def information(values: int, base: int) -> Fraction:
    """A bound on what so many values tell about the factor of one employer, in nats, whatever the factor is."""
    return Fraction(values * LARGEST_FACTOR**4, 45 * base**4)


def refuse_base(method: str, option: str, base: int) -> None:
    """Raise MethodError for a base that is none."""
    if not 1 <= base <= LARGEST:
        raise MethodError(
            f"{method}, {option}",
            expected=f"a whole number from 1 to {LARGEST:,}",
            found=f"{base:,}",
            do="leave it out: it is chosen from how many values of one employer the release publishes",
        )


def _bases() -> Iterator[int]:
    yield from (3, 5)
    for power in count(1):
        yield from (digit * 10**power for digit in (1, 2, 5))


@dataclass(frozen=True, kw_only=True)
class RoundingNote:
    """What the ledger keeps of the rounding of a table with factors: the bases, and the question without them."""

    bases: tuple[int, int]
    question: str

    @classmethod
    def read(cls, question: str, text: str) -> Self:
        """From the note of a charge: its question under any key, and what stands behind it."""
        parts = text.split("/")
        if len(parts) != 3:  # of an earlier version, which rounded to whole numbers, or no table with factors
            return cls(bases=(WHOLE_NUMBERS, WHOLE_NUMBERS), question=question)
        return cls(bases=(int(parts[0]), int(parts[1])), question=parts[2])

    @property
    def text(self) -> str:
        """The note as the ledger keeps it."""
        return f"{self.bases[0]}/{self.bases[1]}/{self.question}"
