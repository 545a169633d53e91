"""Counts, totals and means of jobs at periods of a panel: which periods are meant, and what all of them cost.

docs/methods/panels.md says who is protected, and proves it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato.description import exact
from sfumato.errors import MethodError, ReleaseError
from sfumato.frame.data import Frame
from sfumato.frame.jobs import POPULATIONS
from sfumato.frame.measured import jobs_of
from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import Caps, EmployerEmployee, caps_together
from sfumato.statistics.each_period import JobsEachPeriod, each_period
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.registry import is_keyed
from sfumato.statistics.table import Table

_SHARED = ("delta", "error_epsilon")
"""Options of methods that say what a whole table spends: its periods share them, as they share epsilon."""
_SHOWN = 8
"""At most so many periods are named in a message."""


def periods_of(table: Table, data: Frame, method: str, *, instead: str) -> tuple[str, ...]:
    """The periods of a panel that a table is about, in order; `instead` are indicators that keyed methods publish."""
    span, period = data.span, data.panel_period
    if span is None or period is None:
        return ()
    if is_keyed(method):
        raise ReleaseError(
            f"table '{table.name}', method '{method}'",
            expected="indicators, a flow or a graph, or a method with a guarantee, such as smooth-pareto: the rows of "
            "a panel are jobs in a period",
            found=f'{table.statistic} = "{table.measure or table.count}"',
            do=f"write indicators = {instead} of each period, or take a method with a guarantee",
        )
    series = data.period_of_series
    if series is not None:
        _refuse_named(table, period, series)
        return (series,)
    asked = table.where.get(period, span.codes() if period in table.by else ())
    if not asked or (len(asked) > 1 and period not in table.by):
        _refuse_none(table, data, period, asked)
    _refuse_beyond(table, data, asked)
    return tuple(code for code in span.codes() if code in asked)


def available(data: Frame) -> tuple[str, ...]:
    """The periods of a panel whose neighbours are in it, as far as its population looks at them."""
    codes, around = () if data.span is None else data.span.codes(), data.jobs.around
    return codes[around.before : len(codes) - around.after]


def _refuse_named(table: Table, period: str, series: str) -> None:
    if period in (*table.by, *table.where):
        raise ReleaseError(
            f"table '{table.name}'",
            expected=f"no '{period}' in `by` or `where`: a table of a series is about the period that is run, {series}",
            found=f"'{period}'",
            do="leave it out; all periods of the series are one time dimension of the published table",
        )


def _refuse_none(table: Table, data: Frame, period: str, asked: tuple[str, ...]) -> None:
    last = (available(data) or ("2025-Q3",))[-1]
    raise ReleaseError(
        f"table '{table.name}'",
        expected=f"the period that jobs are counted at: one '{period}' in `where`, or '{period}' in `by`",
        found=f"several of them in `where`, and '{period}' not in `by`" if asked else f"by = {list(table.by)}",
        do=f'write where = {{ {period} = ["{last}"] }}, say, or add "{period}" to `by`',
    )


def _refuse_beyond(table: Table, data: Frame, asked: tuple[str, ...]) -> None:
    known, around = available(data), data.jobs.around
    beyond = [code for code in asked if code not in known]
    if not beyond:
        return
    sides = [words for words, periods in (("before", around.before), ("after", around.after)) if periods]
    can = f"{known[0]} to {known[-1]}" if known else "none"
    raise ReleaseError(
        f"table '{table.name}', {data.panel_period}",
        expected=f"periods of which the panel has the period {' and the one '.join(sides)} it too: population = "
        f'"{data.jobs.population}" can be had of {can}',
        found=", ".join(beyond[:_SHOWN]) + (" …" if len(beyond) > _SHOWN else ""),
        do=f"choose periods in `where`, or another population under [data.jobs]: {', '.join(POPULATIONS)}",
    )


def shared_options(options: Mapping[str, Any], periods: int) -> dict[str, Any]:
    """Options of the method of one period, of which a table has several."""
    if periods < 2:
        return dict(options)
    return {
        name: exact(value) / periods if name in _SHARED and not isinstance(value, dict | bool) else value
        for name, value in options.items()
    }


def share(epsilon: Fraction | None, periods: int) -> Fraction | None:
    """What one of several periods spends."""
    return None if epsilon is None else epsilon / max(periods, 1)


def method_of(table: Table, data: Frame, question: Question, epsilon: Fraction | None, make: Callable[..., Any]) -> Any:
    """The method of a table, which spends the same in each of its periods, or what each has; `make` takes an epsilon.

    What is the same in all is the method of one period, with its part of epsilon.
    """
    if not table.protect.by_period:
        return _for_each(make, share(epsilon, len(question.periods)), len(question.periods))
    if bought := [name for name in _SHARED if name in table.protect.options]:
        raise ReleaseError(
            f"table '{table.name}', epsilon",
            expected=f"one number beside {bought[0]}: all periods share both evenly",
            found="an epsilon for each period",
            do=f"write one number, or leave out {bought[0]}",
        )
    return each_period(
        table.name,
        data.panel_period if data.panel_period in table.by else None,
        question.periods,
        table.protect.by_period,
        lambda *, epsilon, periods: make(epsilon=epsilon / periods),
        kind=JobsEachPeriod,
    )


def _for_each(make: Callable[..., Any], epsilon: Fraction | None, periods: int) -> Any:
    """The method of one period; what it lacks is told for all of them, which share what the table spends."""
    try:
        return make(epsilon=epsilon)
    except MethodError as error:
        if periods <= 1:
            raise
        raise MethodError(
            error.where,
            expected=error.expected,
            found=error.found,
            do=f"{error.do}. That is for one period: the {periods} periods of the table share its epsilon evenly, and "
            f"need {periods} times as much together",
        ) from None


def spent_at(method: Any, question: Question, whole: Fraction) -> dict[str, Fraction]:
    """What each period of a table spends: what its method says, or an even share of the whole."""
    even = dict.fromkeys(question.periods, whole / max(len(question.periods), 1))
    return dict(getattr(method, "epsilons", even)) if question.periods else {}


def moved_by_record(question: Question) -> dict[int, int]:
    """How many jobs one record decides about, by how many periods later they are counted.

    A job that is counted at t had earnings from t − before to t + after: a record of s decides about the periods from
    s − after to s + before, each of which moves by one job.
    """
    if not question.periods:
        return {}
    around = POPULATIONS[question.population or "any"]
    return dict.fromkeys(range(-around.after, around.before + 1), 1)


def over_periods(method: Any, question: Question, *limits: tuple[str, int]) -> EmployerEmployee:
    """What all periods of a table reveal together: one establishment is in all of them.

    A method says what one period reveals, or all of them where each has its own. `limits` are the measures that are
    added up, or the number of the jobs where these are only some of those in a period.
    """
    periods = max(len(question.periods), 1) // getattr(method, "periods", 1)
    whole = sequential([method.guarantee()] * periods)
    return replace(whole, caps=caps_together([limits, whole.caps]))


def counted(question: Question) -> Caps:
    """The limit on how many more jobs of the population a step may have; none where these are the whole workforce."""
    return () if question.population in ("", "any") else ((jobs_of(question.population), 1),)
