"""What attackers learn about the largest contributor, and what the perturbation costs in accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats
from sfumato.errors import MethodError
from sfumato.methods.contributor_noise import ACCURACY, NoiseSum
from sfumato.methods.contributor_shape import Shape

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
) -> Evaluation:
    """Loss and risks of one set of magnitudes.

    >>> found = evaluate(Shape.read("90,5,5"), (0.15, 0.1, 0.1))
    >>> round(found.loss, 3), [round(verdict.risk, 2) for verdict in found.verdicts]
    (0.135, [0.5, 0.01, 0.39])
    """
    return Evaluation(
        magnitudes=tuple(float(magnitude) for magnitude in magnitudes),
        loss=float(losses(shape, magnitudes, spread=spread)[0]),
        verdicts=tuple(
            Verdict(attack=attack, risk=float(risks(shape, magnitudes, attack, parity=parity, spread=spread)[0]))
            for attack in attacks
        ),
    )


def losses(shape: Shape, magnitudes: ArrayLike, *, spread: float = SPREAD) -> Floats:
    """The mean loss of utility, E|P*| as a share of the total, for every row of magnitudes."""
    total: Floats = _noise(shape, _rows(magnitudes), spread).mean_magnitude() * abs(shape.sizes[0] / shape.total)
    return total


def risks(
    shape: Shape, magnitudes: ArrayLike, attack: Attack, *, parity: bool = False, spread: float = SPREAD
) -> Floats:
    """The probability that the attack comes within V of the largest contributor, for every row of magnitudes.

    With the parity rule all directions are turned around when the number of contributors changes by one; it plays a
    part in attack 2 alone, which compares two such cells.
    """
    rows = _rows(magnitudes)
    if attack.number == 2:
        return _difference(shape, rows, spread, parity).probability(-attack.within, attack.within)
    second = shape.sizes[1] if attack.number == 3 and len(shape.sizes) > 1 else 0.0
    # What the attacker's estimate contains beside the target and the noise, as a multiple of the target.
    others = (shape.total - shape.sizes[0] - second) / shape.sizes[0]
    return _noise(shape, rows, spread).probability(-attack.within - others, attack.within - others)


def _noise(shape: Shape, rows: Floats, spread: float) -> NoiseSum:
    """P* as a multiple of the largest contributor."""
    own = rows * shape.to_largest(rows.shape[1])
    return NoiseSum(own=own, other=np.zeros_like(own), spread=spread)


def _difference(shape: Shape, rows: Floats, spread: float, parity: bool) -> NoiseSum:
    """P* less the P* of the cell without the largest contributor, as a multiple of that contributor.

    Without it every other contributor moves up a rank, so it has the magnitude of the one before; one more joins the
    top. The cell has another key, so all h are drawn anew, while directions stay.
    """
    sizes = shape.to_largest(rows.shape[1] + 1)
    own, other = (np.zeros((len(rows), len(sizes))) for _ in range(2))
    own[:, :-1] = rows * sizes[:-1]
    other[:, 1:] = rows * sizes[1:]
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
