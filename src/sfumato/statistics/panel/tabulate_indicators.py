"""Workforce indicators of a panel: histories to employers once, employers to the cells of every table."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.engine.chunks import positions_of, strides
from sfumato.engine.connect import Tables
from sfumato.engine.factors import factor_table
from sfumato.engine.panel import employer_groups, panel
from sfumato.engine.query import Rows, texts, times, total
from sfumato.frame.data import Frame
from sfumato.frame.periods import Span
from sfumato.noise.factors import ONE, Factors
from sfumato.statistics.panel.indicators import CODES, INDICATORS, NAME, Indicator
from sfumato.statistics.panel.question import IndicatorQuestion

Part = tuple[int, str]
"""What a whole number counts for, and the expression of it."""

_AVERAGE = "average_monthly_earnings"
_LIMB = 1 << 20
"""Earnings are split at this number before they are multiplied, so that products and their sums fit in 64 bits."""
_WEIGHTS = {"jobs": (1,), "earnings": (1, _LIMB)}
"""What the parts of an indicator count for, by its unit: see `_parts`."""
_SUMMED = tuple(indicator for indicator in INDICATORS if indicator.code != _AVERAGE)
_MOST = float(2**63 - 2**10)
"""The greatest deviation that a column can hold, in millionths; larger ones are cut to it."""


def indicators(
    frame: Frame, tables: Tables, questions: Mapping[str, IndicatorQuestion], factors: Factors
) -> dict[str, Cells]:
    """Answer every question with the columns of `SUMS` and the number of `establishments` of the register.

    Listed is every combination of workplace codes with an employer in the register, with all codes of workers, all
    periods and all indicators. The history is summed to employers once for all questions. `where` selects jobs by what
    they are in the period: what is before and after a period is looked up among all of them, so that the answer is
    the same as the part of a larger table.
    """
    attributes = tuple(dict.fromkeys(name for q in questions.values() for name in worker_names(frame, q)))
    named = factor_table(frame, tables, factors).fetch()
    numbers = pa.array(np.arange(named.num_rows, dtype=np.int32))
    employers = tables.engine.lend(named.append_column("_employer", numbers))
    with (
        employer_groups(frame, tables, employers, attributes) as groups,
        nullcontext(groups) if len(questions) == 1 else groups.kept() as kept,
    ):
        return {
            name: _cells(frame, tables, kept, employers, question, deviation=factors.deviation)
            for name, question in questions.items()
        }


def worker_names(frame: Frame, question: IndicatorQuestion) -> list[str]:
    """The attributes of workers or jobs that a question looks at."""
    names = dict.fromkeys([*(dimension.name for dimension in question.by), *question.where])
    return [name for name in names if not frame.is_public(name) and name not in (frame.jobs.period, NAME)]


def _cells(
    frame: Frame,
    tables: Tables,
    groups: Rows,
    employers: Rows,
    question: IndicatorQuestion,
    *,
    deviation: float,
) -> Cells:
    """Sum employers to the cells of one question, and add the cells that hold no jobs."""
    span, period, _, _ = panel(frame)
    public = [dimension for dimension in question.by if frame.is_public(dimension.name)]
    inside = [dimension for dimension in question.by if not frame.is_public(dimension.name)]
    workers = [dimension.name for dimension in inside if dimension.name not in (period, NAME)]
    places = places_of(frame, tables, employers, question)
    keys = [dimension.name for dimension in public]
    existing = places.group(keys, _establishments="count(*)").fetch()

    placed = _of_employers(chosen_groups(frame, groups, question), workers).join(places, ["_employer"])
    found = placed.group([*keys, "_period", *workers], **_sums()).fetch()
    written = pa.array(span.codes(), pa.string()).take(found["_period"].combine_chunks())
    at = positions_of(found.append_column(period, written), question.by[:-1], question.by)

    listed, establishments = listed_cells(existing, public, inside, question.by)
    available = availability(question, span, period, listed)
    answer = _Answer.of(found, months=3 if span.quarterly else 12, deviation=deviation)
    columns = {"available": available, "establishments": establishments}
    rows = np.searchsorted(listed, at[:, None] + np.arange(len(CODES)))
    for name, values in answer.columns().items():
        columns[name] = np.zeros(len(listed), dtype=np.int64)
        columns[name][rows] = values * available[rows]
    return Cells(dimensions=question.by, positions=listed, columns=columns)


def places_of(frame: Frame, tables: Tables, employers: Rows, question: IndicatorQuestion) -> Rows:
    """The employers of the register that a question is about, with their factors and the attributes it uses."""
    if tables.workplaces is None or frame.workplaces is None:
        raise ValueError("a panel needs its table of workplaces")
    register, engine = tables.workplaces, tables.engine
    names = dict.fromkeys([*(dimension.name for dimension in question.by), *question.where])
    public = texts(register, filter(frame.is_public, names))
    kept = register.select(_workplace=engine.q(frame.workplaces.key), **public)
    among = (engine.among(engine.q(name), codes) for name, codes in question.where.items() if name in public)
    return kept.where(*among).join(employers, ["_workplace"]).without("_workplace")


def chosen_groups(frame: Frame, groups: Rows, question: IndicatorQuestion) -> Rows:
    """Keep the periods and workers that a question is about."""
    span, period, _, _ = panel(frame)
    asked = next(dimension.codes for dimension in question.by if dimension.name == period)
    kept = set(asked) & set(question.where.get(period, asked))
    places = [place for place, code in enumerate(span.codes()) if code in kept]
    among = {name: codes for name, codes in question.where.items() if name in worker_names(frame, question)}
    engine = groups.engine
    of_workers = (engine.among(engine.q(name), codes) for name, codes in among.items())
    return groups.where(engine.among("_period", places), *of_workers)


def _of_employers(groups: Rows, workers: Sequence[str]) -> Rows:
    """Every indicator that is a sum, for each employer, period and worker cell."""
    jobs = {
        "employment": "true",
        "beginning": "_before",
        "end": "_after",
        "full_quarter": "_before AND _after",
        "accessions": "NOT _before",
        "separations": "NOT _after",
        "new_hires": "NOT _within",
        "recalls": "NOT _before AND _within",
    }
    counted = {f"_{code}": total(f"CASE WHEN {where} THEN _jobs ELSE 0 END") for code, where in jobs.items()}
    sums = groups.group(
        ["_employer", "_period", *workers],
        **counted,
        _payroll=total("_earnings"),
        _full_quarter_payroll=total("CASE WHEN _before AND _after THEN _earnings ELSE 0 END"),
    )
    # An employer creates and destroys jobs in a worker cell as a whole: it does one or the other.
    return sums.with_columns(
        _job_creation="greatest(_end - _beginning, 0)", _job_destruction="greatest(_beginning - _end, 0)"
    )


def _sums() -> dict[str, str]:
    """What is summed over the employers of a cell, for every indicator."""
    parts = {indicator.code: _parts(f"_{indicator.code}", indicator.unit) for indicator in _SUMMED}
    sums = {}
    for code, of in parts.items():
        sums[f"_count_{code}"] = total(f"_{code}")
        sums[f"_factors_{code}"] = times(f"_{code} > 0")
        sums |= {f"_distorted_{code}_{weight}": total(f"_factor * {part}") for weight, part in of}
        sums |= _products(f"_squares_{code}", of, of)
    return sums | _products("_crossed", parts["full_quarter"], parts["full_quarter_payroll"])


def _parts(column: str, unit: str) -> list[Part]:
    """A column as the sum of weights times small columns."""
    if unit == "jobs":
        return [(1, column)]
    return [(1, f"({column} & {_LIMB - 1})"), (_LIMB, f"({column} >> {_LIMB.bit_length() - 1})")]


def _products(name: str, first: list[Part], second: list[Part]) -> dict[str, str]:
    """The sum of the products of two columns, part by part: whole numbers, exact in any order below 2^53."""
    return {
        f"{name}_{one}_{other}": f"sum(CAST({left} AS DOUBLE) * CAST({right} AS DOUBLE))"
        for one, left in first
        for other, right in second
    }


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """The columns of the cells that have jobs: one row a workplace, period and worker cell, one column an indicator."""

    count: Integers
    distorted: Integers
    remainder: Integers
    factors: Integers
    deviation: Integers

    @classmethod
    def of(cls, found: pa.Table, *, months: int, deviation: float) -> "_Answer":
        """Carry the parts of sums, and add average earnings."""
        count, factors, distorted, remainder = (
            np.zeros((found.num_rows, len(CODES)), dtype=np.int64) for _ in range(4)
        )
        squares = np.zeros((found.num_rows, len(CODES)))
        for at, indicator in enumerate(INDICATORS):
            if indicator.code == _AVERAGE:
                continue
            count[:, at] = found[f"_count_{indicator.code}"].to_numpy()
            factors[:, at] = found[f"_factors_{indicator.code}"].to_numpy()
            distorted[:, at], remainder[:, at] = _carried(found, indicator)
            squares[:, at] = _joined(found, f"_squares_{indicator.code}", indicator.unit, indicator.unit)
        held, paid, average = (CODES.index(code) for code in ("full_quarter", "full_quarter_payroll", _AVERAGE))
        jobs = np.maximum(count[:, held], 1)
        count[:, average] = (2 * count[:, paid] + months * jobs) // (2 * months * jobs)
        factors[:, average] = factors[:, held]
        # The ratio of two distorted sums, linearised: employers matter by how far their average is from the cell's.
        mean = count[:, paid] / jobs
        crossed = _joined(found, "_crossed", "jobs", "earnings")
        spread = squares[:, paid] - 2 * mean * crossed + mean**2 * squares[:, held]
        squares[:, average] = np.where(factors[:, held] > 1, np.maximum(spread, 0), 0) / (months * jobs) ** 2
        millionths = np.rint(np.sqrt(squares) * (deviation * ONE))
        return cls(
            count=count,
            distorted=distorted,
            remainder=remainder,
            factors=factors,
            deviation=np.minimum(millionths, _MOST).astype(np.int64),
        )

    def columns(self) -> dict[str, Integers]:
        """The columns by their names."""
        return dict(vars(self))


def _carried(found: pa.Table, indicator: Indicator) -> tuple[Integers, Integers]:
    """A distorted sum in whole units and millionths."""
    whole, rest = (np.zeros(found.num_rows, dtype=np.int64) for _ in range(2))
    for weight in _WEIGHTS[indicator.unit]:
        part = found[f"_distorted_{indicator.code}_{weight}"].to_numpy()
        whole += part // ONE * weight
        rest += part % ONE * weight
    return whole + rest // ONE, rest % ONE


def _joined(found: pa.Table, name: str, first: str, second: str) -> NDArray[np.float64]:
    """A sum of products of two columns with these units, from the sums of their parts."""
    joined = np.zeros(found.num_rows)
    for one, other in product(_WEIGHTS[first], _WEIGHTS[second]):
        joined += found[f"{name}_{one}_{other}"].to_numpy() * float(one * other)
    return joined


def listed_cells(
    existing: pa.Table, public: Sequence[Dimension], inside: Sequence[Dimension], by: Sequence[Dimension]
) -> tuple[Integers, Integers]:
    """The positions of every cell inside every workplace cell with an employer, and the employers of each."""
    step = strides(by)
    steps = np.zeros(1, dtype=np.int64)
    for dimension in inside:
        steps = np.add.outer(steps, np.arange(len(dimension), dtype=np.int64) * step[dimension.name]).ravel()
    listed = np.add.outer(positions_of(existing, public, by), steps).ravel()
    establishments = np.repeat(existing["_establishments"].to_numpy(), len(steps))
    order = np.argsort(listed, kind="stable")
    return listed[order], establishments[order]


def availability(question: IndicatorQuestion, span: Span, period: str, listed: Integers) -> Integers:
    """Whether each listed cell's indicator looks at periods of the panel only."""
    asked = next(dimension for dimension in question.by if dimension.name == period)
    place = np.array([span.codes().index(code) for code in asked.codes])[:, None]
    before, after = (np.array([getattr(i, name) for i in INDICATORS]) for name in ("before", "after"))
    known = (place >= before) & (place + after <= span.high - span.low)
    within = listed // strides(question.by)[period] % len(asked)
    available: Integers = known[within, listed % len(CODES)].astype(np.int64)
    return available
