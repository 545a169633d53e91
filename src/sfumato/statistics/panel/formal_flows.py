"""Moves of workers between places or industries, with a guarantee for single jobs.

docs/methods/formal-indicators.md proves it, and says why establishments cannot be protected in such tables.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, cast

import numpy as np

from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.engine.data import OpenJobs
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.keys import Secret
from sfumato.method import CONFIDENCE, Method, PublishedFigures
from sfumato.privacy.guarantee import plain
from sfumato.statistics.column_texts import typical
from sfumato.statistics.fitting import refuse_other_data
from sfumato.statistics.panel.formal_moves import MoveLaplace, most_changed
from sfumato.statistics.panel.pairs import PairTable
from sfumato.statistics.panel.question import PairQuestion
from sfumato.statistics.panel.tabulate_graph import people
from sfumato.statistics.panel.tabulate_moves import main_flows
from sfumato.statistics.published import Columns
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

_NO_EMPLOYERS = (
    "laplace, under a budget for individuals, or noise-infusion, which has no formal guarantee: an establishment is in "
    "every cell of its place or industry, origin and destination, and noise that hides its size in one of them does "
    "not hide it in all together"
)


@dataclass(frozen=True, kw_only=True)
class FormalFlows(PairTable):
    """Moves of workers between classes of employers, each worker with one in a period at most."""

    method: Any

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and table.statistic == "flow"

    @classmethod
    def method_name(cls, table: Table, data: Frame) -> str:
        """The method as it is used, or why another one cannot be."""
        refuse_other_data(table, data)
        named = table.protect.method
        if named != MoveLaplace.name:
            raise ReleaseError(
                f"table '{table.name}', method '{named}'",
                expected=_NO_EMPLOYERS,
                found=f"'{named}'",
                do='write protect = { method = "laplace", epsilon = 1 } and definition = "individuals" in the budget; '
                'or method = "noise-infusion"',
            )
        if table.flow is not None and table.flow.weight != "workers":
            raise ReleaseError(
                f"table '{table.name}', weight",
                expected='"workers": one job more may change what it paid, or the pairs of employers, by any number',
                found=f'"{table.flow.weight}"',
                do='leave `weight` out, or write method = "noise-infusion"',
            )
        if strange := list(table.protect.options):
            raise ReleaseError(
                f"table '{table.name}', option '{strange[0]}'",
                expected="method and epsilon",
                found=f"'{strange[0]}'",
                do="leave it out",
            )
        return named

    @classmethod
    def ask(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> PairQuestion:
        """What a flow asks of a panel, given the codes of the attributes, which are known without the data."""
        cls.method_name(table, data)  # refuses data that are no panel
        for name in table.ends:
            if not data.attributes[name].tells_codes:
                raise ReleaseError(
                    f"table '{table.name}', attribute '{name}'",
                    expected="codes that are known without the data",
                    found="codes that are read off the workplaces",
                    do=f"give the codes of {name} as `codes` or `codelist` under [data.attributes]",
                )
        return super().ask(table, data, codelists)

    @classmethod
    def build_method(
        cls,
        table: Table,
        data: Frame,
        question: PairQuestion,  # noqa: ARG003 (other kinds look at it)
        *,
        alpha: Fraction | None,
    ) -> Method:
        """The noise of all periods, which share the epsilon of the table."""
        cls.method_name(table, data)
        span, period = data.span, cast(str, data.jobs.period)
        kept = table.where.get(period, () if span is None else span.codes())
        seen = [code for code in (() if span is None else span.codes()[1:-1]) if code in kept]
        alpha = alpha if table.protect.alpha is None else table.protect.alpha
        if not seen or alpha is None:
            raise ReleaseError(
                f"table '{table.name}'",
                expected="a period with one before and one after it in the panel, and a budget",
                found="no alpha" if seen else "none",
                do="state a budget under [release]" if seen else "choose other periods, or describe a longer panel",
            )
        said = table.protect.by_period
        if said and (period not in table.by or said.keys() != set(seen)):
            raise ReleaseError(
                f"table '{table.name}', epsilon",
                expected="one number, or in a table by period one for each in which moves can be seen: "
                + ", ".join(seen),
                found=", ".join(f"{code} = {plain(epsilon)}" for code, epsilon in said.items()),
                do="write one number, or correct the periods",
            )
        panel = () if span is None else span.codes()
        each = cast(Fraction, table.protect.epsilon) / most_changed(panel, dict.fromkeys(seen, Fraction(1)))
        spends = tuple((code, said.get(code, each)) for code in seen)
        by_period = period if period in table.by else ""
        return cast(Method, MoveLaplace(alpha=alpha, periods=spends, panel=panel, period=by_period))

    @classmethod
    def countable(cls, data: Frame, question: PairQuestion) -> frozenset[str]:  # noqa: ARG003 (others look at them)
        """The columns that the engine can supply."""
        return frozenset({"count", "available"})

    @classmethod
    def why_whole(cls, table: Table, question: PairQuestion, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why a table cannot be made in chunks."""
        return "a flow: moves are chosen among all of a worker's in one piece"

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: OpenJobs) -> None:
        """Refuse attributes of jobs: a worker who has another job may then have other ones."""
        for one in batch.values():
            asked = one.question.looks_at - {data.frame.jobs.period}
            if about := {name: name for name in asked if not data.frame.is_public(name)}:
                people(data.frame, data.tables, about)

    @classmethod
    def tabulate(
        cls,
        batch: Mapping[str, Self],
        data: OpenJobs,
        secret: Secret | None,  # noqa: ARG003 (nothing is keyed)
    ) -> Iterator[tuple[str, Cells]]:
        """The true numbers of main moves of every table: one scan of the histories for all."""
        questions = {name: one.question for name, one in batch.items()}
        yield from main_flows(data.frame, data.tables, questions).items()

    @property
    def spent_at(self) -> Mapping[str, Fraction]:
        """The epsilon that each period spends."""
        return dict(self.method.periods)

    @property
    def moved_by_record(self) -> Mapping[int, int]:
        """What a record decides: whether the job is there, ended in the period before, or began in the one after."""
        return dict.fromkeys((-1, 0, 1), 1)

    def statistic_words(self) -> list[Any]:
        """What is counted: the main moves of workers."""
        return ["main moves", *super().statistic_words()]

    @property
    def tells_establishments(self) -> bool:
        """Every pair of codes is protected, whether there are establishments or not."""
        return False

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What is public, where only moves are published; other kinds speak of their own tables."""
        if any(kind is not cls for kind in plan.kinds):
            return []
        return [
            "The codes of places, industries and the like are regarded as public. Every pair of them was protected, "
            "whether there are establishments with these codes or not."
        ]

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:
        """How to read the error figures of moves."""
        names = ", ".join(f"`{table.name}`" for table in plan.of_kind(cls))
        return [
            f"Of the moves in {names}, `error` is the mean absolute error of the noise, the same in every cell of a "
            f"period, and `low` and `high` enclose the true number with a probability of at least {CONFIDENCE:.0%}. "
            "Every pair of codes has noise, whether there are establishments with these codes or not: no row is "
            "exactly 0. No number is below 0: where a value is negative, `error` is at least as large as the value "
            "without its sign."
        ]

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:  # noqa: ARG002 (flows are never made to agree)
        """Values with their errors and intervals, and where there are none."""
        figures = self.shown_figures(answer, answer)
        return {
            "value": answer["value"],
            "error": np.round(figures.error, 2),
            "low": figures.low,
            "high": figures.high,
            "status": answer["status"],
        }

    def shown_figures(self, answer: Cells, shown: Cells) -> PublishedFigures:  # noqa: ARG002
        """The error figures, which are those of the noise."""
        found = cast(MoveLaplace, self.method).published_figures(answer, CONFIDENCE)
        beside = found.beside(answer["value"])
        some = ~np.isnan(found.error)
        return PublishedFigures(
            **{name: np.where(some, getattr(beside, name), np.nan) for name in ("error", "low", "high")}
        )

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:
        """The interval as it is published."""
        figures = self.shown_figures(answer, shown)
        return figures.low, figures.high

    @property
    def counted_in(self) -> str:
        """What its errors are numbers of, in short."""
        return "moves"

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"rse", "convergence_ratio", "establishments"})

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        return super().column_texts(plan) | {
            "value": "protected number of moves, of which a worker has one in a period at most",
            "error": "mean absolute error of the noise; of a negative value at least the value without its sign",
            "status": "empty, or not available: moves are not seen in the first and the last period of the panel",
        }

    def design(self) -> dict[str, Any]:
        """What each period spends."""
        return {**super().design(), "spent_on": {code: float(epsilon) for code, epsilon in self.method.periods}}

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers."""
        periods = self.method.periods
        each = sorted({epsilon for _, epsilon in periods})
        spends = plain(each[0]) if len(each) == 1 else f"{plain(each[0])} to {plain(each[-1])}"
        return (
            f"{self.what_was_done()} {typical(self.method.planned_error(), 'moves')}{self.has_none(plan)} "
            f"{'Its period spends' if len(periods) == 1 else f'Each of its {len(periods)} periods spends'} epsilon = "
            f"{spends} for a job that begins or ends there, and nothing for one that goes on. No job can begin or end "
            f"in more than {self.method.most_periods} of them, which spend {plain(self.method.epsilon)} at most. Moves "
            "of workers who have several in a period are counted once, so "
            "numbers are a little below those of all moves. Nothing was clamped or suppressed, so a small cell can be "
            "negative."
        )
