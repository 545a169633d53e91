"""The benchmark of withheld cells counts rightly, and says so where R is missing."""

from pathlib import Path

import numpy as np
import pytest

from bench.exact.claims import exact_section
from bench.exact.measure import measure_exact
from bench.exact.register import Size, make

SIZE = Size(employers=300, districts=3, places=9, sectors=4, industries=8)


def test_a_register_has_the_cells_and_contributors_that_its_records_have() -> None:
    register = make(SIZE)
    system, contributions = register.tables()
    assert np.abs(system.equations @ system.value).max() == 0
    assert system.value.max() == register.amount.sum()
    assert contributions.units[0] == 300
    assert contributions.largest[0] == register.amount.max()
    names = register.names()
    assert (len(names), names[0], names[-1]) == (13 * 13, "Total|Total", "p8|i7")


def test_without_r_only_ours_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bench.exact.measure.SIZES", {"tiny": SIZE})
    monkeypatch.setattr("bench.exact.measure.LARGEST", SIZE)
    results = measure_exact(tmp_path, tell=lambda _: None)
    section = exact_section(results)
    assert "R is not installed" in section.notes[0]
    assert [line.met for line in section.lines] == [True, True, True, True]
