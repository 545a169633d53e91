"""Which method protects a table: what a release file names, made to fit the table and its data."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fractions import Fraction
from math import prod
from typing import Any

from sfumato.asking import periods_of, refuse_other_data
from sfumato.errors import ReleaseError
from sfumato.frame import Frame
from sfumato.method import Method
from sfumato.microdata import Microdata
from sfumato.statistics.jobs.laplace import Laplace
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.panel.question import IndicatorQuestion, PairQuestion
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.noisy_regression import NoisyRegression
from sfumato.statistics.people.percentiles import NoisyQuantiles
from sfumato.statistics.people.question import SampleQuestion
from sfumato.statistics.people.small_samples import RecordLaplace, SmallSamples
from sfumato.statistics.people.theil_sen import TheilSen
from sfumato.statistics.questions import Asked
from sfumato.statistics.registry import KEYED, build, known_of_table
from sfumato.statistics.table import Table
from sfumato.statistics.totals.top_contributors import TopContributors

WHOLE_WORKFORCES = frozenset({"vector-pareto", "auto"})
"""Methods whose published error figures need all workers of an establishment in the table."""
SMALLEST_PAIR_CELL = 3
"""Cells of flows and graphs below this are not published unless the release sets another `minimum`."""


FOR_PEOPLE: Mapping[str, Mapping[str, str]] = {
    "count": {Laplace.name: RecordLaplace.name},
    "mean": {Mose.name: Mose.name},
    "predict": {method.name: method.name for method in (Mose, NoisyRegression, TheilSen)},
    "quantiles": {NoisyQuantiles.name: NoisyQuantiles.name},
}
"""The methods for statistics of people: by statistic, what a release file names and what is used."""
OF_PEOPLE = frozenset(used for named in FOR_PEOPLE.values() for used in named.values())
"""Methods that protect statistics of people, and know nothing of jobs."""


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
        if not fitting:
            raise ReleaseError(
                f"table '{table.name}', {table.statistic}",
                expected="records without a `period`: a total is kept apart from others by one record of each unit",
                found="`period` in [data.records]",
                do="leave `period` out and publish every period from a file of its own: a unit has the same key in all",
            )
        if protect.method not in fitting:
            raise ReleaseError(
                f"table '{table.name}', method '{protect.method}'",
                expected=f"{' or '.join(fitting)}, the {'method' if len(fitting) == 1 else 'methods'} for such tables",
                found=f"'{protect.method}'",
                do=f'write protect = {{ method = "{_nearest(protect.method, fitting)}" }}',
            )
        return fitting[protect.method]
    filtered = [name for name in table.where if not data.is_public(name)]
    if filtered and protect.method in WHOLE_WORKFORCES:
        raise ReleaseError(
            f"table '{table.name}', method '{protect.method}'",
            expected="a table of all workers: its error figures need their total",
            found=f"`where` on {', '.join(filtered)}",
            do="put the attribute into `by`, or use another method: node-laplace, or smooth-pareto where the budget is "
            "weak",
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
    of_table: dict[str, Any] = {}
    if isinstance(question, SampleQuestion) and isinstance(data, Microdata):
        of_table = _of_people(table, data, question, name)
        if "class" in question.needs:
            options.pop("classes", None)
    method = build(
        name,
        alpha=alpha if protect.alpha is None else protect.alpha,
        epsilon=protect.epsilon,
        worker_cells=question.worker_cells(data) if isinstance(question, Question) and isinstance(data, Frame) else 0,
        options=options,
        of_table=of_table,
    )
    if isinstance(method, SmallSamples) and not method.tells_errors and table.unknown_errors == "withheld":
        raise ReleaseError(
            f"table '{table.name}', method '{name}'",
            expected='unknown_errors = "published": nothing that it publishes tells the error of any of its values',
            found="a table whose values would all be withheld",
            do='write unknown_errors = "published", or use noisy-regression, which tells errors',
        )
    return method


def contributors(table: Table) -> int:
    """How many of the largest contributors the method of a table looks at."""
    magnitudes = table.protect.options.get("magnitudes", TopContributors().magnitudes)
    return len(magnitudes) if isinstance(magnitudes, list | tuple) else 1


def _fitting(table: Table, data: Frame | Microdata) -> Mapping[str, str] | None:
    """What a release file may name, each with what is used; None for counts of jobs, which know many methods."""
    if isinstance(data, Microdata):
        people = FOR_PEOPLE.get(table.statistic, {})
        # The perturbation of totals keeps a unit apart from others by its one record.
        keyed = table.statistic in ("count", "total", "mean") and data.records.period is None
        return {**({TopContributors.name: TopContributors.name} if keyed else {}), **people}
    refuse_other_data(table, data)
    if table.statistic != "count":
        return {"noise-infusion": "noise-infusion-sums"}
    return None


def _nearest(method: str, fitting: Iterable[str]) -> str:
    """The method most like the one that was named; for people, where one for people was named."""
    known = list(fitting)
    if any(method in named for named in FOR_PEOPLE.values()):
        known = [name for name in known if any(name in named for named in FOR_PEOPLE.values())] or known
    return next(iter(get_close_matches(method, known, n=1)), known[0])


def _of_people(table: Table, data: Microdata, question: SampleQuestion, name: str) -> dict[str, Any]:
    """What a method for people has to know of its table, as far as it asks."""
    bounds = {"x": question.x, "y": question.y}
    facts: dict[str, Any] = {
        "statistic": question.statistic,
        "at": table.at or (),
        "decimals": table.decimals,
        "periods": periods_of(data, question),
        "edges": question.edges,
        "tails": question.tails,
        "classes": prod(map(len, question.classes)),
        **{f"low_{letter}": bound.low for letter, bound in bounds.items() if bound is not None},
        **{f"high_{letter}": bound.high for letter, bound in bounds.items() if bound is not None},
    }
    asked = known_of_table(name)
    if facts["periods"] > 1 and "periods" not in asked:
        raise ValueError(f"{name!r} does not say what several periods of a person cost")
    return {fact: value for fact, value in facts.items() if fact in asked}


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
        if table.protect.options.get("sampling_relief") and data.records.replicates is None:
            raise ReleaseError(
                f"table '{table.name}', sampling_relief",
                expected="replicate weights, which show the sampling error of units that were not taken for sure",
                found="none",
                do="give `replicates` in [data.records], or leave `sampling_relief` out",
            )
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
