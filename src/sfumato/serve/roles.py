"""Which dimensions are time and which are places: a bundle does not say, but codes and names do."""

import re
from typing import Literal

from sfumato.errors import SfumatoError
from sfumato.periods import Span, number_of

_PLACES = re.compile(
    r"(?:.*_)?(?:place|places|state|region|county|country|municipality|district|province|area|geo|geography|city|town)"
)
_YEARS = range(1800, 2201)


def role_of(name: str, codes: tuple[str, ...]) -> Literal["time", "geo"] | None:
    """The role of a dimension.

    >>> role_of("quarter", ("2025-Q1", "2025-Q2")), role_of("origin_state", ("AL", "AK")), role_of("naics", ("3361",))
    ('time', 'geo', None)
    """
    if _is_time(codes):
        return "time"
    return "geo" if _PLACES.fullmatch(name.lower()) else None


def _is_time(codes: tuple[str, ...]) -> bool:
    """Whether the codes are periods that follow each other without a gap."""
    try:
        span = Span(first=codes[0], last=codes[-1])
    except (SfumatoError, IndexError):
        return False
    year = number_of(span.first) // 4 if span.quarterly else number_of(span.first)
    return year in _YEARS and span.high - span.low < len(codes) and span.codes() == codes
