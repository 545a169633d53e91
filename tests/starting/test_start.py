"""`sfumato start`: a first release file for files that nobody has described, which runs and tells nothing."""

import fcntl
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.durable import remove_abandoned
from sfumato.errors import SfumatoError
from sfumato.starting.look import look
from sfumato.starting.start import Question, Started
from tests.cli.call import SFUMATO, call
from tests.starting import files

NO_QUESTIONS: dict[str, Any] = {}
KINDS: dict[str, tuple[Callable[[Path], Any], str, dict[str, Any]]] = {
    "register": (files.register, "register", {"public": ("NACE", "Region")}),
    "register of which nothing is public": (files.register, "register", NO_QUESTIONS),
    "persons with weights": (files.persons, "people", {"largest_weight": 100}),
    "businesses": (files.businesses, "businesses", {"public": ("nace", "region")}),
    "businesses of which nothing is public": (files.businesses, "businesses", NO_QUESTIONS),
    "linked tables": (files.linked, "jobs", {"public": ("region", "industry")}),
    "linked tables of which nothing is public": (files.linked, "jobs", NO_QUESTIONS),
    "panel": (files.panel, "panel", {"public": ("agency",)}),
    "graduates": (files.graduates, "people", {"periods": ("1", "5")}),
    "register of women and men, and its codelist": (files.by_sex, "register", {"public": ("WZ 2008", "Kreis")}),
    "months as dates": (files.monthly, "businesses", {"public": ("Branche",)}),
    "a file of SPSS": (files.spss, "people", {"largest_weight": 100}),
    "joined jobs": (files.joined, "jobs", {"public": ("nace",)}),
    "joined jobs of which nothing is public": (files.joined, "jobs", NO_QUESTIONS),
}


def started(folder: Path, made: Path | list[Path], **wishes: Any) -> Started:
    return sfumato.start(made if isinstance(made, list) else [made], folder / "release.toml", **wishes)


@pytest.mark.slow
@pytest.mark.parametrize("case", KINDS)
def test_what_is_written_passes_its_check_and_runs_as_it_is(tmp_path: Path, case: str) -> None:
    make, kind, wishes = KINDS[case]
    found = started(tmp_path, make(tmp_path), **wishes)
    assert found.proposal.kind == kind
    release = sfumato.load(found.release)
    findings = sfumato.check(release)
    assert findings.refusal is None
    published = sfumato.run(release)
    bundle = sfumato.open_bundle(published.bundle)
    assert [len(bundle.rows(one.name)) > 0 for one in bundle.contents] == [True] * len(findings.plan.tables)
    assert max(map(len, found.release.read_text().splitlines())) < 200


@pytest.mark.parametrize("kind", ["people", "businesses", "register"])
def test_several_tables_are_not_taken_for_what_there_is_one_table_of(tmp_path: Path, kind: str) -> None:
    with pytest.raises(SfumatoError, match="give its file alone"):
        started(tmp_path, files.linked(tmp_path), kind=kind)
    assert not (tmp_path / "release.toml").exists()


def declared(release: Path) -> dict[str, Any]:
    """What the file says, without its comments."""
    return tomllib.loads(release.read_text(encoding="utf-8"))


def doubtful_csv(folder: Path) -> Path:
    lines = [f'{n},{"AB"[n % 2]},"{n + 1},250"' for n in range(60)]
    (folder / "firms.csv").write_text("\n".join(["firm,place,turnover", *lines]))
    return folder / "firms.csv"


def doubtful_workbook(folder: Path) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    for row in [("firm", "place", "turnover"), *((n, "AB"[n % 2], f"{n + 1}.250") for n in range(60))]:
        book.worksheets[0].append(row)
    book.save(folder / "firms.xlsx")
    return folder / "firms.xlsx"


@pytest.mark.parametrize(
    ("make", "decimal", "meant"),
    [
        (doubtful_csv, ".", 1250),
        (doubtful_csv, ",", 1.25),
        (doubtful_workbook, ",", 1250),
        (doubtful_workbook, ".", 1.25),
    ],
)
def test_marks_that_may_group_thousands_or_come_before_decimals_are_asked_for_and_written_down(
    tmp_path: Path, make: Callable[[Path], Path], decimal: str, meant: float
) -> None:
    file = make(tmp_path)
    with pytest.raises(SfumatoError, match="--decimal"):
        started(tmp_path, file, kind="businesses")
    found = started(tmp_path, file, kind="businesses", decimal=decimal)
    assert found.proposal.tables["records"].columns["turnover"].least == meant
    assert declared(found.release)["data"]["records"]["decimal"] == decimal
    assert sfumato.check(sfumato.load(found.release)).refusal is None


@pytest.mark.slow
def test_codes_of_confidential_attributes_are_never_taken_from_the_records(tmp_path: Path) -> None:
    found = started(tmp_path, files.persons(tmp_path), largest_weight=100)
    text = found.release.read_text(encoding="utf-8")
    assert "Bildung" not in declared(found.release)["data"]["attributes"]
    assert '# Bildung = { codes = ["hoch", "tief"] }' in text
    assert "CONFIDENTIAL while it has drafts" in text
    assert "einzig" not in text  # a code of one person is in no draft
    assert "500" not in text  # nor is any number of the data


@pytest.mark.slow
def test_one_person_more_with_a_new_code_changes_nothing_that_is_declared(tmp_path: Path) -> None:
    first = started(tmp_path, files.persons(tmp_path), largest_weight=100)
    other = tmp_path / "other"
    other.mkdir()
    file = files.persons(other)
    file.write_text(file.read_text() + "99999;1;30;neu;55,5\n")
    assert declared(started(other, file, largest_weight=100).release) == declared(first.release)


@pytest.mark.slow
def test_nothing_is_public_unless_somebody_says_so(tmp_path: Path) -> None:
    found = started(tmp_path, files.linked(tmp_path))
    assert declared(found.release)["data"]["public"] == ["everything"]
    assert set(found.facts()["candidates_for_public"]) == {"region", "industry"}
    with pytest.raises(SfumatoError, match="a column of workers or jobs"):
        sfumato.start(files.linked(tmp_path), tmp_path / "b.toml", public=("sex",))


@pytest.mark.slow
def test_a_codelist_makes_a_confidential_attribute_usable(tmp_path: Path) -> None:
    codes = files.table(tmp_path / "education.csv", "code;label", ["low;Low", "high;High"])
    found = started(tmp_path, files.linked(tmp_path), public=("region",), codelists={"education": str(codes)})
    assert declared(found.release)["data"]["attributes"]["education"] == {"codelist": "education.csv"}
    assert sfumato.check(sfumato.load(found.release)).refusal is None


@pytest.mark.slow
def test_a_codelist_that_lacks_codes_of_the_column_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    codes = files.table(tmp_path / "education.csv", "code;label", ["low;Low", "tall;Tall"])
    with pytest.raises(SfumatoError, match="1 of the 2 in the column are none of its 2 codes"):
        started(tmp_path, files.linked(tmp_path), codelists={"education": str(codes)})
    assert not (tmp_path / "release.toml").exists()


@pytest.mark.slow
def test_how_a_text_is_written_is_said_in_the_file(tmp_path: Path) -> None:
    said = declared(started(tmp_path, files.persons(tmp_path), largest_weight=100).release)["data"]["records"]
    assert (said["delimiter"], said["decimal"], said["weight"], said["unit"]) == (";", ",", "Gewicht", "PersNr")
    other = tmp_path / "other"
    other.mkdir()
    jobs = declared(started(other, files.register(other)).release)["data"]["jobs"]
    assert (jobs["encoding"], jobs["employees"], jobs["workplace"]) == ("latin-1", "Beschäftigte", "Betrieb")


@pytest.mark.parametrize("wish", ["largest_weight", "periods"])
def test_bounds_and_periods_are_asked_for_and_not_read_off_the_records(tmp_path: Path, wish: str) -> None:
    file = files.persons(tmp_path) if wish == "largest_weight" else files.graduates(tmp_path)
    with pytest.raises(SfumatoError, match="must not be read off the records") as error:
        started(tmp_path, file)
    assert f"--{wish.replace('_', '-')}" in error.value.do
    assert not (tmp_path / "release.toml").exists()


@pytest.mark.slow
def test_answers_to_questions_are_what_options_are(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(question: Question) -> str:
        asked.append(question.wish)
        return {"public": "region", "codelist": "", "kind": "jobs"}.get(question.wish, question.default)

    made = files.linked(tmp_path)
    by_questions = declared(started(tmp_path, made, ask=answer).release)
    assert asked == ["kind", "public", "codelist", "by"]
    other = sfumato.start(made, tmp_path / "other.toml", public=("region",), kind="jobs")
    assert declared(other.release) == by_questions


@pytest.mark.slow
def test_an_answer_that_does_not_fit_is_asked_for_again(tmp_path: Path) -> None:
    answers = iter(["jobs", "sex", "region", "", ""])
    refused: list[str] = []

    def answer(question: Question) -> str:
        refused.append(question.refused)
        return next(answers)

    found = started(tmp_path, files.linked(tmp_path), ask=answer)
    assert declared(found.release)["data"]["public"] == ["region"]
    assert [bool(words) for words in refused] == [False, False, True, False, False]


@pytest.mark.slow
def test_amounts_with_cents_are_counted_in_cents(tmp_path: Path) -> None:
    measures = declared(started(tmp_path, files.businesses(tmp_path)).release)["data"]["measures"]
    assert measures["turnover"] == {"unit": "hundredths", "factor": 100}
    assert measures["net_profit"]["column"] == "NET.PROFIT"
    assert measures["net_profit"]["minimum"] < 0


@pytest.mark.slow
def test_a_file_that_is_there_is_never_overwritten_and_nothing_is_half_written(tmp_path: Path) -> None:
    made = files.businesses(tmp_path)
    out = tmp_path / "release.toml"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(SfumatoError, match="does not exist yet"):
        sfumato.start([made], out)
    assert out.read_text() == "mine"
    out.unlink()
    with pytest.raises(SfumatoError):
        sfumato.start([made], out, by=("nobody",))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["businesses.tsv"]


@pytest.mark.slow
def test_the_key_of_the_office_is_used_and_another_is_not_made(tmp_path: Path) -> None:
    made = files.businesses(tmp_path)
    first = sfumato.start([made], tmp_path / "a.toml")
    assert first.made_key
    key = (tmp_path / "sfumato.key").read_bytes()
    second = sfumato.start([made], tmp_path / "b.toml", key=tmp_path / "sfumato.key")
    assert not second.made_key
    assert (tmp_path / "sfumato.key").read_bytes() == key


@pytest.mark.slow
def test_a_table_that_is_tabulated_already_is_no_data(tmp_path: Path) -> None:
    rows = [f"{county},{code},{county + code}" for county in (1, 2, 3) for code in (11, 62)]
    cells = files.table(tmp_path / "cells.csv", "county,naics,employees", rows)
    with pytest.raises(SfumatoError, match="county, naics do together, as in a table of counts"):
        started(tmp_path, cells)


@pytest.mark.slow
def test_links_are_measured_and_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    employment, firms, people = files.linked(tmp_path)
    found = started(tmp_path, [people, firms, employment])
    assert {role: one.path.name for role, one in found.proposal.tables.items()} == {
        "jobs": "employment.csv",
        "workplaces": "firms.csv",
        "workers": "people.csv",
    }
    assert "employment.csv: firm leads to firms.csv: firm_id; all are there" in found.proposal.links
    with pytest.raises(SfumatoError, match="belong together"):
        sfumato.start([firms, files.businesses(tmp_path)], tmp_path / "b.toml")


@pytest.mark.slow
def test_women_and_men_are_added_up_and_it_is_said_what_is_left_out(tmp_path: Path) -> None:
    made = files.by_sex(tmp_path)
    shown = call("start", *made, "-o", tmp_path / "a.toml", "--public", "WZ 2008").stdout
    assert "Workers are counted by Beschäftigte Frauen and Beschäftigte Männer. Left out: Beschäftigte Azubis." in shown
    assert "nace.csv is the codelist of 'WZ 2008'." in shown
    findings = sfumato.check(sfumato.load(tmp_path / "a.toml"))
    assert findings.totals is not None
    assert f"{findings.totals.jobs:,} jobs." in shown
    said = declared(tmp_path / "a.toml")["data"]
    assert said["jobs"]["employees"] == {"F": "Beschäftigte Frauen", "M": "Beschäftigte Männer"}
    assert said["attributes"]["WZ 2008"] == {"codelist": {"file": "nace.csv", "level": 2}, "empty": "unknown"}


@pytest.mark.slow
def test_columns_that_may_overlap_are_never_chosen_among(tmp_path: Path) -> None:
    rows = [f"{n},{n % 5},{n % 7}" for n in range(40)]
    file = files.table(tmp_path / "parts.csv", "firm,workers full time,workers part time", rows)
    with pytest.raises(SfumatoError, match="several columns count workers") as error:
        started(tmp_path, file)
    assert error.value.do == "give --employees"
    found = started(tmp_path, file, employees=("workers full time", "workers part time"))
    assert found.facts()["jobs"] == sum(n % 5 + n % 7 for n in range(40))


@pytest.mark.slow
def test_a_title_above_the_heading_is_not_taken_for_it(tmp_path: Path) -> None:
    found = started(tmp_path, files.monthly(tmp_path))
    assert declared(found.release)["data"]["records"]["skip"] == 2
    told = sfumato.start([files.monthly(tmp_path)], tmp_path / "b.toml", skip=2)
    assert declared(told.release)["data"] == declared(found.release)["data"]


@pytest.mark.slow
def test_dates_of_months_are_months_and_growth_is_proposed(tmp_path: Path) -> None:
    said = declared(started(tmp_path, files.monthly(tmp_path), by=("Berichtsmonat",)).release)
    assert said["data"]["attributes"]["Berichtsmonat"]["codes"] == ["2024-11", "2024-12", "2025-01"]
    assert said["table"][1]["growth"] == {"of": "umsatz_k", "since": ["previous"]}


@pytest.mark.slow
def test_labels_of_spss_tell_what_columns_are_and_draft_their_codes(tmp_path: Path) -> None:
    found = started(tmp_path, files.spss(tmp_path), largest_weight=100)
    assert found.proposal.keys == {"unit": "PERSNR", "weight": "HRF"}
    text = found.release.read_text(encoding="utf-8")
    assert (
        '# ABSCHL = { codes = { 1 = "ohne", 2 = "Lehre", 3 = "Promotion", unknown = "Unknown" }, empty = "unknown" }'
        in text
    )
    assert declared(found.release)["data"]["attributes"]["GESCHL"]["codes"] == {"1": "weiblich", "2": "männlich"}
    (tmp_path / "b.toml").write_text(text.replace("# ABSCHL = { codes", "ABSCHL = { codes"), encoding="utf-8")
    assert sfumato.check(sfumato.load(tmp_path / "b.toml")).refusal is None


@pytest.mark.slow
def test_what_is_not_sure_is_said(tmp_path: Path) -> None:
    rows = [f"{n},{n % 3},{1 + n / 7:.2f}" for n in range(40)]
    found = started(tmp_path, files.table(tmp_path / "units.csv", "unit,kind,faktor", rows))
    assert [words.split(":")[0] for words in found.facts()["doubts"]] == [
        "Nothing tells whether 'unit' names businesses or people",
        "'faktor' looks like a weight and is not used",
    ]


@pytest.mark.slow
def test_counts_of_areas_are_no_records(tmp_path: Path) -> None:
    file = files.table(tmp_path / "areas.csv", "bgrp,C000,CA01", [f"{110 + n},{n},{n // 2}" for n in range(30)])
    with pytest.raises(SfumatoError, match="one for each area, which 'bgrp' names"):
        started(tmp_path, file)
    found = started(tmp_path, file, kind="register", employees=("C000",))
    assert sfumato.check(sfumato.load(found.release)).refusal is None


@pytest.mark.slow
@pytest.mark.parametrize("step", ["os.fsync", "os.link", "sfumato.durable.sync_folder"])
def test_a_start_that_is_killed_leaves_nothing_half_written(tmp_path: Path, step: str) -> None:
    made, out = files.register(tmp_path), tmp_path / "release.toml"
    module = step.rpartition(".")[0]
    program = (
        f"import os, signal, sfumato, {module}\n{step} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"sfumato.start([{str(made)!r}], {str(out)!r})"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    if out.exists():
        sfumato.load(out)
        out.unlink()
    started(tmp_path, made)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["register_2024.csv", "release.toml"]


def test_what_another_is_writing_is_not_taken_for_abandoned(tmp_path: Path) -> None:
    left, at_work = tmp_path / ".release.toml.abcd1234", tmp_path / ".release.toml.abcd5678"
    left.touch()
    with at_work.open("wb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        remove_abandoned(tmp_path / "release.toml")
    assert list(tmp_path.iterdir()) == [at_work]


def test_columns_are_seen_as_they_are(tmp_path: Path) -> None:
    with look([files.register(tmp_path)]) as (seen,):
        columns = seen.columns
        assert columns["Betrieb"].is_key
        assert columns["NACE"].is_code
        assert not columns["NACE"].is_number  # its zeros would be lost
        assert columns["Beschäftigte"].is_whole
        assert seen.options == {"delimiter": ";", "encoding": "latin-1"}


@pytest.mark.slow
def test_the_command_says_that_it_is_confidential_and_charges_nothing(tmp_path: Path) -> None:
    made = files.businesses(tmp_path)
    shown = call("start", made, "-o", tmp_path / "a.toml", "--public", "nace,region").stdout
    assert "Confidential" in shown
    assert "Nothing was charged" in shown
    facts = json.loads(call("start", made, "-o", tmp_path / "b.toml", "--json").stdout)
    assert facts["confidential"]
    assert facts["kind"] == "businesses"
    assert facts["candidates_for_public"] == ["nace", "region"]
    assert not list(tmp_path.glob("ledger*"))
    call("start", made, "-o", tmp_path / "a.toml", refused=True)


@pytest.mark.slow
def test_on_a_terminal_it_asks(tmp_path: Path) -> None:
    made = files.linked(tmp_path)
    ours, theirs = pty.openpty()
    try:
        running = subprocess.Popen(
            [*SFUMATO, "start", *map(str, made), "-o", str(tmp_path / "release.toml")],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        os.write(ours, b"\nregion\n\n\n")
        shown, _ = running.communicate(timeout=120)
    finally:
        os.close(ours)
        os.close(theirs)
    assert running.returncode == 0, shown
    assert "Which attributes of establishments does everyone know?" in shown
    assert declared(tmp_path / "release.toml")["data"]["public"] == ["region"]


@pytest.mark.slow
@pytest.mark.parametrize("wishes", [{}, {"public": ("nace",)}])
def test_one_person_without_a_sex_changes_nothing_that_is_declared(tmp_path: Path, wishes: dict[str, Any]) -> None:
    first = started(tmp_path, files.joined(tmp_path), **wishes)
    other = tmp_path / "other"
    other.mkdir()
    file = files.joined(other)
    file.write_text(file.read_text() + "9999,7,A,\n")
    second = started(other, file, **wishes)
    assert declared(second.release) == declared(first.release)
    assert 'empty = "unknown" }  # DRAFT' in second.release.read_text()
    assert "no 'sex'" in "".join(second.proposal.doubts)
    assert "DRAFT" not in first.release.read_text().partition("sex = ")[2]


@pytest.mark.slow
def test_a_draft_that_makes_a_code_of_empty_rows_runs(tmp_path: Path) -> None:
    file = files.joined(tmp_path)
    file.write_text(file.read_text() + "9999,7,A,\n")
    release = started(tmp_path, file, public=("nace",)).release
    with pytest.raises(SfumatoError, match="1 rows without one"):
        sfumato.check(sfumato.load(release))
    lines = release.read_text().splitlines()
    drafted = next(line for line in lines if line.startswith("# sex = ") and line.endswith("# DRAFT"))
    text = "\n".join(drafted.removeprefix("# ") if line.startswith("sex = ") else line for line in lines)
    release.write_text(text)
    assert sfumato.check(sfumato.load(release)).refusal is None


DAYS = {
    "quarters": (["31.03.2024", "30.06.2024", "30.09.2024"], ("2024-Q1", "2024-Q2", "2024-Q3")),
    "years": (["31.12.2023", "31.12.2024"], ("2023", "2024")),
    "months": (["31.01.2024", "29.02.2024"], ("2024-01", "2024-02")),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", DAYS)
def test_last_days_are_the_periods_that_they_end(tmp_path: Path, case: str) -> None:
    days, periods = DAYS[case]
    rows = [f"B{n};{day};{'NS'[n % 2]};{n % 9}.{100 + n},{n % 90 + 10}" for n in range(60) for day in days]
    file = files.table(tmp_path / "umsatz.csv", "Betrieb;Stichtag;Region;Umsatz", rows)
    found = started(tmp_path, file, kind="businesses", period="Stichtag", public=("Region",))
    assert found.proposal.periods == periods
    assert sfumato.check(sfumato.load(found.release)).refusal is None


@pytest.mark.slow
def test_a_panel_takes_dates_and_refuses_gaps(tmp_path: Path) -> None:
    jobs, employers = files.panel(tmp_path)
    text = jobs.read_text()
    days = {"2024Q1": "31.03.2024", "2024Q2": "30.06.2024", "2024Q3": "30.09.2024", "2024Q4": "31.12.2024"}
    for quarter, day in days.items():
        text = text.replace(quarter, day)
    jobs.write_text(text)
    found = started(tmp_path, [jobs, employers], period="quarter", kind="panel")
    assert declared(found.release)["data"]["jobs"]["last"] == "2024-Q4"
    assert sfumato.check(sfumato.load(found.release)).refusal is None
    jobs.write_text("\n".join(line for line in text.splitlines() if days["2024Q2"] not in line) + "\n")
    with pytest.raises(SfumatoError, match="none of 2024-Q2"):
        sfumato.start([jobs, employers], tmp_path / "gap.toml", kind="panel")
    with pytest.raises(SfumatoError, match="its workplaces in another"):
        sfumato.start([jobs], tmp_path / "gap.toml", kind="panel")


@pytest.mark.slow
def test_a_refusal_names_the_release_file_and_no_draft_of_it(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError) as error:
        started(tmp_path, files.graduates(tmp_path), periods=("1", "1"))
    assert ".release.toml." not in str(error.value)
    assert "release.toml" in error.value.where


@pytest.mark.slow
def test_the_only_table_of_a_database_is_taken_and_several_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "firms.sqlite"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE firms (firm TEXT, region TEXT, employees INTEGER)")
        database.executemany("INSERT INTO firms VALUES (?, ?, ?)", [(f"B{n}", "NS"[n % 2], n % 9) for n in range(60)])
    assert declared(started(tmp_path, file).release)["data"]["jobs"]["table"] == "firms"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE notes (words TEXT)")
    with pytest.raises(SfumatoError, match="several: firms, notes"):
        sfumato.start([file], tmp_path / "b.toml")


SECRET = "Zimtstern"
HEADLESS = {
    "numbers": [f"{n},{n % 7},{SECRET}" for n in range(40)],
    "dates": [f"P{n:03},2024-03-{n % 28 + 1:02},{SECRET}{n % 3}" for n in range(40)],
    "texts": [f"P{n:03},{'FM'[n % 2]},{SECRET}{n % 3}" for n in range(40)],
    "a value twice": [f"P{n:03},{SECRET},{SECRET}" for n in range(40)],
    "years": [f"{SECRET}{n},2024,a{n},b{n}" for n in range(40)],
    "nothing but numbers": [f"{n},{n % 7}" for n in range(40)],
}


@pytest.mark.parametrize("case", HEADLESS)
def test_a_file_without_a_heading_is_refused_and_its_first_record_not_quoted(tmp_path: Path, case: str) -> None:
    heading, *rows = HEADLESS[case]
    file = files.table(tmp_path / "headless.csv", heading, rows)
    with pytest.raises(SfumatoError, match="heading") as error:
        started(tmp_path, file)
    assert not any(value in str(error.value) for value in (SECRET, "P000", "2024-03-01"))
    assert not (tmp_path / "release.toml").exists()


@pytest.mark.slow
def test_years_may_be_names_of_columns(tmp_path: Path) -> None:
    rows = [f"B{n},{'NS'[n % 2]},{1500 + 9 * n},{1600 + 7 * n}" for n in range(90)]
    found = started(tmp_path, files.table(tmp_path / "wide.csv", "business,region,2019,2020", rows))
    assert {one.column for one in found.proposal.measures} == {"2019", "2020"}


@pytest.mark.parametrize(
    ("option", "named", "near"),
    [("unit", "Betreib", "Betrieb"), ("employees", ("Beschaftigte",), "Beschäftigte"), ("weight", "nope", "")],
)
def test_a_column_that_is_not_there_is_refused_with_those_that_are_spelt_like_it(
    tmp_path: Path, option: str, named: Any, near: str
) -> None:
    with pytest.raises(SfumatoError, match=f"--{option}[^$]*no such column") as error:
        started(tmp_path, files.register(tmp_path), **{option: named})
    assert error.value.do == (f"write '{near}'" if near else "write one of these")


@pytest.mark.slow
def test_a_unit_that_repeats_is_said_to_repeat(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match="several rows that have the same") as error:
        started(tmp_path, files.register(tmp_path), unit="NACE")
    assert "--unit 'NACE'" in error.value.where
    with pytest.raises(SfumatoError, match="no such measure"):
        started(tmp_path, files.businesses(tmp_path), measure="turnovr")
