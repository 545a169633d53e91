"""A release of indicators, flows and graphs: identities, additivity, two engines, and no secret anywhere."""

import base64
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.checking import check
from sfumato.errors import DataError, ReleaseError, SfumatoError
from sfumato.keys import read_key
from sfumato.noise.factors import Factors
from sfumato.noise.keyed import hashes
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.panel.indicators import CODES
from sfumato_lab.economy.federal.generate import generate_federal
from tests.release.federal import A, B, copied, published, values

TABLES = ("links_between_states", "workers_between_states", "indicators", "flows_between_states")
BY_STATE = """
[[table]]
name = "by_state_sex"
indicators = "all"
by = ["quarter", "sex", "state"]
protect = { method = "noise-infusion" }

[[table]]
name = "by_state"
indicators = "all"
by = ["state", "quarter"]
protect = { method = "noise-infusion" }
"""


@pytest.fixture(scope="module")
def workforce(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workforce") / "federal"
    generate_federal(folder, persons=5_000, quarters=8)
    return folder


@pytest.fixture(scope="module")
def bundle(workforce: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = copied(workforce, tmp_path_factory.mktemp("published") / "federal")
    release.write_text(release.read_text() + BY_STATE)
    return run(load(release)).bundle


def by_indicator(bundle: Path, table: str, *by: str) -> dict[str, dict[tuple[str, ...], int | None]]:
    return {code: values(bundle, table, *by, indicator=code) for code in CODES}


BY = {
    "indicators": ("state", "agency", "quarter"),
    "by_state": ("state", "quarter"),
    "by_state_sex": ("state", "sex", "quarter"),
}


@pytest.mark.parametrize("table", list(BY))
def test_identities_hold_exactly_in_every_published_cell(bundle: Path, table: str) -> None:
    by = BY[table]
    found = by_indicator(bundle, table, *by)
    checked = 0
    for cell, end in found["end"].items():
        v = {code: found[code][cell] for code in CODES}
        if v["beginning"] is not None and end is not None:
            checked += 1
            assert end - v["beginning"] == v["accessions"] - v["separations"]
            assert end - v["beginning"] == v["job_creation"] - v["job_destruction"]
            assert v["employment"] == v["beginning"] + v["accessions"] == end + v["separations"]
            if v["new_hires"] is not None:
                assert v["accessions"] == v["new_hires"] + v["recalls"]
    assert checked > 100


def test_a_state_is_exactly_the_sum_of_its_agencies(bundle: Path) -> None:
    fine, coarse = (
        by_indicator(bundle, table, *by)
        for table, by in (("indicators", ("state", "quarter", "agency")), ("by_state", ("state", "quarter")))
    )
    for code in CODES[:-1]:  # the last is a ratio
        sums: dict[tuple[str, ...], int] = defaultdict(int)
        for (state, quarter, _), value in fine[code].items():
            if value is not None:
                sums[state, quarter] += value
        assert all(value is None or value == sums[cell] for cell, value in coarse[code].items()), code


def test_the_end_of_a_quarter_is_the_beginning_of_the_next(bundle: Path) -> None:
    found = by_indicator(bundle, "indicators", "state", "agency", "quarter")
    quarters = sorted({quarter for _, _, quarter in found["end"]})
    following = dict(pairwise(quarters))
    for (state, agency, quarter), end in found["end"].items():
        if quarter in following:
            assert end == found["beginning"][state, agency, following[quarter]]


def test_an_average_is_that_of_published_numbers_and_tells_nothing_more(bundle: Path) -> None:
    for table, by in BY.items():
        found = by_indicator(bundle, table, *by)
        for cell, average in found["average_monthly_earnings"].items():
            jobs, pay = found["full_quarter"][cell], found["full_quarter_payroll"][cell]
            if average is not None:
                assert average == (int(pay / (3 * jobs) + 0.5) if jobs else 0), (table, cell)


def test_what_was_published_before_stays_when_the_panel_grows_or_is_laid_out_otherwise(
    workforce: Path, bundle: Path, tmp_path: Path
) -> None:
    turned = copied(
        workforce,
        tmp_path / "federal",
        (
            'by = ["state", "agency", "quarter"]',
            'by = ["quarter", "agency", "state"]\nwhere = { quarter = ["2010-Q3", "2010-Q4"] }',
        ),
    )
    shutil.copy(bundle.parent / "sfumato.key", turned.parent / "sfumato.key")
    again = by_indicator(run(load(turned)).bundle, "indicators", *BY["indicators"])
    before = by_indicator(bundle, "indicators", *BY["indicators"])
    compared = 0
    for code in CODES:
        for cell, value in again[code].items():
            assert value == before[code].get(cell, 0), (code, cell)  # combinations without an employer may be implied
            compared += cell in before[code] and value is not None
    assert compared > 1_000


def test_quarters_beyond_the_panel_are_not_available(bundle: Path) -> None:
    table = published(bundle, "by_state").to_pylist()
    status = {(row["quarter"], row["indicator"]): row["status"] for row in table if row["establishments"]}
    assert status["2010-Q1", "beginning"] == status["2011-Q4", "end"] == "not available"
    assert status["2010-Q4", "new_hires"] == "not available"
    assert status["2011-Q1", "new_hires"] == status["2010-Q1", "end"] == status["2010-Q1", "payroll"] == ""


def test_small_cells_of_pairs_are_suppressed_or_synthesised_and_marked(
    workforce: Path, bundle: Path, tmp_path: Path
) -> None:
    cells = published(bundle, "links_between_states").to_pylist()
    assert all((row["value"] is None) == (row["status"] == "suppressed") for row in cells)
    assert all(row["value"] is None or row["value"] >= 3 for row in cells)
    assert len(cells) == 51 * 52 // 2
    synthetic = copied(
        workforce,
        tmp_path / "federal",
        ('edges = "twelve-characters" }', 'edges = "twelve-characters", below = "synthesised" }'),
    )
    drawn = published(run(load(synthetic)).bundle, "links_between_states").to_pylist()
    below = [row["value"] for row in drawn if row["status"] == "synthesised"]
    assert below
    assert set(below) <= {0, 1, 2}
    assert sum(below) > 0


def test_both_engines_publish_the_same(workforce: Path, engine: str, tmp_path: Path) -> None:
    """The bundle of each engine with one key has the bytes of DuckDB's."""
    release = copied(workforce, tmp_path / "federal")
    expected = run(load(release)).bundle
    text = release.read_text().replace('engine = "duckdb"', f'engine = "{engine}"', 1)
    again = release.with_name("again.toml")
    again.write_text(text.replace("[data]", 'ledger = "again.sqlite"\nbundle = "again"\n\n[data]', 1))
    found = run(load(again)).bundle
    for table in TABLES:
        assert published(found, table).equals(published(expected, table)), table


@pytest.mark.slow
def test_no_output_holds_a_key_a_factor_or_the_ends_of_the_factors(workforce: Path, tmp_path: Path) -> None:
    release = copied(workforce, tmp_path / "federal")
    release.with_name("wrong.toml").write_text(release.read_text().replace("2011-Q4", "2012-Q4", 1))
    said = ""
    for words in (["check"], ["run"], ["run", "--json"], ["budget", "--ledger"], ["keys", "show"]):
        target = release.with_name("sfumato.key") if words[0] == "keys" else release
        said += spoken([*words, str(target)])
    said += spoken(["run", str(release.with_name("wrong.toml"))], fails=True)
    secret = read_key(release.with_name("sfumato.key"))
    ends = (A, B, A - 1, B - 1, 2 - A, 2 - B)
    employers = pq.read_table(release.with_name("employers.parquet"))["employer"]
    factors = Factors(key=secret.key, least=A - 1, most=B - 1).of(hashes(employers)).tolist()
    forbidden = {secret.key.hex(), base64.b64encode(secret.key).decode(), repr(secret.key)}
    forbidden |= {f"{float(end):g}" for end in ends} | {f"{float(end):.6f}".lstrip("0") for end in ends}
    forbidden |= {f"{factor / 1e6:.6f}" for factor in factors}
    millionths = {*factors, *(int(end * 1_000_000) for end in ends)}
    texts = {"what was said": said}
    for path in (path for path in (release.parent / "bundle").rglob("*") if path.is_file()):
        assert secret.key not in path.read_bytes(), path.name
        if path.suffix != ".parquet":
            texts[path.name] = path.read_text(encoding="utf-8")
    for name, text in texts.items():
        found = {word for word in forbidden if word in text}
        assert not found, f"{name} holds {len(found)} of the secrets"
        # A payroll may be any number, and meets one of a hundred factors by chance; no other number is so large.
        lines = [line for line in text.splitlines() if not re.search("payroll", line)]
        numbers = {int(number) for number in re.findall(r"(?<![\w.-])\d{6,7}(?![\w.-])", "\n".join(lines))}
        assert not millionths & numbers, name
    stored = (release.parent / "ledger.sqlite").read_bytes()
    assert secret.key not in stored
    assert secret.key.hex().encode() not in stored


def spoken(words: list[str], *, fails: bool = False) -> str:
    """Everything a command prints."""
    environment = {**os.environ, "COLUMNS": "200"}
    command = [sys.executable, "-m", "sfumato", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_report_has_the_attacks_the_error_of_every_cell_and_the_shape_of_the_graph(
    workforce: Path, tmp_path: Path
) -> None:
    # Coarse payrolls leave shares and growth of such small agencies uncertain by more than half a percent.
    exact = ('"noise-infusion" }', '"noise-infusion", earnings_rounding = 1 }')
    release = load(copied(workforce, tmp_path / "federal", exact))
    run(release)
    assessment = assess(release)
    exposed = {exposure.name: exposure for exposure in assessment.exposures}
    attacks = {found.attack: found for found in exposed["indicators/employment"].attacks}
    assert attacks.pop("factor").targets > 0
    assert {"ratio", "size", "growth"} <= set(attacks)
    assert all(found.targets > 100 for found in attacks.values())
    assert all(found.success_rate == 1 for found in attacks.values()), "one factor cancels: this is not hidden"
    assert assessment.network is not None
    assert assessment.network.single == pytest.approx(0.85, abs=0.02)
    cells = pq.read_table(assessment.report.with_name("indicators.parquet")).to_pandas()
    some = cells[cells["distinct_factors"] > 0]
    assert (some["convergence_ratio"] >= 1).all(), "an employer that contributes has at least one job"
    jobs = some[some["indicator"] == "employment"]
    off = np.abs(jobs["published"] - jobs["true"]).mean()
    assert off == pytest.approx(jobs["expected_error"].mean(), rel=0.25)
    assert oct(assessment.report.with_name("indicators.parquet").stat().st_mode)[-3:] == "600"


MISTAKES = {
    "indicators without the period": (
        'by = ["state", "agency", "quarter"]',
        'by = ["state"]',
        "they are about one period each",
    ),
    "a formal method": (
        'protect = { method = "noise-infusion" }',
        'protect = { method = "smooth-pareto", epsilon = 1 }',
        "a budget",
    ),
    "an unknown rule": ('edges = "twelve-characters"', 'edges = "alphabet"', "keyed"),
    "a flow by an attribute of workers": ('flow = { attribute = "state"', 'flow = { attribute = "sex"', "workplaces"),
    "a flow by an attribute of workplaces beside": ('by = ["quarter"]', 'by = ["agency"]', "of which a pair has two"),
    "a graph by an attribute of its ends": (
        'weight = "edges" }',
        'weight = "edges" }\nby = ["agency"]',
        "of which a pair has two",
    ),
    "earnings at one end of pairs without a direction": (
        'weight = "edges" }',
        'weight = "origin-earnings" }',
        "write earnings",
    ),
    "a direction within a period": (
        'weight = "edges" }',
        'directed = true }\nby = ["quarter"]',
        "where a worker was first",
    ),
    "one end chosen by what classifies both": (
        'weight = "edges" }',
        'weight = "edges" }\nwhere = { first_state = "DC" }',
        "by which the ends are not classified",
    ),
    "an end by the name it has where pairs have a direction": (
        'weight = "edges" }',
        'weight = "edges" }\nwhere = { origin_agency = "DOJ" }',
        "write first_agency or second_agency, or directed = true",
    ),
    "the same of the attribute that classifies both": (
        'weight = "edges" }',
        'weight = "edges" }\nwhere = { origin_state = "DC" }',
        "ends are first_state and second_state; choose by 'state' for both",
    ),
    "the same of an attribute of workers": (
        'weight = "edges" }',
        'weight = "edges" }\nwhere = { destination_sex = "F" }',
        "choose by 'sex' for both ends",
    ),
    "an end by the name it has where pairs have no direction": (
        'by = ["quarter"]',
        'by = ["quarter"]\nwhere = { second_agency = "DOJ" }',
        "write origin_agency or destination_agency, or directed = false",
    ),
    "degrees without classes": (
        'graph = { between = "employers", attribute = "state", weight = "edges" }',
        'degrees = { bounds = [] }\nby = ["state"]',
        "one or more whole numbers from 1",
    ),
    "degrees by an attribute of workers": (
        'graph = { between = "employers", attribute = "state", weight = "edges" }',
        'degrees = {}\nby = ["sex"]',
        "by which employers are counted",
    ),
    "degrees whose classes do not increase": (
        'graph = { between = "employers", attribute = "state", weight = "edges" }',
        'degrees = { bounds = [5, 2] }\nby = ["state"]',
        "from 1 that increase",
    ),
    "a code that an end does not have": (
        'weight = "edges" }',
        'weight = "edges" }\nwhere = { first_agency = "nowhere" }',
        "codes of first_agency",
    ),
    "earnings from a model": (
        'weight = "edges" }\nprotect = { method = "noise-infusion",',
        'weight = "earnings" }\nprotect = { method = "noise-infusion", below = "synthesised",',
        "sums of earnings are suppressed",
    ),
    "an unknown indicator": ('indicators = "all"', 'indicators = ["hirings"]', "new_hires"),
    "two statistics": ('indicators = "all"', 'indicators = "all"\ncount = "jobs"', "one of count, indicators"),
    "a count of a panel": ('indicators = "all"', 'count = "jobs"', "jobs in a period"),
    "synthesised indicators": (
        'protect = { method = "noise-infusion" }',
        'protect = { method = "noise-infusion", below = "synthesised" }',
        "only cells of flows and graphs",
    ),
    "a panel that ends before it begins": ('last = "2011-Q4"', 'last = "2009-Q4"', "not after the last"),
    "half a panel": (', earnings = "earnings" }', " }", "`earnings`"),
    "a minimum below zero": ('method = "noise-infusion" }', 'method = "noise-infusion", minimum = -1 }', "minimum"),
}


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_in_the_release_file_is_refused_before_data_are_read(
    workforce: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    release = copied(workforce, tmp_path / "federal", (old, new))
    with pytest.raises(SfumatoError, match=re.escape(said)):
        check(load(release), data=False)


def test_identifiers_shorter_than_twelve_are_refused_by_the_rule_for_twelve(workforce: Path, tmp_path: Path) -> None:
    release = copied(workforce, tmp_path / "federal")
    for file, column in (("employers", "employer"), ("histories", "employer")):
        path = release.with_name(f"{file}.parquet")
        table = pq.read_table(path)
        short = pa.array([key[:11] for key in table[column].to_pylist()])
        pq.write_table(table.set_column(table.column_names.index(column), column, short), path)
    with pytest.raises(SfumatoError, match="12") as refusal:
        run(load(release))
    assert isinstance(refusal.value, DataError | ReleaseError)
    assert not (release.parent / "ledger.sqlite").exists(), "it is found before anything is charged"
