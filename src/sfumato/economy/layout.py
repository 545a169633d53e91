"""Which worker and which establishment each job belongs to, without a shuffle and without a list of all jobs.

Slots 0, 1, … are the positions of all establishments laid end to end. Job row r sits in slot
(stride·r + start) mod jobs. As the stride has no common divisor with the number of jobs, every slot is filled
exactly once; as it is close to the golden section of all jobs, rows that follow each other are far apart, and
any run of rows is a fair sample of all establishments.

Rows come in blocks of 25, held by 24 workers: the last row is the second job of the block's last worker.
"""

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers

BLOCK = 25
WORKERS_PER_BLOCK = BLOCK - 1
GOLDEN = 0.6180339887498949


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The rule that places every job; `ends` are the cumulative sizes of the establishments."""

    ends: Integers
    start: int

    @property
    def jobs(self) -> int:
        """The number of jobs."""
        return int(self.ends[-1])

    @property
    def workers(self) -> int:
        """The number of workers: one for each row but the last of each full block."""
        return self.jobs - self.jobs // BLOCK

    @property
    def stride(self) -> int:
        """The step from one row's slot to the next row's."""
        stride = round(GOLDEN * self.jobs)
        while gcd(stride, self.jobs) != 1:
            stride += 1
        return stride

    def establishments(self, rows: Integers) -> Integers:
        """Positions of the establishments of these job rows.

        The product stays below 2^63 up to three billion jobs.
        """
        slots = (rows * self.stride + self.start) % self.jobs
        # Looking up in ascending order walks through memory instead of jumping: seven times as fast at 150
        # million jobs, sorting included.
        order = np.argsort(slots)
        found = np.empty_like(slots)
        # One without jobs ends where the one before it ends, and so is never the first to end beyond a slot.
        found[order] = np.searchsorted(self.ends, slots[order], side="right")
        return found


def second(rows: Integers) -> NDArray[np.bool_]:
    """Whether each row is a worker's second job."""
    return np.equal(rows % BLOCK, WORKERS_PER_BLOCK)


def worker_keys(rows: Integers) -> Integers:
    """The keys, from 1 on, of the workers who hold these job rows."""
    block, within = np.divmod(rows, BLOCK)
    return block * WORKERS_PER_BLOCK + np.minimum(within, WORKERS_PER_BLOCK - 1) + 1
