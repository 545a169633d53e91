"""Totals, means and counts of records, perturbed by their largest contributors."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, cast

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.engine.data import OpenRecords
from sfumato.errors import ReleaseError, naming
from sfumato.frame.codelists import Codelist
from sfumato.frame.records import Microdata
from sfumato.keys import Secret
from sfumato.measures.attacks import AttackResult, JointFindings
from sfumato.method import CONFIDENCE, MOSTLY_PERTURBATION, Method
from sfumato.privacy.guarantee import Guarantee
from sfumato.statistic import LEVELS_NOTED
from sfumato.statistics.column_texts import typical
from sfumato.statistics.fitting import (
    epsilon_of,
    know_measures,
    methods_for_records,
    named_method,
    need_one_period,
    refuse_unknown_codes,
    used_options,
)
from sfumato.statistics.published import Columns, PublishedTable
from sfumato.statistics.registry import build
from sfumato.statistics.table import FOR_TOTALS, Table
from sfumato.statistics.totals.attacks import (
    Attacked,
    attack_differences,
    attack_directions,
    attack_rest,
    attack_totals,
    cell_risks,
)
from sfumato.statistics.totals.growth import GrowthUtility, attack_growth, measure_growth
from sfumato.statistics.totals.quality import UNKNOWN
from sfumato.statistics.totals.question import TOTAL, ContributorQuestion
from sfumato.statistics.totals.section import LABELS
from sfumato.statistics.totals.tabulate import contributors
from sfumato.statistics.totals.top_contributors import TopContributors
from sfumato.statistics.totals.values import PerturbedValues
from sfumato.surroundings import Surroundings


@dataclass(frozen=True, kw_only=True)
class Totals(PublishedTable):
    """A measure of records added up, or records counted, by some attributes."""

    question: ContributorQuestion
    method: TopContributors | PerturbedValues

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return not data.of_jobs and table.protect.method in FOR_TOTALS

    @classmethod
    def method_name(cls, table: Table, data: Microdata) -> str:  # noqa: ARG003 (other kinds look at it)
        """The method as it is used."""
        return named_method(table, methods_for_records(table))

    @classmethod
    def ask(cls, table: Table, data: Microdata, codelists: Mapping[str, Codelist]) -> ContributorQuestion:
        """What a table asks of a table of records."""
        cls.method_name(table, data)
        know_measures(table, data)
        codes = {name: codelist.codes for name, codelist in codelists.items()}
        refuse_unknown_codes(table, codes)
        need_one_period(table, data)
        clipped = [name for name in table.measures if data.measures[name].outside == "clip"]
        if clipped:
            raise ReleaseError(
                f"table '{table.name}', measure '{clipped[0]}'",
                expected="a measure whose values are published as they are",
                found='outside = "clip", which predictions, means and percentiles of people know',
                do="leave `outside` out, or choose a method for people",
            )
        by = []
        for name in table.by:
            kept = table.kept(name, codes[name])
            totalled = table.totals and name != data.records.period
            if totalled and TOTAL in kept:
                raise ReleaseError(
                    f"table '{table.name}', totals",
                    expected=f"attributes without a code '{TOTAL}', which names the sum of the others",
                    found=f"one in '{name}'",
                    do="rename the code, or leave out `totals`",
                )
            by.append(Dimension(name=name, codes=(*kept, *([TOTAL] if totalled else []))))
        with naming(f"table '{table.name}'"):
            method = cls._build(table, data)
        return ContributorQuestion(
            by=tuple(by),
            measure=table.measure,
            contributors=max(method.contributors, 2),  # the second is an attacker
            units=data.units,
            margins=table.totals,
            period=data.records.period,
            ratio=table.mean is not None,
            where=table.where,
            noise=method.noise if table.measure is not None else None,
            weighted=data.records.weight is not None,
        )

    @classmethod
    def build_method(
        cls,
        table: Table,
        data: Microdata,
        question: ContributorQuestion,  # noqa: ARG003 (other kinds look at it)
        *,
        alpha: Fraction | None,  # noqa: ARG003 (there is no budget)
    ) -> Method:
        """The method that protects a table, with its parameters."""
        return cls._build(table, data)

    @classmethod
    def _build(cls, table: Table, data: Microdata) -> TopContributors | PerturbedValues:
        name = cls.method_name(table, data)
        epsilon_of(table, name)
        decimals = table.decimals if table.statistic == "mean" else 0
        known = {
            "statistic": "total" if table.growth else table.statistic,
            "levels": len(data.units),
            "decimals": decimals,
        }
        built = build(name, options=used_options(table, "form"), of_table=known)  # refuses options that it has not
        if table.protect.options.get("sampling_relief") and data.records.replicates is None:
            raise ReleaseError(
                f"table '{table.name}', sampling_relief",
                expected="replicate weights, which show the sampling error of units that were not taken for sure",
                found="none",
                do="give `replicates` in [data.records], or leave `sampling_relief` out",
            )
        if "most_perturbation" in table.protect.options and data.records.weight is None:
            raise ReleaseError(
                f"table '{table.name}', most_perturbation",
                expected="weights, and with them a sampling error to compare perturbation with",
                found="records without weights, whose only error is perturbation",
                do="give `weight` in [data.records], or leave `most_perturbation` out",
            )
        return cast(TopContributors | PerturbedValues, built)

    @classmethod
    def countable(cls, data: Microdata, question: ContributorQuestion) -> frozenset[str]:  # noqa: ARG003
        """The columns that the engine can supply."""
        return frozenset({"records"})

    @classmethod
    def why_whole(cls, table: Table, question: ContributorQuestion, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why a table cannot be made in chunks."""
        return f"a {table.statistic} of records: the largest contributors are found for all cells together"

    def may_have_cost(self, guarantee: Guarantee | None) -> bool:
        """Any without a bound: the answer is the same whatever risks an earlier version computed for its statement."""
        return guarantee is not None and guarantee.bound is None

    def statistic_words(self) -> list[Any]:
        """What is added up, beside the dimensions."""
        return [self.table.statistic, self.question.measure, self.question.margins]

    @property
    def noise(self) -> str:
        """A digest of what decides by how much records are perturbed."""
        return hashlib.blake2b(repr(self.method.noise_options).encode(), digest_size=8).hexdigest()

    def noted(self, data: str) -> str:  # noqa: ARG002 (other kinds look at them)
        """The perturbation: two of the same records, made of the same directions and sizes, disclose them."""
        levels = len(self.question.units)
        return self.noise if levels == 1 else f"{self.noise}{LEVELS_NOTED}{levels}"

    @classmethod
    def tabulate(
        cls, batch: Mapping[str, Self], data: OpenRecords, secret: Secret | None
    ) -> Iterator[tuple[str, Cells]]:
        """The true cells of every table with their largest contributors: one scan of the records for all."""
        if secret is None:
            raise ValueError("contributors are found with a key")
        questions = {name: one.question for name, one in batch.items()}
        yield from contributors(data.data, data.tables, questions, secret).items()

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:  # noqa: ARG002 (records are never reconciled)
        """Values with the quality that the method itself published; means have digits after the point."""
        mean = self.table.statistic == "mean"
        unit = 10 ** (self.table.decimals if mean else 0)
        columns: Columns = {
            "value": answer["value"] / unit if mean else answer["value"],
            "status": self._status(answer),
        }
        columns["rse"] = np.where(answer["rse"] < 0, np.nan, answer["rse"] / 10)
        for end in ("low", "high"):
            columns[end] = np.where(answer[end] == UNKNOWN, np.nan, answer[end] / unit)
        return columns

    def _status(self, answer: Cells) -> Integers:
        """The status of every cell; that most of an error is perturbation says nothing where all of it is."""
        if self.question.weighted:
            return answer["status"]
        return np.where(answer["status"] == MOSTLY_PERTURBATION, 0, answer["status"])

    def with_true_values(self, counted: Cells) -> Cells:
        """The true cells with the column `count`: what would be published without protection."""
        return counted.with_column("count", np.rint(self.method.true_value(counted)).astype(np.int64))

    def interval(self, answer: Cells, shown: Cells) -> tuple[Floats, Floats] | None:  # noqa: ARG002
        """The interval that the method itself published."""
        low, high = (np.where(answer[end] == UNKNOWN, np.nan, answer[end]) for end in ("low", "high"))
        return low, high

    def attacks(self, counted: Cells, answer: Cells, secret: Secret | None) -> tuple[Any, ...]:  # noqa: ARG002
        """How near a reader comes to the largest contributors of totals, at every level of units."""
        if self.table.total is None:
            return ()
        table = self._attacked(counted, answer)
        grown = attack_growth(table, str(self.question.period)) if self.question.period in self.table.by else ()
        return (*attack_totals(table, self.question.units), *attack_directions(table), *attack_rest(table), *grown)

    def _attacked(self, counted: Cells, answer: Cells) -> Attacked:
        return Attacked(name=self.name, counted=counted, answer=answer, method=self.method)

    @classmethod
    def together(
        cls,
        batch: Mapping[str, tuple[Self, Cells, Cells]],
        earlier: Mapping[str, tuple[Self, Cells, Cells]],  # noqa: ARG003 (keys move all periods alike)
        change: float,  # noqa: ARG003
        releases: Sequence[Collection[str]] = (),  # noqa: ARG003
    ) -> JointFindings | None:
        """What readers find by subtracting cells of all totals of a measure from each other."""
        found: list[AttackResult] = []
        totals = [one for one in batch.values() if one[0].table.total is not None]
        for measure in dict.fromkeys(statistic.question.measure for statistic, *_ in totals):
            tables = [one for one in totals if one[0].question.measure == measure]
            named = tables[0][0].question.units
            results = attack_differences([one._attacked(*cells) for one, *cells in tables], named)
            found += [replace(result, attack=f"{measure}: {result.attack}") for result in results]
        return JointFindings(attacks=tuple(found)) if found else None

    def growth(self, counted: Cells, answer: Cells) -> tuple[GrowthUtility, ...]:
        """How far growth from period to period, and over a year, is off, where the table has periods: confidential."""
        period = self.question.period
        if self.table.total is None or period not in self.table.by:
            return ()
        table = self._attacked(counted, answer)
        found = (
            measure_growth(table, str(period), title=self.title, confidence=CONFIDENCE, since=since) for since in LABELS
        )
        return tuple(one for one in found if one is not None)

    def cell_risks(self, counted: Cells, answer: Cells) -> dict[str, Floats]:
        """The probability of each attack on each cell, over all keys: confidential."""
        if self.table.total is None:
            return {}
        return cell_risks(self._attacked(counted, answer), self.question.units)

    @property
    def is_additive(self) -> bool:
        """Means do not add up."""
        return self.table.statistic != "mean"

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"error", "convergence_ratio", "establishments"})

    def made_codelists(self, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:
        """With totals every attribute has one code more."""
        if not self.table.totals:
            return {}
        return {
            name: Codelist(codes=(*codelists[name].codes, TOTAL), labels=(*codelists[name].labels, "Total"))
            for name in self.table.by
            if name != self.question.period
        }

    @classmethod
    def exceptions(cls, plan: Surroundings) -> list[str]:
        """For whom figures were changed, where units were asked whether they want to be protected."""
        if plan.release.records.records.consent is None:
            return []
        return [
            " All this is so of units that asked to be protected, and **of no others**: "
            + "; ".join(dict.fromkeys(table.method.for_others for table in plan.of_kind(cls)))
            + "."
        ]

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What is regarded as public of cells, and what that means where people ask for tables of their own.

        Where other kinds are published of the same records, these speak for all.
        """
        if any(not issubclass(kind, Totals) for kind in plan.kinds):
            return []
        hidden = all(table.method.suppress for table in plan.of_kind(cls))
        guarded = all(table.method.guarded for table in plan.of_kind(cls))
        period = plan.release.records.records.period
        growth = (
            " A unit is moved alike in every period: where one unit makes up most of a cell, its growth from one "
            "period to another is published nearly as it is."
            if any(period in table.table.by for table in plan.tables)
            else ""
        )
        live = _beside_live(refuses=plan.release.live.guard == "refuse", hidden=hidden) if guarded else ""
        if hidden:
            return [
                "Codes of attributes are regarded as public. Whether a unit is in the data is not: cells without any "
                "record and cells with very few look the same." + growth + live
            ]
        return [
            "Codes of attributes are regarded as public, and so is whether there is any unit in a cell: cells of a "
            "single one are published. What is said of its figure is all that protects it." + growth + live
        ]

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:
        """How to read the error figures of totals, means and counts of records."""
        marked = (
            ' Values marked "mostly perturbation" owe more of their error to it than to sampling.'
            if any(table.question.weighted for table in plan.of_kind(cls))
            else ""
        )
        return [
            "`rse` is the relative standard error of sampling and perturbation together, rounded up to a coarse scale. "
            "Of totals and means it is made of contributors as they are after perturbation, so that it tells no more "
            "of anyone than perturbed values do. (Answers that earlier versions gave keep their errors, which tell "
            "more.) "
            f"`low` and `high` enclose the figure with a probability of about {CONFIDENCE:.0%}; they come from the "
            "distribution of the perturbation that was used, which has two humps, and are rounded outward." + marked
        ]

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers."""
        text = f"{self.what_was_done()} {typical(self.method.planned_error())}{self.has_none(plan)}"
        text += self.method.adding_up
        data = plan.release.records
        if len(data.units) > 1:
            text += f" Protected are units at several levels: {', '.join(data.units)}."
        if data.records.consent is not None:
            text += " Only units that asked for it are protected."
        return text


def _beside_live(*, refuses: bool, hidden: bool) -> str:
    """What that means for tables that people ask for over the same records, should the office answer them."""
    if not refuses:
        if not hidden:
            return ""
        return (
            " That does not hold for readers who may also ask for tables of their own: two answers that are equal, or "
            "differ by few units, tell how many there are between them."
        )
    return (
        " Where readers may also ask for tables of their own, a figure is withheld when it differs from one given "
        f"before by no unit or by {'as few as would be suppressed' if hidden else 'one'}, so that these two look the "
        f"same there{' too' if hidden else ''}. Differences of more units, and what follows from many answers "
        "together, are not withheld."
    )
