"""Cells below the minimum: drawn from a model of the others that fits them, within bounds, and repeatable."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, poisson

from sfumato.noise.keyed import Keyed
from sfumato.noise.randomness import Seeded
from sfumato.statistics.panel.synthesise import PairLayout, fitted, synthesised


def directed(classes: int, others: int = 1) -> PairLayout:
    return PairLayout.of(np.arange(classes * classes * others), classes=classes, others=others, directed=True)


def undirected(classes: int) -> PairLayout:
    first, second = np.triu_indices(classes)
    return PairLayout.of(first * classes + second, classes=classes, others=1, directed=False)


def filled(values: np.ndarray, layout: PairLayout, minimum: int, words: np.ndarray | None = None) -> np.ndarray:
    keep = values >= minimum
    words = Seeded(3).words(len(values)) if words is None else words
    return synthesised(values, keep=keep, below=~keep, layout=layout, minimum=minimum, words=words)


def test_effects_that_made_the_table_are_found_again() -> None:
    rows, columns = np.array([2.0, 30, 50, 10, 7]), np.array([3.0, 20, 40, 8, 9])
    table = np.outer(rows, columns)
    values = table.round().astype(np.int64).ravel()
    keep = values >= 20
    means = fitted(values, keep=keep, below=~keep, layout=directed(5), minimum=20).reshape(5, 5)
    off = ~np.eye(5, dtype=bool)
    large = off & (table > 60)
    assert np.allclose(means[large], table[large], rtol=0.03)
    assert means[0, 4] == pytest.approx(18, rel=0.15)  # below the minimum, and so seen by the model only as that


def test_undirected_pairs_have_one_effect_for_both_ends() -> None:
    effects, layout = np.array([5.0, 8, 10, 2, 20]), undirected(5)
    values = (effects[layout.first] * effects[layout.second]).astype(np.int64)
    everything = np.ones(len(values), dtype=np.bool_)
    means = fitted(values, keep=everything, below=~everything, layout=layout, minimum=1)
    assert means == pytest.approx(values, rel=0.05)  # but for the little that the prior draws effects to one
    names = np.array([3, 0, 4, 1, 2])  # the classes in another order
    one, two = np.sort([names[layout.first], names[layout.second]], axis=0)
    renamed = np.lexsort((two, one))
    again = fitted(values[renamed], keep=everything, below=~everything, layout=layout, minimum=1)
    assert again == pytest.approx(means[renamed], rel=0.01)


def test_pairs_within_a_class_do_not_raise_those_between_two() -> None:
    table = np.full((4, 4), 30)
    np.fill_diagonal(table, 10_000)
    table[0, 1] = 2
    low = fitted(table.ravel(), keep=table.ravel() > 5, below=table.ravel() <= 5, layout=directed(4), minimum=5)
    assert low[1] < 30


def test_a_place_with_little_to_keep_learns_from_the_others() -> None:
    effects = np.array([0.6, 1.5, 2, 3, 4])
    table = np.multiply.outer(np.outer(effects, effects), [0.8, 8, 16, 4])
    values = table.round().astype(np.int64).ravel()
    keep = values >= 3
    means = fitted(values, keep=keep, below=~keep, layout=directed(5, others=4), minimum=3).reshape(table.shape)
    assert not keep.reshape(table.shape)[0, :, 0].any()
    assert means[0, 1:, 0] == pytest.approx(table[0, 1:, 0], rel=0.5)  # alone, it would be expected to have none


def test_what_is_only_in_one_place_is_not_expected_in_all() -> None:
    table = np.full((4, 4, 6), 20)
    table[0, :, 1:] = 1
    keep = (table >= 4).ravel()
    means = fitted(table.ravel(), keep=keep, below=~keep, layout=directed(4, others=6), minimum=4).reshape(4, 4, 6)
    assert means[0, 1:, 0] == pytest.approx(20, rel=0.2)
    assert np.all(means[0, 1:, 1:] < 4)


def test_cells_neither_kept_nor_below_play_no_part() -> None:
    table = np.array([[9, 12, 20], [15, 9, 30], [11, 1, 9]])
    table[0, 0] = 0
    keep = table.ravel() >= 5
    below = table.ravel() == 1
    means = [
        fitted(np.where(keep | below, table.ravel(), missing), keep=keep, below=below, layout=directed(3), minimum=5)
        for missing in (0, 77)
    ]
    assert np.array_equal(*means)


def test_a_class_without_kept_pairs_is_expected_to_have_some() -> None:
    table = np.full((4, 4), 30)
    table[3], table[:, 3] = 1, 2
    keep = (table >= 5).ravel()
    means = fitted(table.ravel(), keep=keep, below=~keep, layout=directed(4), minimum=5).reshape(4, 4)
    assert np.all((means[3, :3] > 0) & (means[3, :3] < 5))
    assert np.all((means[:3, 3] > 0) & (means[:3, 3] < 5))


@pytest.mark.parametrize("layout", [directed(1), directed(3), undirected(3)])
def test_a_table_with_nothing_kept_becomes_zero(layout: PairLayout) -> None:
    assert not filled(np.full(len(layout.first), 2), layout, 3).any()


@given(
    table=st.lists(st.integers(0, 40), min_size=16, max_size=16),
    minimum=st.integers(0, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_kept_values_stay_and_draws_are_below_the_minimum(table: list[int], minimum: int, seed: int) -> None:
    values = np.array(table)
    found = filled(values, directed(4), minimum, Seeded(seed).words(16))
    keep = values >= minimum
    assert np.array_equal(found[keep], values[keep])
    assert np.all((found[~keep] >= 0) & (found[~keep] < minimum))


def test_true_values_below_the_minimum_do_not_matter() -> None:
    table = np.array([[0, 50, 1], [20, 0, 30], [25, 2, 0]]).ravel()
    other = np.where(table < 5, 4, table)
    assert np.array_equal(filled(table, directed(3), 5), filled(other, directed(3), 5))


def test_the_same_words_give_the_same_draws() -> None:
    table = Seeded(1).words(100).astype(np.int64) % 30
    words = Keyed(key=bytes(16)).stream("synthesis").words(100)
    again = Keyed(key=bytes(16)).stream("synthesis").words(100)
    assert np.array_equal(filled(table, directed(10), 12, words), filled(table, directed(10), 12, again))
    assert not np.array_equal(filled(table, directed(10), 12, words), filled(table, directed(10), 12, ~words))


def p_value(drawn: np.ndarray, mean: float, minimum: int) -> float:
    chances = poisson.pmf(np.arange(minimum), mean)
    return float(chisquare(np.bincount(drawn, minlength=minimum), len(drawn) * chances / chances.sum()).pvalue)


@pytest.mark.slow
def test_draws_are_poisson_below_the_minimum_and_another_mean_is_rejected() -> None:
    # Many tables side by side, in all of which the model expects the same of the cell below the minimum.
    table, copies = np.array([[0, 20, 30], [4, 0, 6], [20, 1, 0]]), 20_000
    values = np.repeat(table.reshape(9, 1), copies, axis=1)
    keep = np.repeat(((table >= 4) | np.eye(3, dtype=bool)).reshape(9, 1), copies, axis=1).ravel()
    layout, minimum = directed(3, others=copies), 8
    drawn = synthesised(
        values.ravel(),
        keep=keep,
        below=~keep,
        layout=layout,
        minimum=minimum,
        words=Seeded(11).words(9 * copies),
    ).reshape(9, copies)[7]
    means = fitted(values.ravel(), keep=keep, below=~keep, layout=layout, minimum=minimum).reshape(9, copies)[7]
    assert np.ptp(means) == 0
    assert p_value(drawn, means[0], minimum) > 1e-3
    assert p_value(drawn, means[0] * 1.1, minimum) < 1e-6
    assert p_value(drawn, means[0] / 1.1, minimum) < 1e-6


def test_a_sparse_table_keeps_about_its_total() -> None:
    generator = np.random.default_rng(2)
    effects = generator.lognormal(0, 1.2, 40)
    values = generator.poisson(np.outer(effects, effects)).ravel()
    drawn = filled(values, directed(40), 5)
    below = (values < 5) & (directed(40).first != directed(40).second)
    assert below.sum() > 1_000
    assert drawn[below].sum() == pytest.approx(values[below].sum(), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("differing", [True, False], ids=["pairs that differ", "independent ends"])
@pytest.mark.parametrize("seed", range(3))
def test_a_sparse_table_by_periods_keeps_about_its_total(seed: int, differing: bool) -> None:
    generator, layout = np.random.default_rng(seed), directed(30, others=20)
    pairs = np.outer(*generator.lognormal(0, 1, (2, 30)))
    if differing:
        pairs *= generator.gamma(0.5, 2, (30, 30))
    values = generator.poisson(0.3 * np.multiply.outer(pairs, generator.lognormal(0, 0.3, 20))).ravel()
    below = values < 3
    assert below.mean() > 0.8
    assert filled(values, layout, 3)[below].sum() == pytest.approx(values[below].sum(), rel=0.3)


def test_fits_far_beyond_the_minimum_are_drawn_just_below_it() -> None:
    table = np.full((3, 3), 5_000_000)
    table[0, 1] = 0
    found = filled(table.ravel(), directed(3), 4)
    assert found[1] == 3


def test_words_and_flags_that_do_not_fit_are_refused() -> None:
    values, flags = np.array([1]), np.array([True])
    with pytest.raises(ValueError, match="a word"):
        synthesised(values, keep=~flags, below=flags, layout=directed(1), minimum=2, words=Seeded(1).words(2))
    with pytest.raises(ValueError, match="not both"):
        synthesised(values, keep=flags, below=flags, layout=directed(1), minimum=2, words=Seeded(1).words(1))
