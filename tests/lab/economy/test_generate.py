"""The same request gives the same economy, complete or not at all."""

import hashlib

import pyarrow.parquet as pq
import pytest

from sfumato.errors import SfumatoError
from sfumato_lab import economy
from sfumato_lab.economy.jobs.draws import CHUNK

SEVERAL_CHUNKS = 2 * CHUNK + 777


def digests(made):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made.paths}


def interrupt(*_):
    raise KeyboardInterrupt


def test_the_same_seed_gives_the_same_files(tmp_path):
    first = economy.generate(tmp_path / "first", jobs=50_000, seed=7)
    again = economy.generate(tmp_path / "again", jobs=50_000, seed=7)
    assert digests(first) == digests(again)


def test_another_seed_gives_other_people_places_and_establishments(tmp_path):
    one, other = (digests(economy.generate(tmp_path / str(seed), jobs=50_000, seed=seed)) for seed in (1, 2))
    differing = {name for name in one if one[name] != other[name]}
    assert differing == {"jobs.parquet", "workers.parquet", "workplaces.parquet", "place.csv"}


def test_the_number_of_threads_does_not_matter(tmp_path):
    alone = economy.generate(tmp_path / "alone", jobs=SEVERAL_CHUNKS, threads=1)
    together = economy.generate(tmp_path / "together", jobs=SEVERAL_CHUNKS, threads=3)
    assert digests(alone) == digests(together)


@pytest.mark.parametrize("establishments", [100, 2_000, 5_000])
def test_an_economy_has_as_many_establishments_as_are_asked_for(tmp_path, establishments):
    made = economy.generate(tmp_path, jobs=10_000, establishments=establishments)
    assert made.establishments == establishments
    found = economy.measure(tmp_path)
    assert (found.jobs, found.establishments) == (10_000, establishments)


@pytest.mark.parametrize("establishments", [99, 5_001])
def test_establishments_that_cannot_share_the_jobs_are_refused(tmp_path, establishments):
    with pytest.raises(SfumatoError, match="a whole number from 100 to 5,000"):
        economy.generate(tmp_path / "none", jobs=10_000, establishments=establishments)
    assert not (tmp_path / "none").exists()


def test_nothing_is_lost_where_chunks_meet(tmp_path):
    made = economy.generate(tmp_path, jobs=SEVERAL_CHUNKS)
    workers = pq.read_table(tmp_path / "workers.parquet", columns=["worker"])["worker"].to_pylist()
    assert workers == list(range(1, made.workers + 1))
    assert economy.measure(tmp_path).jobs == SEVERAL_CHUNKS


def test_progress_rises_to_all_jobs(tmp_path):
    told = []
    economy.generate(tmp_path, jobs=SEVERAL_CHUNKS, progress=lambda done, total: told.append((done, total)))
    assert told == [(CHUNK, SEVERAL_CHUNKS), (2 * CHUNK, SEVERAL_CHUNKS), (SEVERAL_CHUNKS, SEVERAL_CHUNKS)]


def test_an_economy_is_not_overwritten_unasked(tmp_path):
    made = economy.generate(tmp_path, jobs=10_000, seed=1)
    before = digests(made)
    with pytest.raises(SfumatoError, match="a folder without an economy"):
        economy.generate(tmp_path, jobs=10_000, seed=2)
    assert digests(made) == before
    assert digests(economy.generate(tmp_path, jobs=10_000, seed=2, overwrite=True)) != before


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    made = economy.generate(tmp_path, jobs=10_000)
    written = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {*made.paths, tmp_path / "notes.txt"}


def test_a_failure_leaves_no_file_behind(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        economy.generate(tmp_path, jobs=10_000, progress=interrupt)
    assert not list(tmp_path.iterdir())


def test_a_failure_keeps_the_economy_that_was_there(tmp_path):
    made = economy.generate(tmp_path, jobs=10_000, seed=1)
    before = digests(made)
    with pytest.raises(KeyboardInterrupt):
        economy.generate(tmp_path, jobs=10_000, seed=2, overwrite=True, progress=interrupt)
    assert digests(made) == before


@pytest.mark.parametrize("request_", [{"jobs": 9_999}, {"jobs": 150_000_001}, {"seed": -1}, {"threads": 0}])
def test_a_request_out_of_range_is_refused_before_anything_is_written(tmp_path, request_):
    with pytest.raises(SfumatoError, match="a whole number from") as refusal:
        economy.generate(tmp_path / "new", **request_)
    assert next(iter(request_)) in refusal.value.where
    assert not (tmp_path / "new").exists()


def test_the_smallest_economy_has_the_fewest_places(tmp_path):
    assert economy.generate(tmp_path, jobs=10_000).places == 50


def test_measuring_a_folder_without_an_economy_says_so(tmp_path):
    with pytest.raises(SfumatoError, match="make one first: `sfumato economy jobs`"):
        economy.measure(tmp_path)
