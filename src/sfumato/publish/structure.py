"""The structure of a bundle for machines: dimensions, codes, labels, columns, methods and guarantees."""

from fractions import Fraction
from typing import Any

from pydantic import BaseModel

from sfumato.cells import Dimension
from sfumato.engine.question import IndicatorQuestion, PairQuestion, Question
from sfumato.indicators import INDICATORS
from sfumato.methods.infused_sums import STATUSES
from sfumato.plan import Plan, PlannedTable
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee
from sfumato.publish.agreeing import reconciled_tables
from sfumato.publish.table import CONFIDENCE
from sfumato.table import Table

COLUMNS = {
    "value": "protected value",
    "error": "upper estimate of the error: its mean absolute value if all jobs of the cell were in one establishment",
    "low": f"least true value the published one is consistent with, {CONFIDENCE:.0%} confidence",
    "high": f"greatest true value the published one is consistent with, {CONFIDENCE:.0%} confidence; empty: no limit",
    "status": f"empty, or why a value is missing or made up: {', '.join(filter(None, STATUSES))}",
    "convergence_ratio": "published jobs behind the value for each employer of the cell in the register; above 1 the "
    "distortions of employers average out more slowly than with as many independent observations",
    "establishments": "number of establishments, which is public; 0 means that value is exactly 0",
}
_INFUSED = ("status", "convergence_ratio")
_NOISED = ("error", "low", "high")


def structure(plan: Plan) -> dict[str, Any]:
    """Describe every table of a release."""
    about = plan.release.about
    return {
        "title": about.title,
        "population": about.population,
        "period": about.period,
        "guarantee": describe(plan.guarantee),
        "tables": [_table(plan, planned) for planned in plan.tables],
    }


def describe(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as plain numbers and words."""
    if isinstance(guarantee, EmployerEmployee):
        parameters = {name: number(getattr(guarantee, name)) for name in ("alpha", "epsilon", "delta")}
        return {"definition": guarantee.definition, **parameters}
    return {"definition": "none", "statement": guarantee.statement}


def number(value: Fraction) -> int | float:
    """A parameter as JSON writes it."""
    return int(value) if value.denominator == 1 else float(value)


def _table(plan: Plan, planned: PlannedTable) -> dict[str, Any]:
    table = planned.table
    return {
        "name": table.name,
        "title": table.title or table.name.replace("_", " ").capitalize(),
        "statistic": _statistic(table),
        "unit": table.unit,
        "dimensions": [_dimension(plan, dimension) for dimension in planned.question.by],
        **({"units": _units(table)} if table.indicators is not None else {}),
        "where": {name: list(codes) for name, codes in table.where.items()},
        "columns": {name: text for name, text in COLUMNS.items() if name not in _left_out(plan, planned)},
        "method": planned.method.name,
        "guarantee": describe(planned.guarantee),
        "structural_zeros": _structural_zeros(plan, planned),
        "nonnegative": table.nonnegative,
        "reconciled": table.name in reconciled_tables(plan),
        "files": {"parquet": f"tables/{table.name}.parquet", "csv": f"tables/{table.name}.csv"},
    }


def _statistic(table: Table) -> dict[str, Any]:
    asked = getattr(table, table.statistic)
    return {table.statistic: asked.model_dump(mode="json") if isinstance(asked, BaseModel) else asked}


def _left_out(plan: Plan, planned: PlannedTable) -> set[str]:
    """The columns that a table does not have."""
    asked = planned.question
    lacking = set(_INFUSED) if isinstance(asked, Question) else set(_NOISED)
    if not isinstance(asked, IndicatorQuestion):
        lacking.add("convergence_ratio")
    if isinstance(asked, PairQuestion) or plan.release.frame.joined:
        lacking.add("establishments")
    return lacking


def _structural_zeros(plan: Plan, planned: PlannedTable) -> str:
    if isinstance(planned.question, PairQuestion):
        return "none known: every pair of codes is listed" + ("" if planned.table.directed else ", each once")
    if plan.release.frame.joined:
        return "none known: every combination of codes is protected and listed"
    if planned.lists_structural_zeros:
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
    frame = plan.release.frame
    if dimension in frame.attributes:
        return frame.label(dimension)
    made = {end: name for planned in plan.tables for end, name in planned.table.end_names().items()}
    if dimension in made:
        return f"{frame.label(made[dimension])}, {dimension.removesuffix('_' + made[dimension])}"
    return dimension.replace("_", " ").capitalize()


def _units(table: Table) -> dict[str, str]:
    """What the values of each indicator are numbers of."""
    return {indicator.code: indicator.unit for indicator in INDICATORS if indicator.code in (table.indicators or ())}
