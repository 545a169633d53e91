"""The cube of records: what a plain count finds, the same on every engine."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.engine.records import connect_records
from sfumato.frame.records import Microdata
from sfumato.statistics.cube.figures import Estimates, fitted
from sfumato.statistics.cube.question import CubeQuestion
from sfumato.statistics.cube.tabulate import record_totals, replicate_estimates, tabulated_cube
from tests.conftest import write
from tests.statistics.cube.survey import CODES, DIMENSIONS, records

QUESTION = CubeQuestion(by=DIMENSIONS, measures=("pay",))


def described(folder: Path, engine: str, *, weight: str | None = "weight") -> Microdata:
    rows: dict[str, Any] = {"path": "records.parquet", "unit": "id", "weight": weight}
    if weight is not None:
        rows["replicates"] = {"columns": "rw_*", "rule": "successive-difference"}
    return Microdata.model_validate(
        {
            "engine": engine,
            "records": rows,
            "attributes": {name: {"codes": list(codes)} for name, codes in CODES.items()},
            "measures": {"pay": {}},
            "folder": folder,
        }
    )


def counted(columns: dict[str, list[Any]], value: Any) -> np.ndarray:
    """Sum a value of every record over its cell, one by one."""
    cube = np.zeros(tuple(map(len, CODES.values())), dtype=object)
    for at in range(len(columns["id"])):
        cube[tuple(codes.index(columns[name][at]) for name, codes in CODES.items())] += value(at)
    return cube


def millionths(weight: float) -> int:
    return round(Fraction(str(weight)) * 1_000_000)


def test_every_cell_holds_what_a_plain_count_finds(tmp_path: Path, engine: str) -> None:
    columns = records()
    write(tmp_path / "records.parquet", columns)
    data = described(tmp_path, engine)
    with connect_records(data) as tables:
        cube = tabulated_cube(data, tables, QUESTION)
    weights = list(map(millionths, columns["weight"]))
    assert np.array_equal(cube["count"], counted(columns, lambda _: 1))
    assert np.array_equal(cube["weighted"], counted(columns, lambda at: weights[at]))
    pay = counted(columns, lambda at: weights[at] * columns["pay"][at])
    assert np.array_equal(cube["pay"], (pay + 500) // 1_000), "thousandths, rounded once"
    assert int(cube["count"].min()) == 0, "empty cells are cells"


@pytest.mark.parametrize("unit", [1, 7])
def test_weights_can_be_rounded_to_units_record_by_record(tmp_path: Path, engine: str, unit: int) -> None:
    columns = records()
    write(tmp_path / "records.parquet", columns)
    data = described(tmp_path, engine)
    with connect_records(data) as tables:
        cube = tabulated_cube(data, tables, CubeQuestion(by=DIMENSIONS, weight_unit=unit))
    whole = [unit * int(np.floor(weight / unit + 0.5)) for weight in columns["weight"]]
    assert np.array_equal(cube["weighted"], 1_000_000 * counted(columns, lambda at: whole[at]))


def test_records_without_weights_weigh_one_and_are_counted_once(tmp_path: Path, engine: str) -> None:
    write(tmp_path / "records.parquet", records())
    data = described(tmp_path, engine, weight=None)
    with connect_records(data) as tables:
        cube = tabulated_cube(data, tables, QUESTION)
        totals = record_totals(data, tables, ("pay",))
    assert list(cube.columns) == ["count", "pay"], "a weighted count would be the count again"
    assert cube.total("count") == 400
    assert cube.total("pay") == 1_000 * sum(records()["pay"])
    assert (totals.records, totals.weights, totals.largest_weight) == (400, 400, 1)


def test_replicate_variances_are_the_rule_applied_to_every_cell(tmp_path: Path, engine: str) -> None:
    columns = records()
    write(tmp_path / "records.parquet", columns)
    data = described(tmp_path, engine)
    with connect_records(data) as tables:
        found = replicate_estimates(data, tables, DIMENSIONS[1:2], ("pay",))
    names = [f"rw_{r + 1}" for r in range(8)]
    frame = {name: np.array(columns[name]) for name in ("weight", "pay", *names)}
    for place, code in enumerate(CODES["job"]):
        at = np.array(columns["job"]) == code
        sums = np.array([frame[name][at].sum() for name in ("weight", *names)])
        means = np.array([(frame[name] * frame["pay"])[at].sum() for name in ("weight", *names)]) / sums
        assert found.totals[place] == pytest.approx(sums[0], rel=1e-9)
        assert found.variances[place] == pytest.approx(4 / 8 * ((sums[1:] - sums[0]) ** 2).sum(), rel=1e-6)
        assert found.means["pay"][place] == pytest.approx(4 / 8 * ((means[1:] - means[0]) ** 2).sum(), rel=1e-6)


@pytest.mark.parametrize(("square", "linear"), [(0.0, 35.0), (1e-4, 35.0), (2e-3, 0.0)])
def test_the_variance_function_is_found_again_from_variances_that_follow_it(square: float, linear: float) -> None:
    totals = np.geomspace(10, 1e6, 60)
    chance = np.random.default_rng(1).gamma(40, 1 / 40, 60)
    found = fitted([Estimates(totals=totals, variances=(square * totals**2 + linear * totals) * chance)])
    expected = square * totals**2 + linear * totals
    assert np.allclose(found.of_totals(totals) / expected, 1, atol=0.15)
    assert fitted([]).of_totals(totals).tolist() == [0.0] * 60
