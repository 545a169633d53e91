"""JSON-stat 2: the dataset of an answer, and the same without figures as the metadata of a table."""

import json
from collections.abc import Hashable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sfumato.serve.core.model import Metric, ServedDimension, ServedTable, TableAnswer
from sfumato.serve.core.status import BEYOND, NO_FIGURE, RELIABILITY, REMARKS, STATUSES, CellStatus
from sfumato.serve.formats.layout import Options, placement

BASE = "/api/v2"
LANGUAGE = "en"
_LABELS = {remark.symbol: remark.meaning for remark in REMARKS[1:]}
_ROLES = ("time", "geo", "metric")
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_OWN = "\0"
"""Stands in a frame for what each answer has of its own; no text of a table is this character alone."""
_FRAMES: "WeakKeyDictionary[ServedTable, dict[Hashable, list[str]]]" = WeakKeyDictionary()
_MOST_FRAMES = 200
"""Of one table; there are as many as ways to choose dimensions and metrics."""


def write_json_stat(answer: TableAnswer, options: Options) -> bytes:
    """The answer as a JSON-stat 2 dataset: values in one array, null where there is none."""
    symbols = answer.symbols()
    frame = _frame(answer, options, frozenset(symbols.values()))
    own: list[Any] = [[len(axis) for axis in answer.axes], *map(_category, answer.dimensions), answer.values()]
    if symbols:
        own.append({str(place): symbol for place, symbol in symbols.items()})
    texts = [frame[0]]
    for content, following in zip(own, frame[1:], strict=True):
        texts += (_encoded(content), following)
    return "".join(texts).encode()


def _frame(answer: TableAnswer, options: Options, symbols: frozenset[str]) -> list[str]:
    """The text of a dataset between its sizes, its categories, its values and its status, which are left out.

    It is long and the same for all answers with the same dimensions and metrics, so that it is kept.
    """
    kept = _FRAMES.setdefault(answer.table, {})
    key = (
        tuple((d.name, d.grouping) for d in answer.dimensions),
        answer.selection.metrics,
        answer.notes,
        options,
        symbols,
    )
    frame = kept.get(key)
    if frame is None:
        used = symbols_note(part for remark in REMARKS if remark.symbol in symbols for part in remark.parts)
        notes = (*answer.notes, *used)
        content = dataset(answer.table, answer.axes, answer.metrics, options, notes=notes, mandatory=len(answer.notes))
        content["size"] = content["value"] = _OWN
        for dimension in answer.dimensions:
            content["dimension"][dimension.name]["category"] = _OWN
        if symbols:
            content["status"] = _OWN
            content["extension"]["status"] = {"label": {s: text for s, text in _LABELS.items() if s in symbols}}
        frame = _encoded(content).split(_encoded(_OWN))
        if len(kept) >= _MOST_FRAMES:
            kept.clear()
        kept[key] = frame
    return frame


def metadata(table: ServedTable, options: Options) -> dict[str, Any]:
    """A JSON-stat 2 dataset without values: the metadata of a table in PxWebApi version 2."""
    possible = [*(STATUSES if table.marks else ()), *(RELIABILITY if any(table.rating) else ())]
    notes = symbols_note([*possible, NO_FIGURE, BEYOND] if table.has_status else ())
    return {**dataset(table, table.axes, table.metrics, options, notes=notes), "value": None}


def symbols_note(used: Iterable[CellStatus]) -> tuple[str, ...]:
    """What symbols beside figures or in their place mean, in one note: programs show symbols without their meaning."""
    meanings = {status.symbol: status.meaning for status in used if status.symbol}
    words = "; ".join(f"{symbol} {meaning}" for symbol, meaning in meanings.items())
    return (f"Symbols: {words}.",) if words else ()


def dataset(
    table: ServedTable,
    axes: Sequence[ServedDimension],
    metrics: Sequence[Metric],
    options: Options,
    *,
    notes: Sequence[str] = (),
    mandatory: int = 0,
) -> dict[str, Any]:
    """Everything of a dataset but its values; the first notes are mandatory, as readers must not miss them."""
    said = [*notes, *table.notes]
    stub, heading = placement([axis.name for axis in axes], options.heading, options.stub)
    return {
        "version": "2.0",
        "class": "dataset",
        **({"href": f"{options.url}{BASE}/tables/{table.id}/metadata"} if options.linked else {}),
        "label": f"{table.title}, {table.period}",
        "source": options.source,
        "updated": table.updated.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "note": said,
        "role": {role: names for role in _ROLES if (names := [axis.name for axis in axes if axis.role == role])},
        "id": [axis.name for axis in axes],
        "size": [len(axis) for axis in axes],
        "dimension": {axis.name: _dimension(table, axis, metrics, options) for axis in axes},
        "extension": {
            "noteMandatory": {str(place): True for place in range(mandatory)},
            "px": {
                "tableid": table.id,
                "matrix": table.id,
                "language": LANGUAGE,
                "decimals": max(metric.decimals for metric in metrics),
                "contents": table.counted,  # clients make a title of it: "Jobs by place"
                "descriptiondefault": False,
                "heading": [axes[place].name for place in heading],
                "stub": [axes[place].name for place in stub],
                "subject-code": "",
                "subject-area": table.release,
                "aggregallowed": table.kind == "cube",
                "official-statistics": False,
                "survey": table.population,
                **({"copyright": not is_public_domain(options.license)} if options.license else {}),
            },
            "license": options.license,
            "contact": [],
            "guarantee": list(table.guarantee),
            "method": table.method,
        },
    }


def _category(axis: ServedDimension) -> dict[str, Any]:
    return {
        "index": {code: place for place, code in enumerate(axis.codes)},
        "label": dict(zip(axis.codes, axis.labels, strict=True)),
    }


def _dimension(
    table: ServedTable, axis: ServedDimension, metrics: Sequence[Metric], options: Options
) -> dict[str, Any]:
    category = _category(axis)
    extension: dict[str, Any] = {"elimination": axis.eliminable, "show": "value"}
    if axis.role == "metric":
        category["unit"] = {m.code: {"base": m.unit, "decimals": m.decimals} for m in metrics}
        category["note"] = {m.code: [m.description] for m in metrics if m.description}
        extension["refperiod"] = {m.code: table.period for m in metrics}
    else:
        if axis.total is not None:
            extension["eliminationValueCode"] = axis.total
        lists = [codelist_link(*listed, options) for listed in codelists(axis) if options.linked]
        extension["codelists"] = extension["codeLists"] = lists  # the standard writes the former, pxwebpy the latter
    return {"label": axis.label, "category": category, "extension": extension}


def codelists(axis: ServedDimension) -> list[tuple[str, str, str]]:
    """The code lists of a dimension beside its own codes: identifier, label, and kind.

    One of all codes would be the dimension itself, which clients then offer as something else to choose.
    """
    return [(grouping.id, grouping.label, "Aggregation") for grouping in axis.groupings]


def is_public_domain(license: str) -> bool:  # noqa: A002 — the field has this name
    """Whether a licence gives up copyright.

    >>> is_public_domain("CC0-1.0"), is_public_domain("CC-BY-4.0")
    (True, False)
    """
    return license.upper().startswith(("CC0", "PDDL", "PUBLIC DOMAIN"))


def codelist_link(name: str, label: str, kind: str, options: Options) -> dict[str, Any]:
    """A reference to a code list."""
    links = [{"rel": "metadata", "hreflang": LANGUAGE, "href": f"{options.url}{BASE}/codelists/{name}"}]
    return {"id": name, "label": label, "type": kind, "links": links}
