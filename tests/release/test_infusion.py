"""Noise infusion from a release file: factors from a key, the same answer everywhere, and no secret in any output."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.checking import check
from sfumato.errors import KeyFileError, ReleaseError
from sfumato.keys import new_key, read_key, rotate_key
from sfumato.noise.factors import Factors
from sfumato.noise.keyed import hashes
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from tests.release.test_release_file import written

COUNTS = """\
[release]
title = "Jobs"
period = "2025"
key = "sfumato.key"

[data]
engine = "duckdb"
jobs = { path = "jobs.parquet", worker = "worker" }
workplaces = { path = "workplaces.parquet", key = "workplace" }
workers = { path = "workers.parquet", key = "worker" }
public = ["place", "industry"]

[data.attributes.sex]
codes = { F = "Female", M = "Male" }

[[table]]
name = "by_place"
count = "jobs"
by = ["place", "sex"]
protect = { method = "noise-infusion" }
"""


@pytest.fixture
def folder(tiny: Path) -> Path:
    new_key(tiny / "sfumato.key", a=Fraction("1.15"), b=Fraction("1.25"))
    written(tiny, COUNTS)
    return tiny


def values(folder: Path) -> list[int]:
    return list(pq.read_table(folder / "bundle/tables/by_place.parquet")["value"].to_pylist())


def test_counts_of_jobs_are_distorted_by_the_factors_of_the_key_file(folder: Path) -> None:
    published = run(load(folder / "release.toml"))
    assert published.balance is None, "no budget is opened or charged"
    secret = read_key(folder / "sfumato.key")
    factor = Factors(key=secret.key, least=secret.a - 1, most=secret.b - 1).of(hashes(["100", "101", "102"]))
    # Three women in A, at 100 and 101; one man at each of them; two women and a man at 102 in B.
    women_in_a = (2 * factor[0] + factor[1]) / 1_000_000
    (table,) = published.plan.tables
    assert table.roundings is not None
    assert abs(values(folder)[0] - women_in_a) < table.roundings[0]
    assert read_manifest(published.bundle)["charges"]["by_place"]


def test_a_release_without_a_formal_guarantee_needs_no_budget_and_says_so(folder: Path) -> None:
    found = check(load(folder / "release.toml"))
    assert found.balance is None
    assert found.refusal is None
    statement = (run(load(folder / "release.toml")).bundle / "statement.md").read_text()
    assert "no formal guarantee" in statement
    assert "at least a fixed share" in statement


def test_the_same_table_is_not_published_under_another_key_by_accident(folder: Path) -> None:
    first = run(load(folder / "release.toml"))
    assert first.charged == ("by_place",)
    assert run(load(folder / "release.toml")).charged == ()
    before, earlier = values(folder), read_key(folder / "sfumato.key").fingerprint
    rotate_key(folder / "sfumato.key")
    with pytest.raises(KeyFileError, match="average") as refusal:
        run(load(folder / "release.toml"))
    assert earlier in refusal.value.do
    again = COUNTS.replace('key = "sfumato.key"', f'key = "sfumato.key"\nkey_fingerprint = "{earlier}"', 1)
    assert run(load(written(folder, again))).charged == ()
    assert values(folder) == before
    anew = COUNTS.replace('key = "sfumato.key"', 'key = "sfumato.key"\nrekeyed = true', 1)
    assert run(load(written(folder, anew))).charged == ("by_place",)


def test_the_history_says_which_key_a_table_was_made_with(folder: Path) -> None:
    run(load(folder / "release.toml"))
    words = [sys.executable, "-m", "sfumato", "budget", "--ledger", str(folder / "release.toml"), "--json"]
    history = json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout)["history"]
    assert read_key(folder / "sfumato.key").fingerprint in history[0]["note"]


MISTAKES = {
    "no key": ('key = "sfumato.key"\n', "", "sfumato keys new"),
    "an epsilon": ('"noise-infusion" }', '"noise-infusion", epsilon = 1 }', "costs no budget"),
    "an unknown option": ('"noise-infusion" }', '"noise-infusion", delta = 1 }', "delta"),
    "a formal method without a budget": ('{ method = "noise-infusion" }', "{ epsilon = 1 }", "a budget"),
    "a key inside the bundle": ('key = "sfumato.key"', 'key = "bundle/sfumato.key"', "a folder of its own"),
}


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_refused_before_anything_is_written(folder: Path, old: str, new: str, said: str) -> None:
    assert old in COUNTS
    with pytest.raises(ReleaseError, match=said):
        run(load(written(folder, COUNTS.replace(old, new, 1))))
    assert not (folder / "ledger.sqlite").exists()


def test_a_key_that_others_can_read_is_refused(folder: Path) -> None:
    (folder / "sfumato.key").chmod(0o644)
    with pytest.raises(KeyFileError, match="chmod 600"):
        run(load(folder / "release.toml"))
    assert not (folder / "ledger.sqlite").exists()


@pytest.mark.slow
def test_two_processes_with_the_same_key_publish_the_same(folder: Path) -> None:
    found = []
    for ledger in ("one", "two"):
        text = COUNTS.replace("[data]", f'ledger = "{ledger}.sqlite"\nbundle = "{ledger}"\n\n[data]', 1)
        code = "import sys; from sfumato.cli import main; main()"
        words = [sys.executable, "-c", code, "run", str(written(folder, text)), "--json"]
        assert json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout)["charged"]
        found.append((folder / ledger / "tables/by_place.parquet").read_bytes())
    assert found[0] == found[1]


def test_a_distorted_count_is_assessed_with_the_attacks_it_does_not_withstand(folder: Path) -> None:
    run(load(folder / "release.toml"))
    assessment = assess(load(folder / "release.toml"))
    assert {found.attack for found in assessment.exposures[0].attacks} >= {"shape", "size"}


def test_the_report_shows_no_interval_where_none_is_published_and_says_once_that_there_is_no_bound(
    folder: Path,
) -> None:
    run(load(folder / "release.toml"))
    assessment = assess(load(folder / "release.toml"))
    assert [utility.covered for utility in assessment.utilities] == [None] * len(assessment.utilities)
    page = assessment.report.read_text(encoding="utf-8")
    assert "interval" not in page
    assert page.count("no bound") == 1
    assert "10 or 11 workers" not in page
