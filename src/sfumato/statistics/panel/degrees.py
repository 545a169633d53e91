"""Employers by how many others they are linked to: the spread of degrees and strengths, protected."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells, Dimension
from sfumato.engine.chunks import positions_of
from sfumato.engine.connect import Tables
from sfumato.engine.data import OpenJobs
from sfumato.engine.query import text, texts
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.keys import Secret
from sfumato.method import Method
from sfumato.noise.factors import ONE, Factors
from sfumato.noise.keyed import hashes
from sfumato.statistics.column_texts import NOISED
from sfumato.statistics.fitting import epsilon_of, used_options
from sfumato.statistics.panel.pairs import SMALLEST_PAIR_CELL, rule_of
from sfumato.statistics.panel.question import PairQuestion, Selection
from sfumato.statistics.panel.section import degree_codes
from sfumato.statistics.panel.statistic import PanelStatistic, refuse_options_of_pairs
from sfumato.statistics.panel.tabulate_graph import people
from sfumato.statistics.panel.tabulate_pairs import edge_givers, fetch_edges, refuse_other_lengths
from sfumato.statistics.panel.tabulate_workers import PairSums
from sfumato.statistics.registry import build
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

NAME = "degree"
"""The dimension of the classes."""


@dataclass(frozen=True, kw_only=True)
class DegreeQuestion:
    """Employers by attributes and by the class of their degree, or of their strength."""

    by: tuple[Dimension, ...]
    """Attributes of workplaces, and last the classes."""
    weight: Literal["edges", "workers"]
    bounds: tuple[int, ...]
    rule: Literal["keyed", "twelve-characters"] = "keyed"
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Codes of workers and periods, which choose the jobs that link, and of workplaces, which choose who is counted."""

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute whose values decide the answer."""
        return frozenset([*(dimension.name for dimension in self.by[:-1]), *self.where])

    @property
    def cells(self) -> int:
        """The number of cells."""
        return prod(map(len, self.by))

    def selection(self, frame: Frame) -> Selection:
        """Which jobs make links."""
        chosen = {name: codes for name, codes in self.where.items() if not frame.is_public(name)}
        return Selection(where=tuple(sorted((name, tuple(sorted(codes))) for name, codes in chosen.items())))


def degrees(
    frame: Frame, tables: Tables, questions: Mapping[str, DegreeQuestion], factors: Factors
) -> Iterator[tuple[str, Cells]]:
    """Answer every question with its cells.

    `count` has the employers by their true degree. In `distorted` each employer counts with its factor, in the class of
    its degree with the factor of every edge: neither what is counted nor where enters as it is.
    """
    edges: dict[Selection, pa.Table] = {}
    for name, question in questions.items():
        selected = question.selection(frame)
        if selected not in edges:
            edges[selected] = fetch_edges(frame, tables, selected)
        yield name, _counted(frame, tables, question, factors, edges[selected])


def _counted(frame: Frame, tables: Tables, question: DegreeQuestion, factors: Factors, edges: pa.Table) -> Cells:
    if tables.workplaces is None or frame.workplaces is None:
        raise ValueError("degrees need the table of workplaces")
    register, places = tables.workplaces, question.by[:-1]
    named = list(dict.fromkeys([*(d.name for d in places), *(n for n in question.where if frame.is_public(n))]))
    found = register.select(_name=text(register, frame.workplaces.key), **texts(register, named)).fetch()
    found = found.take(pc.sort_indices(found["_name"]))  # in one order on every engine
    employers = found["_name"].combine_chunks().cast(pa.string())
    first, second = (pc.index_in(edges[end].cast(pa.string()), employers).to_numpy() for end in ("_first", "_second"))
    links = edges["_links"].to_numpy().astype(np.int64)
    label = links if question.weight == "workers" else np.ones_like(links)
    asked = PairQuestion(by=(), attributes=(), kind="graph", rule=question.rule)
    owned = factors.of(hashes(employers))
    given = owned[edge_givers(employers, first.astype(np.int64), second.astype(np.int64), asked, factors)]

    def degree(values: Integers) -> Integers:
        summed = np.zeros(len(employers), dtype=np.int64)
        for end in (first, second):
            np.add.at(summed, end.astype(np.int64), values)
        return summed

    kept: Flags = np.ones(len(employers), dtype=np.bool_)
    for name in named:
        codes = question.where.get(name)
        if codes is not None:
            kept &= pc.is_in(found[name].cast(pa.string()), value_set=pa.array(codes, pa.string())).to_numpy()
    block = positions_of(found.filter(pa.array(kept)), places, places)
    classes, bounds = len(question.by[-1]), np.array(question.bounds, dtype=np.int64)

    def cell(values: Integers) -> Integers:
        return block * classes + np.searchsorted(bounds, values[kept], side="right")

    distorted = cell(degree(label * given) // ONE)
    at = np.flatnonzero(kept)
    sums = PairSums.of(distorted, at, np.ones_like(at), factors=owned, cells=question.cells)
    true = np.bincount(cell(degree(label)), minlength=question.cells).astype(np.int64)
    columns = sums.columns(deviation=factors.deviation, edges=true, available=np.ones_like(true))
    del columns["edges"]
    positions = np.arange(question.cells, dtype=np.int64)
    return Cells(dimensions=question.by, positions=positions, columns={**columns, "count": true})


@dataclass(frozen=True, kw_only=True)
class Degrees(PanelStatistic):
    """Employers by the class of their degree or strength in the graph of employers."""

    question: DegreeQuestion

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and table.statistic == "degrees"

    @classmethod
    def ask(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> DegreeQuestion:
        """What a table asks of the graph, given the codes of the attributes."""
        codes = cls._codes(table, data, codelists)
        for name in table.by:
            if not data.is_public(name) or name == NAME:
                raise ReleaseError(
                    f"table '{table.name}', '{name}'",
                    expected="attributes of workplaces (listed in `public`), by which employers are counted",
                    found=f"'{name}'",
                    do="choose others; workers and periods can be chosen in `where`",
                )
        if data.jobs.worker is None or data.joined or table.degrees is None:
            raise ReleaseError(
                f"table '{table.name}'",
                expected="jobs that name their worker, and a table of workplaces",
                found="no workplaces" if data.joined else "no `worker` in jobs",
                do="describe both under [data]",
            )
        classes = Dimension(name=NAME, codes=degree_codes(table.degrees.bounds))
        return DegreeQuestion(
            by=(*(cls._dimension(table, data, codes, name, name) for name in table.by), classes),
            weight=table.degrees.weight,
            bounds=table.degrees.bounds,
            rule=rule_of(table),
            where=table.where,
        )

    @classmethod
    def build_method(
        cls,
        table: Table,
        data: Frame,
        question: DegreeQuestion,  # noqa: ARG003 (other kinds look at it)
        *,
        alpha: Fraction | None,  # noqa: ARG003 (there is no budget)
    ) -> Method:
        """The method that protects a table, with its parameters."""
        name = cls.method_name(table, data)
        epsilon_of(table, name)
        refuse_options_of_pairs(table)
        return build(name, options={"minimum": SMALLEST_PAIR_CELL, **used_options(table, "form", "edges")})

    @classmethod
    def why_whole(cls, table: Table, question: DegreeQuestion, *, reconciled: bool) -> str | None:  # noqa: ARG003
        """Why a table cannot be made in chunks."""
        return "degrees: an edge is known from all jobs of its workers"

    def statistic_words(self) -> list[Any]:
        """What is counted, beside the dimensions."""
        return ["degrees", self.question.weight, list(self.question.bounds), self.question.rule]

    @property
    def lists_structural_zeros(self) -> bool:
        """Which employers are linked is not public."""
        return False

    @property
    def values_of_one_employer(self) -> int:
        """An employer is in one class at a time."""
        return self._lasting_values

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: OpenJobs) -> None:
        """Refuse identifiers that the rule of an edge cannot read, and attributes of single jobs."""
        if any(one.question.rule == "twelve-characters" for one in batch.values()):
            refuse_other_lengths(data.frame, data.tables)
        for one in batch.values():
            about = [name for name, _ in one.question.selection(data.frame).where if name != data.frame.jobs.period]
            if about:
                people(data.frame, data.tables, {name: name for name in about})

    @classmethod
    def tabulate(cls, batch: Mapping[str, Self], data: OpenJobs, secret: Secret | None) -> Iterator[tuple[str, Cells]]:
        """The true cells of every table."""
        questions = {name: one.question for name, one in batch.items()}
        yield from degrees(data.frame, data.tables, questions, cls._factors(secret))

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"rse", *NOISED, "convergence_ratio", "establishments"})

    def structural_zeros(self, plan: Surroundings, *, listed: bool) -> str:  # noqa: ARG002 (other kinds look at them)
        """Every class is listed."""
        return "none known: every combination of codes is listed"

    def made_codelists(self, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:  # noqa: ARG002
        """The classes."""
        return {NAME: Codelist.of(self.question.by[-1].codes)}

    def _done(self) -> str:
        return (
            " An employer counts with its factor, in the class of its degree after every edge took a factor too."
            + self._below("values below")
        )
