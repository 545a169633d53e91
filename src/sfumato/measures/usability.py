"""Which cells can be used: those that are published, and expected to be off by no more than a stated share."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats
from sfumato.measures.formulas import Bounds, by_class, mean, size_classes, size_label
from sfumato.measures.utility import classes_of, defined
from sfumato.measures.views import View

ACCURACY = 0.1
"""A cell that is expected to be off by more than this share of its value cannot be used, unless another is stated."""


@dataclass(frozen=True, kw_only=True)
class SizeUsability:
    """What can be used of the cells of one true size."""

    label: str
    cells: int
    """Those with something in them."""
    withheld: int
    unusable: int
    """Published, and expected to be off by more than the accuracy allows."""
    expected_error: float | None
    """The mean over published cells; None where none is published."""
    value_withheld: float | None = None
    """The share of the value of all cells that is in those that are withheld."""

    @property
    def usable(self) -> float:
        """The share of cells that can be used."""
        return (self.cells - self.withheld - self.unusable) / self.cells if self.cells else float("nan")


@dataclass(frozen=True, kw_only=True)
class Usability:
    """What can be used of one statistic, overall and by true size of the cell: confidential."""

    name: str
    title: str
    unit: str
    sizes: str
    """What the size of a cell is a number of, in a heading."""
    accuracy: float
    all: SizeUsability
    by_size: tuple[SizeUsability, ...]
    kind: str = "cells"
    """What its cells are, in a word or two: single ones, or those of groups."""

    @property
    def caption(self) -> str:
        """A heading for its table."""
        return f"{self.title}: cells that are off by more than {self.share} of their value"

    def in_words(self) -> str:
        """What is published of true numbers, in a sentence."""
        every, gone = self.all, self.all.value_withheld or 0.0
        text = f"{every.cells - every.withheld:,} of {every.cells:,} {self.kind} that are not zero are published"
        text += ", with their true values"
        return f"{text}; {every.withheld:,} are withheld, with {gone:.1%} of the {self.unit}." if gone else f"{text}."

    @property
    def share(self) -> str:
        """The accuracy in words."""
        return f"{100 * self.accuracy:.3g} %"

    def data(self) -> dict[str, Any]:
        """The same for machines."""
        return asdict(self)


HEADINGS = ("cells with something in them", "withheld", "off by more", "usable", "expected error")


def usability_rows(found: Usability) -> list[tuple[str, ...]]:
    """One line for each size, and one for all."""
    return [
        (
            part.label,
            f"{part.cells:,}",
            f"{part.withheld:,}",
            f"{part.unusable:,}",
            f"{part.usable:.1%}" if part.cells else "",
            "" if part.expected_error is None else f"{part.expected_error:,.4g}",
        )
        for part in (*found.by_size, found.all)
    ]


PUBLISHED = ("cells that are not zero", "withheld", "share of cells", "share of the value")


def published_rows(found: Usability) -> list[tuple[str, ...]]:
    """What is withheld of true numbers: one line for each size, and one for all."""
    return [
        (
            part.label,
            f"{part.cells:,}",
            f"{part.withheld:,}",
            f"{part.withheld / part.cells:.1%}" if part.cells else "",
            "" if part.value_withheld is None else f"{part.value_withheld:.1%}",
        )
        for part in (*found.by_size, found.all)
    ]


def usability_of(view: View, accuracy: float) -> Usability:
    """What can be used of a table, by the errors that its method expects at the true cells."""
    bounds, size, sizes = classes_of(view, view.counted)
    error = view.expected / view.parts
    true = view.counted["count"] / view.parts
    told = np.zeros(len(true), dtype=np.bool_)
    if view.withheld is not None:
        _, more, _ = classes_of(view, view.withheld)
        size = np.concatenate([size, more])
        error = np.concatenate([error, np.full(len(more), np.nan)])
        true = np.concatenate([true, view.withheld["count"] / view.parts])
        told = np.concatenate([told, np.ones(len(more), dtype=np.bool_)])
    return measure_usability(
        name=view.name,
        title=view.title,
        unit=view.unit,
        sizes=sizes,
        size=size,
        bounds=bounds,
        true=true,
        error=error,
        withheld=told,
        accuracy=accuracy,
        kind=view.planned.kind_of_cells,
    )


def measure_usability(
    *,
    name: str,
    title: str,
    unit: str,
    sizes: str,
    size: NDArray[Any],
    bounds: Bounds,
    true: Floats,
    error: Floats,
    withheld: Flags,
    accuracy: float,
    kind: str = "cells",
) -> Usability:
    """The same of any figures; those that are truly 0 are left out, because no share of them is defined."""
    some = true != 0
    columns = {
        "withheld": withheld[some],
        "unusable": (error > accuracy * np.abs(true))[some] & ~withheld[some],
        "error": np.where(withheld, np.nan, error)[some],
        "value": np.abs(true)[some],
    }
    parts = by_class(_class, classes=size_classes(size[some], bounds), **columns)
    return Usability(
        name=name,
        title=title,
        unit=unit,
        sizes=sizes,
        accuracy=accuracy,
        all=SizeUsability(label="all", **_class(**columns)),
        by_size=tuple(SizeUsability(label=size_label(int(place), bounds), **part) for place, part in parts.items()),
        kind=kind,
    )


def _class(*, withheld: Flags, unusable: Flags, error: Floats, value: Floats) -> dict[str, Any]:
    whole = float(value.sum())
    return {
        "value_withheld": float(value[withheld].sum()) / whole if whole else None,
        "cells": len(withheld),
        "withheld": int(withheld.sum()),
        "unusable": int(unusable.sum()),
        "expected_error": defined(mean(error[~np.isnan(error)])),
    }
