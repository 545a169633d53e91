"""A release of people: what it costs, what it refuses, and what it publishes."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.bundle.statement import statement
from sfumato.checking import check, checked, stored_answers
from sfumato.engine.data_files import data_files
from sfumato.engine.memory import Memory
from sfumato.errors import BudgetError, DataError, MethodError, ReleaseError, SfumatoError
from sfumato.frame.records import Microdata
from sfumato.plan import Plan
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import keep_answer, open_ledger, run
from sfumato.statistics.people.bins import PublicBins
from sfumato.statistics.totals.statistic import Totals
from tests.release.people import ALL, EARNINGS, EMPLOYMENT, HEAD, PERCENTILES, SCORES, people, written
from tests.running.same_draws import same_draws


def planned(folder: Path, text: str = ALL, *changes: tuple[str, str]) -> Plan:
    return check(load(written(folder, text, *changes))).plan


def published(bundle: Path, table: str) -> pd.DataFrame:
    return pq.read_table(bundle / f"tables/{table}.parquet").to_pandas()


def test_a_persons_whole_history_is_charged_once_a_year_and_statistic(tmp_path: Path) -> None:
    plan = planned(tmp_path, HEAD + EMPLOYMENT + EARNINGS)
    employment, earnings = (table.method for table in plan.tables)
    # Two years: 2 / 2 = 1 for the number of people, and 3 / 2 = 1.5 for earnings, of which 0.5 are for their number.
    assert employment.noise.epsilon == 1
    assert (earnings.epsilon_of_count, earnings.epsilon_of_value) == (Fraction(1, 2), 1)
    by_hand = sum(Fraction(1) + Fraction(1, 2) + Fraction(1) for _ in ("2001", "2002"))
    assert isinstance(plan.guarantee, EmployerEmployee)
    assert plan.guarantee.epsilon == by_hand == 5
    done = run(load(tmp_path / "release.toml"))
    assert done.balance is not None
    assert done.balance.spent_epsilon == 5
    assert "not differentially private" in done.balance.condition


def test_a_table_of_one_year_spends_its_epsilon_on_it(tmp_path: Path) -> None:
    [table] = planned(tmp_path, HEAD + SCORES).tables
    assert (table.method.epsilon_of_count, table.method.epsilon_of_value) == (1, 1)
    changes = ('where = { year = "2001" }\n', ""), ('"sector"]', '"sector", "year"]')
    [two] = planned(tmp_path, HEAD + SCORES, *changes).tables
    assert (two.method.epsilon_of_count, two.method.epsilon_of_value) == (Fraction(1, 2), Fraction(1, 2))


def test_data_without_a_period_have_one_record_a_person(tmp_path: Path) -> None:
    without = (', period = "year"', "")
    with pytest.raises(DataError, match="repeat the unit"):
        planned(tmp_path, HEAD + PERCENTILES, without)
    once = pa.table({name: column[::2] for name, column in people().items()})
    pq.write_table(once, tmp_path / "people.parquet")
    [table] = planned(tmp_path, HEAD + PERCENTILES, without).tables
    assert table.method.periods == 1


def test_all_tables_are_published_with_their_numbers_of_people_and_errors(tmp_path: Path) -> None:
    with same_draws():
        bundle = run(load(written(tmp_path))).bundle
    count, mean, predicted, quantiles = (
        published(bundle, name) for name in ("employment", "earnings", "scores", "percentiles")
    )
    true = pd.DataFrame(people())
    by = ["title", "sector", "year"]
    sizes = true.groupby(by).size().rename("people").reset_index()
    compared = count.astype(dict.fromkeys(by, str)).merge(sizes, on=by)
    assert len(compared) == 12
    assert list(count.columns) == [*by, "value", "error", "low", "high"]
    assert np.abs(compared["value"] - compared["people"]).mean() < 5
    assert list(mean.columns) == [*by, "at", "value", "count", "error", "status"]
    assert set(mean["at"]) == {"mean"}
    assert (mean["value"] * 10 % 1 == 0).all(), "one decimal"
    assert (mean["value"] % 1 != 0).any()
    truth = true.assign(earnings=true["earnings"].clip(0, 200_000)).groupby(by)["earnings"].mean().reset_index()
    off = mean.astype(dict.fromkeys(by, str)).merge(truth, on=by)
    assert (np.abs(off["value"] - off["earnings"]) < 8 * off["error"]).all()
    assert list(predicted.columns) == ["title", "sector", "at", "value", "count", "error", "status"]
    assert set(predicted["at"]) == {"25", "75"}
    for at, least, most in (("25", 30, 45), ("75", 55, 70)):
        values = predicted[(predicted["at"] == at) & predicted["error"].notna()]
        assert ((values["value"] > least - 8 * values["error"]) & (values["value"] < most + 8 * values["error"])).all()
    people_of_groups = predicted["count"].to_numpy().reshape(-1, 2)
    assert (people_of_groups[:, 0] == people_of_groups[:, 1]).all()
    assert set(quantiles["at"]) == {"p25", "p50", "p75"}
    assert (np.diff(quantiles["value"].to_numpy().reshape(-1, 3)) > 0).all()
    assert 34_000 < quantiles[quantiles["at"] == "p50"]["value"].mean() < 46_000


def test_a_repeated_question_gets_the_stored_answer_and_costs_nothing(tmp_path: Path) -> None:
    release = load(written(tmp_path))
    first = run(release)
    manifest = read_manifest(first.bundle)
    assert set(first.charged) == {"employment", "earnings", "scores", "percentiles"}
    again = run(release)
    assert again.charged == ()
    assert read_manifest(again.bundle) == manifest
    renamed = run(load(written(tmp_path, ALL, ('name = "scores"', 'name = "points"'))))
    assert renamed.charged == ()
    assert renamed.balance is not None
    assert renamed.balance.remaining_epsilon == 0


PUBLISHED = 'unknown_errors = "published"'


def small_groups(folder: Path, *changes: tuple[str, str]) -> tuple[Path, pd.DataFrame]:
    """Publish means of groups of two to four people a year, with noise of 200,000 and more, and read them."""
    few = {name: column[:60] for name, column in people().items()}
    pq.write_table(pa.table(few), folder / "people.parquet")
    bundle = run(load(written(folder, HEAD + EARNINGS, *changes))).bundle
    return bundle, published(bundle, "earnings")


def test_a_mean_whose_error_nothing_tells_is_withheld(tmp_path: Path) -> None:
    bundle, table = small_groups(tmp_path)
    untold = table["status"] == "error unknown"
    assert untold.any()
    # The error comes from the published number of people alone: below 6/0.5 nothing tells it.
    assert (table["count"][untold] < 12).all()
    assert table["value"][untold].isna().all()
    assert (table["value"].isna() == table["error"].isna()).all(), "no value without an error"
    assert (bundle / "tables/earnings.csv").read_text().count("error unknown") == untold.sum()
    assert 'withheld ("error unknown")' in (bundle / "statement.md").read_text()


def test_a_release_may_ask_for_means_without_an_error_and_gets_the_same_draws(tmp_path: Path) -> None:
    _, withheld = small_groups(tmp_path)
    wanted = written(tmp_path, HEAD + EARNINGS, ('name = "earnings"', f'name = "earnings"\n{PUBLISHED}'))
    done = run(load(wanted))
    assert done.charged == (), "the same question: nothing is drawn again"
    table = published(done.bundle, "earnings")
    assert (table["value"].isna() == table["status"].isin(["suppressed", "not available"])).all()
    shown = withheld["value"].notna()
    assert (table["value"][shown] == withheld["value"][shown]).all()
    assert "because this release asks for it" in (done.bundle / "statement.md").read_text()
    described = json.loads((done.bundle / "structure.json").read_text())["tables"][0]
    assert described["unknown_errors"] == "published"


def test_percentiles_in_the_end_bins_are_published_as_bounds_without_an_error(tmp_path: Path) -> None:
    narrow = ("{ median = 40000, sigma = 0.6, number = 16 }", "[0, 35000, 38000, 40000, 42000, 45000, 200000]")
    release = load(written(tmp_path, HEAD + PERCENTILES, narrow))
    bundle = run(release).bundle
    table = published(bundle, "percentiles")
    low, high = (table[table["at"] == at] for at in ("p25", "p75"))
    assert set(low["status"]) == {"below"}
    assert set(high["status"]) == {"above"}
    assert (low["value"] >= 35_000).all()
    assert (high["value"] <= 45_000).all()
    assert table["error"].isna().equals(table["status"] != "")
    text = (bundle / "statement.md").read_text()
    assert 'marked "below" or "above"' in text
    assert "90 times, or fewer" not in text
    [assessed] = assess(release).people
    assert all(part.published == 1 for part in assessed.by_size)


LISTED = ("{ median = 40000, sigma = 0.6, number = 16 }", "[0, 20000, 30000, 40000, 50000, 70000, 200000]")


@pytest.mark.parametrize("bins", [(), (LISTED,)], ids=["a guess", "a list"])
def test_a_table_that_an_earlier_version_published_keeps_its_answer_and_its_bins(
    tmp_path: Path, bins: tuple[tuple[str, str], ...]
) -> None:
    release = load(written(tmp_path, HEAD + PERCENTILES, *bins))
    with checked(release) as ready:
        [before] = [table.before for table in ready.plan.tables if table.before is not None]
        data = Memory(release.store / "none.json").fingerprint(data_files(release.data))
        true = ready.count({"percentiles": before})["percentiles"]
    # What version 0.1.0 leaves behind: a charge, and an answer that tells an error everywhere.
    answer = before.answer(true, None)
    ledger, answers = open_ledger(release), stored_answers(release)
    question = before.digest_as_laid_out(data)
    ledger.charge(release.account, [before.charge(data, question)], release.about.title, budget=release.budget)
    keep_answer(
        before.content(answer), release=release, ledger=ledger, answers=answers, question=question, table="percentiles"
    )
    assert check(release).paid == {"percentiles"}
    again = run(release)
    assert again.charged == again.finished == ()
    table = published(again.bundle, "percentiles")
    assert table["value"].tolist() == answer["value"].tolist()
    [described] = json.loads((again.bundle / "structure.json").read_text())["tables"]
    even = PublicBins.equal_mass(median=40_000, sigma=Fraction("0.6"), number=16, minimum=0, maximum=200_000).edges
    assert described["edges"] == ([0, 20000, 30000, 40000, 50000, 70000, 200000] if bins else list(even))
    text = (again.bundle / "statement.md").read_text()
    assert "drawn by version 0.1.0" in text
    assert 'marked "below"' not in text
    assert [assessed.name for assessed in assess(release).people] == ["percentiles"]


def test_a_table_that_was_never_charged_gets_bins_that_reach_further(tmp_path: Path) -> None:
    run(load(written(tmp_path, HEAD + PERCENTILES)))
    other = run(load(written(tmp_path, HEAD + PERCENTILES, ("number = 16", "number = 17"))))
    assert other.charged == ("percentiles",)
    [described] = json.loads((other.bundle / "structure.json").read_text())["tables"]
    assert len(described["edges"]) > 18, "what was never charged gets bins that reach further"


OTHER = {
    "bounds": ("maximum = 200000", "maximum = 210000"),
    "classes": ('classes = ["title"]', 'classes = ["sector"]'),
    "bins": ("number = 16", "number = 15"),
    "ranks": ("at = [25, 75]", "at = [25, 70]"),
    "decimals": ("decimals = 0", "decimals = 1"),
}


@pytest.mark.parametrize("change", OTHER.values(), ids=list(OTHER))
def test_what_decides_an_answer_makes_another_question(tmp_path: Path, change: tuple[str, str]) -> None:
    before = {table.digest("da7a") for table in planned(tmp_path).tables}
    after = {table.digest("da7a") for table in planned(tmp_path, ALL, change).tables}
    assert after - before


def test_records_without_a_period_are_named_as_they_were_before_there_were_periods() -> None:
    # Another name would charge every table and cube of an office once more.
    data = Microdata.model_validate({"records": {"path": "a.parquet", "unit": "b"}})
    assert data.links() == '{"unit":"b","levels":[],"weight":null,"replicates":null,"consent":null}'


def test_a_bundle_says_which_columns_bounds_and_bins_it_has(tmp_path: Path) -> None:
    bundle = run(load(written(tmp_path))).bundle
    tables = {table["name"]: table for table in json.loads((bundle / "structure.json").read_text())["tables"]}
    assert list(tables["scores"]["columns"]) == ["value", "count", "error", "status"]
    assert list(tables["employment"]["columns"]) == ["value", "error", "low", "high"]
    assert "people" in tables["scores"]["columns"]["count"]
    assert tables["scores"]["bounds"] == {"rank": [0, 100], "score": [0, 100]}
    assert tables["scores"]["classes"] == ["title"]
    edges = tables["percentiles"]["edges"]
    assert edges[0] == 0
    assert edges[-1] == 200_000
    assert set(PublicBins.equal_mass(median=40_000, sigma=Fraction("0.6"), number=16).edges[1:-1]) < set(edges)
    assert '"below" or "above"' in tables["percentiles"]["columns"]["value"]
    assert "error unknown" in tables["scores"]["columns"]["status"]
    assert tables["scores"]["unknown_errors"] == "withheld"
    assert tables["percentiles"]["statistic"]["quantiles"]["bins"] == {"median": 40000, "sigma": 0.6, "number": 16}
    assert "not differentially private" in tables["scores"]["guarantee"]["condition"]
    assert "condition" not in tables["percentiles"]["guarantee"]
    codes = (bundle / "codelists/at.csv").read_text().splitlines()
    assert {"25,Predicted at 25", "p50,Percentile 50", "mean,Mean"} <= set(codes)


def test_a_statement_says_plainly_what_is_not_differentially_private(tmp_path: Path) -> None:
    text = statement(planned(tmp_path))
    assert "**This is not differential privacy**" in text
    assert "| `earnings` | mose | individuals, on a condition | 1 | 3 | 0 |" in text
    assert "| `percentiles` | noisy-quantiles | individuals | 1 | 2 | 0 |" in text
    assert "each of 2 periods, and each spends 1.5 of the table's epsilon" in text
    assert "above 200,000 count as 200,000" in text
    assert "establishment" not in text


def test_a_formal_statement_speaks_of_no_condition(tmp_path: Path) -> None:
    text = statement(planned(tmp_path, HEAD + EMPLOYMENT + PERCENTILES, (", conditional = true", "")))
    assert "whether a given person is among the data" in text
    assert "differential privacy" not in text
    assert "condition" not in text


def test_clipped_values_are_counted_in_the_confidential_report_and_nowhere_else(tmp_path: Path) -> None:
    release = load(written(tmp_path))
    bundle = run(release).bundle
    found = assess(release)
    clipped = {assessed.name: dict(assessed.clipped) for assessed in found.people}
    below = int((people()["score"] < 0).sum() + (people()["score"] > 100).sum())
    high = int((people()["earnings"] > 200_000).sum())
    assert clipped["earnings"] == {"earnings": high}
    assert clipped["scores"] == {"score": below, "rank": 0}
    assert "Values that count as a bound" in found.report.read_text()
    for path in bundle.rglob("*.json"):
        assert "clipped" not in path.read_text()


def test_true_numbers_are_in_no_answer_that_is_kept(tmp_path: Path) -> None:
    release = load(written(tmp_path))
    run(release)
    for path in (release.store / "answers").glob("*.parquet"):
        columns = set(pq.read_table(path).column_names)
        assert columns in ({"position", "value"}, {"position", "value", "count", "error", "status"})


MISTAKES = {
    "no period": (('by = ["title", "sector", "year"]', 'by = ["title", "sector"]'), "'year' in `by`"),
    "two periods": (('where = { year = "2001" }', 'where = { year = ["2001", "2002"] }'), "'year' in `by`"),
    "unknown measure": (('mean = "earnings"', 'mean = "earning"'), "did you mean 'earnings'?"),
    "unknown predictor": (('on = "rank"', 'on = "rnak"'), "did you mean 'rank'?"),
    "misspelt key": (('outcome = "score"', 'outcom = "score"'), "did you mean 'outcome'?"),
    "misspelt key of bins": (("sigma = 0.6", "sigmas = 0.6"), "did you mean 'sigma'?"),
    "misspelt option": (("count_epsilon", "count_epsilom"), "did you mean 'count_epsilon'?"),
    "unknown class": (('classes = ["title"]', 'classes = ["titel"]'), "did you mean 'title'?"),
    "classes without use": (('"noisy-quantiles"', '"noisy-quantiles", classes = ["title"]'), "option 'classes'"),
    "wrong method": (('method = "noisy-quantiles"', 'method = "mose"'), "noisy-quantiles"),
    "no epsilon": (('"laplace", epsilon = 2 }', '"laplace" }'), "the key 'epsilon'"),
    "bins that fall": (("{ median = 40000, sigma = 0.6, number = 16 }", "[0, 50000, 20000]"), "edges that increase"),
    "half a guess": ((", number = 16", ""), "all of `median`, `sigma` and `number`"),
    "both kinds of bins": (("number = 16", "number = 16, edges = [0, 1, 2]"), "either a list of edges"),
    "percentiles that fall": (("at = [25, 50, 75]", "at = [50, 25]"), "percentiles that increase"),
    "no such percentile": (("at = [25, 50, 75]", "at = [0, 25]"), "above 0 and below 100"),
    "the same twice": (("at = [25, 75]", "at = [25, 25]"), "each value of `at` once"),
    "predicts itself": (('on = "rank"', 'on = "score"'), "two measures"),
    "outside the bounds": (("at = [25, 75]", "at = [25, 101]"), "values within the bounds"),
    "no maximum": (("minimum = 0, maximum = 100, outside", "minimum = 0, outside"), "a minimum and a larger maximum"),
    "period without codes": (('period = "year"', 'period = "quarter"'), "has codes"),
    "totals": (('mean = "earnings"', 'mean = "earnings"\ntotals = true'), "without totals"),
    "no condition allowed": ((", conditional = true", ""), "on a condition"),
    "errors of percentiles": (
        ("decimals = 0", 'unknown_errors = "published"'),
        "for predictions and means",
    ),
    "more than the budget": (("epsilon = 10,", "epsilon = 9.9,"), "9.9"),
}


@pytest.mark.parametrize(("change", "said"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_refused_before_anything_is_charged(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(SfumatoError) as error:
        run(load(written(tmp_path, ALL, change)))
    assert said in str(error.value)
    assert isinstance(error.value, ReleaseError | MethodError | BudgetError)
    assert not (tmp_path / "bundle").exists()


def test_a_column_of_every_such_table_is_no_attribute_of_one(tmp_path: Path) -> None:
    release = load(written(tmp_path, ALL.replace("sector", "count")))
    with pytest.raises(ReleaseError, match="rename"):
        check(release, data=False)


@pytest.mark.parametrize("key", ['levels = ["firm"]', 'consent = "asked"'])
def test_people_are_all_protected_each_for_itself(tmp_path: Path, key: str) -> None:
    release = load(written(tmp_path, HEAD + PERCENTILES, ('period = "year"', key)))
    with pytest.raises(ReleaseError, match=f"`{key.split(maxsplit=1)[0]}`"):
        check(release, data=False)


def test_a_clipped_measure_is_for_people_only(tmp_path: Path) -> None:
    text = HEAD.replace(', period = "year"', "").replace("[data]", 'key = "k"\n[data]')
    total = '[[table]]\nname = "t"\ntotal = "earnings"\nby = ["title"]\nprotect = { method = "top-contributors" }\n'
    release = load(written(tmp_path, text + total))
    with pytest.raises(ReleaseError, match='outside = "clip"'):
        Totals.ask(release.tables[0], release.records, {"title": release.data.declared_codes("title")})


def test_a_cube_counts_records_that_are_one_a_unit(tmp_path: Path) -> None:
    cube = '[[cube]]\nname = "c"\nby = ["title"]\nepsilon = 1\ncap = 9\n'
    with pytest.raises(ReleaseError, match="`period`"):
        load(written(tmp_path, HEAD + cube))


def test_a_theil_sen_line_gets_the_values_themselves(tmp_path: Path) -> None:
    change = ('method = "mose", epsilon = 3, classes = ["title"]', 'method = "theil-sen", epsilon = 3')
    with pytest.raises(ReleaseError, match='write unknown_errors = "published"'):
        run(load(written(tmp_path, HEAD + SCORES, change)))
    assert not (tmp_path / "bundle").exists()
    release = load(written(tmp_path, HEAD + SCORES, change, ('name = "scores"', f'name = "scores"\n{PUBLISHED}')))
    table = published(run(release).bundle, "scores")
    assert table["error"].isna().all()
    assert table["value"].between(0, 100).all()
    [assessed] = assess(release).people
    assert sum(part.values for part in assessed.by_size) == 12


def test_a_noisy_regression_is_formal(tmp_path: Path) -> None:
    changes = (('method = "mose", epsilon = 3, classes = ["title"]', 'method = "noisy-regression", epsilon = 8'),)
    plan = planned(tmp_path, HEAD + SCORES, *changes)
    assert isinstance(plan.guarantee, EmployerEmployee)
    assert (plan.guarantee.epsilon, plan.guarantee.condition) == (8, "")
    table = published(run(load(tmp_path / "release.toml")).bundle, "scores")
    assert len(table) == 12


def test_nothing_is_said_of_unknown_errors_where_the_error_is_one_number(tmp_path: Path) -> None:
    told = ('method = "mose", epsilon = 3, classes = ["title"]', 'method = "global-sensitivity", epsilon = 3')
    assert "error unknown" in statement(planned(tmp_path, HEAD + SCORES))
    assert "error unknown" not in statement(planned(tmp_path, HEAD + SCORES, told))
