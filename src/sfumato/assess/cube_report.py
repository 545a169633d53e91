"""The part of the confidential report that is about cubes."""

from dataclasses import asdict
from html import escape
from math import isfinite
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa

from sfumato.assess.charts import svg
from sfumato.assess.cubes import CubeAssessment, Dimensionality
from sfumato.assess.html import table

_MOST_POINTS = 2_500


def cube_section(found: CubeAssessment) -> str:
    """A section of the report for one cube."""
    headings = (
        *("dimensions", "tables", "figures", "root mean square error", "expected"),
        *("median relative difference", "one in ten above", "published standard error beside the paper's"),
        *("overlap of 95% intervals", "Hellinger distance", "publishable", "newly publishable", "newly marked"),
    )
    zeros = (
        ("cells", f"{found.cells:,}"),
        ("cells without records", f"{found.empty:,}"),
        ("…published as half a record or more", f"{found.from_zero:,}"),
        ("cells with records published as less than half a record", f"{found.to_zero:,}"),
        ("cells with records published with their true count", f"{found.unchanged:,}"),
    )
    told = (
        (part.column, f"{part.holding:,}", f"{part.found:,}", f"{part.told - part.found:,}", f"{part.by_chance:,.0f}")
        for part in found.told
    )
    attacked = ("column", "cells with records", "found by the attack", "found wrongly", "right by chance")
    pairs = (
        (" and ".join(pair.attributes), _figure(pair.true, ".3f"), _figure(pair.published, ".3f"))
        for pair in found.associations
    )
    return f"""<h2>{escape(found.title)}</h2>
<p>Weighted totals of tables of the published cube, beside those of the true one.</p>
<figure>{counts_chart(found)}</figure>
{table("Tables by their number of dimensions", headings, map(_row, found.by_dimension))}
{table("Cells near zero", ("what", "found"), zeros)}
{table("Which cells hold records, read off the digits of a column", attacked, told)}
{table("Cramér's V of two attributes", ("attributes", "true", "published"), pairs)}"""


def cube_data(found: CubeAssessment) -> dict[str, Any]:
    """The findings for machines."""
    data = {name: value for name, value in asdict(found).items() if name not in ("true", "protected")}
    return dict(_plain(data))


def cube_words(found: CubeAssessment) -> str:
    """The findings in a few sentences."""
    lines = [f"{found.title}: {found.cells:,} cells, {found.empty:,} of them without records."]
    lines += [
        f"The digits of '{part.column}' tell {part.found:,} of {part.holding:,} cells with records, beside "
        f"{part.told - part.found:,} wrong ones; by chance it would be {part.by_chance:,.0f}."
        for part in found.told
    ]
    lines += [
        f"{part.dimensions} dimensions: median relative difference {_figure(part.median_difference, '.2%')}, overlap "
        f"of intervals {_figure(part.overlap, '.1%')}, {part.newly_publishable:,} figures newly publishable and "
        f"{part.newly_marked:,} newly marked."
        for part in found.by_dimension
    ]
    return "\n".join(lines)


def counts_chart(found: CubeAssessment) -> str:
    """Draw the cells of two-way tables by their true and their published number of records."""
    order = np.argsort(found.true, kind="stable")
    chosen = order[np.unique(np.linspace(0, max(len(order) - 1, 0), min(len(order), _MOST_POINTS)).astype(int))]
    points = pa.table({"true": found.true[chosen], "published": found.protected[chosen]})
    scale = alt.Scale(type="symlog", constant=3)
    return svg(
        alt.Chart(points)
        .mark_circle(size=14, opacity=0.35, color="#a0522d")
        .encode(
            x=alt.X("true:Q", title="true records", scale=scale),
            y=alt.Y("published:Q", title="published records", scale=scale),
        )
        .properties(width=340, height=300, title="True and published counts in two-way tables")
    )


def _row(part: Dimensionality) -> tuple[str, ...]:
    return (
        f"{part.dimensions}",
        f"{part.tables:,}",
        f"{part.cells:,}",
        f"{part.mean_square_error**0.5:,.1f}",
        f"{part.expected**0.5:,.1f}",
        _figure(part.median_difference, ".2%"),
        _figure(part.largest_tenth, ".2%"),
        _figure(part.error_ratio, ".2f"),
        _figure(part.overlap, ".1%"),
        _figure(part.hellinger, ".4f"),
        f"{part.publishable:,}",
        f"{part.newly_publishable:,}",
        f"{part.newly_marked:,}",
    )


def _figure(value: float, form: str) -> str:
    return format(value, form) if isfinite(value) else ""


def _plain(value: Any) -> Any:
    """Numbers that are none become null."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
