"""Sizes and names keep their promises whatever the seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato_lab.economy.frame import Purpose, stratified_normal, stream
from sfumato_lab.economy.industries import ownership_shares
from sfumato_lab.economy.jobs.codelists import MOST, place_names
from sfumato_lab.economy.jobs.draws import LARGEST_SHARE, MEAN, draw_sizes, how_many


@given(st.integers(10_000, 400_000), st.integers(0, 2**64 - 1))
def test_sizes_add_up_exactly_and_none_is_empty_or_beyond_the_cap(jobs, seed):
    sizes = draw_sizes(round(jobs / MEAN), jobs=jobs, rng=stream(seed, Purpose.SIZES))
    assert sizes.sum() == jobs
    assert sizes.min() >= 1
    assert sizes.max() <= LARGEST_SHARE * jobs + 1


def test_stratified_draws_have_the_quantiles_of_the_normal_distribution():
    draws = stratified_normal(100_000, np.random.default_rng(1))
    for quantile, expected in [(0.001, -3.0902), (0.025, -1.96), (0.5, 0.0), (0.84134, 1.0), (0.999, 3.0902)]:
        assert np.quantile(draws, quantile) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("seed", [1, 2])
def test_there_are_distinct_names_for_the_places_of_the_largest_economy(seed):
    count = how_many(150_000_000)
    assert 25_000 < count <= MOST
    assert len(set(place_names(count, seed=seed))) == count
    assert len(set(place_names(MOST, seed=seed))) == MOST


def test_plain_names_are_used_first():
    assert not any(" " in name for name in place_names(3_500, seed=1))


def test_streams_differ_by_seed_purpose_and_chunk():
    streams = [
        stream(1, Purpose.SIZES),
        stream(2, Purpose.SIZES),
        stream(1, Purpose.NAMES),
        stream(1, Purpose.SIZES, 1),
    ]
    assert len({rng.random() for rng in streams}) == len(streams)


def test_ownership_shares_of_each_sector_sum_to_one():
    shares = ownership_shares()
    assert shares.min() >= 0
    assert shares.sum(axis=1) == pytest.approx(np.ones(20))
