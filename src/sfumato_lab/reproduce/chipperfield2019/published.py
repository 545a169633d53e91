"""What was published about perturbed business totals: figures and tables to print beside ours."""

from dataclasses import dataclass

from sfumato.statistics.totals.perturbation import PUBLISHED_OPTIMA

# Source: J. Chipperfield, J. Newman, G. Thompson, Y. Ma, Y.-X. Lin, "Prospects for Protecting Business Microdata when
# Releasing Population Totals via a Remote Server", Journal of Official Statistics 35 (2), 2019, 319–336.

SPREAD = 0.3
"""b: the noise h is triangular on 1 ± b, as section 2.1 says."""
VARIANCE_OF_NOISE = 0.075
"""Var(h) as section 2.1 prints it, beside the formula b²/12, which gives 0.0075."""
VARIANCE_OF_DIRECTED_NOISE = 1 + SPREAD**2 / 12
"""Var(d·h) by the formula of section 2.1."""
ACCEPTABLE = 0.15
"""R of all three attacks, in section 3.4."""


@dataclass(frozen=True, kw_only=True)
class Contributor:
    """A line of Table 1; magnitude, direction and noise are those of a contributor that is perturbed."""

    value: float
    weight: float
    magnitude: float = 0.0
    direction: int = 1
    noise: int = 1_000_000
    """In millionths."""
    moved: int = 0


TABLE_1 = (
    Contributor(value=72.1, weight=458.2, magnitude=0.6, direction=1, noise=950_000, moved=18_831),
    Contributor(value=65.3, weight=185.7, magnitude=0.4, direction=-1, noise=1_020_000, moved=-4_947),
    Contributor(value=65.3, weight=752.7, magnitude=0.3, direction=-1, noise=1_540_000, moved=-22_708),
    Contributor(value=50.1, weight=612.6, magnitude=0.2, direction=-1, noise=1_540_000, moved=-9_453),
    Contributor(value=49.2, weight=977.5),
    Contributor(value=45.4, weight=458.7),
    Contributor(value=36.9, weight=896.3),
    Contributor(value=36.9, weight=995.2),
)
TABLE_1_TOTAL, TABLE_1_PERTURBATION, TABLE_1_RELEASED = 263_719, -18_278, 245_441


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """A line of Table 2: the relative sizes of contributors, and the magnitudes said to be best for them."""

    contributors: str
    magnitudes: tuple[float, ...]


TABLE_2 = tuple(
    Optimum(contributors=contributors, magnitudes=magnitudes) for contributors, magnitudes in PUBLISHED_OPTIMA.items()
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel of Figure 1, with what section 3.4 reads off it at one set of magnitudes: attack 2, 500 draws."""

    name: str
    contributors: str
    within: float
    loss: float
    risk: float


FIGURE_1_MAGNITUDES = (0.15, 0.1, 0.1)
FIGURE_1_SPREADS = (0.3, 0.4, 0.45, 0.54)
"""The b of the text, two wider ones that explain most of the figure, and the least that Table 1's h = 1.54 needs."""
COMPROMISE = (0.4, 0.3, 0.2)
"""The magnitudes of all empirical studies, said to be too small for the last line of Table 2 alone."""
STRICT = (0.5, 0.4, 0.3)
"""The magnitudes said to be acceptable for all lines of Table 2."""
EXAMPLE = (98, (60, 70, 100, 130, 140, 150, 160), 0.18, 0.15)
"""Section 3.2: a business, equally likely perturbed totals, V, and how often the guess is said to be within."""
FIGURE_1 = (
    Panel(name="A", contributors="90,5,5", within=0.11, loss=0.13, risk=0.10),
    Panel(name="B", contributors="90,5,5", within=0.18, loss=0.13, risk=0.90),
    Panel(name="C", contributors="30,30,30,10", within=0.11, loss=0.05, risk=0.30),
    Panel(name="D", contributors="30,30,30,10", within=0.18, loss=0.05, risk=0.64),
)


# The published Tables 3, 4, 6 and 7: estimates and what perturbation did to them, in percent; never results.
#
# Source: as in `published`. Tables 3 and 4 print perturbed estimates, their last row and last column being totals.

EVERYONE = "everyone"
"""All contributors are protected: section 5's approach II, and what Tables 3, 4 and 7 show."""
ASKED = "asked"
"""Only values of those that asked are perturbed, once: approaches I and III."""
ASKED_CELLS = "asked, cells"
"""Cells are perturbed by the largest of those that asked: not in the paper."""
APPROACHES = {EVERYONE: "II", ASKED: "I/III", ASKED_CELLS: "II for those who asked"}
"""What section 5 calls them, and what stands between."""


@dataclass(frozen=True, kw_only=True)
class Establishment:
    """A line of Table 5: a type of activity unit, with its sample of employees."""

    employees: int
    sampled: int
    contribution: int
    error: float
    """Relative standard error of the contribution."""


TABLE_5 = (
    Establishment(employees=1700, sampled=11, contribution=2_639_240, error=0.131),
    Establishment(employees=630, sampled=8, contribution=996_000, error=0.044),
    Establishment(employees=140, sampled=6, contribution=198_660, error=0.143),
)
TABLE_5_CLAIMS = {
    "total": 3_834_000,
    "perturbed total": 3_925_000,
    "unperturbed": 0.07,
    "perturbed": 0.115,
    "within 18%": 0.83,
    "within 26%": 0.95,
    "acceptable": 0.11,
}
"""What section 4.2 says of the three, and of the sampling error of the first; a risk above the last is too large."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A printed cell: a perturbed estimate and the percentage by which perturbation moved it."""

    value: float
    impact: float


def _row(*cells: tuple[float, float]) -> tuple[Estimate, ...]:
    return tuple(Estimate(value=value, impact=impact) for value, impact in cells)


AGREEMENTS = ("Award only", "Collective agreement", "Individual arrangement", "Owner incorporated enterprise", "All")
TABLE_3 = {
    "Managers": _row((1127.1, 1.1), (1982.7, -0.1), (2083.2, 0.2), (1304.2, -2.0), (1928.9, 0.1)),
    "Professionals": _row((1147.7, -0.9), (1383.9, -0.3), (1507.5, -0.5), (2036.8, -0.3), (1436.0, -0.1)),
    "Technicians and trades workers": _row((695.8, -0.6), (1544.4, -0.2), (1272.5, 0.6), (1219.6, 3.4), (1250.2, 0.3)),
    "Community and personal service": _row((546.5, 0.9), (841.2, 0.5), (587.8, 0.3), (932.1, 7.3), (709.1, 0.3)),
    "Clerical and administration": _row((708.4, 0.3), (1063.3, -0.2), (962.0, -0.2), (831.9, -3.9), (970.2, -0.1)),
    "Sales workers": _row((419.0, -0.7), (485.1, -0.1), (935.9, -0.1), (949.7, 0.7), (606.7, 0.0)),
    "Machinery operators": _row((863.8, 0.2), (1509.7, 0.1), (1154.9, -0.2), (1095.9, 6.7), (1284.7, 0.1)),
    "Labourers": _row((496.5, 0.8), (958.5, 1.3), (780.9, -1.2), (1321.4, 6.5), (784.3, 0.7)),
    "All": _row((632.7, -0.2), (1150.7, 0.0), (1277.9, 0.1), (1325.6, -0.9), (1122.8, 0.0)),
}
TABLE_4 = {
    "Mining": _row((1285.3, -9.7), (2237.0, 0.7), (2538.6, 0.2), (1639.0, -13.3), (2388.8, 0.0)),
    "Manufacturing": _row((614.6, 0.1), (1292.8, -0.9), (1307.7, 1.1), (1270.0, 4.8), (1221.7, 0.3)),
    "Electricity, gas, water and waste": _row(
        (917.9, 0.0), (1745.4, -0.3), (1851.5, -0.5), (966.9, 8.8), (1735.3, -0.3)
    ),
    "Construction": _row((811.6, -2.4), (2110.4, -0.2), (1333.2, -0.1), (1086.8, 1.6), (1440.2, 0.0)),
    "Wholesale trade": _row((706.2, 2.7), (1110.3, -0.4), (1352.4, 0.1), (1152.3, -1.9), (1258.5, 0.0)),
    "Retail trade": _row((479.4, 0.8), (489.0, -0.3), (965.0, -0.8), (992.6, -2.5), (640.2, -0.5)),
    "Accommodation and food services": _row((477.6, 0.5), (398.9, 0.2), (739.8, 0.5), (700.6, -6.1), (539.3, 0.1)),
    "All": _row((633.2, -0.1), (1150.8, 0.0), (1278.3, 0.1), (1352.6, 1.1), (1122.7, 0.0)),
}
TABLE_6 = {
    "NSW": {EVERYONE: 3.1, ASKED: 0.5},
    "VIC": {EVERYONE: 0.2, ASKED: -0.4},
    "QLD": {EVERYONE: 1.5, ASKED: 0.0},
    "SA": {EVERYONE: 5.1, ASKED: -0.6},
    "WA": {EVERYONE: -3.6, ASKED: 0.5},
    "TAS": {EVERYONE: -7.4, ASKED: 0.0},
    "NT": {EVERYONE: 15.4, ASKED: 0.0},
    "ACT": {EVERYONE: 35.4, ASKED: 0.0},
    "AUS": {EVERYONE: -0.6, ASKED: 0.3},
}
"""Exports by state: the impacts alone."""
TABLE_6_VALUES = {
    "published": (2822, 1406, 2927, 728, 9205, 207, 444, 4, 17743),
    EVERYONE: (2910, 1409, 2971, 765, 8877, 192, 512, 6, 17642),
    ASKED: (2837, 1400, 2927, 724, 9253, 207, 444, 4, 17796),
}
"""The estimates themselves, states first and the country last."""
TABLE_7 = {
    "NSW": 0.6,
    "VIC": 0.6,
    "QLD": 0.3,
    "SA": 1.8,
    "WA": 0.3,
    "TAS": 3.4,
    "NT": 3.2,
    "ACT": 42.4,
    "AUS": -0.1,
}
"""Nitrogen fertiliser by state: the impacts alone."""


def published_impacts(table: int, protected: str) -> tuple[float, ...]:
    """Every impact that a table prints for those who are protected, totals included; none where it prints none."""
    if table in (3, 4):
        rows = TABLE_3 if table == 3 else TABLE_4
        return tuple(cell.impact for row in rows.values() for cell in row) if protected == EVERYONE else ()
    if table == 6:
        return tuple(row[protected] for row in TABLE_6.values() if protected in row)
    return tuple(TABLE_7.values()) if protected == EVERYONE else ()
