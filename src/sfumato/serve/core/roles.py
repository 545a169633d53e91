"""Which dimensions are time and which are places: a bundle does not say, but codes and names do."""

import re
from typing import Literal

from sfumato.frame.periods import in_time

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
    six_digits = any(code.isdecimal() and len(code) != len("2026") for code in codes)  # no months: codes of anything
    periods = () if six_digits else in_time(codes)
    return bool(periods) and periods[0].year in _YEARS and periods[-1].number - periods[0].number == len(codes) - 1
