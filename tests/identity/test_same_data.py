"""The same data are charged once, whatever their files look like and under whatever name; changed data are named."""

import json
import shutil
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.bundle.manifest import read_manifest
from sfumato.checking import check
from sfumato.cli import app
from sfumato.errors import BudgetError
from sfumato.live import open_charged
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release, load
from sfumato.running import run
from tests.conftest import write
from tests.identity.earlier import run_by_version_0_1
from tests.tiny import TINY

RELEASE = """
[release]
title = "Jobs"
population = "{population}"
period = "2025"
budget = {{ alpha = 0.1, epsilon = 9, definition = "weak" }}
bundle = "{population}"

[data]
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "workplaces.parquet", key = "workplace" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = ["place", "industry"]

[data.attributes]
place = {{ codes = ["A", "B"] }}
industry = {{ codes = ["11", "62"] }}
{attributes}

[[table]]
name = "counted"
count = "jobs"
by = {by}
protect = {{ method = "log-laplace", epsilon = 2 }}
"""
Changes = tuple[tuple[str, str], ...]
SEX = 'sex = { codes = ["F", "M"] }'
AGE = 'age = { codes = ["1", "2", "3"] }'


def release(
    folder: Path,
    by: tuple[str, ...] = ("place", "sex"),
    *,
    population: str = "jobs",
    attributes: str = SEX,
    changes: Changes = (),
) -> Release:
    """A release of one table, all of them with the same ledger."""
    file = folder / f"{population}.toml"
    text = RELEASE.format(population=population, by=json.dumps(by), attributes=attributes)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    return load(file)


def save_again(folder: Path) -> None:
    """The same data in other files: rows the other way round, another compression, a note, a column nobody uses."""
    for name in ("jobs", "workers", "workplaces"):
        table = pq.read_table(folder / f"{name}.parquet")
        table = table.take(list(range(len(table)))[::-1]).append_column("unused", pa.array(range(len(table))))
        table = table.replace_schema_metadata({"saved": "again"})
        pq.write_table(table, folder / f"{name}.parquet", compression="gzip", row_group_size=3)


def change_sex(folder: Path) -> None:
    workers = pq.read_table(folder / "workers.parquet")
    at = workers.column_names.index("sex")
    pq.write_table(workers.set_column(at, "sex", pa.array(["M"] * len(workers))), folder / "workers.parquet")


def tables(bundle: Path) -> dict[str, str]:
    """The digests of the published tables."""
    return {name: file["sha256"] for name, file in read_manifest(bundle)["files"].items() if name.startswith("tables")}


def charges(of: Release) -> list[str]:
    return [entry.question for entry in Ledger.open(of.ledger).history() if entry.kind == "charge"]


def test_data_that_were_saved_again_get_the_same_answer_at_no_charge(tiny: Path) -> None:
    first = run(release(tiny))
    published = tables(first.bundle)
    save_again(tiny)
    assert check(release(tiny)).paid == {"counted"}
    again = run(release(tiny))
    assert (first.charged, again.charged) == (("counted",), ())
    assert tables(again.bundle) == published
    assert len(charges(release(tiny))) == 1


def test_data_that_were_saved_again_are_not_a_new_population(tiny: Path) -> None:
    run(release(tiny))
    save_again(tiny)
    with pytest.raises(BudgetError, match="the account these data were charged to: 'jobs' in '2025'"):
        run(release(tiny, population="employment"))
    refused = check(release(tiny, population="employment")).refusal
    assert refused is not None


WITHOUT_WORKER = (
    ('worker = "worker", workplace', "workplace"),
    ('workers = { path = "workers.parquet", key = "worker" }\n', ""),
)
OTHER_KEYS = {
    "no worker": WITHOUT_WORKER,
    "another worker": (('worker = "worker", workplace', 'worker = "earnings", workplace'), WITHOUT_WORKER[1]),
    "another workplace": (
        ('workplace = "workplace" }', 'workplace = "firm" }'),
        ('key = "workplace" }', 'key = "number" }'),
    ),
}


@pytest.mark.parametrize("saved", ["as they were", "again"])
@pytest.mark.parametrize("keys", OTHER_KEYS)
def test_other_keys_of_the_same_data_open_no_new_budget(tiny: Path, keys: str, saved: str) -> None:
    jobs = TINY["jobs"] | {"firm": [1, 1, 1, 2, 2, 3, 3, 4]}
    write(tiny / "jobs.parquet", jobs)
    write(
        tiny / "workplaces.parquet",
        TINY["workplaces"] | {"number": list(range(1, len(TINY["workplaces"]["place"]) + 1))},
    )
    by = ("place", "industry")
    for first, second in (((), OTHER_KEYS[keys]), (OTHER_KEYS[keys], ())):
        folder = tiny / ("a" if first else "b")
        folder.mkdir()
        for name in TINY:
            shutil.copy(tiny / f"{name}.parquet", folder)
        run(release(folder, by, attributes="", changes=first))
        if saved == "again":
            save_again(folder)
        with pytest.raises(BudgetError, match="the account these data were charged to: 'jobs' in '2025'"):
            run(release(folder, by, population="employment", attributes="", changes=second))


def test_other_jobs_are_other_data_whatever_their_keys(tiny: Path) -> None:
    run(release(tiny, ("place", "industry"), attributes=""))
    write(tiny / "jobs.parquet", TINY["jobs"] | {"workplace": [100, 100, 101, 101, 101, 102, 102, 102]})
    other = release(tiny, ("place",), population="employment", attributes="", changes=WITHOUT_WORKER)
    assert run(other).charged == ("counted",)


YEARS = """
[release]
title = "Jobs"
population = "{population}"
period = "{period}"
budget = {{ alpha = 0.1, epsilon = 9 }}
ledger = "ledger.sqlite"
bundle = "{population}{period}"

[data]
jobs = {{ path = "register.csv", workplace = "id", employees = {employees} }}
public = ["place"]

[data.attributes]
sex = {{ codes = ["F", "M"] }}

[[table]]
name = "counted"
count = "jobs"
by = ["place"]
protect = {{ epsilon = 2 }}
"""


def of_year(folder: Path, employees: str, period: str, population: str = "jobs") -> Release:
    """A register with a column of women, one of men, and one of both, for every year."""
    heading = "id;place;n2025;f2025;m2025;n2026;f2026;m2026;copy"
    (folder / "register.csv").write_text(f"{heading}\n1;A;5;3;2;6;3;3;5\n2;A;7;3;4;7;3;4;7\n3;B;9;8;1;2;2;0;9\n")
    text = YEARS.format(population=population, period=period, employees=employees)
    (folder / "register.toml").write_text(text if "F" in employees else text.replace(SEX, ""))
    return load(folder / "register.toml")


BY_SEX = '{{ F = "f{0}", M = "m{0}" }}'


@pytest.mark.parametrize("employees", ['"n{0}"', BY_SEX])
def test_a_register_with_the_workers_of_each_year_in_columns_of_their_own_has_an_account_for_each(
    tmp_path: Path, employees: str
) -> None:
    for year in ("2025", "2026"):
        assert check(of_year(tmp_path, employees.format(year), year)).refusal is None
        assert run(of_year(tmp_path, employees.format(year), year)).charged == ("counted",)
        assert run(of_year(tmp_path, employees.format(year), year)).charged == ()


@pytest.mark.parametrize(
    ("employees", "period", "population"),
    [
        ('"n2025"', "2026", "jobs"),  # the very same workers
        ('"copy"', "2026", "jobs"),
        ('"n2026"', "2025", "employment"),  # establishments under another name
        (BY_SEX.format("2025"), "2026", "jobs"),  # the same workers, counted otherwise
    ],
)
def test_workers_of_a_register_that_were_charged_open_no_other_account(
    tmp_path: Path, employees: str, period: str, population: str
) -> None:
    run(of_year(tmp_path, '"n2025"', "2025"))
    with pytest.raises(BudgetError, match="the account these data were charged to: 'jobs' in '2025'"):
        run(of_year(tmp_path, employees, period, population))


def test_a_release_that_looks_at_other_columns_is_of_the_same_population(tiny: Path) -> None:
    run(release(tiny))
    save_again(tiny)
    with pytest.raises(BudgetError, match="the account these data were charged to"):
        run(release(tiny, ("industry", "age"), population="employment", attributes=AGE))


def test_an_attribute_more_in_the_description_makes_no_other_question(tiny: Path) -> None:
    run(release(tiny))
    assert run(release(tiny, attributes=f"{SEX}\n{AGE}")).charged == ()


def test_data_that_changed_where_a_question_does_not_look_are_the_same_to_it(tiny: Path) -> None:
    run(release(tiny, ("place", "industry")))
    change_sex(tiny)
    assert run(release(tiny, ("place", "industry"))).charged == ()


def test_a_worker_more_without_a_job_changes_no_count_of_jobs_by_place(tiny: Path) -> None:
    run(release(tiny, ("place", "industry")))
    workers = pq.read_table(tiny / "workers.parquet")
    one_more = pa.table({"worker": [99], "sex": ["F"], "age": [1]})
    pq.write_table(pa.concat_tables([workers, one_more]), tiny / "workers.parquet")
    assert run(release(tiny, ("place", "industry"))).charged == ()


def test_what_changed_and_will_cost_is_named_with_its_date_before_the_charge(tiny: Path) -> None:
    run(release(tiny))
    assert check(release(tiny)).changes == ()
    assert check(release(tiny, ("industry",))).changes == ()  # a new question costs, but nothing changed
    change_sex(tiny)
    day = Ledger.open(release(tiny).ledger).history()[0].time[:10]
    (words,) = check(release(tiny)).changes
    assert words.startswith(f"workers: other values in sex, since {day}")
    told: list[tuple[str, int]] = []
    published = run(release(tiny), notice=lambda said: told.append((said, len(charges(release(tiny))))))
    assert told == [(words, 1)]
    assert (published.changes, published.charged) == ((words,), ("counted",))
    assert check(release(tiny)).changes == ()


def test_the_commands_say_what_changed_to_people_and_machines(tiny: Path) -> None:
    run(release(tiny))
    change_sex(tiny)
    file = str(tiny / "jobs.toml")
    told = CliRunner().invoke(app, ["check", file]).output
    assert "The data changed, and tables are charged anew. Workers: other values in sex, since" in " ".join(
        told.split()
    )
    found = json.loads(CliRunner().invoke(app, ["check", file, "--json"]).stdout)["data_changed"]
    result = CliRunner().invoke(app, ["run", file, "--json"])
    assert json.loads(result.stdout)["data_changed"] == found
    assert "other values in sex" in result.stderr


def test_an_answer_of_version_0_1_stays_the_answer_also_after_its_files_were_saved_again(tiny: Path) -> None:
    names = run_by_version_0_1(release(tiny))
    first = run(release(tiny))  # the files are those that were charged
    published = tables(first.bundle)
    assert (first.charged, charges(release(tiny))) == ((), [names["counted"]])
    save_again(tiny)
    assert run(release(tiny)).charged == ()
    assert tables(first.bundle) == published
    with pytest.raises(BudgetError, match="the account these data were charged to"):
        run(release(tiny, population="employment"))
    assert charges(release(tiny)) == [names["counted"]]


def test_what_changed_since_files_of_version_0_1_were_seen_is_named(tiny: Path) -> None:
    run_by_version_0_1(release(tiny))
    assert check(release(tiny)).changes == ()
    change_sex(tiny)
    (words,) = check(release(tiny)).changes
    assert words.startswith("workers: other values in sex, since ")


def test_a_check_is_enough_to_see_the_files_of_version_0_1(tiny: Path) -> None:
    run_by_version_0_1(release(tiny))
    assert check(release(tiny)).paid == {"counted"}
    save_again(tiny)
    assert check(release(tiny)).paid == {"counted"}


def test_files_of_version_0_1_that_were_never_seen_since_are_not_known_and_it_is_said(tiny: Path) -> None:
    run_by_version_0_1(release(tiny))
    save_again(tiny)
    found = check(release(tiny))
    assert found.paid == frozenset()
    (words,) = found.changes
    assert "by version 0.1, which knew the bytes of files" in words


def test_a_question_of_version_0_1_in_another_order_is_never_answered_a_second_time(tiny: Path) -> None:
    names = run_by_version_0_1(release(tiny, ("sex", "industry", "place")))
    published = run(release(tiny, ("industry", "place", "sex")))
    assert (published.charged, charges(release(tiny))) == ((), [names["counted"]])


@pytest.mark.parametrize("by", [("place", "sex"), ("place", "industry", "sex", "age")])
def test_a_question_of_version_0_1_is_no_other_one_that_has_the_same_guarantee(tiny: Path, by: tuple[str, ...]) -> None:
    run_by_version_0_1(release(tiny, ("sex", "industry", "place")))
    assert run(release(tiny, by, attributes=f"{SEX}\n{AGE}")).charged == ("counted",)


def test_a_new_ledger_does_not_pay_for_fingerprints_of_bytes(tiny: Path) -> None:
    run(release(tiny))
    run(release(tiny))
    memory = json.loads((release(tiny).store / "memory.json").read_text(encoding="utf-8"))
    assert memory["files"] == {}


def test_jobs_that_nothing_names_are_known_by_the_values_that_share_a_row(tmp_path: Path) -> None:
    """Also where a live question puts columns together that no table of the release does."""
    text = RELEASE.format(population="jobs", by='["place", "sex"]', attributes=f"{SEX}\n{AGE}")
    before, after = text.index("jobs = {"), text.index("public =")
    text = f'{text[:before]}jobs = {{ path = "jobs.parquet", workplace = "workplace" }}\n{text[after:]}'
    (tmp_path / "joined.toml").write_text(text, encoding="utf-8")
    columns: dict[str, list[object]] = {
        "workplace": [1, 1, 2],
        "place": ["A", "A", "B"],
        "industry": ["11", "11", "62"],
    }
    columns |= {"sex": ["F", "M", "F"], "age": ["1", "2", "3"]}
    write(tmp_path / "jobs.parquet", columns)
    questions = []
    for ages in (["1", "2", "3"], ["2", "1", "3"], ["1", "2", "3"]):
        write(tmp_path / "jobs.parquet", columns | {"age": ages})
        assert run(load(tmp_path / "joined.toml")).charged == (() if questions else ("counted",))
        with open_charged(load(tmp_path / "joined.toml"), epsilon=Fraction(4)) as live:
            statistic = live.plan(by=("sex", "age"), epsilon=Fraction(2), method="log-laplace")
            questions.append(live.ready.identity.charge(statistic).question)
    assert questions[0] == questions[2] != questions[1]
