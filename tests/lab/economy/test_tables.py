"""The tables fit together as a register of persons and establishments would."""

import csv
import tomllib

import pyarrow.parquet as pq
import pytest

from sfumato_lab.economy.files import FIXED_CODELISTS

WORKER_ATTRIBUTES = ("age", "sex", "race", "ethnicity", "education")
WORKPLACE_ATTRIBUTES = ("place", "industry", "ownership", "place_size")


def codelist(economy, name):
    with (economy.folder / "codelists" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_jobs_are_exactly_as_many_as_asked_for(small, query):
    assert query("select count(*) from jobs") == [(small.jobs,)]


def test_the_summary_counts_what_the_tables_hold(small, query):
    assert query("select count(*) from workers") == [(small.workers,)]
    assert query("select count(distinct workplace) from jobs") == [(small.establishments,)]
    assert query("select count(*) from workplaces") == [(small.establishments + small.without_jobs,)]
    assert len(codelist(small, "place")) == small.places


@pytest.mark.parametrize(("table", "key"), [("workers", "worker"), ("workplaces", "workplace")])
def test_keys_are_unique(query, table, key):
    assert query(f"select count(*) = count(distinct {key}) from {table}") == [(True,)]


def test_every_job_has_its_worker_and_its_workplace(query):
    assert query("select count(*) from jobs anti join workers using (worker)") == [(0,)]
    assert query("select count(*) from jobs anti join workplaces using (workplace)") == [(0,)]


def test_every_worker_has_a_job(query):
    assert query("select count(*) from workers anti join jobs using (worker)") == [(0,)]


def test_nobody_has_two_jobs_in_one_establishment(query):
    assert query("select count(*) = count(distinct (worker, workplace)) from jobs") == [(True,)]


def test_four_jobs_in_a_hundred_are_second_jobs(small, query):
    held = dict(query("select n, count(*) from (select count(*) n from jobs group by worker) group by n"))
    assert held.keys() == {1, 2}
    assert held[2] == small.jobs // 25


def test_some_establishments_have_no_job(small):
    assert 0.02 < small.without_jobs / small.establishments < 0.05


def test_jobs_are_sorted_by_worker(small):
    workers = pq.read_table(small.folder / "jobs.parquet", columns=["worker"])["worker"].to_numpy()
    assert (workers[1:] >= workers[:-1]).all()


def test_earnings_are_whole_dollars_above_zero(query):
    assert query("select typeof(any_value(earnings)), min(earnings) > 0 from jobs") == [("BIGINT", True)]


@pytest.mark.parametrize("name", WORKER_ATTRIBUTES)
def test_worker_codes_are_exactly_those_of_the_codelist(small, query, name):
    assert {code for (code,) in query(f"select distinct {name} from workers")} == {
        row["code"] for row in codelist(small, name)
    }


@pytest.mark.parametrize("name", WORKPLACE_ATTRIBUTES)
def test_workplace_codes_are_within_the_codelist(small, query, name):
    assert {code for (code,) in query(f"select distinct {name} from workplaces")} <= {
        row["code"] for row in codelist(small, name)
    }


@pytest.mark.parametrize("fixed", FIXED_CODELISTS, ids=lambda fixed: fixed.name)
def test_codelists_have_unique_codes_and_labels(fixed):
    labels = [label for _, label in fixed.entries]
    assert len(set(fixed.codes)) == len(set(labels)) == len(fixed)


def test_place_size_follows_from_the_place(small, query):
    stated = {row["code"]: row["place_size"] for row in codelist(small, "place")}
    for place, place_size in query("select distinct place, place_size from workplaces"):
        assert stated[place] == place_size


def test_place_size_is_the_stratum_of_the_population(small):
    bounds = {"0-100": (0, 100), "100-10k": (100, 10**4), "10k-100k": (10**4, 10**5), "100k+": (10**5, 10**9)}
    for row in codelist(small, "place"):
        least, most = bounds[row["place_size"]]
        assert least <= int(row["population"]) < most


def test_some_places_have_no_inhabitants(small):
    assert any(int(row["population"]) == 0 for row in codelist(small, "place"))


def test_nobody_under_19_has_been_to_college(query):
    sql = "select distinct education from workers where age = '14-18' order by 1"
    assert query(sql) == [("high-school",), ("no-diploma",)]


def test_the_release_file_describes_every_column(small):
    release = tomllib.loads(small.release.read_text(encoding="utf-8"))
    attributes = release["data"]["attributes"]
    assert set(attributes) == {*WORKPLACE_ATTRIBUTES, *WORKER_ATTRIBUTES}
    assert set(release["data"]["public"]) == set(WORKPLACE_ATTRIBUTES)
    assert set(release["data"]["measures"]) == {"earnings"}
    for attribute in attributes.values():
        assert (small.folder / attribute["codelist"]).is_file()
    for table in ("jobs", "workplaces", "workers"):
        assert (small.folder / release["data"][table]["path"]).is_file()


def test_the_tables_of_the_release_spend_exactly_its_budget(small):
    release = tomllib.loads(small.release.read_text(encoding="utf-8"))
    spent = sum(table["protect"]["epsilon"] for table in release["table"])
    assert spent == release["release"]["budget"]["epsilon"]
