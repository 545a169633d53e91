"""What holds for the whole survey of businesses: divisions, states, sizes, occupations, the sample."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato_lab.economy.business import divisions, occupations, states
from sfumato_lab.economy.business.divisions import INDUSTRY
from sfumato_lab.economy.business.occupations import OCCUPATION
from sfumato_lab.economy.business.states import STATE
from sfumato_lab.economy.frame import Purpose, stratified_normal, stream
from sfumato_lab.economy.jobs.codelists import SEX, Codelist

# Four size classes by employment, and the employees of an establishment within its class.

SIZE: Final = Codelist(
    name="size",
    label="Size by employment",
    entries=(
        ("0-4", "0 to 4 employees"),
        ("5-19", "5 to 19 employees"),
        ("20-199", "20 to 199 employees"),
        ("200+", "200 or more employees"),
    ),
)
STARTS: Final = np.array([0, 5, 20, 200])
"""Where every class starts."""
LARGE: Final = len(SIZE) - 1
"""The position of the largest class."""
MOST_EMPLOYEES: Final = 60_000

_CUTS = np.array([0.12, 0.92, 1.76])
"""Cuts of the latent size between one class and the next; large businesses are sampled more often than there are."""
_TAIL = 1.3
"""Tail index of the largest class."""


def size_of(employees: Integers) -> NDArray[np.int8]:
    """Positions in the codelist of sizes."""
    return (np.searchsorted(STARTS, employees, side="right") - 1).astype(np.int8)


def draw_employees(latent: NDArray[np.float64], rng: np.random.Generator) -> Integers:
    """Employees of establishments with these latent sizes."""
    size = np.searchsorted(_CUTS, latent)
    within = rng.random(len(latent))
    # In the smallest class the fewer the likelier, in the next two evenly on the log scale, then a Pareto tail.
    start, end = STARTS[size].astype(np.float64), np.append(STARTS[1:], 0)[size]
    employees = np.where(size == 0, STARTS[1] * within**1.4, 0.0)
    middle = (size > 0) & (size < LARGE)
    employees[middle] = start[middle] * (end[middle] / start[middle]) ** within[middle]
    large = size == LARGE
    employees[large] = np.minimum(STARTS[LARGE] * (1 - within[large]) ** (-1 / _TAIL), MOST_EMPLOYEES)
    return employees.astype(np.int64)


# The codelists of a survey of businesses.

CODELISTS: Final = (STATE, INDUSTRY, SIZE, OCCUPATION, SEX)


# What holds for the whole survey: where businesses are, how they are sampled, and which cells a few firms lead.
#
# A cell is a state and an industry; its number is state · industries + industry.

CELLS: Final = len(STATE) * len(INDUSTRY)
SHAPES: Final = (
    (90, 5, 5),
    (80, 10, 5, 5),
    (70, 20, 10),
    (60, 20, 10, 10),
    (60, 40),
    (50, 20, 20, 10),
    (40, 30, 30),
    (30, 30, 30, 10),
    (25, 25, 25, 25),
)
"""Relative sizes of the contributors that lead a cell, as in the paper's Table 2."""
MOST_WEIGHT: Final = 800.0
RESPONSE_CLASSES: Final = 5

SPECIALISATION = 0.5
"""Standard deviation of how far a state's industries differ from the country's, on the log scale."""
BASE_WEIGHT: Final = np.array([70.0, 11.0, 2.0, 1.0])
"""Typical weight of every size class: the large ones are taken for sure."""
WEIGHT_BY_STATE, WEIGHT_SPREAD, RESPONSE_SPREAD = 0.35, 0.7, 0.12
"""Power of a state's share, spread over strata, and spread over classes of response, all on the log scale."""
CONCENTRATION, CONCENTRATION_BY_STATE, CONCENTRATION_SPREAD, MOST_CONCENTRATION = 0.9, 1.1, 1.6, 0.99
"""Log-odds of what leaders have of a cell: in a middling state, how they fall with its size, spread; and a limit."""
EXCLUSIVE = 0.35
"""Share of cells in which one occupation works for leaders only."""
RARE = 3
"""It is one of so many that are least common in the industry."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """Everything that is drawn once for a survey."""

    businesses: Floats
    """The share of every cell in all businesses."""
    weights: Floats
    """Weights by cell, size class and class of response."""
    concentration: Floats
    """What the leaders of every cell have of its total."""
    shape: Integers
    """Every cell's position in SHAPES."""
    exclusive: Integers
    """The occupation of every cell that works for leaders only, -1 for none."""
    alone: NDArray[np.bool_]
    """Whether it works for the first leader only."""


def draw_design(seed: int) -> Design:
    """The design of the survey with this seed, whatever its size."""
    rng = stream(seed, Purpose.BUSINESS_DESIGN)
    by_state, by_industry = states.shares(), divisions.column("businesses")
    businesses = np.outer(by_state, by_industry).ravel() * np.exp(SPECIALISATION * rng.standard_normal(CELLS))
    middling = np.log(by_state) - np.log(by_state).mean()
    concentration = _concentration(np.repeat(middling, len(INDUSTRY)), rng)
    industry = np.arange(CELLS) % len(INDUSTRY)
    rare = np.argsort(occupations.mix(), axis=1, kind="stable")[industry, rng.integers(RARE, size=CELLS)]
    return Design(
        businesses=businesses / businesses.sum(),
        weights=_weights(np.repeat(middling, len(INDUSTRY)), rng),
        concentration=concentration,
        shape=_shapes(concentration, rng),
        exclusive=np.where(rng.random(CELLS) < EXCLUSIVE, rare, -1),
        alone=rng.random(CELLS) < 0.5,
    )


def _weights(middling: Floats, rng: np.random.Generator) -> Floats:
    """A weight for every stratum, raised or lowered in each class of response, of four digits after the point."""
    stratum = WEIGHT_BY_STATE * middling[:, None] + WEIGHT_SPREAD * rng.standard_normal((CELLS, len(SIZE)))
    response = RESPONSE_SPREAD * rng.standard_normal((CELLS, len(SIZE), RESPONSE_CLASSES))
    weights = (BASE_WEIGHT * np.exp(stratum))[:, :, None] * np.exp(response)
    weights[:, LARGE] = 1.0
    return np.round(weights.clip(1.0, MOST_WEIGHT), 4)


def _concentration(middling: Floats, rng: np.random.Generator) -> Floats:
    """The smaller the state, the more its leaders have; stratified, so that it hardly moves from seed to seed."""
    spread = rng.permutation(stratified_normal(CELLS, rng))
    log_odds = CONCENTRATION - CONCENTRATION_BY_STATE * middling + CONCENTRATION_SPREAD * spread
    return np.minimum(1 / (1 + np.exp(-log_odds)), MOST_CONCENTRATION)


def _shapes(concentration: Floats, rng: np.random.Generator) -> Integers:
    """Every shape in turn from the most concentrated cell down, so that each occurs where it matters."""
    shapes = np.empty(CELLS, dtype=np.int64)
    turn = np.concatenate([rng.permutation(len(SHAPES)) for _ in range(-(-CELLS // len(SHAPES)))])
    shapes[np.argsort(-concentration, kind="stable")] = turn[:CELLS]
    return shapes
