"""The arrays that numbers are kept in, by the names that everything else calls them."""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]
"""Random or keyed bits, 64 at a time."""
