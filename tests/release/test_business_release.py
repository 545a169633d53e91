"""A release of business totals: both engines, several levels of units, consent, and no secret in any output."""

import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.checking import check
from sfumato.errors import DataError, KeyFileError, ReleaseError, SfumatoError
from sfumato.keys import read_key
from sfumato.privacy.guarantee import NoFormalGuarantee
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato_lab.economy.business.generate import generate_business
from tests.conftest import same_key

TABLES = ("turnover_by_state_industry", "profit_by_industry_size", "businesses_by_state_size")
SECRETS = ("371317205391", "297175386024", "213139470258", "0.284113")
"""With so many digits, or a point, that no published figure has them by chance."""
MAGNITUDES = "magnitudes = [0.{}, 0.{}, 0.{}], spread = {}".format(*SECRETS)


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("survey") / "survey"
    generate_business(folder, businesses=2_000)
    same_key(folder / "sfumato.key")
    return folder


def release(survey: Path, name: str, *changes: tuple[str, str]) -> Path:
    """The release file with changes, and a ledger and bundle of its own."""
    text = (survey / "release.toml").read_text(encoding="utf-8")
    for old, new in (("[data]", f'ledger = "{name}.sqlite"\nbundle = "{name}"\n\n[data]'), *changes):
        assert old in text
        text = text.replace(old, new, 1)
    path = survey / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def published(bundle: Path, table: str) -> pa.Table:
    return pq.read_table(bundle / f"tables/{table}.parquet")


@pytest.mark.slow
def test_both_engines_publish_the_same(survey: Path, engine: str) -> None:
    expected = run(load(release(survey, f"expected-{engine}"))).bundle
    found = run(load(release(survey, engine, ('engine = "duckdb"', f'engine = "{engine}"')))).bundle
    for table in TABLES:
        assert published(found, table).equals(published(expected, table)), table


def test_totals_are_protected_by_themselves_and_near_the_truth(survey: Path) -> None:
    table = published(run(load(release(survey, "totals"))).bundle, TABLES[0]).to_pandas()
    frame = pq.read_table(survey / "businesses.parquet").to_pandas()
    true = float((frame["turnover"] * frame["weight"]).sum())
    total = table[(table["state"] == "total") & (table["industry"] == "total")].iloc[0]
    assert 0 < abs(total["value"] / true - 1) < 0.5
    assert total["low"] < true < total["high"]
    assert set(table["status"]) == {"", "suppressed", "mostly perturbation"}
    assert table.loc[table["status"] == "suppressed", "value"].isna().all()


EMPLOYEES = (
    (
        'records = { path = "businesses.parquet", unit = "business", levels = ["enterprise"], weight = "weight", '
        'replicates = { columns = "rw_*", rule = "jackknife" } }',
        'records = { path = "employees.parquet", unit = "employee", LEVELSweight = "weight" }',
    ),
)


def of_employees(survey: Path, name: str, levels: str) -> Path:
    """A release of wages by state, industry and occupation, with or without establishments as protected units."""
    text = (survey / "release.toml").read_text(encoding="utf-8")
    text = re.sub(
        r"records = .*\n",
        f'records = {{ path = "employees.parquet", unit = "employee", {levels}weight = "weight" }}\n',
        text,
    )
    text = text[: text.index("[data.attributes]")] + (
        "[data.attributes]\n"
        'state = { codelist = "codelists/state.csv" }\n'
        'industry = { codelist = "codelists/industry.csv" }\n'
        'occupation = { codelist = "codelists/occupation.csv" }\n'
        '[data.measures]\nwage = { unit = "dollars a week" }\n'
        '[[table]]\nname = "wages"\ntotal = "wage"\nby = ["state", "industry", "occupation"]\n'
        'protect = { method = "top-contributors" }\n'
    )
    path = survey / f"{name}.toml"
    path.write_text(text.replace("[data]", f'ledger = "{name}.sqlite"\nbundle = "{name}"\n\n[data]', 1))
    return path


def test_a_cell_of_one_establishments_employees_is_protected_when_that_level_is_declared(survey: Path) -> None:
    staff = pq.read_table(survey / "employees.parquet").to_pandas()
    staff["paid"] = staff["wage"] * staff["weight"]
    by = ["state", "industry", "occupation"]
    cells = staff.groupby(by, observed=True).agg(
        establishments=("business", "nunique"), employees=("employee", "size"), paid=("paid", "sum")
    )
    exposed = cells[(cells["establishments"] == 1) & (cells["employees"] >= 6)]
    assert len(exposed), "the survey has cells of one establishment's employees"
    alone, guarded = (
        published(run(load(of_employees(survey, name, levels))).bundle, "wages").to_pandas().set_index(by)
        for name, levels in (("alone", ""), ("guarded", 'levels = ["business", "enterprise"], '))
    )
    off = np.array([abs(alone.loc[cell, "value"] / row["paid"] - 1) for cell, row in exposed.iterrows()])
    assert np.nanmean(off) < 0.2, "protecting employees alone leaves the establishment's payroll exposed"
    assert all(guarded.loc[cell, "status"] == "suppressed" for cell in exposed.index)
    # Where several establishments are and one dominates, its payroll sets the size of the perturbation.
    share = (
        staff.groupby([*by, "business"], observed=True)["paid"].sum().groupby(by, observed=True).max() / cells["paid"]
    )
    dominated = cells[(cells["establishments"] >= 3) & (cells["employees"] >= 30) & (share > 0.7)].index
    seen = [cell for cell in dominated if guarded.loc[cell, "status"] != "suppressed"]
    if seen:
        moved = {
            name: np.mean([abs(table.loc[cell, "value"] / cells.loc[cell, "paid"] - 1) for cell in seen])
            for name, table in (("alone", alone), ("guarded", guarded))
        }
        assert moved["guarded"] > 2 * moved["alone"]


def test_only_units_that_asked_are_perturbed(survey: Path) -> None:
    frame = pq.read_table(survey / "businesses.parquet").to_pandas()
    asked = release(survey, "asked", ('levels = ["enterprise"], weight', 'consent = "consent", weight'))
    table = published(run(load(asked)).bundle, TABLES[0]).to_pandas()
    weighted = frame["turnover"] * frame["weight"]
    true = weighted.groupby([frame["state"], frame["industry"]], observed=True).sum()
    asked_in = frame.groupby(["state", "industry"], observed=True)["consent"].any()
    inner = table[(table["state"] != "total") & (table["industry"] != "total") & table["value"].notna()]
    checked = 0
    for row in inner.itertuples():
        if not asked_in[row.state, row.industry]:
            assert row.value == pytest.approx(true[row.state, row.industry], abs=1)
            checked += 1
    assert checked > 3


@pytest.mark.slow
def test_a_statement_says_who_is_not_protected_and_which_cells_are_published(survey: Path) -> None:
    of_one = ('method = "top-contributors" }', 'method = "top-contributors", suppress = 0 }')
    asked = ('levels = ["enterprise"], weight', 'consent = "consent", weight')
    open_one = (run(load(release(survey, "open", asked, *[of_one] * 3))).bundle / "statement.md").read_text()
    assert "its total is published as it is" in open_one.split("## Other periods")[0]
    assert "very few" not in open_one
    assert "a single one are published" in open_one
    usual = (run(load(release(survey, "usual"))).bundle / "statement.md").read_text()
    assert "as it is" not in usual
    assert "cells without any record and cells with very few look the same" in usual


def test_no_output_holds_a_key_a_magnitude_or_an_unperturbed_total(survey: Path) -> None:
    secret_options = (
        'protect = { method = "top-contributors" }',
        f'protect = {{ method = "top-contributors", {MAGNITUDES} }}',
    )
    path = release(survey, "secrets", *[secret_options] * 3)
    said = "".join(
        spoken([*words, str(path)]) for words in (["check"], ["run"], ["run", "--json"], ["budget", "--ledger"])
    )
    wrong = release(
        survey,
        "wrong",
        ("[data.measures]", "[data.measures]\nincome = {}"),
        (
            'protect = { method = "top-contributors" }',
            f'protect = {{ method = "top-contributors", {MAGNITUDES}, delta = 1 }}',
        ),
    )
    said += spoken(["run", str(wrong)], fails=True)
    bundle = survey / "secrets"
    texts = [said, *(file.read_text() for file in bundle.rglob("*") if file.is_file() and file.suffix != ".parquet")]
    secret = read_key(survey / "sfumato.key")
    for text in texts:
        assert secret.key.hex() not in text
        assert not any(word in text for word in (*SECRETS, "magnitude"))
    frame = pq.read_table(survey / "businesses.parquet").to_pandas()
    true = (frame["turnover"] * frame["weight"]).groupby([frame["state"], frame["industry"]], observed=True).sum()
    for row in published(bundle, TABLES[0]).to_pylist():
        if row["value"] and row["state"] != "total" and row["industry"] != "total":
            assert abs(row["value"] - true[row["state"], row["industry"]]) > 0.5
    assert secret.key not in (survey / "secrets.sqlite").read_bytes()
    assert not any(digits.encode() in (survey / "secrets.sqlite").read_bytes() for digits in SECRETS)


def spoken(words: list[str], *, fails: bool = False) -> str:
    command = [sys.executable, "-m", "sfumato", *words]
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


OTHER = (
    'protect = { method = "top-contributors" }',
    'protect = { method = "top-contributors", magnitudes = [0.5, 0.1, 0.1] }',
)


def test_records_are_never_perturbed_in_two_ways(survey: Path) -> None:
    with pytest.raises(ReleaseError, match="solved for the truth"):
        check(load(release(survey, "two", OTHER)))
    run(load(release(survey, "first")))
    changed = release(survey, "changed", *[OTHER] * 3).read_text().replace('"changed', '"first')
    (survey / "first.toml").write_text(changed)
    with pytest.raises(KeyFileError, match="solved for the truth"):
        run(load(survey / "first.toml"))


@pytest.mark.slow
def test_a_release_of_records_is_assessed_with_its_attacks(survey: Path) -> None:
    path = release(survey, "assessed")
    run(load(path))
    assessment = assess(load(path))
    attacks = {found.attack: found for exposure in assessment.exposures for found in exposure.attacks}
    for level in ("business", "enterprise"):
        for words in ("total (within 18 %)", "second contributor (within 11 %)"):
            found = attacks[f"{words}, {level}"]
            assert found.targets > 10
            assert found.risk == pytest.approx(found.success_rate, abs=0.15), "what was seen is one draw of the risk"
    assert {found.attack for one in assessment.together for found in one.attacks} == {
        f"turnover: difference of two cells (within 11 %), {level}" for level in ("business", "enterprise")
    }
    file = pq.read_table(assessment.report.with_name(f"{TABLES[0]}.parquet"))
    assert {"risk_1_business", "risk_3_enterprise"} <= set(file.column_names)
    assert all(utility.expected_error > 0 for utility in assessment.utilities)


@pytest.mark.slow
def test_the_report_adds_no_totals_to_cells_and_speaks_of_dollars_and_of_published_intervals(survey: Path) -> None:
    path = release(survey, "reported")
    bundle = run(load(path)).bundle
    assessment = assess(load(path))
    assert [utility.unit for utility in assessment.utilities] == ["dollars", "dollars", "businesses"]
    for name, utility in zip(TABLES, assessment.utilities, strict=True):
        # The confidential file lists every combination, the bundle leaves out what is hidden: both have all codes.
        true = pq.read_table(assessment.report.with_name(f"{name}.parquet")).to_pandas()
        by = [column for column in true.columns if column in ("state", "industry", "size")]
        cells = pq.read_table(bundle / "tables" / f"{name}.parquet").to_pandas().merge(true, on=by, suffixes=("", "_"))
        unit = 100 if name.startswith("profit") else 1
        seen = cells[cells.value.notna()]
        is_total = (seen[by] == "total").any(axis=1)
        assert (utility.cells, utility.margins.cells) == ((~is_total).sum(), is_total.sum())
        inner = seen[~is_total]
        assert utility.mean_error == pytest.approx((inner.value - inner.true / unit).abs().mean())
        known = inner[inner.low.notna()]
        inside = (known.low <= known.true / unit) & (known.true / unit <= known.high)
        assert utility.covered == pytest.approx(inside.mean())
        if name.startswith("profit"):
            assert (utility.total_true, utility.hellinger, utility.associations) == (None, None, ())
        else:
            assert utility.total_true == inner.true.sum()
    page = assessment.report.read_text(encoding="utf-8")
    assert "mean absolute error, dollars" in page
    for nonsense in (", jobs", "single job", "times 10^2", "no bound", "10 or 11 workers", "workplace cell"):
        assert nonsense not in page, nonsense


MISTAKES = {
    "a formal method": ('method = "top-contributors" }', 'method = "smooth-pareto", epsilon = 1 }', "a budget"),
    "jobs of records": ('total = "turnover"', 'count = "jobs"', "for tables of records"),
    "unknown measure": ('total = "turnover"', 'total = "turnovr"', "did you mean 'turnover'"),
    "too many magnitudes": (
        '"top-contributors" }',
        '"top-contributors", magnitudes = [1, 1, 1, 1, 1, 1, 1] }',
        "one to six",
    ),
    "a magnitude that is no number": (
        '"top-contributors" }',
        '"top-contributors", magnitudes = ["big"] }',
        "a list of numbers",
    ),
    "an impossible count table": ('"top-contributors" }', '"top-contributors", count_variance = 90 }', "variance"),
    "an unknown rule": ('rule = "jackknife"', 'rule = "guess"', "jackknife"),
    "a weight twice": ('weight = "weight"', 'weight = "business"', "different columns"),
    "negative profits refused": ("minimum = -1e12", "minimum = 0", "below 0"),
    "no such weight": ('weight = "weight"', 'weight = "gewicht"', "gewicht"),
    "no replicates": ('columns = "rw_*"', 'columns = "replicate_*"', "replicate_"),
}


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_refused_before_anything_is_written(survey: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(SfumatoError, match=re.escape(said)):
        check(load(release(survey, "mistake", (old, new))))
    assert not (survey / "mistake.sqlite").exists()


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan")])
def test_weights_that_are_not_positive_are_refused(survey: Path, tmp_path: Path, weight: float) -> None:
    table = pq.read_table(survey / "businesses.parquet")
    column = table["weight"].to_pylist()
    column[7] = weight
    pq.write_table(
        table.set_column(table.column_names.index("weight"), "weight", pa.array(column)), tmp_path / "b.parquet"
    )
    with pytest.raises(DataError, match="weight"):
        check(load(release(survey, "weights", ("businesses.parquet", str(tmp_path / "b.parquet")))))


def test_exact_fractions_are_read_for_magnitudes(survey: Path) -> None:
    two = ('"top-contributors" }', '"top-contributors", magnitudes = [0.1, 0.2] }')
    method = check(load(release(survey, "exact", two, two, two))).plan.tables[0].method
    assert method.magnitudes == (Fraction(1, 10), Fraction(1, 5))


def test_a_question_that_was_answered_stays_answered_when_its_statement_tells_other_risks(survey: Path) -> None:
    path = release(
        survey, "stated", ('method = "top-contributors" }', 'method = "top-contributors", by_shape = true }')
    )
    text = path.read_text().replace('"top-contributors" }', '"top-contributors", by_shape = true }')
    path.write_text(text)
    for table in check(load(path)).plan.tables:
        assert table.may_have_cost(NoFormalGuarantee(statement="what an earlier version computed"))
        assert not table.may_have_cost(None)


def test_withholding_by_share_of_the_variance_needs_weights(survey: Path) -> None:
    path = release(
        survey,
        "unweighted",
        ('method = "top-contributors" }', 'method = "top-contributors", most_perturbation = 0.9 }'),
        (', weight = "weight", replicates = { columns = "rw_*", rule = "jackknife" }', ""),
    )
    with pytest.raises(ReleaseError, match="most_perturbation"):
        check(load(path))


def renamed(survey: Path, name: str, told: str, *, ledger: str) -> Path:
    """The release of the same businesses in a file whose columns of units are called otherwise."""
    new = {"business": "Firma", "enterprise": "Gruppe"}
    if not (survey / "renamed.parquet").exists():
        found = pq.read_table(survey / "businesses.parquet")
        pq.write_table(
            found.rename_columns([new.get(column, column) for column in found.column_names]), survey / "renamed.parquet"
        )
    columns = ('"businesses.parquet", unit = "business", levels = ["enterprise"]', f'"renamed.parquet", {told}')
    path = release(survey, name, columns)
    path.write_text(path.read_text().replace(f"{name}.sqlite", f"{ledger}.sqlite"))
    return path


LASTING = 'unit = "Firma", levels = ["Gruppe"], key_names = { Firma = "business", Gruppe = "enterprise" }'


@pytest.mark.slow
def test_units_under_another_column_are_refused_and_keep_their_keys_under_their_permanent_name(survey: Path) -> None:
    bundle = run(load(release(survey, "columns"))).bundle
    other = renamed(survey, "other", 'unit = "Firma", levels = ["Gruppe"]', ledger="columns")
    for attempt in (check, run):
        with pytest.raises(KeyFileError, match="average") as refusal:
            attempt(load(other))
        assert "key_names" in refusal.value.do
    assert not (survey / "other").exists()
    again = run(load(renamed(survey, "again", LASTING, ledger="columns"))).bundle
    for table in TABLES:
        assert published(again, table).equals(published(bundle, table)), table


@pytest.mark.slow
def test_other_units_of_the_same_population_are_published_once_that_is_said(survey: Path) -> None:
    run(load(release(survey, "units")))
    alone = renamed(survey, "apart", 'unit = "Firma"', ledger="units")
    with pytest.raises(KeyFileError, match="Firma"):
        run(load(alone))
    alone.write_text(alone.read_text().replace('unit = "Firma"', 'unit = "Firma", accept = "other units"'))
    assert run(load(alone)).charged == TABLES
    run(load(release(survey, "units")))


def test_permanent_names_are_given_to_units_alone(survey: Path) -> None:
    told = '[data.records]\npath = "x.csv"\nunit = "a"\nkey_names = { b = "c" }\n'
    path = survey / "mistaken.toml"
    path.write_text(f'[release]\ntitle = "t"\npopulation = "p"\nperiod = "2025"\n{told}')
    with pytest.raises(ReleaseError, match="neither `unit` nor one of `levels`"):
        load(path)
