"""People who left a university keep one title and sector, have at most one record a year, and report by institution."""

import tomllib
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import SfumatoError
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.university import titles
from sfumato_lab.economy.university.draws import FEWEST as FEWEST_EMPLOYEES
from sfumato_lab.economy.university.draws import LEAST_EARNINGS, draw_careers, draw_institutions
from sfumato_lab.economy.university.generate import CHUNK, FEWEST, MOST_EARNINGS, UniversityEconomy, generate_university
from sfumato_lab.economy.university.shape import measure_university
from sfumato_lab.economy.university.titles import MOST_YEARS, SECTOR, TITLE, YEARS

EMPLOYEES, INSTITUTIONS = 80_000, 3  # the largest has two chunks


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> UniversityEconomy:
    return generate_university(tmp_path_factory.mktemp("university"), employees=EMPLOYEES, institutions=INSTITUTIONS)


@pytest.fixture(scope="module")
def query(small: UniversityEconomy):
    connection = duckdb.connect()
    files = f"read_parquet('{small.folder}/u*.parquet', filename = 'institution')"
    connection.execute(f"create view records as select * from {files}")
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


def test_a_person_has_one_record_a_year_and_the_same_title_and_sector_in_all(query, small: UniversityEconomy) -> None:
    assert query("select count(*), count(distinct (institution, person, years)) from records") == [
        (small.records, small.records)
    ]
    ((most,),) = query(
        """select max(kinds) from (select count(distinct (title, sector)) as kinds from records
                                   group by institution, person)"""
    )
    assert most == 1


def test_institutions_share_all_employees_and_the_largest_is_first(query, small: UniversityEconomy) -> None:
    institutions = draw_institutions(INSTITUTIONS, employees=EMPLOYEES, seed=small.seed)
    sizes = [institution.employees for institution in institutions]
    assert sum(sizes) == EMPLOYEES
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > CHUNK
    found = query("select institution, max(person) from records group by all order by all")
    # Those who never had earnings have no record: the last key may be a little below the number of people.
    assert all(size - 100 < last <= size for size, (_, last) in zip(sizes, found, strict=True))


@given(st.integers(1, 99), st.integers(FEWEST, 50_000), st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_no_institution_is_empty_and_names_differ(count: int, employees: int, seed: int) -> None:
    if employees < FEWEST_EMPLOYEES * count:
        count = 1
    institutions = draw_institutions(count, employees=employees, seed=seed)
    assert sum(institution.employees for institution in institutions) == employees
    assert min(institution.employees for institution in institutions) >= FEWEST_EMPLOYEES
    assert len({institution.name for institution in institutions}) == count


def test_more_institutions_than_their_employees_fill_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match="from 1 to 50") as refusal:
        generate_university(tmp_path / "new", employees=FEWEST, institutions=51)
    assert "institutions" in refusal.value.where
    made = generate_university(tmp_path / "new", employees=FEWEST, institutions=50)
    assert len(made.releases) == 50


def test_codes_are_those_of_the_codelists_and_later_years_have_fewer_people(query) -> None:
    for codelist in (TITLE, SECTOR, YEARS):
        found = {code for (code,) in query(f"select distinct {codelist.name} from records")}
        assert found == set(codelist.codes)
    by_year = [n for _, n in query("select years::int, count(*) from records group by 1 order by 1")]
    assert len(by_year) == MOST_YEARS
    assert by_year == sorted(by_year, reverse=True)
    assert by_year[-1] > 0.05 * by_year[0]


def test_sectors_after_every_title_have_the_shares_of_the_table() -> None:
    careers = draw_careers(200_000, pay=0.0, rng=np.random.default_rng(1))
    first = careers.year == 0
    table = np.zeros((len(TITLE), len(SECTOR)))
    np.add.at(table, (careers.title[first], careers.sector[first]), 1)
    np.testing.assert_allclose(table / table.sum(axis=1, keepdims=True), titles.sector_shares(), atol=0.015)
    np.testing.assert_allclose(table.sum(axis=1) / table.sum(), titles.column("employees") / 100, atol=0.006)


def test_graduate_students_enter_industry_as_often_as_was_published(small: UniversityEconomy) -> None:
    assert measure_university(small.folder).industry == pytest.approx(0.39, abs=0.015)


def test_earnings_rise_with_years_persist_and_are_whole_dollars(query) -> None:
    ((least, above),) = query(f"select min(earnings), avg((earnings > {MOST_EARNINGS})::int) from records")
    assert least == LEAST_EARNINGS
    # A few are beyond the bound of the release, so that clipping has something to do.
    assert 0 < above < 0.005
    means = dict(query("select years::int, avg(ln(earnings)) from records group by 1"))
    assert means[10] > means[5] > means[1]
    ((persistence,),) = query(
        """select corr(ln(a.earnings), ln(b.earnings)) from records a join records b
           using (institution, person, title, sector) where a.years = '3' and b.years = '4'"""
    )
    assert persistence > 0.5


def test_people_with_another_pay_earn_that_much_more() -> None:
    low, high = (draw_careers(50_000, pay=pay, rng=np.random.default_rng(3)) for pay in (0.0, 0.2))
    above = (low.earnings > 10 * LEAST_EARNINGS) & (low.earnings < 10**6)
    assert np.median(np.log(high.earnings[above] / low.earnings[above])) == pytest.approx(0.2, abs=1e-3)


def test_the_measured_shape_is_that_of_the_records(query, small: UniversityEconomy) -> None:
    shape = measure_university(small.folder)
    cells = np.array([n for (n,) in query("select count(*) from records group by institution, title, sector, years")])
    assert (shape.institutions, shape.records, shape.cells) == (INSTITUTIONS, small.records, len(cells))
    assert (shape.median, shape.smallest, shape.largest) == (np.median(cells), cells.min(), cells.max())
    assert shape.small == pytest.approx(np.mean(cells < 10))
    (title, first, last) = shape.means[0]
    expected = query(
        f"""select avg(least(earnings, {MOST_EARNINGS})) from records
            where title = '{title}' and years in ('1', '10') group by years order by years"""
    )
    assert [(first,), (last,)] == [pytest.approx(mean) for mean in expected]


def test_fewer_institutions_replace_more_without_leaving_any_behind(tmp_path: Path) -> None:
    generate_university(tmp_path, employees=FEWEST, institutions=4)
    made = generate_university(tmp_path, employees=FEWEST, institutions=2, overwrite=True)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(made.paths)
    assert [path.name for path in made.releases] == ["u01.toml", "u02.toml"]


def test_a_report_costs_the_sum_over_years_of_employment_and_earnings(small: UniversityEconomy) -> None:
    for path in small.releases:
        text = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Fraction)
        employment, earnings = (Fraction(table["protect"]["epsilon"]) for table in text["table"])
        by_year = [(employment / MOST_YEARS, earnings / MOST_YEARS)] * MOST_YEARS
        assert by_year[0] == (Fraction(1, 4), 1)
        assert text["release"]["budget"]["epsilon"] == sum(a + b for a, b in by_year) == Fraction(25, 2)


def test_every_institution_is_charged_on_an_account_of_its_own_in_one_ledger(tmp_path: Path) -> None:
    made = generate_university(tmp_path, employees=2_000, institutions=2)
    releases = [load(path) for path in made.releases]
    assert len({release.account for release in releases}) == 2
    assert {release.ledger for release in releases} == {tmp_path / "ledger.sqlite"}
    for release in releases:
        published = run(release)
        assert published.charged == ("employment", "earnings")
        assert published.balance.remaining_epsilon == 0
        assert published.plan.guarantee.epsilon == Fraction(25, 2)
        table = pq.read_table(published.bundle / "tables" / "earnings.parquet")
        assert len(table) == len(TITLE) * len(SECTOR) * len(YEARS)
    accounts = Ledger.open(tmp_path / "ledger.sqlite").accounts()
    assert set(accounts) == {release.account for release in releases}
