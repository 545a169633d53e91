"""A public model of workplace cells: what their error would be if establishments were of ordinary sizes.

It serves to choose a mechanism and nothing else. No figure of it is taken from the data that are protected.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from statistics import NormalDist

import numpy as np

from sfumato.arrays import Floats

SPREAD = 1.94
"""Standard deviation of the logarithm of sizes: at a mean of about 20 workers, 15 in 10,000 have 1,000 or more."""
LARGEST = 40_000
"""No establishment of the model is larger."""

_NODES = 400


@dataclass(frozen=True, kw_only=True)
class ReferenceCells:
    """Workplace cells of log-normal establishments whose workers are spread evenly over d worker cells.

    >>> cells = ReferenceCells(mean_size=20, worker_cells=8)
    >>> cells.jobs_in_a_cell(4)                             # 4 establishments of 20 workers in 8 cells
    10.0
    """

    mean_size: int
    worker_cells: int

    def jobs_in_a_cell(self, establishments: int) -> float:
        """The expected count of one worker cell."""
        return establishments * self.mean_size / self.worker_cells

    def largest_at_least(self, establishments: int, *, share: float, least: float) -> float:
        """E[max(share·X, least)] with X the largest of so many establishments."""
        return float(np.maximum(share * self._largest(establishments), least).mean())

    def _largest(self, establishments: int) -> Floats:
        # The largest of k is below x with probability F(x)^k: the quantile at u is that of one at u^(1/k).
        at = [min(u ** (1 / establishments), 1 - 1e-15) for u in self._levels]
        logs = np.array([self._normal.inv_cdf(level) for level in at])
        sizes: Floats = np.clip(np.exp(logs), 1, LARGEST)
        return sizes

    @cached_property
    def _levels(self) -> list[float]:
        return [(i + 0.5) / _NODES for i in range(_NODES)]

    @cached_property
    def _normal(self) -> NormalDist:
        # Sizes below one count as one, which adds to the mean; the median is set so that the mean is as asked.
        low, high = -20.0, log(self.mean_size)
        for _ in range(60):
            middle = (low + high) / 2
            sizes = [exp(NormalDist(middle, SPREAD).inv_cdf(u)) for u in self._levels]
            mean = sum(min(max(size, 1), LARGEST) for size in sizes) / _NODES
            low, high = (middle, high) if mean < self.mean_size else (low, middle)
        return NormalDist(low, SPREAD)
