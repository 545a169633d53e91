"""Every slot is filled once, and a person's two jobs are far apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato_lab.economy.jobs.draws import Layout, second, worker_keys


def layout(sizes, start=0):
    return Layout(ends=np.cumsum(sizes), start=start)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=200).filter(sum), st.integers(0, 10**6))
def test_each_establishment_gets_exactly_its_size(sizes, start):
    laid_out = layout(sizes, start)
    filled = np.bincount(laid_out.establishments(np.arange(laid_out.jobs)), minlength=len(sizes))
    assert filled.tolist() == sizes


@pytest.mark.parametrize("jobs", [10_000, 999_983, 10_900_000, 150_000_000])
def test_consecutive_rows_are_more_than_a_third_of_all_jobs_apart(jobs):
    step = layout([jobs]).stride
    assert min(step, jobs - step) > jobs / 3


def test_the_last_row_of_150_million_does_not_overflow():
    jobs = 150_000_000
    whole = layout([jobs // 2, jobs // 2], start=jobs - 1)
    slot = (whole.stride * (jobs - 1) + whole.start) % jobs
    assert whole.establishments(np.array([jobs - 1])).tolist() == [int(slot >= jobs // 2)]


@pytest.mark.parametrize("jobs", [1, 24, 25, 26, 49, 50, 1_000])
def test_workers_are_numbered_without_a_gap(jobs):
    rows = np.arange(jobs)
    keys = worker_keys(rows)
    assert np.unique(keys).tolist() == list(range(1, layout([jobs]).workers + 1))
    assert keys[second(rows)].tolist() == keys[np.flatnonzero(second(rows)) - 1].tolist()
