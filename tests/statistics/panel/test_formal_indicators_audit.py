"""The privacy loss of indicators over neighbouring job histories, found by search and not by the formulas.

An establishment and the same one with further jobs, of whatever histories, go through every period. What they differ by
is counted anew, and the loss of all parts and periods is the sum of the greatest of each: their noise is independent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from sfumato.noise.pareto import SimplexPareto
from sfumato.privacy.over_time import record_losses
from sfumato.statistics.panel.formal import MOVED_BY_RECORD
from sfumato.statistics.panel.formal_period import CHANGE, CHANGES, COUNTS, PAY, PeriodPareto
from sfumato.statistics.panel.indicators import INDICATORS
from tests.statistics.methods.test_vector_audit import outcomes
from tests.statistics.panel.histories import Job, measured, size

ALPHA, CAP, PERIODS = Fraction("0.1"), 1_000, 6
PATTERNS = ["".join(bits) for bits in product("01", repeat=PERIODS) if "1" in bits]
WORKER_CELLS = 2


def methods(epsilon: str) -> dict[int, PeriodPareto]:
    """All indicators in every period in which they can be known."""
    return {
        period: PeriodPareto(
            alpha=ALPHA,
            epsilon=Fraction(epsilon),
            indicators=tuple(one.code for one in INDICATORS if period >= one.before and period + one.after < PERIODS),
            worker_cells=WORKER_CELLS,
            cap=CAP,
        )
        for period in range(PERIODS)
    }


def are_neighbours(before: Sequence[Job], after: Sequence[Job]) -> bool:
    """Whether jobs and payroll of every period grow by a tenth at most, or by one job and one cap."""
    for period in range(PERIODS):
        (jobs, paid), (more, pays) = size(before, period, CAP), size(after, period, CAP)
        if more > max((1 + ALPHA) * jobs, jobs + 1) or pays > max((1 + ALPHA) * paid, paid + CAP):
            return False
    return True


def neighbours() -> Iterator[tuple[list[Job], list[Job], tuple[int, int]]]:
    """Establishments with and without further jobs, and the jobs and payroll of the largest other one of the cell."""
    full = "1" * PERIODS
    for jobs, pay in ((0, CAP), (1, CAP), (5, CAP // 10), (9, CAP), (10, CAP), (11, CAP), (20, CAP), (40, CAP // 2)):
        mixed: list[Job] = [(full if place % 3 else "101101", pay, place % 2) for place in range(jobs)]
        alike: list[Job] = [(full, pay, place % 2) for place in range(jobs)]
        for before, pattern in product((mixed, alike), PATTERNS):
            for more, paid in product({1, max(1, jobs // 10)}, (1, pay, CAP, 5 * CAP)):
                after = [*before, *[(pattern, paid, 1)] * more]
                if are_neighbours(before, after):
                    yield before, after, (0, 0)
        yield alike, [*alike, (full, CAP, 0)], (2 * jobs, 2 * jobs * CAP)


@lru_cache(maxsize=100_000)
def part_loss(noise: SimplexPareto, unit: float, shift: tuple[int, ...], scale: float, grown: float) -> float:
    """The greatest |log density ratio| of one part over outcomes, in units in which the floor is 1."""
    moved = np.array(shift) / unit
    k = float(noise.unit) * ALPHA.denominator
    z = outcomes(moved, np.full(len(moved), k * scale), np.random.default_rng(3))
    return float(np.abs(noise.log_density(z, k * scale) - noise.log_density(z - moved, k * grown)).max())


def numbers(method: PeriodPareto, part: str, found: np.ndarray) -> np.ndarray:
    """What a part measures of an establishment."""
    groups = {COUNTS: method.groups, CHANGES: ((CHANGE,),), PAY: method.pay}[part]
    return np.stack([found[:, list(group)].sum(axis=1) for group in groups], axis=1).ravel()


def loss(methods: dict[int, PeriodPareto], before: list[Job], after: list[Job], other: tuple[int, int]) -> float:
    """The loss between two files, in all periods and parts together."""
    found = 0.0
    for period, method in methods.items():
        own = [measured(jobs, period, WORKER_CELLS, CAP) for jobs in (before, after)]
        sizes = [size(jobs, period, CAP) for jobs in (before, after)]
        for part, noise in ((name, one.noise) for name, one in method.parts.items()):
            at, unit = (1, CAP) if part == PAY else (0, 1)
            scale, grown = (max(0.1 * max(one[at], other[at]) / unit, 1.0) for one in sizes)
            shift = numbers(method, part, own[1]) - numbers(method, part, own[0])
            if shift.any() or scale != grown:
                found += part_loss(noise, float(unit), tuple(map(int, shift)), scale, grown)
    return found


def greatest(methods: dict[int, PeriodPareto]) -> float:
    return max(loss(methods, *pair) for pair in neighbours())


def smaller(method: PeriodPareto, share: Fraction) -> PeriodPareto:
    """The same with a smaller scale of all noise, at what was calibrated for more."""
    made = replace(method)
    for one in made.parts.values():
        noise = one.noise
        one.__dict__["noise"] = replace(noise, unit=noise.unit * share)
    return made


@pytest.mark.parametrize("epsilon", ["4", pytest.param("8", marks=pytest.mark.slow)])
def test_the_loss_of_all_periods_is_what_they_spend_and_a_smaller_scale_loses_more(epsilon: str) -> None:
    stated = PERIODS * float(epsilon)
    assert 0.95 * stated < greatest(methods(epsilon)) <= stated + 1e-9
    assert greatest({at: smaller(one, Fraction(9, 10)) for at, one in methods(epsilon).items()}) > 1.0001 * stated


def test_a_job_held_in_some_periods_loses_what_these_spend() -> None:
    """And in no other, although indicators look at the periods around."""
    before: list[Job] = [("111111", CAP, 0)] * 10
    for pattern in ("010000", "011000", "101010", "111111"):
        found = loss(methods("4"), before, [*before, (pattern, CAP, 1)], (0, 0))
        assert 0.9 * 4 * pattern.count("1") < found <= 4 * pattern.count("1") + 1e-9


def test_noise_by_hires_alone_would_not_hide_hires() -> None:
    """A tenth more workers who are all hired: ten hires where there were none, and a scale of one would tell them."""
    method = methods("4")[4]
    before: list[Job] = [("111111", CAP, 0)] * 100
    after = [*before, *[("000011", CAP, 0)] * 10]
    hires = [measured(jobs, 4, WORKER_CELLS, CAP)[:, 4].sum() for jobs in (before, after)]
    assert hires == [0, 10]
    noise, k = method.parts[COUNTS].noise, float(method.parts[COUNTS].calibration.scale)
    moved = np.zeros((1, noise.cells))
    moved[0, 4] = 10
    wrong = noise.log_density(np.zeros_like(moved), k) - noise.log_density(-moved, k * max(0.1 * 10, 1))
    assert abs(float(wrong[0])) > 2 * float(method.spent[COUNTS])


def kind_of(history: frozenset[int], period: int) -> tuple[bool, bool, bool] | None:
    """What decides in which numbers a job is in a period: whether it is there, and what is around."""
    if period not in history:
        return None
    within = any(period - back in history for back in range(1, 5))
    return period - 1 in history, within, period + 1 in history


def test_one_record_is_told_as_the_steps_of_all_periods_that_look_at_it() -> None:
    codes = tuple("abcdefgh")
    spent = {code: Fraction(place + 1, 3) for place, code in enumerate(codes)}
    steps = []
    for held in product([False, True], repeat=len(codes)):
        history = frozenset(place for place, there in enumerate(held) if there)
        for record in history:
            pairs = [(kind_of(history, at), kind_of(history - {record}, at)) for at in range(len(codes))]
            apart = [0 if one == other else 1 if None in (one, other) else 2 for one, other in pairs]
            steps.append(sum(number * spent[code] for number, code in zip(apart, codes, strict=True)))
    # A job that is there right before and after loses the kinds of the periods next to it, but not those of a year.
    stated = max(record_losses(spent, codes, MOVED_BY_RECORD).values())
    assert stated / 2 < max(steps) <= stated
