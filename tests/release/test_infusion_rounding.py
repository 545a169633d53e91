"""To multiples of what distorted sums are rounded: chosen from the release, kept in the ledger, and told to readers."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.checking import check
from sfumato.errors import KeyFileError, SfumatoError
from sfumato.keys import new_key, rotate_key
from sfumato.noise.factors import rounded_by_thresholds
from sfumato.release import load
from sfumato.running import run
from sfumato.statistics.jobs.noise_infusion import NoiseInfusion
from sfumato.statistics.panel.infused_sums import InfusedSums
from sfumato.statistics.published import PublishedTable
from tests.release.test_infusion import COUNTS, values
from tests.release.test_release_file import written


@pytest.fixture
def folder(tiny: Path) -> Path:
    new_key(tiny / "sfumato.key", a=Fraction("1.15"), b=Fraction("1.25"))
    written(tiny, COUNTS)
    return tiny


def rounded(rounding: str) -> str:
    return COUNTS.replace('"noise-infusion" }', f'"noise-infusion", {rounding} }}')


def planned(folder: Path) -> PublishedTable:
    return check(load(folder / "release.toml")).plan.tables[0]


def test_the_base_follows_from_the_values_of_one_employer_and_is_told(folder: Path) -> None:
    # Two sexes over a life of a hundred periods: 200 values.
    assert planned(folder).values_of_one_employer == 200
    assert planned(folder).roundings == (3, 1)
    bundle = run(load(folder / "release.toml")).bundle
    assert all(value % 3 == 0 for value in values(folder))
    assert "rounded to a multiple of 3" in (bundle / "statement.md").read_text()


def test_a_base_can_be_declared_and_whole_numbers_are_told_to_leak(folder: Path) -> None:
    written(folder, rounded("rounding = 7"))
    assert planned(folder).roundings == (7, 1)
    bundle = run(load(written(folder, rounded("rounding = 1")))).bundle
    assert "give its factor exactly" in (bundle / "statement.md").read_text()


@pytest.mark.parametrize("base", [0, -3, 2_000_000])
def test_a_base_that_is_none_is_refused(folder: Path, base: int) -> None:
    with pytest.raises(Exception, match="a whole number from 1"):
        run(load(written(folder, rounded(f"rounding = {base}"))))
    assert not (folder / "ledger.sqlite").exists()


def test_a_table_of_an_earlier_version_keeps_its_answer_and_its_rounding(folder: Path) -> None:
    """A ledger of version 0.1.0 holds questions that say nothing of rounding: they are those of whole numbers."""
    run(load(written(folder, rounded("rounding = 1"))))
    before = values(folder)
    again = run(load(written(folder, COUNTS)))
    assert again.charged == ()
    assert values(folder) == before
    assert planned(folder).roundings == (1, 1)


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (InfusedSums(), "InfusedSums(minimum=0, below='suppressed', directed=True, ends=1, months=3)"),
        (NoiseInfusion(), "NoiseInfusion()"),
    ],
)
def test_whole_numbers_have_the_name_they_had_before_rounding_could_be_chosen(
    folder: Path, method: Any, name: str
) -> None:
    assert repr(method) == name
    table = planned(folder)
    assert table.in_whole_numbers().roundings == (1, 1)
    assert replace(table, method=method).digest("0") != replace(table, method=replace(method, rounding=5)).digest("0")


def test_the_same_table_is_not_published_with_two_roundings(folder: Path) -> None:
    run(load(folder / "release.toml"))
    with pytest.raises(KeyFileError, match="two roundings"):
        run(load(written(folder, rounded("rounding = 10"))))
    rotate_key(folder / "sfumato.key")
    with pytest.raises(KeyFileError, match="average"):
        run(load(written(folder, rounded("rounding = 10"))))
    anew = rounded("rounding = 10").replace('key = "sfumato.key"', 'key = "sfumato.key"\nrekeyed = true', 1)
    assert run(load(written(folder, anew))).charged == ("by_place",)
    assert all(value % 10 == 0 for value in values(folder))


def test_small_counts_are_drawn_from_their_posterior_where_the_release_says_so(folder: Path) -> None:
    drawn = rounded('rounding = 1, small_cells = "posterior"')
    table = check(load(written(folder, drawn))).plan.tables[0]
    coin = check(load(written(folder, rounded("rounding = 1")))).plan.tables[0]
    assert table.digest("0") != coin.digest("0")
    assert table.rounding_note("0") == coin.rounding_note("0")  # so that no third rounding is published beside
    bundle = run(load(written(folder, drawn))).bundle
    assert "as often as cells of the same kind of workers" in (bundle / "statement.md").read_text()


@pytest.mark.parametrize(
    ("options", "more", "words"),
    [
        ('small_cells = "posterior"', "", "rounding = 1"),
        ('rounding = 1, small_cells = "posterior"', "\nparts = 2", "small counts of the whole table"),
    ],
)
def test_small_counts_that_cannot_be_drawn_so_are_refused(folder: Path, options: str, more: str, words: str) -> None:
    with pytest.raises(SfumatoError, match=words):
        check(load(written(folder, rounded(options).replace("[[table]]", f"[[table]]{more}"))))


def test_the_number_of_establishments_can_be_left_out(folder: Path) -> None:
    by = 'by = ["place", "industry", "sex"]\nestablishments = false'
    text = rounded("rounding = 1").replace('by = ["place", "sex"]', by)  # so that no job is rounded away
    bundle = run(load(written(folder, text))).bundle
    table = pq.read_table(bundle / "tables/by_place.parquet")
    assert "establishments" not in table.column_names
    assert "The number is left out of `by_place`" in (bundle / "statement.md").read_text()
    rows = table.to_pylist()
    empty = [row for row in rows if row["value"] == 0]
    assert len(empty) < len(rows)
    shown = [tuple(row[name] for name in ("value", "error", "low", "high")) for row in empty]
    assert len({str(row) for row in shown}) == 1
    implied = text.replace("establishments = false", 'establishments = false\nstructural_zeros = "implied"')
    run(load(written(folder, implied)))
    places = {(row["place"], row["industry"]) for row in pq.read_table(bundle / "tables/by_place.parquet").to_pylist()}
    assert places == {(row["place"], row["industry"]) for row in rows if row["value"]}


def test_nothing_tells_a_cell_without_jobs_from_one_without_establishments(folder: Path) -> None:
    by = 'by = ["place", "industry", "age"]\nestablishments = false'
    text = rounded("rounding = 1").replace('by = ["place", "sex"]', by)
    ages = '[data.attributes.age]\ncodes = ["1", "2", "3"]\n\n[[table]]'
    bundle = run(load(written(folder, text.replace("[[table]]", ages, 1)))).bundle
    rows = pq.read_table(bundle / "tables/by_place.parquet").to_pylist()
    of_age = [row for row in rows if row["age"] == "3"]
    figures = {(row.pop("place"), row.pop("industry")): str(row) for row in of_age}
    assert figures["A", "11"] == figures["B", "11"]  # nobody of that age works there; there is no establishment


@given(
    numbers=st.lists(st.integers(0, 10**9), min_size=1, max_size=20),
    word=st.integers(0, 2**64 - 1),
    base=st.sampled_from([3, 5, 10, 1000]),
)
def test_thresholds_keep_order_and_zeros_and_move_by_less_than_the_base(
    numbers: list[int], word: int, base: int
) -> None:
    exact = np.sort(np.array([0, *numbers], dtype=np.int64))
    words = np.full(len(exact), word, dtype=np.uint64)
    found = rounded_by_thresholds(exact // 1_000_000, exact % 1_000_000, words, base=base)
    assert found[0] == 0
    assert np.all(np.diff(found) >= 0)
    assert np.all(found % base == 0)
    assert np.all(np.abs(found - exact / 1_000_000) < base)


def test_thresholds_are_right_on_average_and_independent_between_intervals() -> None:
    words = np.random.default_rng(1).integers(0, 2**63, 40_000).astype(np.uint64)
    low, high = (np.full(len(words), number, dtype=np.int64) for number in (12, 57))
    none = np.zeros_like(low)
    first, second = (rounded_by_thresholds(number, none, words, base=10) for number in (low, high))
    assert abs(first.mean() - 12) < 5 * 4 / 200
    assert abs(second.mean() - 57) < 5 * 4.6 / 200
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / 200
