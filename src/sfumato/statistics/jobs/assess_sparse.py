"""Assess sparse counts: what is listed without a job, what is lost by its true size, beside the legacy protection."""

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells
from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.measures.drawing import table
from sfumato.measures.formulas import by_class, mean, size_classes, size_label
from sfumato.noise.factors import ONE, Factors
from sfumato.noise.keyed import hashes
from sfumato.noise.randomness import Repeatable
from sfumato.statistics.jobs.noise_infusion import NoiseInfusion
from sfumato.statistics.jobs.sparse_laplace import Workforces, summed

BOUNDS = ((0, 0), (1, 2), (3, 9), (10, 29), (30, 99), (100, 299), (300, 999), (1_000, None))
"""Classes of true counts, both ends included."""
LEAST, MOST = Fraction("0.10"), Fraction("0.25")
"""The least and the largest distortion of the legacy that is computed for comparison."""


@dataclass(frozen=True, kw_only=True)
class SizeOfCell:
    """What becomes of the cells of one true size."""

    label: str
    cells: int
    listed: float
    mean_error: float
    legacy_error: float


@dataclass(frozen=True, kw_only=True)
class SparseAssessment:
    """What a sparse table shows and what it loses; confidential."""

    name: str
    title: str
    combinations: int
    """All combinations of codes."""
    with_jobs: int
    listed: int
    false: int
    """Listed cells without any job."""
    lost: int
    """Cells with jobs that are not listed."""
    jobs: int
    jobs_listed: float
    """The share of all jobs that are in listed cells."""
    threshold: float
    """The median threshold of a workplace cell."""
    error: float
    """The sum of absolute errors for each job."""
    legacy_error: float
    """The same of noise infusion, which lists every cell with jobs and no other."""
    by_size: tuple[SizeOfCell, ...]

    @property
    def false_share(self) -> float:
        """The share of listed cells in which there is no job."""
        return self.false / max(self.listed, 1)


def assess_sparse(planned: Any, counted: Workforces, answer: Cells) -> SparseAssessment:
    """Compare what was listed with the true cells, and with what noise infusion would have published."""
    true, shown = planned.aligned(counted, answer)
    count, value = true["count"], shown["value"]
    legacy = np.zeros_like(count)
    infused = infusion(counted)
    legacy[np.searchsorted(true.positions, infused.positions)] = infused["value"]
    off, off_legacy = np.abs(value - count), np.abs(legacy - count)
    sizes = by_class(
        _size,
        classes=size_classes(count, BOUNDS),
        listed=value > 0,
        off=off,
        legacy=off_legacy,
    )
    jobs = int(count.sum())
    blocks = answer["cap"][np.unique(planned.blocks_of(answer), return_index=True)[1]]
    return SparseAssessment(
        name=planned.name,
        title=planned.title,
        combinations=answer.domain,
        with_jobs=int((count > 0).sum()),
        listed=int((value > 0).sum()),
        false=int(((value > 0) & (count == 0)).sum()),
        lost=int(((value == 0) & (count > 0)).sum()),
        jobs=jobs,
        jobs_listed=float(count[value > 0].sum()) / max(jobs, 1),
        threshold=float(np.median(planned.method.thresholds(blocks))) if len(blocks) else 0.0,
        error=float(off.sum()) / max(jobs, 1),
        legacy_error=float(off_legacy.sum()) / max(jobs, 1),
        by_size=tuple(replace(part, label=size_label(int(place), BOUNDS)) for place, part in sizes.items() if place),
    )


def _size(*, listed: Flags, off: Integers, legacy: Integers) -> SizeOfCell:
    return SizeOfCell(label="", cells=len(listed), listed=mean(listed), mean_error=mean(off), legacy_error=mean(legacy))


def infusion(counted: Workforces) -> Cells:
    """The same cells by the legacy: permanent factors of establishments, small counts drawn again, zeros kept."""
    chance = Repeatable(1, "the legacy beside a sparse table")
    factors = Factors(key=chance.key, least=LEAST, most=MOST)
    units = int(counted.unit.max(initial=-1)) + 1
    of_unit: Integers = factors.of(hashes(map(str, range(units)))) if units else np.zeros(0, dtype=np.int64)
    pairs, count = summed(counted.pair, counted.jobs)
    _, millionths = summed(counted.pair, counted.jobs * of_unit[counted.unit])
    cells = counted.cells(pairs, count=count, distorted=millionths // ONE, remainder=millionths % ONE)
    return NoiseInfusion().protect(cells, chance)


def sparse_section(found: SparseAssessment) -> str:
    """A section of the report, below the errors of the table."""
    rows = [
        ("combinations of codes", f"{found.combinations:,}"),
        ("…with jobs", f"{found.with_jobs:,}"),
        ("listed", f"{found.listed:,}"),
        ("…of which have no job (false positives)", f"{found.false:,} ({found.false_share:.1%})"),
        ("with jobs and not listed (false zeros)", f"{found.lost:,}"),
        ("jobs in listed cells", f"{found.jobs_listed:.1%}"),
        ("median threshold of a workplace cell", f"{found.threshold:,.0f}"),
        ("sum of absolute errors for each job", f"{found.error:.3f}"),
        ("…by noise infusion, which has no false cells and hides nothing provably", f"{found.legacy_error:.3f}"),
    ]
    by_size = (
        (
            part.label,
            f"{part.cells:,}",
            f"{part.listed:.1%}",
            f"{1 - part.listed:.1%}",
            f"{part.mean_error:,.1f}",
            f"{part.legacy_error:,.1f}",
        )
        for part in found.by_size
    )
    headings = ("true jobs", "cells", "listed", "false zeros", "mean error", "mean error of noise infusion")
    return f"""<h2>{escape(found.title)}: what is listed</h2>
<figure>{_false_zeros(found)}</figure><figure>{_errors(found)}</figure>
{table("Listed cells", ("what", "found"), rows)}
{table("Cells with jobs by true size", headings, by_size)}"""


def _false_zeros(found: SparseAssessment) -> str:
    """Draw the share of cells with jobs that are not listed, by their true size."""
    marks = [
        Mark(kind="columns", x=range(len(found.by_size)), y=[100 * (1 - c.listed) for c in found.by_size], series=0)
    ]
    across = Axis(title="true jobs in the cell", classes=[c.label for c in found.by_size])
    up = Axis(title="not listed, percent", holds=(0, 100))
    return draw_panels([Panel(across, up, marks)], title="False zeros by size of the cell", size=(400, 300))


def _errors(found: SparseAssessment) -> str:
    """Draw the mean error of cells with jobs beside that of the legacy."""
    errors = [c.mean_error for c in found.by_size], [c.legacy_error for c in found.by_size]
    marks = [Mark(kind="columns", x=range(len(found.by_size)), y=some, series=at) for at, some in enumerate(errors)]
    across = Axis(title="true jobs in the cell", classes=[c.label for c in found.by_size])
    up = Axis(title="mean absolute error, jobs", kind="symlog")
    series = ("as published", "noise infusion")
    title = "Error by size of the cell, beside the legacy"
    return draw_panels([Panel(across, up, marks)], title=title, series=series, size=(400, 300))


def sparse_words(found: SparseAssessment) -> str:
    """The findings in a few lines."""
    lines = [
        f"{found.title}: {found.listed:,} of {found.combinations:,} combinations listed, with {found.jobs_listed:.1%} "
        f"of all jobs; {found.false:,} of them ({found.false_share:.1%}) have no job, and {found.lost:,} of "
        f"{found.with_jobs:,} with jobs are not listed.",
        f"Sum of absolute errors for each job: {found.error:.3f}; of noise infusion {found.legacy_error:.3f}.",
    ]
    lines += [
        f"{part.label} jobs: {1 - part.listed:.1%} of {part.cells:,} cells not listed; off by {part.mean_error:,.1f} "
        f"on average, by noise infusion {part.legacy_error:,.1f}."
        for part in found.by_size
    ]
    return "\n".join(lines)


def sparse_data(found: SparseAssessment) -> dict[str, Any]:
    """The findings for machines."""
    return asdict(found) | {"false_share": found.false_share}
