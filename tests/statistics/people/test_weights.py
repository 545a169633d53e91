"""Persons with weights: bounded by a largest one, exact, refused before anything is charged, and stated."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.statement import statement
from sfumato.checking import check, checked
from sfumato.errors import DataError, ReleaseError, SfumatoError
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.people.question import SampleQuestion, Weight
from sfumato.statistics.people.tabulate import _whole
from tests.running.same_draws import same_draws
from tests.statistics.people.survey import HEAD, LARGEST, STATISTICS, drawn, table, weighted_percentiles, write

FORMAL = ("laplace", "noisy-quantiles", "noisy-regression", "global-sensitivity", "mose")
UNWEIGHTED = ("theil-sen", "local-sensitivity")


def options(method: str, more: str = f"largest_weight = {LARGEST}") -> str:
    needed = {"mose": "chi = 500000", "local-sensitivity": "accept_leak = true"}
    return ", ".join(filter(None, [needed.get(method, ""), more]))


def test_no_record_moves_a_rounded_sum_by_more_than_the_largest_weight() -> None:
    asked = SampleQuestion(groups=(), statistic="count", weight=Weight(column="w", largest=4))
    before = np.concatenate([np.arange(0, 2_000_001, 125_000), np.array([499_999, 500_001, 1_499_999])])
    for weight in (1, 499_999, 500_000, 3_999_999, 4_000_000):
        moved = _whole(before + weight, asked) - _whole(before, asked)
        assert moved.min() >= 0
        assert moved.max() <= 4


@pytest.mark.slow
def test_weights_are_added_up_exactly_and_rounded_once_in_every_cell_and_bin(engine: str, tmp_path: Path) -> None:
    columns = drawn(400)
    columns["final wt."] = np.round(columns["final wt."] / 100, 3)  # to whole numbers, most would be far off
    tables = table("laplace", "largest_weight = 5", name="counts")
    tables += table("noisy-quantiles", "largest_weight = 5", name="bins")
    tables += table("mose", "chi = 500000, largest_weight = 5", name="means")
    tables += table("laplace", 'largest_weight = 2, weights_above = "clip"', name="clipped")
    head = HEAD.replace('engine = "duckdb"', f'engine = "{engine}"')
    with checked(load(write(tmp_path, columns, tables, head=head))) as ready:
        counted = ready.count({one.name: one for one in ready.plan.tables})
    exact = [Fraction(str(weight)) for weight in columns["final wt."].tolist()]
    place = [3 * "FM".index(s) + int(c) - 1 for s, c in zip(columns["sex"], columns["school"], strict=True)]

    def sums(each: list[Fraction]) -> list[Fraction]:
        return [sum((w for w, at in zip(each, place, strict=True) if at == cell), Fraction(0)) for cell in range(6)]

    def rounded(numbers: list[Fraction]) -> list[int]:
        return [int(number + Fraction(1, 2)) for number in numbers]

    assert counted["counts"]["count"].tolist() == rounded(sums(exact))
    assert counted["clipped"]["count"].tolist() == rounded(sums([min(weight, Fraction(2)) for weight in exact]))
    assert np.abs(counted["bins"]["count"].reshape(6, -1).sum(axis=1) - rounded(sums(exact))).max() <= 30
    # A largest weight of 5 is counted in thousandths where values are added up.
    assert counted["means"]["count"].tolist() == [1_000 * number for number in sums(exact)]
    paid = [weight * int(pay) for weight, pay in zip(exact, columns["pay"], strict=True)]
    assert counted["means"]["sum_y"].tolist() == [1_000 * number for number in sums(paid)]


@pytest.mark.slow
@pytest.mark.parametrize("method", FORMAL)
def test_every_statistic_of_people_takes_weights_and_states_their_bound(method: str, tmp_path: Path) -> None:
    published = run(load(write(tmp_path, drawn(3_000), table(method, options(method)))))
    words = statement(published.plan)
    assert "None weighs more than 500, and the noise hides a record of that weight" in words
    assert "how one record more would have changed the weights of others is not hidden" in words
    assert "sampling errors are in none of these figures" in words
    rows = pq.read_table(published.bundle / "tables/people.parquet")
    assert rows.num_rows == {"laplace": 6, "noisy-quantiles": 18, "noisy-regression": 12}.get(method, 6)


@pytest.mark.parametrize("method", STATISTICS)
def test_weights_without_a_bound_are_refused_before_anything_is_read(method: str, tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(HEAD + table(method, options(method, "")), encoding="utf-8")
    with pytest.raises(ReleaseError) as refused:
        check(load(path), data=False)
    if method in UNWEIGHTED:
        assert "records that count once each: " in str(refused.value)
        assert " with a `largest_weight`" in str(refused.value)
    else:
        assert "a `largest_weight`: the noise" in str(refused.value)
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weight", "tables", "expected"),
    [
        (500.001, table("noisy-quantiles"), "no weight above largest_weight = 500"),
        (0.0, table("noisy-quantiles"), "above 0 in every row"),
        (-1.0, table("laplace"), "above 0 in every row"),
        (float("nan"), table("noisy-regression"), "above 0 in every row"),
        (None, table("mose", "chi = 500000, largest_weight = 500"), "above 0 in every row"),
        (1.0, table("laplace", "largest_weight = 0"), "from 1 to"),
        (1.0, table("laplace", "largest_weight = 2.5"), "a whole number"),
        (1.0, table("laplace", 'largest_weight = 2, weights_above = "cut"'), '"refuse" or "clip"'),
    ],
)
def test_weights_that_no_noise_is_made_for_are_refused_before_anything_is_charged(
    weight: float | None, tables: str, expected: str, tmp_path: Path
) -> None:
    columns = drawn(60)
    columns["final wt."] = [weight, *columns["final wt."][1:].tolist()]
    with pytest.raises(SfumatoError, match=expected):
        run(load(write(tmp_path, columns, tables)))
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("option", ["largest_weight = 5", 'weights_above = "clip"'])
def test_a_bound_of_weights_needs_weights(option: str, tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    path.write_text(HEAD.replace(', weight = "final wt."', "") + table("laplace", option), encoding="utf-8")
    with pytest.raises(ReleaseError, match="without one every record counts once"):
        check(load(path), data=False)


def test_weighted_counts_of_histories_do_not_add_up_several_periods_of_a_person(tmp_path: Path) -> None:
    path = tmp_path / "release.toml"
    head = HEAD.replace('unit = "person"', 'unit = "person", period = "year"')
    head = head.replace("[data.measures]", 'year = { codes = ["1", "2"] }\n\n[data.measures]')
    path.write_text(head + table("laplace"), encoding="utf-8")
    with pytest.raises(ReleaseError, match="'year' in `by`"):
        check(load(path), data=False)


@pytest.mark.slow
def test_check_tells_what_weights_do_to_the_noise_and_what_clipping_loses(tmp_path: Path) -> None:
    columns = drawn(2_000)
    weights = columns["final wt."]
    tables = table("laplace") + table("laplace", 'largest_weight = 220, weights_above = "clip"', name="clipped")
    found = check(load(write(tmp_path, columns, tables))).weighing
    assert found["people"].average == pytest.approx(weights.mean())
    assert (found["people"].heavier, found["people"].lost) == (0, 0.0)
    assert f"{500 / weights.mean():.3g} records of the average weight" in found["people"].in_words()
    assert found["clipped"].heavier == int((weights > 220).sum()) > 0
    assert found["clipped"].lost == pytest.approx(np.maximum(weights - 220, 0).sum() / weights.sum())
    assert "no published error has it" in found["clipped"].in_words()


@pytest.mark.slow
def test_heavier_records_count_with_the_bound_where_the_release_says_so(tmp_path: Path) -> None:
    columns = drawn(2_000)
    clipped = table("noisy-quantiles", 'largest_weight = 220, weights_above = "clip"')
    release = load(write(tmp_path, columns, clipped))
    words = statement(run(release).plan)
    assert "Weights above 220 count as 220" in words
    assert "do not hold what that changed" in words
    heavier = int((columns["final wt."] > 220).sum())
    assert assess(release).people[0].clipped["final wt. above 220"] == heavier
    with pytest.raises(DataError, match="no weight above largest_weight = 220"):
        run(load(write(tmp_path, columns, table("noisy-quantiles", "largest_weight = 220"))))


@pytest.mark.slow
def test_percentiles_of_twenty_thousand_people_are_near_the_weighted_ones_and_within_their_errors(
    tmp_path: Path,
) -> None:
    columns = drawn(20_000)
    with same_draws():
        published = run(load(write(tmp_path, columns, table("noisy-quantiles"))))
    rows = pq.read_table(published.bundle / "tables/people.parquet").to_pylist()
    off, within, unweighted = [], [], []
    for row in rows:
        own = (columns["sex"] == row["sex"]) & (columns["school"] == row["school"])
        share = [float(row["at"].removeprefix("p")) / 100]
        pay, weights = columns["pay"][own], columns["final wt."][own]
        true = weighted_percentiles(pay, weights, share)[0]
        off.append(abs(row["value"] - true) / true)
        unweighted.append(abs(weighted_percentiles(pay, np.ones(len(pay)), share)[0] - true) / true)
        within.append(abs(row["value"] - true) <= 1.96 * row["error"])
    assert np.mean(within) > 0.8  # of 18
    assert np.mean(off) < 0.012
    assert np.mean(unweighted) > 0.03  # to leave the weights out is worse by far
