"""Maps drawn for tests: squares of a grid, and what one would find wrong with them."""

import json
from pathlib import Path
from typing import Any

Shape = list[list[list[float]]]


def square(x: float, y: float, side: float = 1.0) -> Shape:
    corners = [(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)]
    return [[list(corner) for corner in corners]]


def feature(code: Any, coordinates: Any, kind: str = "Polygon", **properties: Any) -> dict[str, Any]:
    return {
        "type": "Feature",
        "properties": {"code": code, **properties},
        "geometry": {"type": kind, "coordinates": coordinates},
    }


def collection(*features: dict[str, Any]) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features)}


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path
