"""Factors of noise infusion as a user would draw them: ramp-shaped on both sides of one, from NumPy."""

import numpy as np


def drawn(size: int, *, least: float, most: float) -> np.ndarray:
    """One factor for each establishment, never nearer to one than `least` and never farther than `most`."""
    generator = np.random.default_rng()
    distortion = most - (most - least) * np.sqrt(generator.random(size))
    return 1 + distortion * generator.choice([-1, 1], size)
