"""Tables made for a test: any dimensions, figures that follow from their places, hostile names on request."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import Column, Figures, Metric, Selection, ServedDimension, ServedTable

VALUE = Metric(code="value", label="Jobs", unit="jobs", decimals=0, kind="value")
ERROR = Metric(code="error", label="Standard error", unit="jobs", decimals=1, kind="error", about="value")


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """Figures 1, 2, 3, … in the order of the whole table; a dimension that is left out is summed over exactly."""

    shape: tuple[int, ...]
    error: float = 0.0
    """The standard error of every figure, as a share of it."""
    totals: bool = True
    """Whether dimensions may be left out."""
    untold: float = 0.0
    """Figures up to this one have an error that cannot be told."""

    def is_quick(self, _selection: Selection) -> bool:
        return True

    def figures(self, selection: Selection) -> Figures:
        if None in selection.places and not self.totals:
            raise RefusedError("selection", expected="codes for every dimension", found="none", do="choose codes")
        whole = np.arange(1.0, np.prod(self.shape) + 1).reshape(self.shape)
        for axis, places in reversed(list(enumerate(selection.places))):
            whole = whole.sum(axis=axis) if places is None else np.take(whole, places, axis=axis)
        errors = Column(values=whole * self.error, missing=whole <= self.untold if self.untold else None)
        return Figures(columns=tuple(errors if metric else Column(values=whole) for metric in selection.metrics))


def dimension(name: str, codes: Sequence[str], **changes: Any) -> ServedDimension:
    given = {"label": name.capitalize(), "labels": tuple(f"{code} in full" for code in codes), "eliminable": True}
    return ServedDimension(name=name, codes=tuple(codes), **(given | changes))


def table(*dimensions: ServedDimension, error: float = 0.1, totals: bool = True, untold: float = 0.0) -> ServedTable:
    return ServedTable(
        id="made",
        title="A table that was made",
        release="Tests",
        population="jobs",
        period="2025",
        updated=datetime(2025, 1, 2, tzinfo=UTC),
        dimensions=dimensions,
        metrics=(VALUE, ERROR),
        method="none",
        guarantee=("None.",),
        notes=("Nothing was done to `value`.",),
        digest="0" * 64,
        source=Counted(shape=tuple(map(len, dimensions)), error=error, totals=totals, untold=untold),
    )


def catalogue_of(*tables: ServedTable) -> Catalogue:
    return Catalogue(tables={one.id: one for one in tables})
