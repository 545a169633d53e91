"""Which method protects a table: what a release file names, made to fit the table and its data."""

from fractions import Fraction
from typing import Any

from sfumato.engine.question import Asked, IndicatorQuestion, PairQuestion, Question
from sfumato.errors import ReleaseError
from sfumato.frame import Frame
from sfumato.methods.method import Method
from sfumato.methods.registry import KEYED, build
from sfumato.methods.top_contributors import TopContributors
from sfumato.microdata import Microdata
from sfumato.table import Table

WHOLE_WORKFORCES = frozenset({"vector-pareto", "auto"})
"""Methods whose published error figures need all workers of an establishment in the table."""
SMALLEST_PAIR_CELL = 3
"""Cells of flows and graphs below this are not published unless the release sets another `minimum`."""


def name_of_method(table: Table, data: Frame | Microdata) -> str:
    """The method as it is used.

    Smooth Pareto protects a table by worker attributes as one vector. That is strong and costs epsilon once. The scalar
    form, one number at a time, is weak; it is used when the release asks for it (`form = "scalar"`) and where workers
    are filtered: then the largest employer may have more workers than the table, and a vector's error figures would
    understate. Noise infusion of indicators, flows and graphs sums with factors; of counts it is the legacy.
    """
    protect = table.protect
    fitting = _fitting(table, data)
    if fitting is not None:
        wanted, used = fitting
        if protect.method != wanted:
            raise ReleaseError(
                f"table '{table.name}', method '{protect.method}'",
                expected=f"{wanted}, the method for such tables",
                found=f"'{protect.method}'",
                do=f'write protect = {{ method = "{wanted}" }}',
            )
        return used
    filtered = [name for name in table.where if not data.is_public(name)]
    if filtered and protect.method in WHOLE_WORKFORCES:
        raise ReleaseError(
            f"table '{table.name}', method '{protect.method}'",
            expected="a table of all workers: its error figures need their total",
            found=f"`where` on {', '.join(filtered)}",
            do='put the attribute into `by`, or use method = "smooth-pareto"',
        )
    by_workers = any(not data.is_public(name) for name in table.by)
    form = protect.options.get("form", "vector" if by_workers and not filtered else "scalar")
    if protect.method != "smooth-pareto" or form == "scalar":
        return protect.method
    if form != "vector" or not by_workers or filtered:
        raise ReleaseError(
            f"table '{table.name}', form",
            expected='"scalar", or "vector" in a table by worker attributes without a filter on workers',
            found=repr(form),
            do="leave `form` out: the fitting one is chosen",
        )
    return "vector-pareto"


def method_of(table: Table, data: Frame | Microdata, question: Asked, *, alpha: Fraction | None) -> Method:
    """The method that protects a table, with its parameters; `alpha` is the budget's."""
    protect, name = table.protect, name_of_method(table, data)
    used = ("form", "edges") if isinstance(question, PairQuestion) else ("form",)
    options = {option: value for option, value in protect.options.items() if option not in used}
    if name in KEYED:
        _refuse_parameters(table)
        if isinstance(question, PairQuestion):
            options = {"minimum": SMALLEST_PAIR_CELL, **options}
        return build(name, options=options, of_table=_of_the_table(table, data, question))
    return build(
        name,
        alpha=alpha if protect.alpha is None else protect.alpha,
        epsilon=protect.epsilon,
        worker_cells=question.worker_cells(data) if isinstance(question, Question) and isinstance(data, Frame) else 0,
        options=options,
    )


def contributors(table: Table) -> int:
    """How many of the largest contributors the method of a table looks at."""
    magnitudes = table.protect.options.get("magnitudes", TopContributors().magnitudes)
    return len(magnitudes) if isinstance(magnitudes, list | tuple) else 1


def _fitting(table: Table, data: Frame | Microdata) -> tuple[str, str] | None:
    """For statistics with one method: what the release file must name, and what is used; None for counts of jobs."""
    if isinstance(data, Microdata):
        return TopContributors.name, TopContributors.name
    if table.statistic != "count":
        return "noise-infusion", "noise-infusion-sums"
    return None


def _of_the_table(table: Table, data: Frame | Microdata, question: Asked) -> dict[str, Any]:
    """What a keyed method has to know of its table."""
    if isinstance(question, PairQuestion):
        return {"directed": question.directed, "ends": len(question.attributes)}
    if isinstance(question, IndicatorQuestion) and isinstance(data, Frame):
        if table.protect.options.get("below", "suppressed") != "suppressed":
            raise ReleaseError(
                f"table '{table.name}', below",
                expected='"suppressed": only cells of flows and graphs can be drawn from a model of the others',
                found=repr(table.protect.options["below"]),
                do="leave it out",
            )
        return {"months": 3 if data.span is not None and data.span.quarterly else 12}
    if isinstance(data, Microdata):
        decimals = table.decimals if table.statistic == "mean" else 0
        return {"statistic": table.statistic, "levels": len(data.units), "decimals": decimals}
    return {}


def _refuse_parameters(table: Table) -> None:
    for parameter in ("alpha", "epsilon"):
        value = getattr(table.protect, parameter)
        if value is not None:
            raise ReleaseError(
                f"method '{table.protect.method}', {parameter}",
                expected="neither alpha nor epsilon: it has no formal guarantee and costs no budget",
                found=f"{parameter} = {float(value):g}",
                do="leave it out",
            )
