"""Workforce indicators with a guarantee: what they ask, how they are protected, and what is published of them.

docs/methods/formal-indicators.md says who is protected, and proves it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, cast

import numpy as np

from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.engine.data import OpenJobs
from sfumato.engine.panel import YEAR
from sfumato.errors import MethodError, ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.keys import Secret
from sfumato.method import CONFIDENCE, PRECISE, Method, PublishedFigures, log_growth
from sfumato.privacy.blocks import Block
from sfumato.privacy.guarantee import EmployerEmployee, name_of, plain
from sfumato.privacy.over_time import record_losses
from sfumato.statistics.column_texts import typical
from sfumato.statistics.fitting import need_public_codes, refuse_other_data
from sfumato.statistics.jobs.mean_of import CERTAINTY, fewest_jobs
from sfumato.statistics.jobs.statistic import JobCounts
from sfumato.statistics.panel.formal_method import IndicatorPareto
from sfumato.statistics.panel.formal_period import AVERAGE, CHANGES, COUNTS, PAY, PAYROLLS, PeriodPareto
from sfumato.statistics.panel.indicators import INDICATORS
from sfumato.statistics.panel.question import FormalQuestion
from sfumato.statistics.panel.statistic import IndicatorTable
from sfumato.statistics.panel.tabulate_formal import cut_off, formal_indicators
from sfumato.statistics.published import Columns
from sfumato.statistics.registry import is_keyed
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

SHARES = "shares"
"""The option that says how counts, changes and payrolls share epsilon."""
_METHODS = ("smooth-pareto", "vector-pareto")
_OF_PAY = (*PAYROLLS, AVERAGE)
_SUPPLIED = frozenset({"measured", "largest_employer", "count", "available", "establishments"})

MOVED_BY_RECORD: Mapping[int, int] = {0: 1, **dict.fromkeys((-1, *range(1, YEAR + 1)), 2)}
"""Of one record the steps in numbers of so many periods later.

Without its record of s, a job is none in s, one step, and of another kind where the record was looked at, two: in the
period before, and in the year after. docs/methods/formal-indicators.md has it."""


@dataclass(frozen=True, kw_only=True)
class FormalIndicators(IndicatorTable):
    """Workforce indicators by attributes and period, whose noise a guarantee is about."""

    question: FormalQuestion

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and table.statistic == "indicators" and not is_keyed(table.protect.method)

    @classmethod
    def method_name(cls, table: Table, data: Frame) -> str:
        """The method as it is used, or why another one cannot be."""
        refuse_other_data(table, data)
        named = table.protect.method
        if named not in _METHODS:
            raise ReleaseError(
                f"table '{table.name}', method '{named}'",
                expected="smooth-pareto, which protects all kinds of jobs of a workplace cell together, or "
                "noise-infusion, which has no formal guarantee",
                found=f"'{named}', which has no proof for indicators",
                do='write protect = { method = "smooth-pareto", epsilon = 4 }',
            )
        filtered = [name for name in table.where if not data.is_public(name) and name != data.jobs.period]
        scalar = table.protect.options.get("form", "vector") != "vector"
        if filtered or scalar:
            raise ReleaseError(
                f"table '{table.name}', indicators",
                expected="indicators of all workers, whose worker cells are protected together",
                found=f"`where` on {', '.join(filtered)}" if filtered else "another `form`",
                do="put the attribute into `by` instead" if filtered else "leave `form` out",
            )
        return named

    @classmethod
    def ask(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> FormalQuestion:
        """What a table asks of a panel, given the codes of the attributes."""
        asked = super().ask(table, data, codelists)
        if not table.establishments:
            need_public_codes(f"table '{table.name}'", table.by, data)
        question = FormalQuestion(by=asked.by, where=asked.where, every_cell=not table.establishments)
        if not any(code in _OF_PAY for code in table.indicators or ()):
            return question
        name = _measure(table, data)
        cap = data.measures[name].cap
        unit = data.measures[name].unit or f"of {name}"
        return replace(question, cap=cap, measured=data.measured(name, "any"), unit=unit)

    @classmethod
    def build_method(cls, table: Table, data: Frame, question: FormalQuestion, *, alpha: Fraction | None) -> Method:
        """The methods of all periods, which share the epsilon of the table."""
        cls.method_name(table, data)
        span, period = data.span, data.jobs.period
        if span is None or period is None:
            raise ValueError("indicators are of panels")
        alpha = alpha if table.protect.alpha is None else table.protect.alpha
        if alpha is None or table.protect.epsilon is None:
            raise ReleaseError(
                f"table '{table.name}'",
                expected="what the table spends: epsilon, with the alpha of the budget or its own",
                found="no alpha",
                do="state a budget under [release]",
            )
        known = {
            code: tuple(
                one.code
                for one in INDICATORS
                if one.code in (table.indicators or ())
                and place >= one.before
                and place + one.after <= span.high - span.low
            )
            for place, code in enumerate(span.codes())
            if code in next(d.codes for d in question.by if d.name == period)
        }
        told = {code: some for code, some in known.items() if some}
        spends = _spends(table, told)
        method = IndicatorPareto(
            period=period,
            periods=tuple(
                (
                    code,
                    PeriodPareto(
                        alpha=alpha,
                        epsilon=spends[code],
                        indicators=some,
                        worker_cells=question.worker_cells,
                        months=3 if span.quarterly else 12,
                        cap=question.cap,
                        shares=_shares(table),
                    ),
                )
                for code, some in told.items()
            ),
        )
        for code, one in method.periods:
            _refuse_too_little(table, code, one)
        return cast(Method, method)

    @classmethod
    def block_of(cls, question: FormalQuestion, data: Frame) -> Block:
        """The establishments with the codes that are kept of public attributes."""
        kept = {name: codes for name, codes in question.where.items() if name != data.jobs.period}
        return JobCounts.block_of(cast(Any, replace(question, where=kept)), data)

    @classmethod
    def countable(cls, data: Frame, question: FormalQuestion) -> frozenset[str]:  # noqa: ARG003 (others look at them)
        """The columns that the engine can supply."""
        return _SUPPLIED

    @classmethod
    def why_whole(cls, table: Table, question: FormalQuestion, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why a table cannot be made in chunks."""
        return "indicators: their history is summed to employers in one piece"

    @classmethod
    def tabulate(
        cls,
        batch: Mapping[str, Self],
        data: OpenJobs,
        secret: Secret | None,  # noqa: ARG003 (nothing is keyed)
    ) -> Iterator[tuple[str, Cells]]:
        """The true cells of every table: one scan of the histories for all."""
        questions = {name: one.question for name, one in batch.items()}
        yield from formal_indicators(data.frame, data.tables, questions).items()

    @classmethod
    def cut(cls, batch: Mapping[str, Self], data: OpenJobs) -> dict[str, Any]:
        """What the cap of earnings takes off payrolls: confidential."""
        caps = {name_of(one.question.measured): one.question.cap for one in batch.values()}
        found = {name: cap for name, cap in caps.items() if cap is not None}
        return {name: cut_off(data.frame, data.tables, name, cap) for name, cap in found.items()}

    @property
    def indicator_method(self) -> IndicatorPareto:
        """The method with all its periods."""
        return cast(IndicatorPareto, self.method)

    @cached_property
    def guarantee(self) -> EmployerEmployee:
        """Of all periods; with payrolls for neighbours whose payroll grows alike, too."""
        caps = () if self.question.cap is None else ((self.question.measured, self.question.cap),)
        return replace(self.indicator_method.guarantee(), caps=caps)

    @property
    def spent_at(self) -> Mapping[str, Fraction]:
        """The epsilon that each period spends."""
        return self.indicator_method.epsilons

    @property
    def moved_by_record(self) -> Mapping[int, int]:
        """A job less in the period of the record, and of another kind in those that look at it."""
        return MOVED_BY_RECORD

    def statistic_words(self) -> list[Any]:
        """What is counted, as digests have it: with cells where there is no establishment it is another answer."""
        pay = [] if self.question.cap is None else [self.question.measured]
        return [*super().statistic_words(), *pay, *(["every cell"] if self.question.every_cell else [])]

    @property
    def tells_establishments(self) -> bool:
        """Whether it tells where there is an establishment."""
        return not self.question.every_cell

    @property
    def lists_structural_zeros(self) -> bool:
        """Whether combinations without any establishment are rows: always, where they are cells like others."""
        return self.question.every_cell or super().lists_structural_zeros

    # What is published.

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:  # noqa: ARG002 (indicators are never made to agree)
        """Values with their errors and intervals, and which are not available."""
        figures = self.shown_figures(answer, answer)
        return {
            "value": answer["value"],
            "error": np.round(figures.error, 2),
            "low": figures.low,
            "high": figures.high,
            "status": answer["status"],
        }

    def shown_figures(self, answer: Cells, shown: Cells) -> PublishedFigures:  # noqa: ARG002
        """The error figures, from protected numbers alone."""
        return self.indicator_method.published_figures(answer, CONFIDENCE)

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:
        """The interval as it is published."""
        figures = self.shown_figures(answer, shown)
        return figures.low, np.where(np.isnan(figures.high) & ~np.isnan(figures.low), np.inf, figures.high)

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"rse", "convergence_ratio"})

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        cut = "" if self.question.cap is None else f"; a job adds at most {self.question.cap:,} {self.question.unit}"
        return super().column_texts(plan) | {
            "value": f"protected indicator{cut}",
            "error": "upper estimate of the error: its mean absolute value if one establishment had all jobs, or all "
            "of the payroll, of the workplace cell; of a negative value at least the value without its sign",
            "status": "empty, or not available: the panel lacks the periods around it that the indicator needs, or the "
            "number of jobs that an average is divided by may be 0",
        }

    def design(self) -> dict[str, Any]:
        """What the values of each indicator are numbers of, and what each period spends."""
        spent = {
            code: {part: float(epsilon) for part, epsilon in method.spent.items()}
            for code, method in self.indicator_method.periods
        }
        return {**super().design(), "spent_on": spent}

    def structural_zeros(self, plan: Surroundings, *, listed: bool) -> str:
        """What is known of combinations that are not listed."""
        if self.question.every_cell:
            return "none known: every combination of codes is protected and listed"
        return super().structural_zeros(plan, listed=listed)

    # Words.

    def what_was_done(self) -> str:
        """The table, the cut and the method, in words."""
        asked, head = self.question, f"**{self.table.title or self.name}** (`{self.name}`): "
        cut = ""
        if asked.cap is not None:
            cut = (
                f"of the earnings of a job in a period at most {asked.cap:,} {asked.unit} counted, and what was above "
                "was cut off before anything else; then "
            )
        return f"{head}{cut}{self.method.description}."

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers."""
        method = self.indicator_method
        told = f"{_by_period(method)} {_by_record(method, _codes(plan))}"
        text = f"{self.what_was_done()} {_typical(method)}{self.has_none(plan)} {told}"
        text += (
            " Indicators that follow from others do so in what is published, in every cell and in every sum of cells: "
            "jobs at the end less jobs at the beginning are accessions less separations, and jobs created less jobs "
            "destroyed."
        )
        if AVERAGE in method.loudest.indicators:
            fewest = fewest_jobs(method.loudest.parts[COUNTS])
            text += (
                " Averages are quotients of a protected payroll and a protected number of jobs. There is none where "
                f"that number is not above 0 with a certainty of {CERTAINTY:.1%}: below {fewest:,} jobs, "
                "and in worker cells with a small part of their workplace cell."
            )
        if not self.lists_structural_zeros:
            text += " Combinations without any establishment, exactly 0, are not listed."
        return text + " Nothing else was clamped or suppressed, so sums are unbiased and a small cell can be negative."

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (other kinds look at it)
        """How to read the error figures of indicators with noise."""
        return [
            "Of indicators, the noise that was really drawn, and its scale, are confidential. `error`, `low` and "
            "`high` are computed from protected numbers and the parameters alone: `error` is the mean absolute error "
            "that the indicator would have if one establishment had all jobs, or all of the payroll, of its workplace "
            "cell in the period, an upper estimate, and `low` and `high` enclose the true number with a probability of "
            f"about {CONFIDENCE:.0%}. No number is below 0: where a value is negative, `error` is at least as large as "
            "the value without its sign."
        ]


def _measure(table: Table, data: Frame) -> str:
    """The measure that the earnings of the panel are, or why payrolls of them cannot be protected."""
    earnings = data.jobs.earnings
    found = [name for name in data.measures if data.column_of(name) == earnings]
    plainly = len(found) == 1 and not set(data.rule(found[0])) - {"column"}
    measure = data.measures[found[0]] if plainly else None
    if measure is not None and measure.cap is not None and measure.minimum >= 0 and measure.outside != "clip":
        return found[0]
    raise ReleaseError(
        f"table '{table.name}', payrolls",
        expected=f"one measure that is the column '{earnings}' of the jobs as it is, with a cap: the most that one job "
        "counts for in a period, known without the data",
        found=f"none of '{earnings}'" if not found else f"{', '.join(found)}, not described so",
        do=f"write {earnings} = {{ cap = 30000 }}, say, under [data.measures]; or name indicators without payrolls",
    )


def _spends(table: Table, told: Mapping[str, tuple[str, ...]]) -> dict[str, Fraction]:
    """What each period spends: what the release file says, or an even share."""
    if not told:
        raise ReleaseError(
            f"table '{table.name}', indicators",
            expected="an indicator that can be known in one of its periods, by the periods around it",
            found="none",
            do="choose other indicators or periods, or describe a longer panel",
        )
    said = table.protect.by_period
    if said and said.keys() != told.keys():
        raise ReleaseError(
            f"table '{table.name}', epsilon",
            expected=f"one number, or an epsilon for each period in which something can be known: {', '.join(told)}",
            found=", ".join(f"{code} = {plain(epsilon)}" for code, epsilon in said.items()),
            do="write epsilon = { " + ", ".join(f'"{code}" = …' for code in list(told)[:3]) + " }",
        )
    return dict(said) if said else dict.fromkeys(told, cast(Fraction, table.protect.epsilon) / len(told))


def _shares(table: Table) -> tuple[tuple[str, Fraction], ...]:
    """How the three parts share epsilon, as the release file says."""
    options = {name: value for name, value in table.protect.options.items() if name != "form"}
    said, strange = options.pop(SHARES, {}), list(options)
    if strange:
        raise ReleaseError(
            f"table '{table.name}', option '{strange[0]}'",
            expected=f"method, epsilon, alpha or {SHARES}",
            found=f"'{strange[0]}'",
            do="leave it out",
        )
    try:
        shares = {part: Fraction(str(said[part])) for part in said}
        right = not shares or (set(shares) == {COUNTS, CHANGES, PAY} and min(shares.values()) > 0)
    except (TypeError, ValueError, ZeroDivisionError):
        right = False
    if not right:
        raise ReleaseError(
            f"table '{table.name}', {SHARES}",
            expected=f"numbers above 0 of {COUNTS}, {CHANGES} and {PAY}, in proportion to which they share epsilon",
            found=repr(said),
            do=f"write {SHARES} = {{ {COUNTS} = 7, {CHANGES} = 2, {PAY} = 3 }}, or leave it out",
        )
    return tuple(sorted(shares.items()))


def _refuse_too_little(table: Table, code: str, method: PeriodPareto) -> None:
    """Refuse an epsilon at which the noise of a period does not exist, with the least that works."""
    try:
        _ = method.parts
    except MethodError as error:
        with localcontext(PRECISE):
            growth = float(log_growth(method.alpha))
        needed = [
            number * method.worker_cells * growth / float(method.spent[part] / method.epsilon)
            for part, number in method.cells.items()
        ]
        least = np.ceil(max(needed) * 105) / 100
        raise ReleaseError(
            f"table '{table.name}', epsilon",
            expected=f"epsilon of at least {least:g} in {code}: {sum(method.cells.values()) * method.worker_cells:,} "
            "numbers of each workplace cell are protected together",
            found=f"{plain(method.epsilon)} in {code}",
            do="spend more, choose fewer periods with `where`, fewer indicators, fewer codes of workers, or a smaller "
            "alpha",
        ) from error


def _typical(method: IndicatorPareto) -> str:
    """How far numbers of jobs are typically off."""
    loudest = method.loudest
    if loudest.groups:
        return f"Of the number of jobs with any earnings: {typical(method.planned_error())}"
    return typical(method.planned_error(), "of payroll", "of payroll")


def _by_period(method: IndicatorPareto) -> str:
    """What a job and an establishment lose that are in several periods, in words."""
    epsilons = list(method.epsilons.values())
    if len(epsilons) == 1:
        return f"Its one period spends epsilon = {plain(epsilons[0])}."
    most = sorted(epsilons, reverse=True)
    runs = [
        f"{number} periods at most {plain(sum(most[:number], Fraction(0)))}" for number in (2, 4) if number < len(most)
    ]
    each = plain(most[0]) if most[0] == most[-1] else f"{plain(most[-1])} to {plain(most[0])}"
    return (
        f"Each of its {len(epsilons)} periods spends epsilon = {each}. A job held in one of them loses that, "
        + "".join(f"one held in {run}, " for run in runs)
        + f"and a job held in all of them, like an establishment that is there in all of them, {plain(method.epsilon)}."
    )


def _by_record(method: IndicatorPareto, codes: Sequence[str]) -> str:
    """What the table tells of one record, in words."""
    most = max(record_losses(method.epsilons, codes, MOVED_BY_RECORD).values(), default=Fraction(0))
    return (
        "Whether a job had earnings in one single period decides whether it is there in that period, and of which kind "
        f"it is in the one before and in the {YEAR} after: of such a record the table tells at most "
        f"epsilon = {plain(most)}."
    )


def _codes(plan: Surroundings) -> tuple[str, ...]:
    span = plan.release.data.span
    return () if span is None else span.codes()
