"""Questions to a published cube: the same answer by any path, parts that add up, and errors that are what they say."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.bundle.read import open_cube
from sfumato.errors import SfumatoError
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.cube_query import Rules
from sfumato.statistics.cube.figures import ColumnNoise, Figures, Scale
from sfumato.statistics.cube.protect import protected_cube
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.cube.truncated_laplace import cube_method
from tests.statistics.cube.survey import CODES, release
from tests.statistics.cube.test_protected_cube import BY, true_cube


@cache
def published() -> PublishedCube:
    """A cube that went through a release, its bundle and its file."""
    with TemporaryDirectory() as folder:
        bundle = run(load(release(Path(folder), ("cap = 7", "cap = 7\nleast_count = 10\nlargest_cv = 0.3")))).bundle
        return open_cube(bundle, "people")


def test_a_negative_number_of_records_is_off_by_all_of_itself_at_least() -> None:
    cube = published().cube
    columns = {
        name: np.where(np.arange(column.size).reshape(column.shape) == 0, -1_000 * cube.parts[name], column)
        for name, column in cube.columns.items()
    }
    below = replace(published(), cube=Cube(dimensions=cube.dimensions, columns=columns, parts=cube.parts))
    for column in ("count", "weighted"):
        answer = below.totals(BY, column=column)
        assert answer.values.flat[0] == -1_000
        assert answer.errors.flat[0] >= 1_000
        assert answer.errors.flat[1] == published().totals(BY, column=column).errors.flat[1] < 1_000


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[str], dict[str, list[str]]]:
    by = draw(st.lists(st.sampled_from(BY), unique=True))
    filtered = draw(st.lists(st.sampled_from(BY), unique=True))
    where = {
        name: draw(st.lists(st.sampled_from(CODES[name]), unique=True, min_size=1, max_size=len(CODES[name])))
        for name in filtered
    }
    return by, where


def one_by_one(cube: Cube, column: str, by: list[str], where: Mapping[str, list[str]]) -> dict[tuple[str, ...], int]:
    """The same table by a loop over all cells, in Python's integers."""
    found: dict[tuple[str, ...], int] = {}
    for place in np.ndindex(cube.shape):
        codes = {name: CODES[name][at] for name, at in zip(cube.names, place, strict=True)}
        if all(codes[name] in kept for name, kept in where.items()):
            key = tuple(codes[name] for name in by)
            found[key] = found.get(key, 0) + int(cube[column][place])
    return found


@settings(max_examples=1_000, deadline=None)
@given(questions(), st.sampled_from(["count", "weighted", "pay"]))
def test_an_answer_is_the_sum_of_its_cells_whatever_is_asked(
    question: tuple[list[str], dict[str, list[str]]], column: str
) -> None:
    by, where = question
    answer = published().totals(by, where=where, column=column)
    cells = one_by_one(published().cube, column, by, where)
    codes = [dimension.codes for dimension in answer.dimensions]
    assert answer.exact is not None
    found = {
        tuple(c[i] for c, i in zip(codes, at, strict=True)): int(answer.exact[at])
        for at in np.ndindex(answer.exact.shape)
    }
    assert found == cells
    assert np.array_equal(answer.values, answer.exact / (1_000 if column == "pay" else MILLION))


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None)
@given(questions(), st.data())
def test_parts_add_up_to_the_whole_exactly_by_any_path(
    question: tuple[list[str], dict[str, list[str]]], data: st.DataObject
) -> None:
    by, where = question
    whole = published().totals(by, where=where).exact
    assert whole is not None
    name = data.draw(st.sampled_from(BY))
    kept = where.get(name, list(CODES[name]))
    if name not in by:
        finer = published().totals([*by, name], where=where).exact
        assert finer is not None
        assert np.array_equal(finer.sum(axis=-1), whole), "a table summed over a dimension is the coarser table"
        parts = [published().totals(by, where={**where, name: [code]}).exact for code in kept]
        assert np.array_equal(sum(parts), whole), "filters that split a question split its answer"
    cut = data.draw(st.integers(1, len(kept)))
    halves = [published().totals(by, where={**where, name: half}) for half in (kept[:cut], kept[cut:]) if half]
    assert sum(int(half.exact.sum()) for half in halves if half.exact is not None) == int(whole.sum())
    order = data.draw(st.permutations(range(len(by))))
    turned = published().totals([by[axis] for axis in order], where=dict(reversed(where.items()))).exact
    assert np.array_equal(whole.transpose(order), turned), "the order of dimensions and filters changes nothing"
    assert np.array_equal(published().totals(by, where=where).exact, whole), "the same question has the same answer"


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None)
@given(questions(), st.data())
def test_a_question_to_a_part_of_the_cube_has_the_answer_of_the_whole_cube(
    question: tuple[list[str], dict[str, list[str]]], data: st.DataObject
) -> None:
    by, where = question
    answer = published().totals(by, where=where).exact
    cube = published().cube
    for name in data.draw(st.permutations(list(where))):
        wider = data.draw(st.lists(st.sampled_from(CODES[name]), unique=True))
        cube = cube.where({name: {*where[name], *wider}})
    finer = data.draw(st.permutations(sorted({*by, *where, *data.draw(st.lists(st.sampled_from(BY)))})))
    assert np.array_equal(cube.project(*finer).table(*by, where=where)["weighted"], answer)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(questions(), st.data())
def test_every_kind_of_figure_is_the_same_whatever_the_order_in_which_it_is_asked_for(
    question: tuple[list[str], dict[str, list[str]]], data: st.DataObject
) -> None:
    by, where = question
    by = [name for name in by if name != "job"]
    order = data.draw(st.permutations(range(len(by))))
    turned = [by[axis] for axis in order]
    whole = {name: [*codes, *codes[:1]] for name, codes in reversed(where.items())}
    scores = {code: place for place, code in enumerate(CODES["job"])}
    asked = {
        "records": lambda c, b, w: c.totals(b, where=w, column="count"),
        "sums": lambda c, b, w: c.totals(b, where=w, column="pay"),
        "shares": lambda c, b, w: c.proportions(b, within=[name for name in BY[:1] if name in b], where=w),
        "means": lambda c, b, w: c.means("pay", b, where=w),
        "scores": lambda c, b, w: c.mean_scores("job", scores, b, where=w),
    }
    for what, question_of in asked.items():
        one, other = question_of(published(), by, where), question_of(published(), turned, whole)
        for ours, theirs in ((one.values, other.values), (one.errors, other.errors), (one.status, other.status)):
            assert np.allclose(ours.transpose(order), theirs, rtol=1e-12, atol=0, equal_nan=True), what
        assert np.array_equal(one.values.transpose(order), other.values, equal_nan=True), what


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(questions())
def test_proportions_and_means_are_ratios_of_the_totals(question: tuple[list[str], dict[str, list[str]]]) -> None:
    by, where = question
    totals, sums = (published().totals(by, where=where, column=name).values for name in ("weighted", "pay"))
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(totals > 0, sums / totals, np.nan)  # nothing is divided by less than nothing
        assert np.allclose(published().means("pay", by, where=where).values, expected, equal_nan=True)
        shares = published().proportions(by, where=where).values
        whole = totals.sum()
        assert np.allclose(shares, totals / whole if whole > 0 else np.full_like(totals, np.nan), equal_nan=True)
        within, others = published().proportions(by, within=by[:1], where=where).values, tuple(range(1, len(by)))
        ones = np.where(totals.sum(axis=others) > 0, 1, np.nan)
        assert np.allclose(within.sum(axis=others), ones, equal_nan=True)


def protected(seed: int, true: Cube, **changes: Any) -> PublishedCube:
    described: dict[str, Any] = {"name": "c", "by": BY, "epsilon": 1, "cap": 12}
    section = CubeSection.model_validate(described | changes)
    cube, figures = protected_cube(true, cube_method(section, alpha=Fraction(1)), Seeded(seed), stratum=section.stratum)
    return PublishedCube(name="c", title="", cube=cube, figures=figures, rules=Rules())


def unperturbed(true: Cube) -> PublishedCube:
    """The same questions to the truth."""
    cube = true.with_column("count", true["count"] * MILLION, parts=MILLION)
    none = ColumnNoise(variance=0.0, controls={}, scale=Scale(overall=1))
    return PublishedCube(
        name="c", title="", cube=cube, figures=Figures(noise=dict.fromkeys(cube.columns, none)), rules=Rules()
    )


def jittered(true: Cube, seed: int) -> Cube:
    """Cells with records moved by up to one average, so that every part of a unit is as likely."""
    rng = np.random.default_rng(seed)
    for name in ("weighted", "pay"):
        unit = true.only("count", name).project("region")
        average = (unit[name] // unit["count"]).reshape(4, 1, 1)
        moved = np.floor(rng.random(true.shape) * average).astype(np.int64) * (true["count"] > 0)
        true = true.with_column(name, true[name] + moved, parts=MILLION)
    return true


CONTROLS = [{"by": ["region"], "epsilon": 1}, {"by": ["level", "job"], "exact": True}]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{}, {"controls": CONTROLS}, {"weights": "region"}], ids=["plain", "calibrated", "strata"]
)
def test_the_expected_perturbation_error_is_the_spread_of_the_answers(changes: dict[str, Any]) -> None:
    true = true_cube(20_000)
    scores = {"a": 1, "b": 3, "c": 7}
    asked = {
        "totals": lambda c: c.totals(["job"], where={"region": ["N", "S"]}),
        "weighted, one-way": lambda c: c.totals(["region"]),
        "records": lambda c: c.totals(["region"], column="count"),
        "shares": lambda c: c.proportions(["region", "job"], within=["region"]),
        "shares of all": lambda c: c.proportions(["region"]),
        "means": lambda c: c.means("pay", ["region"]),
        "scores": lambda c: c.mean_scores("job", scores, ["region"]),
    }
    runs = [(jittered(true, seed), seed) for seed in range(600)]
    pairs = [(protected(seed, cube, **changes), unperturbed(cube)) for cube, seed in runs]
    for what, question in asked.items():
        answers = [(question(noisy), question(exact)) for noisy, exact in pairs]
        spread = np.mean([(noisy.values - exact.values) ** 2 for noisy, exact in answers], axis=0)
        expected = np.mean([noisy.perturbation_error**2 for noisy, _ in answers], axis=0)
        # Rounding is expected in as many cells as there may be records in, of which some here have none.
        assert 0.82 < np.mean(spread / expected) < 1.08, what


@pytest.mark.slow
def test_errors_follow_strata_whose_weights_are_far_apart() -> None:
    true = true_cube(20_000)
    far = np.array([1, 5, 20, 60]).reshape(4, 1, 1)
    for name in ("weighted", "pay"):
        true = true.with_column(name, true[name] * far, parts=MILLION)
    true = true.with_column("pay", true["pay"] // np.array([1, 2, 4, 8]).reshape(4, 1, 1), parts=MILLION)
    asked = {
        "totals": lambda c: c.totals(["region"]),
        "over strata": lambda c: c.totals(["job"]),
        "shares": lambda c: c.proportions(["region"]),
        "shares by job": lambda c: c.proportions(["job", "region"], within=["job"]),
        "means": lambda c: c.means("pay", ["region"]),
        "means over strata": lambda c: c.means("pay", ["job"]),
        "scores": lambda c: c.mean_scores("region", {"N": 1, "E": 2, "S": 3, "W": 4}, ["job"]),
    }
    runs = [(jittered(true, seed), seed) for seed in range(600)]
    pairs = [(protected(seed, cube, weights="region"), unperturbed(cube)) for cube, seed in runs]
    for what, question in asked.items():
        answers = [(question(noisy), question(exact)) for noisy, exact in pairs]
        spread = np.mean([(noisy.values - exact.values) ** 2 for noisy, exact in answers], axis=0)
        expected = np.mean([noisy.perturbation_error**2 for noisy, _ in answers], axis=0)
        assert spread.ravel() == pytest.approx(expected.ravel(), rel=0.25), f"{what}, in every cell"
        assert 0.85 < np.mean(spread / expected) < 1.1, what


def test_sums_of_a_measure_have_errors_of_sampling_as_well() -> None:
    answer = published().totals(["region"], column="pay")
    assert answer.sampling_error is not None
    sampling, totals = published().figures.sampling, published().totals(["region"])
    assert sampling is not None
    mean = published().means("pay", ["region"])
    assert totals.sampling_error is not None
    assert mean.sampling_error is not None
    product = (mean.values * totals.sampling_error) ** 2 + (totals.values * mean.sampling_error) ** 2
    assert answer.sampling_error**2 == pytest.approx(product)
    assert published().totals(["region"], column="count").sampling_error is None, "it is a fact of the sample"


def test_errors_of_sampling_and_noise_are_added_in_squares_and_rules_look_at_noisy_numbers() -> None:
    answer = published().totals(["region", "job", "level"])
    assert answer.sampling_error is not None
    assert np.allclose(answer.errors**2, answer.sampling_error**2 + answer.perturbation_error**2)
    few, uncertain = answer.counts < 10, answer.cv > 0.3
    assert np.array_equal(answer.status == 1, few)
    assert np.array_equal(answer.publishable, ~few & ~uncertain)
    assert few.any(), "a cell without records is there"
    table = answer.to_arrow()
    assert table.num_rows == 24
    assert table["status"].to_pylist()[0] in ("", "too few records", "too uncertain")


def test_a_mean_of_scores_can_be_filtered_and_is_a_mean() -> None:
    scores = {"1": 10, "2": 20}
    assert published().mean_scores("level", scores, where={"level": "1"}).values == 10
    whole = published().mean_scores("level", scores).values
    shares = published().proportions(["level"]).values
    assert whole == pytest.approx(10 * shares[0] + 20 * shares[1])


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (lambda c: c.totals(["place"]), "one of its dimensions"),
        (lambda c: c.totals(["job"], where={"job": "z"}), "codes of its codelist"),
        (lambda c: c.totals(["job"], where={"place": "z"}), "one of its dimensions"),
        (lambda c: c.totals(["job"], column="wealth"), "one of its columns"),
        (lambda c: c.means("wealth", ["job"]), "a measure of the cube: pay"),
        (lambda c: c.proportions(["job"], within=["level"]), "among job"),
        (lambda c: c.mean_scores("job", {"a": 1}), "one score for every code"),
        (lambda c: c.mean_scores("job", {"a": 1}, ["job"]), "other dimensions"),
        (lambda c: c.mean_scores("job", {"a": 1, "b": 1.5, "c": 2}), "whole scores"),
        (lambda c: c.totals(["job", "job"]), "each dimension once"),
        (lambda c: c.totals("jobs"), "did you mean 'job'"),
        (lambda c: c.totals(where={"job": []}), "at least one code"),
        (lambda c: c.totals(where={"level": 1}), "codes of its codelist: 1, 2"),
        (lambda c: c.totals(column="weigthed"), "did you mean 'weighted'"),
        (lambda c: c.means("weighted"), "a measure of the cube"),
        (lambda c: c.proportions(["job"], within=["job", "job"]), "each dimension once"),
    ],
)
def test_a_question_that_makes_no_sense_says_what_does(question: Any, words: str) -> None:
    with pytest.raises(SfumatoError, match=words):
        question(published())


def test_one_dimension_and_one_code_need_no_list() -> None:
    assert np.array_equal(published().totals("job").exact, published().totals(["job"]).exact)
    assert np.array_equal(
        published().totals("job", where={"level": "1"}).exact, published().totals(["job"], where={"level": ["1"]}).exact
    )


def test_a_figure_over_a_total_that_is_not_above_zero_is_marked_and_leaves_no_nan_in_a_table() -> None:
    answer = published().proportions(["region", "job", "level"], within=["region", "job", "level"])
    totals = published().totals(["region", "job", "level"])
    assert np.array_equal(answer.status == 3, ~(totals.values > 0))
    empty = published().cube.with_column("weighted", np.zeros(published().cube.shape, dtype=np.int64), parts=MILLION)
    without = replace(published(), cube=empty)
    for found in (without.means("pay", "job"), without.proportions("job"), without.quantiles("job", by="region")):
        assert set(np.ravel(found.status).tolist()) == {3}
        assert found.to_arrow()["value"].null_count == found.values.size
    nothing = without.totals("job").to_arrow()
    assert nothing["cv"].null_count == 3, "infinite"
    assert nothing["value"].to_pylist() == [0, 0, 0]


def test_an_answer_with_too_many_cells_is_refused_before_it_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.statistics.cube.published_cube.MOST_CELLS", 11)
    assert published().totals(["region", "level"]).values.size == 8
    assert published().totals(["region", "job"], where={"job": ["a", "b"]}).values.size == 8
    with pytest.raises(SfumatoError, match="at most 11 cells"):
        published().totals(["region", "job"])


def test_dimensions_that_are_called_like_figures_keep_their_codes() -> None:
    dimensions = tuple(replace(d, name=name) for d, name in zip(published().cube.dimensions, NAMES, strict=True))
    cube = Cube(dimensions=dimensions, columns=published().cube.columns, parts=published().cube.parts)
    table = replace(published(), cube=cube).totals(NAMES).to_arrow()
    assert table["value_code"].to_pylist()[:6] == ["N"] * 6
    assert set(table["status_code"].to_pylist()) == {"1", "2"}
    assert table["value"].to_pylist() == published().totals(BY).to_arrow()["value"].to_pylist()
    renamed = tuple(replace(d, name="quantile" if d.name == "job" else d.name) for d in published().cube.dimensions)
    cube = Cube(dimensions=renamed, columns=published().cube.columns, parts=published().cube.parts)
    table = replace(published(), cube=cube).quantiles("level", 0.5, "quantile").to_arrow()
    assert table["quantile"].to_pylist() == ["a", "b", "c"]
    assert table["quantile_share"].to_pylist() == ["0.5"] * 3


NAMES = ["value", "error", "status"]
