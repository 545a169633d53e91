"""Growth of totals as a table of its own: from period to period, and on the year before, each with its error."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.engine.data import OpenRecords
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Data
from sfumato.frame.periods import in_time
from sfumato.frame.records import Microdata
from sfumato.keys import Secret
from sfumato.measures.attacks import AttackResult
from sfumato.method import CONFIDENCE, HIDDEN, NOT_AVAILABLE, SUPPRESSED, Method, of_table, rounded_up
from sfumato.noise.randomness import Randomness
from sfumato.statistics.column_texts import typical
from sfumato.statistics.published import Columns
from sfumato.statistics.row_files import is_hidden
from sfumato.statistics.table import Table
from sfumato.statistics.totals.attacks import Attacked, difference
from sfumato.statistics.totals.growth import (
    DISCLOSED,
    DOMINANT,
    cells_apart,
    earlier_places,
    half_widths_of,
)
from sfumato.statistics.totals.perturbation import Moves, NoiseSum
from sfumato.statistics.totals.quality import UNKNOWN, as_changed, blur
from sfumato.statistics.totals.question import ContributorQuestion
from sfumato.statistics.totals.section import LABELS, GrowthOf
from sfumato.statistics.totals.statistic import Totals
from sfumato.statistics.totals.tabulate import contributors
from sfumato.statistics.totals.top_contributors import TopContributors
from sfumato.surroundings import Surroundings

SINCE = "since"
"""The dimension that says what a period is compared with."""
POINTS = np.array([0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100])
"""Errors of growth are rounded up to one of these, in percentage points; larger ones are not told."""
_MOST = 1e6  # percent: beyond that the base is as good as nothing


@dataclass(frozen=True, kw_only=True)
class GrowthQuestion:
    """The totals of which growth is published, and since when."""

    totals: ContributorQuestion
    since: tuple[str, ...]

    @property
    def by(self) -> tuple[Dimension, ...]:
        """The dimensions of the totals, and what each period is compared with."""
        return (*self.totals.by, Dimension(name=SINCE, codes=self.since))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return prod(map(len, self.by))

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return self.totals.looks_at

    @property
    def where(self) -> Mapping[str, tuple[str, ...]]:
        """The codes that are kept of some attributes."""
        return self.totals.where

    @property
    def units(self) -> tuple[str, ...]:
        """The units that are protected, and the larger ones."""
        return self.totals.units

    @property
    def period(self) -> str:
        """The attribute of time."""
        return str(self.totals.period)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Totals of the same cells in two periods, and where the growth between them is published."""

    since: str
    before: Integers
    after: Integers
    at: Integers


@dataclass(frozen=True, kw_only=True)
class GrowthOfTotals(TopContributors):
    """Growth of totals that are perturbed by their largest contributors, in percent with `decimals` digits."""

    period: str = of_table("")
    since: tuple[str, ...] = of_table(("previous",))

    def pairs(self, cells: Cells) -> Iterator[Pairs]:
        """All pairs of totals whose growth is asked for."""
        codes = next(d.codes for d in cells.dimensions if d.name == self.period)
        for place, since in enumerate(self.since):
            before, after = cells_apart(cells, self.period, earlier_places(codes, since))
            at = cells.positions[after] * len(self.since) + place
            yield Pairs(since=since, before=before, after=after, at=at)

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """`value`, its `status`, `error`, `low` and `high`, from protected totals and contributors as these have them.

        Errors are rounded up to a coarse scale, and raised by a secret of the largest contributor, as those of totals.
        """
        totals = super().protect(cells, randomness)
        seen = ~np.isin(totals["status"], HIDDEN)
        value, moves, raised = totals["value"].astype(np.float64), self.published_moves(cells), blur(cells)
        sampling = as_changed(np.sqrt(self._sampling(cells)), self.true_value(cells), value)
        made = self._empty(cells)
        for pair in self.pairs(cells):
            before, after = pair.before, pair.after
            hidden = np.where(seen[before] & seen[after], 0, SUPPRESSED)
            known = (hidden == 0) & (value[before] > 0)
            base = np.where(known, value[before], 1.0)
            ratio = np.where(known, value[after] / base, 0.0)
            known &= np.abs(100 * ratio) < _MOST
            noise = self._noise(moves, sampling, pair, ratio)
            least = 50 * (1 + np.abs(ratio)) / base + 0.5 / 10**self.decimals  # all figures are rounded
            off, width = (
                rounded_up((100 * raised[after] * size / base + least) / 100, POINTS / 100) * 100
                for size in (noise.mean_magnitude(), half_widths_of(noise, CONFIDENCE))
            )
            self._fill(made, pair.at, known, 100 * (ratio - 1), off, width)
            made["status"][pair.at] = np.where(known, 0, np.where(hidden == 0, NOT_AVAILABLE, hidden))
        return self._laid_out(cells, made)

    def _noise(self, moves: Moves, sampling: Floats, pair: Pairs, ratio: Floats) -> NoiseSum:
        """By how much the later total, less so many times the earlier one, was moved; samples count as independent."""
        before, after = pair.before, pair.after
        found = difference(moves, after, moves, before, times=ratio, spread=self.spread_of_noise)
        squares = sampling[after] ** 2 + (ratio * sampling[before]) ** 2
        normal = np.zeros(len(after)) if found.normal is None else found.normal
        return NoiseSum(own=found.own, other=found.other, spread=found.spread, normal=np.sqrt(normal**2 + squares))

    def _empty(self, cells: Cells) -> dict[str, Integers]:
        size = cells.domain * len(self.since)
        columns = {name: np.zeros(size, dtype=np.int64) for name in ("value", "status", "error", "low", "high")}
        columns["status"][:] = NOT_AVAILABLE
        for name in ("error", "low", "high"):
            columns[name][:] = UNKNOWN
        return columns

    def _fill(self, made: dict[str, Integers], at: Integers, known: Flags, growth: Floats, *errors: Floats) -> None:
        unit = 10**self.decimals
        value = np.rint(unit * np.where(known, growth, 0.0))
        made["value"][at] = value.astype(np.int64)
        off, width = (np.where(known & np.isfinite(error), unit * error, np.nan) for error in errors)
        for name, column in (("error", off), ("low", value - width), ("high", value + width)):
            told = np.isfinite(column)
            made[name][at] = np.where(told, np.rint(np.where(told, column, 0)), UNKNOWN).astype(np.int64)

    def _laid_out(self, cells: Cells, columns: dict[str, Integers]) -> Cells:
        since = Dimension(name=SINCE, codes=self.since)
        positions = np.arange(cells.domain * len(self.since), dtype=np.int64)
        return Cells(dimensions=(*cells.dimensions, since), positions=positions, columns=columns)

    def truth(self, cells: Cells) -> Cells:
        """The growth of true totals, the error that is expected, and the growth of units that dominate: confidential.

        `of_unit` is that of the unit that has more than half of a cell in both periods, where `dominated` is 1.
        """
        names = ("count", "expected", "of_unit", "dominated")
        made = {name: np.zeros(cells.domain * len(self.since), dtype=np.int64) for name in names}
        table = Attacked(name="", counted=cells, answer=cells, method=self)
        sampling, unit, total = np.zeros(len(cells)), 10**self.decimals, table.total
        words, leader, published = table.words(0)[:, 0], table.weighted(0, 1), self._value(cells)
        for pair in self.pairs(cells):
            before, after, at = pair.before, pair.after, pair.at
            some = total[before] > 0
            base = np.where(some, total[before], 1.0)
            ratio = np.where(some, total[after] / base, 1.0)
            noise = self._noise(table.moves, sampling, pair, ratio)
            made["count"][at] = np.rint(100 * unit * (ratio - 1)).astype(np.int64)
            told = np.maximum(published[before], 1.0)
            made["expected"][at] = np.rint(100 * unit * noise.mean_magnitude() / told).astype(np.int64)
            one = some & (words[before] == words[after]) & (leader[before] > DOMINANT * base)
            one &= leader[after] > DOMINANT * total[after]
            grown = np.divide(leader[after], leader[before], out=np.ones(len(at)), where=one)
            made["of_unit"][at] = np.rint(100 * unit * (grown - 1)).astype(np.int64)
            made["dominated"][at] = one
        return self._laid_out(cells, made)

    def expected_error(self, cells: Cells) -> Floats:
        """The mean size of the error over all keys, as `truth` has it: confidential."""
        return cells["expected"].astype(np.float64)

    def expected_bias(self, cells: Cells) -> Floats:
        """Hardly any: what moves both periods alike cancels."""
        return np.zeros(len(cells))


@dataclass(frozen=True, kw_only=True)
class Growth(Totals):
    """Growth of a total of records, by some attributes and the period."""

    question: GrowthQuestion  # type: ignore[assignment]  # it has a question about totals inside
    method: GrowthOfTotals
    relative: ClassVar[bool] = True
    of_unit: ClassVar[str] = f"growth taken for that of the unit with most of the cell (within {DISCLOSED:g} point)"

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return table.growth is not None and not data.of_jobs

    @classmethod
    def ask(cls, table: Table, data: Microdata, codelists: Mapping[str, Codelist]) -> GrowthQuestion:  # type: ignore[override]
        """What a table asks of records that have a period."""
        period, growth = data.records.period, _growth_of(table)
        if period is None or period not in table.by:
            raise ReleaseError(
                f"table '{table.name}', growth",
                expected="the period of the records in `by`: growth is from one to another",
                found="records without a period" if period is None else f"by = {list(table.by)}",
                do='write period = "…" in [data.records], and name it in `by`' if period is None else "add it to `by`",
            )
        periods = in_time(table.kept(period, codelists[period].codes))
        if not periods or (periods[0].in_a_year == 1 and "year" in growth.since):
            raise ReleaseError(
                f"table '{table.name}', growth",
                expected="months such as 2025-01, quarters such as 2025-Q1 or, for growth since the previous one, "
                "years, in their order",
                found=f"codes of '{period}' that are something else" if not periods else "years",
                do=f"correct the codes of '{period}'" if not periods else 'leave "year" out of `since`',
            )
        if SINCE in table.by:
            raise ReleaseError(
                f"table '{table.name}', growth",
                expected=f"attributes of other names than '{SINCE}', which says what a period is compared with",
                found=f"'{SINCE}'",
                do="rename the attribute",
            )
        return GrowthQuestion(totals=super().ask(table, data, codelists), since=growth.since)

    @classmethod
    def _build(cls, table: Table, data: Microdata) -> GrowthOfTotals:
        built = super()._build(table, data)
        given = {part.name: getattr(built, part.name) for part in fields(built)}
        period, since = data.records.period or "", _growth_of(table).since
        return GrowthOfTotals(**given | {"decimals": table.decimals}, period=period, since=since)

    def statistic_words(self) -> list[Any]:
        """What grows, beside the dimensions."""
        return [self.table.statistic, self.question.totals.measure, self.question.totals.margins]

    def method_in_order(self) -> Method:
        """The method, with what periods are compared with in one order."""
        return replace(self.method, since=tuple(sorted(self.method.since)))

    @classmethod
    def tabulate(
        cls, batch: Mapping[str, Self], data: OpenRecords, secret: Secret | None
    ) -> Iterator[tuple[str, Cells]]:
        """The true totals of every table with their largest contributors: one scan of the records for all."""
        if secret is None:
            raise ValueError("contributors are found with a key")
        questions = {name: one.question.totals for name, one in batch.items()}
        yield from contributors(data.data, data.tables, questions, secret).items()

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:  # noqa: ARG002 (records are never reconciled)
        """Growth in percent, its error in points, and its interval."""
        unit = 10**self.table.decimals
        columns: Columns = {"value": answer["value"] / unit, "status": answer["status"]}
        for name in ("error", "low", "high"):
            columns[name] = np.where(answer[name] == UNKNOWN, np.nan, answer[name] / unit)
        return columns

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        return super().column_texts(plan) | {
            "value": "growth of the protected total in percent",
            "error": "upper estimate of the mean error of the growth in percentage points, rounded up to a coarse "
            "scale; empty: above the scale",
            "low": f"least true growth the published one is consistent with, {CONFIDENCE:.0%} confidence",
            "high": f"greatest true growth the published one is consistent with, {CONFIDENCE:.0%} confidence",
        }

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"rse", "convergence_ratio", "establishments"})

    @property
    def is_additive(self) -> bool:
        """Rates do not add up."""
        return False

    def unit(self, plan: Surroundings) -> str:  # noqa: ARG002 (other kinds look at it)
        """Growth is in percent."""
        return "percent"

    def made_labels(self, data: Data) -> dict[str, str]:  # noqa: ARG002 (other kinds look at them)
        """The words for what a period is compared with."""
        return {SINCE: "Since"}

    def made_codelists(self, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:
        """With totals every attribute has one code more; and what a period is compared with has codes."""
        since = self.question.since
        compared = Codelist(codes=since, labels=tuple(LABELS[code] for code in since))
        return super().made_codelists(codelists) | {SINCE: compared}

    # What is assessed, confidentially.

    def aligned(self, counted: Cells, answer: Cells) -> tuple[Cells, Cells]:
        """The true growth and the answer."""
        return self.method.truth(counted), answer

    def with_true_values(self, counted: Cells) -> Cells:
        """The true growth is there already."""
        return counted

    def attacks(self, counted: Cells, answer: Cells, secret: Secret | None) -> tuple[Any, ...]:  # noqa: ARG002
        """What growth tells of units that dominate a cell; the guess is what true growth of the cell tells."""
        one = (counted["dominated"] == 1) & ~is_hidden(answer["status"])
        if not one.any():
            return ()
        near = DISCLOSED * 10**self.table.decimals
        successes, guessed = (
            int((np.abs(figures[one] - counted["of_unit"][one]) <= near).sum())
            for figures in (answer["value"], counted["count"])
        )
        return (AttackResult(attack=self.of_unit, targets=int(one.sum()), successes=successes, guessed=guessed),)

    @classmethod
    def together(cls, batch: Any, earlier: Any, change: float, releases: Any = ()) -> None:  # noqa: ARG003
        """None: rates of two cells are not subtracted."""
        return

    def growth(self, counted: Cells, answer: Cells) -> tuple[Any, ...]:  # noqa: ARG002 (its values are that)
        """Its errors are those of its values."""
        return ()

    def cell_risks(self, counted: Cells, answer: Cells) -> dict[str, Floats]:  # noqa: ARG002 (totals have some)
        """Those of the totals."""
        return {}

    # Words for the statement.

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What totals leave open; where there are some, they say it."""
        return [] if Totals in plan.kinds else super().left_open(plan)

    @classmethod
    def exceptions(cls, plan: Surroundings) -> list[str]:
        """For whom figures were changed; totals say it, where there are some."""
        return [] if Totals in plan.kinds else super().exceptions(plan)

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:  # noqa: ARG003 (other kinds look at it)
        """How to read the errors of growth."""
        return [
            "Growth is that of protected totals, in percent. The same businesses move a cell alike in all periods, so "
            "that growth is more accurate than levels. `error` is in percentage points, raised and rounded up to a "
            f"coarse scale; `low` and `high` enclose true growth with a probability of about {CONFIDENCE:.0%}. Where "
            "records are a sample, its errors in two periods count as independent, which is too much where the same "
            "units were asked."
        ]

    def what_was_done(self) -> str:
        """The table and its method, in words."""
        return (
            f"**{self.title}** (`{self.name}`): growth of totals, computed from totals as they are published. For "
            f"these, {self.method.description}."
        )

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers."""
        return f"{self.what_was_done()} {typical(self.method.planned_error())}{self.has_none(plan)}"


def _growth_of(table: Table) -> GrowthOf:
    if table.growth is None:
        raise ValueError("a table of growth")
    return table.growth
