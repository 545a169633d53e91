"""Noise of the global and of the local sensitivity: what MOSE is compared with, one formal and one that leaks."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.errors import MethodError
from sfumato.noise.laplace import RoundedLaplace
from sfumato.noise.randomness import Seeded
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.sensitivity import GlobalSensitivity, LocalSensitivity
from tests.noise.fit import ACCEPTED, REJECTED, Survival, p_value
from tests.statistics.methods.groups import RANKS, drawn_ranks, sums, sums_of

BOX: dict[str, int] = {"low_x": 0, "high_x": 4, "low_y": -2, "high_y": 3}
LEGAL = list(product(range(5), range(-2, 4)))
groups = st.lists(st.sampled_from(LEGAL), max_size=8)
SIZES = np.full(400, 30)
RECORDS = drawn_ranks(SIZES, 5)


def formal(at: tuple[Fraction, ...] = (Fraction(1),), decimals: int = 1) -> GlobalSensitivity:
    return GlobalSensitivity(alpha=Fraction(1), epsilon=Fraction(2), at=at, decimals=decimals, minimum=0, **BOX)


def local(**options: object) -> LocalSensitivity:
    return LocalSensitivity(**({"epsilon": Fraction(8), "accept_leak": True, **RANKS} | options))  # type: ignore[arg-type]


@given(group=groups, person=st.sampled_from(LEGAL), rank=st.sampled_from((0, 1, 4)), decimals=st.integers(0, 2))
def test_no_person_moves_an_estimate_by_more_than_the_global_sensitivity(
    group: list[tuple[int, int]], person: tuple[int, int], rank: int, decimals: int
) -> None:
    for at in ((Fraction(rank),), ()):
        method = formal(at, decimals)
        (found,) = method.estimates(sums_of(group, [*group, person]))
        assert abs(int(found.rounded[1]) - int(found.rounded[0])) <= method.sensitivity


def test_the_global_sensitivity_is_reached_so_less_noise_would_be_too_little() -> None:
    prediction, mean = formal((Fraction(4),)), formal(())
    (lines,) = prediction.estimates(sums_of([(0, -2), (1, -2)], [(0, -2), (1, -2), (1, 3)]))
    (means,) = mean.estimates(sums_of([(0, -2)], [(0, -2), (1, 3)]))
    assert np.diff(lines.rounded)[0] == prediction.sensitivity == 50
    assert np.diff(means.rounded)[0] == mean.sensitivity == 25


def test_the_noise_of_the_global_sensitivity_spends_its_epsilon_and_not_more() -> None:
    method = formal((Fraction(4),))
    noise, scale = method.value_noise, np.array([method.sensitivity])
    far = np.arange(-400, 401)
    loss = noise.log_mass(far, scale) - noise.log_mass(far - method.sensitivity, scale)
    assert loss.max() == pytest.approx(float(method.epsilon_of_value), rel=1e-9)
    less = RoundedLaplace(unit=noise.unit * Fraction(9, 10))
    cheated = less.log_mass(far, scale) - less.log_mass(far - method.sensitivity, scale)
    assert cheated.max() > float(method.epsilon_of_value) * 1.05


def test_groups_without_a_line_or_without_people_are_withheld_by_their_noisy_number_like_all_others() -> None:
    published = formal().protect(sums_of(*[[], [(1, 3)], [(0, 0), (4, 3)]] * 200), Seeded(1))
    assert np.array_equal(published["status"] == 0, published["count"] >= 0)
    assert len(set(published["error"][published["status"] == 0].tolist())) == 1


def test_values_are_drawn_around_the_prediction_at_the_scale_of_the_whole_range() -> None:
    cells = sums_of(*[[(0, -1), (2, 1), (4, 3)]] * 20_000)
    method = formal()
    (exact,) = method.estimates(cells)
    published = method.protect(cells, Seeded(2))
    drawn = (published["value"] - exact.rounded)[published["status"] == 0]
    scale = float(method.sensitivity / method.epsilon_of_value)
    assert p_value(drawn, _survival(scale)) > ACCEPTED
    assert p_value(drawn, _survival(scale * 0.9)) < REJECTED


def _survival(scale: float) -> Survival:
    """P(J ≥ j) of Laplace noise rounded to whole numbers."""

    def survival(j: Integers) -> NDArray[np.float64]:
        z = j - 0.5
        tail = np.exp(-np.abs(z) / scale) / 2
        return np.where(z < 0, 1 - tail, tail)

    return survival


def test_published_errors_cover_the_estimate_as_often_as_stated() -> None:
    cells = sums(SIZES, *RECORDS)
    for method in (
        GlobalSensitivity(epsilon=Fraction(8), **RANKS),
        local(tell_scales=True),
    ):
        off = [
            np.abs(drawn["value"] - method.true_value(cells)) <= 1.96 * drawn["error"]
            for drawn in (method.protect(cells, Seeded(seed)) for seed in range(20))
        ]
        assert np.mean(off) == pytest.approx(0.95, abs=0.01)


def test_at_equal_epsilon_local_noise_is_least_and_global_noise_hopeless() -> None:
    cells = sums(SIZES, *RECORDS)
    errors = [
        np.nanmean(method.expected_error(cells)) / 100
        for method in (
            local(),
            Mose(epsilon=Fraction(8), **RANKS),
            GlobalSensitivity(epsilon=Fraction(8), **RANKS),
        )
    ]
    assert errors[0] < errors[1] < errors[2]
    assert errors[2] > 30  # of a hundred ranks


def test_local_noise_must_be_asked_for_by_name_of_its_leak() -> None:
    with pytest.raises(MethodError, match=r"computed from the people of each group"):
        LocalSensitivity(epsilon=Fraction(8), **RANKS)
    condition = local().guarantee().condition
    assert "not differentially private" in condition
    assert "visible in the noise itself" in condition
    assert "published beside every value" in local(tell_scales=True).guarantee().condition


def test_the_noise_of_local_sensitivity_betrays_more_than_epsilon_about_one_more_person() -> None:
    # Three people who nearly agree: one more at the far corner makes the line firm and the noise small.
    cells = sums_of(*[[(4_900, 5_000), (5_000, 5_000), (5_100, 5_000)]] * 5_000)
    method = local(at=(Fraction(2_500),))
    (attack,) = method.attacks(cells, method.protect(cells, Seeded(3)))
    assert attack.targets == 5_000
    assert attack.success_rate > 0.05
    losses = method.losses(cells, method.protect(cells, Seeded(3)))
    assert losses.max() > 1.5 * float(method.epsilon_of_value)


def test_scales_that_are_told_give_away_whether_somebody_is_there() -> None:
    cells = sums(SIZES, *RECORDS)
    silent, telling = local(), local(tell_scales=True)
    (told,) = telling.attacks(cells, telling.protect(cells, Seeded(4)))
    (untold,) = silent.attacks(cells, silent.protect(cells, Seeded(4)))
    assert told.success_rate > 0.99
    assert untold.success_rate < told.success_rate


def test_a_scale_that_is_told_and_a_number_of_people_give_the_mean_away() -> None:
    method = replace(local(tell_scales=True, decimals=2), at=())
    cells = sums(SIZES, *RECORDS)
    published = method.protect(cells, Seeded(5))
    # error·1.96/ln 20 is the scale, sensitivity/ε; that of a mean is (high − mean)/(n + 1), or (mean − low)/(n + 1).
    sensitivity = published["error"] * 1.96 / log(20) * float(method.epsilon_of_value)
    reach = sensitivity * (cells["count"] + 1)
    guesses = np.stack([10_000 * method.grid - reach, reach])
    near = np.abs(guesses - method.true_value(cells)).min(axis=0)
    assert np.median(near) < 0.005 * 10_000 * method.grid  # within half a rank
