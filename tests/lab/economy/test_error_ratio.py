"""Protecting this economy costs what it cost on the first one: the noise of two methods beside the legacy's.

The expected error of a cell at α=.1, ε=2 is a known multiple of S = max(.1·x, 1), with x its largest
establishment: 1.0 for Smooth Laplace, 0.525 for Smooth Pareto. The legacy multiplies each establishment by a
factor 10% to 25% away from one, nearer values more likely; its error is averaged over trials.
"""

import numpy as np
import pytest

from sfumato_lab.economy.jobs.draws import draw_establishments, draw_places

SMOOTH_PARETO, SMOOTH_LAPLACE = 0.525, 1.0
TRIALS = 20


def errors(jobs):
    """Each cell's S, its mean legacy error, and the stratum of its place."""
    places = draw_places(jobs=jobs, seed=1)
    establishments = draw_establishments(places, jobs=jobs, seed=1)
    _, start = np.unique(establishments.cell, return_index=True)
    scale = np.maximum(0.1 * np.maximum.reduceat(establishments.size, start), 1)
    rng = np.random.default_rng(1)
    legacy = np.zeros(len(start))
    for _ in range(TRIALS):
        away = 0.25 - 0.15 * np.sqrt(rng.random(len(establishments)))
        away *= rng.choice([-1, 1], len(establishments))
        legacy += np.abs(np.add.reduceat(away * establishments.size, start)) / TRIALS
    return scale, legacy, places.strata[establishments.place[start]]


@pytest.mark.parametrize("jobs", [1_000_000, 10_900_000])
def test_error_ratios_are_near_the_first_measurements_and_fall_with_place_size(jobs):
    scale, legacy, stratum = errors(jobs)
    ratio = scale.sum() / legacy.sum()
    assert SMOOTH_PARETO * ratio == pytest.approx(0.34, abs=0.03)
    assert SMOOTH_LAPLACE * ratio == pytest.approx(0.65, abs=0.06)
    by_place_size = [scale[stratum == k].sum() / legacy[stratum == k].sum() for k in range(4)]
    assert by_place_size == sorted(by_place_size, reverse=True)
