"""Replicate weights by successive differences (Fay and Train 1995): neighbours in the sample are compared in a loop.

Each primary unit has two rows a, b of a Hadamard matrix of order 80 and in replicate r the factor
1 + 2^(-3/2)·(a_r − b_r): 1.707, 1 or 0.293. The second row of a unit is the first row of its neighbour, and the loop is
closed; so 4/80 times the sum of squared differences of the replicates' totals is half the sum of squared
differences between neighbours, which is unbiased for a loop of independent units.

Primary units are establishments, in the order of the sample and in loops that never leave a stratum. Who was taken
for sure adds no variance of the first stage: there the jobs are the primary units.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.economy.requirements.establishments import Establishments

REPLICATES: Final = 80
NAMES: Final = tuple(f"rw_{number}" for number in range(1, REPLICATES + 1))
ROWS: Final = REPLICATES - 1
"""Rows whose entries sum to zero, which keeps the mean of the replicate weights at the weight; 79 is a prime."""


@dataclass(frozen=True, kw_only=True)
class Loops:
    """Where every establishment stands in its loop."""

    position: Integers
    length: Integers
    start: Integers
    """The row of the first unit of the loop."""
    step: Integers
    """From one unit's row to the next one's; as 79 is a prime, no row comes twice in a loop."""


def _hadamard() -> NDArray[np.int8]:
    """The 79 rows of Paley's matrix of order 80 other than that of ones: orthogonal, each with as many 1 as -1."""
    squares = np.unique(np.arange(1, ROWS) ** 2 % ROWS)
    character = np.full(ROWS, -1, dtype=np.int8)
    character[squares] = 1
    character[0] = 1
    number = np.arange(ROWS)
    rows = np.empty((ROWS, REPLICATES), dtype=np.int8)
    rows[:, 0] = -1
    rows[:, 1:] = character[(number[None, :] - number[:, None]) % ROWS]
    # Turning the sign of every other row keeps all that; without it the first replicate would be the full sample.
    rows[1::2] *= -1
    return rows


HADAMARD: Final = _hadamard()


def draw_loops(establishments: Establishments, rng: np.random.Generator) -> Loops:
    """Loops of neighbours of one stratum, at most 79 each, of nearly equal length; rows of loops are unrelated."""
    stratum, sure = establishments.stratum, establishments.sure
    begin = np.flatnonzero(np.diff(stratum, prepend=-1))
    count = np.diff(begin, append=len(stratum))
    which = np.repeat(np.arange(len(begin)), count)
    within, of_stratum = np.arange(len(stratum)) - begin[which], count[which]
    loops = -(-of_stratum // ROWS)
    loop = within * loops // of_stratum
    first, after = -(-loop * of_stratum // loops), -(-(loop + 1) * of_stratum // loops)
    # One who was taken for sure is a loop alone, of jobs.
    number = np.cumsum((within == first) | sure) - 1
    start, step = rng.integers(ROWS, size=number[-1] + 1), rng.integers(1, ROWS, size=number[-1] + 1)
    return Loops(
        position=np.where(sure, 0, within - first),
        length=np.where(sure, establishments.jobs, after - first),
        start=start[number],
        step=step[number],
    )


def rows_of(loops: Loops, establishment: Integers, job: Integers, sure: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """The two rows of every quote, from its establishment and its number there."""
    position = np.where(sure[establishment], job, loops.position[establishment])
    neighbour = (position + 1) % loops.length[establishment]
    start, step = loops.start[establishment], loops.step[establishment]
    return (start + step * position) % ROWS, (start + step * neighbour) % ROWS


def replicate_weights(weight: Floats, rows: tuple[Integers, Integers], number: int) -> Floats:
    """The weights of one replicate, numbered from 0."""
    entry = HADAMARD[:, number].astype(np.float64)
    factor = 1 + 2**-1.5 * (entry[rows[0]] - entry[rows[1]])
    replicated: Floats = weight * factor
    return replicated
