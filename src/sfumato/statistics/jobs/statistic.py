"""Counts of jobs: what they ask, how they are protected, and what is published of them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import prod
from typing import Any, Self, cast

from sfumato.cells import Cells, Dimension
from sfumato.engine.chunks import MOST_CELLS, Chunked
from sfumato.engine.data import OpenJobs
from sfumato.engine.factors import factors_of
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.frame.data import Frame
from sfumato.frame.measured import population_words
from sfumato.keys import Secret
from sfumato.measures.risk import EMPLOYER
from sfumato.measures.views import Strata
from sfumato.method import CONFIDENCE, FOR_THE_LARGEST, Method, bought_epsilon
from sfumato.noise.factors import LIFE
from sfumato.privacy.blocks import EVERYTHING, Block
from sfumato.privacy.guarantee import Guarantee, plain
from sfumato.privacy.meaning import Comparison, comparisons, existence_comparison, odds
from sfumato.statistics.column_texts import ESTABLISHMENTS_KNOWN, number_left_out, typical
from sfumato.statistics.fitting import (
    epsilon_of,
    refuse_other_data,
    refuse_telling_establishments,
    refuse_unknown_codes,
    used_options,
)
from sfumato.statistics.jobs.at_periods import (
    counted,
    method_of,
    moved_by_record,
    over_periods,
    periods_of,
    shared_options,
    spent_at,
)
from sfumato.statistics.jobs.noise_infusion import COIN
from sfumato.statistics.jobs.question import COLUMNS, THRESHOLD, Question
from sfumato.statistics.jobs.tabulate import as_in, blocks_of, parted, strata_by, tabulate
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.registry import METHODS, build, is_free, needs
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

WHOLE_WORKFORCES = frozenset({"vector-pareto", "vector-bell", "auto", "auto-bell"})
"""Methods whose published error figures need all workers of an establishment in the table."""
ESTABLISHMENTS = (1, 10)
"""Whether there is an establishment is compared for one of so many workers."""
LIVE_TELLS = "Answers to ad-hoc questions tell it, of every combination of codes that is asked for."
SPARSE = "sparse-laplace"
"""The method of counts in cells too many to be listed all, which are a kind of their own."""


@dataclass(frozen=True, kw_only=True)
class JobCounts(PublishedTable):
    """Jobs counted by attributes of workplaces and workers."""

    question: Question

    @classmethod
    def fits(cls, table: Table, data: Any) -> bool:
        """Whether a table of these data is of this kind."""
        return bool(data.of_jobs) and table.statistic == "count" and table.protect.method != SPARSE

    @classmethod
    def method_name(cls, table: Table, data: Frame) -> str:
        """The method as it is used.

        Smooth Pareto protects a table by worker attributes as one vector. That is strong and costs epsilon once. The
        scalar form, one number at a time, is weak; it is used when the release asks for it (`form = "scalar"`) and
        where workers are filtered: then the largest employer may have more workers than the table, and a vector's error
        figures would understate.
        """
        protect = table.protect
        filtered = [name for name in table.where if not data.is_known(name)]
        if filtered and protect.method in WHOLE_WORKFORCES:
            raise ReleaseError(
                f"table '{table.name}', method '{protect.method}'",
                expected="a table of all workers: its error figures need their total",
                found=f"`where` on {', '.join(filtered)}",
                do="put the attribute into `by`, or use another method: node-laplace, or smooth-pareto where the "
                "budget is weak",
            )
        by_workers = any(not data.is_known(name) for name in table.by)
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

    @classmethod
    def ask(cls, table: Table, data: Frame, codelists: Mapping[str, Codelist]) -> Question:
        """What a table asks of jobs, given the codes of the attributes."""
        method = cls.method_name(table, data)
        refuse_other_data(table, data)
        return cls.question_of(table, data, codelists, method, instead='["employment"] to count the jobs')

    @classmethod
    def question_of(
        cls, table: Table, data: Frame, codelists: Mapping[str, Codelist], method: str, *, instead: str
    ) -> Question:
        """What is asked of jobs, codes checked; `instead` are indicators that keyed methods publish of a panel."""
        codes = {name: codelist.codes for name, codelist in codelists.items()}
        if data.span is not None and data.jobs.period is not None:
            codes[data.jobs.period] = data.span.codes()
        refuse_unknown_codes(table, codes)
        periods = periods_of(table, data, method, instead=instead)
        by = tuple(
            Dimension(name=name, codes=table.kept(name, codes[name]), public=data.is_known(name)) for name in table.by
        )
        threshold = table.protect.options.get("threshold", THRESHOLD)
        every_cell = not (table.establishments or is_free(method) or data.joined)
        if every_cell:
            refuse_telling_establishments(table, method, data)
        return Question(
            by=by,
            where=table.where,
            needs=needs(method),
            threshold=threshold,
            every_cell=every_cell,
            population=data.jobs.population if periods else "",
            periods=periods,
        )

    @classmethod
    def build_method(cls, table: Table, data: Frame, question: Question, *, alpha: Fraction | None) -> Method:
        """The method that protects a table, with its parameters; `alpha` is the budget's."""
        name = cls.method_name(table, data)
        make = partial(
            build,
            name,
            alpha=alpha if table.protect.alpha is None else table.protect.alpha,
            worker_cells=question.worker_cells(data),
            options=shared_options(used_options(table, "form"), len(question.periods)),
        )
        epsilon = epsilon_of(table, name, each=bool(question.periods) and not cls.sparse)
        return cast(Method, method_of(table, data, question, epsilon, make))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is promised of the jobs of all periods together; each period spends a part of what the table does."""
        each = self.method.guarantee()
        return each if each.bound is None else over_periods(self.method, self.question, *counted(self.question))

    @property
    def spent_at(self) -> Mapping[str, Fraction]:
        """The epsilon that each period of a panel spends."""
        return spent_at(self.method, self.question, self.spends)

    @property
    def moved_by_record(self) -> Mapping[int, int]:
        """One job less in every period that looks at the record."""
        return moved_by_record(self.question)

    @property
    def why_not_reconciled(self) -> str | None:
        """Why it may not be made to agree with others."""
        apart = "its periods spend different epsilons, so that its errors are not alike"
        return apart if self.table.protect.by_period else super().why_not_reconciled

    @classmethod
    def block_of(cls, question: Question, data: Frame) -> Block:
        """The establishments with the codes that are kept of public attributes, where a register tells their codes.

        In a joined table the codes of an establishment are those of its jobs, and it has none without them. What else
        decides the code of an establishment defines the attribute: only filters of one definition are compared.
        """
        if data.joined or data.workplaces is None:
            return EVERYTHING
        kept = {name: codes for name, codes in question.where.items() if name in data.attributes}
        # Codes that are made of dates or numbers follow from how these are read, which no definition tells.
        read, dated = data.attributes, data.dated()
        kept = {n: c for n, c in kept.items() if read[n].classes is None and data.column_of(n) not in dated}
        kept = {name: codes for name, codes in kept.items() if data.is_public(name)}
        links = [data.jobs.workplace, data.workplaces.key, repr(data.only)]
        made = {n: [n, data.column_of(n), data.rule(n), sorted(data.counted_in(n)), *links] for n in kept}
        return Block.of(kept, {name: json.dumps(definition, sort_keys=True) for name, definition in made.items()})

    @classmethod
    def countable(cls, data: Frame, question: Question) -> frozenset[str]:
        """The columns that the engine can supply."""
        # Establishments without jobs are in no joined table, so their number is not known there.
        return COLUMNS - {"establishments"} if data.joined or question.every_cell else COLUMNS

    @classmethod
    def why_whole(cls, table: Table, question: Question, *, reconciled: bool) -> str | None:
        """Why a table cannot be made in chunks, as words that follow "found"; None when it can."""
        if reconciled:
            return "reconcile = true: each cell is changed by the values of all others, in all tables that are to agree"
        if table.structural_zeros == "listed":
            return 'structural_zeros = "listed": a table in parts lists the cells that have an establishment'
        if table.protect.options.get("small_cells", COIN) != COIN:
            return 'small_cells = "posterior": each small count is drawn by the small counts of the whole table'
        if not (table.establishments or question.every_cell):
            return "establishments = false: a table in parts lists the cells that have an establishment"
        return None

    @classmethod
    def lists_some(cls, table: Table, data: Any, question: Question) -> bool:
        """Whether only cells in which there is an establishment are made, so that combinations may be very many."""
        return not (data.joined or question.every_cell or table.structural_zeros == "listed")

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: OpenJobs) -> None:
        """Refuse a register whose establishments are in more cells than a table in one piece can have."""
        for name, one in batch.items():
            if one.in_chunks or one.cells <= MOST_CELLS or cls.sparse:
                continue
            blocks = blocks_of(data.frame, data.tables, as_in(data.frame, one.question)).select("_block").distinct()
            listed = blocks.number() * max(one.question.worker_cells(data.frame), 1)
            if listed > MOST_CELLS:
                raise ReleaseError(
                    f"table '{name}'",
                    expected=f"at most {MOST_CELLS:,} cells in which there is an establishment",
                    found=f"{listed:,}",
                    do="use fewer or coarser attributes, split the table with `where`, or leave out what keeps it in "
                    "one piece, such as reconcile = true",
                )

    @property
    def values_of_one_employer(self) -> int:
        """How many values may hold the factor of one employer alone, over the life of a key; 0 without factors."""
        if self.roundings is None:
            return 0
        inside = [dimension for dimension in self.by if not dimension.public]
        return prod(map(len, inside)) * LIFE

    def in_whole_numbers(self) -> Self:
        """The same table before rounding and the draw of small counts could be chosen."""
        whole = super().in_whole_numbers()
        return whole if self.roundings is None else whole.with_method(small_cells=COIN)

    def _note(self, data: str) -> str:
        """Of a method of another package, the ledger keeps whose it was."""
        package = METHODS.package_of(self.method)
        return f"{self.method.name} of {package}" if package else super()._note(data)

    @classmethod
    def tabulate(cls, batch: Mapping[str, Self], data: OpenJobs, secret: Secret | None) -> Iterator[tuple[str, Cells]]:
        """The true cells of every table: one scan of the jobs for all."""
        questions = {(name, part): one for name, whole in batch.items() for part, one in whole.questions().items()}
        factors = None if secret is None else factors_of(secret)
        found = tabulate(data.frame, data.tables, questions, factors)
        for name, one in batch.items():
            yield name, one.counted_together({part: found[name, part] for part in one.questions()})

    def questions(self) -> dict[str, Question]:
        """What is tabulated for it, by name: one question, unless it is made of several."""
        return {"": self.question}

    def counted_together(self, found: Mapping[str, Cells]) -> Cells:
        """The true cells, of what was tabulated."""
        return found[""]

    @classmethod
    def tabulate_in_chunks(
        cls, batch: Mapping[str, Self], data: OpenJobs, secret: Secret | None
    ) -> AbstractContextManager[Mapping[str, Chunked]]:
        """Counts of jobs that are cut into chunks."""
        questions = {name: one.question for name, one in batch.items()}
        numbers = {name: one.table.parts for name, one in batch.items()}
        factors = None if secret is None else factors_of(secret)
        return parted(data.frame, data.tables, questions, numbers, factors)

    def statistic_words(self) -> list[Any]:
        """What is counted, as digests have it: with cells where there is no establishment it is another answer."""
        every, asked = ["every cell"] if self.question.every_cell else [], self.question
        at = [["at", asked.population, *sorted(asked.periods)]] if asked.periods else []
        return [*super().statistic_words(), *every, *at]

    def to_assess(self) -> Self:
        """With whole workforces: under the strong definition, what one step changes follows from them."""
        bound = self.guarantee.bound
        if bound is None or bound.definition != "strong":
            return self
        return replace(self, question=replace(self.question, needs=self.question.needs | {EMPLOYER}))

    @property
    def counts_jobs_formally(self) -> bool:
        """Whether a guarantee is about its noise, which every cell has."""
        return self.guarantee.bound is not None and not self.sparse

    @property
    def tells_establishments(self) -> bool:
        """Whether it tells where there is an establishment."""
        return not self.question.every_cell

    @property
    def lists_structural_zeros(self) -> bool:
        """Whether combinations without any establishment are rows: always, where they are cells like others."""
        return self.question.every_cell or super().lists_structural_zeros

    def strata(self, attribute: str, codelist: Codelist, data: OpenJobs, counted: Cells) -> Strata | None:
        """The class of a public attribute that every cell belongs to, whether it is a dimension of the table or not."""
        return strata_by(data, self.question, attribute, codelist, counted)

    @property
    def lacking_columns(self) -> frozenset[str]:
        """The columns that such a table does not have."""
        return frozenset({"rse", "status", "convergence_ratio"})

    def design(self) -> dict[str, Any]:
        """What noise its cells have, so that sums of them have errors too; of a panel, which jobs it is about."""
        population = {"population": self.question.population or "any"} if self.question.periods else {}
        return {**population, **self.noise_facts([dimension.name for dimension in self.by if dimension.public])}

    @property
    def about_jobs(self) -> str:
        """Which jobs of a panel it is about, as a sentence after others."""
        return f" It is about {population_words(self.question.population)}." if self.question.periods else ""

    def structural_zeros(self, plan: Surroundings, *, listed: bool) -> str:
        """What is known of combinations that are not listed."""
        if plan.release.frame.joined or self.question.every_cell:
            return super().structural_zeros(plan, listed=listed)
        return ESTABLISHMENTS_KNOWN[self.table.establishments, listed]

    def paragraph(self, plan: Surroundings, answer: Any = None) -> str:  # noqa: ARG002 (other kinds look at it)
        """What was done to its numbers."""
        text = f"{self.what_was_done()}{self.about_jobs} {typical(self.method.planned_error())}{self.has_none(plan)}"
        cells = self.question.worker_cells(plan.release.frame)
        if cells > 1 and getattr(self.method, "shares", 1) == cells:  # a vector method spends ε on all cells at once
            text += f" Each of the {cells} worker cells of a workplace cell uses 1/{cells} of the table's epsilon."
        if bought := bought_epsilon(self.method):
            text += (
                f" For epsilon = {plain(bought)} more, which is in what the table costs, the scale of that noise was "
                "released too, with noise of its own: `error`, `low` and `high` go by it."
            )
        if not (plan.release.frame.joined or self.lists_structural_zeros):
            text += " Combinations without any establishment, exactly 0, are not listed."
        if self.table.nonnegative:
            text += " Negative results were then raised to 0, as the release asked."
            if self.name in plan.reconciled:
                return f"{text} Then tables were made to agree, so that sums may be too high or too low."
            return f"{text} Sums over many small cells therefore come out too high; do not add them up."
        if self.guarantee.bound is None:
            return text + " Published numbers are not right on average: the factors stay what they are."
        if self.name in plan.reconciled:
            raised = any(table.table.nonnegative for table in plan.tables)
            text += "" if raised else " Nothing was clamped or suppressed, so a small cell can be negative."
            return text + " Then tables were made to agree."
        return (
            text
            + " Nothing was clamped or suppressed, so "
            + (
                "sums are unbiased and a small cell can be negative."
                if self.is_unbiased
                else "a small cell can be negative. Published numbers are not right on average, and sums of many "
                "neither."
            )
        )

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What is public of establishments, where some tables do not tell where there are any."""
        silent = [table for table in plan.tables if not table.tells_establishments]
        if not silent:
            return []
        data = plan.release.data
        text = (
            f"The attributes of workplaces ({', '.join(data.label(name).lower() for name in data.public)}) and their "
            "codes are regarded as public. "
        )
        if len(silent) < len(plan.tables):
            names = ", ".join(f"`{table.name}`" for table in silent)
            return [
                f"{text}Where there are establishments, and how many, is public in the other tables, and a combination "
                f"without any is exactly 0 there; {names} {'tells' if len(silent) == 1 else 'tell'} nothing of it."
                + number_left_out(plan.tables)
                + (f" {LIVE_TELLS}" if plan.release.live_tells_establishments and plan.release.live.budget else "")
            ]
        if plan.release.live_tells_establishments:
            return [f"{text}No table of this release tells where there are establishments. {LIVE_TELLS}"]
        found = [comparison.loss for comparison in _existence(plan)]
        return [
            f"{text}Whether there is an establishment is not told: every combination of codes was protected, also "
            "those without any. An establishment without workers changes no number of this release. One with workers "
            "is protected as its size is, and no further: whether there is none or one of "
            f"{' or '.join(f'{size:,}' for size in ESTABLISHMENTS)} workers, the odds change by "
            f"{', or by '.join(map(odds, found))}."
        ]

    @classmethod
    def comparisons(cls, plan: Surroundings) -> tuple[Comparison, ...]:
        """What is bounded beside what all tables of establishments bound: whether there is an establishment."""
        bound, existence = plan.guarantee.bound, _existence(plan)
        return (*comparisons(bound), *existence) if bound is not None and existence else ()

    @classmethod
    def operator_notes(cls, plan: Surroundings) -> list[str]:
        """That ad-hoc answers tell what tables leave out, where they would."""
        left_out = [table.name for table in plan.of_kind(cls) if not table.table.establishments]
        if not left_out or plan.release.budget is None or not plan.release.live_tells_establishments:
            return []
        return [
            f"{', '.join(left_out)} {'does' if len(left_out) == 1 else 'do'} not tell where there are establishments, "
            "but ad-hoc answers (`sfumato serve --live`) would: write establishments = false under [live] to keep it."
        ]

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:
        """How to read the error figures of counts with noise."""
        if all(table.guarantee.bound is None for table in plan.tables):
            return []
        sparse = any(table.method.name == SPARSE for table in plan.tables)
        bought = [f"`{table.name}`" for table in plan.tables if bought_epsilon(table.method)]
        return [
            ("In tables that list values of any size the" if sparse else "The")
            + " noise that was really drawn, and its scale, are confidential. The published figures are computed from "
            "the published value and the parameters alone. `error` is the mean absolute error the value would have if "
            "all its jobs were in one establishment, an upper estimate. `low` and `high` enclose the true value "
            f"with a probability of at least {CONFIDENCE:.0%}. No count is below 0: where a value is negative, `error` "
            "is at least as large as the value without its sign, and `low` and `high` enclose counts from 0 on. They "
            "speak of the noise only, not of errors in the data."
            + (
                f" All this is not about {', '.join(f'`{name}`' for name in plan.reconciled)}, whose figures are those "
                "of agreed values, as is said above."
                if plan.reconciled
                else ""
            )
            + (f" Of {', '.join(bought)} a scale was released, too, as the next paragraph says." if bought else ""),
            *([_read_bought(", ".join(bought))] if bought else []),
            *_read_within(plan),
        ]


def _read_bought(names: str) -> str:
    """How to read the error figures of tables whose scale was released."""
    return (
        f"The scale of the noise of {names} was released with noise of its own, in the column `scale`, for a part of "
        "what these tables cost. There `error` supposes the largest establishment that this scale allows, which is "
        "exceeded in one of ten cases, and none larger than the value; `low` and `high` suppose one that is exceeded "
        f"in at most {FOR_THE_LARGEST:.0%} of cases, which they make up for. Where one establishment has nearly all "
        "jobs of a cell, `error` may be some per cent too small. Coarser tables are told by these scales as by values."
    )


def _read_within(plan: Surroundings) -> list[str]:
    """How to read the error figures of tables of which finer ones tell how large an establishment can be."""
    counts = [table for table in plan.tables if table.counts_jobs_formally]
    named = {name for table in counts for name in (*(one.name for one in table.by), *table.where)}
    public = [
        f"By public knowledge establishments have at most so many workers, by `{name}`: "
        + ", ".join(f"{code} {most:,}" for code, most in sizes.items())
        + ". `error`, `low` and `high` suppose no larger ones."
        for name in plan.release.data.attributes
        if name in named and (sizes := plan.most_workers(name))
    ]
    if not plan.finer_tables:
        return public
    told = "; ".join(
        f"`{name}` by {', '.join(f'`{other}`' for other in finer)}" for name, finer in plan.finer_tables.items()
    )
    return [
        *public,
        "Where a finer table of this release tells how large an establishment of a cell can be, `error`, `low` and "
        f"`high` suppose no larger one: {told}. The largest establishment lies in one cell of the finer table, and has "
        "at most as many jobs as that cell, of which the published value gives an upper end. That end is exceeded in "
        f"at most {FOR_THE_LARGEST:.0%} of cases, which intervals make up for. Where one establishment has nearly all "
        "jobs of a cell, `error` may be a few per cent too small. Only published numbers and public facts go into it.",
    ]


def _existence(plan: Surroundings) -> tuple[Comparison, ...]:
    """How far no establishment is from one with some workers, where no table tells which there are."""
    bound = plan.guarantee.bound
    told = plan.release.live_tells_establishments or any(table.tells_establishments for table in plan.tables)
    if bound is None or told:
        return ()
    return tuple(existence_comparison(bound, size) for size in ESTABLISHMENTS)
