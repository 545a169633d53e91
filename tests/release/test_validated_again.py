"""What passed validation is looked at again as soon as anything is said that decides how data are read."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from sfumato.checking import validated_as
from sfumato.errors import DataError
from sfumato.frame.data import Data, Frame
from sfumato.frame.records import Microdata
from sfumato.frame.series import OnlyPeriod
from sfumato.frame.sources import Source
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run

CHANGE_NO_NUMBER = {
    "spark": "where it is computed",
    "memory": "how much at a time",
    "folder": "the addresses of the files and the codes of the codelists are looked at instead",
    "accept": "asked of the totals whenever a release is checked",
    "origin_of": "how it is drawn",
    "most_workers": "errors only",
    "cap": "a part of what a total asks",
    "floor": "a part of what a total of units asks",
    "public": "which tables are allowed",
    "map": "how it is drawn",
    "period_label": "how it is called",
}
PATHS = {"path": "other.csv", "format": "excel", "delimiter": "|", "quote": "'", "encoding": "latin-1", "decimal": ","}
SAID: dict[str, Any] = PATHS | {"thousands": " ", "missing": ("01",), "dates": "31.03.2026", "skip": 1, "sheet": "s"}
SAID |= {"table": "jobs", "query": "SELECT 1"}
REGISTER = """
[release]
title = "T"
period = "2026"
budget = {{ alpha = 0.1, epsilon = 40 }}
bundle = "{bundle}"
ledger = "l.sqlite"

[data]
jobs = {{ path = "register.csv", workplace = "id", employees = "n"{said} }}
public = ["place"]

[data.attributes]
place = {{ codes = ["01", "02"] }}

[[table]]
name = "t"
count = "jobs"
by = ["place"]
protect = {{ method = "smooth-pareto", epsilon = 1 }}
"""


def models(annotation: Any) -> set[type[BaseModel]]:
    """The descriptions that a field may have in it, also within others."""
    found = {annotation} if isinstance(annotation, type) and issubclass(annotation, BaseModel) else set()
    parts = [field.annotation for model in found for field in model.model_fields.values()]
    return found.union(*(models(part) for part in (*get_args(annotation), *parts)))


def test_every_field_of_a_description_is_looked_at_or_listed_as_one_that_changes_no_number() -> None:
    described = models(Frame) | models(Microdata)
    assert {"Frame", "Jobs", "Unit", "Records", "Replicates", "Attribute", "Measure"} <= {m.__name__ for m in described}
    left_out = {name for model in described for name, field in model.model_fields.items() if field.exclude}
    assert left_out == CHANGE_NO_NUMBER.keys()


def frame(**jobs: Any) -> Frame:
    return Frame.model_validate({"jobs": {"path": "register.csv", "workplace": "id", **jobs}, "measures": {"pay": {}}})


@pytest.mark.parametrize("option", Source.model_fields)
def test_how_files_are_read_is_looked_at(option: str) -> None:
    before = frame()
    other = before.model_copy(update={"jobs": before.jobs.model_copy(update={option: SAID[option]})})
    assert validated_as(before, {}, {}) != validated_as(other, {}, {})


def test_the_period_of_a_series_and_the_bounds_of_a_measure_are_looked_at() -> None:
    def clipped(data: Data) -> Data:
        return data.model_copy(
            update={"measures": {"pay": data.measures["pay"].model_copy(update={"outside": "clip"})}}
        )

    only = frame().model_copy(update={"only": OnlyPeriod(column="year", period="2026")})
    later = frame().model_copy(update={"only": OnlyPeriod(column="year", period="2027")})
    assert len({validated_as(data, {}, {}) for data in (frame(), clipped(frame()), only, later)}) == 4
    assert json.dumps("2027") in validated_as(later, {}, {})


@pytest.mark.slow
def test_words_for_no_value_that_come_later_are_refused_where_they_leave_rows_without_a_code(tmp_path: Path) -> None:
    rows = [f"{number},0{1 + number % 2},{number % 7}" for number in range(100, 140)]
    (tmp_path / "register.csv").write_text("\n".join(["id,place,n", *rows]), encoding="utf-8")
    for bundle, said in (("a", ""), ("b", ', missing = ["01"]')):
        (tmp_path / f"{bundle}.toml").write_text(REGISTER.format(bundle=bundle, said=said), encoding="utf-8")
    run(load(tmp_path / "a.toml"))
    charged = len(Ledger.open(tmp_path / "l.sqlite").history())
    with pytest.raises(DataError, match="20 rows without one"):
        run(load(tmp_path / "b.toml"))
    assert len(Ledger.open(tmp_path / "l.sqlite").history()) == charged
    assert not (tmp_path / "b").exists()
