"""The structure of a bundle for machines: dimensions, codes, labels, columns, methods and guarantees."""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from sfumato.agree.published import reconciled_tables
from sfumato.bundle.meaning import rounded_up
from sfumato.bundle.statement import compared
from sfumato.bundle.table import CONFIDENCE
from sfumato.cells import Dimension
from sfumato.frame import Frame
from sfumato.method import STATUSES
from sfumato.plan import Plan, PlannedTable
from sfumato.privacy.answers import AnswerParts
from sfumato.privacy.book import OverPeriods
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee
from sfumato.statistics.cube.describe import cube_structure
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.panel.indicators import INDICATORS
from sfumato.statistics.panel.question import IndicatorQuestion, PairQuestion
from sfumato.statistics.people.describe import BOUNDED, COUNTED, ESTIMATED, people_structure
from sfumato.statistics.people.question import AT, SampleQuestion
from sfumato.statistics.table import Table
from sfumato.statistics.totals.question import ContributorQuestion

COLUMNS = {
    "value": "protected value",
    "error": "upper estimate of the error: its mean absolute value if all jobs of the cell were in one establishment; "
    "of a negative value at least the value without its sign",
    "low": f"least true value the published one is consistent with, {CONFIDENCE:.0%} confidence",
    "high": f"greatest true value the published one is consistent with, {CONFIDENCE:.0%} confidence; empty: no limit",
    "rse": "relative standard error in percent, of sampling and perturbation together, rounded up to a coarse scale; "
    "empty: above the scale",
    "status": f"empty, or why a value is missing, made up or a bound: {', '.join(filter(None, STATUSES))}",
    "convergence_ratio": "published jobs behind the value for each employer of the cell in the register; above 1 the "
    "distortions of employers average out more slowly than with as many independent observations",
    "establishments": "number of establishments, which is public; 0 means that value is exactly 0",
}
IN_ONE_PIECE: Mapping[str, AnswerParts] = MappingProxyType({})
"""No table is in parts."""
_INFUSED = ("status", "convergence_ratio")
_NOISED = ("error", "low", "high")


def structure(
    plan: Plan, large: Mapping[str, AnswerParts] = IN_ONE_PIECE, *, spent: OverPeriods | None = None
) -> dict[str, Any]:
    """Describe every table of a release.

    `large` are the answers that are published in parts, and `spent` is what was charged about the population.
    """
    about = plan.release.about
    return {
        "title": about.title,
        "population": about.population,
        "period": about.period,
        "guarantee": describe(plan.guarantee),
        "comparisons": [found.data() for found in compared(plan)],
        **({} if spent is None else {"over_periods": describe_periods(spent)}),
        "tables": [_table(plan, planned, large.get(planned.name)) for planned in plan.tables],
        **(
            {"cubes": [cube_structure(plan, cube, describe(cube.guarantee)) for cube in plan.cubes]}
            if plan.cubes
            else {}
        ),
    }


def describe(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as plain numbers and words."""
    if isinstance(guarantee, EmployerEmployee):
        parameters = {name: rounded_up(getattr(guarantee, name)) for name in ("alpha", "epsilon", "delta")}
        condition = {"condition": guarantee.condition} if guarantee.condition else {}
        return {"definition": guarantee.definition, **parameters, **condition}
    return {"definition": "none", "statement": guarantee.statement}


def describe_periods(spent: OverPeriods) -> dict[str, Any]:
    """What was charged about a population: in all periods together, as far as it can be summed, and in each."""
    together = spent.together()
    return {
        "together": None if together is None else describe(together),
        "periods": [
            {
                "period": each.period,
                "guarantee": None if each.guarantee is None else describe(each.guarantee),
                "tables_without_guarantee": each.unbounded,
            }
            for each in spent.periods
        ],
    }


def number(value: Fraction) -> int | float:
    """A parameter as JSON writes it."""
    return int(value) if value.denominator == 1 else float(value)


def _table(plan: Plan, planned: PlannedTable, parts: AnswerParts | None) -> dict[str, Any]:
    table = planned.table
    return {
        "name": table.name,
        "title": table.title or table.name.replace("_", " ").capitalize(),
        "statistic": _statistic(table),
        "unit": unit(plan, table),
        "dimensions": [_dimension(plan, dimension) for dimension in planned.question.by],
        **({"units": _units(table)} if table.indicators is not None else {}),
        **people_structure(planned),
        "where": {name: list(codes) for name, codes in table.where.items()},
        "columns": _columns(plan, planned),
        "method": planned.method.name,
        "guarantee": describe(planned.guarantee),
        "structural_zeros": _structural_zeros(plan, planned, listed=planned.lists_structural_zeros and parts is None),
        "nonnegative": table.nonnegative,
        "reconciled": table.name in reconciled_tables(plan),
        "files": _files(table.name, parts),
    }


def _files(table: str, parts: AnswerParts | None) -> dict[str, str | int]:
    """Where the rows of a table are: in one file of each kind, or in a folder of so many Parquet files."""
    if parts is None:
        return {"parquet": f"tables/{table}.parquet", "csv": f"tables/{table}.csv"}
    return {"parquet": f"tables/{table}", "parts": len(parts), "rows": parts.rows}


def _statistic(table: Table) -> dict[str, Any]:
    asked = getattr(table, table.statistic)
    return {table.statistic: _plain(asked)}


def _plain(value: Any) -> Any:
    """What a section says, as JSON writes it."""
    if isinstance(value, BaseModel):
        return {name: _plain(part) for name, part in value if part is not None}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return number(value) if isinstance(value, Fraction) else value


def _columns(plan: Plan, planned: PlannedTable) -> dict[str, str]:
    if isinstance(planned.question, SampleQuestion):
        if planned.question.at:
            bounded = BOUNDED if planned.question.statistic == "quantiles" else {}
            return {**ESTIMATED, **bounded, "status": COLUMNS["status"]}
        return {name: COLUMNS[name] for name in ("value", *_NOISED)} | COUNTED
    return {name: text for name, text in COLUMNS.items() if name not in _left_out(plan, planned)}


def _left_out(plan: Plan, planned: PlannedTable) -> set[str]:
    """The columns that a table does not have."""
    asked, data = planned.question, plan.release.data
    if isinstance(asked, ContributorQuestion):
        return {"error", "convergence_ratio", "establishments"}
    lacking = {"rse", *(_INFUSED if isinstance(asked, Question) else _NOISED)}
    if not isinstance(asked, IndicatorQuestion):
        lacking.add("convergence_ratio")
    if isinstance(asked, PairQuestion) or (isinstance(data, Frame) and data.joined):
        lacking.add("establishments")
    if not planned.table.establishments:
        lacking |= {"establishments", "convergence_ratio"}  # jobs for each establishment tell their number
    return lacking


def _structural_zeros(plan: Plan, planned: PlannedTable, *, listed: bool) -> str:
    if isinstance(planned.question, PairQuestion):
        return "none known: every pair of codes is listed" + ("" if planned.table.directed else ", each once")
    if not isinstance(plan.release.data, Frame) or plan.release.data.joined:
        return "none known: every combination of codes is protected and listed"
    if not planned.table.establishments:
        if listed:
            return "listed: a combination without any establishment is a row like others with the value 0"
        return "implied: a combination of codes without a row has the value 0, with or without an establishment"
    if listed:
        return "listed: a row with establishments = 0 has the value 0, exactly"
    return "implied: a combination of codes without a row has no establishment and the value 0, exactly"


def _dimension(plan: Plan, dimension: Dimension) -> dict[str, Any]:
    return {
        "name": dimension.name,
        "label": label(plan, dimension.name),
        "codes": len(dimension),
        "codelist": f"codelists/{dimension.name}.csv",
    }


def label(plan: Plan, dimension: str) -> str:
    """The words for a dimension in a heading."""
    data = plan.release.data
    if dimension == AT and dimension not in data.attributes:
        return "Statistic"
    if dimension in data.attributes:
        return data.label(dimension)
    made = {end: name for planned in plan.tables for end, name in planned.table.end_names().items()}
    if dimension in made:
        return f"{data.label(made[dimension])}, {dimension.removesuffix('_' + made[dimension])}"
    return dimension.replace("_", " ").capitalize()


def unit(plan: Plan, table: Table) -> str:
    """What the values of a table are numbers of, in the words of its measure where it has one."""
    described = plan.release.data.measures.get(table.measure or "")
    return table.unit if described is None or not described.unit else described.unit


def _units(table: Table) -> dict[str, str]:
    """What the values of each indicator are numbers of."""
    return {indicator.code: indicator.unit for indicator in INDICATORS if indicator.code in (table.indicators or ())}
