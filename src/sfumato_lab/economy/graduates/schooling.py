"""Graduates by institution, degree, field and cohort: how many, and what they earn.

Shares and earnings are round ones and from no file.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato_lab.economy.frame import Purpose, stratified_normal, stream
from sfumato_lab.economy.graduates.draws import AFTER, Population, years_after
from sfumato_lab.economy.jobs.codelists import Codelist, place_names

# fmt: off
_DEGREES: Final = (
    #                                         per cent dollars spread growth
    ("associate", "Associate degree",              22, 32_000,  .58,    .8),
    ("bachelor",  "Bachelor's degree",             52, 40_000,  .60,   1.1),
    ("master",    "Master's degree",               21, 56_000,  .55,    .9),
    ("doctorate", "Doctoral degree",                5, 72_000,  .60,   1.0),
)
_FIELDS: Final = (
    #                                                       per cent log of earnings, beside all fields
    ("03", "Natural resources and conservation",                  3, -.14),
    ("09", "Communication and journalism",                        6, -.08),
    ("11", "Computer and information sciences",                   7,  .36),
    ("13", "Education",                                          11, -.16),
    ("14", "Engineering",                                         8,  .44),
    ("23", "English language and literature",                     4, -.20),
    ("26", "Biological and biomedical sciences",                  8, -.10),
    ("27", "Mathematics and statistics",                          3,  .20),
    ("42", "Psychology",                                          7, -.22),
    ("45", "Social sciences",                                    10, -.02),
    ("50", "Visual and performing arts",                          5, -.32),
    ("51", "Health professions",                                 12,  .22),
    ("52", "Business and management",                            16,  .14),
)
_COHORTS: Final = (
    #                         per cent dollars: the log beside others
    ("2001-2005", "2001 to 2005", 27,  .00),
    ("2006-2010", "2006 to 2010", 33, -.04),
    ("2011-2015", "2011 to 2015", 40,  .02),
)
# fmt: on

FIRST_TEN_YEARS_LATER: Final = 2
"""Cohorts, from the first on, of which everybody is ten years after; of the others nobody is."""
DEGREE: Final = Codelist(name="degree", label="Degree", entries=tuple((code, label) for code, label, *_ in _DEGREES))
FIELD: Final = Codelist(
    name="field", label="Field of study", entries=tuple((code, label) for code, label, *_ in _FIELDS)
)
COHORT: Final = Codelist(
    name="cohort", label="Cohort of graduation", entries=tuple((code, label) for code, label, *_ in _COHORTS)
)
PER_INSTITUTION, FEWEST_INSTITUTIONS, MOST_INSTITUTIONS = 20_000, 3, 200
"""Graduates of an institution, unless it would be one of fewer or of more than these."""
INSTITUTION_SPREAD, INSTITUTION_PAY = 0.5, 0.10
"""Spread of the size of institutions, and of what their graduates earn, on the log scale."""
SPECIALISATION, CELL_PAY = 0.7, 0.05
"""Spread of how far institutions differ in degrees and fields, and of earnings by cell, on the log scale."""


def draw_graduates(people: int, seed: int) -> Population:
    """The cells of a population of so many graduates."""
    rng = stream(seed, Purpose.GRADUATES_CELLS)
    institutions = int(np.clip(people // PER_INSTITUTION, FEWEST_INSTITUTIONS, MOST_INSTITUTIONS))
    shape = (institutions, len(DEGREE), len(FIELD), len(COHORT))
    degree, field, cohort = np.array([row[2:] for row in _DEGREES]), _numbers(_FIELDS), _numbers(_COHORTS)
    size = np.exp(-INSTITUTION_SPREAD * stratified_normal(institutions, rng))
    special = np.exp(SPECIALISATION * rng.standard_normal(shape[:3]))
    shares = np.einsum("i,d,f,c,idf->idfc", size, degree[:, 0], field[:, 0], cohort[:, 0], special)
    level = (
        INSTITUTION_PAY * rng.standard_normal(institutions)[:, None, None, None]
        + np.log(degree[:, 1])[:, None, None]
        + field[:, 1][:, None]
        + cohort[:, 1]
        + CELL_PAY * rng.standard_normal(shape)
    )
    return Population(
        codelists=(_institutions(institutions, seed), DEGREE, FIELD, COHORT),
        years=years_after("graduation"),
        shares=(shares / shares.sum()).ravel(),
        level=level.ravel(),
        spread=_over(degree[:, 2], shape),
        growth=_over(degree[:, 3], shape),
        observed=_observed(shape),
    )


def _numbers(rows: tuple[tuple[str, str, float, float], ...]) -> Floats:
    return np.array([row[2:] for row in rows], dtype=np.float64)


def _over(of_degree: Floats, shape: tuple[int, ...]) -> Floats:
    """A number of every degree, for every cell."""
    return np.broadcast_to(of_degree[:, None, None], shape).ravel()


def _observed(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """The last cohort has not come to ten years after."""
    observed = np.ones((*shape, len(AFTER)), dtype=np.bool_)
    observed[..., FIRST_TEN_YEARS_LATER:, len(AFTER) - 1] = False
    return observed.reshape(-1, len(AFTER))


def _institutions(count: int, seed: int) -> Codelist:
    names = place_names(count, seed=seed)
    return Codelist(
        name="institution",
        label="Institution",
        entries=tuple((f"i{number + 1:03}", f"University of {name}") for number, name in enumerate(names)),
    )
