"""Tables of earlier releases about the same data, as they were published: they stay, and new ones fit to them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sfumato.agree.published import MEASURED, Earlier, agreed_answers, populations, weighted_tables
from sfumato.agree.reconcile import shared_margins
from sfumato.cells import Cells
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import Codelist
from sfumato.identity import Identity
from sfumato.plan import Plan, make_plan
from sfumato.release import Release, load
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.registry import is_merging


@dataclass(frozen=True, kw_only=True)
class Before:
    """An earlier release, and those that were before it."""

    file: Path
    plan: Plan
    before: "tuple[Before, ...]"

    def tables(self) -> Iterator[PublishedTable]:
        """Its tables, and those before."""
        yield from self.plan.tables
        for one in self.before:
            yield from one.tables()


def releases_before(
    release: Release, codelists: Mapping[str, Codelist], after: Sequence[Path] = ()
) -> tuple[Before, ...]:
    """The earlier releases that a release file names, planned; `after` are the files that led to it."""
    found = []
    for file in release.about.earlier:
        path = (release.folder / file).resolve()
        if path in after:
            raise _refused(file, found="releases that name one another as earlier", do="leave one of them out")
        other = load(path, None if release.series is None else release.account.period)
        _refuse_unlike(file, release, other)
        before = releases_before(other, codelists, (*after, path))
        found.append(Before(file=file, plan=make_plan(other, codelists), before=before))
    return tuple(found)


def with_earlier(plan: Plan, before: Sequence[Before], identity: Identity) -> Plan:
    """A plan with the tables of the releases before it, by their stored answers."""
    found: list[Earlier] = []
    for one in before:
        other = with_earlier(replace(identity.as_charged(one.plan), within=plan.within), one.before, identity)
        tables = [table for table in other.tables if not table.in_chunks]
        answers = {table.name: _answer(one.file, table, identity) for table in tables}
        shown = agreed_answers(replace(other, statistics=tuple(tables)), answers)
        for table in tables:
            named = table.section.model_copy(update={"name": f"{table.name} of {other.release.about.title}"})
            earlier = replace(table, section=named)
            found.append(
                Earlier(table=earlier, release=str(one.file), measured=answers[table.name], shown=shown[table.name])
            )
    if plan.release.about.reconcile:
        _refuse_disagreeing(plan, found)
    return replace(plan, earlier=tuple(found))


def _answer(file: Path, table: PublishedTable, identity: Identity) -> Cells:
    question = identity.charge(table).question
    digest = next((one.answer for one in identity.history if one.kind == "answer" and one.question == question), None)
    if digest is None:
        raise _refused(
            file,
            found=f"no answer of these data for its table '{table.name}' in the ledger",
            do="publish it first with `sfumato run`, from the same data, or leave it out",
        )
    return table.laid_out(identity.answers.read(question, digest))


def _refuse_unlike(file: Path, release: Release, other: Release) -> None:
    """Earlier tables are about the same jobs, described alike, and in the same ledger."""
    if other.ledger.resolve() != release.ledger.resolve():
        raise _refused(file, found="one with another ledger", do="name releases of the same ledger")
    if other.account != release.account:
        raise _refused(file, found=f"one about {other.account}", do=f"name releases about {release.account}")
    if release.data.span is not None and (other.data.span is None or _counted(other) != _counted(release)):
        raise _refused(
            file, found="one about other jobs of the panel", do="name releases with the same population of its jobs"
        )
    used = {name for table in other.tables for name in (*table.by, *table.where)}
    merged = {name for table in other.tables if is_merging(table.protect.method) for name in table.by}
    levels = {*_levels(release, merged), *_levels(other, merged)}  # groups are made of all of them
    for name in sorted((used & {*other.data.attributes}) | levels):
        known = all(name in one.data.attributes for one in (release, other))
        if not known or _described(release, name) != _described(other, name):
            raise _refused(
                file,
                found=f"'{name}', which is described otherwise here or not at all",
                do="describe the attributes of its tables alike in both files, and levels too, under [data.attributes]",
            )


def _counted(release: Release) -> str:
    """Which jobs of a panel are counted at a period."""
    return release.frame.jobs.population


def _levels(release: Release, names: Collection[str]) -> list[str]:
    """The described levels of some attributes."""
    described = release.data.attributes.items()
    return [name for name, one in described if one.level_of is not None and one.level_of[0] in names]


def _described(release: Release, name: str) -> tuple[object, ...]:
    """What decides the codes of an attribute."""
    attribute, codes = release.data.attributes[name], release.data.declared_codes(name)
    listed = None if codes is None else codes.codes
    lies = None if attribute.level_of is None else sorted(release.data.counted_in(name))
    return attribute.column or name, attribute.derivation(), listed, lies, release.data.is_public(name)


def _refuse_disagreeing(plan: Plan, earlier: Sequence[Earlier]) -> None:
    """Nothing agrees with tables that disagree among themselves, but for rounding."""
    agreeing = {one.table.name: one for one in earlier if one.table.why_not_reconciled is None}
    for some in populations(one.table for one in agreeing.values()):
        weighted, above = weighted_tables((), {}, plan, [agreeing[table.name] for table in some])
        for margin in shared_margins(weighted, above):
            sums = [
                np.bincount(places, weighted[name].cells["value"], margin.sums)
                for name, places in ((margin.first, margin.first_sums), (margin.second, margin.second_sums))
            ]
            # Those that were made to agree do, but for roundings where several cross in a ring.
            agreed = all(MEASURED in weighted[name].cells.columns for name in (margin.first, margin.second))
            rounding = max(len(margin.first_sums), len(margin.second_sums)) / max(margin.sums, 1) if agreed else 0
            if np.abs(sums[0] - sums[1]).max(initial=0) > rounding:
                raise ReleaseError(
                    "release, earlier",
                    expected="tables that agree with one another, so that new ones can agree with all of them",
                    found=f"'{margin.first}' and '{margin.second}', whose sums differ",
                    do="name earlier releases with `reconcile = true`, or one of these tables alone; or leave "
                    "`reconcile` out here: errors are made smaller all the same",
                )


def _refused(file: Path, *, found: str, do: str) -> ReleaseError:
    return ReleaseError(
        f"release, earlier: {file}",
        expected="a release that was published from the same data with the same ledger",
        found=found,
        do=do,
    )
