"""Texts as offices write them: what is read is what is meant, and what cannot be read says where and quotes nothing."""

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.connect import connect
from sfumato.engine.content import column_words
from sfumato.engine.guesses import Guess, OnDisk, Wanted, read_head
from sfumato.engine.texts import Texts
from sfumato.errors import DataError
from sfumato.frame.data import Frame
from sfumato.frame.sources import Role, Source

ROLES: dict[str, Role] = {"id": "text", "place": "text", "pay": "number", "weight": "weight", "period": "text"}


def read(
    folder: Path, *contents: str | bytes, name: str = "jobs.csv", roles: dict[str, Role] = ROLES, **options: Any
) -> tuple[pa.Table, Guess]:
    """Read texts, each a file, as one table."""
    files = []
    for place, content in enumerate(contents):
        path = folder / f"{place}-{name}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        files.append(OnDisk(named=f"jobs: {name}", path=path))
    wanted = Wanted(named="jobs", roles=roles, dated={"period": "2026-Q1"})
    source = Source.model_validate({"path": name, **options})
    with duckdb.connect() as con:
        guess = Texts(con, source, files, wanted, folder / "read.parquet").read()
    return pq.read_table(folder / "read.parquet"), guess


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table."""
    return list(zip(*table.to_pydict().values(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_delimiters_and_line_ends_are_found(tmp_path: Path, delimiter: str, ending: str) -> None:
    lines = [["id", "place", "pay"], ["A1", f'"x{delimiter}y"', "5"], ["A2", '"two\nlines"', "6"]]
    table, guess = read(tmp_path, "".join(delimiter.join(line) + ending for line in lines))
    assert guess.delimiter == delimiter
    assert rows(table) == [("A1", f"x{delimiter}y", 5), ("A2", "two\nlines", 6)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", ""),
        ("utf-8", "\ufeff"),
        ("latin-1", ""),
        ("windows-1252", ""),
        ("utf-16", ""),
        ("utf-16-be", "\ufeff"),
    ],
)
def test_letters_are_read_in_the_encoding_that_is_guessed(tmp_path: Path, encoding: str, mark: str) -> None:
    euro = "" if encoding == "latin-1" else "€"
    table, guess = read(tmp_path, f"{mark}id,place\nA1,Köln{euro}\nA2,Zürich\n".encode(encoding))
    assert rows(table) == [("A1", f"Köln{euro}"), ("A2", "Zürich")]
    assert guess.encoding == encoding.removesuffix("-be")
    assert "encoding" in guess.guessed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "packed"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", lambda content: pa.compress(content, codec="zstd", asbytes=True)),
    ],
)
def test_compressed_texts_are_read(tmp_path: Path, ending: str, packed: Any) -> None:
    for encoding in ("utf-8", "windows-1252"):
        table, _ = read(tmp_path, packed("id,place\nA1,Köln\n".encode(encoding)), name=f"jobs.csv{ending}")
        assert rows(table) == [("A1", "Köln")]


def test_codes_and_keys_keep_leading_zeros_and_every_sign(tmp_path: Path) -> None:
    table, _ = read(tmp_path, "id,place\n007,+1\n12,1e3\n5e2, 7\n1.0,-0\n")
    assert rows(table) == [("007", "+1"), ("12", "1e3"), ("5e2", " 7"), ("1.0", "-0")]


def test_keys_that_are_all_whole_numbers_are_whole_numbers(tmp_path: Path) -> None:
    table, _ = read(tmp_path, "id,place,pay\n7,-3,1\n9223372036854775807,0,\n,12,3\n")
    assert list(table.schema.types) == [pa.int64()] * 3
    assert rows(table) == [(7, -3, 1), (2**63 - 1, 0, None), (None, 12, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "late", ["007", "5e2", "1.0", "1_0", " 7", "7 ", "+7", "-0", "00", "0x1F", "9223372036854775808", "A"]
)
@pytest.mark.parametrize("quoted", [False, True])
def test_one_key_far_below_that_is_no_usual_whole_number_makes_all_of_them_texts(
    tmp_path: Path, late: str, quoted: bool
) -> None:
    many = "".join(f"{number},{number}\n" for number in range(60_000))
    written = f'"{late}"' if quoted else late
    table, _ = read(tmp_path, f"id,place\n{many}{written},60000\n")
    assert table["id"].type == pa.string()
    assert (table["id"][0].as_py(), table["id"][-1].as_py()) == ("0", late)
    assert table["place"].type == pa.int64()


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(["0", "7", "10", "-1", "007", "5e2", "1.5", "", "A", "12345678901234567890"]), min_size=1)
)
def test_a_column_has_the_words_of_its_texts_or_of_its_whole_numbers(
    tmp_path_factory: pytest.TempPathFactory, values: list[str]
) -> None:
    table, _ = read(tmp_path_factory.mktemp("texts"), "id,place\n" + "".join(f"{value},x\n" for value in values))
    whole = all(value == "" or (value.lstrip("-").isdigit() and str(int(value)) == value) for value in values)
    whole = whole and all(len(value) < 19 for value in values)
    parsed = [None if value == "" else int(value) if whole else value for value in values]
    same = pa.array(parsed, pa.int64() if whole else pa.string())
    assert column_words(table["id"].combine_chunks()).tolist() == column_words(same).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "thousands", "decimal", "meant"),
    [
        (["1.5", "1200"], "", ".", [1.5, 1200]),
        (["1,5", "1200"], "", ",", [1.5, 1200]),
        (["1.200,5", "3"], ".", ",", [1200.5, 3]),
        (["1,200.5", "3"], ",", ".", [1200.5, 3]),
        (["1 200,5", "3"], " ", ",", [1200.5, 3]),
        (["1\u00a0200,5", "1\u202f000"], " ", ",", [1200.5, 1000]),
        (["1'200.5", "3"], "'", ".", [1200.5, 3]),
        (["-1e3", "+5"], "", ".", [-1000, 5]),
    ],
)
def test_marks_in_numbers_are_understood(
    tmp_path: Path, numbers: list[str], thousands: str, decimal: str, meant: list[float]
) -> None:
    lines = "".join(f'A;"{number}"\n' for number in numbers)
    for options in ({}, {"thousands": thousands, "decimal": decimal}):
        table, guess = read(tmp_path, f"id;pay\n{lines}", **options)
        assert table["pay"].to_pylist() == meant
        assert (guess.thousands, guess.decimal) == (thousands, decimal)


WHOLE = "".join(f"A;{number}\n" for number in range(60_000))
"""More than is looked at in the beginning of a file."""
THOUSANDS_OR_DECIMALS = {
    "points": ("A;1.250\nB;458\n", ".", "row 1 "),
    "commas": ("A;458\nB;-2,531\nC;3,100\n", ",", r"row 2 [\s\S]*1 other row,"),
    "both, of which one groups": ("A;1.250\nB;2,531\n", ".", "row 1 "),
    "far below": (f"{WHOLE}A;1.250\n", ".", "row 60,001 "),
    "besides a word that may be a number": ("A;1.250\nB;nan\nC;1e3\n", ".", "row 1 "),
}


@pytest.mark.parametrize(("lines", "mark", "where"), THOUSANDS_OR_DECIMALS.values(), ids=list(THOUSANDS_OR_DECIMALS))
def test_a_mark_that_may_group_thousands_or_come_before_decimals_is_asked_for(
    tmp_path: Path, lines: str, mark: str, where: str
) -> None:
    with pytest.raises(DataError, match=f"column 'pay', {where}") as refused:
        read(tmp_path, f"id;pay\n{lines}")
    assert refused.value.do == f'say which it is: thousands = "{mark}" or decimal = "{mark}"'


def test_points_between_commas_come_before_decimals(tmp_path: Path) -> None:
    assert read(tmp_path, "id,pay\nA,1.250\nB,2.531\n")[0]["pay"].to_pylist() == [1.25, 2.531]
    with pytest.raises(DataError, match="row 1 "):
        read(tmp_path, 'id,pay\nA,"1,250"\nB,458\n')


@pytest.mark.parametrize(
    ("options", "meant"), [({"thousands": "."}, 1250), ({"decimal": "."}, 1.25), ({"decimal": ","}, 1250)]
)
def test_what_is_said_of_a_mark_holds(tmp_path: Path, options: dict[str, str], meant: float) -> None:
    assert read(tmp_path, "id;pay\nA;1.250\n", **options)[0]["pay"].to_pylist() == [meant]


@pytest.mark.parametrize(
    ("telling", "meant"),
    [("12,5", 1250), ("1.234.567", 1250), ("12.5", 1.25), ("0.125", 1.25), ("1250.500", 1.25), ("1,234.5", 1.25)],
)
@pytest.mark.parametrize("above", ["", WHOLE], ids=["at the beginning", "far below"])
def test_one_number_that_tells_what_a_mark_means_is_enough_wherever_it_is(
    tmp_path: Path, telling: str, meant: float, above: str
) -> None:
    table, _ = read(tmp_path, f"id;pay\nZ;1.250\n{above}B;{telling}\n")
    assert dict(rows(table))["Z"] == meant
    weighted = "".join(f"{line};1\n" for line in above.splitlines())
    table, _ = read(tmp_path, f"id;pay;weight\nZ;1.250;1\n{weighted}B;2;{telling}\n")
    assert {row[0]: row[1] for row in rows(table)}["Z"] == meant


@pytest.mark.parametrize("besides", ["k. A.", "9"])
def test_marks_of_numbers_of_which_classes_are_made_are_asked_for(tmp_path: Path, besides: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(f"id;size\nA;1.250\nB;{besides}\n")
    wanted = Wanted(named="jobs", roles={"id": "text", "size": "text"}, classed=frozenset({"size"}))
    files, target = [OnDisk(named="jobs: jobs.csv", path=path)], tmp_path / "read.parquet"
    with duckdb.connect() as con, pytest.raises(DataError, match="column 'size', row 1"):
        Texts(con, Source.model_validate({"path": "jobs.csv"}), files, wanted, target).read()


def test_thousands_are_no_part_of_a_number_below_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="row 2"):
        read(tmp_path, "id;pay\nA;1.250\nB;0.125\n", thousands=".")


@pytest.mark.parametrize("slip", ["12,5x", "12.5"])
def test_one_number_that_cannot_be_read_is_found_among_those_that_can(tmp_path: Path, slip: str) -> None:
    lines = "".join(f"A;{number},{number % 90 + 10}\n" for number in range(300))
    with pytest.raises(DataError, match="row 301 below") as refused:
        read(tmp_path, f"id;pay\n{lines}B;{slip}\n{lines}")
    assert (refused.value.expected, refused.value.found) == ("a number, with , before decimals", "something else")


def test_marks_are_guessed_from_all_files_and_each_has_its_own_encoding(tmp_path: Path) -> None:
    table, guess = read(tmp_path, "id;pay\nä;5\n", "pay;id\n1,5;ü\n".encode("latin-1"), "id;pay\n")
    assert sorted(rows(table)) == [("ä", 5), ("ü", 1.5)]
    assert guess.decimal == ","


def test_words_for_no_value_are_none_in_codes_keys_and_numbers(tmp_path: Path) -> None:
    table, _ = read(tmp_path, 'id,place,pay\nNA,"NA",NA\n1,.,.\n2,B, NA \n', missing=["NA", "."])
    assert rows(table) == [(None, None, None), (1, None, None), (2, "B", None)]


def test_the_heading_is_found_below_other_lines(tmp_path: Path) -> None:
    above = 'Register of jobs\n"as of\n31 March"\n\n'
    for options in ({}, {"skip": 4}):
        table, guess = read(tmp_path, f"{above}id,place\n1,A\n2,B\n", **options)
        assert rows(table) == [(1, "A"), (2, "B")]
        assert guess.skip == 4
    assert "skip 4 (guessed)" in read(tmp_path, f"{above}id,place\n1,A\n")[1].in_words()


def test_a_heading_that_is_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    table, _ = read(tmp_path, "id,place")
    assert (table.num_rows, table.column_names) == (0, ["id", "place"])


def test_lines_that_end_in_several_ways_are_read(tmp_path: Path) -> None:
    assert rows(read(tmp_path, "id,place\r\n1,A\n2,B\r\n")[0]) == [(1, "A"), (2, "B")]


@pytest.mark.parametrize(
    ("dates", "shown"),
    [
        (["2026-01-31", "2026-12-01 10:00:00"], "2026-03-31"),
        (["31.01.2026", "1.12.2026"], "31.03.2026"),
        (["31/01/2026", "01/12/2026"], "31/03/2026"),
        (["01/31/2026", "12/01/2026"], "03/31/2026"),
    ],
)
def test_periods_that_are_dates_are_dates(tmp_path: Path, dates: list[str], shown: str) -> None:
    table, guess = read(tmp_path, "id,period\n" + "".join(f"A,{date}\n" for date in dates))
    assert [str(day) for day in table["period"].to_pylist()] == ["2026-01-31", "2026-12-01"]
    assert (guess.dates, "dates" in guess.guessed) == (shown, True)


def test_dates_that_may_be_read_in_two_ways_are_asked_for(tmp_path: Path) -> None:
    ambiguous = "id,period\nA,01/02/2026\n"
    with pytest.raises(DataError, match='dates = "31/03/2026"'):
        read(tmp_path, ambiguous)
    table, _ = read(tmp_path, ambiguous, dates="03/31/2026")
    assert str(table["period"][0]) == "2026-01-02"
    table, _ = read(tmp_path, "id,period\nA,20260102\n", dates="20260331")
    assert str(table["period"][0]) == "2026-01-02"


NO_DATES = {
    "a day that there is not": ("35.03.2026", {}),
    "another way of writing": ("2026-03-31", {}),
    "a word": ("n/a", {}),
    "a year with two digits": ("31.03.26", {"dates": "31.03.2026"}),
    "a year that is guessed with four": ("31.3.26", {}),
    "a year that nobody means": ("31.03.0206", {"dates": "31.03.2026"}),
    "a year far ahead": ("31.03.2260", {"dates": "31.03.2026"}),
}


@pytest.mark.parametrize(("slip", "options"), NO_DATES.values(), ids=list(NO_DATES))
def test_what_is_no_date_among_dates_is_refused_with_its_row(
    tmp_path: Path, slip: str, options: dict[str, str]
) -> None:
    lines = "A,31.03.2026\nB,30.06.2026\n" * 10
    with pytest.raises(DataError, match="column 'period', row 21 below the heading") as refused:
        read(tmp_path, f"id,period\n{lines}A,{slip}\nB,{slip}\n{lines}", **options)
    assert refused.value.expected == "a date from 1800 to 2200, written as 31.03.2026 is"
    assert refused.value.found == "something else, there and in 1 other row"


def test_dates_that_are_written_in_a_way_that_is_not_known_are_asked_for(tmp_path: Path) -> None:
    short = "id,period\nA,31.03.26\n"
    with pytest.raises(DataError, match="written in another way"):
        read(tmp_path, short)
    assert str(read(tmp_path, short, dates="31.03.26")[0]["period"][0]) == "2026-03-31"


def test_words_for_no_value_are_none_among_dates(tmp_path: Path) -> None:
    table, guess = read(tmp_path, "id,period\nA,n/a\nB,31.03.2026\nC, n/a \nD,\n", missing=["n/a"])
    assert ([str(day) for day in table["period"].to_pylist()], guess.dates) == (
        ["None", "2026-03-31", "None", "None"],
        "31.03.2026",
    )


SECRET = "Meier"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("", {}, "an empty file"),
        (f"id,place,pay\n1,A,5\n2,{SECRET}\n", {}, r"line 3.*\n.*3 columns"),
        (f"id,place,pay\n1,A,5\n2,{SECRET},5,6\n", {}, r"line 3.*\n.*3 columns"),
        (f'id,place\n1,"{SECRET}\n2,B\n', {}, r"line 2"),
        (f"id,pay\n1,5\n2,{SECRET}\n3,{SECRET}\n", {}, r"column 'pay', row 2 below the heading[\s\S]*1 other row"),
        (f"id,pay\n1,1.200\n2,{SECRET}\n", {"thousands": ".", "decimal": ","}, "row 2"),
        ("id,pay\n1,1.5\n", {"decimal": ","}, "row 1"),
        ("id,pay\n1,12.00.5\n", {"thousands": ".", "decimal": ","}, "row 1"),
        ("id,period\n1,2026-01-31\n2,2026-02-30\n", {"dates": "2026-03-31"}, r"'period', row 2[\s\S]*a date"),
        (f"id,id\n1,{SECRET}\n", {}, "'id' several times"),
        ("id,place\n1,Köln\n".encode("latin-1"), {"encoding": "utf-8"}, "letters in utf-8"),
        ("id,place\n1,Köln\n", {"encoding": "klingon"}, "not known"),
        ("id,place\n" + "1,A\n" * 100_000 + "2,Köln\n", {"encoding": "ascii"}, None),
        (("id,place\n" + "1,A\n" * 100_000 + "2,Köln\n").encode("latin-1"), {}, r"line 100,002[\s\S]*utf-8"),
        (("id,place\n1,ö\n" + "1,A\n" * 100_000 + "2,5 €\n").encode("windows-1252"), {}, "letters in latin-1"),
    ],
)
def test_what_cannot_be_read_says_where_and_quotes_nothing(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], expected: str | None
) -> None:
    if expected is None:
        read(tmp_path, content, **options)
        return
    with pytest.raises(DataError, match=expected) as refused:
        read(tmp_path, content, **options)
    assert SECRET not in str(refused.value)


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="other files of the table have: place"):
        read(tmp_path, "id,place\n1,A\n", "id,palce\n1,A\n")


def test_columns_of_no_interest_may_be_called_anything(tmp_path: Path) -> None:
    table, _ = read(tmp_path, 'x,x,,"a ""b""",ID (old),id\n1,2,3,4,5,6\n')
    assert rows(table) == [(6,)]


@pytest.mark.parametrize(
    ("word", "meant"), [("true", True), ("J", None), ("Yes", True), ("0", False), ("f", False), ("N", False)]
)
def test_consent_is_true_or_false_in_usual_words(tmp_path: Path, word: str, meant: bool | None) -> None:
    roles: dict[str, Role] = {"id": "text", "asked": "truth"}
    if meant is None:
        with pytest.raises(DataError, match="true or false"):
            read(tmp_path, f"id,asked\n1,{word}\n", roles=roles)
    else:
        assert rows(read(tmp_path, f"id,asked\n1,{word}\n", roles=roles)[0]) == [(1, meant)]


def test_a_text_can_be_looked_at_without_a_release(tmp_path: Path) -> None:
    path = tmp_path / "register.csv"
    path.write_text("Jobs of 2026\nperson;firm\n1;007\n")
    head = read_head(path, path.name, Source.model_validate({"path": path.name}), Wanted(named="", roles={}))
    assert (head.delimiter, head.columns, head.values("firm"), head.skip) == (";", ("person", "firm"), ["007"], 1)


def heads(folder: Path, *numbers: str, **marks: str) -> list[float]:
    """Headcounts of a register as they are read."""
    (folder / "register.csv").write_text("id;n\n" + "".join(f"{at};{n}\n" for at, n in enumerate(numbers)))
    jobs = {"path": "register.csv", "workplace": "id", "employees": "n", **marks}
    frame = Frame.model_validate({"jobs": jobs, "folder": folder})
    with connect(frame) as tables:
        assert tables.register is not None
        return sorted(tables.register.fetch()["_heads0"].to_pylist())


@pytest.mark.parametrize(("mark", "far"), [(".", 0), (",", 0), (".", 50_000), (",", 50_000)])
def test_headcounts_that_may_be_thousands_are_asked_for(tmp_path: Path, mark: str, far: int) -> None:
    numbers = [*["7"] * far, "12", f"1{mark}000", f"20{mark}000"]
    with pytest.raises(DataError) as refused:
        heads(tmp_path, *numbers)
    assert "three digits, there and in 1 other row" in str(refused.value)
    assert f'thousands = "{mark}"' in str(refused.value)
    assert heads(tmp_path, *numbers, thousands=mark)[-3:] == [12, 1000, 20000]
    assert heads(tmp_path, *numbers, decimal=mark)[-3:] == ([7, 12, 20] if far else [1, 12, 20])


@pytest.mark.parametrize("number", ["1.0", "1.000000", "0.000", "01.000"])
def test_headcounts_with_other_decimals_are_read_as_they_are(tmp_path: Path, number: str) -> None:
    assert heads(tmp_path, "2.000", number) == [float(number), 2]


def test_headcounts_with_two_groups_of_digits_need_no_question(tmp_path: Path) -> None:
    assert heads(tmp_path, "1.000", "1.000.000") == [1000, 1000000]
