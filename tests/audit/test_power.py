"""The audit finds what reveals more than is stated, and accuses nothing else."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato.arrays import Floats
from tests.audit.blocks import Firm
from tests.audit.cases import CASES, PEOPLE, STRONG, WORKER, firm, group, jobs, method, people, table
from tests.audit.events import Draws, largest_loss
from tests.audit.harness import ABSENT, EMPTY, Case, audit

NAMED = {case.name: case for case in CASES}


def geometric(rng: np.random.Generator, n: int, epsilon: float) -> Floats:
    share = 1 - np.exp(-epsilon)
    return (rng.geometric(share, n) - rng.geometric(share, n)).astype(np.float64)


@pytest.mark.parametrize("name", ["smooth-pareto", "counts of people", "unit-pareto"])
def test_a_second_draw_of_the_same_records_that_nobody_charged_is_found(name: str) -> None:
    once = NAMED[name]
    found = audit(replace(once, runs=2), 10_000)
    assert found.loss.lower > found.allowed, str(found)


def test_noise_that_is_a_tenth_too_small_is_found() -> None:
    """Noise made for ε = 2.2 is what noise for ε = 2 would be with a scale that is a tenth too small."""
    case = Case(
        name="too little noise",
        before=group(*people(3)),
        after=group(*people(4)),
        neighbour="one person more",
        budget=PEOPLE,
        tables=table("block", method("laplace", "2.2"), statistic='count = "records"'),
    )
    found = audit(case, 60_000)
    assert 2 < found.loss.lower <= 2.2, str(found)


def test_an_establishment_more_which_is_public_is_seen_at_once() -> None:
    case = Case(
        name="not neighbours",
        before=firm(3),
        after=firm(3, 0, Firm(women=1, side="b")),
        neighbour=WORKER,
        budget=STRONG,
        tables=jobs("block side", method("smooth-pareto"), more='structural_zeros = "implied"'),
    )
    found = audit(case, 2_000)
    assert found.loss.lower > 3 > found.allowed, str(found)
    assert "jobs, codes" in found.changed


def test_a_release_that_withholds_all_its_values_is_no_audit() -> None:
    case = NAMED["noisy-regression"]
    withheld = replace(case, tables=case.tables.replace('unknown_errors = "published"', ""))
    found = audit(withheld, 200)
    assert found.untold == ("people",)
    assert not found.holds, str(found)
    assert audit(replace(withheld, untold=frozenset(found.untold)), 200).holds


Leak = Callable[[NDArray[np.bool_], np.random.Generator], Floats]
LEAKS: dict[str, Leak] = {
    "a row that is there": lambda there, _: np.where(there, 0.0, ABSENT),
    "a number that is told": lambda there, rng: np.where(there & (rng.random(len(there)) < 0.5), EMPTY, 7.0),
    "an even number": lambda there, rng: 2.0 * rng.integers(-50, 50, len(there)) + there,
    "a smaller spread": lambda there, rng: np.where(there, 1.0, 40.0) * rng.standard_normal(len(there)),
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=list(LEAKS))
def test_one_column_that_tells_more_is_found_among_others(leak: Leak) -> None:
    rng = np.random.default_rng(1)
    n = 4_000
    before, after = (
        {"noise": geometric(rng, n, 0.5), "leak": leak(np.full(n, is_after), rng)} for is_after in (False, True)
    )
    assert largest_loss(Draws(before=before, after=after)).lower > 1.9


def test_columns_that_tell_nothing_alone_are_found_together() -> None:
    rng = np.random.default_rng(2)
    n = 4_000
    noise = [geometric(rng, n, 0.05) for _ in range(4)]
    draws = Draws(before={"x": noise[0], "y": noise[0]}, after={"x": noise[1], "y": noise[1] + 1})
    assert largest_loss(draws).lower > 4
    sign = [rng.choice([-1.0, 1.0], (2, n)) for _ in range(2)]
    drawn = Draws(
        before={"x": sign[0][0], "y": sign[0][0] * np.abs(noise[2])},
        after={"x": sign[1][0], "y": sign[1][1] * np.abs(noise[3])},
    )
    assert largest_loss(drawn).lower > 0.4


@pytest.mark.parametrize("noise", [False, True], ids=["alone", "beside noise"])
def test_a_column_of_different_values_hides_no_other(noise: bool) -> None:
    """Values that never occur again decide no other column, so that two others are still looked at together."""
    rng = np.random.default_rng(5)
    n = 20_000

    def lower(before: dict[str, Floats], after: dict[str, Floats]) -> float:
        sides = [({"x": rng.standard_normal(n)} if noise else {}) | side for side in (before, after)]
        return largest_loss(Draws(before=sides[0], after=sides[1])).lower

    drawn = [{name: count + geometric(rng, n, 1) for name in "yz"} for count in (3, 4)]
    assert 1.3 < lower(drawn[0], drawn[1]) <= 2
    one, other = geometric(rng, n, 0.05), geometric(rng, n, 0.05)
    assert lower({"y": one, "z": one}, {"y": other, "z": other + 1}) > 4
    one, other = rng.standard_normal(n), rng.standard_normal(n)
    assert lower({"y": one, "z": one}, {"y": other, "z": other + 1e-9}) > 4


def test_a_bound_is_above_the_true_loss_no_more_often_than_it_says() -> None:
    """Two columns of geometric noise lose their ε exactly, so that every bound above it is wrong."""
    rng = np.random.default_rng(3)
    rounds, error, wrong = 100, 0.1, 0
    for _ in range(rounds):
        drawn = [{name: count + geometric(rng, 600, 0.5) for name in "xy"} for count in (3, 4)]
        wrong += largest_loss(Draws(before=drawn[0], after=drawn[1]), error=error).lower > 1
    assert wrong <= binom.ppf(0.9999, rounds, error)


def test_delta_is_taken_off_before_a_loss_is_claimed() -> None:
    rng = np.random.default_rng(4)
    n = 20_000
    before, after = geometric(rng, n, 1), geometric(rng, n, 1)
    before[rng.random(n) < 0.02] = 1e6  # which excludes the other set, once in fifty times
    draws = Draws(before={"x": before}, after={"x": after + 1})
    assert largest_loss(draws).lower > 1
    assert largest_loss(draws, delta=0.02).lower <= 1
