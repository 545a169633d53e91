"""Histories of a federal workforce: spells that follow each other, and earnings in every quarter of them."""

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.keys import new_key
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.federal.draws import Careers, draw_careers, draw_spells
from sfumato_lab.economy.federal.generate import FederalWorkforce, generate_federal
from sfumato_lab.economy.federal.mobility import draw_employers, mobility_between
from tests.lab.economy.memory import peak

QUARTERS = 16
PERSONS = 20_000


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> FederalWorkforce:
    return generate_federal(tmp_path_factory.mktemp("panel"), persons=PERSONS, quarters=QUARTERS, first="2018-Q3")


@pytest.fixture(scope="module")
def query(panel: FederalWorkforce):
    connection = duckdb.connect()
    for name in ("jobs", "histories"):
        connection.execute(f"create view {name} as from read_parquet('{panel.folder / name}.parquet')")
    connection.execute(
        """create view spells as
           select worker, employer, min(t) as first, max(t) as last, count(*) as held
           from (select *, quarter[1:4]::int * 4 + quarter[7:7]::int - 1 - (2018 * 4 + 2) as t from histories)
           group by all"""
    )
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


def test_histories_stand_in_order_without_repetition_and_with_positive_earnings(query, panel) -> None:
    rows = query("select worker, employer, quarter, earnings from histories")
    keys = [row[:3] for row in rows]
    assert keys == sorted(set(keys))
    assert len(rows) == panel.job_quarters
    assert min(earnings for *_, earnings in rows) > 0
    assert pq.read_schema(panel.folder / "histories.parquet").field("earnings").type == "int64"


def test_every_quarter_from_the_first_on_has_about_as_many_jobs(query) -> None:
    counts = dict(query("select quarter, count(*) from histories group by quarter order by quarter"))
    years = [f"{year}-Q{quarter}" for year in range(2018, 2023) for quarter in range(1, 5)]
    assert list(counts) == years[2:18]
    assert max(counts.values()) < 1.15 * min(counts.values())


def test_every_job_has_a_history_and_every_history_a_job(query) -> None:
    assert query("select count(*) from jobs anti join histories using (worker, employer)") == [(0,)]
    assert query("select count(*) from histories anti join jobs using (worker, employer)") == [(0,)]


def test_who_worked_where_does_not_depend_on_the_quarters(tmp_path, panel) -> None:
    plain = generate_federal(tmp_path, persons=PERSONS)
    for name in ("jobs.parquet", "workers.parquet", "employers.parquet"):
        assert pq.read_table(plain.folder / name).equals(pq.read_table(panel.folder / name))


def test_most_moves_are_flows_and_some_have_a_gap_or_two_employers_at_once(query) -> None:
    ((flows, gaps, together),) = query(
        """select count(*) filter (x.last = y.first and y.first > x.first),
                  count(*) filter (x.last < y.first),
                  count(*) filter (x.last > y.first)
           from spells x join spells y on x.worker = y.worker and x.first < y.first"""
    )
    moves = flows + gaps + together
    assert flows / moves > 0.4
    assert 0.05 < gaps / moves < 0.45
    assert 0.03 < together / moves < 0.3


def test_some_are_recalled_after_one_to_three_quarters(query) -> None:
    absences = query("select last - first + 1 - held as absent, count(*) from spells group by all order by all")
    assert [absent for absent, _ in absences] == [0, 1, 2, 3]
    assert 0.002 < sum(times for absent, times in absences if absent) / sum(times for _, times in absences) < 0.1


def test_earnings_rise_with_education_and_are_lower_in_part_quarters(query, panel) -> None:
    workers = f"read_parquet('{panel.folder}/workers.parquet')"
    paid = dict(query(f"select education, median(earnings) from histories join {workers} using (worker) group by all"))
    assert paid["no-diploma"] < paid["high-school"] < paid["some-college"] < paid["college"]
    assert 12_000 < paid["some-college"] < 30_000


def career(*employers: int) -> Careers:
    counts = np.array(employers)
    person = np.repeat(np.arange(len(counts)), counts)
    return Careers(person=person, employer=np.arange(len(person)), employers=counts)


@pytest.mark.parametrize("quarters", [1, 2, 3, 60])
def test_spells_stay_within_the_quarters_whatever_their_number(quarters: int) -> None:
    spells = draw_spells(career(*[1, 2, 5] * 2_000), quarters=quarters, rng=np.random.default_rng(1))
    assert spells.first.min() >= 0
    assert spells.last.max() == quarters - 1
    assert np.all(spells.first <= spells.last)
    assert np.all(spells.lengths >= 1)
    interrupted = spells.absent > 0
    assert np.all(spells.before[interrupted] >= 1)
    assert np.all(spells.before[interrupted] < spells.lengths[interrupted])


def test_who_had_more_employers_was_there_longer() -> None:
    counts = np.array([1] * 5_000 + [4] * 5_000)
    careers = career(*counts)
    spells = draw_spells(careers, quarters=40, rng=np.random.default_rng(2))
    there = np.maximum.reduceat(spells.last, np.cumsum(counts) - counts) - np.minimum.reduceat(
        spells.first, np.cumsum(counts) - counts
    )
    assert there[counts == 4].mean() > 1.3 * there[counts == 1].mean()


def test_52_quarters_give_as_many_rows_a_person_as_published() -> None:
    employers = draw_employers(persons=60_000, seed=1)
    first = np.repeat(np.arange(len(employers)), employers.size)
    careers = draw_careers(first, mobility_between(employers), np.random.default_rng(1))
    rows = draw_spells(careers, quarters=52, rng=np.random.default_rng(1)).lengths.sum()
    assert rows / 60_000 == pytest.approx(49_131_943 / 2_172_359, rel=0.02)


def test_the_release_file_describes_the_panel(panel) -> None:
    release = load(panel.release)
    assert release.frame.span is not None
    assert (release.frame.span.first, release.frame.span.last) == ("2018-Q3", "2022-Q2")
    assert release.about.period == "2018-2022"
    assert [table.statistic for table in release.tables] == ["graph", "graph", "indicators", "flow"]


def test_the_release_file_runs_once_there_is_a_key(tmp_path) -> None:
    made = generate_federal(tmp_path, persons=5_000, quarters=6)
    new_key(tmp_path / "sfumato.key")
    published = run(load(made.release))
    assert {table.table.name for table in published.plan.tables} == {
        *("links_between_states", "workers_between_states", "indicators", "flows_between_states")
    }


MADE = """
from pathlib import Path
from sfumato_lab.economy.federal.generate import generate_federal
made = generate_federal(Path(sys.argv[1]), quarters=52)
print(made.job_quarters)
"""


@pytest.mark.slow
def test_49_million_job_quarters_are_written_in_less_than_two_gigabytes(tmp_path) -> None:
    said, most = peak(MADE, tmp_path)
    rows = int(said[0])
    assert rows == pytest.approx(49_131_943, rel=0.02)
    assert most < 2 * 10**9
    parts = pq.ParquetFile(tmp_path / "histories.parquet").metadata
    assert parts.num_rows == rows
