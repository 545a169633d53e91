"""The same data in every format are the same data: one content, one validation, the same figures."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from sfumato.checking import checked
from sfumato.content import Content
from sfumato.engine.connect import connect, open_tables
from sfumato.engine.content import ContentReader
from sfumato.engine.memory import Memory
from sfumato.engine.records import check_record_columns, connect_records, read_record_codes, validate_records
from sfumato.engine.validate import check_columns, read_public_codes, validate
from sfumato.errors import DataError, EngineError
from sfumato.frame.attributes import Measure
from sfumato.frame.data import Frame
from sfumato.frame.records import Microdata
from sfumato.frame.sources import Source
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.starting.look import Files
from tests.conftest import tiny_frame, write
from tests.tiny import TINY

RELEASE = """
[release]
title = "Pay by place"
period = "2026"
key = "sfumato.key"
ledger = "{name}.sqlite"
bundle = "{name}"

[data]
records = {{ {source}, unit = "firm", period = "quarter" }}
public = ["place"]

[data.attributes]
place = {{ codes = ["01", "02"] }}
quarter = {{ codes = ["2026-Q1", "2026-Q2"] }}

[data.measures]
pay = {{ factor = 100, minimum = -1000 }}

[[table]]
name = "pay"
total = "pay"
by = ["place", "quarter"]
protect = {{ method = "top-contributors" }}
"""

FIRMS = {
    "firm": [number for number in range(1, 41) for _ in range(2)],
    "place": [f"0{number % 2 + 1}" for number in range(40) for _ in range(2)],
    "quarter": [date(2026, 3, 31), date(2026, 4, 1)] * 40,
    "pay": [number * 10 + 1.15 for number in range(80)],
}


def as_texts(columns: dict[str, list[Any]]) -> list[list[str]]:
    """The rows of columns as texts."""
    return [list(columns), *([str(value) for value in row] for row in zip(*columns.values(), strict=True))]


def as_parquet(folder: Path) -> str:
    write(folder / "firms.parquet", FIRMS)
    return 'path = "firms.parquet"'


def as_csv(folder: Path) -> str:
    lines = [";".join(row) for row in as_texts(FIRMS | {"pay": [str(pay).replace(".", ",") for pay in FIRMS["pay"]]})]
    (folder / "firms.csv").write_text("\n".join(lines))
    return 'path = "firms.csv"'


def as_many_files(folder: Path) -> str:
    heading, *rows = as_texts(FIRMS)
    for place in range(3):
        part = [heading, *rows[place::3]]
        path = folder / "firms" / f"part {place}.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join("\t".join(row) for row in part))
    return 'path = "firms"'


def as_excel(folder: Path) -> str:
    import openpyxl

    book = openpyxl.Workbook()
    book.create_sheet("Firms")
    sheet = book["Firms"]
    sheet.append(["Register of firms"])
    sheet.append([])
    sheet.append(list(FIRMS))
    for row in zip(*FIRMS.values(), strict=True):
        sheet.append(row)
    book.save(folder / "firms.xlsx")
    return 'path = "firms.xlsx", sheet = "Firms"'


def as_package(ending: str, writer: str) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        import pandas
        import pyreadstat

        frame = pandas.DataFrame(FIRMS)
        getattr(pyreadstat, writer)(frame, folder / f"firms{ending}")
        return f'path = "firms{ending}"'

    return make


def as_sqlite(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "firms.sqlite")) as database, database:
        database.execute("CREATE TABLE firms (firm INTEGER, place TEXT, quarter TEXT, pay REAL)")
        rows = zip(*(FIRMS | {"quarter": list(map(str, FIRMS["quarter"]))}).values(), strict=True)
        database.executemany("INSERT INTO firms VALUES (?, ?, ?, ?)", list(rows))
    return 'path = "firms.sqlite", table = "firms"'


FORMATS: dict[str, Callable[[Path], str]] = {
    "csv": as_csv,
    "many": as_many_files,
    "excel": as_excel,
    "stata": as_package(".dta", "write_dta"),
    "sas": as_package(".xpt", "write_xport"),
    "spss": as_package(".sav", "write_sav"),
    "sqlite": as_sqlite,
}


def content(folder: Path, source: str) -> Content:
    """What the data are known by."""
    (folder / "release.toml").write_text(RELEASE.format(name="any", source=source))
    with checked(load(folder / "release.toml"), everything=True) as ready:
        return ready.identity.content


def figures(folder: Path, source: str, name: str) -> str:
    """The digest of the table that is published."""
    path = folder / f"{name}.toml"
    path.write_text(RELEASE.format(name=name, source=source))
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", "run", str(path), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (table,) = (folder / name / "tables").glob("pay*.csv")
    return table.read_text()


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Content, str]:
    """The records as Parquet: a folder with a key, their content, and the published table."""
    folder = tmp_path_factory.mktemp("parquet")
    new_key(folder / "sfumato.key")
    source = as_parquet(folder)
    return folder, content(folder, source), figures(folder, source, "parquet")


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_the_same_data_and_publishes_the_same_figures(
    tmp_path: Path, parquet: tuple[Path, Content, str], kind: str
) -> None:
    folder, known, published = parquet
    shutil.copy(folder / "sfumato.key", tmp_path)
    source = FORMATS[kind](tmp_path)
    found = content(tmp_path, source)
    assert {name: table.keys for name, table in found.tables.items()} == {
        name: table.keys for name, table in known.tables.items()
    }
    assert found.tables["records"].columns == known.tables["records"].columns
    assert figures(tmp_path, source, kind) == published


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of a PostgreSQL of its own, which listens to a socket in a folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [Path(shutil.which("initdb") or "nowhere").parent]
    owner = "postgres" if os.getuid() == 0 else None
    if not (found[-1] / "initdb").exists() or (owner and not _is_user(owner)):
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # below pytest's own folder nobody else may look
    if owner:
        shutil.chown(folder, owner)

    def call(*command: str) -> None:
        subprocess.run([str(found[-1] / command[0]), *command[1:]], check=True, capture_output=True, user=owner)

    call("initdb", "-D", f"{folder}/data", "-U", "office", "--auth=trust", "--no-sync")
    call("pg_ctl", "-D", f"{folder}/data", "-w", "-o", f"-k {folder} -h ''", "-l", f"{folder}/log", "start")
    try:
        yield f"postgresql://office@/postgres?host={folder}"
    finally:
        call("pg_ctl", "-D", f"{folder}/data", "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


def _is_user(name: str) -> bool:
    import pwd

    return name in {known.pw_name for known in pwd.getpwall()}


@pytest.mark.slow
def test_a_table_and_a_query_of_postgresql_are_the_same_data(
    tmp_path: Path, parquet: tuple[Path, Content, str], database: str
) -> None:
    psycopg = pytest.importorskip("psycopg")
    folder, known, published = parquet
    shutil.copy(folder / "sfumato.key", tmp_path)
    with psycopg.connect(database) as opened:
        opened.execute("CREATE SCHEMA register")
        opened.execute("CREATE TABLE register.firms (firm bigint, place text, quarter date, pay numeric(12, 2))")
        opened.cursor().executemany(
            "INSERT INTO register.firms VALUES (%s, %s, %s, %s)", list(zip(*FIRMS.values(), strict=True))
        )
    table = f'path = "{database}", table = "register.firms"'
    query = f'path = "{database}", query = "SELECT firm, place, quarter, pay FROM register.firms;"'
    for source in (table, query):
        assert content(tmp_path, source).tables["records"].columns == known.tables["records"].columns
    assert figures(tmp_path, table, "postgresql") == published
    with psycopg.connect(database) as opened:  # nothing but the rows tells that a database changed
        opened.execute("UPDATE register.firms SET pay = pay + 1 WHERE firm = 7")
    assert content(tmp_path, table).tables["records"].columns != known.tables["records"].columns
    with pytest.raises(DataError, match="the table 'firms'"):
        content(tmp_path, f'path = "{database}", table = "firms"')
    with pytest.raises(DataError, match="can be reached"):
        content(tmp_path, 'path = "postgresql://office@/postgres?host=/nowhere", table = "firms"')


@pytest.mark.parametrize(
    "path",
    [
        "postgresql://office:secret@host/register",
        "POSTGRESQL://office:secret@host/register",
        "postgresql://office:se%2Fcr/et@host/register",
        "postgresql://host/register?user=office&password=secret",
        "postgresql://host/register?sslpassword=secret",
        "postgresql://host/register?pass%77ord=secret",
    ],
)
def test_a_password_is_refused_in_a_release_file(path: str) -> None:
    with pytest.raises(ValidationError, match="PGPASSWORD") as refused:
        Source.model_validate({"path": path, "table": "jobs"})
    assert "~/.pgpass" in str(refused.value)


def in_latin_1(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "old.sqlite")) as database, database:
        database.execute("CREATE TABLE firms (firm TEXT, place TEXT, quarter TEXT, pay INTEGER)")
        rows = [("1", "01", "2026-Q1", 1), ("SECRET\u00e9", "01", "2026-Q1", 2)]
        database.executemany(
            "INSERT INTO firms VALUES (CAST(? AS TEXT), ?, ?, ?)", [(r[0].encode("latin-1"), *r[1:]) for r in rows]
        )
    return "old.sqlite"


def test_texts_of_sqlite_in_another_encoding_are_named_by_their_place_and_read_when_it_is_said(tmp_path: Path) -> None:
    path = in_latin_1(tmp_path)
    with pytest.raises(DataError, match="row 2 of the answer, column 'firm'") as refused:
        opened(microdata(tmp_path, path=path, table="firms"))
    assert "SECRET" not in str(refused.value)
    rows = opened(microdata(tmp_path, path=path, table="firms", encoding="latin-1"))
    assert [row["firm"] for row in rows] == ["1", "SECRET\u00e9"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("ATTACH 'made.sqlite' AS made", "a query that does more than read"),
        ("PRAGMA user_version", "a query that does more than read"),
        ("DELETE FROM firms", "a query that does more than read"),
        ("SELECT abs(-9223372036854775808) FROM firms", "an error of type"),
        ("SELECT json_extract('{}', firm) FROM firms", "an error of type"),
        ("SELECT wage FROM firms", "no such column: wage"),
    ],
)
def test_a_query_to_sqlite_only_reads_and_its_errors_quote_nothing(tmp_path: Path, query: str, found: str) -> None:
    with pytest.raises(DataError) as refused:
        opened(microdata(tmp_path, path=in_latin_1(tmp_path), query=query, encoding="latin-1"))
    assert refused.value.found.startswith(found)
    assert "SECRET" not in str(refused.value)
    assert not (tmp_path / "made.sqlite").exists()


@pytest.mark.parametrize("encoding", ["base64", "rot13", "punycode", "undefined", "unicode-escape"])
def test_what_is_no_encoding_of_letters_is_refused(encoding: str) -> None:
    with pytest.raises(ValidationError, match="no encoding of letters"):
        Source.model_validate({"path": "jobs.csv", "encoding": encoding})


def test_a_file_that_is_not_in_the_encoding_that_is_said_is_refused(tmp_path: Path) -> None:
    (tmp_path / "firms.csv").write_text("firm,place,quarter,pay\n1,01,2026-Q1,1\n", encoding="ascii")
    with pytest.raises(DataError, match="letters in utf-16"):
        opened(microdata(tmp_path, path="firms.csv", encoding="utf-16"))


@pytest.mark.parametrize("kind", ["INTEGER", "REAL", "NUMERIC", "TEXT"])
def test_a_whole_number_of_sqlite_is_the_same_key_of_every_type(tmp_path: Path, kind: str) -> None:
    with closing(sqlite3.connect(tmp_path / "firms.sqlite")) as database, database:
        database.execute(f"CREATE TABLE firms (firm {kind}, place TEXT, quarter TEXT, pay REAL, photo BLOB)")
        rows = [(17, "01", "2026-Q1", 2.5, b"1"), (-3, "02", "2026-Q2", 4.0, None)]
        database.executemany("INSERT INTO firms VALUES (?, ?, ?, ?, ?)", rows)
    found = opened(microdata(tmp_path, path="firms.sqlite", table="firms"))
    assert [(row["firm"], row["pay"]) for row in found] == [(-3, 4), (17, 2.5)]


@pytest.mark.parametrize("column", ["firm", "place", "pay"])
def test_bytes_of_sqlite_are_refused_where_they_are_asked_for(tmp_path: Path, column: str) -> None:
    values = {"firm": 17, "place": "01", "quarter": "2026-Q1", "pay": 3} | {column: b"secret"}
    with closing(sqlite3.connect(tmp_path / "firms.sqlite")) as database, database:
        database.execute("CREATE TABLE firms (firm, place, quarter, pay)")
        database.execute("INSERT INTO firms VALUES (?, ?, ?, ?)", tuple(values.values()))
    with pytest.raises(DataError, match=f"column '{column}', row 1 of the answer") as refused:
        opened(microdata(tmp_path, path="firms.sqlite", table="firms"))
    assert "secret" not in str(refused.value)


def microdata(folder: Path, **source: Any) -> Microdata:
    """Records with a unit, a code and a number."""
    described = {"place": {"codes": ["01", "02"]}, "quarter": {"codes": ["2026-Q1", "2026-Q2"]}}
    return Microdata.model_validate(
        {"folder": folder, "records": {"unit": "firm", **source}, "attributes": described, "measures": {"pay": {}}}
    )


def opened(data: Microdata) -> list[dict[str, Any]]:
    """The records as the data name them."""
    with connect_records(data) as tables:
        found: list[dict[str, Any]] = tables.records.fetch().sort_by("firm").to_pylist()
        return found


def workbook(path: Path, *rows: tuple[Any, ...]) -> Path:
    """A workbook of one sheet."""
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.worksheets[0].append(row)
    book.save(path)
    return path


def test_cells_of_several_kinds_are_texts_in_keys_and_refused_in_numbers(tmp_path: Path) -> None:
    heading = ("firm", "place", "quarter", "pay")
    workbook(tmp_path / "firms.xlsx", heading, (1, "01", "2026-Q1", 5), ("1a", "02", "2026-Q2", "7"), (None,) * 4)
    assert [(row["firm"], row["pay"]) for row in opened(microdata(tmp_path, path="firms.xlsx"))] == [
        ("1", 5),
        ("1a", 7),
    ]
    workbook(tmp_path / "firms.xlsx", heading, (1, "01", "2026-Q1", 5), (2, "02", "2026-Q2", "Meier"))
    with pytest.raises(DataError, match="column 'pay', row 2") as refused:
        opened(microdata(tmp_path, path="firms.xlsx"))
    assert "Meier" not in str(refused.value)


def test_texts_of_a_workbook_that_may_be_thousands_or_decimals_are_asked_for(tmp_path: Path) -> None:
    heading = ("firm", "place", "quarter", "pay")
    workbook(tmp_path / "firms.xlsx", heading, (1, "01", "2026-Q1", 5), (2, "02", "2026-Q2", "1.250"))
    with pytest.raises(DataError, match="column 'pay', row 2") as refused:
        opened(microdata(tmp_path, path="firms.xlsx"))
    assert 'thousands = "."' in refused.value.do
    assert opened(microdata(tmp_path, path="firms.xlsx", thousands="."))[1]["pay"] == 1250
    workbook(tmp_path / "firms.xlsx", heading, (1, "01", "2026-Q1", "1.250"), (2, "02", "2026-Q2", "1.5"))
    assert [row["pay"] for row in opened(microdata(tmp_path, path="firms.xlsx"))] == [1.25, 1.5]
    with pytest.raises(DataError, match="column 'pay', row 2"):
        opened(microdata(tmp_path, path="firms.xlsx", thousands="."))


def test_what_is_no_date_among_those_of_a_workbook_is_refused_with_its_row(tmp_path: Path) -> None:
    heading = ("firm", "place", "quarter", "pay")
    days = (date(2026, 3, 31), "30.06.2026", "31.03.0206")
    workbook(tmp_path / "firms.xlsx", heading, *((n, "01", day, 5) for n, day in enumerate(days)))
    with pytest.raises(DataError, match="column 'quarter', row 3 below the heading"):
        opened(microdata(tmp_path, path="firms.xlsx"))


def test_periods_of_a_workbook_among_which_few_are_dates_stay_what_they_are(tmp_path: Path) -> None:
    heading = ("firm", "place", "quarter", "pay")
    periods = ("2026-Q1", "2026-Q2", "30.06.2026")
    workbook(tmp_path / "firms.xlsx", heading, *((n, "01", period, 5) for n, period in enumerate(periods)))
    assert [row["quarter"] for row in opened(microdata(tmp_path, path="firms.xlsx"))] == list(periods)


def test_numbers_that_a_database_has_as_other_texts_are_refused_with_advice_that_works(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "firms.sqlite")) as database, database:
        database.execute("CREATE TABLE firms (firm INTEGER, place TEXT, quarter TEXT, pay TEXT)")
        database.execute("INSERT INTO firms VALUES (1, '01', '2026-Q1', '8'), (2, '02', '2026-Q2', '8,2')")
    with pytest.raises(DataError, match="column 'pay', row 2") as refused:
        opened(microdata(tmp_path, path="firms.sqlite", table="firms"))
    assert "SELECT …, replace(pay, ',', '.') AS pay FROM …" in refused.value.do
    assert "decimal" not in refused.value.do
    query = "SELECT firm, place, quarter, replace(pay, ',', '.') AS pay FROM firms"
    assert [row["pay"] for row in opened(microdata(tmp_path, path="firms.sqlite", query=query))] == [8, 8.2]


@pytest.mark.parametrize("rows_at_a_time", [1, 1000])  # cells of a column come in one piece, or in several
@pytest.mark.parametrize(
    ("marks", "text"),
    [({"thousands": ".", "decimal": ","}, "2.345,5"), ({"thousands": "."}, "2.345,5"), ({}, "2345.5")],
)
def test_numbers_of_a_workbook_keep_their_value_among_texts_whatever_marks_these_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks: dict[str, str], text: str, rows_at_a_time: int
) -> None:
    monkeypatch.setattr("sfumato.engine.formats._ROWS", rows_at_a_time)
    amounts = (1.234, text, 7, 1e-7, 1e21, -0.5, 999, None)
    rows = [(number, "01", "2026-Q1", amount) for number, amount in enumerate(amounts)]
    workbook(tmp_path / "firms.xlsx", ("firm", "place", "quarter", "pay"), *rows)
    found = opened(microdata(tmp_path, path="firms.xlsx", missing=["999"], **marks))
    assert [row["pay"] for row in found] == [1.234, 2345.5, 7, 1e-7, 1e21, -0.5, None, None]


def test_errors_of_formulas_are_refused_by_their_place_where_they_matter(tmp_path: Path) -> None:
    import openpyxl

    path = workbook(tmp_path / "firms.xlsx", ("a title",), ("firm", "place", "quarter", "pay", "note"))
    book = openpyxl.load_workbook(path)
    for sheet in (book.worksheets[0], book.create_sheet("other")):
        for row in ((1, "01", "2026-Q1", 5, "=1/0"), (2, "02", "2026-Q2", "=1/0", "=1/0"), (3, "=NA()", "2026-Q2", 7)):
            sheet.append(row)
        for cell in (cell for row in sheet.iter_rows() for cell in row if str(cell.value).startswith("=")):
            cell.value, cell.data_type = "#DIV/0!", "e"
    book.save(path)
    with pytest.raises(DataError, match="sheet 'Sheet', row 4, column 'pay'") as refused:
        opened(microdata(tmp_path, path="firms.xlsx"))
    assert refused.value.found == "the error of a formula, and 1 more"
    for cell, value in (("D4", 6), ("B5", "01")):
        book.worksheets[0][cell].value = value
    book.save(path)
    assert [row["pay"] for row in opened(microdata(tmp_path, path="firms.xlsx"))] == [5, 6, 7]


def test_true_is_no_number_and_no_code_of_a_number(tmp_path: Path) -> None:
    heading = ("firm", "place", "quarter", "pay")
    workbook(tmp_path / "firms.xlsx", heading, (1, "01", "2026-Q1", 5), (2, "02", "2026-Q2", True))
    with pytest.raises(DataError, match="column 'pay', row 3 of the sheet"):
        opened(microdata(tmp_path, path="firms.xlsx"))
    workbook(tmp_path / "firms.xlsx", heading, (1, 1, "2026-Q1", 5), (2, True, "2026-Q2", 6))
    assert [row["place"] for row in opened(microdata(tmp_path, path="firms.xlsx"))] == ["1", "true"]


def consent_in_text(folder: Path, values: list[int]) -> str:
    as_text(
        folder / "firms.csv",
        ("firm", "place", "quarter", "pay", "asked"),
        *((n, "01", "2026-Q1", 5, value) for n, value in enumerate(values)),
    )
    return "firms.csv"


def consent_in_workbook(folder: Path, values: list[int]) -> str:
    rows = ((n, "01", "2026-Q1", 5, value) for n, value in enumerate(values))
    workbook(folder / "firms.xlsx", ("firm", "place", "quarter", "pay", "asked"), *rows)
    return "firms.xlsx"


def consent_in_package(ending: str, writer: str) -> Callable[[Path, list[int]], str]:
    def make(folder: Path, values: list[int]) -> str:
        import pandas
        import pyreadstat

        size = len(values)
        columns = {"firm": range(size), "place": ["01"] * size, "quarter": ["2026-Q1"] * size, "pay": [5] * size}
        getattr(pyreadstat, writer)(pandas.DataFrame({**columns, "asked": values}), folder / f"firms{ending}")
        return f"firms{ending}"

    return make


@pytest.mark.parametrize(
    "made",
    [
        consent_in_text,
        consent_in_workbook,
        consent_in_package(".dta", "write_dta"),
        consent_in_package(".sav", "write_sav"),
        consent_in_package(".xpt", "write_xport"),
    ],
    ids=["csv", "excel", "stata", "spss", "sas"],
)
def test_consent_may_be_0_or_1_in_every_format_and_nothing_else(
    tmp_path: Path, made: Callable[[Path, list[int]], str]
) -> None:
    data = microdata(tmp_path, path=made(tmp_path, [0, 1, 0]), consent="asked")
    with connect_records(data) as tables:
        check_record_columns(data, tables)
        assert tables.records.fetch().sort_by("firm")["asked"].to_pylist() == [False, True, False]
    data = microdata(tmp_path, path=made(tmp_path, [0, 1, 2]), consent="asked")
    with pytest.raises(DataError, match="true"), connect_records(data) as tables:
        check_record_columns(data, tables)


@pytest.mark.parametrize(
    ("name", "content_", "options", "words"),
    [
        ("firms.xlsx", b"no workbook", {}, "a workbook that can be read"),
        ("firms.dta", b"no file of Stata", {}, "a file of Stata that can be read"),
        ("firms.sqlite", b"no database" * 100, {"table": "firms"}, "the table 'firms'"),
        ("firms.csv.gz", b"not compressed", {}, "can be read"),
    ],
)
def test_a_damaged_file_is_named(
    tmp_path: Path, name: str, content_: bytes, options: dict[str, str], words: str
) -> None:
    (tmp_path / name).write_bytes(content_)
    with pytest.raises(DataError, match=words):
        opened(microdata(tmp_path, path=name, **options))


def as_text(path: Path, *rows: tuple[Any, ...]) -> None:
    path.with_suffix(".csv").write_text("".join(";".join(map(str, row)) + "\n" for row in rows))


@pytest.mark.parametrize("made", [as_text, workbook])
@pytest.mark.parametrize(("with_heading", "without"), [("a", "b"), ("b", "a")])
def test_a_record_in_the_place_of_the_heading_of_one_file_is_never_quoted(
    tmp_path: Path, made: Callable[..., Any], with_heading: str, without: str
) -> None:
    (tmp_path / "in").mkdir()
    made(tmp_path / "in" / f"{with_heading}.xlsx", ("firm", "place", "quarter", "pay"), (1, "01", "2026-Q1", 5))
    made(tmp_path / "in" / f"{without}.xlsx", ("SECRET", "02", "1971-Q1", 987654), (2, "02", "2026-Q1", 6))
    with pytest.raises(DataError, match="a file with 4 columns and none of these: it seems to have no") as refused:
        opened(microdata(tmp_path, path="in"))
    assert f"{without}." in refused.value.where
    nothing_known = Files.model_validate({"listed": {"firms": {"path": "in"}}, "folder": tmp_path})
    with pytest.raises(DataError, match="one of the files seems to have no") as at_start, open_tables(nothing_known):
        pass
    for message in (str(refused.value), str(at_start.value)):
        assert not any(value in message for value in ("SECRET", "1971", "987654"))


def test_a_column_that_one_file_lacks_is_named_and_its_other_names_are_not(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    as_text(tmp_path / "in" / "a.csv", ("firm", "place", "quarter", "pay"), (1, "01", "2026-Q1", 5))
    as_text(tmp_path / "in" / "b.csv", ("firm", "place", "SECRET", "pay"), (2, "01", "2026-Q1", 6))
    with pytest.raises(DataError, match="other files of the table have: quarter") as refused:
        opened(microdata(tmp_path, path="in"))
    assert "a file with 4 columns and without these" in refused.value.found
    assert "SECRET" not in str(refused.value)


def test_columns_of_parquet_that_was_made_of_a_text_without_a_heading_are_not_quoted(tmp_path: Path) -> None:
    write(tmp_path / "firms.parquet", {"SECRET": [1], "1971": ["02"]})
    with pytest.raises(DataError, match="none of the columns that the release file names") as refused:
        opened(microdata(tmp_path, path="firms.parquet"))
    assert "SECRET" not in str(refused.value)


def test_a_sheet_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    workbook(tmp_path / "firms.xlsx", ("firm",), (1,))
    with pytest.raises(DataError, match="Sheet"):
        opened(microdata(tmp_path, path="firms.xlsx", sheet="Firms"))


@pytest.mark.slow
def test_quarters_of_stata_are_the_periods_that_they_are(tmp_path: Path) -> None:
    import pandas
    import pyreadstat

    frame = pandas.DataFrame({"firm": [1, 2], "place": ["01", "02"], "quarter": [264, 265], "pay": [1.0, 2.0]})
    pyreadstat.write_dta(frame, tmp_path / "firms.dta", variable_format={"quarter": "%tq"})
    assert [row["quarter"] for row in opened(microdata(tmp_path, path="firms.dta"))] == ["2026-Q1", "2026-Q2"]


def test_dates_of_parquet_count_for_their_period(tmp_path: Path) -> None:
    write(
        tmp_path / "firms.parquet",
        {"firm": [1, 2], "place": ["01", "02"], "quarter": FIRMS["quarter"][:2], "pay": [1, 2]},
    )
    assert [row["quarter"] for row in opened(microdata(tmp_path, path="firms.parquet"))] == ["2026-Q1", "2026-Q2"]


KNOWN_AGAIN: dict[str, tuple[list[str], pa.Array, bool]] = {
    "whole numbers": (["1", "-2"], pa.array([1, -2], pa.int8()), True),
    "whole decimals": (["1", "-2"], pa.array([Decimal(1), Decimal(-2)], pa.decimal128(8, 2)), True),
    "texts": (["01", "x"], pa.array(["01", "x"]).dictionary_encode(), True),
    "dates": (["2026-01-31", "2026-04-01"], pa.array([date(2026, 1, 31), date(2026, 4, 1)]), True),
    "double precision": (["1.3", "2.5"], pa.array([1.3, 2.5]), True),
    "decimals": (["1.3", "2.5"], pa.array([Decimal("1.3"), Decimal("2.5")], pa.decimal128(8, 2)), False),
    "single precision": (["1.3", "2.5"], pa.array([1.3, 2.5], pa.float32()), False),
    "true and false": (["true", "false"], pa.array([True, False]), False),
    "timestamps": (["2026-01-31", "2026-04-01"], pa.array([datetime(2026, 1, 31), datetime(2026, 4, 1)]), False),
    "texts of numbers": (["1", "2"], pa.array(["1", "2"]), False),
}


@pytest.mark.parametrize("kind", KNOWN_AGAIN)
def test_the_types_that_are_the_same_data_in_another_format_are_those_that_the_page_lists(
    tmp_path: Path, kind: str
) -> None:
    texts, stored, same = KNOWN_AGAIN[kind]
    (tmp_path / "r.csv").write_text("unit;x\n" + "".join(f"{at};{text}\n" for at, text in enumerate(texts, start=1)))
    pq.write_table(pa.table({"unit": [1, 2], "x": stored}), tmp_path / "r.parquet")
    quarters = {"x": {"codes": ["2026-Q1", "2026-Q2"]}}
    used = {"measures": {"x": {}}} if kind.endswith(("precision", "decimals")) else {"attributes": quarters}
    found = []
    for path in ("r.csv", "r.parquet"):
        data = Microdata.model_validate({"folder": tmp_path, "records": {"unit": "unit", "path": path}, **used})
        with connect_records(data) as tables:
            reader = ContentReader(data, tables.sources.files, Memory(tmp_path / "none.json"))
            found.append(reader.read([["x"]]))
    assert found[0].same_as(found[1]) == (found[0].digest == found[1].digest) == same


READ = """
import sys
from pathlib import Path
from tests.engine.test_formats import microdata, opened

print([row["quarter"] for row in opened(microdata(Path(sys.argv[1]), path="firms.parquet"))])
"""


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Auckland"])
@pytest.mark.parametrize("stored", ["in nanoseconds", "as Spark did"])
def test_timestamps_count_for_their_period_wherever_the_machine_is(tmp_path: Path, zone: str, stored: str) -> None:
    at = pa.array([datetime(2026, 3, 31, 23, 30), datetime(2026, 4, 1, 0, 30)], pa.timestamp("ns"))
    table = pa.table({"firm": [1, 2], "place": ["01", "02"], "quarter": at, "pay": [1, 2]})
    pq.write_table(table, tmp_path / "firms.parquet", use_deprecated_int96_timestamps=stored == "as Spark did")
    command = [sys.executable, "-c", READ, str(tmp_path)]
    read = subprocess.run(command, env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=False)
    assert read.stdout.strip() == "['2026-Q1', '2026-Q2']", read.stderr


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+01:00"])
@pytest.mark.parametrize("first", ["the same", "a date", "a timestamp"])
def test_instants_in_a_time_zone_are_refused_as_periods(tmp_path: Path, engine: str, zone: str, first: str) -> None:
    (tmp_path / "firms").mkdir()
    at = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", tz=zone))
    before = {"the same": at.type, "a date": pa.date32(), "a timestamp": pa.timestamp("us")}[first]
    for name, kind in {"1": before, "2": at.type}.items():
        columns = {"firm": [int(name)], "place": ["01"], "quarter": at.cast(kind), "pay": [1]}
        pq.write_table(pa.table(columns), tmp_path / "firms" / f"{name}.parquet")
    data = microdata(tmp_path, path="firms").model_copy(update={"engine": engine})
    with pytest.raises(DataError) as refused:
        opened(data)
    assert "timestamps without a time zone" in str(refused.value)


@pytest.mark.parametrize(("pay", "factor", "cents"), [(1.15, 100, 115), (12.34, 100, 1234), (4.35, 1000, 4350)])
def test_a_factor_makes_exact_smallest_units(tmp_path: Path, pay: float, factor: int, cents: int) -> None:
    write(tmp_path / "firms.parquet", {"firm": [1], "place": ["01"], "quarter": ["2026-Q1"], "pay": [pay]})
    data = microdata(tmp_path, path="firms.parquet")
    assert opened(data.model_copy(update={"measures": {"pay": Measure(factor=factor)}}))[0]["pay"] == cents


AMOUNTS = {
    "single precision is the decimal that was written": (pa.array([329.7], pa.float32()), Measure(factor=10), 3297),
    "results of formulas are rounded when that is said": (
        pa.array([100 / 3]),
        Measure(factor=100, fractions="round"),
        3333,
    ),
    "a half of decimals is rounded away from 0": (
        pa.array([Decimal("0.285")], pa.decimal128(10, 3)),
        Measure(factor=100, fractions="round"),
        29,
    ),
    "a half of decimals that binary numbers are below": (
        pa.array([Decimal("1.005")], pa.decimal128(38, 3)),
        Measure(factor=100, fractions="round"),
        101,
    ),
    "a half below 0": (
        pa.array([Decimal("-2.5")], pa.decimal128(4, 1)),
        Measure(fractions="round", minimum=-100),
        -3,
    ),
    "decimals of very many digits": (
        pa.array([Decimal("0." + "3" * 30)], pa.decimal128(38, 30)),
        Measure(factor=100, fractions="round"),
        33,
    ),
    "no amount counts as what is said": (pa.array([None], pa.int64()), Measure(empty=0), 0),
}


@pytest.mark.parametrize(("pay", "measure", "counted"), AMOUNTS.values(), ids=list(AMOUNTS))
def test_an_amount_is_made_as_it_is_described(tmp_path: Path, pay: pa.Array, measure: Measure, counted: int) -> None:
    pq.write_table(
        pa.table({"firm": [1], "place": ["01"], "quarter": ["2026-Q1"], "pay": pay}), tmp_path / "firms.parquet"
    )
    data = microdata(tmp_path, path="firms.parquet").model_copy(update={"measures": {"pay": measure}})
    assert opened(data)[0]["pay"] == counted
    with connect_records(data) as tables:
        validate_records(data, tables, read_record_codes(data, tables))


def test_an_empty_amount_is_refused_with_what_helps(tmp_path: Path) -> None:
    pay = pa.array([None], pa.int64())
    pq.write_table(
        pa.table({"firm": [1], "place": ["01"], "quarter": ["2026-Q1"], "pay": pay}), tmp_path / "firms.parquet"
    )
    data = microdata(tmp_path, path="firms.parquet").model_copy(update={"measures": {"pay": Measure()}})
    with connect_records(data) as tables, pytest.raises(DataError, match="1 empty") as refusal:
        validate_records(data, tables, read_record_codes(data, tables))
    assert "empty = 0" in refusal.value.do


def test_what_a_factor_leaves_no_whole_number_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "firms.parquet", {"firm": [1], "place": ["01"], "quarter": ["2026-Q1"], "pay": [1.155]})
    data = microdata(tmp_path, path="firms.parquet").model_copy(update={"measures": {"pay": Measure(factor=100)}})
    with connect_records(data) as tables, pytest.raises(DataError, match="1 not whole"):
        validate_records(data, tables, read_record_codes(data, tables))


def test_spark_on_a_cluster_refuses_what_its_machines_cannot_read_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "firms.csv").write_text("no heading that would do")
    data = microdata(tmp_path, path="firms.csv").model_copy(
        update={"engine": "spark", "spark": {"master": "spark://head:7077"}}
    )
    with pytest.raises(EngineError, match="Parquet, which all machines"):
        opened(data)


KILLED = """
import os, signal, sys
from pathlib import Path
from sfumato.engine import connect, formats
from sfumato.release import load
from sfumato.starting.look import Files

def killed(*given):
    read = formats.read_into_parquet(*given)
    os.kill(os.getpid(), signal.SIGKILL)

connect.read_into_parquet = killed
with connect.open_tables(load(Path(sys.argv[1])).data):
    pass
"""


@pytest.mark.slow
def test_a_killed_run_leaves_a_copy_for_its_owner_alone_and_the_next_one_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    new_key(tmp_path / "sfumato.key")
    (tmp_path / "release.toml").write_text(RELEASE.format(name="any", source=as_csv(tmp_path)))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "release.toml")], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = temporary.iterdir()
    assert list(left.glob("*.parquet"))
    assert left.stat().st_mode & 0o777 == 0o700
    with open_tables(load(tmp_path / "release.toml").data):
        assert not left.exists()
    assert not list(temporary.iterdir())


@pytest.mark.slow
def test_check_and_run_tell_how_tables_are_read_and_what_was_guessed(tmp_path: Path) -> None:
    new_key(tmp_path / "sfumato.key")
    (tmp_path / "release.toml").write_text(RELEASE.format(name="any", source=as_csv(tmp_path)))
    for command in ("check", "run"):
        told = subprocess.run(
            [sys.executable, "-m", "sfumato", command, "release.toml"],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        words = " ".join(told.stdout.split())
        assert "Records read as csv with delimiter ; (guessed), encoding utf-8 (guessed), decimal , (guessed)" in words
        asked = subprocess.run(
            [sys.executable, "-m", "sfumato", command, "release.toml", "--json"],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        facts = json.loads(asked.stdout)["reading"]["records"]
        assert (facts["delimiter"], facts["dates"]) == (";", "2026-03-31")
        assert {"delimiter", "encoding", "decimal", "dates"} <= set(facts["guessed"])


@pytest.mark.slow
def test_keys_of_a_text_link_to_those_of_a_parquet_file(tiny: Path) -> None:
    """Jobs as text, workplaces and workers as Parquet: the same figures as from Parquet alone."""
    jobs = TINY["jobs"]
    (tiny / "jobs.csv").write_text("\n".join(",".join(row) for row in as_texts(jobs)))
    for name, workers in (
        ("numbers", TINY["workers"]["worker"]),
        ("texts", [f"{w}" for w in TINY["workers"]["worker"]]),
    ):
        write(tiny / "workers.parquet", TINY["workers"] | {"worker": workers})
        frames = [tiny_frame(tiny), tiny_frame(tiny, jobs={"path": "jobs.csv", "worker": "worker"})]
        counted = []
        for frame in frames:
            with connect(frame) as tables:
                check_columns(frame, tables)
                counted.append((name, validate(frame, tables, read_public_codes(frame, tables))))
        assert counted[0] == counted[1]


def test_days_of_a_panel_are_the_quarters_that_they_fall_in(tmp_path: Path) -> None:
    lines = ["worker,firm,day,pay,sex", "1,7,2026-01-15,10,F", "1,7,2026-04-30,10,F", "2,7,2026-06-30,20,M"]
    (tmp_path / "jobs.csv").write_text("\n".join(lines))
    (tmp_path / "firms.csv").write_text("firm\n7\n")
    jobs = {"path": "jobs.csv", "worker": "worker", "workplace": "firm", "period": "day", "earnings": "pay"}
    frame = Frame.model_validate(
        {
            "folder": tmp_path,
            "jobs": jobs | {"first": "2026Q1", "last": "2026Q2"},
            "workplaces": {"path": "firms.csv", "key": "firm"},
            "attributes": {"sex": {"codes": ["F", "M"]}},
        }
    )
    with connect(frame) as tables:
        assert sorted(tables.jobs.fetch()["day"].to_pylist()) == ["2026Q1", "2026Q2", "2026Q2"]
        check_columns(frame, tables)
        totals = validate(frame, tables, read_public_codes(frame, tables))
    assert (totals.jobs, totals.records, totals.periods) == (2, 3, 2)
