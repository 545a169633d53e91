"""Unmodified clients of SDMX get the figures of the bundle: sdmx1 and pysdmx, in every format they read."""

import csv
import io
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from sys import float_info
from typing import Any

import pytest
import requests
import sdmx
from pysdmx.io import get_datasets, read_sdmx
from pysdmx.model import Codelist, ConceptScheme, Dataflow, DataStructureDefinition
from sdmx.message import DataMessage

from tests.serve.patient import PATIENCE
from tests.serve.running import Server
from tests.serve.sdmx_reading import Figures, of_bundle, of_cube, read
from tests.statistics.cube.survey import CODES

JSON = "application/vnd.sdmx.data+json;version=1.0.0"
QUARTERS = {"startPeriod": "2010-Q2", "endPeriod": "2010"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, a key of it, and where its figures are in the bundle."""

    kind: str
    table: str
    by: tuple[str, ...]
    """Dimensions, in the order of the bundle."""
    metrics: tuple[str, ...]
    """Columns of the bundle."""
    value: str = "value"
    """What the server calls the first of them."""
    key: str = "all"
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple("TIME_PERIOD" if name == "quarter" else name.upper() for name in self.by)

    def published(self, bundles: dict[str, Path]) -> Figures:
        if self.kind == "survey":
            return of_cube(bundles["survey"], self.table, list(self.by), product(*(CODES[name] for name in self.by)))
        figures = of_bundle(bundles[self.kind], self.table, self.by, self.metrics, value=self.value)
        if self.table != "indicators":
            return figures
        quarters = ("2010-Q2", "2010-Q3", "2010-Q4")
        metrics = (self.value, *self.metrics[1:])
        some = product(("AL", "CA"), ("AG", "VA"), quarters, ("employment", "payroll"), metrics)
        return {codes: figures.get(codes, (0, "A")) for codes in some}  # rows that are implied are exact zeros


CASES = (
    Case(
        kind="jobs",
        table="jobs_by_industry",
        by=("industry", "place_size"),
        metrics=("value", "error", "low", "high", "establishments"),
        value="jobs",
    ),
    Case(
        kind="business",
        table="profit_by_industry_size",
        by=("industry", "size"),
        metrics=("value", "low", "high", "rse"),
        value="mean_profit",
    ),
    Case(
        kind="federal",
        table="indicators",
        by=("state", "agency", "quarter", "indicator"),
        metrics=("value", "convergence_ratio", "establishments"),
        value="indicators",
        key="AL+CA.AG+VA.employment+payroll.",
        parameters=tuple(QUARTERS.items()),
    ),
    Case(
        kind="survey",
        table="people",
        by=("region", "job", "level"),
        metrics=("weighted", "weighted_error"),
        key="...weighted+weighted_error",
    ),
)
every_table = pytest.mark.parametrize("case", CASES, ids=lambda case: case.table)


def client(server: Server, **more: Any) -> sdmx.Client:
    sdmx.add_source({"id": "SFUMATO", "url": f"{server.url}/sdmx/2.1", "name": "Office", **more}, override=True)
    return sdmx.Client("SFUMATO")


@pytest.fixture(scope="module")
def office(server: Server) -> sdmx.Client:
    return client(server)


def seen_by_sdmx1(message: DataMessage, case: Case) -> Figures:
    frame = sdmx.to_pandas(message, attributes="o").reset_index()
    return read(frame.to_dict("records"), case.ids, value="value")


@pytest.mark.slow
@every_table
def test_sdmx1_gets_the_figures_as_generic_data(case: Case, office: sdmx.Client, bundles: dict[str, Path]) -> None:
    message = office.data(case.table, key=case.key, params=dict(case.parameters))
    assert message.response.headers["content-type"] == "application/vnd.sdmx.genericdata+xml;version=2.1"
    assert seen_by_sdmx1(message, case) == case.published(bundles)


@every_table
def test_sdmx1_gets_the_figures_as_structure_specific_data(
    case: Case, office: sdmx.Client, bundles: dict[str, Path]
) -> None:
    structure = office.dataflow(case.table).structure[f"DSD_{case.table}"]
    message = office.data(case.table, key=case.key, params=dict(case.parameters), dsd=structure)
    assert "structurespecificdata" in message.response.headers["content-type"]
    assert seen_by_sdmx1(message, case) == case.published(bundles)


@every_table
@pytest.mark.parametrize("layout", [{}, {"dimensionAtObservation": "AllDimensions"}], ids=["series", "flat"])
def test_sdmx1_gets_the_figures_as_json(
    case: Case, layout: dict[str, str], server: Server, bundles: dict[str, Path]
) -> None:
    json = client(server, data_content_type="JSON", headers={"data": {"Accept": JSON}})
    message = json.data(case.table, key=case.key, params=dict(case.parameters) | layout)
    assert message.response.headers["content-type"] == JSON
    assert seen_by_sdmx1(message, case) == case.published(bundles)


@every_table
@pytest.mark.parametrize("written", ["genericdata", "structurespecificdata", "csvdata", "csvdata2"])
def test_pysdmx_gets_the_figures(case: Case, written: str, server: Server, bundles: dict[str, Path]) -> None:
    base = f"{server.url}/sdmx/2.1"
    words = "&".join(f"{name}={text}" for name, text in (*case.parameters, ("format", written)))
    (data,) = get_datasets(
        f"{base}/data/{case.table}/{case.key}?{words}", f"{base}/dataflow/all/{case.table}/latest?references=all"
    )
    figures, published = read(data.data.to_dict("records"), case.ids), case.published(bundles)
    assert {codes: status for codes, (_, status) in figures.items()} == {c: s for c, (_, s) in published.items()}
    # pysdmx leaves CSV to pandas, whose quick reader of decimals multiplies step by step, and may miss the last digits.
    within = 32 * float_info.epsilon if written.startswith("csv") else 0
    for codes, (value, _) in published.items():
        assert figures[codes][0] == (value if value is None else pytest.approx(value, rel=within, abs=0))


@every_table
@pytest.mark.parametrize("version", ["1.0.0", "2.0.0"])
def test_csv_has_every_digit(case: Case, version: str, server: Server, bundles: dict[str, Path]) -> None:
    response = requests.get(
        f"{server.url}/sdmx/2.1/data/{case.table}/{case.key}",
        params=dict(case.parameters),
        headers={"Accept": f"application/vnd.sdmx.data+csv;version={version}"},
        timeout=PATIENCE,
    )
    assert read(csv.DictReader(io.StringIO(response.text)), case.ids) == case.published(bundles)


def test_sdmx1_lists_the_tables(office: sdmx.Client) -> None:
    listed = office.dataflow().dataflow
    assert {"jobs_by_place", "turnover_by_state_industry", "indicators", "people"} <= listed.keys()
    assert str(listed["jobs_by_place"].name) == "Jobs by place"
    kinds = {annotation.type for annotation in listed["jobs_by_place"].annotations}
    assert {"GUARANTEE", "NOTE", "METHOD", "PERIOD"} <= kinds


def test_sdmx1_is_told_the_structure_of_a_table(office: sdmx.Client) -> None:
    message = office.dataflow("indicators")
    structure = message.dataflow["indicators"].structure
    assert not structure.is_external_reference
    assert [one.id for one in structure.dimensions] == ["STATE", "AGENCY", "INDICATOR", "CONTENTS", "TIME_PERIOD"]
    assert [one.id for one in structure.attributes] == ["OBS_STATUS", "CONF_STATUS", "UNIT_MEASURE", "DECIMALS"]
    assert str(message.codelist["CL_indicators_STATE"]["AL"].name) == "Alabama"
    assert "not published" in str(message.codelist["CL_OBS_STATUS"]["Q"].description)
    assert list(message.codelist["CL_CONF_STATUS"].items) == ["F", "C"]  # nobody is told why a cell is withheld


def test_sdmx1_asks_for_one_code_list_or_one_concept_scheme(office: sdmx.Client) -> None:
    (codes,) = office.codelist("CL_jobs_by_industry_PLACE_SIZE").codelist.values()
    assert list(codes.items) == ["0-100", "100-10k", "10k-100k", "100k$2B$"]
    assert [str(note.text) for note in codes["100k$2B$"].annotations] == ["100k+"]
    (concepts,) = office.conceptscheme("CS_jobs_by_industry").concept_scheme.values()
    assert str(concepts["PLACE_SIZE"].name) == "Population of the place"
    structures = office.datastructure("DSD_jobs_by_industry").structure
    assert list(structures) == ["DSD_jobs_by_industry"]


@pytest.mark.parametrize("given", [False, True], ids=["asked for", "given"])
def test_sdmx1_writes_keys_of_dictionaries(given: bool, office: sdmx.Client, bundles: dict[str, Path]) -> None:
    structure = office.dataflow("jobs_by_industry").structure["DSD_jobs_by_industry"] if given else None
    key = {"INDUSTRY": ["_11", "_21"], "CONTENTS": "jobs"}
    message = office.data("jobs_by_industry", key=key, dsd=structure)
    expected = of_bundle(bundles["jobs"], "jobs_by_industry", ("industry", "place_size"), ["value"], value="jobs")
    assert seen_by_sdmx1(message, CASES[0]) == {c: figure for c, figure in expected.items() if c[0] in ("11", "21")}


@pytest.mark.parametrize(("table", "series"), [("jobs_by_industry", 20 * 4), ("flows_between_states", 51 * 51)])
def test_sdmx1_finds_the_series_of_a_table(table: str, series: int, office: sdmx.Client) -> None:
    keys = list(office.series_keys(table))
    assert len(keys) == len({str(key) for key in keys}) == series


def test_sdmx1_previews_the_series_of_a_key(office: sdmx.Client) -> None:
    keys = office.preview_data("jobs_by_industry", {"INDUSTRY": "_11"})
    assert [key["PLACE_SIZE"].value for key in keys] == ["0-100", "100-10k", "10k-100k", "100k$2B$"]


def test_sdmx1_is_told_what_is_not_there(office: sdmx.Client) -> None:
    with pytest.raises(NotImplementedError):
        office.get("categoryscheme")
    with pytest.raises(requests.HTTPError, match="404"):
        office.data("nothing")
    with pytest.raises(requests.HTTPError, match="400"):
        office.data("indicators", key="nowhere")


def test_pysdmx_reads_every_structure(server: Server) -> None:
    message = read_sdmx(f"{server.url}/sdmx/2.1/structure/all/all/all")
    kinds = {type(one) for one in message.structures or ()}
    assert {Codelist, ConceptScheme, Dataflow, DataStructureDefinition} <= kinds
    structure = message.get_data_structure_definition("DataStructure=SFUMATO:DSD_indicators(1.0)")
    assert [one.id for one in structure.components.dimensions] == [
        "STATE", "AGENCY", "INDICATOR", "CONTENTS", "TIME_PERIOD",
    ]  # fmt: skip


def test_pysdmx_reads_stubs(server: Server) -> None:
    message = read_sdmx(f"{server.url}/sdmx/2.1/codelist/SFUMATO/all?detail=allstubs")
    lists = message.get_codelists()
    assert lists
    assert all(one.is_external_reference and not one.items for one in lists)
