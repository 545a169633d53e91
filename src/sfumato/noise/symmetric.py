"""Draw symmetric noise in passes: floating point for most draws, more digits and more bits for the doubtful ones."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.noise.randomness import Randomness
from sfumato.noise.second_pass import SecondPass, settled

FirstPass = Callable[[slice, Integers], tuple[Integers, NDArray[np.bool_]]]
"""The draws of a part, given the first bits of U of each as whole numbers, and which of them are certain."""
Refine = Callable[[int, int, int], int]
"""One draw, given its place among all, the bits of its U that are known, and how many these are."""

FIRST_BITS = 53  # of each word, as many as a float64 holds exactly; the word's last bit is the sign
_CHUNK = 1 << 14  # draws at a time: the working arrays stay in the processor's cache


def draw(
    n: int,
    randomness: Randomness,
    *,
    first_bits: int,
    first_pass: FirstPass,
    second_pass: SecondPass,
    refine: Refine,
) -> Integers:
    """One magnitude for each of n draws with a sign of its own, positive as often as negative."""
    check_first_bits(first_bits)
    drawn = np.empty(n, dtype=np.int64)
    for part in chunks(n):
        words = randomness.words(part.stop - part.start)
        heads = (words >> np.uint64(64 - first_bits)).view(np.int64)
        magnitudes, certain = first_pass(part, heads)
        if len(doubtful := np.flatnonzero(~certain)):
            places = part.start + doubtful
            magnitudes[doubtful] = settled(
                heads[doubtful],
                randomness,
                first_bits=first_bits,
                second_pass=lambda some, uniforms, places=places: second_pass(places[some], uniforms),  # type: ignore[misc]
                refine=lambda i, known, bits, places=places: refine(int(places[i]), known, bits),  # type: ignore[misc]
            )
        np.multiply(magnitudes, signs(words), out=drawn[part])
    return drawn


def signs(words: NDArray[np.uint64]) -> Integers:
    """+1 or −1 by the last bit of every word, which no magnitude uses."""
    return 1 - ((words & np.uint64(1)).view(np.int64) << 1)


def chunks(n: int) -> Iterator[slice]:
    """Parts of n draws that are worked on at a time."""
    for start in range(0, n, _CHUNK):
        yield slice(start, min(start + _CHUNK, n))


def check_first_bits(first_bits: int) -> None:
    """Refuse more bits than a float64 holds beside the sign."""
    if not 1 <= first_bits <= FIRST_BITS:
        raise ValueError(f"first_bits must be between 1 and {FIRST_BITS}, not {first_bits}")


def check_multiples(multiples: Integers) -> None:
    """Refuse a scale that is not a positive multiple of its unit."""
    if len(multiples) and int(multiples.min()) < 1:
        raise ValueError("every multiple must be a positive whole number")
