"""The table model: every figure of a bundle is served as it is, and nothing is summed that may not be."""

import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.bundle.read import open_cube
from sfumato.errors import BundleError, SfumatoError
from sfumato.serve.core import figures as cube_figures
from sfumato.serve.core import figures as remembering_cube
from sfumato.serve.core.bundle import _label
from sfumato.serve.core.catalogue import BundleSource, Catalogue, open_catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.figures import StoredFigures
from sfumato.serve.core.model import Column, Selection, ServedTable, TableAnswer, marks_of
from sfumato.serve.core.selection import GroupingSection, default, everything, read_groupings, select
from sfumato.statistics.cube.published_cube import PublishedCube

TABLES = (
    "jobs_by_place_industry",
    "jobs_by_industry",
    "jobs_by_industry_ownership",
    "private_by_place_industry",
    "turnover_by_state_industry",
    "profit_by_industry_size",
    "businesses_by_state_size",
    "links_between_states",
    "indicators",
    "flows_between_states",
)


def rows(bundles: dict[str, Path], name: str) -> list[dict[str, Any]]:
    (found,) = (path for folder in bundles.values() for path in folder.glob(f"tables/{name}.parquet"))
    return list(pq.read_table(found).to_pylist())


def cells(answer: TableAnswer) -> dict[tuple[str, ...], dict[str, Any]]:
    """Figures by codes and by metric, with the status."""
    keys = product(*(dimension.codes for dimension in answer.dimensions))
    figures = zip(*(column.listed() for column in answer.columns), strict=True)
    names = [
        "value" if metric.kind == "value" and answer.table.kind == "table" else metric.code for metric in answer.metrics
    ]
    return {
        key: {**dict(zip(names, values, strict=True)), "status": text}
        for key, values, text in zip(keys, figures, answer.texts(), strict=True)
    }


@pytest.mark.parametrize("name", TABLES)
def test_every_row_of_a_bundle_is_served_as_it_is(name: str, catalogue: Catalogue, bundles: dict[str, Path]) -> None:
    table = catalogue[name]
    served = cells(table.answer(everything(table)))
    by = [dimension.name for dimension in table.dimensions]
    published = rows(bundles, name)
    assert published
    for row in published:
        key = tuple(row.pop(dimension) for dimension in by)
        assert served[key] == {"status": ""} | row


def test_combinations_without_a_row_are_exactly_zero(catalogue: Catalogue, bundles: dict[str, Path]) -> None:
    table = catalogue["private_by_place_industry"]
    served = cells(table.answer(everything(table)))
    listed = {(row["place"], row["industry"]) for row in rows(bundles, table.id)}
    absent = served.keys() - listed
    assert absent
    assert all(set(served[key].values()) <= {0, ""} for key in absent)


def test_a_pair_without_direction_is_the_same_from_both_ends(catalogue: Catalogue) -> None:
    answer = catalogue["links_between_states"].answer(everything(catalogue["links_between_states"]))
    column = answer.columns[0]
    assert column.missing is not None
    assert not column.missing.all()
    assert np.array_equal(column.values, column.values.T)
    assert np.array_equal(column.missing, column.missing.T)
    assert "one half" in " ".join(answer.table.notes)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_figure_does_not_depend_on_the_box_it_is_asked_in(data: st.DataObject, catalogue: Catalogue) -> None:
    table = catalogue[data.draw(st.sampled_from([*TABLES, "people"]))]
    whole = everything(table)
    places = [
        tuple(sorted(data.draw(st.sets(st.sampled_from(some), min_size=1, max_size=4))))
        for some in whole.places
        if some
    ]
    metrics = tuple(sorted(data.draw(st.sets(st.sampled_from(whole.metrics), min_size=1))))
    part = table.answer(Selection(places=tuple(places), metrics=metrics))
    full = table.answer(whole)
    for metric, column in zip(metrics, part.columns, strict=True):
        larger = full.columns[metric]
        box = np.ix_(*places)
        missing = np.zeros(part.shape, bool) if column.missing is None else column.missing
        expected = np.zeros(full.shape, bool) if larger.missing is None else larger.missing
        assert np.array_equal(missing, expected[box])
        assert np.array_equal(column.values[~missing], larger.values[box][~missing])


def test_a_total_is_the_published_one_and_no_sum(catalogue: Catalogue, bundles: dict[str, Path]) -> None:
    table = catalogue["turnover_by_state_industry"]
    assert all(dimension.eliminable for dimension in table.dimensions)
    found = cells(table.answer(select(table, {"state": ["*"], "contents": ["value"]})))
    for row in rows(bundles, table.id):
        if row["industry"] == "total":
            assert found[row["state"],]["value"] == row["value"]


def test_without_a_published_total_every_dimension_is_needed(catalogue: Catalogue) -> None:
    table = catalogue["jobs_by_industry"]
    assert not any(dimension.eliminable for dimension in table.dimensions)
    with pytest.raises(RefusedError, match="place_size"):
        table.answer(select(table, {"industry": ["*"]}))


def test_a_margin_that_was_published_stands_for_the_dimension_that_is_left_out(
    catalogue: Catalogue, bundles: dict[str, Path]
) -> None:
    table = catalogue["jobs_by_place_industry"]
    answer = table.answer(select(table, {"industry": ["*"], "ownership": ["private", "local"]}))
    assert "jobs_by_industry_ownership" in answer.notes[0]
    found = cells(answer)
    expected = {(row["industry"], row["ownership"]): row for row in rows(bundles, "jobs_by_industry_ownership")}
    assert {key: cell["value"] for key, cell in found.items()} == {key: expected[key]["value"] for key in found}
    with pytest.raises(RefusedError):
        table.answer(select(table, {"place": ["*"], "industry": ["*"]}))


def test_a_dimension_is_said_to_be_eliminable_only_if_leaving_it_out_always_has_an_answer(catalogue: Catalogue) -> None:
    by_industry = catalogue["jobs_by_industry_ownership"]
    assert [d.name for d in by_industry.dimensions if d.eliminable] == ["industry"]
    by_place = catalogue["jobs_by_place_industry"]
    assert [d.name for d in by_place.dimensions if d.eliminable] == ["place"]


@pytest.fixture(scope="module")
def cube(bundles: dict[str, Path]) -> PublishedCube:
    return open_cube(bundles["survey"], "people")


@pytest.mark.parametrize("by", [("region",), ("job", "level"), ("region", "job", "level"), ()])
def test_any_table_of_a_cube_is_what_the_query_tool_says(
    by: tuple[str, ...], catalogue: Catalogue, cube: PublishedCube
) -> None:
    table = catalogue["people"]
    metrics = {"contents": ["weighted", "weighted_error", "count", "mean_pay", "mean_pay_error"]}
    answer = table.answer(select(table, {name: ["*"] for name in by} | metrics))
    totals, counts, means = cube.totals(by), cube.totals(by, column="count"), cube.means("pay", by)
    expected = [totals.values, totals.errors, counts.values, means.values, means.errors]
    by_code = dict(zip([metric.code for metric in answer.metrics], answer.columns, strict=True))
    for code, values in zip(metrics["contents"], expected, strict=True):
        assert np.array_equal(by_code[code].values, values, equal_nan=True)


@settings(deadline=None)
@given(data=st.data())
def test_cells_that_are_picked_from_a_table_are_those_that_are_worked_out_alone(
    data: st.DataObject, catalogue: Catalogue, cube: PublishedCube
) -> None:
    table = catalogue["people"]
    names = data.draw(st.lists(st.sampled_from([d.name for d in table.dimensions]), min_size=1, unique=True))
    asked = {
        d.name: data.draw(st.lists(st.sampled_from(d.codes), min_size=1, unique=True))
        for d in table.dimensions
        if d.name in names
    }
    metrics = ["weighted", "weighted_error", "mean_pay", "mean_pay_error"]
    found = table.source.figures(select(table, {**asked, "contents": metrics}))
    by = [d.name for d in table.dimensions if d.name in names]
    totals, means = cube.totals(by, where=asked), cube.means("pay", by, where=asked)
    by_metric = {
        "weighted": totals.values,
        "weighted_error": totals.errors,
        "mean_pay": means.values,
        "mean_pay_error": means.errors,
    }
    order = [metric.code for metric in table.metrics if metric.code in by_metric]
    for code, column in zip(order, found.columns, strict=True):
        missing = np.zeros(column.values.shape, dtype=np.bool_) if column.missing is None else column.missing
        assert np.array_equal(column.values[~missing], by_metric[code][~missing])
        assert np.array_equal(missing, ~np.isfinite(by_metric[code]))


def test_a_table_too_large_to_be_worked_out_as_a_whole_has_the_same_figures(
    bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"region": ["N"], "job": ["a", "c"]}
    found = []
    for most in (0, cube_figures.WHOLE_CELLS):
        monkeypatch.setattr(cube_figures, "WHOLE_CELLS", most)
        table = open_catalogue([BundleSource(folder=bundles["survey"])])["people"]
        found.append(table.source.figures(select(table, asked)))
    for alone, picked in zip(found[0].columns, found[1].columns, strict=True):
        assert np.array_equal(alone.values, picked.values, equal_nan=True)
        assert _status_of(alone) == _status_of(picked)


def _status_of(column: Column) -> Any:
    return None if column.status is None else column.status.tolist()


def test_groups_of_codes_are_summed_exactly_and_have_the_error_of_the_sum(
    bundles: dict[str, Path], cube: PublishedCube, tmp_path: Path
) -> None:
    file = tmp_path / "groupings.toml"
    file.write_text(
        '[[grouping]]\nname = "halves"\ndimension = "region"\nlabel = "Halves"\n'
        'groups = { up = { label = "North and east", codes = ["N", "E"] }, rest = { label = "Others", codes = '
        '["from(S)"] } }\n',
        encoding="utf-8",
    )
    catalogue = open_catalogue([BundleSource(folder=bundles["survey"])], groupings=read_groupings(file))
    table = catalogue["people"]
    asked = {"level": ["*"], "contents": ["weighted", "weighted_error"]}
    answer = table.answer(select(table, asked, codelists={"region": "agg_halves"}))
    assert answer.dimensions[0].codes == ("up", "rest")
    for place, codes in enumerate((("N", "E"), ("S", "W"))):
        expected = cube.totals(["level"], where={"region": codes})
        assert np.array_equal(answer.columns[0].values[place], expected.values)
        assert np.array_equal(answer.columns[1].values[place], expected.errors)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[grouping]]\nname = 'x'\n",
        "[[grouping]]\nname='a/b'\ndimension='r'\nlabel='x'\ngroups={a={label='',codes=['N']}}\n",
    ],
)
def test_a_file_of_groupings_that_makes_no_sense_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "groupings.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SfumatoError, match="grouping"):
        read_groupings(file)


def test_a_group_with_unknown_codes_is_refused(bundles: dict[str, Path]) -> None:
    section = GroupingSection.model_validate(
        {"name": "odd", "dimension": "region", "label": "Odd", "groups": {"a": {"label": "A", "codes": ["nowhere"]}}}
    )
    with pytest.raises(SfumatoError, match="nowhere"):
        open_catalogue([BundleSource(folder=bundles["survey"])], groupings=[section])


@pytest.mark.parametrize("name", [*TABLES, "people"])
def test_the_default_selection_is_of_modest_size_and_has_an_answer(name: str, catalogue: Catalogue) -> None:
    table = catalogue[name]
    selection = default(table, 300)
    assert 0 < selection.cells <= 300
    assert len(table.answer(selection).values()) == selection.cells


def test_time_and_places_are_known_as_such(catalogue: Catalogue) -> None:
    def roles(table: ServedTable) -> dict[str, str | None]:
        return {axis.name: axis.role for axis in table.axes}

    assert roles(catalogue["indicators"])["quarter"] == "time"
    assert roles(catalogue["flows_between_states"])["origin_state"] == "geo"
    assert roles(catalogue["jobs_by_industry"]) == {"industry": None, "place_size": None, "contents": "metric"}


def test_a_table_says_what_was_done_and_what_is_promised(catalogue: Catalogue) -> None:
    jobs = catalogue["jobs_by_industry"]
    assert any("Smooth Pareto" in note for note in jobs.notes)
    assert any("whether a given person held a given job" in text for text in jobs.guarantee)
    assert jobs.guarantee[-1] == "This table by itself: strong, alpha = 0.1, epsilon = 1."
    assert catalogue["indicators"].guarantee[-1] == "This table by itself: no formal guarantee."


def test_a_second_table_of_the_same_name_is_refused_unless_its_bundle_is_named(bundles: dict[str, Path]) -> None:
    folder = bundles["survey"]
    with pytest.raises(BundleError, match="name="):
        open_catalogue([BundleSource(folder=folder), BundleSource(folder=folder)])
    both = open_catalogue([BundleSource.read(str(folder)), BundleSource.read(f"again={folder}")])
    assert list(both.tables) == ["people", "again-people"]


@pytest.mark.parametrize("changed", ["tables/jobs_by_place.csv", "structure.json", "codelists/place.csv"])
def test_a_changed_file_is_noticed(changed: str, bundles: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bundles["jobs"], tmp_path / "bundle"))
    path = folder / changed
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(BundleError, match="was changed"):
        open_catalogue([BundleSource(folder=folder)])


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"files": {}}), encoding="utf-8")
    with pytest.raises(BundleError, match=r"structure\.json"):
        open_catalogue([BundleSource(folder=tmp_path)])


def test_what_a_cube_remembers_is_bounded_and_changes_nothing(
    bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering_cube, "MOST_CELLS", 7)
    plain = open_cube(bundles["survey"], "people").cube
    cube = remembering_cube.RememberingCube.of(plain)
    for names in (("region",), ("job",), ("level",), ("job", "level"), (), ("region", "job", "level")):
        for _ in range(2):
            assert cube.table(*names, where={"job": ["a", "c"]}).equals(plain.table(*names, where={"job": ["a", "c"]}))
            assert cube.table(*names).equals(plain.table(*names))
    assert 0 < sum(map(len, cube._kept.values())) <= 7


NUMBERS = st.integers(-1_000, 1_000)
ERRORS = st.none() | st.integers(0, 4_000).map(lambda eighths: eighths / 8)


def column(numbers: list[float | None]) -> Column:
    missing = np.array([number is None for number in numbers])
    return Column(values=np.array([number or 0 for number in numbers]), missing=missing if missing.any() else None)


@given(cells=st.lists(st.tuples(st.none() | NUMBERS, ERRORS, st.none() | NUMBERS), min_size=1))
@pytest.mark.parametrize("kind", ["rse", "error"])
def test_values_are_marked_where_their_error_is_large_or_cannot_be_told(
    kind: str, cells: list[tuple[int | None, float | None, int | None]]
) -> None:
    def expected(value: int | None, error: float | None, high: int | None) -> int:
        if value is None:
            return 0
        if error is None or high is None:
            return 2
        size = 100 if kind == "rse" else abs(value)
        return 0 if error == 0 else (4 * error >= size) + (2 * error >= size)

    values, errors, highs = (column(list(some)) for some in zip(*cells, strict=True))
    found = marks_of(values, {kind: errors, "high": highs})
    marks = [0] * len(cells) if found is None else found.tolist()
    assert marks == [expected(*cell) for cell in cells]


def test_an_interval_without_an_upper_limit_says_so_and_marks_its_value(catalogue: Catalogue) -> None:
    table = catalogue["jobs_by_place"]
    stored = table.source
    assert isinstance(stored, StoredFigures)
    codes = [metric.code for metric in table.metrics]
    at = codes.index("high")
    open_end = np.zeros(len(table.dimensions[0]), dtype=bool)
    open_end[1] = True
    columns = list(stored.columns)
    columns[at] = replace(columns[at], missing=open_end)
    unlimited = replace(table, source=replace(stored, columns=tuple(columns)))
    answer = unlimited.answer(everything(unlimited))
    place = len(codes)  # of the value of the second cell
    assert answer.values()[place + at] is None
    assert answer.symbols()[place + at] == ">"
    assert answer.symbols()[place] == "**"
    assert ">" not in table.answer(everything(table)).symbols().values()
    alone = unlimited.answer(select(unlimited, {"place": ["*"], "contents": ["value"]}))
    assert alone.symbols()[1] == "**"


@pytest.mark.parametrize("name", [*TABLES, "people"])
def test_a_mark_does_not_depend_on_the_metrics_that_are_asked_for(name: str, catalogue: Catalogue) -> None:
    table = catalogue[name]
    whole = everything(table)
    full = table.answer(whole).remarks()
    for at, metric in enumerate(table.metrics):
        if metric.kind == "value":
            assert np.array_equal(table.answer(replace(whole, metrics=(at,))).remarks()[..., 0], full[..., at])


def test_a_prediction_is_called_by_its_outcome_and_not_by_its_unit() -> None:
    about = {"statistic": {"predict": {"outcome": "kid_rank", "on": "parent_rank"}}, "unit": "0.01 percentiles"}
    assert _label(about) == "Kid rank"
    assert _label(about | {"measure": {"name": "kid_rank", "label": "Income rank"}}) == "Income rank"
