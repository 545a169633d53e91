"""The three years of earnings: 1, 5 and 10 years after graduation or discharge."""

from typing import Final

import numpy as np

from sfumato.economy.codelists import Codelist

AFTER: Final = (1, 5, 10)
PRESENT: Final = np.array([0.80, 0.78, 0.74])
"""Share of people with earnings enough to count, in each of the years."""
GROWTH: Final = np.array([0.0, 0.30, 0.52])
"""How far log earnings have risen by then."""
WIDENING: Final = np.array([1.0, 1.1, 1.2])
"""How far their spread has grown."""


def years_after(event: str) -> Codelist:
    """The codelist of the years after an event."""
    return Codelist(
        name="years",
        label=f"Years after {event}",
        entries=tuple((str(year), f"{year} year{'s' if year > 1 else ''} after {event}") for year in AFTER),
    )
