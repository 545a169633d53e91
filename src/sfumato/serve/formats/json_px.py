"""The JSON of PxWebApi version 1: columns, comments, and rows of keys and values as texts."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

from sfumato.serve.formats.grid import legend
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Answer

_TYPES = {"time": "t", "metric": "c"}


def write_json_px(answer: Answer, _options: Options) -> bytes:
    """The answer with a row for every combination of codes; missing figures are `..`."""
    columns = [
        {"code": dimension.name, "text": dimension.label, "type": _TYPES.get(dimension.role or "", "d")}
        for dimension in answer.dimensions
    ]
    contents = [
        {"code": metric.code, "text": metric.label, "type": "c", "unit": metric.unit} for metric in answer.metrics
    ]
    figures = zip(*(column.listed() for column in answer.columns), strict=True)
    keys = product(*(dimension.codes for dimension in answer.dimensions))
    content = {
        "columns": [*columns, *contents],
        "comments": list(_comments(answer)),
        "data": [
            {"key": key, "values": [_text(value) for value in values]}
            for key, values in zip(keys, figures, strict=True)
        ],
    }
    return json.dumps(content, ensure_ascii=False).encode()


def _text(value: Any) -> str:
    # Clients read one symbol as missing; comments say why.
    return ".." if value is None else repr(value)


def _comments(answer: Answer) -> Iterator[dict[str, str]]:
    """What the figures of every metric are marked with, and why some are missing."""
    said = answer.said()
    for at, metric in enumerate(answer.metrics):
        for status in legend(said[..., at]):
            yield {"variable": answer.contents.name, "value": metric.code, "comment": status.meaning}
