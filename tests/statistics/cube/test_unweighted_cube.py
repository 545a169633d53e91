"""Records without weights: one count, drawn once, and everything that reads a cube takes it for the weighted count."""

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.read import open_cube
from sfumato.checking import checked, stored_answers
from sfumato.errors import MethodError, ReleaseError
from sfumato.release import load
from sfumato.running import keep_answer, open_ledger, run
from sfumato.serve.core.bundle import OpenBundle
from sfumato.serve.core.model import ServedTable
from sfumato.statistics.cube.cube import MILLION
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.cube.stored import read_stored, stored, with_columns
from sfumato.statistics.cube.truncated_laplace import cube_method
from tests.cli.call import call
from tests.statistics.cube.pairs import published_pairs
from tests.statistics.cube.survey import RELEASE, records, release

WEIGHTS = RELEASE[RELEASE.index(", weight =") : RELEASE.index(" }\n\n[data.attributes]")]
UNWEIGHTED = (WEIGHTS, "")
CONTROLS = 'controls = [{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"], epsilon = 0.5 }]'

PLAIN = "epsilon = 1\ncap = 12\n"
CUBES = {
    "plain": PLAIN,
    "a control": PLAIN + 'controls = [{ by = ["place", "side"], epsilon = 0.5 }]\n',
    "several levels": PLAIN + 'approach = "several-levels"\nlevels = [["place", "side"]]\n',
    "whole levels": PLAIN + 'approach = "several-levels"\nlevels = [["place", "side"]]\nnonnegative = true\n',
}


def loss_is_charged(folder: Path, cube: str, places: int) -> None:
    pairs = published_pairs(folder, cube, places=places)
    assert pairs.columns == ("count",)
    assert 0.3 < pairs.loss() <= pairs.guarantee.epsilon


def test_the_numbers_published_of_a_cell_tell_no_more_than_is_charged(tmp_path: Path) -> None:
    loss_is_charged(tmp_path, CUBES["plain"], places=10_000)


@pytest.mark.slow
@pytest.mark.parametrize("cube", CUBES)
def test_no_form_of_a_cube_tells_more_than_is_charged(tmp_path: Path, cube: str) -> None:
    loss_is_charged(tmp_path, CUBES[cube], places=100_000 if cube == "plain" else 20_000)


def test_nothing_weighted_is_published_of_records_without_weights(tmp_path: Path) -> None:
    bundle = run(load(release(tmp_path, UNWEIGHTED))).bundle
    table = pq.read_table(bundle / "cubes/people.parquet")
    assert table.column_names == ["region", "job", "level", "count", "pay"]
    described = json.loads((bundle / "structure.json").read_text())["cubes"][0]
    assert described["parts"] == {"count": 1_000_000, "pay": 1_000}
    assert list(described["columns"]) == ["count", "pay"]
    said = (bundle / "statement.md").read_text()
    assert "**Totals of measures are not covered by this.**" in said
    assert "The averages of measures of people are computed from the data without noise" in said
    assert "eighted" not in said + json.dumps(described)


def test_a_cube_of_counts_alone_leaves_nothing_outside_of_its_guarantee(tmp_path: Path) -> None:
    bundle = run(load(release(tmp_path, UNWEIGHTED, ('measures = ["pay"]\n', "")))).bundle
    said = (bundle / "statement.md").read_text()
    assert "not covered by this" not in said
    assert "without noise" not in said
    assert "average" not in said


def test_the_count_is_the_weighted_count_for_every_question(tmp_path: Path) -> None:
    cube = open_cube(run(load(release(tmp_path, UNWEIGHTED))).bundle, "people")
    counts, sums = cube.cube["count"] / MILLION, cube.cube["pay"] / 1_000
    for column in ({}, {"column": "weighted"}, {"column": "count"}):
        answer = cube.totals(["region"], **column)
        assert np.array_equal(answer.values, answer.counts)
        assert np.allclose(answer.values, counts.sum(axis=(1, 2)))
        assert np.array_equal(answer.errors, cube.totals(["region"], column="count").errors)
        assert (answer.errors > 0).all()
    assert np.allclose(cube.proportions("region").values, counts.sum(axis=(1, 2)) / counts.sum())
    assert np.allclose(cube.means("pay", "region").values, sums.sum(axis=(1, 2)) / counts.sum(axis=(1, 2)))
    share = cube.proportions(["region", "level"], within=["region"]).values[:, 1]
    assert np.allclose(cube.mean_scores("level", {"1": 0, "2": 1}, "region").values, share)
    assert cube.quantiles("level", 0.5).values.shape == (1,)


@pytest.mark.slow
def test_readers_of_a_bundle_see_one_count(tmp_path: Path) -> None:
    file = release(tmp_path, UNWEIGHTED)
    call("run", file)
    asked = ("query", tmp_path / "bundle", "people", "--by", "region", "--json")
    by_default = call(*asked).stdout
    assert json.loads(by_default)["asked"] == "numbers of records by region"
    assert call(*asked, "--column", "weighted").stdout == by_default
    found = json.loads(call("assess", file, "--json").stdout)["cubes"][0]
    kinds = [kind["figure"] for kind in found["by_dimension"][1]["figures"]]
    assert kinds == ["records", "proportions", "means of pay"]
    assert "eighted totals" not in call("assess", file).stdout


def served(bundle: Path) -> ServedTable:
    opened = OpenBundle.open(bundle)
    return opened.cube(opened.structure["cubes"][0], prefix="", groupings=lambda _: ())


def test_the_server_offers_one_count_and_means_of_it(tmp_path: Path) -> None:
    table = served(run(load(release(tmp_path, UNWEIGHTED))).bundle)
    assert [metric.code for metric in table.metrics if metric.kind == "value"] == ["count", "pay", "mean_pay"]
    assert [metric.label for metric in table.metrics if metric.kind == "value"] == [
        "Records",
        "Total of pay",
        "Mean of pay",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("cap = 7", 'cap = 7\nsensitivity = "weight"\nlargest_weight = 5'), "records with a `weight`"),
        ((CONTROLS, 'controls = [{ by = ["region"], totals = "weighted.csv" }]'), "totals in the column 'count'"),
    ],
)
def test_weights_that_are_not_there_are_refused_before_anything_is_charged(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    (tmp_path / "weighted.csv").write_text("region,weighted\nN,1\nE,1\nS,1\nW,1\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match=words):
        run(load(release(tmp_path, UNWEIGHTED, ('measures = ["pay"]\n', ""), change)))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_mean_is_not_divided_by_a_count_that_was_made_to_fit_public_totals(tmp_path: Path) -> None:
    (tmp_path / "totals.csv").write_text("region,count\nN,100\nE,100\nS,100\nW,100\n", encoding="utf-8")
    totals = (CONTROLS, 'controls = [{ by = ["region"], totals = "totals.csv" }]')
    with pytest.raises(ReleaseError, match="a mean would divide a sum that was not made to fit"):
        run(load(release(tmp_path, UNWEIGHTED, totals)))
    published = run(load(release(tmp_path, UNWEIGHTED, totals, ('measures = ["pay"]\n', ""))))
    assert open_cube(published.bundle, "people").totals("region").values.tolist() == [100.0] * 4


def test_an_exact_control_of_counts_agrees_with_public_totals_or_is_refused(tmp_path: Path) -> None:
    found = records()["region"]
    counted = "".join(f"{code},{found.count(code)}\n" for code in "NESW")
    (tmp_path / "totals.csv").write_text(f"region,count\n{counted}", encoding="utf-8")
    controls = 'controls = [{ by = ["region"], totals = "totals.csv" }, { by = ["region", "job"], exact = true }]'
    file = release(tmp_path, UNWEIGHTED, (CONTROLS, controls), ('measures = ["pay"]\n', ""))
    told = open_cube(run(load(file)).bundle, "people").totals("region").values
    assert told.tolist() == [float(found.count(code)) for code in "NESW"]
    (tmp_path / "totals.csv").write_text("region,count\nN,1\nE,1\nS,1\nW,1\n", encoding="utf-8")
    with pytest.raises(MethodError, match="the same sums by region"):
        run(load(file))


def test_the_stratum_scales_measures_and_leaves_counts_alone(tmp_path: Path) -> None:
    controls = 'controls = [{ by = ["region"], epsilon = 0.5 }]\nweights = "region"'
    cube = open_cube(run(load(release(tmp_path, UNWEIGHTED, (CONTROLS, controls)))).bundle, "people")
    assert cube.figures.noise["count"].scale.axis is None
    assert cube.figures.noise["pay"].scale.axis == 0


def two_draws(content: bytes) -> bytes:
    """A cube as version 0.1 stored it: beside the count a second draw of it, which missed its controls."""
    cube, figures = read_stored(content)
    assert figures.calibration is not None
    gaps = {**figures.calibration.gaps, "weighted": 7}
    return stored(
        cube.with_column("weighted", cube["count"] + MILLION, parts=MILLION),
        replace(
            figures,
            noise={**figures.noise, "weighted": figures.noise["count"]},
            calibration=replace(figures.calibration, converged=False, largest_gap=7, gaps=gaps),
        ),
    )


@pytest.mark.slow
def test_an_answer_of_version_0_1_is_published_again_without_its_second_draw(tmp_path: Path) -> None:
    one_draw = (run(load(release(tmp_path / "now", UNWEIGHTED))).bundle / "cubes/people.parquet").read_bytes()
    loaded = load(release(tmp_path / "before", UNWEIGHTED))
    with checked(loaded) as ready:
        (charge,) = ready.identity.charges(ready.plan)
        open_ledger(loaded).charge(loaded.account, [charge], loaded.about.title, budget=loaded.budget)
        kept = {"question": charge.question, "table": charge.table}
        keep_answer(
            two_draws(one_draw), release=loaded, ledger=open_ledger(loaded), answers=stored_answers(loaded), **kept
        )
    published = run(loaded)
    assert published.charged == published.finished == ()
    assert (published.bundle / "cubes/people.parquet").read_bytes() == one_draw
    assert not published.unmet, "it was the second draw that missed its controls"
    assert "people" in call("assess", tmp_path / "before/release.toml").stdout.lower()


def test_a_bundle_of_version_0_1_is_read_and_served_as_it_is(tmp_path: Path) -> None:
    bundle = run(load(release(tmp_path, UNWEIGHTED))).bundle
    file, manifest = bundle / "cubes/people.parquet", bundle / "manifest.json"
    file.write_bytes(two_draws(file.read_bytes()))
    listed = json.loads(manifest.read_text())
    listed["files"]["cubes/people.parquet"] = {
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "bytes": file.stat().st_size,
    }
    manifest.write_text(json.dumps(listed))
    cube = open_cube(bundle, "people")
    assert (cube.totals("region").values - cube.totals("region", column="count").values).tolist() == [6.0] * 4
    codes = [metric.code for metric in served(bundle).metrics if metric.kind == "value"]
    assert codes == ["weighted", "count", "pay", "mean_pay"]


def test_a_cube_with_just_the_columns_asked_for_is_the_same_file(tmp_path: Path) -> None:
    content = (run(load(release(tmp_path))).bundle / "cubes/people.parquet").read_bytes()
    assert with_columns(content, ("count", "weighted", "pay", "other")) is content


def test_the_text_that_ledgers_name_the_noise_of_a_cube_by_is_that_of_version_0_1() -> None:
    described = {"name": "c", "by": ["a"], "epsilon": 2, "cap": 7, "empty_cells": "1/2", "measures": ["m"]}
    section = CubeSection.model_validate(described | {"controls": [{"by": ["a"], "epsilon": 1, "cap": 3}]})
    assert repr(cube_method(section, alpha=Fraction(1))) == (
        "TruncatedLaplace(alpha=Fraction(1, 1), "
        "counts=TruncatedGeometric(epsilon=Fraction(2, 1), cap=7, sensitivity=1), weights=None, "
        "controls=(ControlNoise(by=('a',), "
        "counts=TruncatedGeometric(epsilon=Fraction(1, 1), cap=3, sensitivity=1), weights=None),), "
        "empty_cells=Fraction(1, 2), weight_unit=1)"
    )
