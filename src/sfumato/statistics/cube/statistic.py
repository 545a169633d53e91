"""A cube of a release, planned: what it asks, how it is protected and what it costs, before any record is read."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product
from math import factorial, prod
from pathlib import Path
from typing import Any, ClassVar, Self

from sfumato.cells import Dimension
from sfumato.engine.data import OpenRecords
from sfumato.engine.units import within_limit
from sfumato.errors import DataError, ReleaseError, naming
from sfumato.frame.codelists import Codelist
from sfumato.frame.records import Microdata
from sfumato.keys import Secret
from sfumato.noise.randomness import OperatingSystem, Randomness
from sfumato.privacy.account import sequential
from sfumato.privacy.answers import Layout, layout_of
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee
from sfumato.privacy.meaning import Comparison, about_tables, record_comparisons
from sfumato.statistic import Statistic
from sfumato.statistics.cube import levels
from sfumato.statistics.cube.controls import Control, PublicTotals, read_totals, refuse_contradictions
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.cube_query import Rules
from sfumato.statistics.cube.describe import (
    CODES_ARE_PUBLIC,
    computed_without_noise,
    cube_structure,
    cube_text,
    cubes_in_words,
    cubes_leave_open,
    error_text,
    not_met,
)
from sfumato.statistics.cube.figures import Calibration, Figures, Sampling, fitted
from sfumato.statistics.cube.protect import parts_of, protected_cube, public_controls
from sfumato.statistics.cube.question import CubeQuestion, RecordTotals
from sfumato.statistics.cube.section import (
    COUNT,
    MEASURE_PARTS,
    WEIGHTED,
    CubeSection,
    RulesSection,
    table_name,
)
from sfumato.statistics.cube.stored import laid_out, read_figures, stored, with_columns
from sfumato.statistics.cube.tabulate import record_totals, replicate_estimates, tabulated_cube
from sfumato.statistics.cube.truncated_laplace import TruncatedLaplace, cube_method
from sfumato.surroundings import Surroundings

_MOST = 2.0**62
_MOST_ORDERS = 120
"""In how many orders of its controls a cube is looked for in ledgers of version 0.1."""
_ROOM = 2.0
"""How many times the expected magnitudes a cube must be able to hold."""


@dataclass(frozen=True, kw_only=True)
class CubeStatistic(Statistic):
    """A cube of records: every combination of codes with its numbers."""

    folder: ClassVar[str] = "cubes"
    section: CubeSection
    question: CubeQuestion
    method: TruncatedLaplace
    totals: tuple[PublicTotals, ...] = ()
    """Tables that are public already, which the cube is made to add up to as well."""
    weighted: bool = True
    """Whether the records have weights; without them the count is the weighted count, and the one column of it."""

    @property
    def classified_by(self) -> tuple[str, ...]:
        """The attributes of the cube."""
        return self.section.by

    @property
    def parts(self) -> Mapping[str, int]:
        """The columns that are published, each with the number it is divided by."""
        weighted = {WEIGHTED: MILLION} if self.weighted else {}
        return {COUNT: MILLION, **weighted, **dict.fromkeys(self.section.measures, MEASURE_PARTS)}

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the protected cube reveals at most, outside of what its statement excepts."""
        return self.method.guarantee()

    @property
    def is_covered(self) -> bool:
        """Whether a guarantee is about every number: not of columns with noise in averages, nor of disclosed tables."""
        return self.guarantee.bound is not None and not (self.method.further or self.method.exact_controls)

    @property
    def protects_units(self) -> bool:
        """Whether all records of one unit are hidden together."""
        return self.question.limit is not None

    @property
    def rules(self) -> Rules:
        """What the query tool marks."""
        return _rules(self.section)

    @property
    def rules_before(self) -> Rules:
        """What would be marked without noise: the same, unless the release says otherwise."""
        return self.rules if self.section.rules_before is None else _rules(self.section.rules_before)

    @property
    def margins(self) -> tuple[tuple[Dimension, ...], ...]:
        """The tables whose replicate variances tell how sampling errors depend on a total: one-way, and controls."""
        named = {dimension.name: dimension for dimension in self.question.by}
        tables = [(name,) for name in named] + [control.by for control in self.section.controls]
        return tuple(tuple(named[name] for name in by) for by in dict.fromkeys(tables) if by)

    def digest(self, data: str, *, any_key: bool = False) -> str:
        """Name this question to these data: the same name means that the stored answer is given again.

        In whatever order dimensions, codes, measures and controls are written, the question has one name.
        """
        named = {dimension.name: dimension for dimension in self.question.by}
        return self._digest(
            data,
            by=sorted([dimension.name, sorted(dimension.codes)] for dimension in self.question.by),
            measures=sorted(self.question.measures),
            method=self.method.in_order(),
            totals=sorted([list(totals.by), totals.digest()] for totals in (t.in_order(named) for t in self.totals)),
            any_key=any_key,
        )

    def digest_as_laid_out(
        self,
        data: str,
        layout: Layout | None = None,
        *,
        any_key: bool = False,
    ) -> str:
        """The name that version 0.1 gave this question when written as an answer is laid out, or as it is now."""
        by, measures = self.question.by, self.question.measures
        if layout is not None:
            by, measures = layout.by, tuple(name for name in layout.columns if name in measures)
        return self._digest(
            data,
            by=[[dimension.name, dimension.codes] for dimension in by],
            measures=measures,
            method=self.method,
            totals=[[totals.by, totals.digest()] for totals in self.totals],
            any_key=any_key,
        )

    def in_every_order(self) -> "Iterator[CubeStatistic]":
        """The same cube with its controls in every order in which they may be written; as it is, if these are many."""
        controls = self.method.controls
        lengths = [len(controls), len(self.totals), *(len(control.by) for control in controls)]
        if prod(map(factorial, lengths)) > _MOST_ORDERS:
            yield self
            return
        for names in product(*(permutations(control.by) for control in controls)):
            turned = [replace(control, by=by) for control, by in zip(controls, names, strict=True)]
            for ordered, totals in product(permutations(turned), permutations(self.totals)):
                yield replace(self, method=replace(self.method, controls=ordered), totals=totals)

    def can_be_laid_out_as(self, layout: Layout) -> bool:
        """Whether a stored cube has the dimensions, codes and measures that are asked for, in whatever order."""
        measures = set(layout.columns) - {dimension.name for dimension in layout.by} - {COUNT, WEIGHTED}
        return layout.is_by(self.question.by) and measures == set(self.question.measures)

    def _digest(
        self,
        data: str,
        *,
        by: list[Any],
        measures: Sequence[str],
        method: TruncatedLaplace,
        totals: list[Any],
        any_key: bool,
    ) -> str:
        asked: dict[str, object] = {
            "data": data,
            "links": self.links,
            "statistic": ["cube", measures, self.question.weight_unit, self.section.stratum],
            "by": by,
            "method": repr(method),
            "calibration": [self.section.calibration, self.section.nonnegative],
            **({"whole": True} if self.section.in_whole_numbers else {}),
            **({"draws": self.section.draws} if self.method.shared else {}),
            "sampling": None if self.section.sampling is None else self.section.sampling.model_dump(mode="json"),
        }
        if totals:
            asked["totals"] = totals
        limit = self.question.limit
        if limit is not None:  # another key keeps other records: that is another question, and charged
            asked["limit"] = [limit.column, limit.name, limit.most, "" if any_key else self.key]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def _as_asked(self, content: bytes) -> bytes:
        """The file of the stored cube in the order in which this one is written."""
        layout, asked = layout_of(content), self.question
        same = [(d.name, d.codes) for d in layout.by] == [(d.name, d.codes) for d in asked.by]
        if same and tuple(name for name in layout.columns if name in asked.measures) == asked.measures:
            return content
        return laid_out(content, asked.by, asked.measures)

    def may_have_cost(self, guarantee: Guarantee | None) -> bool:  # noqa: ARG002 (any)
        """The same cube may have had another guarantee, which an earlier version worked out otherwise."""
        return True

    def protect(self, true: Cube, randomness: Randomness) -> tuple[Cube, Figures]:
        """The perturbed and calibrated cube, with the figures for its errors."""
        return protected_cube(
            true,
            self.method,
            randomness,
            totals=self.totals,
            stratum=self.section.stratum,
            calibration=self.section.calibration,
            nonnegative=self.section.nonnegative,
            whole=self.section.in_whole_numbers,
        )

    @classmethod
    def refuse_unsuitable(cls, batch: Mapping[str, Self], data: OpenRecords) -> None:
        """Refuse records that a cube cannot hold or does not protect as stated, and totals that contradict them."""
        for cube in batch.values():
            cube.refuse_totals(record_totals(data.data, data.tables, cube.question.measures))
            if cube.disclosed:
                cube.refuse_contradictions([tabulated_cube(data.data, data.tables, one) for one in cube.disclosed])

    @classmethod
    def tabulate(
        cls,
        batch: Mapping[str, Self],
        data: OpenRecords,
        secret: Secret | None,
    ) -> Iterator[tuple[str, tuple[Cube, Sampling | None]]]:
        """The true cubes, one after the other because they are large, each with how sampling errors depend on a total.

        The variance function is fitted where there are replicate weights.
        """
        for name, cube in batch.items():
            with within_limit(data, cube.question.limit, secret) as kept:
                true, sampling = tabulated_cube(kept.data, kept.tables, cube.question), None
                if kept.data.records.replicates is not None:
                    measures, tables = cube.question.measures, kept.tables
                    sampling = fitted([replicate_estimates(kept.data, tables, by, measures) for by in cube.margins])
            yield name, (true, sampling)

    def answer(
        self,
        counted: tuple[Cube, Sampling | None],
        secret: Secret | None,  # noqa: ARG002 (it chose the records)
    ) -> tuple[Cube, Figures]:
        """The cube as it is published, with the figures for its errors."""
        true, sampling = counted
        cube, figures = self.protect(true, OperatingSystem())
        return cube, replace(figures, sampling=self.published_sampling(sampling))

    def content(self, answer: tuple[Cube, Figures]) -> bytes:
        """The cube as the content of a file."""
        return stored(*answer)

    def as_asked(self, content: bytes) -> bytes:
        """A stored answer in the order that is asked for; of a cube of version 0.1 without weights, one draw only."""
        return with_columns(self._as_asked(content), tuple(self.parts))

    def files(self, answer: bytes, agreed: Any = None, when: Any = None) -> dict[str, list[Callable[[], Any]]]:  # noqa: ARG002
        """The one file of the cube."""
        return {f"cubes/{self.name}.parquet": [lambda: answer]}

    def calibration(self, content: bytes | None) -> Calibration | None:
        """How well a published cube meets its controls."""
        return None if content is None else read_figures(content).calibration

    def unmet(self, content: bytes) -> Calibration | None:
        """How far a published cube misses its controls, where it does."""
        found = self.calibration(content)
        return None if found is None or found.converged else found

    def describe(self, plan: Surroundings, chunks: Any = None) -> dict[str, Any]:  # noqa: ARG002 (a cube is in one piece)
        """The cube in the structure of a bundle."""
        return cube_structure(plan, self)

    @classmethod
    def _together(cls, plan: Surroundings) -> EmployerEmployee | None:
        """What all tables and cubes reveal together of one record; where some bound nothing, cubes with a guarantee.

        None where there is none.
        """
        if plan.guarantee.bound is not None:
            return plan.guarantee.bound
        bounds = [cube.guarantee.bound for cube in plan.of_kind(cls)]
        found = [bound for bound in bounds if bound is not None]
        return sequential(found) if found else None

    @classmethod
    def in_short(cls, plan: Surroundings) -> list[str]:
        """What cubes protect."""
        return cubes_in_words(plan, cls._together(plan))

    @classmethod
    def comparisons(cls, plan: Surroundings) -> tuple[Comparison, ...]:
        """What cubes bound."""
        total = cls._together(plan)
        bounded = [] if plan.guarantee.bound else [cube.name for cube in plan.cubes if cube.guarantee.bound]
        return () if total is None else about_tables(record_comparisons(total), bounded)

    @classmethod
    def left_open(cls, plan: Surroundings) -> list[str]:
        """What cubes do not protect."""
        bounded = cls._together(plan) is not None
        return [" ".join([cubes_leave_open(plan) if bounded else CODES_ARE_PUBLIC, *computed_without_noise(plan)])]

    @classmethod
    def operator_notes(cls, plan: Surroundings) -> list[str]:
        """That some records are left out, and where to see how many."""
        return [
            f"{cube.name} counts at most {cube.question.limit.most:,} records of one {cube.question.limit.column}, and "
            "its noise hides as many. How many records that leaves out, and what another limit would cost, is "
            "confidential: `sfumato assess` tells it."
            for cube in plan.of_kind(cls)
            if cube.question.limit is not None
        ]

    @classmethod
    def reading_errors(cls, plan: Surroundings) -> list[str]:
        """How to read the error figures of the query tool."""
        return [error_text(plan)]

    def expected_error(self) -> tuple[str, str]:
        """How far a cell is typically off."""
        return f"{self.method.counts.expected_magnitude:.2g} records", "the same"

    def paragraph(self, plan: Surroundings, answer: bytes | None = None) -> str:  # noqa: ARG002 (tables look at it)
        """What was done to its numbers, and how well it met its controls."""
        return cube_text(self, self.calibration(answer))

    @property
    def disclosed(self) -> tuple[CubeQuestion, ...]:
        """The exact tables that must agree with public totals; without these they agree, being of the same records."""
        named = {dimension.name: dimension for dimension in self.question.by}
        return tuple(
            CubeQuestion(by=tuple(named[name] for name in control.by), weight_unit=self.question.weight_unit)
            for control in self.method.exact_controls
            if self.totals
        )

    def refuse_contradictions(self, disclosed: Sequence[Cube] = ()) -> None:
        """Refuse public totals that contradict each other or tables that are disclosed as they are, by name.

        With `nonnegative` also those that no cube without negative cells adds up to.
        """
        for column in (name for name in (COUNT, WEIGHTED) if name in self.parts):
            controls = public_controls(self.totals, column)
            controls += [
                Control(name=table_name(table.names), by=table.names, values=table[column] * parts_of(column))
                for table in disclosed
            ]
            with naming(f"cube '{self.name}', {column}"):
                refuse_contradictions(self.question.by, controls, nonnegative=self.section.nonnegative)

    def published_sampling(self, fitted: Sampling | None) -> Sampling | None:
        """The variance function that is published: under the strict guarantee none that was fitted to the data."""
        if not self.method.strict:
            return fitted
        stated = self.section.sampling
        return None if stated is None else Sampling(square=float(stated.square), linear=float(stated.linear))

    def refuse_totals(self, totals: RecordTotals) -> None:
        """Refuse records that the cube cannot hold or does not protect as stated, before anything is charged."""
        largest = self.section.largest_weight
        if largest is not None and totals.largest_weight > largest:
            raise DataError(
                f"cube '{self.name}', weights",
                expected=f"no weight above largest_weight = {largest:,}, which the noise is made for",
                found="a larger one",
                do="raise largest_weight, or trim the weights",
            )
        sums = {COUNT: (float(totals.records), 1.0), WEIGHTED: (totals.weights, totals.largest_weight)}
        sums |= {name: (totals.measures[name], totals.largest[name]) for name in self.question.measures}
        for column, parts in self.parts.items():
            total, most = sums[column]
            # An average within a stratum is at most the largest.
            scale = most if self.section.stratum is not None else total / max(totals.records, 1)
            noise = self.method.counts.expected_magnitude * scale
            if column == WEIGHTED and self.method.weights is not None:
                noise = self.method.weights.expected_magnitude * self.method.weight_unit
            if _ROOM * parts * (total + self.cells * noise) >= _MOST:
                raise DataError(
                    f"cube '{self.name}', {column}",
                    expected=f"numbers whose sum with their noise stays below 2^62 parts of 1/{parts:,}, to be exact",
                    found="more",
                    do="use fewer attributes, a larger unit, or weights divided by the same number",
                )

    def compared_errors(self, heaviest: float | None = None) -> levels.Comparison:
        """What its counts are expected to be off by, beside other ways to spend the same budget; without any data.

        Of weighted records the heaviest that the noise of a table by itself would have to hide weighs so many averages.
        """
        public = [totals.by for totals in self.totals if COUNT in totals.columns]
        calibrated = self.section.calibration != "raking"
        heavy = None if heaviest is None else heaviest * self.method.counts.sensitivity
        most = heavy if self.weighted and not self.method.strict else 1.0  # a strict one hides the heaviest, too
        return levels.compared(self.question.by, self.method, public=public, calibrated=calibrated, most=most)

    def not_met(self, calibration: Calibration) -> str:
        """By how much it misses its controls, where it does, in words."""
        return not_met(self, calibration)


def plan_cube(
    section: CubeSection,
    data: Microdata,
    codelists: Mapping[str, Codelist],
    *,
    alpha: Fraction,
    secret: Secret | None = None,
) -> CubeStatistic:
    """Plan a cube; what cannot be protected as asked is refused here, by name."""
    limit = section.limit(data)
    weighted = data.records.weight is not None
    if not weighted:
        _need_no_weights(section)
    section = section.with_levels_as_controls()
    by = tuple(Dimension(name=name, codes=codelists[name].codes) for name in section.by)
    unit = section.weight_unit if section.sensitivity == "weight" else None
    planned = CubeStatistic(
        section=section,
        question=CubeQuestion(by=by, measures=section.measures, weight_unit=unit, limit=limit),
        method=cube_method(section, alpha=alpha, weighted=weighted),
        totals=_totals(section, by, data.folder, weighted=weighted),
        links=data.links() + data.derivations((*section.by, *section.measures)),
        weighted=weighted,
        key="" if limit is None or secret is None else secret.fingerprint,
    )
    planned.refuse_contradictions()
    return planned


def _rules(section: CubeSection | RulesSection) -> Rules:
    return Rules(
        least_count=section.least_count,
        largest_cv=None if section.largest_cv is None else float(section.largest_cv),
        least_weighted=float(section.least_weighted),
    )


def _need_no_weights(section: CubeSection) -> None:
    """Refuse a cube that asks for noise of weights where every record counts once."""
    if section.draws == "shared":
        raise ReleaseError(
            "draws",
            expected="records with a `weight`: without one there is no second column to share the noise with",
            found='draws = "shared"',
            do="leave out `draws`, or name the `weight` under [data] records",
        )
    if section.sensitivity == "weight":
        raise ReleaseError(
            "sensitivity",
            expected="records with a `weight`: without one every record counts once, and counts are covered anyway",
            found='sensitivity = "weight"',
            do="leave out `sensitivity`, `largest_weight` and `weight_unit`, or name the `weight` under [data] records",
        )


def _totals(
    section: CubeSection, by: tuple[Dimension, ...], folder: Path, *, weighted: bool
) -> tuple[PublicTotals, ...]:
    named = {dimension.name: dimension for dimension in by}
    found = tuple(read_totals(control, named, folder) for control in section.controls if control.totals is not None)
    for totals in found:
        if WEIGHTED in totals.columns and not weighted:
            raise ReleaseError(
                f"control '{totals.name}'",
                expected=f"totals in the column '{COUNT}': records without a `weight` have no weighted counts",
                found=f"the column '{WEIGHTED}'",
                do=f"call the column '{COUNT}' if it counts records, or leave it out",
            )
        below = WEIGHTED if weighted else COUNT
        if below in totals.columns and section.measures:
            raise ReleaseError(
                f"control '{totals.name}'",
                expected=f"no {'weighted totals' if weighted else 'totals of counts'} in a cube with measures: a mean "
                "would divide a sum that was not made to fit them by one that was",
                found=f"measures = {', '.join(section.measures)}",
                do=f"leave out the measures or the column '{below}', or publish two cubes",
            )
    return found
