"""Data as SDMX-JSON 1.0, with header, structure and data sets at the top, where clients look for them."""

import json
from collections.abc import Iterator
from typing import Any

from sfumato.serve.sdmx.arranged import Arranged, Chosen
from sfumato.serve.sdmx.flow import DECIMALS, OBS_STATUS, UNIT_MEASURE
from sfumato.serve.sdmx.observed import NAMES
from sfumato.serve.sdmx.xml import timestamp

_STATUS_PLACES = {letter: str(place) for place, letter in enumerate(NAMES)}


def write_json(data: Arranged, source: str) -> bytes:
    """The data as an SDMX-JSON message."""
    flow = data.flow
    notes = [*(("NOTE", note) for note in data.notes), *flow.annotations]
    content = {
        "header": {
            "id": flow.id,
            "test": False,
            "prepared": timestamp(flow.table.updated),
            "sender": {"id": flow.agency, "name": source or flow.agency},
        },
        "structure": {
            "name": flow.table.title,
            "dimensions": {
                "dataSet": [],
                "series": [_dimension(data, one) for one in data.series],
                "observation": [_dimension(data, one) for one in data.observation],
            },
            "attributes": _attributes(data),
            "annotations": [{"type": kind, "text": text} for kind, text in notes],
        },
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    said = json.dumps(list(range(len(notes))))
    # Figures are text already: they are put in rather than turned back into numbers.
    figures = "".join(("{", ",".join(_series(data)), "}")) if data.series else next(_series(data))
    name = "series" if data.series else "observations"
    message = f'{text[:-1]},"dataSets":[{{"action":"Information","annotations":{said},"{name}":{figures}}}]}}'
    return message.encode("utf-8", "replace")


def _dimension(data: Arranged, one: Chosen) -> dict[str, Any]:
    described = {
        "id": one.id,
        "name": one.component.dimension.label,
        "keyPosition": data.flow.components.index(one.component),
        "values": [{"id": code, "name": label} for code, label in zip(one.codes, one.labels, strict=True)],
    }
    return described | ({"role": "time"} if one.component.is_time else {})


def _attributes(data: Arranged) -> dict[str, list[dict[str, Any]]]:
    """The attributes of series and those of observations, with the values that may be named by their places."""
    found: dict[str, list[dict[str, Any]]] = {"dataSet": [], "series": [], "observation": []}
    if not data.query.has_attributes:
        return found
    statuses = [{"id": letter, "name": name} for letter, name in NAMES.items()]
    found["observation"].append({"id": OBS_STATUS, "name": "Observation status", "values": statuses})
    units, decimals = _units(data)
    found["series" if data.flow.contents in [one.component for one in data.series] else "observation"] += [
        {"id": UNIT_MEASURE, "name": "Unit of measure", "values": [{"name": unit} for unit in units]},
        {"id": DECIMALS, "name": "Decimals worth showing", "values": [{"name": str(number)} for number in decimals]},
    ]
    return found


def _units(data: Arranged) -> tuple[list[str], list[int]]:
    return sorted({metric.unit for metric in data.metrics}), sorted({metric.decimals for metric in data.metrics})


def _series(data: Arranged) -> Iterator[str]:
    """Every series with its key; the one object of observations if there are no series."""
    units, decimals = _units(data)
    places = [f"{units.index(metric.unit)},{decimals.index(metric.decimals)}" for metric in data.metrics]
    of_series, of_observations = data.of_metrics(places if data.query.has_attributes else [""] * len(places))
    series = data.series_keys(_place, ":")
    starts = [
        f'"{key}":{{' + (f'"attributes":[{said}]' if said else "") for key, said in zip(series, of_series, strict=True)
    ]
    if not data.query.has_observations:
        yield from (f"{start}}}" for start in starts)
        return
    keys = data.observation_keys(_place, ":")
    after = [f",{said}" if said else "" for said in of_observations]
    marks = {letter: f",{place}" for letter, place in _STATUS_PLACES.items()} | {"": ""}
    for start, (values, letters) in zip(starts, data.blocks(), strict=True):
        observations = ",".join(
            f'"{key}":[{"null" if value is None else value}{marks[letter]}{said}]'
            for key, value, letter, said in zip(keys, values, letters, after, strict=True)
        )
        if data.series:
            yield f'{start}{"," if start[-1] == "]" else ""}"observations":{{{observations}}}}}'
        else:
            yield f"{{{observations}}}"


def _place(_id: str, place: int, _code: str) -> str:
    return str(place)
