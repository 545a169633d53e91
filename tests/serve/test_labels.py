"""Labels as readers get them: one for each code, and totals that are called so."""

import asyncio
from fractions import Fraction
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from sfumato.live import open_charged
from sfumato.release import load
from sfumato.running import run
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import BundleSource, Catalogue, open_catalogue
from sfumato.serve.core.labels import contained, told_apart
from sfumato.serve.core.model import ServedTable
from sfumato.serve.core.selection import everything, of_dimension, read_groupings, select
from sfumato.serve.live.answer_table import answer_table
from tests.conftest import write

RELEASE = """
[release]
title = "Records"
population = "people"
period = "2025"
budget = { alpha = 1, epsilon = 9, delta = 0.01, definition = "individuals" }
ledger = "ledger.sqlite"

[data]
records = { path = "records.parquet", unit = "id" }

[data.attributes]
kind = { codelist = "kind.csv" }

[[table]]
name = "people"
count = "records"
by = ["kind"]
protect = { method = "laplace", epsilon = 1 }

[[cube]]
name = "cube"
by = ["kind"]
epsilon = 1
cap = 9
"""
OVERRIDE, ENDED = "\u202eelttil", "\u202eelttil\u202c"
KINDS = f'code,label,label_de\na,Other,Anderes\nb,{OVERRIDE},Klein\nc,Other,Anderes\nd,Other (c),""\n'


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    write(folder / "records.parquet", {"id": list(range(8)), "kind": list("aabbccdd")})
    (folder / "kind.csv").write_text(KINDS, encoding="utf-8")
    (folder / "release.toml").write_text(RELEASE, encoding="utf-8")
    return folder / "release.toml"


@pytest.fixture(scope="module")
def labelled(release: Path) -> Catalogue:
    return open_catalogue([BundleSource(folder=run(load(release)).bundle)])


@pytest.mark.parametrize("table", ["people", "cube", "ad hoc"])
def test_codes_with_the_same_label_are_told_apart_in_every_language(
    labelled: Catalogue, release: Path, table: str
) -> None:
    """Rows of a page, of a CSV file with texts and values of a PX file would be the same otherwise."""
    (kind,) = (ad_hoc(release) if table == "ad hoc" else labelled[table]).dimensions
    assert kind.labels == ("Other (a)", ENDED, "Other (c) (c)", "Other (c)")
    assert kind.in_language("de").labels == ("Anderes (a)", "Klein", "Anderes (c)", "Other (c)")


def ad_hoc(release: Path) -> ServedTable:
    with open_charged(load(release), epsilon=Fraction(1)) as live:
        asked = live.plan(by=("kind",), epsilon=Fraction("0.5"), method="laplace")
        return answer_table(live, asked, live.answer(asked))


def test_groups_with_the_same_label_are_told_apart(labelled: Catalogue, tmp_path: Path) -> None:
    file = tmp_path / "groups.toml"
    groups = "".join(f'{code} = {{ label = "Small", codes = ["{code}"] }}\n' for code in "ab")
    file.write_text(f'[[grouping]]\nname = "g"\ndimension = "kind"\nlabel = "Groups"\n[grouping.groups]\n{groups}')
    (grouping,) = of_dimension(read_groupings(file), labelled["cube"].dimensions[0])
    assert [label for label, _ in grouping.groups.values()] == ["Small (a)", "Small (b)"]


def test_labels_that_differ_stay_as_they_are() -> None:
    assert told_apart(["x", "y", "z"], ["Farms", "", ""]) == ("Farms", "", "")


def test_a_label_turns_no_text_but_its_own() -> None:
    closed = "\u2067a\u2069"
    assert contained(closed) == closed
    assert contained("a\u2067b\u202ec") == "a\u2067b\u202ec\u202c\u2069"


@pytest.mark.parametrize("where", ["", 'where = { industry = ["11"] }'])
def test_totals_of_true_numbers_of_jobs_are_totals(tiny: Path, where: str) -> None:
    """They were codes like all others: shown while totals are off, and the page said that there were none."""
    (tiny / "release.toml").write_text(
        f"""
[release]
title = "Jobs"
period = "2025"
ledger = "ledger.sqlite"

[data]
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "workplaces.parquet", key = "workplace" }}
public = ["place", "industry"]

[[table]]
name = "jobs"
count = "jobs"
by = ["place", "industry"]
totals = true
{where}
protect = {{ method = "rounding", base = 3 }}
""",
        encoding="utf-8",
    )
    catalogue = open_catalogue([BundleSource(folder=run(load(tiny / "release.toml")).bundle)])
    table = catalogue["jobs"]
    assert [(dimension.total, dimension.eliminable) for dimension in table.dimensions] == [("total", True)] * 2
    whole = table.answer(select(table, {"contents": ["value"]})).columns[0].values
    every = table.answer(everything(table)).columns[0].values
    assert whole == every[-1, -1] > 0

    page = asyncio.run(_opened(make_app(catalogue, Settings(state=tiny / "state")), "/tables/jobs"))
    assert "Add published totals" in page
    assert "has no published totals" not in page
    assert ">Total</th>" not in page


async def _opened(app: FastAPI, path: str) -> str:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://tables.test") as client:
        return (await client.get(path)).text
