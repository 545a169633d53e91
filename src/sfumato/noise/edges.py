"""Which employer's factor an edge of a graph takes: the same one in every release, whoever is named first."""

from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Flags, Integers
from sfumato.errors import DataError
from sfumato.noise.keyed import Hashes, Keyed, hashes

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
