"""What a bundle says of its cubes: their structure for machines, and their part of the privacy statement."""

from fractions import Fraction
from typing import Any

from sfumato.cube.cube import MILLION
from sfumato.cube.section import COUNT, MEASURE_PARTS, WEIGHTED
from sfumato.plan import Plan
from sfumato.planned_cube import PlannedCube
from sfumato.privacy.guarantee import EmployerEmployee, plain

_COLUMNS = {
    COUNT: "noisy number of records, in millionths",
    WEIGHTED: "noisy weighted number of records, in millionths",
}


CUBES_LEAVE_OPEN = (
    "Codes of attributes are regarded as public. The noise of a cube hides one record. What several records tell "
    "together is not hidden: those of one establishment, say, where it has a combination of codes to itself."
)


def cube_structure(plan: Plan, planned: PlannedCube, guarantee: dict[str, Any]) -> dict[str, Any]:
    """Describe a cube for machines."""
    section, method = planned.section, planned.method
    return {
        "name": planned.name,
        "title": planned.title,
        "dimensions": [
            {
                "name": dimension.name,
                "label": plan.release.data.label(dimension.name),
                "codes": len(dimension),
                "codelist": f"codelists/{dimension.name}.csv",
            }
            for dimension in planned.question.by
        ],
        "cells": planned.cells,
        "columns": _COLUMNS | {name: f"noisy weighted total of {name}, in thousandths" for name in section.measures},
        "parts": {COUNT: MILLION, WEIGHTED: MILLION, **dict.fromkeys(section.measures, MEASURE_PARTS)},
        "method": method.name,
        "cap": method.counts.cap,
        "guarantee": guarantee,
        "guarantee_covers": "counts and weighted counts" if method.strict else "counts only",
        "empty_cells_perturbed": float(method.empty_cells),
        "calibration": section.calibration if section.controls or section.nonnegative else None,
        "nonnegative": section.nonnegative,
        "controls": [
            {"by": list(control.by), "epsilon": None if control.counts is None else float(control.counts.epsilon)}
            for control in method.controls
        ],
        "publication_rules": {
            "least_count": section.least_count,
            "largest_cv": None if section.largest_cv is None else float(section.largest_cv),
        },
        "file": f"cubes/{planned.name}.parquet",
    }


def cube_in_short(plan: Plan, factor: str, belief: str) -> list[str]:
    """What the cubes of a release protect, for its first paragraph."""
    parts = [
        "Every cell of the cubes of this release, empty ones included, was changed by random noise before anything was "
        "published, and every table is summed from the noisy cells. Nobody can tell from the **counts of records** "
        "whether a given record is among the data, beyond the odds stated below, whatever they already know: the odds "
        f"change by a factor of at most {factor}, so that someone who thought it fifty-fifty before can be at most "
        f"{belief} sure afterwards. A person or firm with several records has this protection for each of them, not "
        "for all together."
    ]
    if any(not cube.method.strict for cube in plan.cubes):
        parts.append(
            "**Weighted counts are not covered by this.** They carry the same noise times an average weight. A record "
            "that weighs more than the average moves them by more than the noise is made for. And the noise is a whole "
            "number of average weights, so the digits of weighted counts tell which cells hold a record, even after "
            "calibration; who knows the weight of a record may find it there."
        )
    return parts


def cube_text(planned: PlannedCube) -> str:
    """What was done to the numbers of one cube."""
    method, section = planned.method, planned.section
    text = (
        f"**{planned.title}** (`{planned.name}`): whole-number noise of at most {method.counts.cap} records was added "
        f"to each of {planned.cells:,} cells: 0 with a probability of {method.counts.probability_of_none:.3g}, larger "
        "numbers ever more rarely (a two-sided geometric distribution, cut at the cap). Cells can be negative."
    )
    if method.weights is not None:
        text += (
            f" Weighted counts, of weights rounded to multiples of {method.weight_unit:,}, got noise of their own, "
            f"made for a record of the largest weight allowed, {section.largest_weight:,}. The guarantee covers them."
        )
    else:
        scale = "within each code of " + section.stratum if section.stratum else "of all records"
        text += f" Weighted counts got the same noise times the average weight {scale}, in three digits."
    if method.empty_cells < 1:
        text += (
            f" Of the cells without any record a share of {plain(method.empty_cells)}, drawn by chance before the "
            "noise, got noise; the others stayed 0 until the cube was calibrated. That adds "
            f"{float(method.cost_of_dropping):.4g} to epsilon. Which cells these are is not told."
        )
    return text + _controls(planned)


def _controls(planned: PlannedCube) -> str:
    method, section = planned.method, planned.section
    noisy = [control for control in method.controls if control.counts is not None]
    text = ""
    if noisy:
        listed = ", ".join(
            f"{control.name} (epsilon {plain(control.counts.epsilon)})" for control in noisy if control.counts
        )
        text += f" Tables by {listed} were perturbed by themselves, and charged."
    if method.exact_controls:
        names = "; ".join(control.name for control in method.exact_controls)
        text += (
            f" **Disclosed as they are, without noise: {names}.** What these tables tell about a record is outside of "
            "the guarantee."
        )
    if method.controls:
        way = "by the smallest quadratic change" if section.calibration == "least-squares" else "by raking"
        text += f" Then the cube was made to add up to these tables, {way}; only protected numbers were used for it."
    if section.nonnegative:
        text += " No cell was left below 0, so sums over many small cells come out too high."
    return text


def error_text(plan: Plan) -> str:
    """How to read the error figures of the query tool."""
    text = (
        "The query tool gives every figure of a cube an expected standard error: of the noise, worked out from the "
        "parameters alone, and of sampling"
    )
    return text + (
        ", from a variance function of a few parameters that was fitted to replicate estimates of one-way tables and "
        "controls. These parameters and the average weights are computed from the data without noise."
        if _has_replicates(plan)
        else ": there are no replicate weights, so the latter is not known."
    )


def protected_records(guarantee: EmployerEmployee) -> list[str]:
    """What fails, and how rarely."""
    return [f"With probability at most {_rounded_up(guarantee.delta)} this fails."] if guarantee.delta else []


def _rounded_up(delta: Fraction) -> str:
    """A probability in few digits, never below what it is."""
    digits = f"{float(delta):.2e}"
    return digits if Fraction(digits) >= delta else f"{float(delta) * 1.01:.2e}"


def _has_replicates(plan: Plan) -> bool:
    records = getattr(plan.release.data, "records", None)
    return records is not None and records.replicates is not None
