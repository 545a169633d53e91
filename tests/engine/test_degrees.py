"""Employers by their degree: as counted by hand, and each by its own factor in the class of its distorted degree."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.engine.connect import connect
from sfumato.frame.data import Frame
from sfumato.noise.factors import ONE, takes_first
from sfumato.noise.keyed import Keyed, hashes
from sfumato.statistics.panel.degrees import DegreeQuestion, degrees
from sfumato.statistics.panel.section import degree_codes
from tests.conftest import write
from tests.engine.movers import EMPLOYERS, FACTORS, PANEL, PLACES, frame_of, named

BOUNDS = (1, 3)
PLACE = Dimension(name="place", codes=PLACES)
WITH_ONE_MORE = {**EMPLOYERS, 11: "C"}


def question(**asked: Any) -> DegreeQuestion:
    bounds = asked.pop("bounds", BOUNDS)
    by = (PLACE, Dimension(name="degree", codes=degree_codes(bounds)))
    return DegreeQuestion(by=by, bounds=bounds, **{"weight": "edges", **asked})


def answer(frame: Frame, asked: DegreeQuestion) -> Cells:
    with connect(frame) as tables:
        ((_, found),) = degrees(frame, tables, {"t": asked}, FACTORS)
    return found


@pytest.fixture
def frame(tmp_path: Path, engine: str) -> Frame:
    """The movers, and an employer that nobody works for."""
    made = frame_of(tmp_path, PANEL, engine=engine)
    register = {"workplace": list(WITH_ONE_MORE), "place": list(WITH_ONE_MORE.values())}
    write(tmp_path / "workplaces.parquet", register)
    return made


def test_employers_by_degree_and_by_strength_as_counted_by_hand(frame: Frame) -> None:
    # 7 shares workers with 8 and 9, 8 with 7, 9 and 10, 9 with 7, 8 and 10, 10 with 8 and 9.
    assert named(answer(frame, question())) == {"A 1-2": 1, "A 3+": 1, "B 1-2": 1, "B 3+": 1, "C 0": 1}
    # Workers shared: 7 four, 8 five, 9 four, 10 three.
    strong = question(weight="workers", bounds=(1, 4, 5))
    assert named(answer(frame, strong)) == {"A 1-3": 1, "A 5+": 1, "B 4": 2, "C 0": 1}


def test_only_some_workers_link_and_only_some_employers_are_counted(frame: Frame) -> None:
    men = question(where={"sex": ("M",)})  # 2 and 4 link 7 and 8, 5 links 9 and 10
    assert named(answer(frame, men)) == {"A 1-2": 2, "B 1-2": 2, "C 0": 1}
    assert named(answer(frame, question(where={"place": ("B",)}))) == {"B 1-2": 1, "B 3+": 1}


def test_an_employer_counts_with_its_factor_in_the_class_of_its_distorted_degree(frame: Frame) -> None:
    found = answer(frame, question(bounds=(1, 2, 3, 4)))
    names = [str(name) for name in WITH_ONE_MORE]
    factor = dict(zip(names, FACTORS.of(hashes(names)).tolist(), strict=True))
    pairs = [("7", "8"), ("7", "9"), ("8", "9"), ("10", "8"), ("10", "9")]
    taken = takes_first([a for a, _ in pairs], [b for _, b in pairs], rule="keyed", keyed=Keyed(key=FACTORS.key))
    degree = dict.fromkeys(names, 0)
    for (a, b), first in zip(pairs, taken, strict=True):
        for end in (a, b):
            degree[end] += factor[a if first else b]
    expected = np.zeros((3, 5), dtype=np.int64)
    for name, place in WITH_ONE_MORE.items():
        expected[PLACES.index(place), min(degree[str(name)] // ONE, 4)] += factor[str(name)]
    assert np.array_equal(found["distorted"] * ONE + found["remainder"], expected.ravel())
