"""Every attack discloses the legacy protection exactly, and gets nothing exact out of Smooth Pareto."""

from functools import partial
from math import isnan

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.measures.attacks import (
    AttackResult,
    growth_attack,
    pooled,
    reidentification_attack,
    shape_attack,
    size_attack,
)
from tests.report.economies import (
    GRADUATES,
    Values,
    factors,
    noise_infusion,
    smooth_pareto,
    workplaces,
)

PLACES = workplaces(1, cells=6_000)
TRUE = PLACES.cells()
FACTORS = factors(PLACES, 2)
LEGACY = {None: noise_infusion(PLACES, FACTORS, decimals=None, seed=3)}
LEGACY |= {decimals: noise_infusion(PLACES, FACTORS, decimals=decimals, seed=3) for decimals in (0, 2)}
ROUNDING = {None: 0.0, 0: 0.5, 2: 0.005}
FORMAL = smooth_pareto(PLACES, alpha="0.05", epsilon=2, seed=4)

shape = partial(shape_attack, establishments=PLACES.establishments, true=TRUE)


def size(published: Values, decimals: int | None) -> AttackResult:
    known = published.argmax(axis=1)
    return size_attack(
        published=published,
        establishments=PLACES.establishments,
        known_column=known,
        known_count=TRUE[np.arange(len(TRUE)), known],
        true=TRUE,
        rounding=ROUNDING[decimals],
    )


def reidentification(published: Values, *, largest_wins: bool = False) -> AttackResult:
    return reidentification_attack(
        published=published,
        establishments=PLACES.establishments,
        candidates=GRADUATES,
        alone=TRUE[:, GRADUATES].sum(axis=1) == 1,
        true=TRUE,
        largest_wins=largest_wins,
    )


def growth(protect: str, decimals: int | None) -> AttackResult:
    later = PLACES.grown(5)
    if protect == "legacy":
        before, after = LEGACY[decimals], noise_infusion(later, FACTORS, decimals=decimals, seed=6)
    else:
        before, after = FORMAL, smooth_pareto(later, alpha="0.05", epsilon=2, seed=6)
    return growth_attack(
        before=before,
        after=after,
        establishments=PLACES.establishments,
        true_before=TRUE,
        true_after=later.cells(),
        rounding=ROUNDING[decimals],
    )


@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_one_factor_cancels_in_every_share_so_noise_infusion_discloses_the_shape(decimals: int | None) -> None:
    found = shape(published=LEGACY[decimals], rounding=ROUNDING[decimals])
    assert found.targets > 25
    assert found.success_rate == 1
    assert found.baseline_rate < 0.05


@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_one_known_count_discloses_every_other_under_noise_infusion(decimals: int | None) -> None:
    found = size(LEGACY[decimals], decimals)
    assert found.targets > 25
    assert found.success_rate == 1
    assert found.baseline_rate < 0.05


@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_zeros_are_kept_so_noise_infusion_names_the_only_graduate(decimals: int | None) -> None:
    found = reidentification(LEGACY[decimals])
    assert found.targets > 25
    assert found.success_rate == 1
    assert found.baseline_rate == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_a_permanent_factor_cancels_over_time_so_noise_infusion_discloses_growth(decimals: int | None) -> None:
    found = growth("legacy", decimals)
    assert found.targets > 25
    assert found.success_rate == 1
    assert found.baseline_rate < 0.1


def test_nothing_is_exact_under_smooth_pareto() -> None:
    for found in (shape(published=FORMAL, rounding=0.5), size(FORMAL, 0), growth("formal", 0)):
        assert found.targets > 25, found
        assert found.success_rate < 0.05, found


def test_smooth_pareto_rarely_leaves_one_candidate_for_the_only_graduate() -> None:
    assert reidentification(FORMAL).targets == reidentification(LEGACY[0]).targets
    assert reidentification(FORMAL).success_rate < reidentification(FORMAL).baseline_rate / 2


def test_even_naming_the_largest_candidate_stays_within_the_guarantee() -> None:
    # One worker changes sides: two cells move by one neighbour step each, at an epsilon of 2/4 each.
    found = reidentification(FORMAL, largest_wins=True)
    most = np.exp(1) / (1 + np.exp(1))
    assert found.success_rate <= most + 3 * np.sqrt(0.25 / found.targets)


def test_attacks_leave_cells_with_several_establishments_alone() -> None:
    several = np.full(len(TRUE), 2)
    found = shape_attack(published=LEGACY[None], establishments=several, true=TRUE)
    assert (found.targets, found.successes) == (0, 0)
    assert isnan(found.success_rate)
    assert isnan(found.baseline_rate)


@pytest.mark.parametrize(
    ("published", "why"),
    [
        ([[12.0, 1.0]], "a 1 may have been a 2"),
        ([[12.0, 0.0]], "one group alone has no shape"),
        ([[0.0, 0.0]], "nobody works here"),
        ([[-4.0, 7.0]], "no factor makes a negative count"),
    ],
)
def test_the_shape_of_such_a_row_is_not_attacked(published: list[list[float]], why: str) -> None:
    found = shape_attack(published=np.array(published), establishments=np.array([1]), true=np.array([[10, 2]]))
    assert found.targets == 0, why


def test_small_rows_of_a_rounded_table_are_not_attacked_because_rounding_blurs_them() -> None:
    published, one = np.array([[7.0, 4.0], [700.0, 400.0]]), np.array([1, 1])
    true = np.array([[6, 4], [636, 364]])
    assert shape_attack(published=published, establishments=one, true=true, rounding=0.5).targets == 1
    assert shape_attack(published=published, establishments=one, true=true).targets == 2


def test_an_estimate_that_rounding_cannot_explain_is_no_success() -> None:
    one, published = np.array([1]), np.array([[700, 400]])
    assert shape_attack(published=published, establishments=one, true=published, rounding=0.5).successes == 1
    off = np.array([[703, 397]])
    assert shape_attack(published=published, establishments=one, true=off, rounding=0.5).successes == 0


def hand_made(known: int, true: NDArray[np.int64]) -> AttackResult:
    return size_attack(
        published=np.array([[120.0, 60.0]]),
        establishments=np.array([1]),
        known_column=np.array([1]),
        known_count=np.array([known]),
        true=true,
    )


def test_the_size_attack_by_hand() -> None:
    assert hand_made(50, np.array([[100, 50]])).successes == 1  # factor 1.2
    assert hand_made(50, np.array([[101, 50]])).successes == 0
    assert hand_made(0, np.array([[100, 0]])).targets == 0, "a count of 0 tells no factor"


def test_an_establishment_without_workers_is_never_disclosed() -> None:
    one, published, nobody = np.array([1]), np.array([[5.0, 6.0]]), np.array([[0, 0]])
    assert shape_attack(published=published, establishments=one, true=nobody).successes == 0
    grown = growth_attack(before=published, after=published, establishments=one, true_before=nobody, true_after=nobody)
    assert (grown.targets, grown.successes) == (1, 0)


def test_several_candidates_name_nobody() -> None:
    attack = partial(
        reidentification_attack,
        establishments=np.array([1]),
        candidates=np.array([0, 1]),
        alone=np.array([True]),
        true=np.array([[0, 1]]),
    )
    assert attack(published=np.array([[0, 2]])).successes == 1
    assert attack(published=np.array([[1, 2]])).successes == 0
    assert attack(published=np.array([[0, 0]])).successes == 0
    assert attack(published=np.array([[1, 2]]), largest_wins=True).successes == 1
    assert attack(published=np.array([[0, -1]])).successes == 1, "a negative value is not 0"


def test_results_of_several_target_groups_add_up() -> None:
    one = AttackResult(attack="shape", targets=4, successes=2, guessed=1)
    assert pooled([one, one]) == AttackResult(attack="shape", targets=8, successes=4, guessed=2)
