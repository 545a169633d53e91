"""The structure of a bundle for machines: dimensions, codes, labels, columns, methods and guarantees."""

from fractions import Fraction
from typing import Any

from sfumato.cells import Dimension
from sfumato.plan import Plan, PlannedTable
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee
from sfumato.publish.agreeing import reconciled_tables
from sfumato.publish.table import CONFIDENCE

COLUMNS = {
    "value": "protected number of jobs",
    "error": "upper estimate of the error: its mean absolute value if all jobs of the cell were in one establishment",
    "low": f"least true value the published one is consistent with, {CONFIDENCE:.0%} confidence",
    "high": f"greatest true value the published one is consistent with, {CONFIDENCE:.0%} confidence; empty: no limit",
    "establishments": "number of establishments, which is public; 0 means that value is exactly 0",
}


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
    table, frame = planned.table, plan.release.frame
    return {
        "name": table.name,
        "title": table.title or table.name.replace("_", " ").capitalize(),
        "statistic": {"count": table.count},
        "unit": "jobs",
        "dimensions": [_dimension(plan, dimension) for dimension in planned.question.by],
        "where": {name: list(codes) for name, codes in table.where.items()},
        "columns": {name: text for name, text in COLUMNS.items() if name != "establishments" or not frame.joined},
        "method": planned.method.name,
        "guarantee": describe(planned.guarantee),
        "structural_zeros": _structural_zeros(plan, planned),
        "nonnegative": table.nonnegative,
        "reconciled": table.name in reconciled_tables(plan),
        "files": {"parquet": f"tables/{table.name}.parquet", "csv": f"tables/{table.name}.csv"},
    }


def _structural_zeros(plan: Plan, planned: PlannedTable) -> str:
    if plan.release.frame.joined:
        return "none known: every combination of codes is protected and listed"
    if planned.lists_structural_zeros:
        return "listed: a row with establishments = 0 has the value 0, exactly"
    return "implied: a combination of codes without a row has no establishment and the value 0, exactly"


def _dimension(plan: Plan, dimension: Dimension) -> dict[str, Any]:
    return {
        "name": dimension.name,
        "label": plan.release.frame.label(dimension.name),
        "codes": len(dimension),
        "codelist": f"codelists/{dimension.name}.csv",
    }
