"""Rules of publication: by records, weighted counts and coefficients of variation, before noise and after it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.bundle.read import open_bundle
from sfumato.errors import SfumatoError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.cube.cube_query import Rules
from tests.cli.call import call
from tests.statistics.cube.survey import release

RELAXED = "least_count = 5\nlargest_cv = 0.9\nrules_before = { least_count = 30, largest_cv = 0.2 }\n"


def with_rules(rules: str) -> tuple[str, str]:
    return "cap = 7\n", f"cap = 7\n{rules}"


@pytest.fixture(scope="module")
def assessed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same answers, assessed under the same rules before and after, and under relaxed ones."""
    folder, found = tmp_path_factory.mktemp("rules"), {}
    for name, rules in (("same", "least_count = 30\nlargest_cv = 0.2\n"), ("relaxed", RELAXED)):
        made = load(release(folder, with_rules(rules)))
        assert run(made).charged == (("people",) if name == "same" else ()), "rules change no answer"
        found[name] = assess(made)
    return found


def test_relaxed_rules_make_more_publishable(assessed: dict[str, Any]) -> None:
    same, relaxed = (assessed[name].cubes[0] for name in ("same", "relaxed"))
    pairs = list(zip(same.by_dimension, relaxed.by_dimension, strict=True))[2:]
    assert pairs
    for before, after in pairs:
        one, other = before.kind("weighted totals").all, after.kind("weighted totals").all
        assert one.publishable == other.publishable, "the rules before are the same"
        assert other.newly_publishable > one.newly_publishable
        assert other.newly_marked <= one.newly_marked
    for before, after in zip(same.replicates, relaxed.replicates, strict=True):
        assert after.change.newly_publishable >= before.change.newly_publishable


def test_the_report_says_both_rules(assessed: dict[str, Any]) -> None:
    page = " ".join(assessed["relaxed"].report.read_text(encoding="utf-8").split())
    assert "before protection, at least 30 records and a coefficient of variation of at most 0.2" in page
    assert "by noisy numbers, at least 5 records and a coefficient of variation of at most 0.9" in page


@pytest.mark.slow
def test_a_rule_by_weighted_counts_marks_small_ones_whatever_is_asked(tmp_path: Path) -> None:
    file = release(tmp_path, with_rules("least_weighted = 400\n"))
    bundle = run(load(file)).bundle
    cube = open_bundle(bundle).cube("people")
    assert cube.rules == Rules(least_weighted=400.0)
    by = ["region", "job", "level"]
    totals = cube.totals(by)
    small = totals.values < 400
    assert 0 < small.sum() < small.size
    assert np.array_equal(~totals.publishable, small)
    assert np.array_equal(cube.totals(by, column="count").publishable, totals.publishable)
    means = cube.means("pay", by)
    assert np.array_equal(means.status == 4, small & (means.status != 3))
    shares = cube.proportions(by, within=["region"])
    assert shares.publishable.all(), "the base of a share is a whole region"
    said = " ".join(call("query", bundle, "people", "--by", "region,job,level").stdout.split())
    assert "too small (a weighted count below 400)" in said


def test_a_bundle_without_it_has_the_rules_it_always_had(tmp_path: Path) -> None:
    bundle = run(load(release(tmp_path, with_rules("least_count = 5\n")))).bundle
    (cube,) = json.loads((bundle / "structure.json").read_text())["cubes"]
    assert cube["publication_rules"] == {"least_count": 5, "largest_cv": None}


@pytest.mark.parametrize("rules", ["least_weighted = -1\n", "rules_before = { least = 3 }\n"])
def test_rules_that_are_none_are_refused(tmp_path: Path, rules: str) -> None:
    with pytest.raises(SfumatoError):
        load(release(tmp_path, with_rules(rules)))
