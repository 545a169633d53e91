"""Veterans by service branch and occupation: how many, and what they earn.

Shares and earnings are round ones and from no file.
"""

from typing import Final

import numpy as np

from sfumato_lab.economy.frame import Purpose, stream
from sfumato_lab.economy.graduates.draws import AFTER, Population, years_after
from sfumato_lab.economy.jobs.codelists import Codelist

# fmt: off
_BRANCHES: Final = (
    #                             per cent log of earnings
    ("army",        "Army",             42, -.03),
    ("navy",        "Navy",             23,  .03),
    ("air-force",   "Air Force",        20,  .05),
    ("marines",     "Marine Corps",     13, -.04),
    ("coast-guard", "Coast Guard",       2,  .04),
)
_OCCUPATIONS: Final = (
    #                                                            per cent dollars
    ("10", "Infantry, gun crews and seamanship",                       18, 27_000),
    ("11", "Electronic equipment repairers",                            8, 37_000),
    ("12", "Communications and intelligence",                          11, 38_000),
    ("13", "Health care specialists",                                   7, 32_000),
    ("14", "Other technical specialists",                               3, 34_000),
    ("15", "Support and administration",                               16, 30_000),
    ("16", "Electrical and mechanical repairers",                      18, 34_000),
    ("17", "Craftsworkers",                                             4, 31_000),
    ("18", "Service and supply handlers",                              11, 28_000),
    ("22", "Officers: tactical operations",                             2, 62_000),
    ("23", "Officers: intelligence",                                   .5, 68_000),
    ("24", "Officers: engineering and maintenance",                    .7, 66_000),
    ("26", "Officers: health care",                                    .5, 78_000),
    ("28", "Officers: supply and administration",                      .3, 60_000),
)
# fmt: on

BRANCH: Final = Codelist(name="branch", label="Service branch", entries=tuple(row[:2] for row in _BRANCHES))
OCCUPATION: Final = Codelist(
    name="occupation", label="Military occupation", entries=tuple(row[:2] for row in _OCCUPATIONS)
)
SPREAD = 0.62
SPECIALISATION, CELL_PAY = 0.5, 0.04
"""Spread of how far branches differ in occupations, and of earnings by cell, on the log scale."""


def draw_veterans(seed: int) -> Population:
    """The cells of a population of veterans."""
    rng = stream(seed, Purpose.GRADUATES_CELLS)
    shape = (len(BRANCH), len(OCCUPATION))
    branch, occupation = (np.array([row[2:] for row in rows]) for rows in (_BRANCHES, _OCCUPATIONS))
    shares = np.outer(branch[:, 0], occupation[:, 0]) * np.exp(SPECIALISATION * rng.standard_normal(shape))
    level = branch[:, 1][:, None] + np.log(occupation[:, 1]) + CELL_PAY * rng.standard_normal(shape)
    cells = shares.size
    return Population(
        codelists=(BRANCH, OCCUPATION),
        years=years_after("discharge"),
        shares=(shares / shares.sum()).ravel(),
        level=level.ravel(),
        spread=np.full(cells, SPREAD),
        growth=np.ones(cells),
        observed=np.ones((cells, len(AFTER)), dtype=np.bool_),
    )
