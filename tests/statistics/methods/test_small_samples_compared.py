"""What docs/methods/small-samples.md recommends: the three methods side by side at the same nominal ε."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.noise.randomness import Seeded
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.noisy_regression import NoisyRegression
from sfumato.statistics.people.theil_sen import TheilSen
from tests.statistics.methods.groups import RANKS, drawn_ranks, samples, sums

GROUPS = {10: 600, 20: 600, 50: 400, 100: 300, 500: 100, 1_000: 60}
SIZES = np.repeat(list(GROUPS), list(GROUPS.values()))


def errors(crowded: bool, seed: int = 1) -> dict[str, dict[int, float]]:
    """The mean absolute error of what is published, in ranks, by method and number of people; NaN if little is."""
    x, y = drawn_ranks(SIZES, seed, crowded=crowded)
    cells, people = sums(SIZES, x, y), samples(SIZES, x, y)
    noisy = NoisyRegression(epsilon=Fraction(8), minimum=0, **RANKS)
    protected = {
        "noisy-regression": noisy.protect(cells, Seeded(2)),
        "mose": Mose(epsilon=Fraction(8), **RANKS).protect(cells, Seeded(3)),
        "theil-sen": TheilSen(epsilon=Fraction(8), minimum=0, **RANKS).protect(people, Seeded(4)),
    }
    found: dict[str, dict[int, float]] = {}
    for name, table in protected.items():
        off = np.abs(table["value"] - noisy.true_value(cells)) / 100
        shown = table["status"] == 0
        own = {size: np.repeat(size == SIZES, 2) for size in GROUPS}
        found[name] = {s: off[o & shown].mean() if shown[o].mean() > 0.5 else np.nan for s, o in own.items()}
    return found


@pytest.fixture(scope="module")
def spread() -> dict[str, dict[int, float]]:
    return errors(crowded=False)


@pytest.fixture(scope="module")
def crowded() -> dict[str, dict[int, float]]:
    return errors(crowded=True)


def test_where_ranks_are_spread_out_noisy_sums_have_the_least_error_at_every_size(
    spread: dict[str, dict[int, float]],
) -> None:
    for size in GROUPS:
        assert spread["noisy-regression"][size] < spread["mose"][size] / 3
        assert spread["noisy-regression"][size] < spread["theil-sen"][size] / 2


def test_pairs_beat_the_observed_sensitivity_in_small_groups_only(spread: dict[str, dict[int, float]]) -> None:
    assert spread["theil-sen"][20] < spread["mose"][20]
    assert spread["theil-sen"][1_000] > spread["mose"][1_000]


def test_where_ranks_are_crowded_noisy_sums_tell_no_line_in_small_groups_and_pairs_have_the_least_error(
    crowded: dict[str, dict[int, float]],
) -> None:
    for size in (10, 20, 50):
        assert np.isnan(crowded["noisy-regression"][size])
        assert crowded["theil-sen"][size] < crowded["mose"][size] / 3
    for size in (500, 1_000):
        assert crowded["noisy-regression"][size] < min(crowded["theil-sen"][size], crowded["mose"][size])
