"""A federal workforce has the published shape: few employers, few moves, many pairs of states."""

import hashlib
import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.errors import DataError, SfumatoError
from sfumato.release import load
from sfumato_lab.economy.federal.agencies import AGENCIES
from sfumato_lab.economy.federal.codes import STATES, distances
from sfumato_lab.economy.federal.draws import draw_careers
from sfumato_lab.economy.federal.generate import CHUNK, PERSONS, FederalWorkforce, generate_federal
from sfumato_lab.economy.federal.mobility import REFERENCE_EMPLOYERS, draw_employers, how_many, mobility_between
from sfumato_lab.economy.federal.shape import CELLS, PERCENTILES, PUBLISHED_PERCENTILES, measure_federal
from tests.cli.call import call

SMALL = CHUNK + 10_007  # two chunks, the second one cut short


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> FederalWorkforce:
    return generate_federal(tmp_path_factory.mktemp("federal"), persons=SMALL)


@pytest.fixture(scope="module")
def query(small: FederalWorkforce):
    connection = duckdb.connect()
    for path in small.folder.glob("*.parquet"):
        connection.execute(f"create view {path.stem} as select * from read_parquet('{path}')")
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


def digests(made: FederalWorkforce) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made.paths}


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_85_percent_have_one_employer_and_jobs_exceed_persons_as_published(small: FederalWorkforce) -> None:
    shape = measure_federal(small.folder)
    assert shape.persons == SMALL
    assert shape.one_employer == pytest.approx(0.85, abs=0.01)
    assert shape.jobs / shape.persons == pytest.approx(2_634_324 / 2_172_359, abs=0.01)
    assert shape.states == len(STATES) == 51
    assert shape.edges > 0
    assert (shape.jobs, shape.employers) == (small.jobs, small.employers)


def test_the_measured_edges_are_the_pairs_that_share_a_worker(small: FederalWorkforce) -> None:
    jobs = pq.read_table(small.folder / "jobs.parquet").to_pydict()
    employers_of: dict[int, list[str]] = {}
    for worker, employer in zip(jobs["worker"], jobs["employer"], strict=True):
        employers_of.setdefault(worker, []).append(employer)
    pairs = [(a, b) for held in employers_of.values() for a in held for b in held if a < b]
    shape = measure_federal(small.folder)
    assert shape.edges == len(set(pairs))
    assert shape.shared == len(pairs)


def test_an_identifier_has_twelve_digits_state_first_and_the_office_at_the_eighth_place(query) -> None:
    numbers = {state.code: state.number for state in STATES}
    rows = query("select employer, state, agency from employers")
    assert len({employer for employer, *_ in rows}) == len(rows)
    for employer, state, _ in rows:
        assert len(employer) == 12
        assert employer.isdigit()
        assert employer[:2] == numbers[state]
    # Two offices of an agency in one state differ nowhere else than in the number of the office.
    assert query("select count(distinct (state, agency, employer[8:9])) from employers") == [(len(rows),)]


def test_the_eighth_and_ninth_characters_vary_evenly_enough_to_choose_between_employers() -> None:
    numbers = draw_employers(persons=PERSONS, seed=1).number
    shares = np.bincount(numbers // 10, minlength=10) / len(numbers)
    assert shares.min() > 0.05
    assert shares.max() < 0.15
    assert len(np.unique(numbers)) > 95


def test_every_job_has_its_worker_and_employer_and_stands_once_in_order(query, small: FederalWorkforce) -> None:
    assert query("select count(distinct (worker, employer)) from jobs") == [(small.jobs,)]
    assert query("select count(*) from jobs anti join workers using (worker)") == [(0,)]
    assert query("select count(*) from workers anti join jobs using (worker)") == [(0,)]
    assert query("select count(*) from jobs anti join employers using (employer)") == [(0,)]
    assert query("select count(*) from employers anti join jobs using (employer)") == [(0,)]
    rows = query("select worker, employer from jobs")
    assert rows == sorted(rows)


def test_codes_are_those_of_the_codelists_and_industry_follows_from_the_agency(query, small: FederalWorkforce) -> None:
    frame = load(small.release).frame
    for name in frame.attributes:
        table = "employers" if frame.is_public(name) else "workers"
        used = {code for (code,) in query(f"select distinct {name} from {table}")}
        assert used <= set(frame.declared_codes(name).codes)
    industries = query("select distinct agency, industry from employers")
    assert set(industries) <= {(agency.code, agency.industry) for agency in AGENCIES}
    assert len({agency for agency, _ in industries}) > 20


def test_most_who_move_stay_in_the_state_or_in_the_office(query) -> None:
    ((near, office, all_pairs),) = query(
        """select count(*) filter (a.state = b.state),
                  count(*) filter (a.state <> b.state and a.agency = b.agency and a.employer[8:9] = b.employer[8:9]),
                  count(*)
           from jobs x join jobs y on x.worker = y.worker and x.employer < y.employer
           join employers a on x.employer = a.employer join employers b on y.employer = b.employer"""
    )
    assert near / all_pairs > 0.4
    assert office / all_pairs > 0.1
    assert (near + office) / all_pairs > 0.5


def test_sizes_are_heavy_tailed_and_nobody_is_without_workers() -> None:
    employers = draw_employers(persons=PERSONS, seed=1)
    assert len(employers) == REFERENCE_EMPLOYERS
    assert employers.size.min() >= 1
    assert employers.size.sum() == PERSONS
    largest = np.sort(employers.size)[::-1]
    assert largest[: len(largest) // 100].sum() > 0.3 * PERSONS
    assert np.median(employers.size) < 100


@pytest.mark.parametrize("persons", [5_000, 30_000, 300_000])
def test_a_smaller_workforce_has_fewer_employers_in_every_state(persons: int) -> None:
    employers = draw_employers(persons=persons, seed=3)
    assert len(employers) == how_many(persons) >= 100
    assert len(np.unique(employers.state)) == len(STATES)
    careers = draw_careers(np.repeat(np.arange(len(employers)), employers.size), mobility_between(employers), rng(3))
    assert np.mean(careers.employers == 1) == pytest.approx(0.85, abs=0.02)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_nobody_has_the_same_employer_twice() -> None:
    employers = draw_employers(persons=20_000, seed=2)
    careers = draw_careers(np.repeat(np.arange(len(employers)), employers.size), mobility_between(employers), rng(2))
    pairs = careers.person * len(employers) + careers.employer
    assert len(np.unique(pairs)) == len(careers)
    assert np.array_equal(np.bincount(careers.person), careers.employers)
    assert careers.employers.max() >= 4


def test_distances_are_those_of_the_map() -> None:
    codes = [state.code for state in STATES]
    between = {pair: distances()[codes.index(pair[:2]), codes.index(pair[2:])] for pair in ("DCMD", "CANY", "AKFL")}
    assert between["DCMD"] < 60
    assert between["CANY"] == pytest.approx(3_900, rel=0.1)
    assert between["AKFL"] == pytest.approx(6_200, rel=0.1)


def test_the_same_seed_gives_the_same_files_and_another_one_other_people(tmp_path: Path) -> None:
    first, again, other = (
        digests(generate_federal(tmp_path / name, persons=6_000, quarters=5, seed=seed))
        for name, seed in (("first", 7), ("again", 7), ("other", 8))
    )
    assert first == again
    assert {name for name in first if first[name] != other[name]} == {
        *("employers.parquet", "workers.parquet", "jobs.parquet", "histories.parquet")
    }


def test_progress_rises_to_all_persons(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    generate_federal(tmp_path, persons=SMALL, progress=lambda done, total: told.append((done, total)))
    assert told == [(CHUNK, SMALL), (SMALL, SMALL)]


def test_a_workforce_is_not_overwritten_unasked_and_a_failure_keeps_it(tmp_path: Path) -> None:
    made = generate_federal(tmp_path, persons=5_000, quarters=3)
    before = digests(made)
    with pytest.raises(SfumatoError, match="a folder without an economy"):
        generate_federal(tmp_path, persons=5_000, seed=2)
    with pytest.raises(KeyboardInterrupt):
        generate_federal(tmp_path, persons=5_000, seed=2, overwrite=True, progress=interrupt)
    assert digests(made) == before


def test_replacing_histories_by_a_workforce_without_any_leaves_none_behind(tmp_path: Path) -> None:
    generate_federal(tmp_path, persons=5_000, quarters=3)
    made = generate_federal(tmp_path, persons=5_000, overwrite=True)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(made.paths)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"persons": 4_999}, "5,000 to 5,000,000"),
        ({"quarters": 61}, "0 to 60"),
        ({"seed": -1}, "seed"),
        ({"first": "2010"}, "2010-Q1"),
        ({"first": "soon"}, "quarter"),
    ],
)
def test_a_request_out_of_range_is_refused_before_anything_is_written(
    tmp_path: Path, wrong: dict[str, int | str], words: str
) -> None:
    with pytest.raises(SfumatoError, match=words):
        generate_federal(tmp_path / "new", **wrong)
    assert not (tmp_path / "new").exists()


def test_a_folder_without_a_workforce_has_no_shape(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"employers\.parquet"):
        measure_federal(tmp_path)


def test_the_command_prints_the_shape_beside_the_published_one(tmp_path: Path) -> None:
    done = call("economy", "federal", tmp_path / "new", "--persons", "5000", "--quarters", "2", "--shape", "--json")
    data = json.loads(done.stdout)
    assert (data["persons"], data["employers"], data["quarters"]) == (5_000, 100, 2)
    assert {"quantity": "employers", "here": "100", "published": "7,341"} in data["shape"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_published_shape_holds_at_the_published_size(tmp_path: Path, seed: int) -> None:
    generate_federal(tmp_path, seed=seed)
    shape = measure_federal(tmp_path)
    assert (shape.persons, shape.employers, shape.states) == (2_170_000, 7_341, 51)
    assert shape.jobs == pytest.approx(2_630_000, rel=0.01)
    assert shape.one_employer == pytest.approx(0.85, abs=0.005)
    assert shape.edges == pytest.approx(123_930, rel=0.05)
    assert shape.multiplicity == pytest.approx(2_465_461, rel=0.02)
    assert CELLS - 5 <= shape.cells <= CELLS == 1_326
    for percent, ours, published in zip(PERCENTILES, shape.percentiles, PUBLISHED_PERCENTILES, strict=True):
        assert ours == pytest.approx(published, rel=0.25), f"percentile {percent}"
    assert shape.largest_cell == pytest.approx(15_035, rel=0.25)
    assert shape.largest_pair == ("DC", "DC")
