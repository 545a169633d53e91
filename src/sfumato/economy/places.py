"""Places: most are small, most people live in large ones."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.economy.codelists import PLACE_SIZE, Codelist
from sfumato.economy.names import place_names
from sfumato.economy.quantiles import stratified_normal
from sfumato.economy.streams import Purpose, stream

FEWEST = 50
AT_REFERENCE = 3_500
REFERENCE_JOBS = 10_900_000
GROWTH = 0.8
"""Places grow with jobs to this power: a larger economy has more places and larger ones."""

PEOPLE_PER_JOB = 2.3
SPREAD = 2.0
"""Standard deviation of log population: at 11 million jobs one place in a hundred has 100,000 inhabitants."""
UNINHABITED = 0.004
"""Share of places where nobody lives but some work, such as an airport or an industrial park."""

_STRATA = (100, 10_000, 100_000)


@dataclass(frozen=True, kw_only=True)
class Places:
    """The places of an economy, in the order of their names."""

    labels: tuple[str, ...]
    populations: NDArray[np.int64]

    def __post_init__(self) -> None:
        assert len(self.labels) == len(set(self.labels)) == len(self.populations)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def codelist(self) -> Codelist:
        """The codes P00001, P00002, … with the names as labels."""
        codes = (f"P{number:05d}" for number in range(1, len(self) + 1))
        return Codelist(name="place", label="Place", entries=tuple(zip(codes, self.labels, strict=True)))

    @property
    def strata(self) -> NDArray[np.int8]:
        """Each place's position in the codelist of place sizes."""
        return np.searchsorted(_STRATA, self.populations, side="right").astype(np.int8)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Each place's code of place size."""
        return tuple(PLACE_SIZE.codes[stratum] for stratum in self.strata)


def how_many(jobs: int) -> int:
    """The number of places: 3,500 at 10.9 million jobs, 28,500 at 150 million, never below 50."""
    return max(FEWEST, round(AT_REFERENCE * math.pow(jobs / REFERENCE_JOBS, GROWTH)))


def draw_places(*, jobs: int, seed: int) -> Places:
    """Places with log-normal populations that add up to about 2.3 inhabitants a job."""
    count = how_many(jobs)
    rng = stream(seed, Purpose.POPULATIONS)
    median = PEOPLE_PER_JOB * jobs / count / np.exp(SPREAD**2 / 2)
    populations = np.rint(median * np.exp(SPREAD * stratified_normal(count, rng))).astype(np.int64)[::-1]
    populations[-max(1, round(UNINHABITED * count)) :] = 0
    # Plain names go to the largest places; codes then follow the alphabet, as in a gazetteer.
    names = place_names(count, seed=seed)
    order = sorted(range(count), key=names.__getitem__)
    return Places(labels=tuple(names[i] for i in order), populations=populations[order])
