"""Empty cells without noise: what all published columns together tell about the one record of a cell."""

from pathlib import Path

import pytest

from tests.statistics.cube.pairs import published_pairs

CUBE = "epsilon = 0.5\ncap = 30\nempty_cells = 0.5\n"


def loss_is_stated(folder: Path, *, places: int, more: str = "", **records: float) -> None:
    """The columns in averages have the ε of the counts, each, beside what is charged: so says the statement."""
    pairs = published_pairs(folder, CUBE + more, places=places, records=0, **records)  # type: ignore[arg-type]
    stated = float(pairs.guarantee.epsilon) + 0.5 * (len(pairs.columns) - 1)
    assert stated - 1 < pairs.loss() <= stated


def test_an_empty_cell_and_one_with_a_record_are_told_apart_no_better_than_is_stated(tmp_path: Path) -> None:
    loss_is_stated(tmp_path, places=20_000, weight=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, 3.0])
def test_so_they_are_with_a_measure(tmp_path: Path, weight: float | None) -> None:
    loss_is_stated(
        tmp_path, places=60_000, more='measures = ["pay"]\n', pay=50, **({} if weight is None else {"weight": weight})
    )
