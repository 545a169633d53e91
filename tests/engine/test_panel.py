"""A faulty panel gets a clear error before anything is charged; what is only a gap in a career passes."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato.engine.connect import connect
from sfumato.engine.memory import DataTotals
from sfumato.engine.panel import refuse_no_rows
from sfumato.engine.validate import check_columns, read_public_codes, validate
from sfumato.errors import DataError
from sfumato.frame.data import Frame
from sfumato.frame.periods import Span
from tests.conftest import write
from tests.engine.panels import EMPLOYERS, WORKERS, Panel, by_hand


def check(frame: Frame) -> DataTotals:
    with connect(frame) as tables:
        check_columns(frame, tables)
        return validate(frame, tables, read_public_codes(frame, tables))


def spoil(folder: Path, frame: Frame, **columns: Any) -> Frame:
    """Write the jobs again with other columns."""
    write(folder / "jobs.parquet", by_hand().columns() | columns)
    return frame


def column(name: str, **changes: Any) -> list[Any]:
    """A column of the panel, with other values in the first rows."""
    values = list(by_hand().columns()[name])
    values[: len(changes["first"])] = changes["first"]
    return values


def test_good_panels_pass_also_with_gaps_in_careers_and_rows_without_earnings(tmp_path: Path, engine: str) -> None:
    counted = DataTotals(jobs=6, establishments=4, empty_establishments=1, workers=5, records=23, periods=6)
    assert check(by_hand().write(tmp_path, engine=engine)) == counted
    assert check(by_hand().as_text().write(tmp_path, engine=engine)) == counted


def without(quarter: str) -> dict[str, list[Any]]:
    """The panel with no rows in a quarter."""
    columns = by_hand().columns()
    kept = [i for i, written in enumerate(columns["quarter"]) if written != quarter]
    return {name: [values[i] for i in kept] for name, values in columns.items()}


BAD: dict[str, tuple[dict[str, list[Any]], str, str]] = {
    "a gap": (without("2024-Q3"), "quarter", "1 without any: 2024-Q3"),
    "a quarter in which nobody earns": (
        {"earnings": [0 if q == "2024-Q2" else 5 for q in by_hand().columns()["quarter"]]},
        "quarter",
        "1 without any: 2024-Q2",
    ),
    "rows before and after the panel": (
        {"quarter": column("quarter", first=["2023-Q4", "2025-Q3", "2031-Q1"])},
        "quarter",
        "1 rows before 2024-Q1, 2 rows after 2025-Q2",
    ),
    "periods written otherwise": (
        {"quarter": column("quarter", first=["2024Q1", "2024", "2024-Q5", "2024-Q1 "])},
        "quarter",
        "4 rows written otherwise",
    ),
    "rows without a period": (
        {"quarter": column("quarter", first=[None, None])},
        "quarter",
        "2 rows without one",
    ),
    "a row twice": (
        {"quarter": column("quarter", first=["2024-Q1", "2024-Q1", "2024-Q1"])},
        "'worker', 'employer' and 'quarter'",
        "2 rows that repeat the worker, employer and period of another row",
    ),
    "negative earnings": ({"earnings": column("earnings", first=[-71, -71])}, "earnings", "2 below 0"),
    "empty earnings": ({"earnings": column("earnings", first=[None])}, "earnings", "1 empty"),
    "earnings that are not whole": (
        {"earnings": [float(v) for v in column("earnings", first=[71.5])]},
        "earnings",
        "1 not whole",
    ),
    "earnings that are not finite": (
        {"earnings": [float(v) for v in column("earnings", first=["nan", "inf", "-inf"])]},
        "earnings",
        "3 not finite",
    ),
    "earnings beyond any sum": ({"earnings": column("earnings", first=[2**60])}, "earnings", "too large"),
    "an employer that is not in the register": (
        {"employer": column("employer", first=[71, 71, 72])},
        "employer",
        "2 jobs whose 'employer' is not in employers.parquet",
    ),
    "a worker that is not among the workers": (
        {"worker": column("worker", first=[71])},
        "worker",
        "1 jobs whose 'worker' is not in workers.parquet",
    ),
    "a row without an employer": ({"employer": column("employer", first=[None])}, "employer", "1 rows without one"),
    "a row without a worker": ({"worker": column("worker", first=[None])}, "worker", "1 rows without one"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_faulty_panel_is_refused_with_what_was_found(tmp_path: Path, engine: str, case: str) -> None:
    columns, where, found = BAD[case]
    frame = spoil(tmp_path, by_hand().write(tmp_path, engine=engine), **columns)
    with pytest.raises(DataError) as error:
        check(frame)
    assert found in error.value.found
    assert where in error.value.where
    assert "71" not in str(error.value)  # the value of a record


def test_faults_are_counted_together(tmp_path: Path) -> None:
    earnings = [float(v) for v in column("earnings", first=[-1, 0.5, "nan", "nan"])]
    with pytest.raises(DataError, match="2 not finite, 1 below 0, 1 not whole") as error:
        check(spoil(tmp_path, by_hand().write(tmp_path), earnings=earnings))
    assert "`factor` is for measures and changes no earnings" in error.value.do


def test_many_missing_quarters_are_counted_and_some_named(tmp_path: Path) -> None:
    frame = by_hand().write(tmp_path)
    longer = frame.model_copy(update={"jobs": frame.jobs.model_copy(update={"first": "2010-Q1"})})
    with pytest.raises(DataError, match=r"56 without any: 2010-Q1, 2010-Q2, .* …"):
        check(longer)


def test_repeated_rows_are_found_in_panels_of_any_length(tmp_path: Path, engine: str) -> None:
    """The 70 quarters of a job need more than one whole number of bits."""
    periods = Span(first="2001-Q1", last="2018-Q2").codes()
    rows = [(1, 10, place, 5, "a") for place in range(len(periods))]
    panel = Panel(periods=periods, employers=EMPLOYERS, workers=WORKERS, jobs=rows)
    check(panel.write(tmp_path, engine=engine))
    twice = Panel(periods=periods, employers=EMPLOYERS, workers=WORKERS, jobs=[*rows, rows[3], rows[62], rows[63]])
    with pytest.raises(DataError, match="3 rows that repeat"):
        check(twice.write(tmp_path, engine=engine))


def test_years_are_text_or_whole_numbers(tmp_path: Path) -> None:
    years = Panel(periods=tuple(map(str, range(2019, 2025))), employers=EMPLOYERS, workers=WORKERS, jobs=by_hand().jobs)
    frame = years.write(tmp_path)
    check(frame)
    numbers = list(map(int, years.columns()["quarter"]))
    check(spoil(tmp_path, frame, quarter=numbers))
    with pytest.raises(DataError, match="1 rows before 2019, 1 rows after 2024, 1 rows written otherwise"):
        check(spoil(tmp_path, frame, quarter=[2018, 2025, 20201, *numbers[3:]]))


KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "quarters as numbers": ({"quarter": list(range(len(by_hand().jobs)))}, "quarter"),
    "periods as truths": ({"quarter": [True] * len(by_hand().jobs)}, "quarter"),
    "earnings as text": ({"earnings": [str(v) for v in by_hand().columns()["earnings"]]}, "earnings"),
}


@pytest.mark.parametrize("case", KINDS)
def test_a_column_of_the_wrong_kind_is_refused(tmp_path: Path, case: str) -> None:
    columns, where = KINDS[case]
    with pytest.raises(DataError, match="a column of type") as error:
        check(spoil(tmp_path, by_hand().write(tmp_path), **columns))
    assert where in error.value.where


def test_dates_are_of_the_quarters_that_they_lie_in(tmp_path: Path) -> None:
    first = {"Q1": "01-08", "Q2": "04-30", "Q3": "07-01", "Q4": "12-31"}
    quarters = by_hand().columns()["quarter"]
    dates = [date.fromisoformat(f"{year}-{first[quarter]}") for year, quarter in (q.split("-") for q in quarters)]
    check(spoil(tmp_path, by_hand().write(tmp_path), quarter=pa.array(dates, pa.date32())))
    earlier = [date(2022, 1, 8), *dates[1:]]
    with pytest.raises(DataError, match="1 rows before 2024-Q1"):
        check(spoil(tmp_path, by_hand().write(tmp_path), quarter=pa.array(earlier, pa.date32())))


@pytest.mark.parametrize("missing", ["quarter", "earnings"])
def test_a_missing_column_is_named_with_those_that_exist(tmp_path: Path, missing: str) -> None:
    frame = by_hand().write(tmp_path)
    write(tmp_path / "jobs.parquet", {name: v for name, v in by_hand().columns().items() if name != missing})
    with pytest.raises(DataError, match=f"a column '{missing}'") as error:
        check(frame)
    assert "the columns worker, employer" in error.value.found


def test_earnings_may_be_decimals_that_are_whole(tmp_path: Path, engine: str) -> None:
    amounts = by_hand().columns()["earnings"]
    frame = by_hand().write(tmp_path, engine=engine)
    check(spoil(tmp_path, frame, earnings=pa.array(amounts, pa.decimal128(12, 2))))


@pytest.mark.parametrize(("name", "holder"), [("jobs", "jobs"), ("employers", "workplaces")])
@pytest.mark.parametrize("typed", [True, False], ids=["with types", "without types"])
def test_an_empty_file_is_said_to_be_empty(tmp_path: Path, engine: str, name: str, holder: str, typed: bool) -> None:
    frame = by_hand().write(tmp_path, engine=engine)
    columns = by_hand().columns() if name == "jobs" else EMPLOYERS
    empty = {of: pa.array([], pa.array(values).type if typed else pa.string()) for of, values in columns.items()}
    with connect(frame) as tables:
        refuse_no_rows(frame, tables)
    write(tmp_path / f"{name}.parquet", empty)
    with connect(frame) as tables, pytest.raises(DataError, match="a file that is empty") as error:
        refuse_no_rows(frame, tables)
    assert error.value.where == holder
    assert f"{name}.parquet" in error.value.expected
