"""Sparse Laplace: exactly the loss that is stated, public scales, and what is listed by chance as often as stated."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.sparse_laplace import FINE, SparseLaplace, Workforces
from tests.noise.fit import ACCEPTED, REJECTED, p_value

ALPHAS = [Fraction(1, 100), Fraction(1, 10), Fraction(1, 3), Fraction(2)]
DRAWS = 40_000


def method(*, alpha: Fraction = Fraction(1, 10), epsilon: Fraction = Fraction(2), cells: int = 3, **options: object):  # type: ignore[no-untyped-def]
    return SparseLaplace(alpha=alpha, epsilon=epsilon, worker_cells=cells, **options)  # type: ignore[arg-type]


def workforces(*establishments: list[int], blocks: int = 1) -> Workforces:
    """The same establishments in so many blocks, each with its jobs in every worker cell."""
    width, each = len(establishments[0]), len(establishments)
    jobs = np.tile(np.array(establishments, dtype=np.int64), (blocks, 1))
    unit, inside = np.divmod(np.arange(jobs.size), width)
    size = jobs.sum(axis=1)
    some = jobs.ravel() > 0
    return Workforces(
        dimensions=(
            Dimension(name="place", codes=tuple(map(str, range(blocks)))),
            Dimension(name="residence", codes=tuple(map(str, range(width))), public=False),
        ),
        blocks=np.arange(blocks, dtype=np.int64),
        establishments=np.full(blocks, each, dtype=np.int64),
        largest=size.reshape(blocks, each).max(axis=1),
        block=(unit // each)[some],
        inside=inside[some],
        unit=unit[some],
        size=size[unit[some]],
        jobs=jobs.ravel()[some],
    )


# The guarantee: the loss of the rung and of all cells together, exactly, at every cap.


def loss(protection: SparseLaplace, before: list[int], after: list[int]) -> Fraction:
    """The greatest loss of one establishment that changes: of its rung, and of its kept jobs at the worst cap."""
    rungs = np.searchsorted(protection.ladder, [sum(before), sum(after)])
    of_rung = protection.rung_noise.epsilon * int(abs(rungs[1] - rungs[0]))
    reach = int(np.searchsorted(protection.ladder, 2 * sum(after) + 2))
    of_cells = []
    for cap in protection.ladder[1 : reach + 1].tolist():
        kept = [kept_jobs(protection, one, cap) for one in (before, after)]
        of_cells.append(int(np.abs(kept[1] - kept[0]).sum()) * protection.noise(cap).epsilon)
    return of_rung + max(of_cells)


def kept_jobs(protection: SparseLaplace, establishment: list[int], cap: int) -> Integers:
    found = workforces(establishment)
    kept = np.zeros(len(establishment), dtype=np.int64)
    kept[found.inside] = protection._kept(found, np.array([cap]))
    return kept


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Fraction, list[int], list[int]]:
    """An establishment and one that a single step leads to."""
    alpha = draw(st.sampled_from(ALPHAS))
    before = draw(st.lists(st.integers(0, 60), min_size=3, max_size=3))
    more = draw(st.integers(0, max(sum(before) * alpha.numerator // alpha.denominator, 1)))
    where = draw(st.integers(0, 2))
    return alpha, before, [jobs + more * (place == where) for place, jobs in enumerate(before)]


@given(both=neighbours())
def test_no_step_of_an_establishment_loses_more_than_epsilon(both: tuple[Fraction, list[int], list[int]]) -> None:
    alpha, before, after = both
    assert loss(method(alpha=alpha), before, after) <= 2


WORST = [1_000, 0, 0], [1_000, 100, 0]


def test_a_step_that_cuts_the_workforce_loses_nearly_epsilon() -> None:
    assert loss(method(), *WORST) > Fraction("1.999")


@dataclass(frozen=True, kw_only=True)
class TooLittle(SparseLaplace):
    """Noise that is a little too small."""

    too_little: Fraction = Fraction("0.98")

    def sensitivity(self, cap: int) -> int:
        return int(super().sensitivity(cap) * self.too_little)


@pytest.mark.parametrize("too_little", ["0.98", "0.5"])
def test_the_audit_sees_noise_that_is_two_per_cent_too_small_or_forgets_that_cut_shapes_change(too_little: str) -> None:
    wrong = TooLittle(alpha=Fraction(1, 10), epsilon=Fraction(2), worker_cells=3, too_little=Fraction(too_little))
    assert loss(wrong, *WORST) > 2


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
def test_one_step_leads_to_the_next_rung_at_most(alpha: Fraction) -> None:
    ladder = method(alpha=alpha).ladder
    sizes = np.arange(20_000)
    farthest = np.maximum(sizes * (1 + alpha).numerator // (1 + alpha).denominator, sizes + 1)
    rungs, after = np.searchsorted(ladder, sizes), np.searchsorted(ladder, farthest)
    assert np.all((after - rungs >= 0) & (after - rungs <= 1))


def test_one_person_more_loses_epsilon_where_only_persons_are_hidden() -> None:
    protection = method(employers=False)
    assert protection.noise(0).epsilon * protection.sensitivity(0) == 2
    assert protection.guarantee().definition == "individuals"


def test_a_cut_workforce_keeps_its_shape_and_no_more_jobs_than_the_cap() -> None:
    kept = kept_jobs(method(), [600, 300, 100], 100)
    assert kept.tolist() == [60 * FINE, 30 * FINE, 10 * FINE]
    assert kept_jobs(method(), [7, 11, 13], 20).sum() <= 20 * FINE
    assert kept_jobs(method(), [7, 11, 13], 31).tolist() == [7 * FINE, 11 * FINE, 13 * FINE]


# What is drawn.


def test_caps_are_drawn_as_stated_and_cut_the_largest_in_a_twentieth_of_blocks_at_most() -> None:
    protection, largest = method(), 700
    caps = protection.caps(np.full(DRAWS, largest), Seeded(1))
    rung = int(np.searchsorted(protection.ladder, largest))
    drawn = np.searchsorted(protection.ladder, caps) - protection.margin - rung
    assert p_value(np.abs(drawn), protection.rung_noise.survival) > ACCEPTED
    assert 0.02 < (caps < largest).mean() <= 0.05


@pytest.mark.parametrize("employers", [True, False])
def test_values_have_the_stated_noise_and_none_a_sixth_off(employers: bool) -> None:
    protection = method(employers=employers, false_cells=Fraction(3, 10))
    count = 400
    answer = protection.protect(workforces([count, 0, 0], [count, 0, 0], blocks=DRAWS), Seeded(2))
    caps, often = np.unique(answer["cap"], return_counts=True)
    cap = int(caps[np.argmax(often)])
    here = (answer.codes("residence") == 0) & (answer["cap"] == cap)
    kept = 2 * int(kept_jobs(protection, [count, 0, 0], cap)[0]) if employers else 2 * count
    off = np.abs(answer["value"][here] - kept / protection.parts)
    scale = float(protection.noise(cap).epsilon) * protection.parts

    def survival(rate: float):  # type: ignore[no-untyped-def]
        r = np.exp(-rate) if not employers else 1.0
        return lambda m: np.where(m > 0, 2 * np.exp(-rate * (m - (0.5 if employers else 0.0))) / (1 + r), 1.0)

    # Values are rounded to whole jobs: from m on means noise from m − ½ on.
    assert p_value(off.astype(np.int64), survival(scale)) > ACCEPTED
    assert p_value(off.astype(np.int64), survival(1.16 * scale)) < REJECTED


@pytest.mark.parametrize("employers", [True, False])
def test_an_empty_cell_is_listed_as_often_as_is_stated(employers: bool) -> None:
    protection = method(employers=employers, cells=50, false_cells=Fraction(5, 2))
    answer = protection.protect(workforces([3, *[0] * 49], blocks=2_000), Seeded(3))
    listed = (answer.codes("residence") != 0) & (answer["value"] > 0)
    expected = float(np.mean([protection._chance(int(cap)) for cap in answer["cap"][answer.codes("residence") == 0]]))
    assert expected <= 0.05
    assert binomtest(int(listed.sum()), 2_000 * 49, expected).pvalue > ACCEPTED
    assert binomtest(int(listed.sum()), 2_000 * 49, 1.2 * expected).pvalue < REJECTED
    assert np.all(answer["value"][listed] >= protection.thresholds(answer["cap"][listed]))


def test_every_block_tells_its_cap_and_threshold() -> None:
    answer = method(cells=1_000).protect(workforces([0] * 1_000, blocks=50), Seeded(4))
    assert np.array_equal(np.unique(answer.codes("place")), np.arange(50))


def test_billions_of_empty_cells_are_never_made() -> None:
    places = 65_000
    protection = method(cells=places)
    made = workforces([5, 0, 0], blocks=places)
    home = Dimension(name="residence", codes=tuple(map(str, range(places))), public=False)
    wide = Workforces(**{**vars(made), "dimensions": (home, made.dimensions[0])})
    answer = protection.protect(wide, Seeded(5))
    assert places <= len(answer) < 1.2 * places
    assert answer.domain == places**2 > 4 * 10**9


@pytest.mark.parametrize("employers", [True, False])
@pytest.mark.parametrize("count", [0, 4, 12, 60])
def test_error_bias_and_intervals_are_as_stated(count: int, employers: bool) -> None:
    protection = method(employers=employers, false_cells=Fraction(3, 20))
    # Establishments of one job each are hardly ever scaled down.
    made = workforces(*([[1, 0, 0]] * max(count, 1)), blocks=4_000) if count else workforces([0, 1, 0], blocks=4_000)
    answer = protection.protect(made, Seeded(6))
    here = answer.codes("residence") == 0
    assert here.sum() == 4_000, "the first worker cell is always there"
    true = Cells(
        dimensions=answer.dimensions,
        positions=answer.positions[here],
        columns={"count": np.full(4_000, count), "cap": answer["cap"][here]},
    )
    off = answer["value"][here] - count
    assert abs(np.abs(off).mean() - protection.expected_error(true).mean()) < 4 * off.std() / 60 + 0.1
    assert abs(off.mean() - protection.expected_bias(true).mean()) < 4 * off.std() / 60 + 0.1
    figures = protection.published_figures(answer, 0.9)
    inside = (figures.low[here] <= count) & (count <= figures.high[here])
    assert inside.mean() > 0.9
    listed = answer["value"][here] > 0
    assert listed.sum() < 20 or inside[listed].mean() > 0.9, "also of those that are listed"


def test_what_cannot_be_protected_so_is_refused_in_words() -> None:
    for wrong in (
        {"alpha": Fraction(1, 5000)},
        {"false_cells": Fraction(11)},
        {"epsilon": Fraction(101)},
        {"size_share": Fraction(1)},
        {"cells": 2**25},
    ):
        with pytest.raises(MethodError, match="expected"):
            method(**wrong)  # type: ignore[arg-type]
    with pytest.raises(MethodError, match="64 bits"):
        method(epsilon=Fraction(1, 10**6))
    with pytest.raises(MethodError, match="worker cells"):
        method(cells=4).protect(workforces([1, 2, 3]), Seeded(1))


@pytest.mark.parametrize("alpha", ["0.001", "0.1", "1"])
def test_the_least_epsilon_is_told_and_enough(alpha: str) -> None:
    least = SparseLaplace(alpha=Fraction(alpha), epsilon=Fraction(1), worker_cells=500).least_epsilon
    assert SparseLaplace(alpha=Fraction(alpha), epsilon=least, worker_cells=500).epsilon == least
    with pytest.raises(MethodError, match="fit into 64 bits") as refusal:
        SparseLaplace(alpha=Fraction(alpha), epsilon=least * Fraction(99, 100), worker_cells=500)
    told = Fraction(str(refusal.value).partition("epsilon ≥ ")[2].partition(",")[0])
    assert least <= told <= least + Fraction(1, 10_000)
