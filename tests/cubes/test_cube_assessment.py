"""The confidential report about a cube: figures that a count by hand confirms, in a file only its owner can read."""

import json
from pathlib import Path

import numpy as np
import pytest

from sfumato.assess.assess import assess
from sfumato.assess.cubes import MOST_TABLES, assess_cube
from sfumato.check import checked
from sfumato.cube.query import open_cube
from sfumato.errors import LedgerError
from sfumato.release_file import load
from sfumato.run import run
from tests.cli.call import call
from tests.cubes.survey import release

RULES = ("cap = 7", "cap = 7\nleast_count = 10\nlargest_cv = 0.3")


def test_the_report_compares_tables_of_every_dimension(tmp_path: Path) -> None:
    file = release(tmp_path, RULES)
    with pytest.raises(LedgerError, match="cube 'people'"):
        assess(load(file))
    bundle = run(load(file)).bundle
    found = assess(load(file))
    assert oct(found.report.stat().st_mode)[-3:] == "600"
    page = found.report.read_text()
    for words in ("CONFIDENTIAL", "Cramér", "Hellinger", "overlap of 95% intervals", "newly publishable", "<svg"):
        assert words in page
    cube = found.cubes[0]
    assert [part.tables for part in cube.by_dimension] == [1, 3, 3, 1]
    assert [part.cells for part in cube.by_dimension] == [1, 9, 26, 24]

    published = open_cube(bundle, "people")
    with checked(load(file)) as ready:
        true, _ = ready.cube(ready.plan.cubes[0])
    noisy = published.cube.values("count")
    assert cube.empty == int((true["count"] == 0).sum())
    assert cube.from_zero == int((np.abs(noisy[true["count"] == 0]) >= 0.5).sum())
    off = published.totals(["region", "job", "level"]).values - true.values("weighted")
    assert cube.by_dimension[3].mean_square_error == pytest.approx(float((off**2).mean()))
    assert len(cube.associations) == 3 < MOST_TABLES


def test_a_cube_without_noise_loses_nothing(tmp_path: Path) -> None:
    file = release(tmp_path, RULES)
    run(load(file))
    with checked(load(file)) as ready:
        planned = ready.plan.cubes[0]
        true, sampling = ready.cube(planned)
    from sfumato.assess.cubes import _unperturbed
    from sfumato.cube.answer import Rules

    same = assess_cube(planned, true, sampling, _unperturbed(true, sampling, Rules(least_count=10, largest_cv=0.3)))
    for part in same.by_dimension:
        assert part.mean_square_error == 0
        assert part.hellinger == pytest.approx(0, abs=1e-7)
        assert part.overlap == pytest.approx(1)
        assert part.newly_publishable == part.newly_marked == 0
        assert part.error_ratio == pytest.approx(1)
    assert same.from_zero == same.to_zero == 0
    assert same.unchanged == int((true["count"] > 0).sum())
    assert all(pair.true == pytest.approx(pair.published) for pair in same.associations)


def test_the_command_line_plans_publishes_and_assesses_a_cube(tmp_path: Path) -> None:
    file = release(tmp_path, RULES)
    planned = call("check", file).stdout
    assert "0.28 records" in planned
    assert "Weighted counts and totals of measures are not covered" in planned
    published = json.loads(call("run", file, "--json").stdout)
    assert published["charged"] == ["people"]
    assert published["cubes"][0]["charge_epsilon"] == 3
    assert "1 cube" in call("run", file).stdout
    assessed = json.loads(call("assess", file, "--json").stdout)
    assert [part["dimensions"] for part in assessed["cubes"][0]["by_dimension"]] == [0, 1, 2, 3]
