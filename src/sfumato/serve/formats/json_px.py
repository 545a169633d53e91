"""The JSON of PxWebApi version 1: columns, comments, and rows of keys and values as texts."""

import json
from itertools import product
from typing import Any

import numpy as np

from sfumato.serve.formats.grid import legend
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Answer
from sfumato.serve.reliability import Marks

_TYPES = {"time": "t", "metric": "c"}


def write_json_px(answer: Answer, _options: Options) -> bytes:
    """The answer with a row for every combination of codes; missing figures are `..`."""
    columns = [
        {"code": dimension.name, "text": dimension.label, "type": _TYPES.get(dimension.role or "", "d")}
        for dimension in answer.dimensions
    ]
    said = answer.said()
    contents = [
        {"code": metric.code, "text": metric.label, "type": "c", "unit": metric.unit, **_comment(said[..., at])}
        for at, metric in enumerate(answer.metrics)
    ]
    figures = zip(*(column.listed() for column in answer.columns), strict=True)
    keys = product(*(dimension.codes for dimension in answer.dimensions))
    patterns, of_row = np.unique(said.reshape(-1, len(answer.metrics)), axis=0, return_inverse=True)
    comments = [_comment(pattern) for pattern in patterns]
    content = {
        "columns": [*columns, *contents],
        "comments": [],  # those of codes; R's pxweb reads what is said of figures from columns and rows
        "data": [
            {"key": key, "values": [_text(value) for value in values], **comments[pattern]}
            for key, values, pattern in zip(keys, figures, of_row.ravel().tolist(), strict=True)
        ],
    }
    return json.dumps(content, ensure_ascii=False).encode()


def _text(value: Any) -> str:
    # Clients read one symbol as missing; comments say why.
    return ".." if value is None else repr(value)


def _comment(said: Marks) -> dict[str, str]:
    """What some figures are marked with, and why some are missing, in words; nothing where there is nothing to say."""
    words = "; ".join(status.meaning for status in legend(said))
    return {"comment": words} if words else {}
