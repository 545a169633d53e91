"""The cube: one question has one answer, by whichever path, and parts add up to the whole, exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.agree.least_squares import summed
from sfumato.cells import Dimension
from sfumato.errors import DataError, SfumatoError
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.tabulate import Chunk, tabulated

LENGTHS = (4, 3, 2, 5, 2)
DIMENSIONS = tuple(
    Dimension(name=name, codes=tuple(f"{name}{code}" for code in range(length)))
    for name, length in zip("abcde", LENGTHS, strict=True)
)
NAMES = [dimension.name for dimension in DIMENSIONS]


def made(seed: int) -> Cube:
    """A cube with numbers of either sign, as after perturbation, too large for a sum of floats to be exact."""
    chance = np.random.default_rng(seed)
    return Cube(
        dimensions=DIMENSIONS,
        columns={
            "count": chance.integers(-5, 50, LENGTHS),
            "weighted": chance.integers(-(10**15), 10**15, LENGTHS),
        },
        parts={"weighted": MILLION},
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[str], dict[str, list[str]]]:
    by = draw(st.permutations(NAMES).map(lambda names: names[: draw(st.integers(0, 5))]))
    where = {
        dimension.name: draw(st.lists(st.sampled_from(dimension.codes), min_size=1, unique=True))
        for dimension in DIMENSIONS
        if draw(st.booleans())
    }
    return by, where


@pytest.mark.slow
@settings(max_examples=1_500, deadline=None)
@given(seed=st.integers(0, 20), question=questions(), data=st.data())
def test_a_question_has_one_answer_by_every_path(
    seed: int, question: tuple[list[str], dict[str, list[str]]], data: st.DataObject
) -> None:
    cube, (by, where) = made(seed), question
    answer = cube.table(*by, where=where)

    one_by_one = cube
    for name in data.draw(st.permutations(list(where))):
        one_by_one = one_by_one.where({name: where[name]})
    for name in data.draw(st.permutations([name for name in NAMES if name not in by])):
        one_by_one = one_by_one.project(*(other for other in one_by_one.names if other != name))
    assert one_by_one.project(*by).equals(answer)

    # Through a finer table that is filtered afterwards.
    finer = cube.project(*data.draw(st.permutations(sorted({*by, *where}))))
    assert finer.where(where).project(*by).equals(answer)

    # By brute force in Python's own whole numbers.
    kept = np.ones(LENGTHS, dtype=bool)
    for axis, dimension in enumerate(DIMENSIONS):
        inside = np.isin(dimension.codes, where.get(dimension.name, dimension.codes))
        kept &= inside.reshape([-1 if place == axis else 1 for place in range(5)])
    for column in ("count", "weighted"):
        assert answer.total(column) == sum(int(value) for value in cube[column][kept])


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(seed=st.integers(0, 20), question=questions(), data=st.data())
def test_parts_sum_to_the_whole_exactly(
    seed: int, question: tuple[list[str], dict[str, list[str]]], data: st.DataObject
) -> None:
    cube, (by, where) = made(seed), question
    split = data.draw(st.sampled_from(DIMENSIONS))
    codes = where.get(split.name, list(split.codes))
    cut = data.draw(st.integers(0, len(codes)))
    parts = [cube.table(*by, where={**where, split.name: part}) for part in (codes[:cut], codes[cut:]) if part]
    whole = cube.table(*by, where=where)
    for column in ("count", "weighted"):
        if split.name in by:
            assert sum(part.total(column) for part in parts) == whole.total(column)
        else:
            assert np.array_equal(sum(part[column] for part in parts), whole[column])


@settings(max_examples=300, deadline=None)
@given(
    shape=st.lists(st.integers(1, 20), min_size=1, max_size=5).map(tuple),
    seed=st.integers(0, 100),
    data=st.data(),
)
def test_margins_are_sums_over_all_other_axes(shape: tuple[int, ...], seed: int, data: st.DataObject) -> None:
    table = np.random.default_rng(seed).integers(-(10**9), 10**9, shape)
    axes = tuple(axis for axis in range(len(shape)) if data.draw(st.booleans()))
    expected = table.sum(axis=tuple(axis for axis in range(len(shape)) if axis not in axes))
    assert np.array_equal(summed(table, axes), expected)
    assert summed(table, axes).shape == expected.shape
    assert np.array_equal(
        summed(table.T[..., ::-1].T, axes),
        table.T[..., ::-1].T.sum(axis=tuple(axis for axis in range(len(shape)) if axis not in axes)),
    ), "also of a table that is a view of another"


def test_records_in_any_chunks_make_the_same_cube_with_its_empty_cells() -> None:
    chance = np.random.default_rng(3)
    positions = chance.integers(0, 240, 1_000)
    weights = chance.integers(500_000, 2_000_000_000, 1_000)
    whole = tabulated(DIMENSIONS, [Chunk(positions=positions, weights=weights)])
    order = chance.permutation(1_000)
    parts = [Chunk(positions=positions[part], weights=weights[part]) for part in np.array_split(order, 7)]
    assert tabulated(DIMENSIONS, parts).equals(whole)
    assert len(whole) == 240
    assert whole.total("count") == 1_000
    assert whole.total("weighted") == sum(map(int, weights))
    assert tabulated(DIMENSIONS, []).total("count") == 0


def test_proportions_and_means_come_from_whole_sums() -> None:
    sex, size = Dimension(name="sex", codes=("F", "M")), Dimension(name="size", codes=("1", "2", "3"))
    cube = Cube(dimensions=(sex, size), columns={"count": np.array([[1, 2, 1], [0, 0, 0]])})
    assert cube.proportions("count")[0].tolist() == [0.25, 0.5, 0.25]
    by_size = cube.proportions("count", within=["size"])
    assert by_size[0].tolist() == [1, 1, 1]
    assert np.isnan(cube.proportions("count", within=["sex"])[1]).all()
    means = cube.mean("count", {"1": 1, "2": 2, "3": 3}, of="size")
    assert means[0] == 2
    assert np.isnan(means[1])
    weighted = cube.with_column("weighted", cube["count"] * 1_500_000, parts=MILLION)
    assert weighted.values("weighted")[0].tolist() == [1.5, 3, 1.5]
    assert weighted.total("weighted") == Fraction(6) * MILLION


def test_nonpositive_weights_are_refused() -> None:
    with pytest.raises(DataError, match="positive weights"):
        tabulated(DIMENSIONS, [Chunk(positions=np.array([0]), weights=np.array([0]))])


def test_numbers_whose_sums_would_leave_64_bits_are_refused() -> None:
    two = (Dimension(name="a", codes=("1", "2")),)
    with pytest.raises(DataError, match="2\\^62"):
        Cube(dimensions=two, columns={"count": np.array([2**61, 2**61])})
    assert Cube(dimensions=two, columns={"count": np.array([2**61, 5])}).total("count") == 2**61 + 5


def test_unknown_names_and_codes_are_refused_by_name() -> None:
    cube = made(0)
    with pytest.raises(SfumatoError, match="'z'"):
        cube.project("z")
    with pytest.raises(SfumatoError, match="'a9'"):
        cube.where({"a": ["a9"]})
    with pytest.raises(SfumatoError, match="'height'"):
        cube.total("height")
    with pytest.raises(SfumatoError, match="once"):
        cube.project("a", "a")
    with pytest.raises(SfumatoError, match="every code"):
        cube.mean("count", {"a0": 1}, of="a")


def test_a_cube_cannot_be_changed_through_its_columns() -> None:
    cube = made(0)
    with pytest.raises(ValueError, match="read-only"):
        cube["count"][0] = 1
