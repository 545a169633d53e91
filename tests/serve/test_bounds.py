"""Percentiles that are bounds, and means whose error nothing tells, are what they are in every format."""

import csv
import io
import json
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, Catalogue, open_catalogue
from sfumato.serve.core.model import TableAnswer
from sfumato.serve.core.selection import select
from sfumato.serve.formats.json_stat import write_json_stat
from sfumato.serve.formats.layout import Options
from sfumato.serve.formats.px import write_px
from sfumato.serve.formats.sheets import write_csv, write_html, write_parquet
from sfumato.serve.sdmx.series import obs_status, obs_status_meaning
from tests.release.people import EARNINGS, HEAD, PERCENTILES, written

NARROW = ("{ median = 40000, sigma = 0.6, number = 16 }", "[0, 35000, 38000, 40000, 42000, 45000, 200000]")
SYMBOLS = {"below": "<", "": "", "above": ">="}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    hardly_known = ("count_epsilon = 0.5", "count_epsilon = 0.01")  # no number of people is large enough then
    releases = ((HEAD + PERCENTILES, NARROW), (HEAD + EARNINGS, hardly_known))
    bundles = [run(load(written(tmp_path_factory.mktemp("people"), *release))).bundle for release in releases]
    return open_catalogue([BundleSource(folder=bundle) for bundle in bundles])


@pytest.fixture
def percentiles(people: Catalogue) -> TableAnswer:
    table = people["percentiles"]
    return table.answer(
        select(table, {"year": ["2001"], "title": ["staff"], "at": ["p25", "p75"], "contents": ["value", "error"]})
    )


@pytest.fixture
def means(people: Catalogue) -> TableAnswer:
    table = people["earnings"]
    chosen = {"title": ["staff"], "at": ["mean"], "contents": ["value", "error"]}
    groups = product(("a", "b", "c"), ("2001", "2002"))
    answers = [table.answer(select(table, {**chosen, "sector": [one], "year": [year]})) for one, year in groups]
    # A noisy number of people may be large enough by chance, but hardly ever in all groups.
    return next(answer for answer in answers if answer.texts() == ["error unknown"])


def test_a_bound_has_its_mark_and_no_error_that_could_be_large(percentiles: TableAnswer) -> None:
    assert percentiles.texts() == ["below", "above"]
    assert percentiles.symbols() == {0: "<", 1: ".", 2: ">=", 3: "."}
    values = percentiles.values()
    assert values[1] is values[3] is None
    assert values[0] >= 35_000
    assert values[2] <= 45_000


def test_every_format_carries_the_bounds(percentiles: TableAnswer, tmp_path: Path) -> None:
    rows = list(csv.reader(io.StringIO(write_csv(percentiles, Options(texts="codes")).decode(), newline="")))
    assert [row[-1] for row in rows[1:]] == ["below", "above"]
    stat = json.loads(write_json_stat(percentiles, Options()))
    assert stat["status"] == {"0": "<", "1": ".", "2": ">=", "3": "."}
    assert stat["extension"]["status"]["label"]["<"].startswith("less than this value")
    page = write_html(percentiles, Options()).decode()
    assert "<dt>&lt;</dt><dd>less than this value" in page
    assert "too uncertain" not in page
    px = write_px(percentiles, Options()).decode()
    assert px.count('="<";') == 1
    assert px.count('=">=";') == 1
    file = tmp_path / "percentiles.parquet"
    file.write_bytes(write_parquet(percentiles, Options()))
    table = pq.read_table(file)
    assert table["status"].to_pylist() == ["below", "above"]
    assert set(table["reliability"].to_pylist() if "reliability" in table.column_names else [""]) <= {"", None}
    assert obs_status(percentiles).tolist() == ["D", "M", "D", "M"]
    assert "less than this value" in obs_status_meaning("D")


def test_a_mean_without_an_error_is_missing_and_says_why(means: TableAnswer) -> None:
    assert means.texts() == ["error unknown"]
    assert means.values() == [None, None]
    assert means.symbols() == {0: "?", 1: "?"}
    assert obs_status(means).tolist() == ["Q", "Q"]
    px = write_px(means, Options()).decode()
    assert px.endswith('DATA=\n"....." ".....";\n')
    assert 'DATASYMBOL5="?";' in px
