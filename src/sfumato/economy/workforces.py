"""What sets one establishment's workforce apart from another's."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.economy import industries
from sfumato.economy.establishments import Establishments
from sfumato.economy.places import Places
from sfumato.economy.streams import Purpose, stream

COLUMNS: Final = ("women", "minority", "hispanic", "schooling", "seniority", "pay")

# Standard deviations of the establishments' own effects, on the scale of each column before it becomes a
# share. They make workforces differ by much more than the luck of hiring, as real ones do.
_WOMEN, _ORIGIN, _SCHOOLING, _SENIORITY, _PAY = 0.9, 0.6, 0.6, 0.35, 0.3
_PLACE_ORIGIN = 0.7
_MINORITY_ODDS, _HISPANIC_ODDS = -1.45, -1.9
_URBAN_SCHOOLING = np.array([-0.35, -0.25, 0.0, 0.2])
_URBAN_PAY = np.array([-0.15, -0.1, 0.0, 0.12])
_SIZE_PAY = 0.03

_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Workforces:
    """One row per establishment with what its workers' attributes are drawn from.

    The rows are narrow and contiguous on purpose: a job finds all it needs in one memory access.
    """

    rows: NDArray[np.float32]

    def of(self, establishment: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
        """The columns for a sequence of establishments."""
        return dict(zip(COLUMNS, self.rows[establishment].T, strict=True))

    def pay(self, establishment: NDArray[np.int64]) -> NDArray[np.float32]:
        """The log of typical yearly earnings alone."""
        pay: NDArray[np.float32] = self.rows[:, COLUMNS.index("pay")][establishment]
        return pay


def draw_workforces(establishments: Establishments, places: Places, *, seed: int) -> Workforces:
    """Effects of industry, place and the establishment itself, added up once per establishment."""
    origin = _PLACE_ORIGIN * stream(seed, Purpose.PLACE_PEOPLE).standard_normal((len(places), 2))
    women = industries.column("women")
    by_industry = {
        "women": np.log(women / (1 - women)),
        "minority": industries.column("minority"),
        "schooling": industries.column("schooling"),
        "seniority": industries.column("seniority"),
        "pay": np.log(industries.column("pay")),
    }
    rows = np.empty((len(establishments), len(COLUMNS)), dtype=np.float32)
    for number, start in enumerate(range(0, len(establishments), _CHUNK)):
        part = slice(start, start + _CHUNK)
        place, industry = establishments.place[part], establishments.industry[part]
        stratum = places.strata[place]
        own = stream(seed, Purpose.WORKFORCES, number).standard_normal((6, len(place)))
        base = {name: effect[industry] for name, effect in by_industry.items()}
        columns = {
            "women": _share(base["women"] + _WOMEN * own[0]),
            "minority": _share(_MINORITY_ODDS + base["minority"] + origin[place, 0] + _ORIGIN * own[1]),
            "hispanic": _share(_HISPANIC_ODDS + base["minority"] + origin[place, 1] + _ORIGIN * own[2]),
            "schooling": base["schooling"] + _URBAN_SCHOOLING[stratum] + _SCHOOLING * own[3],
            "seniority": base["seniority"] + _SENIORITY * own[4],
            "pay": base["pay"] + _URBAN_PAY[stratum] + _SIZE_PAY * np.log1p(establishments.size[part]) + _PAY * own[5],
        }
        for position, name in enumerate(COLUMNS):
            rows[part, position] = columns[name]
    return Workforces(rows=rows)


def _share(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-log_odds))
