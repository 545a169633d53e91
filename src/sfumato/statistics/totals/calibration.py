"""The magnitudes that cost least while the attacks on the largest contributor stay within limits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.arrays import Floats
from sfumato.errors import MethodError
from sfumato.statistics.totals.perturbation import (
    ACCURACY,
    PUBLISHED_OPTIMA,
    NoiseSum,
    Optima,
    Shape,
    magnitudes_by_shape,
)

# What attackers learn about the largest contributor, and what the perturbation costs in accuracy.

SPREAD = 0.3
"""The b of the published method: noise is triangular on 1 ± b."""
MOST_CONTRIBUTORS = 6
"""More than a few perturbed contributors protect the largest no better."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A way to estimate the largest contributor, and how often it may come how near."""

    number: int
    words: str
    within: float
    """V: an estimate within this share of the truth discloses it."""
    limit: float
    """R: the largest acceptable probability of that."""

    def __post_init__(self) -> None:
        if not (self.within > 0 and 0 <= self.limit <= 1):
            raise MethodError(
                f"attack {self.number}",
                expected="a nearness V above 0 and a probability R from 0 to 1",
                found=f"V = {self.within:g}, R = {self.limit:g}",
                do="write shares such as 0.11 and 0.15, not percentages",
            )


ATTACKS = (
    Attack(number=1, words="the total, taken for the largest", within=0.18, limit=0.15),
    Attack(number=2, words="the total, less the total without it", within=0.11, limit=0.15),
    Attack(number=3, words="the total, less the second", within=0.11, limit=0.15),
)
"""The three attacks of the paper with its nearness and its acceptable risk."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How often an attack succeeds."""

    attack: Attack
    risk: float

    @property
    def is_met(self) -> bool:
        """Whether it succeeds no more often than is acceptable, as far as can be told."""
        return self.risk <= self.attack.limit + ACCURACY


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What given magnitudes do to a cell of a given shape."""

    magnitudes: tuple[float, ...]
    loss: float
    """The mean of |P*| as a share of the total."""
    verdicts: tuple[Verdict, ...]

    @property
    def is_met(self) -> bool:
        """Whether every attack is held to what is acceptable."""
        return all(verdict.is_met for verdict in self.verdicts)


def evaluate(
    shape: Shape,
    magnitudes: Sequence[float],
    *,
    attacks: Sequence[Attack] = ATTACKS,
    parity: bool = False,
    spread: float = SPREAD,
    without: Sequence[float] | None = None,
) -> Evaluation:
    """Loss and risks of one set of magnitudes; `without` are those of the cell that lacks the target, if others.

    >>> found = evaluate(Shape.read("90,5,5"), (0.15, 0.1, 0.1))
    >>> round(found.loss, 3), [round(verdict.risk, 2) for verdict in found.verdicts]
    (0.135, [0.5, 0.01, 0.39])
    """
    return Evaluation(
        magnitudes=tuple(float(magnitude) for magnitude in magnitudes),
        loss=float(losses(shape, magnitudes, spread=spread)[0]),
        verdicts=tuple(
            Verdict(
                attack=attack,
                risk=float(risks(shape, magnitudes, attack, parity=parity, spread=spread, without=without)[0]),
            )
            for attack in attacks
        ),
    )


def losses(shape: Shape, magnitudes: ArrayLike, *, spread: float = SPREAD) -> Floats:
    """The mean loss of utility, E|P*| as a share of the total, for every row of magnitudes."""
    total: Floats = _noise(shape, _rows(magnitudes), spread).mean_magnitude() * abs(shape.sizes[0] / shape.total)
    return total


def risks(
    shape: Shape,
    magnitudes: ArrayLike,
    attack: Attack,
    *,
    parity: bool = False,
    spread: float = SPREAD,
    without: ArrayLike | None = None,
) -> Floats:
    """The probability that the attack comes within V of the largest contributor, for every row of magnitudes.

    With the parity rule all directions are turned around when the number of contributors changes by one; it plays a
    part in attack 2 alone, which compares two such cells. So do magnitudes `without` the target, where they depend on
    the shape of a cell; otherwise both cells have the same.
    """
    rows = _rows(magnitudes)
    if attack.number == 2:
        return _difference(shape, rows, rows if without is None else _rows(without), spread, parity).probability(
            -attack.within, attack.within
        )
    second = shape.sizes[1] if attack.number == 3 and len(shape.sizes) > 1 else 0.0
    # What the attacker's estimate contains beside the target and the noise, as a multiple of the target.
    others = (shape.total - shape.sizes[0] - second) / shape.sizes[0]
    return _noise(shape, rows, spread).probability(-attack.within - others, attack.within - others)


def _noise(shape: Shape, rows: Floats, spread: float) -> NoiseSum:
    """P* as a multiple of the largest contributor."""
    own = rows * shape.to_largest(rows.shape[1])
    return NoiseSum(own=own, other=np.zeros_like(own), spread=spread)


def _difference(shape: Shape, rows: Floats, without: Floats, spread: float, parity: bool) -> NoiseSum:
    """P* less the P* of the cell without the largest contributor, as a multiple of that contributor.

    Without it every other contributor moves up a rank, so it has the magnitude of the one before; one more joins the
    top. The cell has another key, so all h are drawn anew, while directions stay.
    """
    sizes = shape.to_largest(rows.shape[1] + 1)
    own, other = (np.zeros((len(rows), len(sizes))) for _ in range(2))
    own[:, :-1] = rows * sizes[:-1]
    other[:, 1:] = without * sizes[1:]
    return NoiseSum(own=own, other=other if parity else -other, spread=spread)


def _rows(magnitudes: ArrayLike) -> Floats:
    rows = np.atleast_2d(np.asarray(magnitudes, dtype=np.float64))
    if not (1 <= rows.shape[1] <= MOST_CONTRIBUTORS and np.isfinite(rows).all() and (rows >= 0).all()):
        raise MethodError(
            "magnitudes",
            expected=f"from 1 to {MOST_CONTRIBUTORS} numbers that are not negative",
            found=",".join(f"{number:g}" for number in rows[0]),
            do="give one for each of the largest contributors, such as .4,.3,.2",
        )
    return rows


Steps = NDArray[np.int64]

STEP = 0.05
"""The grid of the published magnitudes."""
LARGEST = 1.0
_MOST_POINTS = 200_000  # of the first pass of a search
_MOST_DRAWN = 20_000  # of a curve
_PIECE = 500
_KEPT = 20  # around which finer steps are tried
_SAME = 1e-6  # losses nearer than this are the same: below what the figures are right to


@dataclass(frozen=True, kw_only=True)
class Search:
    """Which magnitudes are tried: whole steps from one step to the largest."""

    top: int
    """K, how many contributors are perturbed."""
    step: float = STEP
    largest: float = LARGEST
    falling: bool = False
    """Only magnitudes that never grow from a contributor to a smaller one."""

    def __post_init__(self) -> None:
        if not (1 <= self.top <= MOST_CONTRIBUTORS and 0.001 <= self.step <= self.largest <= 10):
            raise MethodError(
                "search",
                expected=f"1 to {MOST_CONTRIBUTORS} contributors, and steps from 0.001 to a largest of at most 10",
                found=f"{self.top} contributors, steps of {self.step:g} to {self.largest:g}",
                do="try 3 contributors in steps of 0.05 to 1",
            )

    def of(self, shape: Shape) -> "Search":
        """The same search where a shape has fewer contributors: nobody can be perturbed who does not exist."""
        return replace(self, top=min(self.top, len(shape.sizes)))

    @property
    def steps(self) -> int:
        """The largest magnitude in steps."""
        return int(self.largest / self.step + 1e-9)

    def magnitudes(self, points: Steps) -> Floats:
        """Points as numbers, 0.15 and not 0.15000000000000002."""
        numbers: Floats = np.round(points * self.step, 9)
        return numbers

    def grid(self, most: int) -> tuple[Steps, int]:
        """At most so many points, in steps, and how many steps lie between them: 1, or a power of two."""
        stride = 1
        while (self.steps // stride) ** self.top > most:
            stride *= 2
        marks = range(stride, self.steps + 1, stride)
        return self._admitted(np.array(list(product(marks, repeat=self.top)), dtype=np.int64)), stride

    def around(self, centres: Steps, stride: int) -> Steps:
        """Points at most twice a stride from the centres, in every direction."""
        box = np.array(list(product((-2, -1, 0, 1, 2), repeat=self.top)), dtype=np.int64) * stride
        points = (centres[:, None, :] + box[None]).reshape(-1, self.top)
        return self._admitted(np.unique(points, axis=0))

    def _admitted(self, points: Steps) -> Steps:
        kept = ((points >= 1) & (points <= self.steps)).all(axis=1)
        if self.falling:
            kept &= (np.diff(points, axis=1) <= 0).all(axis=1)
        return points[kept]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """Magnitudes with their losses and, attack by attack, their risks."""

    steps: Steps
    magnitudes: Floats
    loss: Floats
    risk: Floats
    attacks: tuple[Attack, ...]

    @property
    def worst_risk(self) -> Floats:
        """The risk of the attack that succeeds most often."""
        worst: Floats = self.risk.max(axis=1)
        return worst

    @property
    def excess(self) -> Floats:
        """By how much the worst attack is above its limit; 0 where all limits are kept."""
        over = (self.risk - [attack.limit for attack in self.attacks]).max(axis=1)
        return np.where(over > ACCURACY, over, 0.0)


def optimum(
    shape: Shape,
    search: Search,
    *,
    attacks: Sequence[Attack] = ATTACKS,
    parity: bool = False,
    spread: float = SPREAD,
) -> Evaluation:
    """The magnitudes with the least mean loss that hold these attacks to their limits.

    It is exact on grids of up to 200,000 points; on finer ones a coarser grid is searched first, and then halfway
    between its best points until the step is reached. Where one contributor outweighs the noise of all others, |P*| has
    the same mean whatever these others' magnitudes are. Of magnitudes with the same loss the ones with the smaller
    variance are taken, then the ones that give more to larger contributors.
    """
    _some(attacks)
    search = search.of(shape)
    points, stride = search.grid(_MOST_POINTS)
    while True:
        tried = _cheapest(shape, points, search, attacks, parity=parity, spread=spread)
        order = _order(shape, tried)
        if stride == 1:
            break
        stride //= 2
        points = search.around(tried.steps[order[:_KEPT]], stride)
    best = order[0]
    if tried.excess[best] > 0:
        raise _impossible(shape, search, tried, int(best))
    return evaluate(shape, tried.magnitudes[best].tolist(), attacks=attacks, parity=parity, spread=spread)


def optima(
    shapes: Sequence[Shape],
    search: Search,
    *,
    attacks: Sequence[Attack] = ATTACKS,
    parity: bool = False,
    spread: float = SPREAD,
) -> Optima:
    """The optima of several shapes, to interpolate between; sizes are of one contributor more than is perturbed."""
    found = [optimum(shape, search, attacks=attacks, parity=parity, spread=spread).magnitudes for shape in shapes]
    return Optima(
        shapes=np.stack([np.abs(shape.to_largest(search.top + 1)) for shape in shapes]),
        magnitudes=np.array([(*magnitudes, *[np.nan] * (search.top - len(magnitudes))) for magnitudes in found]),
    )


def tradeoff(
    shape: Shape,
    search: Search,
    *,
    attacks: Sequence[Attack] = ATTACKS,
    parity: bool = False,
    spread: float = SPREAD,
) -> Tried:
    """Risk and loss of every magnitude of the first pass, the least loss first."""
    _some(attacks)
    search = search.of(shape)
    tried = _try(shape, search.grid(_MOST_DRAWN)[0], search, attacks, parity=parity, spread=spread)
    return _chosen(tried, _by_loss(tried))


def frontier(tried: Tried) -> Tried:
    """The magnitudes that no others beat in both loss and worst risk, the least loss first."""
    order = _by_loss(tried)
    worst = tried.worst_risk[order]
    before = np.concatenate([[np.inf], np.minimum.accumulate(worst)[:-1]])
    return _chosen(tried, order[worst < before - ACCURACY])


def _cheapest(
    shape: Shape, points: Steps, search: Search, attacks: Sequence[Attack], *, parity: bool, spread: float
) -> Tried:
    """Points in the order of what they cost at least, up to where none can be cheaper than one that will do."""
    least = _least_losses(shape, search.magnitudes(points))
    order = np.argsort(least, kind="stable")
    pieces: list[Tried] = []
    best = np.inf
    for begin in range(0, len(order), _PIECE):
        rows = order[begin : begin + _PIECE]
        if least[rows[0]] > best + _SAME:
            break
        tried = _try(shape, points[rows], search, attacks, parity=parity, spread=spread)
        best = min(best, tried.loss[tried.excess == 0].min(initial=np.inf))
        pieces.append(tried)
    return Tried(
        steps=np.concatenate([piece.steps for piece in pieces]),
        magnitudes=np.concatenate([piece.magnitudes for piece in pieces]),
        loss=np.concatenate([piece.loss for piece in pieces]),
        risk=np.concatenate([piece.risk for piece in pieces]),
        attacks=tuple(attacks),
    )


def _least_losses(shape: Shape, magnitudes: Floats) -> Floats:
    """E|Σ d·m·y| as a share of the total: E|P*| is never below it, because the noise h is one on average (Jensen)."""
    scaled = magnitudes * shape.to_largest(magnitudes.shape[1])
    signs = np.array([(1, *others) for others in product((1, -1), repeat=magnitudes.shape[1] - 1)])
    least = sum(np.abs(scaled @ row) for row in signs) / len(signs)
    return np.asarray(least * abs(shape.sizes[0] / shape.total), dtype=np.float64)


def _try(
    shape: Shape, points: Steps, search: Search, attacks: Sequence[Attack], *, parity: bool, spread: float
) -> Tried:
    magnitudes = search.magnitudes(points)
    return Tried(
        steps=points,
        magnitudes=magnitudes,
        loss=losses(shape, magnitudes, spread=spread),
        risk=np.stack([risks(shape, magnitudes, a, parity=parity, spread=spread) for a in attacks], axis=1),
        attacks=tuple(attacks),
    )


def _order(shape: Shape, tried: Tried) -> NDArray[np.intp]:
    """The best first: limits kept, then loss, then variance, then more for the larger contributors."""
    variance = ((tried.magnitudes * shape.to_largest(tried.steps.shape[1])) ** 2).sum(axis=1)
    smaller_last = [-column for column in tried.steps.T[::-1]]
    loss, spare = (np.round(keys / _SAME) for keys in (tried.loss, variance))
    return np.lexsort((*smaller_last, spare, loss, tried.excess))


def _by_loss(tried: Tried) -> NDArray[np.intp]:
    return np.lexsort((tried.worst_risk, np.round(tried.loss / _SAME)))


def _chosen(tried: Tried, rows: NDArray[np.intp]) -> Tried:
    return Tried(
        steps=tried.steps[rows],
        magnitudes=tried.magnitudes[rows],
        loss=tried.loss[rows],
        risk=tried.risk[rows],
        attacks=tried.attacks,
    )


def _some(attacks: Sequence[Attack]) -> None:
    if not attacks:
        raise MethodError(
            "attacks",
            expected="at least one attack to withstand",
            found="none, so that no perturbation at all would be best",
            do="name attacks 1, 2 and 3, or some of them",
        )


def _impossible(shape: Shape, search: Search, tried: Tried, nearest: int) -> MethodError:
    def sentences() -> Iterator[str]:
        for attack, risk in zip(tried.attacks, tried.risk[nearest], strict=True):
            yield f"attack {attack.number} {risk:.3f} (at most {attack.limit:g})"

    magnitudes = ",".join(f"{magnitude:g}" for magnitude in tried.magnitudes[nearest].round(6))
    return MethodError(
        f"contributors {shape}",
        expected=f"magnitudes in steps of {search.step:g} up to {search.largest:g} that hold every attack to its limit",
        found=f"none; the nearest is {magnitudes}: {', '.join(sentences())}",
        do="leave out an attack, or allow larger magnitudes, a larger risk, a smaller nearness or more contributors",
    )


# What keyed perturbation withstands, in the words of the privacy statement: risks of stated attacks, rounded up.

_STEP = 5  # percent: finer figures would tell the magnitudes
_WORDS = {
    1: "who takes a published total for its largest contributor comes within {within:.0%} of it",
    2: "who subtracts the totals of two cells that differ by that contributor, within {within:.0%},",
    3: "who is the second largest and subtracts the own figure, within {within:.0%},",
}


def risk_statement(magnitudes: Sequence[float] | None, *, spread: float, parity: bool) -> str:
    """How often each attack succeeds at most, over cells of nine shapes; None takes magnitudes by shape.

    Weights are one, so the figures are for units that were taken for sure. Without the target a cell has another shape,
    and where magnitudes are by shape, others than before.
    """
    found = []
    for shape in map(Shape.read, PUBLISHED_OPTIMA):
        own, without = magnitudes_by_shape(shape) if magnitudes is None else (magnitudes, None)
        found.append(evaluate(shape, own, parity=parity, spread=spread, without=without))
    worst = {}
    for place, attack in enumerate(ATTACKS):
        most = max(one.verdicts[place].risk for one in found)
        # What is no more than the accuracy of the computation is not raised to a whole step.
        worst[attack.number] = min(_STEP * ceil(100 * max(most - ACCURACY, 0.0) / _STEP), 100)
    sentences = (
        f"{_WORDS[attack.number].format(within=attack.within)} in at most {worst[attack.number]} % of cases"
        for attack in ATTACKS
    )
    return "in cells of nine shapes, from one dominant contributor to four equal ones, someone " + "; someone ".join(
        sentences
    )
