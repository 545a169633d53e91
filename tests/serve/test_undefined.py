"""A figure that is not defined has no number, no error and no other mark, wherever it is shown."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.bundle.read import open_cube
from sfumato.serve.core import figures as cube_figures
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.figures import KEPT_BYTES, BoundedCache, CubeFigures
from sfumato.serve.core.model import Column, marks_of
from sfumato.serve.core.selection import select
from sfumato.serve.core.status import NUMBERS
from sfumato.serve.formats.json_stat import write_json_stat
from sfumato.serve.formats.layout import Options
from sfumato.serve.formats.sheets import write_csv, write_parquet
from sfumato.serve.sdmx.series import obs_status


def test_a_mean_that_is_not_defined_has_no_number_in_any_format(catalogue: Catalogue, bundles: dict[str, Path]) -> None:
    cube = open_cube(bundles["survey"], "people")
    less = {**cube.cube.columns, "weighted": -cube.cube.columns["weighted"]}
    negative = replace(cube, cube=replace(cube.cube, columns=less))
    table = catalogue["people"]
    assert isinstance(table.source, CubeFigures)
    table = replace(table, source=replace(table.source, cube=negative, _kept=BoundedCache(KEPT_BYTES)))
    answer = table.answer(select(table, {"region": ["*"], "contents": ["mean_pay", "mean_pay_error"]}))
    assert set(answer.texts()) == {"not defined"}
    assert set(answer.values()) == {None}
    assert set(answer.symbols().values()) == {"-"}, "and nothing is said of an error"
    told = json.loads(write_json_stat(answer, Options()))
    assert set(told["value"]) == {None}
    lines = list(csv.reader(write_csv(answer, Options()).decode().splitlines()))[1:]
    assert [line[1:] for line in lines] == [["", "", "not defined"]] * len(answer.dimensions[0])
    written = pq.read_table(pa.BufferReader(write_parquet(answer, Options())))
    assert written["mean_pay"].null_count == written.num_rows
    assert set(written["status"].to_pylist()) == {"not defined"}
    assert set(obs_status(answer)) == {"M"}
    asked = negative.means("pay", ["region"]).to_arrow()
    for column in ("value", "error", "cv"):
        assert asked[column].null_count == asked.num_rows, "the query tool says the same"


def test_a_status_that_hides_takes_the_number_away() -> None:
    hidden = cube_figures._column(np.array([-321.28, 5.0]), np.array([NUMBERS["not defined"], 0], dtype=np.int8))
    assert hidden.listed() == [None, 5.0]
    assert marks_of(hidden, {"error": Column(values=np.array([np.inf, 5.0]))}).tolist() == [0, 2]  # type: ignore[union-attr]
