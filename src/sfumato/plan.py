"""The plan of a release: guarantee, charge, cells and expected error of every table, before any record is read."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import prod
from typing import Any, Self, cast

from sfumato import __version__
from sfumato.asking import asked_before
from sfumato.cells import Cells
from sfumato.engine.chunks import IN_ONE_PIECE
from sfumato.errors import ReleaseError, naming
from sfumato.frame import Codelist, Frame
from sfumato.in_parts import is_in_parts
from sfumato.keys import Secret
from sfumato.method import ADDED, Method
from sfumato.microdata import Microdata
from sfumato.noise.factors import EARNINGS, LIFE, WHOLE_NUMBERS, least_base
from sfumato.noise.keyed import CellWords, Keyed
from sfumato.noise.randomness import OperatingSystem, Randomness
from sfumato.privacy.account import Charge, balance, sequential
from sfumato.privacy.answers import Layout
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, NoFormalGuarantee
from sfumato.question_names import as_laid_out, in_any_order, method_in_order, statistic_of
from sfumato.release import Release
from sfumato.statistics.cube.statistic import PlannedCube, plan_cube
from sfumato.statistics.cube.tabulate import CubeQuestion
from sfumato.statistics.jobs.question import COLUMNS, Question
from sfumato.statistics.panel.indicators import INDICATORS, NAME, ROUNDED_INDICATORS
from sfumato.statistics.panel.question import SUMS, IndicatorQuestion, PairQuestion
from sfumato.statistics.people.percentiles import NoisyQuantiles
from sfumato.statistics.people.question import AT, SAMPLES, SampleQuestion
from sfumato.statistics.people.samples import Samples
from sfumato.statistics.questions import Asked
from sfumato.statistics.registry import KEYED
from sfumato.statistics.table import LISTED_CELLS, Table
from sfumato.statistics.totals.question import TOTAL, ContributorQuestion
from sfumato.statistics.totals.top_contributors import TopContributors

KEY_NOTE = "key "
"""Begins the note of a charge that was answered with a key: its fingerprint, and the question under any key."""
MOST_CELLS = 50_000_000
"""Tables in one piece are held in memory; beyond this many cells a release is refused before it is charged."""
MOST_CELLS_IN_PARTS = 100_000_000_000
"""Of jobs, only the cells in which there is an establishment are made; of people, all."""


_PLACES = {"predict": "Predicted at {}", "quantiles": "Percentile {}", "mean": "Mean"}


@dataclass(frozen=True, kw_only=True)
class PlannedTable:
    """One table with what it asks and how it is protected."""

    table: Table
    question: Asked
    method: Method
    links: str = ""
    """How the tables of the frame hang together: another link between the same files is another question."""
    period: str = ""
    """The column with the period of a panel."""
    key: str = ""
    """The fingerprint of the key, when the method has one: another key gives another answer."""
    in_parts: bool = False
    """Whether the table is made part by part. That changes no number: an answer in one piece stays the answer."""
    before: "PlannedTable | None" = None
    """The table as an earlier version asked for it, where that was another question."""

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.table.name

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the protected table reveals at most."""
        return self.method.guarantee()

    @property
    def cells(self) -> int:
        """The number of cells in the product of the dimensions, structural zeros included."""
        return self.question.cells

    @property
    def classified_by(self) -> tuple[str, ...]:
        """Every dimension of the table and every attribute it is filtered by, each once."""
        return tuple(dict.fromkeys([*(dimension.name for dimension in self.question.by), *self.question.where]))

    @property
    def lists_structural_zeros(self) -> bool:
        """Whether combinations without any establishment are published as rows that are exactly 0."""
        chosen = self.table.structural_zeros
        if isinstance(self.question, PairQuestion):
            return False  # every pair of codes is listed, and which employers share a worker is not public
        return chosen == "listed" or (chosen == "auto" and self.cells <= LISTED_CELLS)

    @property
    def values_of_one_employer(self) -> int:
        """How many values may hold the factor of one employer alone, over the life of a key; 0 without factors."""
        if not hasattr(self.method, "rounding"):
            return 0
        asked = self.question
        periods = next((len(dimension) for dimension in asked.by if dimension.name == self.period), 1)
        lasting = max(LIFE, periods)
        if isinstance(asked, PairQuestion):
            own = len(asked.attributes)
            beside = prod(len(d) for d in asked.by[2 * own :] if d.name != self.period)
            classes = prod(len(dimension) for dimension in asked.by[:own])
            # An employer is one end of its pairs; workers who share it can have any two classes.
            pairs = classes * (1 + asked.directed) if asked.between == "employers" else classes * (classes + 1) // 2
            return pairs * beside * lasting
        roundings = ROUNDED_INDICATORS if isinstance(asked, IndicatorQuestion) else 1
        inside = [d for d in asked.by if not d.public and d.name not in (self.period, NAME)]
        return prod(map(len, inside)) * roundings * lasting

    def at_rounding(self, rounding: int, earnings_rounding: int) -> "PlannedTable":
        """The same table with distorted sums rounded to other bases."""
        known = {"rounding": rounding, "earnings_rounding": earnings_rounding}
        bases = {name: base for name, base in known.items() if hasattr(self.method, name)}
        return replace(self, method=replace(cast(Any, self.method), **bases)) if bases else self

    @property
    def roundings(self) -> tuple[int, int] | None:
        """To multiples of what distorted sums of jobs and of earnings are rounded; None for other methods."""
        if not hasattr(self.method, "rounding"):
            return None
        return self.method.rounding, getattr(self.method, "earnings_rounding", WHOLE_NUMBERS)

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return self.question.looks_at

    def digest(self, data: str, *, any_key: bool = False) -> str:
        """Name this question to these data: the same name means that the stored answer is given again.

        In whatever order dimensions and codes are written, the question has one name. With `any_key` the name is the
        same under every key.
        """
        method = method_in_order(self.method)
        return self._digest(data, in_any_order(self.table, self.question), method, any_key=any_key)

    def digest_as_laid_out(self, data: str, layout: Layout | None = None, *, any_key: bool = False) -> str:
        """The name that version 0.1 gave this question when it was written as an answer is laid out, or as it is now.

        It depended on the order of dimensions and codes. Answers that were stored under such names stay the answers.
        """
        by = self.question.by if layout is None else layout.by
        return self._digest(data, as_laid_out(self.table, self.question, by), self.method, any_key=any_key)

    def can_be_laid_out_as(self, layout: Layout) -> bool:
        """Whether an answer has the dimensions and codes that are asked for, in whatever order."""
        return layout.is_by(self.question.by)

    def _digest(self, data: str, asked: dict[str, Any], method: Method, *, any_key: bool) -> str:
        named = {
            **asked,
            "data": data,
            "links": self.links,
            "method": repr(method) + _unspoken(method),
            "key": "" if any_key else self.key,
        }
        return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()

    def randomness(self, secret: Secret | None, cells: Cells) -> Randomness:
        """Where the method's chance comes from: of a keyed method, from what each cell is about, for ever."""
        if secret is None or not self.key:
            return OperatingSystem()
        # Rounding that is the same in every period leaves the end of one equal to the beginning of the next.
        lasting = frozenset([self.period] if isinstance(self.question, IndicatorQuestion) else [])
        topic = json.dumps(["answer", *statistic_of(self.table, self.question)])
        keyed = Keyed(key=secret.key)
        return CellWords(keyed=keyed, cells=cells, topic=topic, where=self.question.where, lasting=lasting)

    def protect(self, counted: Cells | Samples, secret: Secret | None) -> Cells:
        """The answer that may be published, from the true cells, or from the values where a method asked for them."""
        if isinstance(counted, Samples):
            return cast(Any, self.method).protect(counted, OperatingSystem())  # type: ignore[no-any-return]
        return self.method.protect(counted, self.randomness(secret, counted))

    def answer(self, counted: Cells | Samples, secret: Secret | None) -> Cells:
        """The answer to a charged question, drawn by chance, with what is public of it: keep it, and give no other."""
        drawn = self.protect(counted, secret)
        if not (isinstance(counted, Cells) and "establishments" in counted.columns):
            return drawn
        return drawn.with_column("establishments", counted["establishments"])

    @property
    def noise(self) -> str:
        """A digest of what decides by how much records are perturbed; empty for other methods."""
        if not isinstance(self.method, TopContributors):
            return ""
        return hashlib.blake2b(repr(self.method.noise_options).encode(), digest_size=8).hexdigest()

    def in_whole_numbers(self) -> "PlannedTable":
        """The same table before its rounding could be chosen, which is what all roundings of it have in common."""
        return self.at_rounding(WHOLE_NUMBERS, WHOLE_NUMBERS)

    def charge(self, data: str, question: str | None = None) -> Charge:
        """What the ledger is asked to charge for this table; `question` is an earlier name of what it asks."""
        rounding = "" if self.roundings is None else RoundingNote.of(self, data).text
        note = f"{KEY_NOTE}{self.key} {self.digest(data, any_key=True)} {self.noise or rounding}" if self.key else ""
        asked = self.digest(data) if question is None else question
        return Charge(question=asked, table=self.table.name, guarantee=self.guarantee, data=data, note=note)


@dataclass(frozen=True, kw_only=True)
class RoundingNote:
    """What the ledger keeps of the rounding of a table with factors: the bases, and the question without them."""

    bases: tuple[int, int]
    question: str

    @classmethod
    def of(cls, planned: PlannedTable, data: str) -> Self:
        """The note of a planned table."""
        whole = planned.in_whole_numbers()
        bases = planned.roundings or (WHOLE_NUMBERS, WHOLE_NUMBERS)
        return cls(bases=bases, question=whole.digest(data, any_key=True))

    @classmethod
    def read(cls, question: str, text: str) -> Self:
        """From the note of a charge: its question under any key, and what stands behind it."""
        parts = text.split("/")
        if len(parts) != 3:  # of an earlier version, which rounded to whole numbers, or no table with factors
            return cls(bases=(WHOLE_NUMBERS, WHOLE_NUMBERS), question=question)
        return cls(bases=(int(parts[0]), int(parts[1])), question=parts[2])

    @property
    def text(self) -> str:
        """The note as the ledger keeps it."""
        return f"{self.bases[0]}/{self.bases[1]}/{self.question}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every table and every cube of a release, planned."""

    release: Release
    tables: tuple[PlannedTable, ...]
    cubes: tuple[PlannedCube, ...] = ()
    codelists: Mapping[str, Codelist]
    """Of every attribute, and of every dimension that is made of one."""
    secret: Secret | None = field(default=None, repr=False)
    software: str = __version__

    def distinct(self) -> tuple[PlannedTable, ...]:
        """The tables without those that ask a question another one asks: they get its answer and cost nothing."""
        return tuple({table.digest(""): table for table in reversed(self.tables)}.values())[::-1]

    def distinct_cubes(self) -> tuple[PlannedCube, ...]:
        """The cubes without those that are the same as another one."""
        return tuple({cube.digest(""): cube for cube in reversed(self.cubes)}.values())[::-1]

    @property
    def parts(self) -> "tuple[PlannedTable | PlannedCube, ...]":
        """Every table, then every cube."""
        return (*self.tables, *self.cubes)

    def distinct_parts(self) -> "tuple[PlannedTable | PlannedCube, ...]":
        """The same without repeated questions."""
        return (*self.distinct(), *self.distinct_cubes())

    def charges(self, data: str) -> list[Charge]:
        """What the ledger is asked to charge, for every table and every cube."""
        return [planned.charge(data) for planned in self.parts]

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all tables and cubes together reveal at most, at the alpha of the budget.

        If one table has no formal guarantee, all together have none.
        """
        open_tables = {t.table.name: t.guarantee for t in self.tables if isinstance(t.guarantee, NoFormalGuarantee)}
        if len(open_tables) == len(self.tables) and len(set(open_tables.values())) == 1 and not self.cubes:
            return next(iter(open_tables.values()))
        if open_tables:
            return NoFormalGuarantee(statement=f"nothing bounds what {', '.join(open_tables)} may reveal")
        budget = self.release.budget
        if budget is None:
            raise ValueError("a release with formal guarantees has a budget")
        parts = [planned.guarantee for planned in self.distinct_parts()]
        return sequential([part.within(budget) for part in parts if isinstance(part, EmployerEmployee)])


def _unspoken(method: Method) -> str:
    """The parameters that the text of a method leaves out because they are secret: they decide the answer too."""
    known = [part for part in fields(cast(Any, method)) if not part.repr]
    found = {part.name: getattr(method, part.name) for part in known}
    earlier = {part.name for part in known if part.metadata.get(ADDED) and found[part.name] == part.default}
    hidden = {name: value for name, value in found.items() if name not in earlier}
    return repr(sorted(hidden.items())) if hidden else ""


def make_plan(release: Release, codelists: Mapping[str, Codelist]) -> Plan:
    """Plan every table; a table that cannot be protected as asked is refused here, by name."""
    secret = release.secret()
    planned = []
    for table in release.tables:
        question = release.question(table, codelists)
        named = f"table '{table.name}'"
        in_parts = is_in_parts(release, table, question)
        _refuse_too_large(
            named,
            question,
            do="use fewer or coarser attributes, or split the table with `where`",
            most=MOST_CELLS_IN_PARTS if in_parts else MOST_CELLS,
        )
        if in_parts:
            _refuse_too_wide(named, question)
        with naming(named):
            method = release.method(table, question)
        lacking = sorted(method.needs - _countable(release.data, question))
        if lacking:
            # Found out here, and not after the budget was charged.
            raise ReleaseError(
                f"table '{table.name}': {method.name}",
                expected="a method whose columns can be counted",
                found=f"a method that needs {', '.join(lacking)}, which cannot be counted in these data",
                do="choose another method, or add the table of workplaces",
            )
        key = secret.fingerprint if secret is not None and method.name in KEYED else ""
        made = PlannedTable(
            table=table,
            question=question,
            method=method,
            links=release.data.links(),
            period=release.period or "",
            key=key,
            in_parts=in_parts,
        )
        planned.append(replace(made, before=_before(release, made)))
    plan = Plan(
        release=release,
        tables=_rounded(planned),
        cubes=_cubes(release, codelists),
        codelists={**codelists, **_made_codelists(release, codelists), **_places(planned)},
        secret=secret,
    )
    _refuse_two_noises(plan)
    if release.budget is not None:
        # Refuses what the budget excludes.
        balance(release.account, release.budget, [part.guarantee for part in plan.parts])
    return plan


def _rounded(planned: Sequence[PlannedTable]) -> tuple[PlannedTable, ...]:
    """The tables, those with factors rounded to a base that hides the factor of an employer in all of them."""
    values = [table.values_of_one_employer for table in planned if table.values_of_one_employer]
    # An employer alone in its cell has the same sum in several tables, each rounded by itself: their mean tells more.
    base = least_base(sum(values) * len(values))
    found = []
    for table in planned:
        said = table.table.protect.options
        earns = isinstance(table.question, IndicatorQuestion)
        jobs = said.get("rounding", base)
        pay = said.get("earnings_rounding", EARNINGS * jobs if jobs > WHOLE_NUMBERS else WHOLE_NUMBERS)
        found.append(table.at_rounding(jobs, pay if earns else WHOLE_NUMBERS))
    return tuple(found)


def _before(release: Release, planned: PlannedTable) -> PlannedTable | None:
    """The table as version 0.1.0 asked for it, where that was another question."""
    question = asked_before(planned.table, planned.question)
    if question is None:
        return None
    method = release.method(planned.table, question)
    if not isinstance(method, NoisyQuantiles):
        return None
    return replace(planned, question=question, method=replace(method, bounds=False))


def _refuse_two_noises(plan: Plan) -> None:
    """Records perturbed in two ways are disclosed: the same directions and sizes enter both."""
    noises = {planned.noise: planned.table.name for planned in plan.tables if planned.noise}
    if len(noises) > 1:
        one, other = list(noises.values())[:2]
        raise ReleaseError(
            f"tables '{one}' and '{other}'",
            expected="the same options of top-contributors in all tables, but for `suppress`: two perturbations of the "
            "same cells, made of the same directions and sizes, can be solved for the truth",
            found="different ones",
            do="write the same options in every table",
        )


def _cubes(release: Release, codelists: Mapping[str, Codelist]) -> tuple[PlannedCube, ...]:
    planned = []
    for section in release.cubes:
        named = f"cube '{section.name}'"
        if not isinstance(release.data, Microdata) or release.about.budget is None:
            raise ValueError("a release with cubes is of records, and has a budget")
        with naming(named):
            cube = plan_cube(section, release.data, codelists, alpha=release.about.budget.alpha)
            _ = cube.guarantee  # refuses a delta of 1 or more
        _refuse_too_large(named, cube.question, do="use fewer or coarser attributes")
        planned.append(cube)
    return tuple(planned)


def _refuse_too_large(named: str, question: Asked | CubeQuestion, *, do: str, most: int = MOST_CELLS) -> None:
    if question.cells > most:
        raise ReleaseError(
            named,
            expected=f"at most {most:,} cells",
            found=f"{question.cells:,}: {' × '.join(f'{len(d):,} {d.name}' for d in question.by)}",
            do=do,
        )


def _refuse_too_wide(named: str, question: Asked) -> None:
    """Refuse workplace cells that are too large for a part: all cells of one are protected together."""
    inside = [dimension for dimension in question.by if not dimension.public]
    if prod(map(len, inside)) > IN_ONE_PIECE:
        raise ReleaseError(
            named,
            expected=f"at most {IN_ONE_PIECE:,} worker cells in a workplace cell",
            found=f"{prod(map(len, inside)):,}: {' × '.join(f'{len(d):,} {d.name}' for d in inside)}",
            do="use fewer or coarser attributes of workers",
        )


def _countable(data: Frame | Microdata, question: Asked) -> frozenset[str]:
    """The columns that the engine can supply for a question."""
    if isinstance(question, ContributorQuestion):
        return frozenset({"records"})
    if isinstance(question, SampleQuestion):
        if question.statistic != "predict":  # and whoever makes means too does not look for what is predicted from
            return frozenset({"count"} if question.statistic != "mean" else SAMPLES - {"samples"})
        return SAMPLES
    if not isinstance(question, Question):
        return SUMS
    # Establishments without jobs are in no joined table, so their number is not known there.
    return COLUMNS - {"establishments"} if isinstance(data, Frame) and data.joined else COLUMNS


def _made_codelists(release: Release, codelists: Mapping[str, Codelist]) -> dict[str, Codelist]:
    """The codelists of dimensions that are no attributes themselves: periods, indicators, the ends of pairs."""
    made = {NAME: Codelist(codes=tuple(i.code for i in INDICATORS), labels=tuple(i.label for i in INDICATORS))}
    data = release.data
    if isinstance(data, Frame) and data.span is not None and release.period is not None:
        made[release.period] = Codelist.of(data.span.codes())
    for table in release.tables:
        made |= {end: codelists[attribute] for end, attribute in table.end_names().items()}
        if table.totals:
            made |= {name: _with_total(codelists[name]) for name in table.by}
    return made


def _places(planned: Sequence[PlannedTable]) -> dict[str, Codelist]:
    """The codelist of what tables of people publish of every group: of all tables together, as they share its file."""
    labels: dict[str, str] = {}
    for table in planned:
        if isinstance(table.question, SampleQuestion) and table.question.at:
            words = _PLACES[table.question.statistic]
            labels |= {code: words.format(code.removeprefix("p")) for code in table.question.at}
    return {AT: Codelist.of(labels)} if labels else {}


def _with_total(codelist: Codelist) -> Codelist:
    return Codelist(codes=(*codelist.codes, TOTAL), labels=(*codelist.labels, "Total"))
