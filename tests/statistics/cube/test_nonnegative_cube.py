"""A cube without negative cells can always be made, whatever noise its controls got: no charged release gets stuck."""

from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.agree.whole_numbers import make_a_chain
from sfumato.bundle.read import open_cube
from sfumato.cells import Dimension
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.cube.cube import MILLION
from sfumato.statistics.cube.protect import protected_cube
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.cube.tabulate import Chunk, tabulated
from sfumato.statistics.cube.truncated_laplace import cube_method
from tests.statistics.cube.survey import records, release

FEW = 2e-6
"""Share of the largest sum that a control may be missed by, where controls close a ring."""


@st.composite
def sections(draw: st.DrawFn, names: str) -> CubeSection:
    """Any cube by these attributes without negative cells: controls with much noise or none, in chains and in rings."""
    everything = [list(by) for size in range(len(names) + 1) for by in combinations(names, size)]
    chosen = draw(st.lists(st.sampled_from(everything), max_size=5, unique_by=tuple))
    kinds = st.sampled_from([{"exact": True}, {"epsilon": "0.05"}, {"epsilon": "0.5"}, {"epsilon": "3"}])
    described: dict[str, Any] = {
        "name": "c",
        "by": list(names),
        "epsilon": draw(st.sampled_from(["0.1", "1", "4"])),
        "cap": 9,
        "nonnegative": True,
        "controls": [{"by": by, **draw(kinds)} for by in chosen],
        "empty_cells": draw(st.sampled_from(["1", "0.3"])),
    }
    if draw(st.booleans()):
        described |= {"sensitivity": "weight", "largest_weight": 50}
    elif all(names[0] in by for by in chosen) and draw(st.booleans()):
        described |= {"weights": names[0]}
    return CubeSection.model_validate(described)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=st.integers(0, 2**32), data=st.data())
def test_every_cube_can_be_made_without_negative_cells(shape: list[int], seed: int, data: st.DataObject) -> None:
    chance = np.random.default_rng(seed)
    dimensions = tuple(
        Dimension(name=name, codes=tuple(map(str, range(n)))) for name, n in zip("abcd", shape, strict=False)
    )
    number = data.draw(st.sampled_from([0, 3, 40]))
    weights = chance.integers(1, 51, number) * MILLION
    true = tabulated(dimensions, [Chunk(positions=chance.integers(0, int(np.prod(shape)), number), weights=weights)])
    section = data.draw(sections("abcd"[: len(shape)]))
    method = cube_method(section, alpha=Fraction(1))
    cube, figures = protected_cube(true, method, Seeded(seed), stratum=section.stratum, nonnegative=True)
    assert all(int(column.min()) >= 0 for column in cube.columns.values())
    if not section.controls:
        return
    assert figures.calibration is not None
    chain = make_a_chain([true.axes(control.by) for control in section.controls])
    largest = max(int(column.sum()) for column in cube.columns.values())
    assert figures.calibration.largest_gap <= (0 if chain else max(100, FEW * largest))
    assert figures.calibration.converged == (figures.calibration.largest_gap == 0)
    exact_chain = make_a_chain([true.axes(control.by) for control in method.exact_controls])
    for control in method.exact_controls:
        for name, parts in (("count", MILLION), ("weighted", 1)):
            off = cube.only(name).project(*control.by)[name] - true.only(name).project(*control.by)[name] * parts
            assert np.abs(off).max() <= (0 if chain and exact_chain else max(100, FEW * largest))


@pytest.mark.slow
@pytest.mark.parametrize(
    "controls",
    [
        '{ by = [], epsilon = 0.01 }, { by = ["region"], epsilon = 0.01 }, { by = ["job"], exact = true }',
        '{ by = ["region", "job"], epsilon = 0.01 }, { by = ["job", "level"], epsilon = 0.01 }, '
        '{ by = ["region", "level"], epsilon = 0.01 }',
        '{ by = ["region", "job"], exact = true }, { by = ["job", "level"], epsilon = 0.01 }, '
        '{ by = ["region", "level"], exact = true }',
    ],
    ids=["negative totals", "a ring of noise", "a ring with exact tables"],
)
def test_a_release_is_published_whatever_its_noise_is(tmp_path: Path, controls: str) -> None:
    few = {name: values[:3] for name, values in records().items()}
    old = 'controls = [{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"], epsilon = 0.5 }]'
    for turn in range(4):
        file = release(
            tmp_path / str(turn), (old, f"controls = [{controls}]"), ("cap = 7", "cap = 7\nnonnegative = true"), **few
        )
        published = run(load(file))
        assert published.charged == ("people",)
        cube = open_cube(published.bundle, "people").cube
        assert all(int(column.min()) >= 0 for column in cube.columns.values())
