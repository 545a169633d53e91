"""Contributions add up to the cells, on every engine."""

from pathlib import Path

import numpy as np
import pytest

from sfumato.cells import Dimension
from sfumato.engine.connect import connect
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.jobs.tabulate import tabulate
from sfumato.statistics.jobs.tabulate_establishments import contributions
from tests.conftest import tiny_frame

BY = (
    Dimension(name="place", codes=("A", "B")),
    Dimension(name="industry", codes=("11", "62")),
    Dimension(name="sex", codes=("F", "M"), public=False),
)


def test_every_establishment_is_named_and_its_jobs_add_up_to_the_cells(tiny: Path, engine: str) -> None:
    frame, question = tiny_frame(tiny, engine=engine), Question(by=BY)
    with connect(frame) as tables:
        cells = tabulate(frame, tables, {"t": question})["t"]
        found = contributions(frame, tables, question, cells)
    assert set(found.units) == {"100", "101", "102"}  # 103 has no jobs
    assert np.array_equal(found.sums(np.ones(3, dtype=np.int64)), cells["count"])
    sizes = dict(zip(found.units, found.sizes.tolist(), strict=True))
    assert sizes == {"100": 3, "101": 2, "102": 3}


def test_a_part_of_the_population_is_refused(tiny: Path) -> None:
    frame = tiny_frame(tiny)
    question = Question(by=BY, where={"sex": ("F",)})
    with connect(frame) as tables:
        cells = tabulate(frame, tables, {"t": Question(by=BY)})["t"]
        with pytest.raises(ValueError, match="whole populations"):
            contributions(frame, tables, question, cells)
