"""Releases of people that cannot be protected as asked are refused before the ledger is touched; others never fail."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.statement import statement
from sfumato.checking import check
from sfumato.cli.release import plan_summary
from sfumato.cli.run import run_summary
from sfumato.errors import DataError, MethodError, ReleaseError, SfumatoError
from sfumato.keys import new_key
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.people.tune import tune_percentiles
from tests.release.people import ALL, EARNINGS, EMPLOYMENT, HEAD, PERCENTILES, SCORES, people, written

MOSE = 'method = "mose", epsilon = 3, classes = ["title"]'
WIDE = (
    ('rank = { unit = "percentiles", minimum = 0, maximum = 100 }', "rank = { minimum = 0, maximum = 100000000 }"),
    ("score = { minimum = 0, maximum = 100,", "score = { minimum = 0, maximum = 100000000,"),
)


def is_untouched(folder: Path) -> bool:
    """Whether nothing was charged, and nothing published."""
    release = load(folder / "release.toml")
    charged = release.ledger.exists() and any(entry.kind == "charge" for entry in Ledger.open(release.ledger).history())
    return not charged and not release.bundle.exists()


def two_thousand(folder: Path) -> None:
    """So many people in the few groups of a table that squares of wide bounds leave 64 bits."""
    once = {name: np.tile(column[::2], 4) for name, column in people().items()}
    once["person"] = np.arange(len(once["person"]))
    pq.write_table(pa.table(once), folder / "people.parquet")


def test_groups_too_large_for_noisy_regression_are_refused_before_the_charge(tmp_path: Path) -> None:
    two_thousand(tmp_path)
    path = written(tmp_path, HEAD + SCORES, *WIDE, (MOSE, 'method = "noisy-regression", epsilon = 3'))
    with pytest.raises(DataError, match="at most 230 people in a group"):
        run(load(path))
    assert is_untouched(tmp_path)


def test_the_limit_of_people_is_about_those_who_are_counted(tmp_path: Path) -> None:
    changes = (*WIDE, (MOSE, 'method = "noisy-regression", epsilon = 3'), ('"2001" }', '"2001", place = "north" }'))
    run(load(written(tmp_path, HEAD + SCORES, *changes)))
    assert not is_untouched(tmp_path)


@pytest.mark.parametrize("method", ["mose", "smooth-gamma"])
def test_a_total_is_refused_by_methods_that_are_not_for_it_before_the_charge(tmp_path: Path, method: str) -> None:
    table = f'''
[[table]]
name = "paid"
total = "score"
by = ["place", "year"]
protect = {{ method = "{method}", epsilon = 1 }}
'''
    new_key(tmp_path / "sfumato.key")
    with pytest.raises(ReleaseError, match="top-contributors"):
        run(load(written(tmp_path, HEAD + table, ("[data]", 'key = "sfumato.key"\n\n[data]'))))
    assert is_untouched(tmp_path)


REFUSED = {
    "noise beyond 64 bits": (
        (
            ('unit = "percentiles", minimum = 0, maximum = 100 }', "minimum = 0, maximum = 1000000000 }"),
            (MOSE, 'method = "noisy-regression", epsilon = 0.1'),
        ),
        "from 0 to 1,000,000,000",
    ),
    "χ beyond 64 bits": (
        (
            ("at = [25, 75] }", "at = [25, 75] }\ndecimals = 6"),
            (MOSE, 'method = "mose", epsilon = 3, chi = 10000000000000'),
        ),
        "a χ below 2^61 published units",
    ),
    "outside the bounds": ((("at = [25, 75]", "at = [25, 101]"),), "101"),
}


@pytest.mark.parametrize(("changes", "said"), REFUSED.values(), ids=list(REFUSED))
def test_parameters_that_cannot_be_drawn_are_refused_before_the_charge(
    tmp_path: Path, changes: tuple[tuple[str, str], ...], said: str
) -> None:
    with pytest.raises(MethodError) as refusal:
        run(load(written(tmp_path, HEAD + SCORES, *changes)))
    assert said in str(refusal.value)
    assert is_untouched(tmp_path)


def test_what_is_charged_is_published_where_no_person_could_move_a_prediction(tmp_path: Path) -> None:
    data = people()
    data["rank"] = np.where(data["person"] % 2 == 0, 50, 100)
    data["score"] = np.where(data["person"] % 2 == 0, 0, 100)
    pq.write_table(pa.table(data), tmp_path / "people.parquet")
    done = run(load(written(tmp_path, HEAD + SCORES, ("at = [25, 75]", "at = [0]"))))
    assert pq.read_table(done.bundle / "tables/scores.parquet").to_pandas()["value"].notna().all()


def test_what_is_charged_is_published_where_noise_would_leave_64_bits(tmp_path: Path) -> None:
    data = people()
    data["rank"] = 50 + data["person"] % 2
    data["score"] = np.random.default_rng(2).integers(0, 10**11, len(data["score"]))
    pq.write_table(pa.table(data), tmp_path / "people.parquet")
    changes = (
        ("score = { minimum = 0, maximum = 100,", "score = { minimum = 0, maximum = 100000000000,"),
        ("at = [25, 75] }", "at = [0] }\ndecimals = 6"),
        (MOSE, 'method = "mose", epsilon = 3, clip = false'),
    )
    done = run(load(written(tmp_path, HEAD + SCORES, *changes)))
    table = pq.read_table(done.bundle / "tables/scores.parquet").to_pandas()
    assert table["status"].tolist() == ["not available"] * 6
    assert table["value"].isna().all()


BINS = "{ median = 40000, sigma = 0.6, number = 16 }"
MEAN = '"mose", epsilon = 3, count_epsilon = 0.5, chi = 200000'
ONCE = HEAD.replace(', period = "year"', "")
WORDS = {
    "bins that do not increase": (HEAD + PERCENTILES, (BINS, "[0, 9, 9, 20]"), "increasing edges"),
    "which of them": (HEAD + PERCENTILES, (BINS, "[0, 9, 9, 20]"), "not 9 and then 9"),
    "a mean": (HEAD + EARNINGS, (MEAN, '"noisy-regression", epsilon = 3'), 'method = "laplace"'),
    "a mean of one record a person": (ONCE + EARNINGS, (MEAN, '"noisy-regression", epsilon = 3'), 'method = "laplace"'),
}


@pytest.mark.parametrize(("text", "change", "said"), WORDS.values(), ids=list(WORDS))
def test_a_refusal_says_what_to_write_instead(tmp_path: Path, text: str, change: tuple[str, str], said: str) -> None:
    with pytest.raises(SfumatoError) as refusal:
        run(load(written(tmp_path, text, change)))
    assert said in " ".join(str(refusal.value).split())
    assert not (tmp_path / "bundle").exists()


def test_percentiles_are_tuned_where_there_are_some(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="no quantiles table"):
        tune_percentiles(check(load(written(tmp_path, HEAD + EMPLOYMENT)), data=False).plan)


def test_a_statement_names_a_condition_and_what_mose_leaves_open(tmp_path: Path) -> None:
    text = statement(check(load(written(tmp_path, HEAD + SCORES)), data=False).plan)
    assert "The condition: not" not in text
    assert "what is said here is conditional on χ, the largest sensitivity observed" in text
    open_ = text.split("## What is not protected")[1].split("##")[0]
    assert '"suppressed" tells exactly that it has fewer than 3 people' in open_
    assert "In a class of one group χ describes the people of that group" in open_
    supplied = statement(check(load(written(tmp_path, HEAD + EARNINGS)), data=False).plan)
    assert "χ = 200000, which was set beforehand" in supplied
    assert "predicted from" not in supplied
    assert "In a class of one group" not in supplied


def test_whoever_runs_a_release_is_told_of_clipping_and_of_classes_of_one_group(tmp_path: Path) -> None:
    release = load(written(tmp_path))
    found = check(release)
    notes = found.plan.operator_notes()
    assert any("earnings" in note and "`sfumato assess`" in note for note in notes)
    assert any("scores" in note and "Where a class has one group only" in note for note in notes)
    assert plan_summary(found)[1]["notes"] == notes
    assert all(note in str(run_summary(run(release))[0]) for note in notes)
    each = load(written(tmp_path, ALL, ('classes = ["title"]', 'classes = ["title", "sector"]')))
    assert any("Every class has one group only" in note for note in check(each, data=False).plan.operator_notes())
