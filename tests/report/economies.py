"""Small made-up workplaces, and the two protections that the attacks are tried on."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.smooth import SmoothPareto

Values = NDArray[Any]

LEAST, MOST = 0.1, 0.25
"""How far a legacy factor is from one."""
WORKER_CELLS = 4
"""Women with and without a college degree, then men."""
GRADUATES = np.array([0, 2])


@dataclass(frozen=True, kw_only=True)
class Workplaces:
    """The workers of every establishment, and the workplace cell that each is in."""

    workers: Integers
    cell: Integers

    @property
    def establishments(self) -> Integers:
        return np.bincount(self.cell)

    def cells(self) -> Integers:
        """The true table: one row a workplace cell."""
        return summed(self, self.workers).astype(np.int64)

    def grown(self, seed: int) -> "Workplaces":
        """The same establishments a year later."""
        rng = np.random.default_rng(seed)
        return Workplaces(workers=rng.binomial(2 * self.workers, rng.uniform(0.4, 0.7)), cell=self.cell)


def workplaces(seed: int, *, cells: int = 400) -> Workplaces:
    """Workplace cells with one to three establishments of 1 to some 2,000 workers."""
    rng = np.random.default_rng(seed)
    cell = np.repeat(np.arange(cells), rng.integers(1, 4, size=cells))
    size = np.ceil(np.exp(rng.normal(3.5, 1.5, size=len(cell)))).astype(np.int64)
    shape = rng.dirichlet([1, 3, 1, 3], size=len(cell))
    return Workplaces(workers=rng.multinomial(size, shape), cell=cell)


def summed(places: Workplaces, values: Values) -> Values:
    table = np.zeros((len(places.establishments), values.shape[1]))
    np.add.at(table, places.cell, values)
    return table


def factors(places: Workplaces, seed: int) -> Values:
    """A permanent factor for each establishment in [1−b, 1−a] ∪ [1+a, 1+b]."""
    rng = np.random.default_rng(seed)
    away = rng.uniform(LEAST, MOST, size=len(places.cell))
    return 1 + away * rng.choice([-1, 1], size=len(away))


def noise_infusion(places: Workplaces, factor: Values, *, decimals: int | None, seed: int) -> Values:
    """The legacy protection: multiplied by the factors; 1 and 2 drawn anew, zeros kept."""
    rng = np.random.default_rng(seed)
    true = places.cells()
    table = summed(places, places.workers * factor[:, None])
    table = np.where((true > 0) & (true < 2.5), rng.integers(1, 3, size=true.shape), table)
    return table if decimals is None else np.round(table, decimals)


def smooth_pareto(places: Workplaces, *, alpha: str, epsilon: int, seed: int) -> Values:
    """The same table under a proven guarantee."""
    true = places.cells()
    largest = np.zeros_like(true)
    np.maximum.at(largest, places.cell, places.workers)
    dimensions = (
        Dimension(name="place", codes=tuple(map(str, range(len(true))))),
        Dimension(name="worker", codes=tuple(map(str, range(WORKER_CELLS))), public=False),
    )
    columns = {"count": true.ravel(), "largest": largest.ravel()}
    cells = Cells(dimensions=dimensions, positions=np.arange(true.size), columns=columns)
    method = SmoothPareto(alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=WORKER_CELLS)
    return method.protect(cells, Seeded(seed))["value"].reshape(true.shape)
