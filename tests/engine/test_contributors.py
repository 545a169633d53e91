"""Totals, largest contributors and keys of every cell: by hand, against a plain count, and the same on both engines."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.engine.factors import modulo_prime, split, unit_keys
from sfumato.engine.records import connect_records, read_record_codes, validate_records
from sfumato.statistics.totals.question import TOTAL, ContributorQuestion
from sfumato.statistics.totals.tabulate import prepare
from tests.engine.businesses import (
    CODES,
    EVERYONE,
    KEYED,
    RECORDS,
    SECRET,
    SURVEY,
    Columns,
    answer,
    by_hand,
    cell,
    counted_plainly,
    key_of,
    microdata,
    question,
)


def plain_columns(cells: Cells, data: Any, columns: Columns, asked: ContributorQuestion) -> None:
    """Compare every column of every cell with the plain count."""
    for codes, expected in counted_plainly(data, columns, asked).items():
        assert cell(cells, *codes) == expected, codes


def test_totals_of_a_cell_by_hand(tmp_path: Path, engine: str) -> None:
    data = microdata(tmp_path, by_hand(), engine=engine)
    cells = answer(data, q=question("state", "industry", margins=True))["q"]
    sums = ("records", "total", "total_part", "weights", "weights_part")
    expected = {
        # 70·1.5 − 50·2 + 50·1.25 = 67.5; weights 1.5 + 2 + 1.25
        ("A", "X"): (3, 67, 500_000, 4, 750_000),
        ("A", "Y"): (1, 0, 0, 4, 0),
        # 30 − 80·2.5 + 10·1.000001 = −159.99999, which is −160 and 10 millionths
        ("B", "X"): (3, -160, 10, 4, 500_001),
        ("B", "Y"): (0, 0, 0, 0, 0),
        ("A", TOTAL): (4, 67, 500_000, 8, 750_000),
        ("B", TOTAL): (3, -160, 10, 4, 500_001),
        # 67.5 − 159.99999 = −92.49999
        (TOTAL, "X"): (6, -93, 500_010, 9, 250_001),
        (TOTAL, "Y"): (1, 0, 0, 4, 0),
        (TOTAL, TOTAL): (7, -93, 500_010, 13, 250_001),
    }
    for codes, values in expected.items():
        found = cell(cells, *codes)
        assert tuple(found[name] for name in sums) == values, codes


def test_the_largest_businesses_of_a_cell_by_hand(tmp_path: Path, engine: str) -> None:
    data = microdata(tmp_path, by_hand(), records=EVERYONE, engine=engine)
    found = cell(answer(data, q=question("state", "industry"))["q"], "B", "X")
    kinds = ("value", "weighted", "weighted_part", "weight", "consent")
    ranks = [tuple(found[f"{kind}_0_{rank}"] for kind in kinds) for rank in (1, 2, 3)]
    # A loss of 80 is larger than a profit of 30.
    assert ranks == [(-80, -200, 0, 2_500_000, 1), (30, 30, 0, 1_000_000, 1), (10, 10, 10, 1_000_001, 1)]
    assert found["units_0"] == 3
    assert found["cell_key_0"] == key_of("business", 15) + key_of("business", 16) + key_of("business", 17)


def test_where_units_say_whether_they_asked_only_those_have_a_rank(tmp_path: Path, engine: str) -> None:
    data = microdata(tmp_path, by_hand(), engine=engine)
    found = cell(answer(data, q=question("state", "industry"))["q"], "B", "X")
    # Only business 17 asked, and so its enterprise did.
    assert [found[f"value_0_{rank}"] for rank in (1, 2, 3)] == [10, 0, 0]
    assert [found[f"value_1_{rank}"] for rank in (1, 2)] == [-70, 0]
    assert (found["units_0"], found["units_1"]) == (3, 2), "all are counted"


def test_a_tie_is_broken_by_the_unit_key(tmp_path: Path, engine: str) -> None:
    data = microdata(tmp_path, by_hand(), records=EVERYONE, engine=engine)
    found = cell(answer(data, q=question("state", "industry", most=2))["q"], "A", "X")
    # Business 12 lost 50 and business 13 won 50; the key of the former is smaller.
    first, second = key_of("business", 12), key_of("business", 13)
    assert found["value_0_1"] == 70
    assert found["value_0_2"] == (-50 if first < second else 50)


def test_a_unit_without_value_is_a_contributor(tmp_path: Path, engine: str) -> None:
    data = microdata(tmp_path, by_hand(), engine=engine)
    found = cell(answer(data, q=question("state", "industry", most=2))["q"], "A", "Y")
    assert (found["units_0"], found["value_0_1"], found["weight_0_1"]) == (1, 0, 4_000_000)
    assert found["cell_word_0_1"] != 0
    assert found["weight_0_2"] == found["cell_word_0_2"] == found["unit_word_0_2"] == 0


def test_larger_units_are_the_sums_of_their_records_in_the_cell(tmp_path: Path, engine: str) -> None:
    data = microdata(tmp_path, by_hand(), records=EVERYONE, engine=engine)
    cells = answer(data, q=question("state", "industry", most=2, margins=True))["q"]
    kinds = ("value", "weighted", "weighted_part", "weight", "consent")
    expected = {
        # Enterprise 2 has 50 here; enterprise 1 has 70 − 50 = 20, with 105 − 100 = 5.
        ("A", "X"): [2, (50, 62, 500_000, 1_250_000, 1), (20, 5, 0, 3_500_000, 1)],
        # Enterprise 3 lost 80 and won 10: −189.99999.
        ("B", "X"): [2, (-70, -190, 10, 3_500_001, 1), (30, 30, 0, 1_000_000, 1)],
        # In all, enterprise 2 has 50 + 0 + 30.
        (TOTAL, TOTAL): [3, (80, 92, 500_000, 6_250_000, 1), (-70, -190, 10, 3_500_001, 1)],
        (TOTAL, "Y"): [1, (0, 0, 0, 4_000_000, 1), (0, 0, 0, 0, 0)],
        ("B", "Y"): [0, (0, 0, 0, 0, 0), (0, 0, 0, 0, 0)],
    }
    for codes, (units, *ranks) in expected.items():
        found = cell(cells, *codes)
        assert found["units_1"] == units, codes
        assert [tuple(found[f"{kind}_1_{rank}"] for kind in kinds) for rank in (1, 2)] == ranks, codes


def test_without_weights_and_consent_every_record_counts_once_and_asked(tmp_path: Path, engine: str) -> None:
    data = microdata(tmp_path, by_hand(), records={**RECORDS, "levels": ["enterprise"]}, engine=engine)
    found = cell(answer(data, q=question("state"))["q"], "B")
    assert (found["total"], found["total_part"], found["weights"], found["weights_part"]) == (-40, 0, 3, 0)
    assert (found["weight_0_1"], found["consent_0_1"], found["weighted_0_1"]) == (1_000_000, 1, -80)
    assert (found["value_1_1"], found["weight_1_1"], found["consent_1_1"]) == (-70, 2_000_000, 1)
    assert found["sampling_error"] == found["count_sampling_error"] == 0


def test_a_count_takes_every_record_for_one(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    data = microdata(tmp_path, columns, engine=engine)
    asked = question("state", measure=None)
    cells = answer(data, q=asked)["q"]
    found = cell(cells, "A")
    assert (found["total"], found["total_part"], found["value_0_1"]) == (8, 750_000, 1)
    plain_columns(cells, data, columns, asked)


@pytest.mark.parametrize("text", [False, True])
def test_every_column_is_what_a_plain_count_finds(tmp_path: Path, engine: str, text: bool) -> None:
    columns = by_hand()
    if text:  # names of units as text have the same keys
        columns |= {name: list(map(str, columns[name])) for name in ("business", "enterprise")}
    data = microdata(tmp_path, columns, engine=engine)
    for asked in (
        question("state", "industry", margins=True),
        question("industry", most=1, state=("A",)),
        question(most=4),
        question("state", state=("B",), industry=("Y",)),
    ):
        plain_columns(answer(data, q=asked)["q"], data, columns, asked)


def test_attributes_and_measures_of_other_types_mean_the_same(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    columns |= {
        "state": [1 if s == "A" else 2 for s in columns["state"]],
        "industry": [i == "X" for i in columns["industry"]],
    }
    columns["profit"] = list(map(float, columns["profit"]))
    attributes = {"state": {"codes": ["2", "1"]}, "industry": {"codes": ["true", "false"]}}
    data = microdata(tmp_path, columns, engine=engine, attributes=attributes)
    by = tuple(Dimension(name=name, codes=tuple(a["codes"])) for name, a in attributes.items())
    cells = answer(data, q=ContributorQuestion(by=by, measure="profit", contributors=3))["q"]
    original = answer(microdata(tmp_path, by_hand(), engine=engine), q=question("state", "industry"))["q"]
    for codes, same in ((("1", "true"), ("A", "X")), (("2", "true"), ("B", "X")), (("1", "false"), ("A", "Y"))):
        assert cell(cells, *codes) == cell(original, *same)


def test_columns_may_have_names_that_mean_something_else(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    awkward = {"state": "by", "industry": "Group-by", "profit": "self"}
    renamed = {awkward.get(name, name): values for name, values in columns.items()}
    attributes = {awkward[name]: {"codes": list(codes)} for name, codes in CODES.items()}
    measures = {"self": {"minimum": -(10**19)}}
    data = microdata(tmp_path, renamed, engine=engine, attributes=attributes, measures=measures)
    by = tuple(Dimension(name=name, codes=tuple(a["codes"])) for name, a in attributes.items())
    asked = ContributorQuestion(by=by, measure="self", contributors=3, where={"by": ("A", "B")})
    plain_columns(answer(data, q=asked)["q"], data, renamed, asked)


names = st.sampled_from([*range(40), 10**8 + 1, 10**12, 2**62, -7])
record = st.fixed_dictionaries(
    {
        "establishment": st.sampled_from(range(6)),
        "state": st.sampled_from(CODES["state"]),
        "industry": st.sampled_from(CODES["industry"]),
        "profit": st.one_of(st.integers(-3, 3), st.integers(-(10**12), 10**12)),
        "weight": st.sampled_from([1.0, 0.000001, 0.9999995, 1.5, 2.123456, 3.9]),
        "asked": st.booleans(),
    }
)


@st.composite
def tables(draw: st.DrawFn) -> Columns:
    """Up to a dozen records of different businesses; an enterprise has every third establishment."""
    businesses = draw(st.lists(names, unique=True, min_size=1, max_size=12))
    rows = [{"business": business, **draw(record)} for business in businesses]
    for row in rows:
        row["enterprise"] = f"E{row['establishment'] % 3}"
    return {name: [row[name] for row in rows] for name in rows[0]}


LEVELS = {**SURVEY, "levels": ["establishment", "enterprise"]}


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(columns=tables(), data=st.data())
def test_duckdb_finds_what_a_plain_count_finds(
    tmp_path_factory: pytest.TempPathFactory, columns: Columns, data: st.DataObject
) -> None:
    records = data.draw(st.sampled_from([LEVELS, SURVEY, RECORDS, {**RECORDS, "weight": "weight"}]))
    described = microdata(tmp_path_factory.mktemp("records"), columns, records=records)
    asked = question(
        *data.draw(st.sampled_from([(), ("state",), ("industry", "state")])),
        measure=data.draw(st.sampled_from(["profit", None])),
        most=data.draw(st.integers(1, 4)),
        margins=data.draw(st.booleans()),
        **data.draw(st.sampled_from([{}, {"state": ("B",)}, {"industry": ("X", "Y")}])),
    )
    plain_columns(answer(described, q=asked)["q"], described, columns, asked)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(columns=tables())
def test_the_same_records_by_another_question_have_the_same_columns(
    tmp_path_factory: pytest.TempPathFactory, columns: Columns
) -> None:
    data = microdata(tmp_path_factory.mktemp("records"), columns, records=LEVELS)
    found = answer(
        data,
        cells=question("state", "industry"),
        filtered=question(state=("A",), industry=("X",)),
        half=question("industry", state=("A",)),
        turned=question("industry", "state", margins=True),
        total=question("industry", margins=True, state=("A",)),
        whole=question("state"),
    )
    one = cell(found["cells"], "A", "X")
    assert one == cell(found["filtered"])
    assert one == cell(found["half"], "X")
    assert one == cell(found["turned"], "X", "A")
    assert cell(found["turned"], TOTAL, "A") == cell(found["whole"], "A") == cell(found["total"], TOTAL)
    if all(
        industry == "X" for state, industry in zip(columns["state"], columns["industry"], strict=True) if state == "A"
    ):
        assert one == cell(found["whole"], "A")


def test_one_more_unit_changes_the_word_of_the_cell_but_not_that_of_a_unit(tmp_path: Path) -> None:
    columns = by_hand()
    found = answer(microdata(tmp_path, columns, records=EVERYONE), q=question("state"))["q"]
    fewer = {name: values[:-1] for name, values in columns.items()}
    before = answer(microdata(tmp_path, fewer, records=EVERYONE), q=question("state"))["q"]
    assert cell(found, "A") == cell(before, "A")
    one, other = cell(found, "B"), cell(before, "B")
    assert one["unit_word_0_1"] == other["unit_word_0_1"]
    assert one["cell_word_0_1"] != other["cell_word_0_1"]
    assert one["count_word_0"] != other["count_word_0"]
    # Business 17 belongs to enterprise 3, which is there without it too: its noise is drawn anew all the same.
    assert one["unit_word_1_1"] == other["unit_word_1_1"]
    assert one["cell_word_1_1"] != other["cell_word_1_1"]


def random_columns(n: int) -> Columns:
    """Records of larger units in two levels, many of them alike, with replicate weights."""
    rng = np.random.default_rng(5)
    establishment = rng.integers(0, n // 3, n)
    columns = {
        "business": (rng.permutation(n) * 7919 + 10**7).tolist(),
        "establishment": [f"É{e:03d}" for e in establishment],
        "enterprise": (establishment % 20).tolist(),
        "state": rng.choice(CODES["state"], n).tolist(),
        "industry": rng.choice(CODES["industry"], n).tolist(),
        "profit": np.where(rng.random(n) < 0.5, rng.integers(-5, 6, n), rng.integers(-(10**10), 10**10, n)).tolist(),
        "weight": np.round(1 + rng.gamma(2, 3, n), 5).tolist(),
        "asked": (rng.random(n) < 0.7).tolist(),
    }
    return columns | {f"rw_{r}": np.round(rng.gamma(2, 3, n), 5).tolist() for r in range(1, 6)}


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True)
@pytest.mark.parametrize("replicates", [None, {"columns": "rw_*", "rule": "bootstrap"}])
def test_spark_gives_the_columns_that_duckdb_gives(tmp_path: Path, engine: str, replicates: Any) -> None:
    columns = random_columns(400)
    asked = {
        "margins": question("state", "industry", margins=True),
        "filtered": question("industry", most=4, state=("B",)),
        "counts": question("state", measure=None),
    }
    found, expected = (
        answer(microdata(tmp_path, columns, records={**LEVELS, "replicates": replicates}, engine=on), **asked)
        for on in (engine, "duckdb")
    )
    for name in asked:
        assert found[name].equals(expected[name])


def test_values_too_large_to_be_packed_in_64_bits_are_ranked_all_the_same(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    columns["profit"] = [2 * 10**18, -(2 * 10**18), 2 * 10**18 - 1, 1, 10**18, -(10**18) - 1, 0]
    columns["weight"] = [0.000001] * 7
    data = microdata(tmp_path, columns, engine=engine)
    asked = question("state", margins=True)
    plain_columns(answer(data, q=asked)["q"], data, columns, asked)


def test_prepared_records_answer_one_question_after_another(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    data = microdata(tmp_path, columns, engine=engine)
    with connect_records(data) as opened:
        prepared = prepare(data, opened, SECRET)
        for asked in (question("state"), question("industry", measure=None), question("state")):
            plain_columns(prepared.answer(asked), data, columns, asked)
        assert repr(prepared) == "Prepared()"


def test_records_in_order_answer_as_others_do(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    data = microdata(tmp_path, columns, engine=engine)
    with connect_records(data) as opened:
        prepared = prepare(data, opened, SECRET, ordered=True)
        for asked in (question("state", "industry", margins=True), question("industry", measure=None)):
            plain_columns(prepared.answer(asked), data, columns, asked)
        states = prepared.rows.fetch()["state"].to_pylist()
        assert states == sorted(states)


def test_a_code_that_the_question_does_not_list_is_refused(tmp_path: Path) -> None:
    data = microdata(tmp_path, by_hand())
    asked = ContributorQuestion(by=(Dimension(name="state", codes=("A",)),), measure="profit", contributors=3)
    with pytest.raises(ValueError, match="not in its codelist"):
        answer(data, q=asked)


def test_keys_of_levels_are_independent_and_the_same_for_numbers_and_text() -> None:
    names = pa.array(range(1000))
    business, enterprise = (unit_keys(names, level=level, keyed=KEYED) for level in ("business", "enterprise"))
    assert not np.intersect1d(business.keys, enterprise.keys).size
    as_text = unit_keys(names.cast(pa.string()), level="business", keyed=KEYED)
    for one, other in ((business.keys, as_text.keys), (business.guards, as_text.guards)):
        assert np.array_equal(one, other)
    assert business.keys[17] == key_of("business", 17)
    assert repr(business) == "UnitKeys()"


def test_units_are_numbered_by_key_and_those_that_share_one_by_name() -> None:
    units = unit_keys(pa.array(range(200_000)), level="business", keyed=KEYED)
    order = sorted(range(200_000), key=lambda unit: (units.keys[unit], str(unit)))
    assert len(np.unique(units.keys)) < 200_000, "some share a key, or this shows nothing"
    assert np.array_equal(units.numbers[order], np.arange(200_000))
    assert np.array_equal(units.by_number, units.keys[order])


wide = st.lists(st.integers(-(9 * 10**24), 9 * 10**24), max_size=5)


@given(values=wide)
def test_wide_sums_are_split_exactly(values: list[int]) -> None:
    column = pa.chunked_array([pa.array(values, pa.decimal128(38, 0)), pa.array([None], pa.decimal128(38, 0))])
    whole, part = split(column)
    assert list(zip(whole.tolist(), part.tolist(), strict=True)) == [divmod(value, 10**6) for value in [*values, 0]]


@given(values=st.lists(st.integers(0, 2**96), max_size=5))
def test_wide_sums_are_reduced_exactly(values: list[int]) -> None:
    column = pa.chunked_array([pa.array(values, pa.decimal128(38, 0))])
    assert modulo_prime(column).tolist() == [value % (2**61 - 1) for value in values]


@pytest.mark.parametrize("described", [RECORDS, SURVEY], ids=["plain", "survey"])
def test_a_unit_of_several_periods_has_one_key_and_a_record_in_every_period(
    tmp_path: Path, engine: str, described: dict[str, Any]
) -> None:
    once = by_hand()
    columns = {name: [*values, *values] for name, values in once.items()}
    columns["profit"] = [*once["profit"], *(2 * value + 3 for value in once["profit"])]
    columns["month"] = ["1"] * len(once["profit"]) + ["2"] * len(once["profit"])
    attributes = {name: {"codes": list(codes)} for name, codes in {**CODES, "month": ("1", "2")}.items()}
    data = microdata(tmp_path, columns, records={**described, "period": "month"}, engine=engine, attributes=attributes)
    months = Dimension(name="month", codes=("1", "2"))
    states = Dimension(name="state", codes=("A", "B", TOTAL))
    asked = ContributorQuestion(by=(months, states), measure="profit", contributors=3, margins=True, period="month")
    with connect_records(data) as tables:
        validate_records(data, tables, read_record_codes(data, tables))
        found = [prepare(data, tables, SECRET, ordered=ordered).answer(asked) for ordered in (False, True)]
    for cells in found:
        plain_columns(cells, data, columns, asked)
        for state in states.codes:
            first, second = (cell(cells, month, state) for month in months.codes)
            assert first["cell_key_0"] == second["cell_key_0"]
