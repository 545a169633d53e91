"""What a comparison measures, on tables small enough to be worked out by hand."""

import numpy as np
import pytest

from sfumato.cells import Dimension
from sfumato.measures.comparison import (
    ALONE,
    LARGEST,
    SUBTRACTED,
    Contributors,
    Losses,
    Shown,
    Target,
    common_attacks,
    is_coarser,
)

PLACE = Dimension(name="place", codes=("A", "B"))
SEX = Dimension(name="sex", codes=("F", "M"))


def target(true: list[float], *dimensions: Dimension, **more: object) -> Target:
    halves = (("first", "second"), np.arange(len(true)) * 2 // len(true))
    given = {"name": "t", "title": "T", "unit": "jobs", "groups": {"half": halves}} | more
    return Target(dimensions=dimensions, true=np.array(true), **given)  # type: ignore[arg-type]


def shown(value: list[float], told: list[bool] | None = None, guess: list[float] | None = None) -> Shown:
    return Shown(
        value=np.array(value),
        told=np.ones(len(value), dtype=bool) if told is None else np.array(told),
        guess=None if guess is None else np.array(guess),
    )


# True are 100, 50, 0 and 10; the third has nothing in it, and the last is withheld.
TRUE = target([100, 50, 0, 10], PLACE, SEX)
ONE = shown([109, 40, 7, 0], [True, True, True, False])


def test_cells_with_nothing_in_them_are_left_out_and_withheld_ones_are_not_usable() -> None:
    losses = Losses(TRUE, 0.1)
    losses.add(ONE)
    (found,) = losses.by(losses)[""]
    assert found.cells == 3
    assert found.withheld == pytest.approx(1 / 3)
    assert found.value_withheld == pytest.approx(10 / 160)
    assert found.usable == pytest.approx(1 / 3), "only the first is within a tenth"
    assert (found.median_error, found.mean_error) == (9.5, 9.5)
    assert found.mean_relative == pytest.approx((0.09 + 0.2) / 2)
    assert found.spearman == 1


def test_ratios_are_over_cells_that_both_publish_and_losses_over_all() -> None:
    legacy, own = Losses(TRUE, 0.1), Losses(TRUE, 0.1)
    legacy.add(shown([90, 70, 1, 12]))  # off by 10, 20, 1 and 2
    own.add(ONE)  # off by 9, 10 and 7, and 10 is lost
    (found,) = own.by(legacy)[""]
    assert found.error_ratio == pytest.approx(26 / 31)
    assert found.loss_ratio == pytest.approx(36 / 33)
    first, second = own.by(legacy)["half"]
    assert first.error_ratio == pytest.approx(19 / 30)
    assert (second.cells, second.withheld, second.error_ratio, second.mean_error) == (1, 1, None, None)
    assert own.by(None)[""][0].error_ratio is None


def test_figures_are_means_over_trials() -> None:
    losses = Losses(TRUE, 0.1)
    for value in ([100, 50, 0, 10], [120, 50, 0, 10]):
        losses.add(shown(value))
    (found,) = losses.by(losses)[""]
    assert found.usable == pytest.approx((1 + 2 / 3) / 2)
    assert found.mean_error == pytest.approx(10 / 3)


def test_a_table_with_nothing_in_it_has_no_figures() -> None:
    losses = Losses(target([0, 0], SEX), 0.1)
    losses.add(shown([1, 0]))
    (found,) = losses.by(losses)[""]
    assert (found.cells, found.usable, found.withheld, found.mean_error) == (0, None, None, None)


BY_PLACE = target([150, 10], PLACE)
KNOWN = Contributors(
    number=np.array([3, 2, 0, 1]), largest=np.array([50.0, 46, 0, 10]), second=np.array([30.0, 4, 0, 0])
)


def rates(of: Shown, above: Shown) -> dict[str, tuple[int, int]]:
    whole = target([100, 50, 0, 10], PLACE, SEX, contributors=KNOWN)
    found = common_attacks(whole, of, [(BY_PLACE, above)])
    return {one.attack: (one.successes, one.targets) for one in found}


def test_a_table_with_the_same_sums_is_coarser_and_no_other() -> None:
    assert is_coarser(TRUE, BY_PLACE)
    assert not is_coarser(BY_PLACE, TRUE)
    assert not is_coarser(TRUE, target([150, 11], PLACE)), "of other records"
    assert not is_coarser(TRUE, target([150, 10], Dimension(name="place", codes=("B", "A"))))


def test_true_numbers_disclose_every_target() -> None:
    true = shown([100, 50, 0, 10])
    assert rates(true, shown([150, 10])) == {LARGEST: (1, 1), ALONE: (1, 1), SUBTRACTED: (0, 0)}


def test_what_is_withheld_discloses_nothing_unless_its_bounds_are_narrow() -> None:
    told = [True, False, True, False]
    withheld, narrow = shown([100, 0, 0, 0], told), shown([100, 0, 0, 0], told, [100, 51, 0, 30])
    assert rates(withheld, shown([0, 0], [False, False])) == {LARGEST: (0, 1), ALONE: (0, 1), SUBTRACTED: (0, 0)}
    assert rates(narrow, shown([0, 0], [False, False]))[LARGEST] == (1, 1)


def test_subtraction_finds_a_cell_that_is_left_open_and_noise_hides_it() -> None:
    alone = Contributors(number=np.array([3, 1, 0, 1]), largest=KNOWN.largest, second=KNOWN.second)
    whole = target([100, 50, 0, 10], PLACE, SEX, contributors=alone)

    def found(of: Shown, above: list[float]) -> tuple[int, int]:
        made = {one.attack: one for one in common_attacks(whole, of, [(BY_PLACE, shown(above))])}
        return made[SUBTRACTED].successes, made[SUBTRACTED].targets

    assert found(shown([100, 0, 0, 0], [True, False, True, False]), [150, 10]) == (1, 1), "150 less 100"
    assert found(shown([0, 0, 0, 0], [False, False, True, False]), [150, 10]) == (0, 1), "another is withheld too"
    assert found(shown([80, 50, 0, 10]), [150, 10]) == (0, 1), "noise of the others hides it"
