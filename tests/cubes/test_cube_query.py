"""Questions to a published cube: the same answer by any path, parts that add up, and errors that are what they say."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.adjust.protected_cube import protected_cube
from sfumato.cube.answer import Rules
from sfumato.cube.cube import MILLION, Cube
from sfumato.cube.query import PublishedCube, open_cube
from sfumato.cube.section import CubeSection
from sfumato.errors import SfumatoError
from sfumato.noise.randomness import Seeded
from sfumato.planned_cube import cube_method
from sfumato.release_file import load
from sfumato.run import run
from tests.cubes.survey import CODES, release
from tests.cubes.test_protected_cube import BY, true_cube


@cache
def published() -> PublishedCube:
    """A cube that went through a release, its bundle and its file."""
    with TemporaryDirectory() as folder:
        bundle = run(load(release(Path(folder), ("cap = 7", "cap = 7\nleast_count = 10\nlargest_cv = 0.3")))).bundle
        return open_cube(bundle, "people")


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
    turned = published().totals(by[::-1], where=dict(reversed(where.items()))).exact
    assert turned is not None
    assert np.array_equal(turned.transpose(), whole), "the order of dimensions changes nothing"
    assert np.array_equal(published().totals(by, where=where).exact, whole), "the same question has the same answer"


@settings(max_examples=300, deadline=None)
@given(questions())
def test_proportions_and_means_are_ratios_of_the_totals(question: tuple[list[str], dict[str, list[str]]]) -> None:
    by, where = question
    totals, sums = (published().totals(by, where=where, column=name).values for name in ("weighted", "pay"))
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.allclose(published().means("pay", by, where=where).values, sums / totals, equal_nan=True)
        shares = published().proportions(by, where=where).values
        assert np.allclose(shares, totals / totals.sum(), equal_nan=True)
        within = published().proportions(by, within=by[:1], where=where).values
        assert np.allclose(within.sum(axis=tuple(range(1, len(by)))), 1)


def protected(seed: int, true: Cube, **changes: Any) -> PublishedCube:
    described: dict[str, Any] = {"name": "c", "by": BY, "epsilon": 1, "cap": 12}
    section = CubeSection.model_validate(described | changes)
    cube, figures = protected_cube(true, cube_method(section, alpha=Fraction(1)), Seeded(seed), stratum=section.stratum)
    return PublishedCube(name="c", title="", cube=cube, figures=figures, rules=Rules())


CONTROLS = [{"by": ["region"], "epsilon": 1}, {"by": ["level", "job"], "exact": True}]


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
    runs = [protected(seed, true, **changes) for seed in range(600)]
    for what, question in asked.items():
        answers = [question(run) for run in runs]
        spread = np.var([answer.values for answer in answers], axis=0)
        expected = np.mean([answer.perturbation_error**2 for answer in answers], axis=0)
        assert np.mean(spread) == pytest.approx(np.mean(expected), rel=0.08), what


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
    ],
)
def test_a_question_that_makes_no_sense_says_what_does(question: Any, words: str) -> None:
    with pytest.raises(SfumatoError, match=words):
        question(published())
