"""Data as SDMX-CSV: a row for every observation, or for every series where only these are wanted.

Observations come without series.
"""

import csv
import io
from collections.abc import Iterator, Sequence

from sfumato.serve.formats.csv_text import as_text
from sfumato.serve.sdmx.arranged import Arranged, Chosen
from sfumato.serve.sdmx.flow import DECIMALS, OBS_STATUS, OBS_VALUE, UNIT_MEASURE, VERSION

_END = "\r\n"


def write_csv_1(data: Arranged, _source: str) -> bytes:
    """The data as SDMX-CSV 1.0."""
    return _written(data, {"DATAFLOW": _reference(data)})


def write_csv_2(data: Arranged, _source: str) -> bytes:
    """The data as SDMX-CSV 2.0."""
    return _written(data, {"STRUCTURE": "dataflow", "STRUCTURE_ID": _reference(data), "ACTION": "I"})


def _reference(data: Arranged) -> str:
    return f"{data.flow.agency}:{data.flow.id}({VERSION})"


def _written(data: Arranged, before: dict[str, str]) -> bytes:
    query = data.query
    shown = data.observation if query.has_observations else data.series
    names = [
        *before,
        *(one.id for one in shown),
        *([OBS_VALUE] if query.has_observations else []),
        *([OBS_STATUS] if query.detail == "full" else []),
        *([UNIT_MEASURE, DECIMALS] if query.has_attributes and _metrics_among(shown) else []),
    ]
    start = "".join(f"{text}," for text in before.values())
    rows = _observations(data) if query.has_observations else _series(data)
    return _END.join([",".join(names), *(start + row for row in rows), ""]).encode("utf-8", "replace")


def _metrics_among(shown: Sequence[Chosen]) -> bool:
    """Whether rows tell metrics apart, which is what units belong to."""
    return any(one.component.dimension.role == "metric" for one in shown)


def _series(data: Arranged) -> Iterator[str]:
    of_series, _ = data.of_metrics(_units(data))
    return (key + said for key, said in zip(data.series_keys(_code, ","), of_series, strict=True))


def _observations(data: Arranged) -> Iterator[str]:
    _, of_observations = data.of_metrics(_units(data))
    keys = data.observation_keys(_code, ",")
    marks = {letter: f",{letter}" if letter else "" for letter in {*data.status, ""}}
    for values, letters in data.blocks():
        for key, value, letter, said in zip(keys, values, letters, of_observations, strict=True):
            yield f"{key},{value or ''}{marks[letter]}{said}"


def _units(data: Arranged) -> Sequence[str]:
    """Of every metric its unit and decimals, each with the comma before it."""
    if not data.query.has_attributes:
        return [""] * len(data.metrics)
    return [f",{_quoted(metric.unit)},{metric.decimals}" for metric in data.metrics]


def _code(_id: str, _place: int, code: str) -> str:
    return code  # identifiers need no quotes


def _quoted(text: str) -> str:
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="").writerow([as_text(text)])
    return written.getvalue()
