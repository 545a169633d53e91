"""Columns of any name, and attributes made out of columns: the same on every engine, exact, and refused in numbers."""

import csv
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.cells import Dimension
from sfumato.engine.connect import connect
from sfumato.engine.content import ContentReader
from sfumato.engine.memory import Memory
from sfumato.engine.records import connect_records, validate_records
from sfumato.engine.validate import check_columns, read_public_codes, validate
from sfumato.errors import DataError
from sfumato.frame.attributes import Attribute
from sfumato.frame.data import Frame
from sfumato.frame.records import Microdata
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate import tabulate
from tests.conftest import tiny_frame, write
from tests.engine.test_tabulate import QUESTIONS, as_dict, by_hand
from tests.tiny import TINY

ODD = {
    "workplace": "_workplace",  # as a column of our own is called
    "key": "ARBEITSSTÄTTE; DROP TABLE jobs; --",
    "worker": "_jobs",
    "person": 'Pers."Nr" [alt]',
    "place": "a.b.c",
    "industry": "INDUSTRY",
    "sex": "`sex` or 'gender'",
    "age": "SELECT",
    "earnings": "NET.PROFIT (€)",
}
FILES = {
    "jobs": {ODD["workplace"]: "workplace", ODD["worker"]: "worker", ODD["earnings"]: "earnings"},
    "workplaces": {ODD["key"]: "workplace", ODD["place"]: "place", ODD["industry"]: "industry"},
    "workers": {ODD["person"]: "worker", ODD["sex"]: "sex", ODD["age"]: "age"},
}
"""The tiny tables with odd names."""


def write_odd(folder: Path, form: str) -> None:
    for name, columns in FILES.items():
        table = {odd: [str(v) if form == "csv" else v for v in TINY[name][plain]] for odd, plain in columns.items()}
        first = next(iter(table))
        twin = first.swapcase()  # differs from another column in case only
        table = {**table, "_block": [0] * len(table[first]), twin: ["twin"] * len(table[first])}
        if form == "csv":
            with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as out:
                csv.writer(out).writerows([table, *zip(*table.values(), strict=True)])
        else:
            write(folder / f"{name}.parquet", table)


def odd_frame(folder: Path, form: str, engine: str) -> Frame:
    described = tiny_frame(folder).model_dump()["attributes"]
    attributes = {
        name: {"codes": dict(zip(about["codes"]["codes"], about["codes"]["labels"], strict=True)), "column": ODD[name]}
        for name, about in described.items()
    }
    return tiny_frame(
        folder,
        engine=engine,
        jobs={"path": f"jobs.{form}", "worker": ODD["worker"], "workplace": ODD["workplace"]},
        workplaces={"path": f"workplaces.{form}", "key": ODD["key"]},
        workers={"path": f"workers.{form}", "key": ODD["person"]},
        attributes=attributes,
        measures={"earnings": {"column": ODD["earnings"]}},
    )


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_columns_of_any_name_are_counted(tmp_path: Path, engine: str, form: str) -> None:
    write_odd(tmp_path, form)
    frame = odd_frame(tmp_path, form, engine)
    with connect(frame) as tables:
        check_columns(frame, tables)
        totals = validate(frame, tables, read_public_codes(frame, tables))
        found = tabulate(frame, tables, QUESTIONS)
        reader = ContentReader(frame, tables.sources.files, Memory(tmp_path / "memory.json"))
        content = reader.read([["place", "sex", "earnings"]])
    assert (totals.jobs, totals.establishments, totals.workers) == (8, 4, 7)
    assert {name: as_dict(cells) for name, cells in found.items()} == {n: by_hand(q) for n, q in QUESTIONS.items()}
    assert {name: set(table.columns) for name, table in content.tables.items()} == {
        "jobs": {ODD["earnings"]},
        "workplaces": {ODD["place"]},
        "workers": {ODD["sex"]},
    }


def test_keys_of_two_tables_may_differ_in_case_only(tiny: Path, engine: str) -> None:
    write(tiny / "workplaces.parquet", {n.replace("work", "WORK"): v for n, v in TINY["workplaces"].items()})
    frame = tiny_frame(tiny, engine=engine, workplaces={"path": "workplaces.parquet", "key": "WORKplace"})
    with connect(frame) as tables:
        check_columns(frame, tables)
        validate(frame, tables, read_public_codes(frame, tables))
        found = tabulate(frame, tables, QUESTIONS)
    assert {name: as_dict(cells) for name, cells in found.items()} == {n: by_hand(q) for n, q in QUESTIONS.items()}


def test_files_that_order_columns_of_one_name_otherwise_are_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    for name, order in (("a", ["workplace", "id", "ID"]), ("b", ["workplace", "ID", "id"])):
        write(tmp_path / "jobs" / f"{name}.parquet", {column: [1] for column in order})
    with (
        pytest.raises(DataError, match="differ in case only"),
        connect(Frame(jobs={"path": "jobs", "worker": "id"}, folder=tmp_path)),
    ):
        pass


def records(folder: Path, columns: dict[str, Any], attributes: dict[str, Any], **changes: Any) -> Microdata:
    rows = len(next(iter(columns.values())))
    pq.write_table(pa.table({"unit": list(range(rows)), **columns}), folder / "records.parquet")
    described = {"records": {"path": "records.parquet", "unit": "unit"}, "attributes": attributes, "folder": folder}
    return Microdata(**(described | changes))


def codes(data: Microdata, *names: str) -> list[tuple[str, ...]]:
    """The codes of every row, checked."""
    with connect_records(data) as tables:
        declared = {name: found for name in data.attributes if (found := data.declared_codes(name))}
        validate_records(data, tables, declared, looked_at=declared)
        rows = tables.records.select("unit", *names).fetch().sort_by("unit")
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


def test_records_have_weights_periods_units_and_measures_of_any_name(tmp_path: Path, engine: str) -> None:
    columns = {
        "_unit": ["a", "b"],
        "Enter.prise": ["x", "y"],
        "_Weight": [1.5, 2.0],
        "_rw 1": [1.0, 1.0],
        "_rw 2": [2.0, 2.0],
        "Jahr/Monat": ["2025-01", "2025-02"],
        "_value": [3, 4],
        "VALUE": [5, 6],
    }
    data = records(
        tmp_path,
        columns,
        {"month": {"column": "Jahr/Monat", "codes": ["2025-01", "2025-02"]}},
        measures={"profit": {"column": "_value"}, "sales": {"column": "VALUE"}},
        records={
            "path": "records.parquet",
            "unit": "_unit",
            "levels": ["Enter.prise"],
            "weight": "_Weight",
            "period": "month",
            "replicates": {"columns": "_rw*", "rule": "jackknife"},
        },
        engine=engine,
    )
    with connect_records(data) as tables:
        totals = validate_records(data, tables, {"month": data.declared_codes("month")})
        sums = tables.records.row(profit="sum(profit)", sales="sum(sales)")
        reader = ContentReader(data, tables.sources.files, Memory(tmp_path / "memory.json"))
        content = reader.read([["month", "profit"]])
    assert (totals.records, sums) == (2, {"profit": 7, "sales": 11})
    assert set(content.tables["records"].columns) == set(columns) - {"_unit"}
    assert content.tables["records"].key_columns == ("_unit", "Jahr/Monat")


CLASSES = {"below 0.3": 0, "0.3": "0.3", "10": 10, "1e6": 1_000_000}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.0, 0.29, 0.3, 9.99, 10.0, 1e6], pa.float64()),
        ([0.0, 0.29, 0.3, 9.99, 10.0, 1e6], pa.float32()),
        ([Decimal(v) for v in ("0", "0.29", "0.30", "9.99", "10", "1000000")], pa.decimal128(12, 2)),
        (["0", " 0.29", "0.3", "9.99", "10.", "1000000"], pa.string()),
    ],
)
def test_classes_begin_exactly_at_their_number(tmp_path: Path, engine: str, values: list[Any], kind: Any) -> None:
    data = records(
        tmp_path, {"n": pa.array(values, kind)}, {"size": {"column": "n", "classes": CLASSES}}, engine=engine
    )
    assert codes(data, "size") == [("below 0.3",), ("below 0.3",), ("0.3",), ("0.3",), ("10",), ("1e6",)]


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    starts=st.lists(st.fractions(-1000, 1000, max_denominator=1000), min_size=1, max_size=5, unique=True),
    values=st.lists(st.decimals(-1000, 2000, places=3), min_size=1, max_size=20),
    scale=st.sampled_from([0, 3]),
)
def test_classes_of_decimals_and_whole_numbers_are_those_of_fractions(
    tmp_path: Path, starts: list[Fraction], values: list[Decimal], scale: int
) -> None:
    least = [min(starts) - 5000, *sorted(starts)]
    if scale == 0:
        values = [Decimal(int(value)) for value in values]
    column = pa.array(values, pa.decimal128(20, 3)) if scale else pa.array([int(value) for value in values])
    classes = {str(place): start for place, start in enumerate(least)}
    found = codes(records(tmp_path, {"n": column}, {"size": {"column": "n", "classes": classes}}), "size")
    assert found == [(str(sum(start <= Fraction(value) for start in least) - 1),) for value in values]


def test_whole_numbers_beyond_53_bits_stay_apart_in_classes(tmp_path: Path, engine: str) -> None:
    large = 2**60
    classes = {"low": 0, "high": large}
    made = {"size": {"column": "n", "classes": classes}}
    assert codes(records(tmp_path, {"n": [large - 1, large]}, made, engine=engine), "size") == [("low",), ("high",)]


def test_several_attributes_are_made_of_one_column(tmp_path: Path, engine: str) -> None:
    attributes = {
        "division": {"column": "NACE code", "digits": 2, "codes": ["01", "10", "62"]},
        "sector": {"column": "NACE code", "digits": 1, "recode": {"goods": ["0", "1"], "services": "*"}},
        "whole": {"column": "NACE code", "codes": ["01.1", "10.2", "62.0"]},
        "farm": {"column": "NACE code", "recode": {"wheat": "01.1", "other": ["*"]}},
    }
    data = records(tmp_path, {"NACE code": ["01.1", "10.2", "62.0"]}, attributes, engine=engine)
    assert codes(data, *attributes) == [
        ("01", "goods", "01.1", "wheat"),
        ("10", "goods", "10.2", "other"),
        ("62", "services", "62.0", "other"),
    ]


def test_a_column_of_codes_has_classes_too_in_a_text_file(tmp_path: Path, engine: str) -> None:
    (tmp_path / "records.csv").write_text("unit,age\na,05\nb,17\nc,70\n")
    data = Microdata(
        records={"path": "records.csv", "unit": "unit"},
        attributes={
            "years": {"column": "age", "codes": ["05", "17", "70"]},
            "group": {"column": "age", "classes": {"young": 0, "old": "17.5"}},
        },
        folder=tmp_path,
        engine=engine,
    )
    assert codes(data, "years", "group") == [("05", "young"), ("17", "young"), ("70", "old")]


SIZED = {
    "first": {"column": "n", "digits": 1, "codes": ["0", "1", "3", "9"]},
    "size": {"column": "n", "classes": {"small": 0, "large": 10, "huge": "1000.5"}},
}
"""Classes of a column that is text, because it has codes too."""


@pytest.mark.parametrize(
    ("numbers", "marks"),
    [
        (["03", "12,5", "1.000,5", "9.999"], {"decimal": ",", "thousands": "."}),
        (["03", "12,5", "1.000,5", "9.999,0"], {}),
        (["03", "12.5", "1'000.5", "9'999"], {}),
        (["03", "12,5", "1\u00a0000,5", "9 999"], {}),
        (["03", "12.5", "1000.5", "9999."], {}),
        (["03", "12,5", "1000,5", "9999"], {"decimal": ","}),
    ],
)
def test_classes_of_codes_are_of_the_numbers_that_the_marks_of_the_file_make(
    tmp_path: Path, engine: str, numbers: list[str], marks: dict[str, str]
) -> None:
    (tmp_path / "records.csv").write_text("unit;n\n" + "".join(f"{at};{n}\n" for at, n in enumerate(numbers)))
    source = {"path": "records.csv", "unit": "unit", "delimiter": ";", **marks}
    data = Microdata(records=source, attributes=SIZED, folder=tmp_path, engine=engine)
    assert codes(data, "size") == [("small",), ("large",), ("huge",), ("huge",)]


@pytest.mark.parametrize("number", ["1.00", "1,000.5", "1.0000", "12.345.6", "1e3", "."])
def test_what_the_marks_of_the_file_make_no_number_is_in_no_class(tmp_path: Path, number: str) -> None:
    (tmp_path / "records.csv").write_text(f"unit;n\n1;{number}\n2;3,5\n")
    source = {"path": "records.csv", "unit": "unit", "decimal": ",", "thousands": "."}
    data = Microdata(records=source, attributes={"size": SIZED["size"], "all": {"column": "n", "recode": {"x": "*"}}})
    with pytest.raises(DataError, match="1 rows") as refused:
        codes(data.model_copy(update={"folder": tmp_path}), "size")
    assert number not in str(refused.value).replace("1 rows", "")


def test_texts_of_a_workbook_that_has_marks_are_in_classes_only_where_they_are_whole(tmp_path: Path) -> None:
    # A cell with the number 1.234 and one with the text 1.234 cannot be told apart among texts.
    from tests.engine.test_formats import workbook

    data = Microdata(
        records={"path": "records.xlsx", "unit": "unit", "thousands": "."}, attributes=SIZED, folder=tmp_path
    )
    workbook(tmp_path / "records.xlsx", ("unit", "n"), (1, "03"), (2, 12))
    assert codes(data, "size") == [("small",), ("large",)]
    workbook(tmp_path / "records.xlsx", ("unit", "n"), (1, "03"), (2, 1.234), (3, "1.234"))
    with pytest.raises(DataError, match="2 rows"):
        codes(data, "size")


def test_codes_that_are_no_numbers_do_not_change_how_measures_are_read(tmp_path: Path) -> None:
    (tmp_path / "records.csv").write_text("unit;n;pay\n1;12.5;3,25\n2;unknown;1,75\n")
    source = {"path": "records.csv", "unit": "unit"}
    measures = {"pay": {"factor": 100}}
    with connect_records(Microdata(records=source, attributes=SIZED, measures=measures, folder=tmp_path)) as tables:
        assert sorted(tables.records.fetch()["pay"].to_pylist()) == [175, 325]


def test_rows_without_a_code_have_that_for_empty_ones(tmp_path: Path, engine: str) -> None:
    attributes = {
        "known": {"column": "c", "codes": ["A", "none"], "empty": "none"},
        "group": {"column": "c", "recode": {"a": "A"}, "empty": "none"},
        "first": {"column": "c", "digits": 1, "codes": ["A", "none"], "empty": "none"},
        "size": {"column": "n", "classes": {"some": 0}, "empty": "some"},
    }
    data = records(tmp_path, {"c": ["A", None, "", " "], "n": [1, None, 2, 3]}, attributes, engine=engine)
    assert codes(data, *attributes) == [("A", "a", "A", "some"), *[("none", "none", "none", "some")] * 3]
    assert [data.declared_codes(name).codes for name in ("group", "size")] == [("a", "none"), ("some",)]


OUTSIDE = {
    "below all classes": ({"size": {"column": "n", "classes": {"some": 0}, "empty": "none"}}, "2 rows outside"),
    "unknown to a recode": ({"group": {"column": "c", "recode": {"a": "A"}, "empty": "none"}}, "1 rows outside"),
    "empty, and no code for that": ({"group": {"column": "c", "recode": {"a": ["A", "SECRET"]}}}, "1 rows without one"),
    "not finite": ({"size": {"column": "x", "classes": {"some": -100}}}, "2 rows outside"),
    "no numbers": ({"size": {"column": "c", "classes": {"some": -100}, "empty": "none"}}, "2 rows outside"),
    "of no suitable type": ({"size": {"column": "x", "digits": 1, "codes": ["1"]}}, "a column of type double"),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_no_rule_names_is_counted_and_never_shown(tmp_path: Path, engine: str, case: str) -> None:
    attributes, found = OUTSIDE[case]
    columns = {"n": [-77, -78, None], "c": ["A", "SECRET", None], "x": [1.0, float("nan"), float("inf")]}
    with pytest.raises(DataError) as error:
        codes(records(tmp_path, columns, attributes, engine=engine), *attributes)
    assert error.value.found.startswith(found)
    assert not any(word in str(error.value) for word in ("SECRET", "77", "78"))


def test_attributes_of_jobs_are_made_where_they_belong(tiny: Path, engine: str) -> None:
    described = {
        "place": {"codes": ["A", "B"]},
        "industry": {"digits": 1},
        "sex": {"recode": {"women": "F", "men": "M"}, "codes": {"women": "Women", "men": "Men"}},
        "adult": {"column": "age", "classes": {"no": 1, "yes": 2}},
    }
    frame = tiny_frame(tiny, engine=engine, attributes=described)
    by = (Dimension(name="industry", codes=("1", "6")), Dimension(name="adult", codes=("no", "yes")))
    asked = Question(by=by, where={"sex": ("women",)})
    with connect(frame) as tables:
        check_columns(frame, tables)
        lists = read_public_codes(frame, tables)
        validate(frame, tables, lists)
        found = as_dict(tabulate(frame, tables, {"": asked})[""])
    assert lists["industry"].codes == ("1", "6")
    assert {cell: count for cell, (count, *_) in found.items()} == {
        ("1", "no"): 1,
        ("1", "yes"): 1,
        ("6", "no"): 1,
        ("6", "yes"): 2,
    }


def test_a_codelist_that_lacks_the_code_for_empty_rows_has_it_added(tmp_path: Path) -> None:
    (tmp_path / "nace.csv").write_text("code,label,parent\nA,Farms,\n01,Crops,A\n")
    described = {"codelist": {"file": "nace.csv", "level": 2}}
    added = Attribute.model_validate({**described, "empty": "unknown"}).declared(tmp_path)
    assert added is not None
    assert (added.codes, added.labels) == (("01", "unknown"), ("Crops", "Unknown"))
    assert (added.parents, added.levels) == (("A", None), (2, 2))
    plain = Attribute.model_validate(described).declared(tmp_path)
    assert Attribute.model_validate({**described, "empty": "01"}).declared(tmp_path) == plain


REFUSED = {
    "digits of a confidential attribute": ({"sex": {"digits": 1}}, "its codes cannot be read off the data"),
    "a code for empty rows of a confidential one": (
        {"sex": {"empty": "none"}},
        "its codes cannot be read off the data",
    ),
    "two ways": ({"sex": {"digits": 1, "classes": {"a": 0}}}, "`classes` make codes of numbers"),
    "classes that go down": ({"age": {"classes": {"a": 5, "b": 0}}}, "`classes` go up"),
    "classes of one number": ({"age": {"classes": {"a": "0.5", "b": "1/2"}}}, "`classes` go up"),
    "a code in two": ({"sex": {"recode": {"a": ["F"], "b": ["F"]}}}, "each code of the column once"),
    "a new code of nothing": ({"sex": {"recode": {"a": []}}}, "at least one code"),
    "codes that lack one": ({"sex": {"recode": {"a": "F", "b": "M"}, "codes": ["a"]}}, "'b' is made of the column"),
    "codes that lack that for empty": ({"sex": {"codes": ["F"], "empty": "none"}}, "'none' is made of the column"),
    "longer than the digits": ({"sex": {"digits": 1, "recode": {"a": ["FF"]}}}, "nothing is 'FF'"),
    "a name that cannot be published": ({"NET.PAY": {"codes": ["1"]}}, 'column = "NET.PAY"'),
    "a link made of another column": ({"worker": {"column": "sex", "codes": ["F"]}}, "names or links rows"),
    "a blank code": ({"sex": {"recode": {" ": "F"}}}, "cannot be empty"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rules_that_do_not_fit_are_refused_when_the_file_is_read(tiny: Path, case: str) -> None:
    attributes, words = REFUSED[case]
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        tiny_frame(tiny, attributes={"place": {}, "industry": {}, **attributes})


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return Attribute(**one).derivation() == Attribute(**other).derivation()


def test_a_rule_is_known_however_it_is_written() -> None:
    assert same({"classes": {"a": "0.5", "b": 1}}, {"classes": {"a": "1/2", "b": "1.0"}})
    assert same({"recode": {"a": ["x", "y"], "b": "*"}}, {"recode": {"b": ["*"], "a": ["y", "x"]}})
    assert not same({"recode": {"a": ["x", "y"]}}, {"recode": {"a": ["x"]}})
    assert not same({"digits": 1}, {"digits": 2})
    assert not same({"classes": {"a": 0}}, {"classes": {"a": 0}, "empty": "none"})


def test_columns_that_change_places_are_another_question(tiny: Path) -> None:
    """Both look at the same two columns of the same data: only the rule tells which is which."""
    plain = {"place": {"codes": ["1"]}, "industry": {"codes": ["1"]}}
    swapped = {"place": {"column": "industry", "codes": ["1"]}, "industry": {"column": "place", "codes": ["1"]}}
    named = {name: {**about, "column": name} for name, about in plain.items()}
    rules = [tiny_frame(tiny, attributes=about).derivations(["place", "industry"]) for about in (plain, swapped, named)]
    assert rules[0] == rules[2] == ""
    assert rules[1] != ""
    measured = tiny_frame(tiny, attributes=plain, measures={"pay": {"column": "earnings"}})
    assert measured.derivations(["pay"]) != ""


NACE = "code;parent;label\nA;;Farms\n01;A;Crops\n01.1;01;Cereals\nC;;Goods\n10;C;Food\n10.1;10;Meat\n10.2;10;Fish\n"


def by_level(folder: Path, level: Any, listed: str = NACE, **more: Any) -> dict[str, Any]:
    (folder / "nace.csv").write_text(listed, encoding="utf-8")
    choice = {} if level is None else {"level": level}
    return {"column": "NACE", "codelist": {"file": "nace.csv", **choice}, **more}


def test_codes_are_counted_in_those_above_them_at_every_level_of_one_column(tmp_path: Path, engine: str) -> None:
    attributes = {
        "section": by_level(tmp_path, 1),
        "division": by_level(tmp_path, 2),
        "by_digits": by_level(tmp_path, 1, digits=2),
    }
    data = records(tmp_path, {"NACE": ["10.2", "01.1", "10", "10.1"]}, attributes, engine=engine)
    assert codes(data, *attributes) == [("C", "10", "C"), ("A", "01", "A"), ("C", "10", "C"), ("C", "10", "C")]
    words = "the first 2 characters of the codes in column 'NACE', each counted in the code above it in nace.csv"
    assert data.made_of("by_digits") == f"{words} (level = 1)"


def test_codes_that_are_not_below_the_level_are_refused_by_count_and_not_shown(tmp_path: Path) -> None:
    attributes = {"division": by_level(tmp_path, 2)}
    with pytest.raises(DataError) as error:
        codes(records(tmp_path, {"NACE": ["10.2", "SECRET", "C"]}, attributes), "division")
    assert error.value.found.startswith("2 rows with 2 other values; 1 of them are in the file of the codelist")
    assert "SECRET" not in str(error.value)


def test_codes_of_another_level_without_parents_are_told_with_what_would_count_them(tmp_path: Path) -> None:
    listed = "code;label;above\nA;Farms;\n01;Crops;A\n01.1;Grain;01\n"
    chosen = by_level(tmp_path, None, listed)
    chosen["codelist"] |= {"digits": 2}
    with pytest.raises(DataError, match="2 of them are in the file of the codelist") as error:
        codes(records(tmp_path, {"NACE": ["01.1", "A"]}, {"division": chosen}), "division")
    assert "columns = { parent = " in error.value.do
    chosen["codelist"] |= {"columns": {"parent": "above"}}
    assert codes(records(tmp_path, {"NACE": ["01.1", "01"]}, {"division": chosen}), "division") == [("01",), ("01",)]


NOT_CHOSEN = {
    "the finest alone": ["01.1", "10.1"],
    "divisions alone": ["01", "10"],
    "some of every level": ["A", "01", "01.1", "10.1"],
}


@pytest.mark.parametrize("case", NOT_CHOSEN)
def test_levels_without_rows_are_never_zeros_unless_all_are_meant(tmp_path: Path, case: str) -> None:
    column = {"NACE": NOT_CHOSEN[case]}
    with pytest.raises(DataError, match="would be published as 0") as error:
        codes(records(tmp_path, column, {"industry": by_level(tmp_path, None)}), "industry")
    assert "level = " in error.value.do
    found = codes(records(tmp_path, column, {"industry": by_level(tmp_path, "all")}), "industry")
    assert [code for (code,) in found] == NOT_CHOSEN[case]


def test_rows_of_every_level_need_no_choice(tmp_path: Path) -> None:
    every = [line.partition(";")[0] for line in NACE.splitlines()[1:]]
    assert len(codes(records(tmp_path, {"NACE": every}, {"industry": by_level(tmp_path, None)}), "industry")) == 7


def test_other_parents_are_another_question_and_a_flat_list_is_none(tmp_path: Path) -> None:
    def name(listed: str, level: Any) -> str:
        described = by_level(tmp_path, level, listed) | {"column": "industry"}
        return records(tmp_path, {"industry": ["A"]}, {"industry": described}).derivations(["industry"])

    moved = NACE.replace("10.2;10;", "10.2;01;")
    assert name(NACE, 1) != name(moved, 1)
    assert name(NACE, 1) == name(NACE.replace("Fish", "Fishes"), 1)
    assert name("code;label\nA;Farms\nC;Goods\n", None) == name(NACE, "all") == name(NACE, None) == ""
