"""How well draws fit a stated distribution, and a source of randomness that is stuck."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sfumato.arrays import Integers

ACCEPTED, REJECTED = 1e-3, 1e-6

Survival = Callable[[Integers], NDArray[np.float64]]


class Stuck:
    """A source that gives the same word for ever."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, n: int, /) -> NDArray[np.uint64]:
        return np.full(n, self.word, dtype=np.uint64)


def p_value(drawn: Integers, survival: Survival, classes: int = 40) -> float:
    """The p-value of a chi-square test of P(J ≥ j), in up to forty classes.

    Every second draw serves to choose classes of about equal frequency, the others to test them.
    """
    chosen, tested = drawn[::2], drawn[1::2]
    edges = np.unique(np.quantile(chosen, np.arange(1, classes) / classes).astype(np.int64))
    edges = edges[survival(edges) < 1 - 20 / len(tested)]
    expected = -np.diff(np.concatenate([[1], survival(edges), [0]])) * len(tested)
    observed = np.bincount(np.searchsorted(edges, tested, side="right"), minlength=len(expected))
    assert len(edges) > 0
    return float(chi2.sf(((observed - expected) ** 2 / np.maximum(expected, 1e-9)).sum(), len(expected) - 1))
