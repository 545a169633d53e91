"""Sums, histograms and values of groups of people, on every engine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.engine.records import check_record_columns, connect_records, read_record_codes, validate_records
from sfumato.errors import DataError
from sfumato.frame.records import Microdata
from sfumato.statistics.people.question import BoundedMeasure, SampleQuestion
from sfumato.statistics.people.small_samples import Samples
from sfumato.statistics.people.tabulate import clipped_values, refuse_unsuitable, sampled, samples
from tests.engine.people import STATE, TRACT, YEAR, X, Y, by_hand, described

SUMS = frozenset({"count", "class", "sum_x", "sum_y", "sum_xx", "sum_xy", "sum_yy"})
PREDICT = SampleQuestion(
    groups=(YEAR, TRACT), statistic="predict", at=("50",), x=X, y=Y, classes=(YEAR, STATE), needs=SUMS
)
MEAN = SampleQuestion(groups=(TRACT,), statistic="mean", at=("mean",), y=Y, needs=SUMS, where={"year": ("2001",)})
EDGES = (0, 20, 40, 100)
QUANTILES = SampleQuestion(groups=(YEAR,), statistic="quantiles", at=("p50",), y=Y, edges=EDGES)
COUNT = SampleQuestion(groups=(YEAR, STATE), statistic="count")
VALUES = SampleQuestion(groups=(YEAR, TRACT), statistic="predict", at=("50",), x=X, y=Y, needs=frozenset({"samples"}))


def answers(data: Microdata, asked: Mapping[str, SampleQuestion]) -> dict[str, Any]:
    with connect_records(data) as tables:
        check_record_columns(data, tables)
        validate_records(data, tables, read_record_codes(data, tables))
        for name, question in asked.items():
            refuse_unsuitable(tables, name, question)
        summed = {name: question for name, question in asked.items() if not question.of_values}
        values = {name: samples(tables, question) for name, question in asked.items() if question.of_values}
        return {**(sampled(tables, summed) if summed else {}), **values}


def test_every_group_has_its_sums_of_clipped_values_and_its_class(tmp_path: Path, engine: str) -> None:
    cells = answers(described(tmp_path, engine=engine), {"p": PREDICT})["p"]
    assert {name: column.tolist() for name, column in cells.columns.items()} == {
        "count": [3, 1, 0, 1, 1, 2],
        "sum_x": [140, 50, 0, 0, 60, 190],
        "sum_y": [140, 0, 0, 20, 20, 81],
        "sum_xx": [11600, 2500, 0, 0, 3600, 18100],
        "sum_xy": [11200, 0, 0, 0, 1200, 7700],
        "sum_yy": [11000, 0, 0, 400, 400, 3281],
        "class": [0, 1, -1, 2, 3, 3],
    }


def test_one_scan_answers_what_each_question_alone_would(tmp_path: Path, engine: str) -> None:
    asked = {"p": PREDICT, "m": MEAN, "q": QUANTILES, "c": COUNT, "v": VALUES}
    data = described(tmp_path, engine=engine)
    together = answers(data, asked)
    assert list(together) == list(asked)
    for name in ("p", "m", "q", "c"):
        assert together[name].equals(answers(data, {name: asked[name]})[name]), name
    assert together["m"]["count"].tolist() == [3, 1, 0]
    assert set(together["m"].columns) == {"count", "class", "sum_y", "sum_yy"}
    assert together["c"]["count"].tolist() == [3, 1, 1, 3]


def test_a_value_at_an_edge_is_in_the_bin_above_but_for_the_last(tmp_path: Path, engine: str) -> None:
    columns = by_hand() | {"y": [-5, 0, 19, 20, 39, 40, 100, 900]}
    cells = answers(described(tmp_path, columns, engine=engine), {"q": QUANTILES})["q"]
    assert [dimension.name for dimension in cells.dimensions] == ["year", "bin"]
    assert cells["count"].tolist() == [3, 1, 0, 0, 1, 3]


def test_samples_are_the_clipped_values_of_every_group_in_order(tmp_path: Path, engine: str) -> None:
    held = answers(described(tmp_path, engine=engine), {"v": VALUES})["v"]
    assert isinstance(held, Samples)
    assert held.positions.tolist() == [0, 0, 0, 1, 3, 4, 5, 5]
    assert held.x.tolist() == [0, 40, 100, 50, 0, 60, 90, 100]
    assert held.y.tolist() == [10, 30, 100, 0, 20, 20, 40, 41]


def test_clipped_values_are_counted_by_measure(tmp_path: Path, engine: str) -> None:
    data = described(tmp_path, engine=engine)
    with connect_records(data) as tables:
        assert clipped_values(tables, {"p": PREDICT}) == {"x": 1, "y": 2}
        assert clipped_values(tables, {"c": COUNT}) == {}


def test_values_outside_their_bounds_are_refused_unless_they_are_clipped(tmp_path: Path, engine: str) -> None:
    strict = {name: {"minimum": 0, "maximum": 100} for name in ("x", "y")}
    with pytest.raises(DataError, match="1 above 100"):
        answers(described(tmp_path, engine=engine, measures=strict), {"p": PREDICT})


def test_a_person_has_one_record_a_period_and_may_have_many_periods(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    columns["year"][4] = 2001  # person 1 twice in 2001
    with pytest.raises(DataError) as error:
        answers(described(tmp_path, columns, engine=engine), {"c": COUNT})
    assert error.value.found == "1 rows that repeat the unit and period of another row"
    assert "'person' and period 'year'" in error.value.where


def test_a_group_in_two_classes_is_refused(tmp_path: Path, engine: str) -> None:
    columns = by_hand()
    columns["state"][7] = "A"  # a person of t3, which is in B
    with pytest.raises(DataError) as error:
        answers(described(tmp_path, columns, engine=engine), {"p": PREDICT})
    assert error.value.found == "1 groups with several"
    # A group whose classes `where` leaves out is in one.
    kept = SampleQuestion(**{**vars(PREDICT), "groups": (TRACT,), "classes": (STATE,), "where": {"year": ("2001",)}})
    assert answers(described(tmp_path, columns, engine=engine), {"p": kept})["p"]["class"].tolist() == [0, 1, -1]


def test_sums_that_may_leave_64_bits_are_refused_before_anything_is_added_up(tmp_path: Path, engine: str) -> None:
    data = described(tmp_path, engine=engine)
    wide = BoundedMeasure(
        name="y", low=0, high=1_800_000_000
    )  # the square of it fits twice into 2^63, and not three times
    question = SampleQuestion(groups=(YEAR, TRACT), statistic="mean", at=("mean",), y=wide, needs=SUMS)
    with pytest.raises(DataError, match="larger unit"):
        answers(data, {"m": question})
    only_sums = SampleQuestion(**{**vars(question), "needs": frozenset({"count", "sum_y", "class"})})
    assert answers(data, {"m": only_sums})["m"]["sum_y"].tolist() == [940, 0, 0, 20, 20, 81]


def test_people_nobody_asks_about_are_in_no_sum(tmp_path: Path) -> None:
    question = SampleQuestion(groups=(STATE,), statistic="count", where={"tract": ("t2", "t3"), "year": ("2002",)})
    assert answers(described(tmp_path), {"c": question})["c"]["count"].tolist() == [0, 3]


def test_data_without_people_have_empty_groups(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = described(tmp_path)
    pq.write_table(pa.table(by_hand()).slice(0, 0), tmp_path / "people.parquet")
    found = answers(data, {"p": PREDICT, "q": QUANTILES, "v": VALUES})
    assert found["p"]["count"].sum() == 0
    assert (found["p"]["class"] == -1).all()
    assert len(found["q"]) == 2 * (len(EDGES) - 1)
    assert len(found["v"].x) == 0


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.tuples(st.integers(0, 2), st.integers(-150, 150), st.integers(-150, 150)), max_size=40),
    edges=st.lists(st.integers(-120, 120), min_size=3, max_size=9, unique=True).map(sorted),
)
def test_sums_and_bins_are_those_of_numpy(
    tmp_path_factory: pytest.TempPathFactory, values: list[tuple[int, int, int]], edges: list[int]
) -> None:
    tract, x, y = (np.array([row[place] for row in values], dtype=np.int64) for place in range(3))
    columns = {
        "person": list(range(len(values))),
        "year": ["2001"] * len(values),
        "tract": [TRACT.codes[place] for place in tract],
        "state": ["A"] * len(values),
        "x": x.tolist(),
        "y": y.tolist(),
    }
    everyone = {
        name: [*column, filler]
        for (name, column), filler in zip(columns.items(), (-1, "2002", "t1", "A", 0, 0), strict=True)
    }  # so that no column is without a type
    bounds = BoundedMeasure(name="x", low=-100, high=90), BoundedMeasure(name="y", low=-90, high=100)
    predict = SampleQuestion(
        groups=(TRACT,), statistic="predict", at=("0",), x=bounds[0], y=bounds[1], needs=SUMS, where={"year": ("2001",)}
    )
    quantiles = SampleQuestion(
        groups=(TRACT,), statistic="quantiles", at=("p50",), y=bounds[1], edges=tuple(edges), where={"year": ("2001",)}
    )
    found = answers(described(tmp_path_factory.mktemp("people"), everyone), {"p": predict, "q": quantiles})
    x, y = np.clip(x, -100, 90), np.clip(y, -90, 100)
    for place in range(3):
        own = tract == place
        expected = (x[own].sum(), y[own].sum(), (x * x)[own].sum(), (x * y)[own].sum(), (y * y)[own].sum())
        assert tuple(found["p"][name][place] for name in ("sum_x", "sum_y", "sum_xx", "sum_xy", "sum_yy")) == expected
        inside = np.clip(np.searchsorted(edges, y[own], side="right") - 1, 0, len(edges) - 2)
        counted = np.bincount(inside, minlength=len(edges) - 1)
        assert found["q"]["count"].reshape(3, -1)[place].tolist() == counted.tolist()


@pytest.mark.slow
def test_a_million_groups_are_counted(tmp_path: Path) -> None:
    codes = tuple(f"g{number}" for number in range(1_000_000))
    group = Dimension(name="tract", codes=codes)
    columns = {
        "person": list(range(20_000)),
        "year": ["2001"] * 20_000,
        "tract": [codes[50 * number] for number in range(20_000)],
        "state": ["A"] * 20_000,
        "x": [3] * 20_000,
        "y": [4] * 20_000,
    }
    attributes = {"year": {"codes": ["2001"]}, "tract": {"codes": list(codes)}, "state": {"codes": ["A"]}}
    data = described(tmp_path, columns, attributes=attributes)
    question = SampleQuestion(groups=(group,), statistic="predict", at=("1",), x=X, y=Y, needs=SUMS)
    cells = answers(data, {"p": question})["p"]
    assert isinstance(cells, Cells)
    assert (len(cells), int(cells["count"].sum()), int(cells["sum_xy"].sum())) == (1_000_000, 20_000, 240_000)
