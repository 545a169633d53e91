"""An economy has the published shape of the real one: 10.9 million jobs, about 527,000 establishments."""

import numpy as np
import pytest

from sfumato_lab import economy
from sfumato_lab.economy.jobs.codelists import PLACE_SIZE
from sfumato_lab.economy.jobs.draws import draw_establishments, draw_places
from sfumato_lab.economy.jobs.shape import shape_of

PUBLISHED_JOBS = 10_900_000


def shape(jobs, seed):
    places = draw_places(jobs=jobs, seed=seed)
    return shape_of(draw_establishments(places, jobs=jobs, seed=seed), places)


def assert_published(shape):
    assert shape.jobs == PUBLISHED_JOBS
    assert shape.establishments == pytest.approx(527_000, rel=0.03)
    assert 740 <= shape.thousand_plus <= 815
    assert 0.50 <= shape.overall.dominated <= 0.65
    assert 0.93 < shape.overall.below_thousand < 0.99


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_the_published_figures_hold_at_the_published_size_for_any_seed(seed):
    assert_published(shape(PUBLISHED_JOBS, seed))


@pytest.mark.slow
def test_the_published_figures_hold_in_the_written_files(tmp_path):
    economy.generate(tmp_path, jobs=PUBLISHED_JOBS, seed=1)
    measured = economy.measure(tmp_path)
    assert_published(measured)
    assert measured == shape(PUBLISHED_JOBS, 1)


@pytest.mark.parametrize("jobs", [300_000, 1_000_000, 3_000_000])
def test_the_shape_scales(jobs):
    scaled = shape(jobs, seed=1)
    assert scaled.mean_size == pytest.approx(20.7, rel=0.03)
    assert scaled.thousand_plus / scaled.establishments == pytest.approx(777 / 527_000, rel=0.1)
    assert 0.50 <= scaled.overall.dominated <= 0.70
    assert 0.93 < scaled.overall.below_thousand < 0.99


def test_the_files_have_the_shape_of_the_draw(small):
    measured = economy.measure(small.folder)
    assert measured == shape(small.jobs, small.seed)
    assert (measured.establishments, measured.without_jobs) == (small.establishments, small.without_jobs)


def test_most_combinations_of_place_industry_and_ownership_have_no_establishment(small):
    assert economy.measure(small.folder).combinations < 0.2 * small.places * 20 * 4


def test_most_places_are_small_and_most_people_live_in_large_ones():
    places = draw_places(jobs=PUBLISHED_JOBS, seed=1)
    assert np.mean(places.populations < 10_000) > 0.8
    large = places.populations[places.populations >= 10_000]
    assert large.sum() > 0.75 * places.populations.sum()
    assert set(places.strata) == set(range(len(PLACE_SIZE)))


def test_cells_of_larger_places_are_less_dominated():
    dominated = [part.dominated for part in shape(PUBLISHED_JOBS, 1).by_place_size.values()]
    assert len(dominated) == len(PLACE_SIZE)
    assert dominated == sorted(dominated, reverse=True)


def test_the_rows_for_reading_show_each_published_figure(small):
    rows = economy.measure(small.folder).rows()
    assert ("jobs", "300,007", "10.9 million") in rows
    assert {"about 527,000", "740 to 815", "at least 50%", "over 93%"} <= {published for *_, published in rows}
