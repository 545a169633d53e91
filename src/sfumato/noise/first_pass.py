"""The first pass of exact sampling: floating point, with a bound that says where it can be trusted."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

# The error of |Z|, as a share of (|Z| + 1)(1 + y) where y = −ln(U)/a. Write u = 2^−52. If the library's `log`
# and `expm1` are within 20u (NumPy accepts no more than 4u), then y is within 21u of itself and expm1(y) within
# 21(1 + y)u + 20u, its condition number being at most 1 + y. The scale, the products and the sums before
# rounding add less than 4u: under 45(1 + y)u in all, of which nearly half is the library's. 64u is taken.
_ERROR = 2.0**-46
# The interval's width is itself computed in floating point, to far better than one part in 2^30.
_WIDENED = 1 + 2.0**-30


def first_pass(
    *, tail: Fraction, unit: Fraction, multiples: NDArray[np.int64], heads: NDArray[np.int64], bits: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rounded magnitudes |Z|, and which of them no further bit of U could change.

    `heads` holds the first bits of each U as whole numbers h, so that U is in [h, h+1]/2^bits. |Z| falls with
    U and is convex in it: it is at most its value at h/2^bits, and below that by at most the length of the
    interval times the slope there, which is (|Z| + s)/(a·U). Magnitudes that are not certain are given as 0.
    """
    # U = 0, or a tail so heavy that |Z| overflows, makes infinities and NaN, which are equal to nothing.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        uniform = heads * 2.0**-bits
        scale = multiples * float(unit)
        y = np.log(uniform) * -float(1 / tail)
        magnitude = np.expm1(y) * scale
        error = (magnitude + 1) * (y + 1) * _ERROR
        width = (magnitude + scale) / uniform * (_WIDENED * 2.0**-bits / float(tail))
        high = np.floor(magnitude + error + 0.5)
        low = np.floor(magnitude - error - width + 0.5)
        certain = low == high
    # Certain magnitudes are below 2^46, where the error alone reaches 1, and convert exactly.
    return np.where(certain, high, 0).astype(np.int64), certain
