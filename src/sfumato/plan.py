"""The plan of a release: guarantee, charge, cells and expected error of every table, before anything is counted."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sfumato import __version__
from sfumato.agree.composite import COMPOSITE, COMPOSITE_ERROR, Composite
from sfumato.agree.largest import Finer, finer_tables
from sfumato.agree.published import MEASURED, Earlier, composites, left_as_they_are
from sfumato.engine.chunks import IN_ONE_PIECE, MOST_CELLS
from sfumato.errors import ReleaseError, naming
from sfumato.frame.codelists import Codelist
from sfumato.frame.levels import Hierarchy
from sfumato.geography.areas import Geography
from sfumato.geography.project import Projected
from sfumato.geography.simplify import simplified
from sfumato.keys import Secret
from sfumato.method import SCALE, Method, bought_steps
from sfumato.noise.factors import EARNINGS, WHOLE_NUMBERS, least_base
from sfumato.privacy.account import Charge, balance, in_blocks
from sfumato.privacy.blocks import ChargedOnce, charged_once
from sfumato.privacy.guarantee import Guarantee, NoFormalGuarantee
from sfumato.release import Release
from sfumato.statistic import Asked, Statistic
from sfumato.statistics.fitting import refuse_beside_true_numbers, refuse_two_noises
from sfumato.statistics.jobs.bought_scale import ScaleForEach
from sfumato.statistics.kinds import in_order, kind_of, plan_cube
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.table import Table

if TYPE_CHECKING:  # a release of tables loads nothing of cubes
    from sfumato.statistics.cube.statistic import CubeStatistic

_Kind = TypeVar("_Kind", bound=Statistic)
MOST_COMBINATIONS = 100_000_000_000
"""Of tables in chunks, and of those that only list cells in which there is an establishment."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every table and every cube of a release, planned."""

    release: Release
    statistics: tuple[Statistic, ...]
    """In the order of the release file: tables, then cubes."""
    codelists: Mapping[str, Codelist]
    """Of every attribute, and of every dimension that is made of one."""
    secret: Secret | None = field(default=None, repr=False)
    maps: Mapping[str, Geography] = field(default_factory=dict, repr=False)
    """Of the attributes that are on a map, all areas of its file; attributes of one file have one object."""
    within: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Of pairs of public attributes, the code of the second that all establishments with a code of the first have."""
    earlier: tuple[Earlier, ...] = field(default=(), repr=False)
    """Tables of earlier releases about the same data, as the release file names them; they stay as they are."""
    software: str = __version__

    def is_public(self, attribute: str) -> bool:
        """Whether everyone knows the codes of an attribute: it describes workplaces, or is the period of a panel."""
        return self.release.data.is_known(attribute)

    def codes_above(self, fine: str, coarse: str, codes: Iterable[str], *, register: bool) -> Mapping[str, str] | None:
        """The code of one attribute that each of some codes of a finer one lies in; None where none follows.

        By what the release file says, and by the public register where that may be told.
        """
        asked = fine, coarse, tuple(codes)
        if asked not in self._above:  # codelists are files, and asked of many pairs of tables
            self._above[asked] = self.release.data.codes_above(*asked)
        declared = self._above[asked]
        return self.within.get((fine, coarse)) if declared is None and register else declared

    def most_workers(self, attribute: str) -> Mapping[str, int]:
        """The most workers that an establishment has, by its code of an attribute, as far as the release file says."""
        found = self.release.data.attributes.get(attribute)
        return {} if found is None else found.most_workers or {}

    @cached_property
    def _above(self) -> dict[tuple[str, str, tuple[str, ...]], Mapping[str, str] | None]:
        return {}

    @cached_property
    def hierarchies(self) -> "tuple[Hierarchy, ...]":
        """The published dimensions that lie in others: the nearest ones, place in county, and county in state."""
        names = dict.fromkeys(dimension.name for statistic in self.statistics for dimension in statistic.by)
        codes = {name: self.codelists[name].codes for name in names}
        known = {
            (fine, coarse): above
            for fine, coarse in permutations(names, 2)
            if (above := self.codes_above(fine, coarse, codes[fine], register=True)) is not None
        }
        # Where each has one code of the other, the coarser one is that in which codes of the column are counted.
        counted = {name: len(self.release.data.counted_in(name)) for name in names}
        inside = {
            (fine, coarse) for fine, coarse in known if (coarse, fine) not in known or counted[coarse] > counted[fine]
        }
        return tuple(
            Hierarchy(
                dimension=fine,
                above=coarse,
                parents={code: above[code] for code in codes[fine] if code in above},
                by_register=self.release.data.codes_above(fine, coarse, codes[fine]) is None,
            )
            for (fine, coarse), above in known.items()
            if (fine, coarse) in inside
            and not any((fine, between) in inside and (between, coarse) in inside for between in names)
        )

    @cached_property
    def finer(self) -> Mapping[str, tuple[Finer, ...]]:
        """The tables that tell of others how large their establishments can be, by the name of each of these."""
        known = [*self.tables, *(one.table for one in self.earlier)]
        found = {table.name: finer_tables(table, known, self) for table in self.tables}
        return {name: some for name, some in found.items() if some}

    @property
    def finer_tables(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the tables that tell of others how large their establishments can be."""
        told = {name: [one for one in some if one.tells_values(name)] for name, some in self.finer.items()}
        return {name: tuple(one.table.name for one in some) for name, some in told.items() if some}

    @property
    def known_before(self) -> dict[str, tuple[Statistic, Any]]:
        """The tables of earlier releases that new ones are decided with, each with its answer."""
        return {one.table.name: (one.table, one.measured) for one in self.earlier if one.table.decided_by() is not None}

    @property
    def released_before(self) -> tuple[frozenset[str], ...]:
        """The names of the tables of every earlier release."""
        files = dict.fromkeys(one.release for one in self.earlier)
        return tuple(frozenset(one.table.name for one in self.earlier if one.release == file) for file in files)

    @property
    def tables(self) -> tuple[PublishedTable, ...]:
        """The statistics that are tables of cells."""
        return cast(tuple[PublishedTable, ...], self.published_as("tables"))

    @property
    def cubes(self) -> "tuple[CubeStatistic, ...]":
        """The statistics that are cubes."""
        return cast("tuple[CubeStatistic, ...]", self.published_as("cubes"))

    def published_as(self, folder: str) -> tuple[Statistic, ...]:
        """The statistics that a bundle has in one of its folders."""
        return tuple(statistic for statistic in self.statistics if statistic.folder == folder)

    @property
    def kinds(self) -> tuple[type[Statistic], ...]:
        """The kinds of its statistics, in the order in which statements speak of them."""
        return in_order({type(statistic) for statistic in self.statistics})

    def of_kind(self, kind: type[_Kind]) -> tuple[_Kind, ...]:
        """The statistics of one kind, those that ask what another one asks left out."""
        return tuple(one for one in self.distinct() if type(one) is kind)

    def distinct(self) -> tuple[Statistic, ...]:
        """The statistics without those that ask a question another one asks: they get its answer and cost nothing."""
        return tuple({one.digest(""): one for one in reversed(self.statistics)}.values())[::-1]

    def charges(self, data: str) -> list[Charge]:
        """What the ledger is asked to charge, for every statistic."""
        return [statistic.charge(data) for statistic in self.statistics]

    def epsilon(self, *, without: Collection[str] = ()) -> Fraction:
        """What all statistics cost the budget, or all but those that were paid before."""
        budget = self.release.budget
        if budget is None:
            return Fraction(0)
        due = [one for one in self.distinct() if one.name not in without]
        return balance(self.release.account, budget, due).spent_epsilon

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all statistics together reveal at most, at the alpha of the budget.

        If one has no formal guarantee, all together have none.
        """
        unbounded = {one.name: one.guarantee for one in self.statistics if one.guarantee.bound is None}
        if len(unbounded) == len(self.statistics) and len(set(unbounded.values())) == 1:
            return next(iter(unbounded.values()))
        if unbounded:
            return NoFormalGuarantee(statement=f"nothing bounds what {', '.join(unbounded)} may reveal")
        budget = self.release.budget
        if budget is None:
            raise ValueError("a release with formal guarantees has a budget")
        bounds = [(one.block, one.guarantee.bound) for one in self.distinct()]
        return in_blocks([(block, bound.within(budget)) for block, bound in bounds if bound is not None])

    @cached_property
    def charged_once(self) -> tuple[ChargedOnce, ...]:
        """The tables that are about different establishments, so that what they cost does not add up."""
        budget = self.release.budget
        bounds = {one.name: (one.block, one.guarantee.bound) for one in self.distinct()}
        formal = {name: (block, bound) for name, (block, bound) in bounds.items() if bound is not None}
        if budget is None:
            return ()
        return charged_once({name: (block, bound.within(budget).epsilon) for name, (block, bound) in formal.items()})

    @cached_property
    def reconciled(self) -> tuple[str, ...]:
        """The tables that are made to agree: those that are right on average and share a population with another."""
        asked = self.tables if self.release.about.reconcile else ()
        return tuple(table.name for table in asked if table.name not in self.not_reconciled)

    @cached_property
    def not_reconciled(self) -> Mapping[str, str]:
        """The tables that stay as they are although the release asks for agreement, each with the reason."""
        return left_as_they_are(self.tables, self.earlier) if self.release.about.reconcile else {}

    @cached_property
    def composites(self) -> Mapping[str, Composite]:
        """How composite estimates are made, of the tables that ask for them."""
        return composites(self.tables, self.reconciled, numbered=not self.release.data.joined)

    def operator_notes(self) -> list[str]:
        """What whoever runs the release should know of it, and readers of the bundle need not."""
        apart = [
            f"reconcile = true leaves {name} as it is, because {why}." for name, why in self.not_reconciled.items()
        ]
        kinds = [note for kind in self.kinds for note in kind.operator_notes(self)]
        formal = [one.name for one in self.statistics if one.guarantee.bound is not None and not one.protects_units]
        return [*apart, *self.release.data.not_kept(formal), *kinds]

    def label(self, dimension: str) -> str:
        """The words for a dimension in a heading."""
        data = self.release.data
        made = {name: words for table in self.tables for name, words in table.made_labels(data).items()}
        if dimension in data.attributes:
            return data.label(dimension)
        if dimension == data.panel_period:
            made[dimension] = data.as_jobs().jobs.period_label
        return made.get(dimension) or dimension.replace("_", " ").capitalize()

    def derived(self) -> dict[str, str]:
        """What makes the codes of attributes out of columns, in words, of those that any statistic looks at."""
        data, used = self.release.data, frozenset[str]().union(*(one.looks_at for one in self.statistics))
        return {name: words for name in data.attributes if name in used and (words := data.made_of(name))}

    def map_of(self, dimension: str) -> str | None:
        """The file of a bundle that has the areas of a dimension: one for all attributes on the same map."""
        ends = {name: attribute for table in self.tables for name, attribute in table.end_attributes().items()}
        geography = self.maps.get(ends.get(dimension, dimension))
        first = next((name for name, other in self.maps.items() if other is geography), None)
        return None if first is None else f"maps/{first}.geojson"

    @cached_property
    def published_maps(self) -> dict[str, bytes]:
        """The maps of a bundle by their files: of all codes of the attributes that are on them, made small."""
        codes: dict[str, dict[str, None]] = {}
        for statistic in self.statistics:
            for dimension in statistic.by:
                file = self.map_of(dimension.name)
                if file is not None:
                    codes.setdefault(file, {}).update(dict.fromkeys(self.codelists[dimension.name].codes))
        areas = {f"maps/{name}.geojson": geography for name, geography in self.maps.items()}
        return {file: _published(Path(file).stem, areas[file].only(listed)) for file, listed in codes.items()}


def make_plan(release: Release, codelists: Mapping[str, Codelist], secret: Secret | None = None) -> Plan:
    """Plan every statistic; one that cannot be protected as asked is refused here, by name.

    The key is that of the release, unless another one is made for a trial.
    """
    secret = release.secret() if secret is None else secret
    tables = _tables(release, codelists, secret)
    plan = Plan(
        release=release,
        statistics=(*_rounded(tables), *_cubes(release, codelists, secret)),
        codelists={**codelists, **_made_codelists(release, tables, codelists)},
        secret=secret,
        maps=_maps(release, codelists),
    )
    _ = plan.published_maps  # whole and drawn once, so that no map stops a run that was charged
    refuse_two_noises(plan.tables)
    refuse_beside_true_numbers(plan.tables)
    _refuse_taken_names(plan)
    _refuse_sizes(plan)
    _ = plan.composites  # refuses tables that cannot have them
    if release.budget is not None:
        # Refuses what the budget excludes.
        balance(release.account, release.budget, plan.statistics)
    return plan


def _tables(release: Release, codelists: Mapping[str, Codelist], secret: Secret | None) -> list[PublishedTable]:
    """All tables; those that cannot buy their scale are refused together, as one section may stand for many."""
    planned, unable = [], {}
    for table in release.tables:
        try:
            planned.append(plan_table(release, table, codelists, secret))
        except ScaleForEach as error:
            unable[table.name] = error
    for first in unable.values():
        where = first.where if len(unable) == 1 else f"tables {', '.join(unable)}"
        each = "; where `levels` make the tables, error_epsilon may have a value for each, such as 0 for these"
        raise ScaleForEach(where, expected=first.expected, found=first.found, do=first.do + each * bool(planned))
    return planned


def plan_table(
    release: Release, table: Table, codelists: Mapping[str, Codelist], secret: Secret | None = None
) -> PublishedTable:
    """One table with what it asks and how it is protected."""
    data, named = release.data, f"table '{table.name}'"
    kind = kind_of(table, data)
    question = kind.ask(table, data, codelists)
    whole = kind.why_whole(table, question, reconciled=release.about.reconcile)
    in_chunks = _is_in_chunks(release, table, whole, question)
    _refuse_too_large(
        named,
        question,
        do="use fewer or coarser attributes, or split the table with `where`",
        most=MOST_COMBINATIONS if in_chunks or kind.lists_some(table, data, question) else MOST_CELLS,
    )
    if in_chunks:
        _refuse_too_wide(named, question)

    def method_for(asked: Any) -> Method:
        budget = release.about.budget
        found: Method = kind.build_method(table, data, asked, alpha=None if budget is None else budget.alpha)
        return found

    with naming(named):
        method = method_for(question)
    lacking = sorted(method.needs - kind.countable(data, question))
    if lacking:
        # Found out here, and not after the budget was charged.
        raise ReleaseError(
            f"table '{table.name}': {method.name}",
            expected="a method whose columns can be counted",
            found=f"a method that needs {', '.join(lacking)}, which cannot be counted in these data",
            do="choose another method, or add the table of workplaces",
        )
    planned: PublishedTable = kind(
        section=table,
        question=question,
        method=method,
        links=data.links() + data.derivations(question.looks_at),
        period=release.period or "",
        block=kind.block_of(question, data),
        in_chunks=in_chunks,
    )
    if secret is not None and (table.protect.needs_key or planned.chooses_records):
        planned = replace(planned, key=secret.fingerprint)
    return replace(planned, before=planned.as_asked_before(method_for))


def _is_in_chunks(release: Release, table: Table, whole: str | None, question: Asked) -> bool:
    """Whether a table is made in chunks: when the release asks for it, when it is large, and always on a cluster."""
    if whole is not None and table.parts is not None:
        raise ReleaseError(
            f"table '{table.name}', parts",
            expected="a table whose cells are protected without a look at the others",
            found=whole,
            do="leave `parts` out; docs/large-tables.md says which tables can be made in parts, and why others cannot",
        )
    large = table.parts is not None or question.cells > IN_ONE_PIECE or release.data.engine == "spark"
    return large and whole is None


def _rounded(tables: Sequence[PublishedTable]) -> tuple[PublishedTable, ...]:
    """The tables, those with factors rounded to a base that hides the factor of an employer in all of them."""
    values = [table.values_of_one_employer for table in tables if table.values_of_one_employer]
    # An employer alone in its cell has the same sum in several tables, each rounded by itself: their mean tells more.
    base = least_base(sum(values) * len(values))
    found = []
    for table in tables:
        said = table.table.protect.options
        jobs = said.get("rounding", base)
        pay = said.get("earnings_rounding", EARNINGS * jobs if jobs > WHOLE_NUMBERS else WHOLE_NUMBERS)
        with naming(f"table '{table.name}'"):
            found.append(table.at_rounding(jobs, pay if table.rounds_earnings else WHOLE_NUMBERS))
    return tuple(found)


def _refuse_sizes(plan: Plan) -> None:
    """Sizes that make errors smaller are those that everyone knows, of codes that there are."""
    for name, attribute in plan.release.data.attributes.items():
        codes = plan.codelists[name].codes if name in plan.codelists else ()
        strange = [code for code in attribute.most_workers or {} if codes and code not in codes]
        if attribute.most_workers is not None and (strange or not plan.is_public(name)):
            raise ReleaseError(
                f"attribute '{name}', most_workers",
                expected="codes of an attribute that everyone knows of establishments, each with a number of workers",
                found=f"'{strange[0]}', which is no code of it" if strange else "an attribute that is not in `public`",
                do="name codes of its codelist" if strange else "list it in `public` if it is, or leave this out",
            )


def _refuse_taken_names(plan: Plan) -> None:
    """Refuse a dimension with the name of a column that tables get when they are made to agree."""
    for table in plan.tables:
        taken = {MEASURED: "reconcile = true"} if table.name in plan.reconciled else {}
        if bought_steps(table.method):
            taken[SCALE] = "error_epsilon"
        if table.table.composite is not None:
            taken |= dict.fromkeys((COMPOSITE, COMPOSITE_ERROR), "composite")
        for name in taken.keys() & set(table.classified_by):
            raise ReleaseError(
                f"table '{table.name}', '{name}'",
                expected=f"another name: {taken[name]} publishes a column of this name",
                found=f"an attribute '{name}'",
                do=f'give the attribute another name, with column = "{name}"',
            )


def _cubes(release: Release, codelists: Mapping[str, Codelist], secret: Secret | None) -> "tuple[CubeStatistic, ...]":
    planned = []
    for section in release.cubes:
        named = f"cube '{section.name}'"
        if release.about.budget is None:
            raise ValueError("a release with cubes has a budget")
        with naming(named):
            cube = plan_cube(section, release.records, codelists, alpha=release.about.budget.alpha, secret=secret)
            _ = cube.guarantee  # refuses a delta of 1 or more
        _refuse_too_large(named, cube.question, do="use fewer or coarser attributes")
        planned.append(cube)
    return tuple(planned)


def _made_codelists(
    release: Release, tables: Sequence[PublishedTable], codelists: Mapping[str, Codelist]
) -> dict[str, Codelist]:
    """The codelists of dimensions that are no attributes themselves: of all tables together, as they share a file."""
    made: dict[str, dict[str, str]] = {}
    span = release.data.span
    if span is not None and release.period is not None:
        codes = Codelist.of(span.codes())
        made[release.period] = dict(zip(codes.codes, codes.labels, strict=True))
    for table in tables:
        for name, codelist in table.made_codelists(codelists).items():
            made.setdefault(name, {}).update(zip(codelist.codes, codelist.labels, strict=True))
    return {name: Codelist(codes=tuple(found), labels=tuple(found.values())) for name, found in made.items()}


def _maps(release: Release, codelists: Mapping[str, Codelist]) -> dict[str, Geography]:
    """The maps that attributes name, every file read once; an attribute with codes that are on no map is refused."""
    files: dict[Any, Geography] = {}
    found = {}
    attributes = release.data.attributes
    for name, attribute in attributes.items():
        # Where workers come from is on the map of where they go to.
        destination = attributes.get(attribute.origin_of or "")
        described = attribute.map or (destination.map if destination is not None else None)
        if described is None:
            continue
        source = described.source
        if source not in files:
            files[source] = described.read(release.data.folder)
        where = f"attribute '{name}', map {described.path}"
        files[source].refuse_lacking(where, codelists[name].codes, described.without)
        found[name] = files[source]
    return found


def _published(attribute: str, geography: Geography) -> bytes:
    """A map as a bundle has it, which was read back and put on paper, as the page will."""
    geography.refuse_too_small(f"attribute '{attribute}', map")
    content = simplified(geography).geojson()
    _ = Projected.of(Geography.published(content)).middles
    return content


def _refuse_too_large(named: str, question: Asked, *, do: str, most: int = MOST_CELLS) -> None:
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
