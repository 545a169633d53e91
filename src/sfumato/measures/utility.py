"""Utility of a table: how far protected values are from true ones, overall, by size of the cell and by stratum."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.frame.codelists import Codelist
from sfumato.measures.formulas import (
    AMOUNT_CLASSES,
    EDGE_CLASSES,
    SIZE_CLASSES,
    Bounds,
    absolute_error,
    by_class,
    cramers_v,
    error_ratio,
    hellinger_distance,
    jensen_shannon_distance,
    mean,
    proportional_difference,
    ratio,
    relative_error,
    root_integrated_squared_error,
    share_near_reference,
    size_classes,
    size_label,
    spearman,
    spread,
    tail_classification,
)
from sfumato.measures.views import Strata, View

FEW_CODES = 12
"""A public attribute with at most this many codes makes strata that can be read at a glance."""
_LARGEST_PAIR = 5_000_000
"""Two attributes with more combinations of codes, such as place of work by place of residence, fill memory."""


@dataclass(frozen=True, kw_only=True)
class ClassUtility:
    """The error of the cells of one size class or stratum."""

    label: str
    cells: int
    mean_error: float
    expected_error: float
    relative_error: float | None
    covered: float | None
    """None where no interval is published."""
    share_difference: float | None
    """The mean of the proportional differences of the cells' shares of the table."""
    share_difference_sd: float | None
    error_ratio: float | None = None
    """The mean error divided by that of the reference, where there is one."""


@dataclass(frozen=True, kw_only=True)
class AgainstReference:
    """One table under two protections: how the errors compare, and whether cells have the same order."""

    error_ratio: float | None
    """The mean error divided by that of the reference; None where the reference has none."""
    near: float | None
    """The share of cells whose relative error is at most 10 points above the reference's."""
    near_either_way: float | None
    """The share of cells whose relative errors differ by at most 10 points."""
    spearman: float | None
    """The rank correlation of the two published tables."""


@dataclass(frozen=True, kw_only=True)
class Stratification:
    """The error by the codes of one public attribute."""

    attribute: str
    strata: tuple[ClassUtility, ...]


@dataclass(frozen=True, kw_only=True)
class Association:
    """Cramér's V of two attributes, before and after protection."""

    attributes: tuple[str, str]
    true: float | None
    protected: float | None


@dataclass(frozen=True, kw_only=True)
class Utility:
    """The error of one table; every figure is computed from true values and confidential.

    A figure that the cells do not define, such as a correlation of one cell, is None.
    """

    name: str
    title: str
    unit: str
    """What the values are numbers of."""
    sizes: str
    """What the size of a cell is a number of, in a heading."""
    counts: bool
    """Whether values are numbers of things, and not amounts such as money."""
    agreed: bool
    """Whether the values were changed so that tables agree; the expected errors are those before."""
    true: NDArray[Any]
    protected: NDArray[Any]
    cells: int
    """Without the totals of rows and columns that are published beside them."""
    margins: ClassUtility | None
    """These totals, where there are any."""
    mean_error: float
    expected_error: float
    relative_error: float | None
    """The mean relative error of the cells with jobs."""
    covered: float | None
    """The share of cells with a published interval whose true value is inside; None where none is published."""
    total_true: int | None
    total_protected: int | None
    """None where cells do not add up, as means; so are all figures about shares."""
    spearman: float | None
    jensen_shannon: float | None
    root_integrated_squared_error: float | None
    hellinger: float | None
    bottom_tail: float | None
    top_tail: float | None
    """The share of the tenth of smallest, and of largest, cells that are still in it after protection."""
    associations: tuple[Association, ...]
    by_size: tuple[ClassUtility, ...]
    by_stratum: tuple[Stratification, ...]
    reference: AgainstReference | None = None
    """The same table under another protection, where one is named."""

    @property
    def is_exact(self) -> bool:
        """Whether what is published is true by the method, and not by chance."""
        return self.cells > 0 and self.mean_error == 0 == self.expected_error


def measure_utility(view: View, codelists: Mapping[str, Codelist] | None = None) -> Utility:
    """Compare the published values of a table with the true ones; codelists give strata their labels."""
    counted, protected = view.counted, view.shown
    true, cells = counted["count"], _by_cell(view)
    bounds, size, heading = classes_of(view, counted)
    sizes = by_class(_class_utility, classes=size_classes(size, bounds), **cells)
    tails = tail_classification(true=true, protected=protected)
    return Utility(
        name=view.name,
        title=view.title,
        unit=view.unit,
        sizes=heading,
        counts=view.counts,
        agreed=view.agreed,
        true=true / view.parts if view.parts > 1 else true,
        protected=protected / view.parts if view.parts > 1 else protected,
        cells=len(true),
        margins=None if view.margins is None else _margins(view.margins),
        mean_error=_or_zero(cells["error"]),
        expected_error=_or_zero(cells["expected"]),
        relative_error=_mean_of_defined(cells["relative"]),
        covered=_mean_of_defined(cells["covered"]),
        total_true=int(true.sum()) if view.additive else None,
        total_protected=int(protected.sum()) if view.additive else None,
        spearman=defined(spearman(true=true, protected=protected)),
        bottom_tail=defined(tails.bottom),
        top_tail=defined(tails.top),
        **_of_shares(view),
        by_size=tuple(_labelled(part, size_label(int(place), bounds)) for place, part in sizes.items()),
        by_stratum=tuple(_stratification(strata, cells) for strata in (*_dimensions(view, codelists), *view.strata)),
        reference=_against_reference(view),
    )


def classes_of(view: View, cells: Cells) -> tuple[Bounds, Integers, str]:
    """The classes of true sizes, the size of each of these cells, and what it is a number of."""
    if "edges" in cells.columns:
        return EDGE_CLASSES, cells["edges"], "distinct edges in the cell"
    size = -(-np.abs(cells["count"]) // view.parts)
    return SIZE_CLASSES if view.counts else AMOUNT_CLASSES, size, _sizes(view)


def _dimensions(view: View, codelists: Mapping[str, Codelist] | None) -> list[Strata]:
    """The strata of the public dimensions with few codes that are not asked for anyway."""
    asked = {strata.attribute for strata in view.strata}
    return [
        strata_of(view.counted, dimension, (codelists or {}).get(dimension.name))
        for dimension in view.counted.dimensions
        if dimension.public and 1 < len(dimension) <= FEW_CODES and dimension.name not in asked
    ]


def strata_of(counted: Cells, dimension: Dimension, codelist: Codelist | None) -> Strata:
    """The strata of a dimension of the table, in the words of its codelist."""
    labels = dict(zip(codelist.codes, codelist.labels, strict=True)) if codelist else {}
    names = tuple(labels.get(code, code) for code in dimension.codes)
    return Strata(attribute=dimension.name, labels=names, classes=counted.codes(dimension.name).astype(np.int64))


def _against_reference(view: View) -> AgainstReference | None:
    if view.reference is None:
        return None
    both: dict[str, Any] = {"true": view.counted["count"], "protected": view.shown, "reference": view.reference}
    return AgainstReference(
        error_ratio=defined(error_ratio(**both)),
        near=defined(share_near_reference(**both)),
        near_either_way=defined(share_near_reference(**both, two_sided=True)),
        spearman=defined(spearman(true=view.reference, protected=view.shown)),
    )


def _by_cell(view: View) -> dict[str, NDArray[Any]]:
    """The figures of every cell, in the unit of the table."""
    true, protected = view.counted["count"], view.shown
    covered = np.full(len(true), np.nan)
    if view.interval is not None:
        low, high = view.interval
        covered = np.where(np.isnan(low) | np.isnan(high), np.nan, (low <= true) & (true <= high))
    shares = _has_shares(view)
    return {
        "error": absolute_error(true=true, protected=protected) / view.parts,
        "expected": view.expected / view.parts,
        "relative": relative_error(true=true, protected=protected),
        "covered": covered,
        "difference": proportional_difference(true=true, protected=protected) if shares else np.full(len(true), np.nan),
        "others": np.full(len(true), np.nan)
        if view.reference is None
        else absolute_error(true=true, protected=view.reference) / view.parts,
    }


def _margins(view: View) -> ClassUtility:
    """The totals of rows and columns as one class: they overlap, so they are no parts of a whole."""
    return _labelled(_class_utility(**_by_cell(replace(view, additive=False))), "totals")


def _has_shares(view: View) -> bool:
    """Whether cells are parts of a whole: means are not, nor is what can be negative."""
    return view.additive and not (view.counted["count"] < 0).any()


def _of_shares(view: View) -> dict[str, Any]:
    true, protected = view.counted["count"], view.shown
    if not _has_shares(view):
        return {"jensen_shannon": None, "root_integrated_squared_error": None, "hellinger": None, "associations": ()}
    return {
        "jensen_shannon": defined(jensen_shannon_distance(true=true, protected=protected)),
        "root_integrated_squared_error": defined(root_integrated_squared_error(true=true, protected=protected)),
        "hellinger": defined(hellinger_distance(true=true, protected=protected)),
        "associations": tuple(
            _association(view.counted, protected, pair)
            for pair in combinations(view.counted.dimensions, 2)
            if len(pair[0]) * len(pair[1]) <= _LARGEST_PAIR
        ),
    }


def _sizes(view: View) -> str:
    words = f"{view.unit} in the cell" if view.additive else f"mean {view.unit}"
    return f"{words}, without sign" if (view.counted["count"] < 0).any() else words


def defined(value: float) -> float | None:
    """The figure, or None where it is not a finite number."""
    return value if isfinite(value) else None


def _stratification(strata: Strata, cells: Mapping[str, NDArray[Any]]) -> Stratification:
    parts = by_class(_class_utility, classes=strata.classes, **cells)
    return Stratification(
        attribute=strata.attribute,
        strata=tuple(_labelled(part, strata.labels[int(place)]) for place, part in parts.items()),
    )


def _class_utility(
    *,
    error: NDArray[Any],
    expected: NDArray[Any],
    relative: NDArray[Any],
    covered: NDArray[Any],
    difference: NDArray[Any],
    others: NDArray[Any],
) -> dict[str, Any]:
    shares = spread(difference)
    return {
        "cells": len(error),
        "mean_error": _or_zero(error),
        "expected_error": _or_zero(expected),
        "relative_error": _mean_of_defined(relative),
        "covered": _mean_of_defined(covered),
        "share_difference": defined(shares.mean),
        "share_difference_sd": defined(shares.deviation),
        "error_ratio": defined(ratio(float(np.sum(error)), float(np.sum(others)))),
    }


def _labelled(figures: dict[str, Any], label: str) -> ClassUtility:
    return ClassUtility(label=label, **figures)


def _association(counted: Cells, protected: Integers, pair: tuple[Dimension, Dimension]) -> Association:
    """Cramér's V of two attributes in the table summed over all others."""
    first, second = pair
    place = counted.codes(first.name) * len(second) + counted.codes(second.name)
    true_table, protected_table = (
        np.bincount(place, weights=values, minlength=len(first) * len(second)).reshape(len(first), len(second))
        for values in (counted["count"], protected)
    )
    return Association(
        attributes=(first.name, second.name),
        true=defined(cramers_v(true_table)),
        protected=defined(cramers_v(protected_table)),
    )


def _mean_of_defined(values: NDArray[Any]) -> float | None:
    return defined(mean(values[~np.isnan(values)]))


def _or_zero(values: NDArray[Any]) -> float:
    return mean(values) if len(values) else 0.0
