"""Totals and means of people by a release file: exact before noise, within bounds, refused early, and stated."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.read import open_bundle
from sfumato.bundle.statement import statement
from sfumato.checking import check, checked
from sfumato.errors import SfumatoError
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.serve.core.bundle import table_metrics
from tests.running.same_draws import same_draws
from tests.statistics.people.survey import HEAD, drawn, write

PLAIN = HEAD.replace(', weight = "final wt."', "")
BOUNDED = PLAIN.replace("maximum = 500000", "maximum = 60000")
SIGNED = PLAIN.replace("rank = { minimum = 0, maximum = 100 }", "rank = { minimum = -40, maximum = 100 }")


def asked(statistic: str, protect: str = "epsilon = 2", *, name: str = "sums", more: str = "") -> str:
    return (
        f'\n[[table]]\nname = "{name}"\n{statistic}\nby = ["sex", "school"]\n{more}\n'
        f'protect = {{ method = "laplace", {protect} }}\n'
    )


TOTAL, MEAN = 'total = "pay"', 'mean = "pay"'


def by_cell(columns: dict[str, Any], values: Any) -> Any:
    place = 3 * (columns["sex"] == "M") + columns["school"].astype(int) - 1
    return np.bincount(place, values, minlength=6)


def rows(done: Any, name: str = "sums") -> Any:
    return pq.read_table(done.bundle / f"tables/{name}.parquet").to_pandas()


def test_sums_are_exact_before_noise_on_every_engine(engine: str, tmp_path: Path) -> None:
    columns = drawn(400)
    text = BOUNDED.replace('engine = "duckdb"', f'engine = "{engine}"') + asked(TOTAL) + asked(MEAN, name="means")
    with checked(load(write(tmp_path, columns, text, head=""))) as ready:
        counted = ready.count({one.name: one for one in ready.plan.tables})
        found = {one.name: one.method.true_value(counted[one.name]) for one in ready.plan.tables}
    within, people = by_cell(columns, np.clip(columns["pay"], 0, 60_000)), by_cell(columns, np.ones(400))
    assert found["sums"].tolist() == within.tolist()
    assert found["means"] == pytest.approx(within / people)


def test_published_numbers_are_close_to_those_of_the_data_and_held_by_their_intervals(tmp_path: Path) -> None:
    columns = drawn(3_000)
    with same_draws():
        done = run(load(write(tmp_path, columns, BOUNDED + asked(TOTAL) + asked(MEAN, name="means"), head="")))
    within, people = by_cell(columns, np.clip(columns["pay"], 0, 60_000)), by_cell(columns, np.ones(3_000))
    totals, means = rows(done), rows(done, "means")
    assert list(means) == ["sex", "school", "value", "error", "low", "high", "status", "total", "count"]
    assert np.abs(totals["value"] - within).max() < 10 * 30_000
    assert (totals["error"] == 30_000).all()
    assert ((means["low"] <= within / people) & (within / people <= means["high"])).mean() >= 0.8
    assert np.abs(means["value"] - within / people).max() < 10 * 30_000 / people.min()
    assert means["value"].to_numpy() == pytest.approx((means["total"] / means["count"]).to_numpy(), rel=0.01)
    assert means["total"].dtype == means["count"].dtype == np.int64


def test_weighted_sums_are_those_of_weights_and_noise_is_that_of_the_largest(tmp_path: Path) -> None:
    columns = drawn(3_000)
    text = (
        HEAD
        + asked(TOTAL, "epsilon = 4, largest_weight = 500")
        + asked(MEAN, "epsilon = 4, largest_weight = 500", name="means")
    )
    with same_draws():
        done = run(load(write(tmp_path, columns, text, head="")))
    weight = columns["final wt."]
    total, people = by_cell(columns, weight * columns["pay"]), by_cell(columns, weight)
    scale = 500 * 500_000 / 4
    assert np.abs(rows(done)["value"] - total).max() < 10 * scale
    assert rows(done)["error"].round(-3).tolist() == [scale] * 6
    assert np.abs(rows(done, "means")["count"] - people).max() < 10 * 2 * 500 / 4
    assert np.abs(rows(done, "means")["value"] - total / people).max() < 10 * scale / people.min()
    words = statement(done.plan)
    assert words.count("None weighs more than 500, and the noise hides a record of that weight") == 2
    assert words.count("sampling errors are in none of these figures") == 1


def test_check_tells_what_bounds_change_and_nobody_else(tmp_path: Path) -> None:
    columns = drawn(400)
    path = write(tmp_path, columns, BOUNDED + asked(MEAN), head="")
    found = check(load(path)).cut["pay"].figures()
    above = columns["pay"] > 60_000
    assert found["share_of_records"] == pytest.approx(above.mean())
    lost = (columns["pay"][above] - 60_000).sum() / columns["pay"].sum()
    assert found["share_of_total"] == pytest.approx(-lost)
    done = run(load(path))
    told = "".join(one.read_text(encoding="utf-8") for one in done.bundle.glob("*.*") if one.suffix in (".md", ".json"))
    assert f"{lost:.2%}" not in told
    assert "those above 60,000 count as 60,000" in told


def test_values_below_zero_have_totals_below_zero(tmp_path: Path) -> None:
    columns = drawn(1_000)
    columns["rank"] = columns["rank"] // 3 - 40
    with same_draws():
        done = run(
            load(
                write(
                    tmp_path, columns, SIGNED + asked('total = "rank"') + asked('mean = "rank"', name="means"), head=""
                )
            )
        )
    total, people = by_cell(columns, columns["rank"]), by_cell(columns, np.ones(1_000))
    found, means = rows(done), rows(done, "means")
    assert (found["high"] < 0).all()
    assert np.abs(found["value"] - total).max() < 10 * 100 / 2
    assert np.abs(means["value"] - total / people).max() < 10 * 140 / 2 / people.min()
    assert np.abs(means["total"] - total).max() < 12 * 140 / 2


def test_people_of_several_periods_spend_the_epsilon_of_each(tmp_path: Path) -> None:
    columns = {name: np.tile(column, 2) for name, column in drawn(300).items()} | {"year": np.repeat(["1", "2"], 300)}
    head = PLAIN.replace('unit = "person"', 'unit = "person", period = "year"')
    head = head.replace("[data.measures]", 'year = { codes = ["1", "2"] }\n\n[data.measures]')
    each = 'epsilon = { "1" = 1, "2" = 2 }'
    text = head + (
        asked(TOTAL, each) + asked(MEAN, each, name="means") + asked(MEAN, "epsilon = 2", name="even")
    ).replace('"school"]', '"school", "year"]')
    done = run(load(write(tmp_path, columns, text, head="")))
    assert [float(one.guarantee.epsilon) for one in done.plan.tables] == [3, 3, 2]
    errors = rows(done).groupby("year", observed=True)["error"].first()
    assert errors.round(-2).tolist() == [500_000, 250_000]
    spent = {one.name: one.method.epsilon for one in done.plan.tables}
    assert spent == {"sums": 3, "means": 3, "even": 2}
    words = statement(done.plan)
    assert "each spends an epsilon of its own, by year: 1: 1, 2: 2" in words
    assert assess(load(tmp_path / "release.toml")).report.exists()


REFUSED = {
    "no maximum": (PLAIN.replace(", maximum = 500000", ""), asked(TOTAL), "a minimum and a larger maximum"),
    "count_share": (PLAIN, asked(MEAN, "epsilon = 1, count_share = 0.3"), "spend the same epsilon"),
    "totals": (PLAIN, asked(TOTAL, more="totals = true"), "without totals"),
    "unknown errors": (PLAIN, asked(MEAN, more='unknown_errors = "published"'), "every mean by laplace has an error"),
    "a weight without a bound": (HEAD, asked(TOTAL), "a `largest_weight`"),
    "several records of a person": (
        PLAIN.replace('unit = "person"', 'unit = "person", period = "year"').replace(
            "[data.measures]", 'year = { codes = ["1", "2"] }\n\n[data.measures]'
        ),
        asked(TOTAL),
        "'year' in `by`",
    ),
    "whole units": (
        PLAIN.replace("ledger =", 'key = "sfumato.key"\nledger ='),
        asked(TOTAL, 'epsilon = 1, protects = "unit", most_records = 3'),
        "counts alone whole units",
    ),
    "another method": (PLAIN, asked(TOTAL).replace('"laplace"', '"mose"'), "top-contributors or perturbed-values or"),
    "an attribute called total": (
        PLAIN.replace("school =", "total ="),
        asked(MEAN).replace('"school"', '"total"'),
        "other names than total and count",
    ),
    "noise that leaves 64 bits": (
        PLAIN.replace("500000", "500000000"),
        asked(TOTAL, "epsilon = 0.00000001"),
        "noise of at most 2^52",
    ),
}


@pytest.mark.parametrize(("head", "table", "expected"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_protected_is_refused_before_anything_is_read(
    head: str, table: str, expected: str, tmp_path: Path
) -> None:
    new_key(tmp_path / "sfumato.key")
    path = tmp_path / "release.toml"
    path.write_text(head + table, encoding="utf-8")
    with pytest.raises(SfumatoError) as refused:
        check(load(path), data=False)
    assert expected in " ".join(str(refused.value).split())


def test_a_record_outside_of_bounds_that_do_not_clip_is_refused(tmp_path: Path) -> None:
    columns = drawn(60)
    columns["rank"][0] = 101
    with pytest.raises(SfumatoError, match="rank"):
        run(load(write(tmp_path, columns, PLAIN + asked('total = "rank"'), head="")))
    assert not (tmp_path / "ledger.sqlite").exists()


def test_sums_of_published_totals_have_errors_and_those_of_means_are_not_made(tmp_path: Path) -> None:
    done = run(load(write(tmp_path, drawn(600), PLAIN + asked(TOTAL) + asked(MEAN, name="means"), head="")))
    about = {one["name"]: one for one in json.loads((done.bundle / "structure.json").read_text())["tables"]}
    assert about["sums"]["additive"]
    assert about["sums"]["noise"]["parameters"]["high_y"] == 500_000
    assert not about["means"]["additive"]
    assert "noise" not in about["means"]
    schema = pq.read_schema(done.bundle / "tables/means.parquet")
    labels = {metric.code: metric.label for metric in table_metrics(about["means"], schema)}
    assert "Standard" not in labels["error"], "it is a mean absolute error"
    assert open_bundle(done.bundle) is not None


def test_one_statement_speaks_for_all_tables_of_people(tmp_path: Path) -> None:
    text = PLAIN + asked(TOTAL) + asked(MEAN, name="means") + asked('count = "records"', name="counts")
    done = run(load(write(tmp_path, drawn(200), text, head="")))
    words = statement(done.plan)
    assert words.count("Whether a given person is among the data: this release changes the odds") == 1
    assert words.count("These figures speak of the protection only") == 1
    assert words.count("The noise hides one person.") == 1
    assert "| all tables together |  | individuals | 1 | 6 | 0 |" in words


def test_formal_sums_beside_a_table_with_a_key_are_named_as_what_is_covered(tmp_path: Path) -> None:
    new_key(tmp_path / "sfumato.key")
    keyed = asked('count = "records"', name="keyed").replace(
        'method = "laplace", epsilon = 2', 'method = "top-contributors"'
    )
    text = PLAIN.replace("ledger =", 'key = "sfumato.key"\nledger =') + asked(TOTAL) + asked(MEAN, name="means") + keyed
    plan = check(load(write(tmp_path, drawn(200), text, head=""))).plan
    (short,) = [line for line in statement(plan).splitlines() if line.startswith("Every number of ")]
    assert "`sums`" in short
    assert "`means`" in short
    assert "`keyed`" not in short


def test_the_report_expects_the_errors_that_means_and_totals_have(tmp_path: Path) -> None:
    columns = drawn(3_000)
    text = HEAD + "".join(
        asked(statistic, "epsilon = 4, largest_weight = 500", name=name)
        for name, statistic in (("totals", TOTAL), ("means", MEAN))
    )
    release = load(write(tmp_path, columns, text, head=""))
    run(release)
    found = assess(release)
    people = by_cell(columns, columns["final wt."])
    means = next(one for one in found.utilities if one.name == "means")
    assert means.cells == 6
    cells = pq.read_table(found.report.with_name("means.parquet")).to_pandas()
    most = 500_000 * 500 / 4 / people * 100  # in hundredths
    assert (cells["expected_error"] <= most * 1.01).all()
    assert (cells["expected_error"] >= 0.74 * most).all()
    assert cells["true"].to_numpy() / 100 == pytest.approx(
        by_cell(columns, columns["final wt."] * columns["pay"]) / people, rel=0.001
    )
