"""Findings: what the paper stated and what a workforce of its shape must show, beside what was measured here."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sfumato.reproduce.abowd2016.evaluate import Measured
from sfumato.reproduce.abowd2016.published import (
    AIMED_DISTANCES,
    ALL,
    MOST_MEAN,
    PUBLISHED,
    SIZE_CLASSES,
    TABLES,
    Table,
)
from sfumato.reproduce.finding import Finding

_DIGITS = 3
"""The paper prints three decimals; differences below that are no differences of the table."""


def findings(measured: Sequence[Measured]) -> list[Finding]:
    """Every finding that the cells of this workforce can answer."""
    return [*_distances(measured), *_means(measured), *_dispersion(measured), *_order_of_tables(measured)]


def _about(measured: Sequence[Measured], quantity: str, table: Table) -> list[Measured]:
    rows = {row.size_class: row for row in measured if (row.quantity, row.table) == (quantity, table)}
    return [rows[size] for size in (*SIZE_CLASSES, ALL) if size in rows]


def _distances(measured: Sequence[Measured]) -> Iterator[Finding]:
    for table, (low, high) in AIMED_DISTANCES.items():
        for row in _about(measured, "jsd", table):
            yield Finding(
                source="aim",
                what=f"{table} table: Jensen-Shannon distance",
                stated=f"between {low:g} and {high:g}",
                ours=f"{row.ours:.3f} ({row.low:.3f} to {row.high:.3f})",
                holds=low <= row.ours <= high,
                note=f"published: {PUBLISHED['jsd', table, ALL]:.3f}",
            )


def _means(measured: Sequence[Measured]) -> Iterator[Finding]:
    for table in TABLES:
        rows, most = _about(measured, "c_mean", table), MOST_MEAN[table]
        if not rows:
            continue
        farthest = max(rows, key=lambda row: abs(row.ours))
        keys = list(zip(*(row.by_key for row in rows), strict=True))
        within = sum(all(abs(mean) <= most for mean in by_class) for by_class in keys)
        yield Finding(
            source="table 1",
            what=f"{table} table: mean of c in every class, mean over the keys",
            stated=f"within ±{most:g}",
            ours=f"at most {abs(farthest.ours):.3f} ({farthest.size_class})",
            holds=abs(farthest.ours) <= most,
        )
        yield Finding(
            source="table 1",
            what=f"{table} table: keys with all these means within ±{most:g}",
            stated="the paper's one key",
            ours=f"{within} of {len(keys)}",
            holds=None,
        )


def _dispersion(measured: Sequence[Measured]) -> Iterator[Finding]:
    for table in TABLES:
        rows = _about(measured, "c_sd", table)
        if len(rows) < 2:
            continue
        printed = [round(row.ours, _DIGITS) for row in rows]
        yield Finding(
            source="table 1",
            what=f"{table} table: dispersion of c falls with the size of the cell",
            stated="does" if table == "edge" else "does, but for the largest cells",
            ours=", ".join(f"{value:.3f}" for value in printed),
            holds=all(larger <= smaller for smaller, larger in pairwise(printed)) if table == "edge" else None,
            is_order=True,
        )


def _order_of_tables(measured: Sequence[Measured]) -> Iterator[Finding]:
    edge, worker = ({row.size_class: row.ours for row in _about(measured, "c_sd", table)} for table in TABLES)
    if edge:
        exceptions = [size for size in edge if worker[size] < edge[size]]
        yield Finding(
            source="table 1",
            what="dispersion of c is higher in the worker table, in every class",
            stated="is",
            ours="is" if not exceptions else f"is not in {', '.join(exceptions)}",
            holds=not exceptions,
            is_order=True,
        )
