"""`sfumato start` says what it left out, did not understand or cannot decide, before anybody publishes by it."""

import json
from pathlib import Path

import pytest

import sfumato
from sfumato.errors import SfumatoError
from tests.starting import files
from tests.starting.test_start import declared, started


def test_a_largest_weight_without_weights_is_refused_and_columns_that_may_be_weights_are_named(tmp_path: Path) -> None:
    rows = [f"{n},{'FM'[n % 2]},{20 + n / 7:.2f},{n % 5}" for n in range(60)]
    file = files.table(tmp_path / "survey.csv", "person,sex,gfk,children", rows)
    with pytest.raises(SfumatoError, match="--largest-weight 250") as error:
        started(tmp_path, file, largest_weight=250)
    assert "gfk" in error.value.found
    assert error.value.do.startswith("name it: --weight gfk")
    assert not (tmp_path / "release.toml").exists()
    found = started(tmp_path, file, largest_weight=250, weight="gfk")
    assert declared(found.release)["data"]["records"]["weight"] == "gfk"


def test_a_largest_weight_of_other_data_than_people_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match=r"--largest-weight 9[^$]*people"):
        started(tmp_path, files.register(tmp_path), largest_weight=9)


@pytest.mark.parametrize("name", ["gew", "GEW", "gewicht", "wgt", "weight", "wt", "perwt"])
def test_columns_that_are_called_weights_are_weights(tmp_path: Path, name: str) -> None:
    rows = [f"{n},{'FM'[n % 2]},{20 + n / 7:.2f}" for n in range(60)]
    found = started(tmp_path, files.table(tmp_path / "survey.csv", f"person,sex,{name}", rows), largest_weight=100)
    assert found.proposal.keys["weight"] == name


@pytest.mark.parametrize(
    ("names", "path", "first"),
    [
        (("reg_2026q1.csv", "reg_2026q2.csv"), "reg_{year}q{quarter}.csv", "2026-Q1"),
        (("reg-2025-11.csv", "reg-2025-12.csv", "reg-2026-01.csv"), "reg-{year}-{month}.csv", "2025-11"),
        (("2025.csv", "2024.csv"), "{year}.csv", "2024"),
    ],
)
def test_files_of_several_periods_are_a_series_and_no_jobs_with_their_workplaces(
    tmp_path: Path, names: tuple[str, ...], path: str, first: str
) -> None:
    rows = [f"{n},{'AB'[n % 2]},{n % 9}" for n in range(60)]
    made = [files.table(tmp_path / name, "firm,region,employees", rows[at:]) for at, name in enumerate(names)]
    with pytest.raises(SfumatoError, match="the same columns in each, and names that tell periods") as error:
        started(tmp_path, made)
    assert f'path = "{path}"' in error.value.do
    assert f'first = "{first}"' in error.value.do
    lines = started(tmp_path, made[0]).release.read_text(encoding="utf-8").replace(names[0], path).splitlines()
    said = "\n".join(line for line in lines if not line.startswith("period = "))
    (tmp_path / "series.toml").write_text(f'{said}\n[series]\nfirst = "{first}"\n', encoding="utf-8")
    assert sfumato.check(sfumato.load(tmp_path / "series.toml", period=first)).refusal is None


def test_files_with_the_same_columns_are_no_jobs_with_their_workplaces(tmp_path: Path) -> None:
    rows = [f"{n},{'AB'[n % 2]},{n % 9}" for n in range(60)]
    made = [files.table(tmp_path / name, "firm,region,employees", rows) for name in ("north.csv", "south.csv")]
    with pytest.raises(SfumatoError, match="the same columns in each") as error:
        started(tmp_path, made)
    assert "pattern" in error.value.do


@pytest.mark.parametrize("word", [".", "NA", "-"])
def test_a_column_of_numbers_with_words_for_no_value_is_told_with_what_to_write(tmp_path: Path, word: str) -> None:
    made = [word if n % 9 == 0 else f'"{n},{100 + n}.5"' for n in range(90)]
    rows = [f"B{n},{'NS'[n % 2]},{amount}" for n, amount in enumerate(made)]
    found = started(tmp_path, files.table(tmp_path / "plants.csv", "business,region,output", rows))
    (measure,) = found.facts()["measures"]
    assert measure["why_not"].startswith(f'has "{word}" in 10 rows')
    text = found.release.read_text(encoding="utf-8")
    assert f'missing = ["{word}"]' in text
    draft = next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# output = "))
    said = text.replace('thousands = ","', f'thousands = ",", missing = ["{word}"]')
    mended = said.replace(f"# {draft}", draft.replace(" }", ", empty = 0 }"))
    (tmp_path / "mended.toml").write_text(mended, encoding="utf-8")
    assert sfumato.check(sfumato.load(tmp_path / "mended.toml")).refusal is None


def test_words_that_are_not_known_for_no_value_are_counted_and_not_told(tmp_path: Path) -> None:
    rows = [f"B{n},{'Zimtstern' if n == 7 else 1000 + 13 * n}" for n in range(90)]
    found = started(tmp_path, files.table(tmp_path / "firms.csv", "business,turnover", rows))
    (measure,) = found.facts()["measures"]
    assert measure["why_not"].startswith("is no number in 1 rows")
    assert "Zimtstern" not in found.release.read_text(encoding="utf-8")


def months(tmp_path: Path, day: str) -> Path:
    rows = [f"B{n},{day.format(m=month)},{1000 + n}" for n in range(20) for month in range(1, 13)]
    return files.table(tmp_path / "plants.csv", "business,Report Month,output", rows)


@pytest.mark.parametrize(("day", "dates"), [("{m}/1/2025", "03/31/2026"), ("01/{m:02}/2025", "31/03/2026")])
def test_dates_that_may_be_days_or_months_are_asked_for(tmp_path: Path, day: str, dates: str) -> None:
    file = months(tmp_path, day)
    with pytest.raises(SfumatoError, match="may be read in several ways") as error:
        started(tmp_path, file)
    assert "--dates 03/31/2026" in error.value.do
    found = started(tmp_path, file, dates=dates)
    assert found.proposal.periods == tuple(f"2025-{month:02}" for month in range(1, 13))
    assert declared(found.release)["data"]["records"]["dates"] == dates
    assert sfumato.check(sfumato.load(found.release)).refusal is None


def test_dates_that_no_month_can_be_are_understood(tmp_path: Path) -> None:
    days = ("1/31/2025", "2/28/2025", "3/31/2025")
    rows = [f"B{n},{day},{1000 + n}" for n in range(20) for day in days]
    found = started(tmp_path, files.table(tmp_path / "plants.csv", "business,Month,output", rows))
    assert found.proposal.periods == ("2025-01", "2025-02", "2025-03")
    assert sfumato.check(sfumato.load(found.release)).refusal is None


def workbook(path: Path, **sheets: list[list[object]]) -> Path:
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


FIRMS: list[list[object]] = [["firm", "region", "employees"], *([f"B{n}", "NS"[n % 2], n % 9] for n in range(60))]


def test_the_only_sheet_that_is_a_table_is_taken_and_several_are_listed(tmp_path: Path) -> None:
    file = workbook(tmp_path / "firms.xlsx", Info=[["Firms, 2025"], [], ["Draft"]], Data=FIRMS)
    found = started(tmp_path, file)
    assert declared(found.release)["data"]["jobs"]["sheet"] == "Data"
    assert sfumato.check(sfumato.load(found.release)).refusal is None
    file = workbook(tmp_path / "years.xlsx", y2024=FIRMS, y2025=FIRMS)
    with pytest.raises(SfumatoError, match="several: y2024, y2025"):
        sfumato.start([file], tmp_path / "b.toml")
    named = sfumato.start([Path(f"{file}#y2025")], tmp_path / "c.toml")
    assert declared(named.release)["data"]["jobs"]["sheet"] == "y2025"


def sdmx(path: Path, codes: list[str]) -> Path:
    listed = [{"id": code, "names": {"en": f"Words for {code}"}} for code in codes]
    content = {"data": {"codelists": [{"id": "CL_NACE", "names": {"en": "NACE"}, "codes": listed}]}}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_code_list_of_sdmx_is_the_codelist_of_the_column_that_has_its_codes(tmp_path: Path) -> None:
    listed = sdmx(tmp_path / "nace.json", ["01", "05", "62", "63"])
    found = started(tmp_path, [files.register(tmp_path), listed], public=("NACE",))
    assert found.facts()["codelists"] == {"NACE": "nace.json"}
    assert declared(found.release)["data"]["attributes"]["NACE"] == {"codelist": "nace.json"}
    with pytest.raises(SfumatoError, match=r"--codelist ATTRIBUTE=other.json"):
        sfumato.start([files.register(tmp_path), sdmx(tmp_path / "other.json", ["x", "y"])], tmp_path / "b.toml")


def test_a_file_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    files.register(tmp_path)
    with pytest.raises(SfumatoError, match="no such file") as error:
        started(tmp_path, tmp_path / "registr_2024.csv")
    assert "register_2024.csv" in error.value.do
    assert "release file" not in str(error.value)


def test_a_list_for_what_is_not_public_of_an_establishment_waits_until_it_is(tmp_path: Path) -> None:
    listed = sdmx(tmp_path / "nace.json", ["01", "05", "62", "63"])
    found = started(tmp_path, [files.register(tmp_path), listed])
    assert "NACE" in found.facts()["candidates_for_public"]
    assert sfumato.check(sfumato.load(found.release)).refusal is None


def test_earnings_of_a_panel_with_decimals_are_told_with_what_to_do(tmp_path: Path) -> None:
    jobs, employers = files.panel(tmp_path)
    heading, *rows = jobs.read_text().splitlines()
    files.table(jobs, heading, [f"{row}.50" for row in rows])
    with pytest.raises(SfumatoError, match="numbers with decimals") as error:
        started(tmp_path, [jobs, employers])
    assert error.value.where == "histories.csv: earnings"
    assert "multiply them by 100" in error.value.do


def test_jobs_of_several_periods_that_are_no_panel_are_doubted(tmp_path: Path) -> None:
    jobs, employers = files.panel(tmp_path)
    files.table(jobs, "x,employer,quarter,y", jobs.read_text().splitlines()[1:])
    (doubt,) = started(tmp_path, [jobs, employers]).facts()["doubts"]
    assert doubt.startswith("'quarter' has several periods, and every row is counted as a job")
