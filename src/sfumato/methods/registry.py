"""The methods a release file can name."""

from collections.abc import Mapping
from difflib import get_close_matches
from fractions import Fraction
from types import MappingProxyType

from sfumato.errors import ReleaseError
from sfumato.methods.method import Method, MethodClass
from sfumato.methods.smooth_pareto import SmoothPareto

_CLASSES: tuple[MethodClass, ...] = (SmoothPareto,)

METHODS: Mapping[str, MethodClass] = MappingProxyType({method.name: method for method in _CLASSES})
"""Every method of protection by its name in a release file."""


def build(name: str, *, alpha: Fraction, epsilon: Fraction, worker_cells: int = 0) -> Method:
    """The named method at these parameters.

    >>> build("smooth-pareto", alpha=Fraction("0.1"), epsilon=Fraction(2)).guarantee().epsilon
    Fraction(2, 1)
    """
    if name not in METHODS:
        close = get_close_matches(name, METHODS, n=1)
        raise ReleaseError(
            f"method {name!r}",
            expected=f"one of {', '.join(sorted(METHODS))}",
            found=repr(name),
            do=f"did you mean {close[0]!r}?" if close else "name one of these methods",
        )
    return METHODS[name](alpha=alpha, epsilon=epsilon, worker_cells=worker_cells)
