"""Graduates and veterans have log-normal earnings with a real-looking spread, in cells of very different sizes."""

import tomllib
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.graduates.draws import (
    AFTER,
    GROWTH,
    PERSISTENCE,
    PRESENT,
    WIDENING,
    Population,
    draw_people,
    years_after,
)
from sfumato_lab.economy.graduates.generate import CHUNK, FEWEST, NAMES, GraduatesEconomy, generate_graduates
from sfumato_lab.economy.graduates.schooling import FIRST_TEN_YEARS_LATER, MOST_INSTITUTIONS, draw_graduates
from sfumato_lab.economy.graduates.service import draw_veterans
from sfumato_lab.economy.graduates.shape import LARGE, WITHHELD, measure_graduates

PEOPLE = 200_000  # four chunks, the last one cut short


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> GraduatesEconomy:
    return generate_graduates(tmp_path_factory.mktemp("graduates"), people=PEOPLE)


@pytest.fixture(scope="module")
def query(small: GraduatesEconomy):
    connection = duckdb.connect()
    connection.execute(f"create view records as select * from read_parquet('{small.folder / 'earnings.parquet'}')")
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


def test_a_graduate_has_one_record_a_year_and_one_cell(query, small: GraduatesEconomy) -> None:
    assert PEOPLE % CHUNK
    assert query("select count(*), count(distinct (person, years)) from records") == [(small.records, small.records)]
    cell = ", ".join(NAMES[False])
    ((most, last),) = query(
        f"""select max(cells), max(person) from (select person, count(distinct ({cell})) as cells
                                                 from records group by person)"""
    )
    assert most == 1
    assert PEOPLE - 100 < last <= PEOPLE


def test_the_last_cohort_has_not_come_to_ten_years_after(query) -> None:
    found = query("select cohort, list(distinct years::int order by years::int) from records group by 1 order by 1")
    complete = [years == list(AFTER) for _, years in found]
    assert complete == [number < FIRST_TEN_YEARS_LATER for number in range(len(found))]
    assert found[-1][1] == list(AFTER[:-1])


def test_half_of_the_cells_are_small_and_many_are_large(small: GraduatesEconomy) -> None:
    shape = measure_graduates(small.folder)
    assert WITHHELD < shape.median < LARGE
    assert 0.25 < shape.withheld < 0.5
    assert shape.lost < 0.1
    assert shape.large > 0.2


def test_earnings_spread_as_real_ones_do_and_rise_with_the_years(small: GraduatesEconomy) -> None:
    shape = measure_graduates(small.folder)
    assert 0.55 < shape.spread < 0.75
    assert 2.0 < shape.ratio < 2.6
    medians = [quartiles[1] for _, quartiles in shape.by_year]
    assert [year for year, _ in shape.by_year] == list(AFTER)
    assert medians == sorted(medians)
    assert 35_000 < medians[0] < 50_000


def one_cell(*, level: float, spread: float) -> Population:
    return Population(
        codelists=(),
        years=years_after("graduation"),
        shares=np.ones(1),
        level=np.array([level]),
        spread=np.array([spread]),
        growth=np.ones(1),
        observed=np.ones((1, len(AFTER)), dtype=np.bool_),
    )


@pytest.mark.parametrize("spread", [0.5, 0.6])
def test_earnings_of_a_cell_are_log_normal_with_its_level_and_spread(spread: float) -> None:
    people = 60_000
    earners = draw_people(people, one_cell(level=11.0, spread=spread), np.random.default_rng(2))
    for number in range(len(AFTER)):
        log_earnings = np.log(earners.earnings[earners.year == number])
        mean, deviation = 11.0 + GROWTH[number], spread * WIDENING[number]
        assert stats.kstest(log_earnings, "norm", args=(mean, deviation)).pvalue > 1e-3
        # The same test rejects a spread that is 5% off.
        assert stats.kstest(log_earnings, "norm", args=(mean, 1.05 * deviation)).pvalue < 1e-3
        assert len(log_earnings) / people == pytest.approx(PRESENT[number], abs=0.01)


def test_earnings_of_a_person_persist() -> None:
    earners = draw_people(60_000, one_cell(level=11.0, spread=0.6), np.random.default_rng(3))
    first, last = (np.full(60_000, np.nan) for _ in range(2))
    for number, found in ((0, first), (2, last)):
        found[earners.person[earners.year == number]] = np.log(earners.earnings[earners.year == number])
    both = ~np.isnan(first) & ~np.isnan(last)
    assert np.corrcoef(first[both], last[both])[0, 1] == pytest.approx(PERSISTENCE, abs=0.01)


@pytest.mark.parametrize("people", [FEWEST, 10**5, 2 * 10**7])
def test_cells_are_all_combinations_and_their_shares_add_up(people: int) -> None:
    population = draw_graduates(people, seed=4)
    cells = int(np.prod([len(codelist) for codelist in population.codelists]))
    assert 3 <= len(population.codelists[0]) <= MOST_INSTITUTIONS
    for column in (population.shares, population.level, population.spread, population.growth, population.observed):
        assert len(column) == cells
    assert population.shares.sum() == pytest.approx(1)
    assert population.shares.min() > 0


def test_veterans_are_by_branch_and_occupation_in_every_year(tmp_path: Path) -> None:
    made = generate_graduates(tmp_path, people=20_000, veterans=True)
    assert made.cells == len(draw_veterans(made.seed).shares)
    table = pq.read_table(tmp_path / "earnings.parquet")
    assert table.column_names == ["person", *NAMES[True], "years", "earnings"]
    shape = measure_graduates(tmp_path)
    assert shape.veterans
    assert [year for year, _ in shape.by_year] == list(AFTER)
    assert 0.6 < shape.spread < 0.8


def test_veterans_replace_graduates_without_leaving_their_codelists_behind(tmp_path: Path) -> None:
    generate_graduates(tmp_path, people=FEWEST)
    made = generate_graduates(tmp_path, people=FEWEST, veterans=True, overwrite=True)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(made.paths)


def test_the_measured_shape_is_that_of_the_records(query, small: GraduatesEconomy) -> None:
    shape = measure_graduates(small.folder)
    cells = np.array([n for (n,) in query(f"select count(*) from records group by years, {', '.join(NAMES[False])}")])
    assert (shape.cells, shape.median, shape.largest) == (len(cells), np.median(cells), cells.max())
    assert shape.withheld == pytest.approx(np.mean(cells < WITHHELD))
    assert shape.lost == pytest.approx(cells[cells < WITHHELD].sum() / cells.sum())


@pytest.mark.parametrize("veterans", [False, True])
def test_the_release_spends_one_and_a_half_on_each_of_three_years(tmp_path: Path, veterans: bool) -> None:
    made = generate_graduates(tmp_path, people=FEWEST, veterans=veterans)
    text = tomllib.loads(made.release.read_text(encoding="utf-8"))
    (table,) = text["table"]
    assert table["protect"]["epsilon"] == text["release"]["budget"]["epsilon"] == 1.5 * len(AFTER)
    assert table["quantiles"]["at"] == [25, 50, 75]
    assert table["by"] == [*NAMES[veterans], "years"]
    assert table["protect"]["minimum"] == WITHHELD


@pytest.mark.parametrize("veterans", [False, True])
def test_the_release_file_publishes_percentiles_within_its_budget(tmp_path: Path, veterans: bool) -> None:
    made = generate_graduates(tmp_path, people=5_000, veterans=veterans)
    published = run(load(made.release))
    assert published.charged == ("percentiles",)
    assert published.balance.remaining_epsilon == 0
    guarantee = published.plan.guarantee
    assert isinstance(guarantee, EmployerEmployee)
    assert guarantee.condition == ""
    table = pq.read_table(published.bundle / "tables" / "percentiles.parquet")
    assert len(table) == made.cells * len(AFTER) * 3
    assert set(table["at"].to_pylist()) == {"p25", "p50", "p75"}
