"""Job histories: what their statistics share, and workforce indicators."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Self

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.engine.data import OpenJobs
from sfumato.engine.factors import factors_of
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.keys import Secret
from sfumato.method import Method
from sfumato.noise.factors import LIFE, ONE, Factors
from sfumato.statistics.column_texts import ESTABLISHMENTS_KNOWN, NOISED, typical
from sfumato.statistics.fitting import epsilon_of, named_method, refuse_other_data, refuse_unknown_codes, used_options
from sfumato.statistics.panel.attacks import attack_factors, attack_indicators
from sfumato.statistics.panel.indicators import BEHIND, CODES, INDICATORS, NAME, ROUNDED_INDICATORS
from sfumato.statistics.panel.infused_sums import ROUNDINGS, InfusedSums
from sfumato.statistics.panel.question import SUMS, IndicatorQuestion
from sfumato.statistics.panel.tabulate_indicators import indicators
from sfumato.statistics.published import Columns, PublishedTable
from sfumato.statistics.registry import build, is_keyed
from sfumato.statistics.row_files import is_hidden
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

_METHODS = {"noise-infusion": InfusedSums.name}
"""What a release file names, and what is used: of histories, sums with factors."""


@dataclass(frozen=True, kw_only=True)
class OfHistories(PublishedTable):
    """What statistics of job histories share, however they are protected."""

    method: Any

    @classmethod
    @abstractmethod
    def method_name(cls, table: Table, data: Frame) -> str:
        """The method as it is used; one that is not for such tables is refused."""

    @classmethod
    def _codes(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> dict[str, tuple[str, ...]]:
        """The codes of every attribute, of one end too, and of the period, those that are asked for among them."""
        cls.method_name(table, data)
        refuse_other_data(table, data)
        codes = {name: codelist.codes for name, codelist in codelists.items()}
        if data.span is not None and data.jobs.period is not None:
            codes[data.jobs.period] = data.span.codes()
        codes |= {name: codes[of] for name, (of, _) in table.end_filters(data.attributes).items()}
        refuse_unknown_codes(table, codes)
        return codes

    @classmethod
    def _dimension(
        cls, table: Table, data: Frame, codes: Mapping[str, tuple[str, ...]], name: str, of: str
    ) -> Dimension:
        public = of == data.jobs.period or data.is_public(of)
        return Dimension(name=name, codes=table.kept(of, codes[of]), public=public)


@dataclass(frozen=True, kw_only=True)
class PanelStatistic(OfHistories):
    """What statistics of job histories with permanent factors share: sums with these."""

    method: InfusedSums

    @classmethod
    def method_name(cls, table: Table, data: Frame) -> str:
        """The method as it is used: sums with factors."""
        refuse_other_data(table, data)
        named = table.protect.method
        if named not in _METHODS and not is_keyed(named):
            raise ReleaseError(
                f"table '{table.name}', method '{named}'",
                expected="noise-infusion: no method with a guarantee is for graphs and degrees, in which one job more "
                "may link its employer with any number of others",
                found=f"'{named}'",
                do='write protect = { method = "noise-infusion" }; moves between employers can be protected as a flow',
            )
        return named_method(table, _METHODS)

    @classmethod
    def countable(cls, data: Frame, question: Any) -> frozenset[str]:  # noqa: ARG003 (other kinds look at them)
        """The columns that the engine can supply."""
        return SUMS

    @property
    def _lasting_values(self) -> int:
        """Over how many periods a value is published, in the life of a key."""
        return max(LIFE, next((len(dimension) for dimension in self.by if dimension.name == self.period), 1))

    @classmethod
    def _factors(cls, secret: Secret | None) -> Factors:
        if secret is None:
            raise ValueError("indicators, flows and graphs need the key of their factors")
        return factors_of(secret)

    def _below(self, what: str) -> str:
        """What was done to small cells."""
        if not self.method.minimum:
            return ""
        done = "replaced by draws from a model of the others" if self.method.below == "synthesised" else "not published"
        return f" Protected {what} {self.method.minimum} are {done}, and marked."

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:  # noqa: ARG002 (the answer has the same status)
        """Values with their status; error figures would tell how far factors are from one."""
        return {"value": shown["value"], "status": shown["status"]}

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:  # noqa: ARG002
        """None: it would tell how far factors are from one."""
        return None

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers."""
        return f"{self.what_was_done()} {typical(self.method.planned_error())}{self.has_none(plan)}{self._done()}"

    def _done(self) -> str:
        """What else was done."""
        return ""


@dataclass(frozen=True, kw_only=True)
class IndicatorTable(OfHistories):
    """Workforce indicators by attributes and period, however they are protected."""

    @classmethod
    def ask(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> IndicatorQuestion:
        """What a table asks of a panel, given the codes of the attributes."""
        codes = cls._codes(table, data, codelists)
        by = tuple(cls._dimension(table, data, codes, name, name) for name in table.by)
        if data.jobs.period not in table.by:
            raise ReleaseError(
                f"table '{table.name}'",
                expected=f"indicators by '{data.jobs.period}', among others: they are about one period each",
                found=f"by = {list(table.by)}",
                do=f"add '{data.jobs.period}' to `by`",
            )
        return IndicatorQuestion(by=(*by, Dimension(name=NAME, codes=CODES)), where=table.where)

    @property
    def is_additive(self) -> bool:
        """Indicators are of several kinds."""
        return False

    def chosen_rows(self, positions: Integers) -> Flags | None:
        """The indicators that the release file names."""
        if self.table.indicators == CODES:
            return None
        return np.isin(positions % len(CODES), [CODES.index(code) for code in self.table.indicators or ()])

    def design(self) -> dict[str, Any]:
        """What the values of each indicator are numbers of."""
        chosen = self.table.indicators or ()
        return {"units": {indicator.code: indicator.unit for indicator in INDICATORS if indicator.code in chosen}}

    def structural_zeros(self, plan: Surroundings, *, listed: bool) -> str:  # noqa: ARG002 (other kinds look at it)
        """What is known of combinations that are not listed."""
        return ESTABLISHMENTS_KNOWN[self.table.establishments, listed]

    def made_codelists(self, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:  # noqa: ARG002
        """The codelist of the indicators."""
        return {NAME: Codelist(codes=tuple(i.code for i in INDICATORS), labels=tuple(i.label for i in INDICATORS))}


@dataclass(frozen=True, kw_only=True)
class Indicators(IndicatorTable, PanelStatistic):
    """Workforce indicators with permanent factors."""

    question: IndicatorQuestion
    method: InfusedSums

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and table.statistic == "indicators" and is_keyed(table.protect.method)

    @classmethod
    def build_method(
        cls,
        table: Table,
        data: Frame,
        question: IndicatorQuestion,  # noqa: ARG003 (other kinds look at it)
        *,
        alpha: Fraction | None,  # noqa: ARG003 (there is no budget)
    ) -> Method:
        """The method that protects a table, with its parameters."""
        name = cls.method_name(table, data)
        epsilon_of(table, name)
        refuse_options_of_pairs(table)
        months = 3 if data.span is not None and data.span.quarterly else 12
        return build(name, options=used_options(table, "form"), of_table={"months": months})

    @classmethod
    def why_whole(cls, table: Table, question: IndicatorQuestion, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why a table cannot be made in chunks."""
        return "indicators: tables that lie inside one another are published as sums of the finest"

    @property
    def values_of_one_employer(self) -> int:
        """How many values may hold the factor of one employer alone, over the life of a key."""
        inside = [d for d in self.by if not d.public and d.name not in (self.period, NAME)]
        return prod(map(len, inside)) * ROUNDED_INDICATORS * self._lasting_values

    @property
    def rounds_earnings(self) -> bool:
        """Payrolls are among the indicators."""
        return True

    @property
    def lasting(self) -> frozenset[str]:
        """Rounding that is the same in every period leaves the end of one equal to the beginning of the next."""
        return frozenset([self.period])

    @classmethod
    def tabulate(cls, batch: Mapping[str, Self], data: OpenJobs, secret: Secret | None) -> Iterator[tuple[str, Cells]]:
        """The true cells of every table: one scan of the histories for all."""
        questions = {name: one.question for name, one in batch.items()}
        yield from indicators(data.frame, data.tables, questions, cls._factors(secret)).items()

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:
        """Values with their status, and how many published jobs are behind each for each employer."""
        columns = super().columns_of(answer, shown)
        if self.table.establishments:
            jobs = shown["value"].reshape(-1, len(CODES)).astype(np.float64)
            jobs[is_hidden(shown["status"]).reshape(jobs.shape)] = np.nan
            columns["convergence_ratio"] = np.round(jobs[:, BEHIND].reshape(-1) / shown["establishments"], 2)
        return columns

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"rse", *NOISED})

    def _done(self) -> str:
        return (
            " Indicators were rounded together: jobs at the end less jobs at the beginning are exactly accessions less "
            "separations, in every cell and in every sum of cells. A table inside a finer one of this release is its "
            "sum." + self._below("cells with fewer jobs than")
        )

    def attacks(self, counted: Cells, answer: Cells, secret: Secret | None) -> tuple[Any, ...]:
        """What one permanent factor leaves open where a cell holds one employer."""
        bases = self.roundings
        if bases is None or secret is None:
            raise ValueError("indicators are protected by factors")
        ends = (int((secret.a - 1) * ONE), int((secret.b - 1) * ONE))
        return (
            *attack_indicators(counted, answer, period=self.period, rounding=bases[1]),
            attack_factors(counted, answer, bases=bases, period=self.period, within=ends),
        )

    # A table inside a finer one is published as its sums, so that additivity survives rounding.

    def lies_in(self, other: PublishedTable) -> bool:
        """Whether the cells of another table are parts of this one's, and none of either is suppressed."""
        if type(other) is not type(self) or self.method.minimum or other.method.minimum:
            return False
        return dict(self.where) == dict(other.where) and set(self.by) <= set(other.by)

    def summed(self, own: Cells, finer: "Indicators", parts: Cells) -> Cells:
        """The answer as sums of a finer one.

        Ratios are worked out again, and what employers gained and lost where groups of their workers are put together:
        that does not add up.
        """
        sums = np.zeros(len(own), dtype=np.int64)
        np.add.at(sums, places_in(own, parts), parts["value"])
        value, before = (column.reshape(-1, len(CODES)) for column in (sums, own["value"]))
        at = {code: place for place, code in enumerate(CODES)}
        if any(not dimension.public for dimension in finer.by if dimension not in self.by):
            net = value[:, at["end"]] - value[:, at["beginning"]]
            value[:, at["job_creation"]] = np.maximum(before[:, at["job_creation"]], np.maximum(net, 0))
            value[:, at["job_destruction"]] = value[:, at["job_creation"]] - net
        value[:, at["average_monthly_earnings"]] = self.method.average(
            value[:, at["full_quarter_payroll"]], value[:, at["full_quarter"]]
        )
        status = self.method.with_averages(value.reshape(-1), own["status"])
        return own.with_column("value", np.where(is_hidden(status), 0, value.reshape(-1))).with_column("status", status)


def with_roundings(cells: Cells, finer: Cells) -> Cells:
    """True cells with how many values that were rounded each is a sum of, as a finer table has them."""
    parts = np.zeros(len(cells), dtype=np.int64)
    np.add.at(parts, places_in(cells, finer), (finer["count"] > 0).astype(np.int64))
    return cells.with_column(ROUNDINGS, parts)


def places_in(cells: Cells, parts: Cells) -> Integers:
    """The cell that every part of it lies in."""
    codes = tuple(parts.codes(dimension.name) for dimension in cells.dimensions)
    places: Integers = np.ravel_multi_index(codes, tuple(map(len, cells.dimensions))).astype(np.int64)
    return np.searchsorted(cells.positions, places).astype(np.int64)


def refuse_options_of_pairs(table: Table) -> None:
    """Refuse options that only flows and graphs have."""
    if table.protect.options.get("convergence"):
        raise ReleaseError(
            f"table '{table.name}', convergence",
            expected="an option of flows and graphs: indicators have it beside the number of establishments",
            found=f"{table.statistic}",
            do="leave it out",
        )
    if table.protect.options.get("below", "suppressed") != "suppressed":
        raise ReleaseError(
            f"table '{table.name}', below",
            expected='"suppressed": only cells of flows and graphs can be drawn from a model of the others',
            found=repr(table.protect.options["below"]),
            do="leave it out",
        )
