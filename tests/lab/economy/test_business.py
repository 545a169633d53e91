"""A survey of businesses has what keyed perturbation must cope with: dominant firms, zeros, losses, weights, levels."""

import fnmatch
import hashlib
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.errors import DataError, SfumatoError
from sfumato.frame.codelists import Codelist
from sfumato.frame.records import Microdata
from sfumato_lab.economy.business import divisions, occupations
from sfumato_lab.economy.business import draws as accounts
from sfumato_lab.economy.business.design import (
    CELLS,
    MOST_EMPLOYEES,
    MOST_WEIGHT,
    SHAPES,
    SIZE,
    STARTS,
    draw_design,
    draw_employees,
    size_of,
)
from sfumato_lab.economy.business.draws import (
    GROUPS,
    NAMES,
    draw_establishments,
    draw_groups,
    draw_staff,
    promote,
    replicate_weights,
    without_leaders,
)
from sfumato_lab.economy.business.generate import CHUNK, BusinessSurvey, generate_business
from sfumato_lab.economy.business.shape import SHARES, measure_business
from tests.cli.call import call
from tests.lab.economy.memory import peak

SMALL = CHUNK + 10_007  # two chunks, the second one cut short


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> BusinessSurvey:
    return generate_business(tmp_path_factory.mktemp("business"), businesses=SMALL)


@pytest.fixture(scope="module")
def query(small: BusinessSurvey):
    connection = duckdb.connect()
    for path in small.folder.glob("*.parquet"):
        connection.execute(f"create view {path.stem} as select * from read_parquet('{path}')")
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


def digests(made: BusinessSurvey) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made.paths}


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_keys_are_unique_and_all_files_have_the_rows_they_say(query, small: BusinessSurvey) -> None:
    assert query("select count(*), count(distinct business), count(distinct enterprise) from businesses") == [
        (SMALL, SMALL, small.enterprises)
    ]
    assert query("select count(*), count(distinct employee) from employees") == [(small.employees, small.employees)]


def test_an_employee_has_the_enterprise_state_and_industry_of_the_establishment(query, small: BusinessSurvey) -> None:
    linked = "select count(*) from employees join businesses using (business, enterprise, state, industry)"
    assert query(linked) == [(small.employees,)]
    ((sampled, most_of_one, too_many),) = query(
        """select avg(sampled), max(sampled), count(*) filter (sampled > employees)
           from (select business, count(*) as sampled from employees group by business)
           right join businesses using (business)"""
    )
    assert small.employees / SMALL == pytest.approx(5, abs=0.7)
    assert sampled > 5
    assert (most_of_one, too_many) == (30, 0)


def test_employees_stand_for_all_that_the_establishments_have(query) -> None:
    ((by_employees,),) = query("select sum(weight) from employees")
    ((by_businesses,),) = query("select sum(weight * employees) from businesses")
    assert by_employees == pytest.approx(by_businesses, rel=1e-6)


def test_codes_are_those_of_the_codelists(query, small: BusinessSurvey) -> None:
    for name, table, expected in (
        ("state", "businesses", 8),
        ("industry", "businesses", 19),
        ("size", "businesses", 4),
        ("occupation", "employees", 8),
        ("sex", "employees", 2),
    ):
        codes = Codelist.read(small.folder / "codelists" / f"{name}.csv").codes
        assert {code for (code,) in query(f"select distinct {name} from {table}")} == set(codes)
        assert len(codes) == expected


def test_states_are_very_unequal(query) -> None:
    shares = [share / SMALL for (share,) in query("select count(*) from businesses group by state")]
    assert max(shares) > 0.25
    assert min(shares) < 0.015


def test_a_twentieth_has_no_turnover_and_a_quarter_a_loss(query) -> None:
    ((zero, loss, least, most, worst),) = query(
        """select avg((turnover = 0)::int), avg((profit < 0)::int), min(turnover), max(turnover), min(profit)
           from businesses"""
    )
    assert zero == pytest.approx(0.05, abs=0.005)
    assert loss == pytest.approx(0.26, abs=0.03)
    assert least == 0
    assert most <= accounts.MOST_TURNOVER
    assert -accounts.MOST_LOSS <= worst < 0


def test_log_turnover_is_normal_given_industry_and_employees_but_for_a_pareto_tail() -> None:
    establishments = draw_establishments(400_000, draw_design(1), rng())
    turnover = accounts.draw_turnover(establishments, rng(2))
    expected = np.log(1_000 * divisions.column("turnover")[establishments.industry] * (establishments.employees + 0.7))
    z = (np.log(turnover[turnover > 0]) - expected[turnover > 0]) / accounts.TURNOVER_SPREAD
    assert np.median(z) == pytest.approx(0, abs=0.02)
    assert np.diff(np.quantile(z, [0.159, 0.841]))[0] / 2 == pytest.approx(1, abs=0.02)
    # Beyond 4: the normal tail, and for one in a hundred a normal plus an exponential draw of this rate.
    rate, normal = accounts.WINDFALL_TAIL * accounts.TURNOVER_SPREAD, NormalDist()
    tail = normal.cdf(-4) + accounts.WINDFALL * np.exp(rate**2 / 2 - 4 * rate) * normal.cdf(4 - rate)
    assert np.mean(z > 4) == pytest.approx(tail, rel=0.4)
    assert tail > 5 * normal.cdf(-4)


def test_weights_are_at_least_one_and_have_four_digits_and_the_large_are_taken_for_sure(query) -> None:
    ((least, most, mean, odd, large),) = query(
        """select min(weight), max(weight), avg(weight), count(*) filter (weight <> round(weight, 4)),
                  max(weight) filter (size = '200+')
           from businesses"""
    )
    assert (least, large, odd) == (1, 1, 0)
    assert 400 < most <= MOST_WEIGHT
    assert 50 < mean < 120


def test_a_tenth_asked_to_be_protected_and_more_of_the_large(query) -> None:
    ((share, large),) = query("select avg(consent::int), avg(consent::int) filter (size = '200+') from businesses")
    assert share == pytest.approx(0.10, abs=0.01)
    assert large == pytest.approx(0.25, abs=0.03)


def test_the_size_class_is_that_of_the_employees(query) -> None:
    bounds = query("select size, min(employees), max(employees) from businesses group by size order by 2")
    assert bounds[:3] == [("0-4", 0, 4), ("5-19", 5, 19), ("20-199", 20, 199)]
    assert bounds[3][:2] == ("200+", 200)
    assert 2_000 < bounds[3][2] <= MOST_EMPLOYEES


def test_draws_of_employees_stay_in_the_class_of_their_latent_size() -> None:
    latent = np.repeat([-5.0, 0.5, 1.5, 5.0], 10_000)
    employees = draw_employees(latent, rng())
    assert np.array_equal(size_of(employees), np.repeat(np.arange(len(SIZE)), 10_000))
    assert set(employees[:10_000].tolist()) == set(range(STARTS[1]))


def test_most_enterprises_have_one_establishment_and_a_few_have_hundreds(query, small: BusinessSurvey) -> None:
    owned = np.array([n for (n,) in query("select count(*) from businesses group by enterprise")])
    assert np.mean(owned > 1) == pytest.approx(0.05, abs=0.01)
    assert owned[owned > 1].sum() / SMALL == pytest.approx(0.2, abs=0.05)
    assert 3 <= np.count_nonzero(owned >= 100) <= 60
    assert owned.max() <= 600
    ((several_states,),) = query(
        "select count(*) from (from businesses select enterprise group by 1 having count(distinct state) > 1)"
    )
    assert several_states > 1_000
    assert small.enterprises == len(owned)


def test_replicates_leave_out_one_group_each_but_none_that_was_taken_for_sure(small: BusinessSurvey) -> None:
    table = pq.read_table(small.folder / "businesses.parquet", columns=["weight", *NAMES])
    weight = table["weight"].to_numpy()
    replicates = np.column_stack([table[name].to_numpy() for name in NAMES])
    sure = weight == 1
    assert np.array_equal(replicates[sure], np.ones((np.count_nonzero(sure), GROUPS)))
    left_out = replicates == 0
    assert np.array_equal(np.count_nonzero(left_out, axis=1), np.where(sure, 0, 1))
    kept = np.broadcast_to(weight[:, None] * (60 / 59), replicates.shape)
    assert np.array_equal(replicates[~sure][~left_out[~sure]], kept[~sure][~left_out[~sure]])
    np.testing.assert_allclose(replicates.mean(axis=1), weight, rtol=1e-12)
    # Groups are dealt out within strata, so that each replicate stands for the same population.
    np.testing.assert_allclose(replicates.sum(axis=0), weight.sum(), rtol=1e-3)


def test_jackknife_finds_the_variance_of_a_total() -> None:
    count = 6_000
    y = rng(3).exponential(size=count)
    weight = np.full(count, 10.0)
    variances = []
    for seed in range(20):
        group = draw_groups(np.zeros(count, dtype=np.int64), rng(seed))
        totals = [replicate_weights(weight, rng(seed).permutation(group), g) @ y for g in range(GROUPS)]
        variances.append((GROUPS - 1) / GROUPS * np.sum((np.array(totals) - weight @ y) ** 2))
    assert np.mean(variances) == pytest.approx(count * 100 * y.var(), rel=0.1)


def test_every_shape_of_dominance_occurs(small: BusinessSurvey) -> None:
    shape = measure_business(small.folder)
    assert shape.businesses == SMALL
    assert shape.by_establishment.cells == CELLS
    assert set(shape.by_establishment.shapes) == set(SHAPES)
    assert min(shape.by_establishment.shapes.values()) >= 1
    assert 0.15 < shape.by_establishment.made_up < 0.45
    assert sum(shape.by_establishment.by_first) == pytest.approx(1)
    assert sum(shape.by_establishment.by_first[:2]) > 0.08
    assert sum(shape.by_enterprise.by_first[:3]) >= sum(shape.by_establishment.by_first[:3])


def test_the_measured_dominance_is_that_of_the_weighted_turnover(query, small: BusinessSurvey) -> None:
    cells: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for state, industry, turnover, weight in query("select state, industry, turnover, weight from businesses"):
        cells.setdefault((state, industry), []).append((turnover, weight * turnover))
    firsts = [max(of_cell)[1] / sum(part for _, part in of_cell) for of_cell in cells.values()]
    over = [sum(first > share for first in firsts) / len(firsts) for share in SHARES]
    shape = measure_business(small.folder)
    np.testing.assert_allclose(np.cumsum(shape.by_establishment.by_first)[:-1], over)
    assert shape.largest == max(turnover for of_cell in cells.values() for turnover, _ in of_cell)


def test_leaders_have_their_share_of_what_the_whole_survey_turns_over() -> None:
    design = replace(draw_design(1), concentration=np.full(CELLS, 0.5))
    establishments = draw_establishments(50_000, design, rng(4))
    turnover = accounts.draw_turnover(establishments, rng(5))
    led = promote(establishments, turnover, design, scale=3.0, rng=rng(6))
    leads = led.rank >= 0
    for cell in np.unique(establishments.cell[leads]):
        here = establishments.cell == cell
        of_leaders = led.turnover[here & leads]
        shape = np.array(SHAPES[design.shape[cell]])
        assert len(of_leaders) == len(shape)
        np.testing.assert_allclose(np.sort(of_leaders / of_leaders.sum())[::-1], shape / 100, atol=0.08)
        others = (establishments.weight * turnover)[here & ~leads].sum()
        assert of_leaders.sum() == pytest.approx(3 * others, rel=0.15)
    assert np.array_equal(led.turnover[~leads], turnover[~leads])
    assert np.all(led.establishments.weight[leads] == 1)
    assert np.all(led.establishments.employees[leads] >= 200)


def test_some_cells_consist_of_the_employees_of_one_establishment(query, small: BusinessSurvey) -> None:
    cells = query(
        """select count(distinct business), count(*), max(b.employees)
           from employees join businesses b using (business, state, industry)
           group by state, industry, occupation"""
    )
    of_one = [(employees, of_business) for businesses, employees, of_business in cells if businesses == 1]
    shape = measure_business(small.folder)
    assert (shape.staff_cells, shape.of_one) == (len(cells), len(of_one))
    assert shape.several_of_one == sum(employees > 2 for employees, _ in of_one)
    # As in the paper: about a dozen sampled of a large establishment's hundreds.
    assert sum(employees > 5 and of_business >= 200 for employees, of_business in of_one) >= 10
    assert sum(2 <= businesses <= 4 and employees > 5 for businesses, employees, _ in cells) >= 10


def test_wages_have_the_published_means(query) -> None:
    ((mean, least),) = query("select sum(weight * wage) / sum(weight), min(wage) from employees")
    assert mean == pytest.approx(1_123, rel=0.05)
    assert least > 0
    by_occupation = query(
        "select sum(weight * wage) / sum(weight) from employees group by occupation order by occupation"
    )
    for (ours,), published in zip(by_occupation, occupations.pay(), strict=True):
        assert ours == pytest.approx(published, rel=0.2)


def test_beyond_the_limit_leaders_are_asked_for_employees_and_others_stand_for_who_is_not() -> None:
    design = draw_design(1)
    establishments = draw_establishments(30_000, design, rng(7))
    led = promote(establishments, accounts.draw_turnover(establishments, rng(8)), design, scale=1.0, rng=rng(9))
    staff = draw_staff(led, design, limit=40_000, rng=rng(10))
    assert 39_950 < len(staff) <= 40_000
    assert set(np.flatnonzero(led.rank >= 0)) <= set(staff.establishment)
    true = float(led.establishments.weight @ led.establishments.employees)
    assert staff.weight.sum() == pytest.approx(true, rel=0.05)


def test_without_leaders_nobody_has_an_occupation_that_only_works_for_leaders() -> None:
    design = draw_design(2)
    establishments = draw_establishments(50_000, design, rng(11))
    led = without_leaders(establishments, np.ones(50_000, dtype=np.int64))
    staff = draw_staff(led, design, limit=10**9, rng=rng(12))
    exclusive = design.exclusive[establishments.cell[staff.establishment]]
    assert np.count_nonzero(exclusive >= 0) > 10_000
    assert not np.any(staff.occupation == exclusive)


def test_the_same_seed_gives_the_same_files_and_another_one_other_businesses(tmp_path: Path) -> None:
    first, again, other = (
        digests(generate_business(tmp_path / name, businesses=3_000, seed=seed))
        for name, seed in (("first", 7), ("again", 7), ("other", 8))
    )
    assert first == again
    assert {name for name in first if first[name] != other[name]} == {"businesses.parquet", "employees.parquet"}


def test_leaving_out_replicate_weights_changes_nothing_else(tmp_path: Path) -> None:
    with_them = generate_business(tmp_path / "with", businesses=2_000)
    without = generate_business(tmp_path / "without", businesses=2_000, replicates=False)
    full, bare = (pq.read_table(made.folder / "businesses.parquet") for made in (with_them, without))
    assert full.drop_columns(list(NAMES)).equals(bare)
    assert digests(with_them)["employees.parquet"] == digests(without)["employees.parquet"]
    assert (with_them.replicates, without.replicates) == (True, False)


@pytest.mark.parametrize("replicates", [True, False])
def test_the_release_file_names_only_columns_that_exist(tmp_path: Path, replicates: bool) -> None:
    made = generate_business(tmp_path, businesses=1_000, replicates=replicates)
    release = tomllib.loads(made.release.read_text(encoding="utf-8"))
    data = Microdata.model_validate({**release["data"], "folder": tmp_path})
    records = data.records
    columns = set(pq.read_schema(tmp_path / records.path).names)
    assert {*data.units, records.weight, *data.attributes, *data.measures} <= columns
    assert data.units == ("business", "enterprise")
    replicated = records.replicates.columns if records.replicates else ()
    assert [fnmatch.filter(columns, pattern) != [] for pattern in replicated] == [True] * replicates
    for name in data.attributes:
        assert len(data.declared_codes(name).codes) >= 4
    for table in release["table"]:
        assert set(table["by"]) <= data.attributes.keys()


def test_the_smallest_survey_has_every_kind_of_row(tmp_path: Path) -> None:
    made = generate_business(tmp_path, businesses=1_000, seed=3)
    shape = measure_business(made.folder)
    assert (shape.businesses, shape.employees) == (1_000, made.employees)
    assert shape.zero > 0
    assert shape.negative > 0
    assert shape.several > 10
    assert shape.of_one > 0


def test_progress_rises_to_all_businesses(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    generate_business(
        tmp_path, businesses=SMALL, replicates=False, progress=lambda done, total: told.append((done, total))
    )
    assert told == [(CHUNK, SMALL), (SMALL, SMALL)]


def test_a_survey_is_not_overwritten_unasked_and_a_failure_keeps_it(tmp_path: Path) -> None:
    made = generate_business(tmp_path, businesses=1_000)
    before = digests(made)
    with pytest.raises(SfumatoError, match="a folder without an economy"):
        generate_business(tmp_path, businesses=1_000, seed=2)
    with pytest.raises(KeyboardInterrupt):
        generate_business(tmp_path, businesses=1_000, seed=2, overwrite=True, progress=interrupt)
    assert digests(made) == before
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(made.paths)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"businesses": 999}, "1,000 to 20,000,000"), ({"businesses": 10**8}, "20"), ({"seed": -1}, "seed")],
)
def test_a_request_out_of_range_is_refused_before_anything_is_written(
    tmp_path: Path, wrong: dict[str, int], words: str
) -> None:
    with pytest.raises(SfumatoError, match=words):
        generate_business(tmp_path / "new", **wrong)
    assert not (tmp_path / "new").exists()


def test_a_folder_without_a_survey_has_no_shape(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"businesses\.parquet"):
        measure_business(tmp_path)


@pytest.mark.slow
def test_the_command_makes_a_survey_and_shows_its_shape(tmp_path: Path) -> None:
    words = ("economy", "business", "survey", "--businesses", "1000", "--no-replicates", "--shape", "--json")
    made = json.loads(call(*words, cwd=tmp_path).stdout)
    assert (made["businesses"], made["replicates"], made["seed"]) == (1_000, False, 1)
    assert {"quantity": "establishments", "here": "1,000"} in made["shape"]
    assert "1,000 businesses" in call("economy", "business", "another", "--businesses", "1000", cwd=tmp_path).stdout


MADE = """
from pathlib import Path
from sfumato_lab.economy.business.generate import generate_business
generate_business(Path(sys.argv[1]), businesses=int(sys.argv[2]), replicates=False)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_businesses(tmp_path: Path) -> None:
    few, many = 300_000, 3_000_000
    peaks = [peak(MADE, tmp_path / str(count), count)[1] for count in (few, many)]
    one_column = (many - few) * 8
    assert peaks[1] - peaks[0] < one_column
