"""Quantiles of a cube: right by brute force, rising with the share, the same by any path, with errors that are true."""

from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.cells import Dimension
from sfumato.errors import SfumatoError
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.cube_query import Classes, Distribution, Rules
from sfumato.statistics.cube.figures import ColumnNoise, Figures, Sampling, Scale
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.tabulate import Chunk, tabulated
from tests.statistics.cube.survey import CODES
from tests.statistics.cube.test_cube_query import protected, published, questions

SHARES = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000), max_denominator=1000)
SUMS = st.lists(st.integers(-(10**15), 10**16), min_size=1, max_size=8)
EDGES = [0, 10, 25, 100]
AGES = Dimension(name="age", codes=tuple(f"{age}" for age in range(20, 70, 2)))
PLACES = Dimension(name="place", codes=("A", "B", "C"))


def code_of(sums: list[int], share: Fraction) -> int | None:
    """The place of the first code up to which the share lies, in exact numbers; sums that fall are levelled."""
    upto = list(accumulate(sums))
    if upto[-1] <= 0:
        return None
    rising = [max(upto[: place + 1]) + min(upto[place:]) for place in range(len(upto))]
    return next(place for place, sum_ in enumerate(rising) if sum_ >= 2 * share * upto[-1])


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None)
@given(sums=SUMS, share=SHARES)
def test_a_quantile_is_the_first_code_up_to_which_the_share_lies(sums: list[int], share: Fraction) -> None:
    expected = code_of(sums, share)
    distribution = Distribution.of(np.array(sums))
    if expected is None:
        assert distribution.total == 0
    else:
        assert int(distribution.at(share).places) == expected


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None)
@given(sums=SUMS, shares=st.lists(SHARES, min_size=2, max_size=6))
def test_quantiles_rise_with_the_share_in_codes_and_in_numbers(sums: list[int], shares: list[Fraction]) -> None:
    distribution = Distribution.of(np.array(sums))
    classes = Classes.between(
        Dimension(name="a", codes=tuple(map(str, range(len(sums))))), [1.1 * edge**2 for edge in range(len(sums) + 1)]
    )
    found = [distribution.at(share) for share in sorted(shares)]
    assert np.all(np.diff([int(one.places) for one in found]) >= 0)
    assert np.all(np.diff([float(one.values(classes)) for one in found]) >= 0)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(sums=SUMS, share=SHARES)
def test_neither_end_of_the_codelist_is_preferred(sums: list[int], share: Fraction) -> None:
    length = len(sums)
    classes = Classes.between(Dimension(name="a", codes=tuple(map(str, range(length)))), list(range(length + 1)))
    distribution, turned = Distribution.of(np.array(sums)), Distribution.of(np.array(sums[::-1]))
    if distribution.total == 0:
        return
    found, other = (float(d.at(s).values(classes)) for d, s in ((distribution, share), (turned, 1 - share)))
    at_an_edge = 2 * share * sum(sums) in map(int, distribution.doubled)
    assert at_an_edge or found == pytest.approx(length - other, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(question=questions(), share=SHARES, data=st.data())
def test_the_same_records_have_the_same_quantile_by_any_path(
    question: tuple[list[str], dict[str, list[str]]], share: Fraction, data: st.DataObject
) -> None:
    by, where = question
    of = data.draw(st.sampled_from(list(CODES)))
    by = [name for name in by if name != of]
    answer = published().quantiles(of, share, by, where=where)
    sums = published().totals([*by, of], where=where).exact
    assert sums is not None
    kept = [code for code in CODES[of] if code in where.get(of, CODES[of])]
    for at in np.ndindex(sums.shape[:-1]):
        place = code_of([int(value) for value in sums[at]], share)
        value = answer.values[(*at, 0)]
        assert np.isnan(value) if place is None else kept[int(value)] == kept[place]
    order = data.draw(st.permutations(range(len(by))))
    turned = published().quantiles(of, share, [by[axis] for axis in order], where=dict(reversed(where.items())))
    for ours, theirs in (
        (answer.values, turned.values),
        (answer.errors, turned.errors),
        (answer.status, turned.status),
    ):
        assert np.array_equal(ours.transpose([*order, len(by)]), theirs, equal_nan=True)


def test_numbers_are_interpolated_inside_their_class_and_scores_lie_in_its_middle() -> None:
    cube = Cube(
        dimensions=(Dimension(name="job", codes=("a", "b", "c")),),
        columns={"count": np.array([10, 20, 10]) * MILLION, "weighted": np.array([10, 20, 10]) * MILLION},
        parts={"count": MILLION, "weighted": MILLION},
    )
    silent = dict.fromkeys(cube.columns, ColumnNoise(variance=0.0, controls={}, scale=Scale(overall=1)))
    asked = PublishedCube(name="", title="", cube=cube, figures=Figures(noise=silent), rules=Rules())
    assert asked.quantiles("job", [0.25, 0.5, 0.75], edges=EDGES).values.tolist() == [10, 17.5, 25]
    assert asked.quantiles("job", ["0.1"], edges=EDGES).values.tolist() == [4]
    assert asked.quantiles("job", 0.5, scores={"a": 1, "b": 2, "c": 4}).values.tolist() == [2.25], "of 1.5 to 3"
    assert asked.quantiles("job", 0.5, scores={"a": 0, "b": 1, "c": 2}).values.tolist() == [1]
    assert asked.quantiles("job", 0.125, scores={"a": 0, "b": 1, "c": 2}).values.tolist() == [0]
    only = asked.quantiles("job", 0.5, where={"job": ["a", "c"]}, edges=EDGES)
    assert only.values.tolist() == [10]
    table = asked.quantiles("job", [0.25, 0.5]).to_arrow()
    assert table["value"].to_pylist() == ["a", "b"]
    assert table["quantile"].to_pylist() == ["0.25", "0.5"]
    assert {"low", "high", "share_error"} <= set(table.column_names)


def ages(seed: int, people: int = 60_000) -> Cube:
    rng = np.random.default_rng(seed)
    age = np.clip(np.rint(rng.normal(12, 5, people)), 0, 24).astype(np.int64)
    place = rng.integers(0, 3, people)
    weights = np.full(people, 20 * MILLION)
    return tabulated((PLACES, AGES), [Chunk(positions=place * len(AGES) + age, weights=weights)])


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"controls": [{"by": ["place"], "epsilon": 1}]}], ids=["plain", "calibrated"])
def test_the_expected_perturbation_error_is_the_spread_of_quantiles(changes: dict[str, Any]) -> None:
    true, shares, edges = ages(3), [0.25, 0.5, 0.9], list(range(20, 72, 2))
    noisy = {"by": ["place", "age"], "epsilon": "0.03", "cap": 700, **changes}
    answers = [protected(seed, true, **noisy).quantiles("age", shares, ["place"], edges=edges) for seed in range(1_000)]
    spread = np.var([answer.values for answer in answers], axis=0).mean(axis=0)
    expected = np.mean([answer.perturbation_error**2 for answer in answers], axis=0).mean(axis=0)
    assert spread == pytest.approx(expected, rel=0.12), "an error that is 10% off is rejected"


def test_the_interval_holds_the_true_quantile_of_a_sample_nine_times_in_ten() -> None:
    whole = ages(4, people=200_000)
    edges = list(range(20, 72, 2))
    weight = 20 * 200_000 // 500
    true = Distribution.of(whole["count"]).at(Fraction(1, 2)).values(Classes.between(AGES, edges))
    inside = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        drawn = rng.multinomial(500, (whole["count"] / whole["count"].sum()).ravel()).reshape(whole.shape)
        sampled = Cube(
            dimensions=whole.dimensions,
            columns={"count": drawn, "weighted": drawn * weight * MILLION},
            parts={"weighted": MILLION},
        )
        asked = protected(seed, sampled, by=["place", "age"], epsilon=5, cap=7)
        figures = replace(asked.figures, sampling=Sampling(square=0.0, linear=weight))
        answer = replace(asked, figures=figures).quantiles("age", 0.5, ["place"], edges=edges)
        assert answer.interval is not None
        low, high = (end[:, 0] for end in answer.interval)
        inside.append((low <= true) & (true <= high))
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)


def test_rules_mark_quantiles_as_they_mark_other_figures() -> None:
    answer = published().quantiles("level", 0.5, ["region", "job"])
    few = published().totals(["region", "job"]).counts < 10
    assert np.array_equal(answer.status[..., 0] == 1, few)
    marked = (answer.errors / 0.5 > 0.3) & ~few[..., None]
    assert np.array_equal(answer.status == 2, marked), "codes: by the error of the share"
    numbers = published().quantiles("level", 0.5, ["region", "job"], scores={"1": 1, "2": 2})
    assert np.array_equal(numbers.status == 2, (numbers.cv > 0.3) & ~few[..., None])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"of": "place"}, "one of its dimensions"),
        ({"of": "regions"}, "did you mean 'region'"),
        ({"of": "job", "by": ["job"]}, "other dimensions"),
        ({"of": "job", "shares": 0}, "between 0 and 1"),
        ({"of": "job", "shares": 1.0}, "between 0 and 1"),
        ({"of": "job", "shares": float("nan")}, "between 0 and 1"),
        ({"of": "job", "shares": "half"}, "between 0 and 1"),
        ({"of": "job", "shares": 0.12345678}, "six decimals"),
        ({"of": "job", "shares": []}, "at least one share"),
        ({"of": "job", "shares": [0.5, "1/2"]}, "each once"),
        ({"of": "job", "edges": [0, 1, 2]}, "4 edges"),
        ({"of": "job", "edges": [0, 2, 1, 3]}, "do not all rise"),
        ({"of": "job", "edges": [0, 1, 2, float("inf")]}, "finite"),
        ({"of": "job", "scores": {"a": 1}}, "one score for every code"),
        ({"of": "job", "scores": {"a": 1, "b": 3, "c": 2}}, "rise in the order"),
        ({"of": "job", "scores": {"a": 1, "b": 2, "c": 3}, "edges": EDGES}, "leave out one"),
    ],
)
def test_a_quantile_that_makes_no_sense_says_what_does(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(SfumatoError, match=words):
        published().quantiles(asked.pop("of"), **asked)
