"""Raking that does not converge is said: in the statement, by the command, and by how much."""

import json
from pathlib import Path

from sfumato.cli.run import run_summary
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.cube.stored import read_figures
from tests.statistics.cube.survey import release

CONTROLS = 'controls = [{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"], epsilon = 0.5 }]'
CROSSED = (
    'calibration = "raking"\ncontrols = [{ by = ["region", "job"], epsilon = 0.2 }, '
    '{ by = ["level", "job"], epsilon = 0.2 }, { by = ["region", "level"], epsilon = 0.2 }]'
)
SAID = "It does not add up to them"


def test_a_raking_that_does_not_converge_is_told_with_its_gap(tmp_path: Path) -> None:
    told = 0
    # With more noise than records it is rare that one converges in all columns, and not seen that all five do.
    for place in range(5):
        file = release(tmp_path / str(place), (CONTROLS, CROSSED), ("epsilon = 2\ncap = 7", "epsilon = 0.1\ncap = 60"))
        published = run(load(file))
        found = read_figures((published.bundle / "cubes/people.parquet").read_bytes()).calibration
        assert found is not None
        text = (published.bundle / "statement.md").read_text(encoding="utf-8")
        words, data = run_summary(published)
        assert (SAID in text) == (SAID in str(words)) == (not found.converged)
        assert set(data["controls_not_met"]) == (set() if found.converged else {"people"})
        if not found.converged:
            told += 1
            assert (
                json.loads(json.dumps(data["controls_not_met"]))["people"]["largest_gap_in_parts"]
                == found.largest_gap
                > 0
            )
            assert found.largest_gap == max(found.gaps.values())
            assert any(f"({name})" in text for name in found.gaps)
            assert f"after {found.cycles} rounds of raking" in text
    assert told > 0


def test_least_squares_meets_its_controls_and_nothing_is_said(tmp_path: Path) -> None:
    published = run(load(release(tmp_path)))
    assert published.unmet == {}
    assert SAID not in (published.bundle / "statement.md").read_text(encoding="utf-8")
