"""Where workers live: mostly at or near the place of their first job, and a few anywhere."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato_lab.economy.jobs.draws import Places
from sfumato_lab.economy.maps import island_positions

NEAREST = 40
"""Places around each one from which workers come."""
REACH = 2.5
"""How far they come, in distances between neighbouring places on the map: e times fewer with each of these."""
ANYWHERE = 0.02
"""Share of workers who live in any place, however far."""
OWN = 6.0
"""How much nearer one's own place is than its distance of zero says: people move to where they work."""
_ROWS = 512


@dataclass(frozen=True, kw_only=True)
class Homes:
    """For every place of work the places that its workers come from, and how many from each."""

    near: NDArray[np.int32]
    cumulative: NDArray[np.float32]
    """Cumulative shares of the near places, in rows."""
    anywhere: NDArray[np.float64]
    """Cumulative shares of all places by population."""

    def draw(self, workplaces: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int32]:
        """The place of residence of workers at these places of work."""
        uniform, far = rng.random(len(workplaces), dtype=np.float32), rng.random(len(workplaces))
        nearest = (self.cumulative[workplaces] < uniform[:, None]).sum(axis=1)
        home: NDArray[np.int32] = self.near[workplaces, np.minimum(nearest, self.near.shape[1] - 1)]
        moved = np.flatnonzero(far < ANYWHERE)
        # Below the share a uniform number, divided by it, is uniform again.
        home[moved] = np.searchsorted(self.anywhere, far[moved] / ANYWHERE, side="right").astype(np.int32)
        return home


def homes_of(places: Places) -> Homes:
    """The nearer on the map and the larger a place is, the more of the workers of another live there."""
    at, people = island_positions(len(places)), places.populations.astype(np.float64)
    count = min(NEAREST, len(places))
    near = np.empty((len(places), count), dtype=np.int32)
    cumulative = np.empty((len(places), count), dtype=np.float32)
    for start in range(0, len(places), _ROWS):
        rows = slice(start, start + _ROWS)
        distance = np.sqrt(((at[rows, None, :] - at[None, :, :]) ** 2).sum(axis=2))
        chosen = np.argpartition(distance, count - 1, axis=1)[:, :count]
        away = np.take_along_axis(distance, chosen, axis=1)
        weight = (people[chosen] + 1e-6) * np.exp(-away / REACH) * np.where(away == 0, OWN, 1.0)
        near[rows] = chosen
        cumulative[rows] = np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)
    return Homes(near=near, cumulative=cumulative, anywhere=np.cumsum(people)[:-1] / people.sum())
