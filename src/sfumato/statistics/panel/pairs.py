"""Pairs of employers or of workers by an attribute of both: flows and graphs of job histories."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Self

import numpy as np

from sfumato.cells import Cells
from sfumato.engine.data import OpenJobs
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Data, Frame
from sfumato.keys import Secret
from sfumato.method import Method
from sfumato.noise.factors import ONE, Rule
from sfumato.statistics.column_texts import NOISED
from sfumato.statistics.fitting import epsilon_of, used_options
from sfumato.statistics.panel.attack_pairs import attack_pairs
from sfumato.statistics.panel.infused_sums import HUNDREDTHS, LEAST_FACTORS, InfusedSums
from sfumato.statistics.panel.network import ClassNetwork, NetworkComparison, compare_networks
from sfumato.statistics.panel.question import PairQuestion
from sfumato.statistics.panel.section import EARNINGS, ENDS, Weight
from sfumato.statistics.panel.statistic import OfHistories, PanelStatistic
from sfumato.statistics.panel.tabulate_graph import people, refuse_large_earnings
from sfumato.statistics.panel.tabulate_pairs import pairs, refuse_other_lengths
from sfumato.statistics.panel.tabulate_workers import refuse_too_many
from sfumato.statistics.published import Columns
from sfumato.statistics.registry import build, is_keyed
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

CONVERGENCE = (
    "published value for each distinct factor in the cell, rounded down to 1, 1.5, 2, 3, 5, 7, 10, …; empty where the "
    f"cell has fewer than {LEAST_FACTORS} factors or no value; above 1 the distortions of employers average out more "
    "slowly than with as many independent observations"
)
"""What the convergence ratio of flows and graphs says."""
SMALLEST_PAIR_CELL = 3
"""Cells of flows and graphs below this are not published unless the release sets another `minimum`."""


@dataclass(frozen=True, kw_only=True)
class PairTable(OfHistories):
    """Pairs by an attribute of both ends, however they are protected."""

    question: PairQuestion

    @classmethod
    def ask(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> PairQuestion:
        """What a flow or a graph asks of jobs, given the codes of the attributes."""
        codes = cls._codes(table, data, codelists)
        by = tuple(cls._dimension(table, data, codes, name, name) for name in table.by)
        ends = tuple(cls._dimension(table, data, codes, name, of) for name, of in table.end_names().items())
        workers = table.graph is not None and table.graph.between == "workers"
        _refuse_other_ends(table, data, workers=workers)
        _refuse_beside(table, data, workers=workers)
        filters = {name: (name, (True, True)) for name in table.where if _is_of_end(name, data, workers=workers)}
        filters |= table.end_filters(data.attributes)
        where = table.where if table.directed else _in_order(table.where, filters)
        asked = table.flow or table.graph
        return PairQuestion(
            by=(*ends, *by),
            attributes=table.ends,
            kind="graph" if table.flow is None else "flow",
            between="workers" if workers else "employers",
            weight=_WEIGHTS[asked.weight if asked else "edges"],
            directed=table.directed,
            rule=rule_of(table),
            where=where,
            filters=filters,
            loops=table.graph is not None and table.graph.loops,
        )

    @property
    def lists_structural_zeros(self) -> bool:
        """Every pair of codes is listed, and which employers share a worker is not public."""
        return False

    @property
    def where(self) -> Mapping[str, tuple[str, ...]]:
        """The codes that are kept of attributes other than those by which ends are classified: these have their own."""
        return {name: codes for name, codes in self.question.where.items() if name not in self.question.attributes}

    def statistic_words(self) -> list[Any]:
        """What is counted, beside the dimensions."""
        asked, loops = self.question, ["loops"] if self.question.loops else []
        return [asked.kind, asked.between, asked.weight, asked.directed, asked.rule, *loops, list(asked.attributes)]

    def words_in_any_order(self) -> list[Any]:
        """The two ends of a directed pair are dimensions with names of their own, and stay apart."""
        return [*self.statistic_words()[:-1], sorted(self.question.attributes)]

    def words_as_laid_out(self, by: Any) -> list[Any]:
        """The attributes of the ends in the order in which an answer has them."""
        ends = self.table.end_names()
        return [*self.statistic_words()[:-1], [ends.get(d.name) for d in by[: len(self.question.attributes)]]]

    def laid_out(self, answer: Cells) -> Cells:
        """Cells in the order of the dimensions and codes of the table.

        Pairs that are not directed are listed once, and which end comes first depends on the order.
        """
        found, asked = answer.laid_out(self.by), self.question
        if found is answer or asked.directed:
            return found
        ends = len(asked.attributes)
        classes, others = (
            int(np.prod(list(map(len, part)), initial=1)) for part in (asked.by[:ends], asked.by[2 * ends :])
        )
        both, other = np.divmod(found.positions, others)
        first, second = np.divmod(both, classes)
        positions = (np.minimum(first, second) * classes + np.maximum(first, second)) * others + other
        order = np.argsort(positions, kind="stable")
        columns = {name: column[order] for name, column in found.columns.items()}
        return Cells(dimensions=found.dimensions, positions=positions[order], columns=columns)

    def describe(self, plan: Surroundings, chunks: Any = None) -> dict[str, Any]:
        """The table in the structure of a bundle, the ends of its filters in one order."""
        where = {name: list(codes) for name, codes in self.question.where.items()}
        return {**super().describe(plan, chunks), "where": where}

    @property
    def is_listed_once(self) -> bool:
        """Pairs without a direction are."""
        return not self.table.directed

    def structural_zeros(self, plan: Surroundings, *, listed: bool) -> str:  # noqa: ARG002 (other kinds look at them)
        """Every pair of codes is listed, and which employers share a worker is not public."""
        return "none known: every pair of codes is listed" + ("" if self.table.directed else ", each once")

    def made_labels(self, data: Data) -> dict[str, str]:
        """The words for the two ends of a pair."""
        made = {**self.table.end_names(), **self._filtered_ends}.items()
        return {end: f"{data.label(name)}, {end.removesuffix('_' + name)}" for end, name in made}

    def made_codelists(self, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:
        """The codelists of both ends."""
        made = {**self.table.end_names(), **self._filtered_ends}
        return {end: codelists[attribute] for end, attribute in made.items()}

    @property
    def _filtered_ends(self) -> dict[str, str]:
        """The names of filters of one end, each with its attribute."""
        return {name: of for name, (of, _) in self.question.filters.items() if name != of}


@dataclass(frozen=True, kw_only=True)
class Pairs(PairTable, PanelStatistic):
    """Pairs of employers or of workers with permanent factors: flows and graphs."""

    question: PairQuestion
    method: InfusedSums

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and (
            table.statistic == "graph" or (table.statistic == "flow" and is_keyed(table.protect.method))
        )

    @classmethod
    def build_method(
        cls,
        table: Table,
        data: Frame,
        question: PairQuestion,
        *,
        alpha: Fraction | None,  # noqa: ARG003
    ) -> Method:
        """The method that protects a table, with its parameters."""
        name = cls.method_name(table, data)
        epsilon_of(table, name)
        options = {"minimum": SMALLEST_PAIR_CELL, **used_options(table, "form", "edges")}
        known = {"directed": question.directed, "ends": len(question.attributes), "earnings": question.of_earnings}
        return build(name, options=options, of_table=known)

    @classmethod
    def why_whole(cls, table: Table, question: PairQuestion, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why a table cannot be made in chunks."""
        return f"a {table.statistic}: cells below the minimum may be made up from a model of all others"

    @property
    def rounds_earnings(self) -> bool:
        """Where pairs are weighted by earnings."""
        return self.question.of_earnings

    @property
    def values_of_one_employer(self) -> int:
        """How many values may hold the factor of one employer alone, over the life of a key."""
        asked, own = self.question, len(self.question.attributes)
        beside = prod(len(d) for d in asked.by[2 * own :] if d.name != self.period)
        classes = prod(len(dimension) for dimension in asked.by[:own])
        # An employer is one end of its pairs; workers who share it can have any two classes.
        found = classes * (1 + asked.directed) if asked.between == "employers" else classes * (classes + 1) // 2
        return found * beside * self._lasting_values

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: OpenJobs) -> None:
        """Refuse what would fail later: identifiers, attributes of jobs, earnings beyond 64 bits, too many workers."""
        if any(one.question.rule == "twelve-characters" for one in batch.values()):
            refuse_other_lengths(data.frame, data.tables)
        for question in (one.question for one in batch.values()):
            asked = question.looks_at - {data.frame.jobs.period}
            about = {name: name for name in asked if not data.frame.is_public(name)}
            if about:
                people(data.frame, data.tables, about)
            refuse_too_many(data.frame, data.tables, question)
            if question.kind == "graph" and question.of_earnings:
                refuse_large_earnings(data.frame, data.tables, question.selection)

    @classmethod
    def tabulate(cls, batch: Mapping[str, Self], data: OpenJobs, secret: Secret | None) -> Iterator[tuple[str, Cells]]:
        """The true cells of every flow and graph."""
        questions = {name: one.question for name, one in batch.items()}
        yield from pairs(data.frame, data.tables, questions, cls._factors(secret)).items()

    def attacks(self, counted: Cells, answer: Cells, secret: Secret | None) -> tuple[Any, ...]:
        """What one permanent factor leaves open where it has the cells of two classes to itself."""
        bases = self.roundings
        if bases is None or secret is None:
            raise ValueError("flows and graphs are protected by factors")
        ends = (int((secret.a - 1) * ONE), int((secret.b - 1) * ONE))
        base = bases[1] if self.rounds_earnings else bases[0]
        return attack_pairs(self.question, counted, answer, period=self.period, base=base, within=ends)

    def network(self, counted: Cells, answer: Cells) -> NetworkComparison:
        """How centralities and path lengths between classes compare with the true ones."""
        true, published = (
            ClassNetwork.of(self.question, cells, cells[column])
            for cells, column in ((counted, "count"), (answer, "value"))
        )
        return compare_networks(self.title, true, published)

    @property
    def attacked(self) -> str:
        """Whom attacks are on."""
        return "pairs that have the cells of two classes to themselves"

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        lacking = {"rse", *NOISED, "establishments"}
        return frozenset(lacking if self.method.convergence else {*lacking, "convergence_ratio"})

    def columns_of(self, answer: Cells, shown: Cells) -> Columns:
        """Values with their status and, where it is asked for, the convergence ratio of cells with many factors."""
        columns = super().columns_of(answer, shown)
        if self.method.convergence:
            ratio = answer["convergence"] / HUNDREDTHS
            columns["convergence_ratio"] = np.where(ratio > 0, ratio, np.nan)
        return columns

    def column_texts(self, plan: Surroundings) -> dict[str, str]:
        """What each published column says."""
        texts = super().column_texts(plan)
        return {**texts, **({"convergence_ratio": CONVERGENCE} if self.method.convergence else {})}

    def _done(self) -> str:
        text = ""
        if self.question.between == "employers":
            text += (
                " A pair of employers takes the factor of one of them, always the same one, whichever way workers move."
            )
        return text + self._below("cells with fewer workers than" if self.question.of_earnings else "values below")


def rule_of(table: Table) -> Rule:
    """By which rule an edge takes the factor of one of its two employers."""
    rule = table.protect.options.get("edges", "keyed")
    if rule not in ("keyed", "twelve-characters"):
        raise ReleaseError(
            f"table '{table.name}', edges",
            expected='"keyed" or "twelve-characters": which of its two employers\' factors an edge takes',
            found=repr(rule),
            do="leave it out, or choose one of them",
        )
    return "keyed" if rule == "keyed" else "twelve-characters"


def _refuse_other_ends(table: Table, frame: Frame, *, workers: bool) -> None:
    """Refuse attributes that do not describe the ends of pairs, and jobs that do not name their worker."""
    for name in table.ends:
        if frame.is_public(name) == workers or name == frame.jobs.period:
            raise ReleaseError(
                f"table '{table.name}', attribute '{name}'",
                expected=f"an attribute of {'workers' if workers else 'workplaces (listed in `public`)'}",
                found="another",
                do="choose another attribute, or correct `public`",
            )
    if frame.jobs.worker is None or frame.joined:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="jobs that name their worker, and a table of workplaces",
            found="no workplaces" if frame.joined else "no `worker` in jobs",
            do="describe both under [data]",
        )


def _is_of_end(name: str, frame: Frame, *, workers: bool) -> bool:
    """Whether an attribute is one of the ends of pairs: of workers, or of workplaces."""
    return name in frame.attributes and name != frame.jobs.period and frame.is_public(name) != workers


def _in_order(
    where: Mapping[str, tuple[str, ...]], filters: dict[str, tuple[str, tuple[bool, bool]]]
) -> dict[str, tuple[str, ...]]:
    """The filters of pairs without a direction, in one order of their ends, as either may be written first."""
    sides: tuple[dict[str, tuple[str, ...]], ...] = ({}, {})
    of_one = {name: filters.pop(name) for name in [name for name, (of, _) in filters.items() if name != of]}
    for name, (of, ends) in of_one.items():
        sides[ends.index(True)][of] = where[name]
    kept = {name: codes for name, codes in where.items() if name not in of_one}
    ordered = sorted(sides, key=lambda side: sorted((of, sorted(codes)) for of, codes in side.items()), reverse=True)
    for end, side, ends in zip(ENDS[False], ordered, ((True, False), (False, True)), strict=True):
        filters |= {f"{end}_{of}": (of, ends) for of in side}
        kept |= {f"{end}_{of}": codes for of, codes in side.items()}
    return kept


def _refuse_beside(table: Table, frame: Frame, *, workers: bool) -> None:
    """Refuse to divide pairs by, or to choose them by, what they do not have."""
    end, link = ("worker", "workplaces") if workers else ("workplace", "workers")
    for name in table.by:
        if _is_of_end(name, frame, workers=workers):
            raise ReleaseError(
                f"table '{table.name}', '{name}'",
                expected=f"the period or attributes of {link} beside the two ends",
                found=f"an attribute of {end}s, of which a pair has two",
                do=f"add it to the attributes of the {table.statistic}",
            )
    if table.directed and table.graph is not None and frame.jobs.period in table.by:
        raise ReleaseError(
            f"table '{table.name}', directed",
            expected="a graph over several periods: its direction is where a worker was first",
            found=f"a graph for each {frame.jobs.period}",
            do=f"leave out `directed`, or '{frame.jobs.period}' in `by`",
        )
    needs_panel = table.directed or table.of_earnings
    if needs_panel and frame.span is None:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="a panel, which tells earnings and who was where first",
            found="jobs without a period",
            do="describe `period`, `first`, `last` and `earnings` of the jobs, or count pairs",
        )
    for name, (of, _) in table.end_filters(frame.attributes).items():
        if workers or of in table.ends or not frame.is_public(of):
            raise ReleaseError(
                f"table '{table.name}', where {name}",
                expected="an attribute of employers by which the ends are not classified, for one end",
                found=f"'{of}'",
                do=f"choose by '{of}' for both ends; rows of one end are chosen by the reader",
            )


_WEIGHTS: dict[str, Weight] = {
    "edges": "edges",
    "workers": "multiplicity",
    "employers": "multiplicity",
    **{weight: weight for weight in EARNINGS},
}
"""What a release file says of the weight, and what it is called in digests."""
