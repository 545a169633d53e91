"""Every table of every bundle, whole, by every client: not one that a client cannot read."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import prod
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
import sdmx
from numpy.typing import NDArray
from pxweb import PxApi
from pyjstat import pyjstat
from pysdmx.io import get_datasets

from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, Catalogue, open_catalogue
from sfumato.serve.core.model import ServedTable
from sfumato.serve.core.selection import everything
from sfumato_lab.economy.jobs.generate import Economy
from tests.serve import patient
from tests.serve.running import Server, serving

pytestmark = pytest.mark.slow
TABLES = (
    *("jobs_by_place", "jobs_by_place_industry", "jobs_by_industry", "jobs_by_industry_ownership", "jobs_by_ownership"),
    *("private_by_place_industry", "turnover_by_state_industry", "profit_by_industry_size"),
    *("links_between_states", "workers_between_states"),
    *("businesses_by_state_size", "indicators", "flows_between_states", "people"),
)
ROOT = Path(__file__).parents[2]
Figures = NDArray[np.float64]
CAP = 100_000
"""Figures that `sfumato serve` gives at once, and that a client has to keep to in formats that are made whole."""


def figures(values: Iterable[Any]) -> Figures:
    """Figures in one order, whatever order a client has; what is missing, in the words of a client, comes last."""
    return np.sort(
        pd.to_numeric(pd.Series(list(values), dtype=object), errors="raise").to_numpy(np.float64, na_value=np.nan)
    )


def by_sdmx1(server: Server, table: ServedTable) -> Figures:
    sdmx.add_source({"id": "SFUMATO", "url": f"{server.url}/sdmx/2.1", "name": "Office"}, override=True)
    return figures(sdmx.to_pandas(sdmx.Client("SFUMATO").data(table.id)).to_numpy())


def by_sdmx1_3(server: Server, table: ServedTable) -> Figures:
    source = {"id": "SFUMATO", "url": f"{server.url}/sdmx/3.0", "name": "Office", "versions": ["3.0.0"]}
    sdmx.add_source(source, override=True)
    office = sdmx.Client("SFUMATO")
    structure = office.dataflow(table.id, params={"references": "all"}).structure[f"DSD_{table.id}"]
    return figures(sdmx.to_pandas(office.data(table.id, key="*", dsd=structure)).to_numpy())


def by_pysdmx(written: str) -> Callable[[Server, ServedTable], Figures]:
    def read(server: Server, table: ServedTable) -> Figures:
        base = f"{server.url}/sdmx/2.1"
        address = f"{base}/data/{table.id}?format={written}"
        (data,) = get_datasets(address, f"{base}/dataflow/all/{table.id}?references=all")
        return figures(data.data["OBS_VALUE"])

    return read


def by_pxwebpy(server: Server, table: ServedTable) -> Figures:
    api = PxApi(server.v2, disable_cache=True)
    answer = api.get_table_data(table.id, {axis.name: ["*"] for axis in table.axes})
    return figures(row["value"] for row in answer)


def by_csv(server: Server, table: ServedTable) -> Figures:
    chosen = "&".join(f"valueCodes[{axis.name}]=*" for axis in table.dimensions)
    stub = ",".join(axis.name for axis in table.axes)
    address = f"{server.v2}/tables/{table.id}/data?outputFormat=csv&stub={stub}&{chosen}"
    content = patient.get(address).content
    read = pyarrow.csv.read_csv(pyarrow.BufferReader(content))
    return figures(read.column(len(table.axes)).to_pylist())


def by_r_of_version_1(server: Server, table: ServedTable) -> Figures:
    query = [{"code": axis.name, "selection": {"filter": "all", "values": ["*"]}} for axis in table.axes]
    response = patient.post(f"{server.url}/api/v1/en/tables/{table.id}", content=json.dumps({"query": query}))
    return figures(
        None if value == ".." else float(value) for row in response.json()["data"] for value in row["values"]
    )


@pytest.mark.filterwarnings("ignore:Shouldn't use this function anymore:DeprecationWarning")  # pyjstat's own
def by_pyjstat(server: Server, table: ServedTable) -> Figures:
    chosen = "&".join(f"valueCodes[{axis.name}]=*" for axis in table.dimensions)
    first = table.dimensions[0]
    parts = [first.codes] if everything(table).cells <= CAP else [(code,) for code in first.codes]
    found: list[float | None] = []
    for codes in parts:
        some = f"{chosen}".replace(f"valueCodes[{first.name}]=*", f"valueCodes[{first.name}]={quote(','.join(codes))}")
        found += pyjstat.Dataset.read(f"{server.v2}/tables/{table.id}/data?{some}").write("dataframe")["value"].tolist()
    return figures(found)


CLIENTS: dict[str, Callable[[Server, ServedTable], Figures]] = {
    "sdmx1": by_sdmx1,
    "sdmx1 3.0": by_sdmx1_3,
    **{f"pysdmx {name}": by_pysdmx(name) for name in ("genericdata", "structurespecificdata", "csvdata", "csvdata2")},
    "pxwebpy": by_pxwebpy,
    "pyjstat": by_pyjstat,
    "CSV": by_csv,
    "PxWeb 1": by_r_of_version_1,
}


EXAMPLES = ("suppression", "ranges", "rounding")
EXACT = (
    *("suppression-jobs", "suppression-jobs_by_ownership", "suppression-pay"),
    *("ranges-jobs", "ranges-jobs_by_sex", "ranges-pay", "rounding-jobs", "rounding-jobs_by_sex"),
)
"""True numbers: withheld, within ranges, rounded."""
MINUTES = (("indicators", "sdmx1 3.0"), ("indicators", "pysdmx genericdata"))
"""What takes these readers minutes, and other readers of the same messages read."""


def test_every_table_is_here(catalogue: Catalogue) -> None:
    assert {table.id for table in catalogue} - set(TABLES) == set()
    assert any(prod(map(len, table.axes)) > CAP for table in catalogue), "one is beyond the cap"


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyjstat")
@pytest.mark.parametrize(("name", "client"), [case for case in product(TABLES, CLIENTS) if case not in MINUTES])
def test_every_client_reads_every_table_whole(name: str, client: str, server: Server, catalogue: Catalogue) -> None:
    table = catalogue[name]
    expected = figures(table.answer(everything(table)).values())
    # Readers of CSV on pandas are off by the last digit of a decimal.
    np.testing.assert_allclose(CLIENTS[client](server, table), expected, rtol=1e-15)


@pytest.fixture(scope="module")
def exact(economy: Economy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Catalogue]]:
    """Bundles of true numbers, served."""
    folder = tmp_path_factory.mktemp("exact") / "economy"
    shutil.copytree(economy.folder, folder)
    sources = []
    for name in EXAMPLES:
        release = Path(shutil.copy(ROOT / "examples" / f"{name}.toml", folder))
        sources.append(BundleSource(folder=run(load(release)).bundle, prefix=f"{name}-"))
    with serving(*(f"{source.prefix[:-1]}={source.folder}" for source in sources)) as server:
        yield server, open_catalogue(sources)


def test_every_table_of_true_numbers_is_here_and_some_of_them_are_withheld(exact: tuple[Server, Catalogue]) -> None:
    _, catalogue = exact
    assert {table.id for table in catalogue} == set(EXACT)
    assert len(TABLES) + len(EXACT) >= 15
    withheld = catalogue["suppression-jobs"]
    assert None in withheld.answer(everything(withheld)).values()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyjstat")
@pytest.mark.parametrize(("name", "client"), list(product(EXACT, CLIENTS)))
def test_every_client_reads_every_table_of_true_numbers(
    name: str, client: str, exact: tuple[Server, Catalogue]
) -> None:
    server, catalogue = exact
    table = catalogue[name]
    expected = figures(table.answer(everything(table)).values())
    np.testing.assert_allclose(CLIENTS[client](server, table), expected, rtol=1e-15)
