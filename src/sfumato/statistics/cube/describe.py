"""What a bundle says of its cubes: their structure for machines, and their part of the privacy statement."""

from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Any

from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.privacy.meaning import certainty, factor, named_tables, odds, record_comparisons
from sfumato.statistics.cube.figures import Calibration
from sfumato.statistics.cube.section import COUNT, WEIGHTED
from sfumato.surroundings import Surroundings, describe_dimension

_COLUMNS = {
    COUNT: "noisy number of records, in millionths",
    WEIGHTED: "noisy weighted number of records, in millionths",
}
_AMONG = ((10**3, 1, ""), (10**6, 10**6, " in a million"), (10**9, 10**9, " in a billion"))
"""For a probability of at least one in the first: by what it is multiplied, and the words behind."""

CODES_ARE_PUBLIC = "Codes of attributes are regarded as public."
CUBES_LEAVE_OPEN = (
    f"{CODES_ARE_PUBLIC} The noise of a cube hides one record. What several records tell "
    "together is not hidden: those of one establishment, say, where it has a combination of codes to itself."
)


def cubes_leave_open(plan: Surroundings) -> str:
    """What several records tell together, and several units."""
    limited = _limited(plan)
    if not limited:
        return CUBES_LEAVE_OPEN
    units = " and ".join(dict.fromkeys(cube.question.limit.column for cube in limited))
    if len(limited) == len(_covering(plan)):
        return f"{CODES_ARE_PUBLIC} What the records of several units ({units}) tell together is not hidden."
    names = ", ".join(cube.name for cube in limited)
    return f"{CUBES_LEAVE_OPEN} In {names} the records of one unit ({units}) are hidden together, and of several not."


def cube_structure(plan: Surroundings, planned: Any) -> dict[str, Any]:
    """Describe a cube for machines."""
    section, method = planned.section, planned.method
    return {
        "name": planned.name,
        "title": planned.title,
        "dimensions": [describe_dimension(plan, dimension) for dimension in planned.question.by],
        "cells": planned.cells,
        "columns": {name: _column(planned, name) for name in planned.parts},
        "parts": dict(planned.parts),
        "method": method.name,
        "cap": method.counts.cap,
        "largest_weight": section.largest_weight,
        "cap_of_weights": None if method.weights is None else method.weights.cap,
        "guarantee": planned.guarantee.described(),
        "guarantee_covers": _covered(method),
        **({} if planned.question.limit is None else planned.question.limit.described()),
        **({"draws": section.draws} if method.shared else {}),
        "empty_cells_perturbed": float(method.empty_cells),
        "calibration": section.calibration if section.controls or section.nonnegative else None,
        "nonnegative": section.nonnegative,
        "approach": section.approach,
        "whole_numbers": section.in_whole_numbers,
        "controls": [
            *(
                {
                    "by": list(control.by),
                    "epsilon": None if control.counts is None else float(control.counts.epsilon),
                    "cap": None if control.counts is None else control.counts.cap,
                }
                for control in method.controls
            ),
            *(
                {"by": list(totals.by), "epsilon": None, "public_totals": list(totals.columns), "source": totals.source}
                for totals in planned.totals
            ),
        ],
        "publication_rules": planned.rules.described(),
        "file": f"cubes/{planned.name}.parquet",
    }


def _covered(method: Any) -> str:
    """Which columns the guarantee is about."""
    if method.shared:
        return "nothing"
    return "counts and weighted counts" if method.strict else "counts only"


def _column(planned: Any, name: str) -> str:
    """What the numbers of a column are."""
    return _COLUMNS.get(name) or f"noisy {'weighted ' if planned.weighted else ''}total of {name}, in thousandths"


def cube_in_short(plan: Surroundings, factor: str, sure: str) -> list[str]:
    """What the cubes of a release with a guarantee protect, for its first paragraph."""
    cubes = _covering(plan)
    exact = any(cube.method.exact_controls for cube in cubes)
    some = any(cube.method.empty_cells < 1 for cube in cubes)
    every = "Every cell with records, and a share of the empty ones," if some else "Every cell, empty ones included,"
    apart = "Apart from the tables that are disclosed as they are, that bounds" if exact else "That bounds"
    which = "the cubes of this release" if len(cubes) == len(plan.cubes) else ", ".join(cube.name for cube in cubes)
    tables = [table.name for table in plan.tables] if plan.guarantee.bound is not None else []
    beside = f" and {named_tables(tables)} together" if tables else ""
    parts = [
        f"{every} of {which} was changed by random noise before anything was published, and every "
        f"table is summed from the noisy cells. {apart} what anyone can tell from the **counts of records**{beside} "
        "of whether a given record is among the data, whatever they already know: the odds "
        f"change by a factor of at most {factor}, so that someone who thought it fifty-fifty before can be "
        f"{sure}. {_for_each(plan)}"
    ]
    return [*parts, *_of_units(plan), *_disclosed(plan), *_beside_counts(plan)]


def _limited(plan: Surroundings) -> list[Any]:
    """The cubes that protect all records of a unit together."""
    return [cube for cube in plan.cubes if cube.question.limit is not None]


def _formal(plan: Surroundings) -> int:
    """How many tables and cubes tell something of records."""
    return len(plan.tables) + len(plan.cubes)


def _for_each(plan: Surroundings) -> str:
    """That several records are protected each by itself, where they are."""
    limited = {cube.name for cube in _limited(plan)}
    if limited and len(limited) == _formal(plan):
        return "What that means for all records of a unit together, the next paragraph says."
    but = f"But for {', '.join(sorted(limited))}, a" if limited else "A"
    return f"{but} person or firm with several records has this protection for each of them, not for all together."


def _of_units(plan: Surroundings) -> list[str]:
    """What is told of a whole unit, cube by cube and all of them together."""
    limited = _limited(plan)
    said = []
    for column in dict.fromkeys(cube.question.limit.column for cube in limited):
        cubes = [cube for cube in limited if cube.question.limit.column == column]
        one = sequential([cube.guarantee.bound for cube in cubes])
        listed = " and ".join(f"{cube.name} (at most {cube.question.limit.most:,} records of one)" for cube in cubes)
        there, others = (found.loss for found in record_comparisons(one))
        said.append(
            f"**All records of one {column} are hidden together in {listed}.** Of each {column} no more records were "
            "counted, chosen by a secret key, and the noise is as many times as large. Whether a given "
            f"{column} is among the data at all, with all of its records: {odds(there)}. Whether its records are "
            f"these or quite others, which is one {column} less and one more: {odds(others)}."
            + (" What else this release tells of its records comes on top." if len(cubes) < _formal(plan) else "")
        )
    return said


def _covering(plan: Surroundings) -> list[Any]:
    """The cubes with a guarantee."""
    return [cube for cube in plan.cubes if not cube.method.shared]


def _shared(plan: Surroundings) -> list[str]:
    """What readers learn where columns share their draws."""
    return [
        f"**{cube.title}: no formal guarantee.** One draw of noise changed the number of records of a cell and, times "
        "the average weight, its weighted number, as Li and Krenzke (2020) describe it. A weighted number less the "
        "average weight times the number of records has no noise at all: who reads both learns which cells hold "
        "records, and of a record that is alone in its cell the weight. Weighted numbers alone tell the former: that "
        "of an empty cell is a whole number of averages, and that of another one hardly ever is. Only the counts by "
        'themselves are protected. `draws = "own"` protects both.'
        for cube in plan.cubes
        if cube.method.shared
    ]


def _disclosed(plan: Surroundings) -> list[str]:
    """Which tables have no noise at all."""
    return [
        f"**{cube.title}: disclosed as they are, without noise: "
        f"{'; '.join(control.name for control in cube.method.exact_controls)}.** What these tables tell about a record "
        "is outside of the guarantee."
        for cube in plan.cubes
        if cube.method.exact_controls
    ]


def _beside_counts(plan: Surroundings) -> list[str]:
    """How records are hidden in columns that the guarantee does not cover, because nothing bounds what one adds."""
    loose = [cube for cube in _covering(plan) if cube.method.further]
    measures = any(cube.section.measures for cube in loose)
    if not loose:
        return []
    what = "Weighted counts" if _is_weighted(plan) else "Totals of measures"
    also = " and totals of measures" if _is_weighted(plan) and measures else ""
    names = "" if len(loose) == len(plan.cubes) else f" of {', '.join(cube.name for cube in loose)}"
    return [
        f"**{what}{also}{names} are not covered by this.** They have noise of their own, in whole averages. It hides a "
        "record of up to one average as well as counts do, which is as much epsilon again for each such column; for a "
        "record of k averages, k rounded up, it is k times as much. Heavy records are protected that much less."
        + _averages_of_units(plan)
        + (' `sensitivity = "weight"` covers them all.' if _is_weighted(plan) else "")
    ]


def _averages_of_units(plan: Surroundings) -> str:
    """The same of a whole unit."""
    if not any(cube.method.further for cube in _limited(plan)):
        return ""
    return (
        " Of a unit whose records are hidden together the averages of its records, each rounded up, are added up: up "
        "to as many as records of it are counted it is as well hidden as in the counts."
    )


def cube_text(planned: Any, calibration: Calibration | None = None) -> str:
    """What was done to the numbers of one cube, and how well it met its controls."""
    method, section, limit = planned.method, planned.section, planned.question.limit
    chosen = ""
    if limit is not None:
        chosen = (
            f"of each {limit.column} at most {limit.most:,} records were counted, chosen by a key, and all numbers of "
            "the cube are about these: it tells too little where units have more. Then "
        )
    text = (
        f"**{planned.title}** (`{planned.name}`): {chosen}whole-number noise of at most {method.counts.cap} records "
        f"was added to each of {planned.cells:,} cells: 0 with a probability of "
        f"{method.counts.probability_of_none:.3g}, larger numbers ever more rarely (a two-sided geometric "
        "distribution, cut at the cap)." + ("" if section.in_whole_numbers else " Cells can be negative.")
    )
    if method.weights is not None:
        text += (
            f" Weighted counts, of weights rounded to multiples of {method.weight_unit:,}, got noise of their own, "
            f"made for {'a record' if limit is None else f'{limit.most:,} records'} of the largest weight allowed, "
            f"{section.largest_weight:,}. The guarantee covers them."
        )
    elif method.further:
        scale = "within each code of " + section.stratum if section.stratum else "of all records"
        of_weights = ("Weighted counts", "the average weight")
        what, unit = of_weights if planned.weighted else ("Totals of measures", "their average")
        drawn, after = "as much noise, drawn anew,", ", after they were rounded to whole units by chance"
        if method.shared:
            drawn, after = "the same draws of noise", ""
        text += (
            f" {what} got {drawn} in units of {unit} {scale} (in three digits; "
            f"fewer than 30 records take the average of all){after}."
        )
    if method.empty_cells < 1:
        text += (
            f" Of the cells without any record a share of {plain(method.empty_cells)}, drawn by chance before the "
            "noise, got noise; the others stayed 0 until the cube was calibrated."
        )
        if not method.shared:
            text += f" That adds {float(method.cost_of_dropping):.4g} to epsilon. Which cells these are is not told."
    met = "" if calibration is None else not_met(planned, calibration)
    return text + _controls(planned) + met + _in_file(planned)


def _in_file(planned: Any) -> str:
    """In which parts of one the file has its numbers: who reads it would take millionths for numbers of people."""
    columns: dict[int, list[str]] = {}
    for name, parts in planned.parts.items():
        columns.setdefault(parts, []).append(f"`{name}`")
    divided = " and ".join(f"{', '.join(names)} by {parts:,}" for parts, names in columns.items() if parts > 1)
    return f" In `cubes/{planned.name}.parquet` numbers are whole parts of one: divide {divided}." if divided else ""


def not_met(planned: Any, calibration: Calibration) -> str:
    """By how much the cube misses its controls, where it does."""
    if calibration.converged:
        return ""
    parts = planned.parts
    missed = ", ".join(f"{gap / parts[name]:,.6g} ({name})" for name, gap in calibration.gaps.items() if gap)
    missed = missed or f"{calibration.largest_gap:,} parts of a column"
    return (
        f" **It does not add up to them: after {calibration.cycles} rounds of {calibration.method}, sums differ from "
        f"these tables by up to {missed}.**"
    )


def _controls(planned: Any) -> str:
    method, section = planned.method, planned.section
    noisy = [control for control in method.controls if control.counts is not None]
    text = ""
    if noisy:
        listed = ", ".join(
            f"{control.name} (epsilon {plain(control.counts.epsilon)})" for control in noisy if control.counts
        )
        text += f" Tables by {listed} were perturbed by themselves{'' if method.shared else ', and charged'}."
    for totals in planned.totals:
        columns = " and ".join({COUNT: "counts", WEIGHTED: "weighted counts"}[column] for column in totals.columns)
        text += (
            f" Totals by {totals.name} ({columns}) were public already and come from elsewhere: {totals.source}. They "
            "cost nothing, and using them discloses nothing."
        )
    if section.in_whole_numbers:
        text += (
            " What the cube and these tables tell was combined by least squares, and whole numbers of records, or of "
            "averages, were fitted to that; only protected numbers were used for it."
        )
    elif section.controls:
        way = "by the smallest quadratic change" if section.calibration == "least-squares" else "by raking"
        others = [word for word, used in (("public", planned.totals), ("disclosed", method.exact_controls)) if used]
        used = " and ".join(["protected", *others])
        text += f" Then the cube was made to add up to these tables, {way}; only {used} numbers were used for it."
    if section.nonnegative:
        text += " No cell was left below 0, so sums over many small cells come out too high."
    return text


def error_text(plan: Surroundings) -> str:
    """How to read the error figures of the query tool."""
    limited = ", ".join(cube.name for cube in _limited(plan))
    text = (
        f"What is not counted in {limited}, because units have more records, is in no error figure. " if limited else ""
    )
    text += (
        "The query tool gives every figure of a cube an expected standard error: of the noise, worked out from the "
        "parameters alone, and of sampling"
    )
    if not _has_replicates(plan):
        return text + ": there are no replicate weights, so the latter is not known."
    if all(cube.method.strict for cube in plan.cubes):
        stated = all(cube.section.sampling for cube in plan.cubes)
        return text + (", from parameters of other data." if stated else ", which is not told: it depends on records.")
    return text + (
        ", from a variance function of a few parameters that was fitted to replicate estimates of one-way tables and "
        "controls."
    )


def computed_without_noise(plan: Surroundings) -> list[str]:
    """What is told of the data as it is, outside of any guarantee."""
    further = [cube for cube in plan.cubes if cube.method.further]
    loose = [cube.name for cube in further]
    if not loose:
        return []
    measures = any(cube.section.measures for cube in further)
    told = {"average weights": _is_weighted(plan), "averages of measures": measures}
    averages = " and ".join(words for words, is_told in told.items() if is_told)
    also = " and the parameters of the sampling variance" if _has_replicates(plan) else ""
    return [
        f"The {averages}{also} of {', '.join(loose)} are computed from the data without noise and published in "
        "three digits. Who knows all other records may tell from them whether one more is there."
    ]


def protected_records(guarantee: EmployerEmployee) -> list[str]:
    """What fails, and how rarely."""
    return [f"With probability at most {_rounded_up(guarantee.delta)} this fails."] if guarantee.delta else []


def _rounded_up(delta: Fraction) -> str:
    """A probability in three digits, never below what it is; a small one is so many in a million, a billion, ….

    >>> _rounded_up(Fraction("0.0123456")), _rounded_up(Fraction("0.0000017511"))
    ('0.0124', '1.76 in a million')
    """
    many, words = next(
        ((many, words) for least, many, words in _AMONG if delta * least >= 1), (10**12, " in a trillion")
    )
    with localcontext(prec=3, rounding=ROUND_CEILING):
        return f"{Decimal(delta.numerator * many) / Decimal(delta.denominator):f}{words}"


def _has_replicates(plan: Surroundings) -> bool:
    return plan.release.records.records.replicates is not None


def _is_weighted(plan: Surroundings) -> bool:
    return plan.release.records.records.weight is not None


def cubes_in_words(plan: Surroundings, total: EmployerEmployee | None) -> list[str]:
    """What cubes protect, and what that means for one record; without any guarantee, what they do not."""
    if total is None:
        return [*_shared(plan), *_disclosed(plan)]
    _, described = (found.loss for found in record_comparisons(total))
    return [
        *_shared(plan),
        *cube_in_short(plan, factor(total.epsilon), certainty(total.epsilon)),
        *protected_records(total),
        "Of a record that is known to be among the data, whether it is in one cell or in another, which is one record "
        f"less and one more: {odds(described)}.",
    ]
