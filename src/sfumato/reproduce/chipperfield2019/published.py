"""What was published about perturbed business totals: figures to print beside ours, never results.

Source: J. Chipperfield, J. Newman, G. Thompson, Y. Ma, Y.-X. Lin, "Prospects for Protecting Business Microdata when
Releasing Population Totals via a Remote Server", Journal of Official Statistics 35 (2), 2019, 319–336.
"""

from dataclasses import dataclass

from sfumato.methods.contributor_optima import PUBLISHED_OPTIMA

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
FIGURE_1 = (
    Panel(name="A", contributors="90,5,5", within=0.11, loss=0.13, risk=0.10),
    Panel(name="B", contributors="90,5,5", within=0.18, loss=0.13, risk=0.90),
    Panel(name="C", contributors="30,30,30,10", within=0.11, loss=0.05, risk=0.30),
    Panel(name="D", contributors="30,30,30,10", within=0.18, loss=0.05, risk=0.64),
)
