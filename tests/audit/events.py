"""Searches events that tell two sets of draws apart, and bounds the privacy loss that they prove.

Draws are rows of published numbers. A quarter of them teaches scores, a quarter chooses events, and the other half,
which had no part in either, bounds the probabilities of the few events that were chosen (Clopper and Pearson 1934).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from sfumato.arrays import Flags, Floats, Integers

Places = NDArray[np.intp]
Values = Callable[[Places], Floats]
"""The values of a number at some of the draws."""
Holds = Callable[[Places], Flags]
"""Whether an event holds at some of the draws."""

ERROR = 1e-6
"""The probability that a bound is above the true loss: small, as every round of tests has many cases."""
ONE, TWO, TOGETHER, SCORE = "one number", "two numbers", "two events", "learned score"
_TESTED = 2 * len((ONE, TWO, TOGETHER, SCORE))
"""One event of each family in each direction."""
_CHOOSING = 1e-3
_CUTS = np.array([0.0005, 0.002, 0.005, 0.01, 0.02, 0.05, *np.linspace(0.1, 0.9, 17), 0.95, 0.98, 0.99, 0.995, 0.998])
_MOST_EQUAL = 12
_DIVISORS = (2, 10, 10**6)
_MOST_COLUMNS = 8
_BINS = 24
_REPEATED = 0.5
_SEED = 1934


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What one event proves about the privacy loss."""

    lower: float
    """The loss is at least this, but for a probability of `ERROR`."""
    estimate: float
    """The logarithm of the ratio of frequencies in the half that bounds."""
    event: str
    draws: int
    """Of each of the two sets of data, in both halves."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """Published numbers of two neighbouring sets of data: of every column a value for every draw."""

    before: Mapping[str, Floats]
    after: Mapping[str, Floats]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Events:
    """Events of one family, and how often each occurs among the draws that choose."""

    family: str
    names: Sequence[str]
    holds: Sequence[Holds]
    before: Integers
    after: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class _Split:
    """Which draws teach, choose and bound; those of the second set come after those of the first."""

    first: int
    teach: Places
    choose: Places
    bound: Places

    @classmethod
    def of(cls, first: int, second: int) -> "_Split":
        rng = np.random.default_rng(_SEED)
        part = np.concatenate([rng.permutation(np.arange(size) % 4) for size in (first, second)])
        teach, choose, bound = (np.flatnonzero(chosen) for chosen in (part == 0, part == 1, part >= 2))
        return cls(first=first, teach=teach, choose=choose, bound=bound)

    def sides(self, places: Places) -> tuple[Places, Places]:
        """Those of the first set and those of the second."""
        cut = int(np.searchsorted(places, self.first))
        return places[:cut], places[cut:]


def largest_loss(draws: Draws, *, delta: float = 0.0, error: float = ERROR) -> Loss:
    """The largest loss that can be proved: P(A) ≤ e^loss·P′(A) + δ holds with no smaller one, in one direction or both.

    `error` is shared by all events that are tested.
    """
    columns = {name: np.concatenate([column, draws.after[name]]) for name, column in draws.before.items()}
    columns = {name: column for name, column in columns.items() if np.ptp(column)}
    sizes = [len(next(iter(side.values()))) for side in (draws.before, draws.after)]
    split = _Split.of(sizes[0], sizes[1])
    best: dict[tuple[str, bool], tuple[float, str, Holds]] = {}
    n, m = map(len, split.sides(split.choose))
    for events in _candidates(columns, split):
        for turned in (False, True):
            ones, others = (events.after, events.before) if turned else (events.before, events.after)
            of_one, of_other = (m, n) if turned else (n, m)
            lower = lower_bounds(ones, of_one, others, of_other, delta=delta, error=_CHOOSING)
            at, kind = int(np.argmax(lower)), (events.family, turned)
            if kind not in best or lower[at] > best[kind][0]:
                best[kind] = float(lower[at]), events.names[at], events.holds[at]
    found = [
        _tested(split, name, holds, turned=turned, delta=delta, error=error / _TESTED, draws=min(sizes))
        for (_, turned), (_, name, holds) in best.items()
    ]
    nothing = Loss(lower=-np.inf, estimate=0.0, event="none: every draw is the same", draws=min(sizes))
    return max(found, key=lambda loss: loss.lower, default=nothing)


def _tested(split: _Split, name: str, holds: Holds, *, turned: bool, delta: float, error: float, draws: int) -> Loss:
    sides = split.sides(split.bound)[:: -1 if turned else 1]
    (one, other), (n, m) = (int(holds(side).sum()) for side in sides), map(len, sides)
    share = one / n - delta
    with np.errstate(divide="ignore"):  # of an event that δ covers there is nothing to estimate
        estimate = float(np.log(share) - np.log(other / m)) if share > 0 else -np.inf
    lower = lower_bounds(np.array([one]), n, np.array([other]), m, delta=delta, error=error)
    likelier = "after" if turned else "before"
    return Loss(lower=float(lower[0]), estimate=estimate, event=f"{name}, likelier {likelier}", draws=draws)


def lower_bounds(ones: Integers, n: int, others: Integers, m: int, *, delta: float, error: float) -> Floats:
    """ln((p − δ)/p′) with p at the low and p′ at the high end of exact intervals, half of `error` for each end.

    >>> lower_bounds(np.array([7_300]), 10_000, np.array([2_700]), 10_000, delta=0, error=0.05).round(3)
    array([0.947])
    """
    low = np.where(ones > 0, betaincinv(np.maximum(ones, 1), n - ones + 1, error / 2), 0.0)
    high = np.where(others < m, betaincinv(others + 1, np.maximum(m - others, 1), 1 - error / 2), 1.0)
    with np.errstate(divide="ignore"):
        bounds: Floats = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return bounds


def _candidates(columns: Mapping[str, Floats], split: _Split) -> Iterator[_Events]:
    """Everything that is tried."""
    if not columns:
        return
    numbers: dict[str, Values] = {name: column.__getitem__ for name, column in columns.items()}
    for name, values in numbers.items():
        yield _of_number(name, values, split, ONE)
    base, decided = _base(columns, split)
    for one, other in decided.items():
        yield _of_number(f"{one} - {other}", partial(_sum, columns[one], -columns[other]), split, TWO)
    for one, other in combinations(base, 2):
        yield _of_number(f"{one} + {other}", partial(_sum, columns[one], columns[other]), split, TWO)
        yield _of_number(f"{one} - {other}", partial(_sum, columns[one], -columns[other]), split, TWO)
    if len(base) > 1:
        yield _together([_of_number(name, numbers[name], split, TOGETHER) for name in base], split)
    for name, score in _scores([columns[name] for name in base], split).items():
        yield _of_number(f"score of {name}", score.__getitem__, split, SCORE)


def _sum(one: Floats, other: Floats, places: Places) -> Floats:
    total: Floats = one[places] + other[places]
    return total


def _of_number(name: str, values: Values, split: _Split, family: str) -> _Events:
    """A number is at most, or above, one of its quantiles; it has one of its usual values; it can be divided."""
    taught = values(split.teach)
    before, after = (np.sort(values(side)) for side in split.sides(split.choose))
    cuts = np.unique(np.quantile(taught, _CUTS, method="lower"))
    usual, times = np.unique(taught, return_counts=True)
    usual = usual[np.argsort(-times)[:_MOST_EQUAL]]
    divisors = _DIVISORS if np.array_equal(taught, np.rint(taught)) and np.abs(taught).max() < 2**53 else ()

    def counts(drawn: Floats) -> list[int]:
        below = np.searchsorted(drawn, cuts, side="right")
        equal = np.searchsorted(drawn, usual, side="right") - np.searchsorted(drawn, usual, side="left")
        divided = np.array([np.count_nonzero(drawn % divisor == 0) for divisor in divisors], dtype=np.int64)
        one_way = np.concatenate([below, equal, divided])
        return [*one_way, *(len(drawn) - one_way)]

    tests: list[tuple[str, str, Callable[[Floats], Flags]]] = [
        *((f"≤ {cut:.9g}", f"> {cut:.9g}", partial(np.greater_equal, cut)) for cut in cuts),
        *((f"= {value:.9g}", f"≠ {value:.9g}", partial(np.equal, value)) for value in usual),
        *((f"divisible by {by}", f"not divisible by {by}", partial(_is_divisible, by)) for by in divisors),
    ]
    return _Events(
        family=family,
        names=[f"{name} {words[way]}" for way in (0, 1) for words in tests],
        holds=[partial(_at, values, test, bool(way)) for way in (0, 1) for *_, test in tests],
        before=np.array(counts(before)),
        after=np.array(counts(after)),
    )


def _at(values: Values, test: Callable[[Floats], Flags], turned: bool, places: Places) -> Flags:
    return test(values(places)) != turned


def _is_divisible(divisor: int, values: Floats) -> Flags:
    return values % divisor == 0


def _together(each: Sequence[_Events], split: _Split) -> _Events:
    """Both or either of two events about different numbers, of those that tell most of each."""
    n, m = map(len, split.sides(split.choose))
    best: list[tuple[int, str, Holds]] = []
    for place, events in enumerate(each):
        one_way = lower_bounds(events.before, n, events.after, m, delta=0.0, error=_CHOOSING)
        other = lower_bounds(events.after, m, events.before, n, delta=0.0, error=_CHOOSING)
        chosen = {*np.argsort(one_way)[-2:].tolist(), *np.argsort(other)[-2:].tolist()}
        best += [(place, events.names[at], events.holds[at]) for at in sorted(chosen)]
    pairs = [(one, other) for one, other in combinations(best, 2) if one[0] != other[0]]
    names, holds = [], list[Holds]()
    for (_, one, first), (_, other, second) in pairs:
        names += [f"{one} and {other}", f"{one} or {other}"]
        holds += [partial(_both, first, second), partial(_either, first, second)]
    counts = [[int(event(side).sum()) for event in holds] for side in split.sides(split.choose)]
    return _Events(family=TOGETHER, names=names, holds=holds, before=np.array(counts[0]), after=np.array(counts[1]))


def _both(one: Holds, other: Holds, places: Places) -> Flags:
    return one(places) & other(places)


def _either(one: Holds, other: Holds, places: Places) -> Flags:
    return one(places) | other(places)


def _base(columns: Mapping[str, Floats], split: _Split) -> tuple[list[str], dict[str, str]]:
    """The columns that no other one decides, the most telling first, and of each of the rest one that decides it.

    Errors and intervals follow from values.
    """
    codes = {name: np.unique(column[split.teach], return_inverse=True)[1] for name, column in columns.items()}
    kept, decided = list[str](), dict[str, str]()
    for name in sorted(columns, key=lambda name: -int(codes[name].max())):
        by = next((other for other in kept if _decides(codes[other], codes[name])), None)
        if by is None:
            kept.append(name)
        else:
            decided[name] = by
    return sorted(kept, key=lambda name: -_told(columns[name], split))[:_MOST_COLUMNS], decided


def _decides(one: Places, other: Places) -> bool:
    """Whether the second number follows from the first: both have one order, or equal firsts have equal seconds.

    A first that occurs once has any second, which proves nothing. So most draws must have a first that occurs again,
    and so must most of those whose second is not the usual one.
    """
    if np.array_equal(one, other) or np.array_equal(one.max() - one, other):
        return True
    again = np.bincount(one)[one] > 1
    unusual = other != np.argmax(np.bincount(other))
    if np.mean(again) < _REPEATED or (unusual.any() and np.mean(again[unusual]) < _REPEATED):
        return False
    return len(np.unique(one * (int(other.max()) + 1) + other)) == int(one.max()) + 1


def _told(column: Floats, split: _Split) -> float:
    """The largest difference of the two distributions among the draws that teach."""
    sides = [np.sort(column[side]) for side in split.sides(split.teach)]
    levels = np.unique(column[split.teach])
    shares = [np.searchsorted(side, levels, side="right") / len(side) for side in sides]
    return float(np.abs(shares[0] - shares[1]).max())


def _scores(columns: Sequence[Floats], split: _Split) -> dict[str, Floats]:
    """Logarithms of likelihood ratios for all draws, learned from those that teach, in four ways."""
    coded = [_coded(column, split) for column in columns]
    found = {"each number": np.sum([_ratios(code, split) for code in coded], axis=0)}
    joint, cells = coded[0], int(coded[0].max()) + 1
    for code in coded[1:]:
        width = int(code.max()) + 1
        if 8 * cells * width > len(split.teach):
            break
        joint, cells = joint * width + code, cells * width
    found["all numbers at once"] = _ratios(joint, split)
    if len(columns) > 1:
        ranks = np.stack([code / max(int(code.max()), 1) - 0.5 for code in coded], axis=1)
        turned = ranks @ np.linalg.eigh(np.cov(ranks[split.teach].T))[1]
        found["each axis"] = np.sum([_ratios(_coded(axis, split), split) for axis in turned.T], axis=0)
        found["a regression"] = _logistic(ranks, split)
    return found


def _coded(values: Floats, split: _Split) -> Integers:
    """The bin of every value; a few values are bins of their own."""
    levels = np.unique(values[split.teach])
    if len(levels) > _BINS:
        levels = np.unique(np.quantile(values[split.teach], np.linspace(0, 1, _BINS + 1)[1:-1]))
    return np.searchsorted(levels, values).astype(np.int64)


def _ratios(codes: Integers, split: _Split) -> Floats:
    kinds = int(codes.max()) + 1
    shares = [np.bincount(codes[side], minlength=kinds) + 0.5 for side in split.sides(split.teach)]
    ratios: Floats = np.log(shares[0] / shares[0].sum()) - np.log(shares[1] / shares[1].sum())
    return ratios[codes]


def _logistic(ranks: Floats, split: _Split) -> Floats:
    """A logistic regression on ranks, their squares and products, by a few of Newton's steps."""
    pairs = [ranks[:, [i]] * ranks[:, [j]] for i in range(ranks.shape[1]) for j in range(i + 1)]
    design = np.hstack([np.ones((len(ranks), 1)), ranks, *pairs])
    taught, target = design[split.teach], (split.teach < split.first).astype(np.float64)
    weights = np.zeros(design.shape[1])
    for _ in range(6):
        chance = 1 / (1 + np.exp(-taught @ weights))
        curvature = (taught * (chance * (1 - chance))[:, None]).T @ taught + np.eye(len(weights))
        weights += np.linalg.solve(curvature, taught.T @ (target - chance) - weights)
    scored: Floats = design @ weights
    return scored
